// Lines such as "measuring: 40 of 120, 8.1/s, 10 s left (mixtral-8x7b.down)".
#include "tools/moejit/Meter.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>

namespace moejit::tool {

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Meter::Meter(std::string what, int64_t steps, double everySeconds)
    : text(std::move(what)), total(steps), begin(now()), said(begin), every(everySeconds) {}

Meter::~Meter() {
  if (isSaid)
    std::fputs(fmt::format("{}: {} of {} in {:.1f} s\n", text, count, total, now() - begin).c_str(),
               stderr);
}

void Meter::step(const std::string &note) {
  std::lock_guard guard(mutex);
  ++count;
  double time = now();
  if (time - said < every || count == total)
    return;
  double rate = double(count) / (time - begin);
  std::fputs(fmt::format("{}: {} of {}, {:.2g}/s, {:.0f} s left{}\n", text, count, total, rate,
                         double(total - count) / rate, note.empty() ? "" : " (" + note + ")")
                 .c_str(),
             stderr);
  said = time;
  isSaid = true;
}

} // namespace moejit::tool
