// Notes of what a launch has touched.
#include "runtime/emulator/Footprint.h"

#include <atomic>

namespace moejit::emulated {

Footprint::Footprint(const EmulatedLaunch &of) : launch(of) {
  for (const MemoryRange &range : launch.ranges)
    words.emplace_back(static_cast<size_t>(range.bytes));
}

void Footprint::note(size_t range, int64_t at, int bytes, int block, int thread, bool isWrite) {
  const uint64_t number = static_cast<uint64_t>(block) * launch.threads + thread + 1;
  const uint64_t mine = isWrite ? number : number << 32;
  const uint64_t others = isWrite ? ~uint64_t(UINT32_MAX) : uint64_t(UINT32_MAX);
  for (int64_t i = at; i < at + bytes; ++i) {
    const std::atomic_ref<uint64_t> word(words[range][static_cast<size_t>(i)]);
    uint64_t old = word.load(std::memory_order_relaxed);
    while (!word.compare_exchange_weak(old, (old & others) | mine, std::memory_order_relaxed)) {
    }
  }
}

uint64_t Footprint::wordOf(const char *address) const {
  // Ranges may overlap: what any of them says counts.
  uint64_t all = 0;
  for (size_t range = 0; range < words.size(); ++range) {
    const char *base = static_cast<const char *>(launch.ranges[range].base);
    if (address < base || address >= base + launch.ranges[range].bytes)
      continue;
    const uint64_t word = words[range][static_cast<size_t>(address - base)];
    if ((all & UINT32_MAX) == 0)
      all |= word & UINT32_MAX;
    if (all >> 32 == 0)
      all |= word >> 32 << 32;
  }
  return all;
}

Text Footprint::refuse(const char *address, int bytes, bool isWrite, const std::string &name,
                       int64_t at) const {
  for (int i = 0; i < bytes; ++i) {
    const uint64_t word = wordOf(address + i);
    const uint32_t writer = static_cast<uint32_t>(word), reader = static_cast<uint32_t>(word >> 32);
    const uint32_t other = writer != 0 ? writer : isWrite ? reader : 0;
    if (other == 0)
      continue;
    return Text::format("{} byte {} of {}, which thread {} of block {} of the grid before {}: "
                        "griddepcontrol_wait must come first",
                        isWrite ? "writes" : "reads", at + i, name, (other - 1) % launch.threads,
                        (other - 1) / launch.threads, writer != 0 ? "writes" : "reads");
  }
  return {};
}

bool Footprint::hasWritten(const char *address) const {
  return static_cast<uint32_t>(wordOf(address)) != 0;
}

} // namespace moejit::emulated
