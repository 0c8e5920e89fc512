// The order of calls and the arithmetic of their times.
#include "tools/moejit/Bench.h"

#include "tests/oracle/Random.h"
#include "tools/moejit/Meter.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <thread>

namespace moejit::tool {
namespace {

Error named(const BenchItem &item, Error error) {
  error.message = item.name + ": " + error.message;
  return error;
}

void idle(double milliseconds) {
  if (milliseconds > 0)
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(milliseconds));
}

/// One block of single calls.
Result<void> timeBlock(BenchDevice &device, BenchItem &item, const MeasureOptions &options) {
  idle(options.idleMs);
  double begin = ClockLog::now();
  for (int64_t i = 0; i < options.repeats; ++i) {
    Result<double> us = device.timeUs(item.call);
    if (!us)
      return named(item, us.error());
    item.us.push_back(*us);
  }
  if (options.clocks)
    item.clocks.add(options.clocks->since(begin));
  return {};
}

Result<void> timeWindow(BenchDevice &device, BenchItem &item, const MeasureOptions &options) {
  double begin = ClockLog::now();
  auto count = int64_t(options.windowMs * 1e3 / std::max(median(item.us), 1.0));
  Result<double> us = device.windowUs(item.call, std::max<int64_t>(count, 1));
  if (!us)
    return named(item, us.error());
  item.sustainedUs.push_back(*us);
  if (options.clocks)
    item.sustainedClocks.add(options.clocks->since(begin));
  return {};
}

} // namespace

Result<void> measure(BenchDevice &device, std::vector<BenchItem> &items,
                     const MeasureOptions &options) {
  oracle::Random random(options.seed);
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), size_t(0));
  for (BenchItem &item : items)
    if (Result<double> warm = device.timeUs(item.call); !warm)
      return named(item, warm.error());
  {
    Meter meter("measuring", options.rounds * int64_t(items.size()));
    for (int64_t round = 0; round < options.rounds; ++round) {
      random.shuffle(order);
      for (size_t i : order) {
        if (Result<void> timed = timeBlock(device, items[i], options); !timed)
          return timed;
        meter.step(items[i].name);
      }
    }
  }
  if (options.windowMs <= 0)
    return {};
  Meter meter("measuring windows", options.rounds * int64_t(items.size()));
  for (int64_t round = 0; round < options.rounds; ++round) {
    random.shuffle(order);
    for (size_t i : order) {
      if (items[i].isSustained)
        if (Result<void> timed = timeWindow(device, items[i], options); !timed)
          return timed;
      meter.step(items[i].name);
    }
  }
  return {};
}

Result<double> hostUs(BenchDevice &device, const BenchDevice::Call &call, int64_t calls) {
  constexpr int64_t drained = 8;
  std::vector<double> times;
  for (int64_t i = 0; i < calls; ++i) {
    if (i % drained == 0)
      if (Result<void> done = device.synchronize(); !done)
        return done.error();
    auto begin = std::chrono::steady_clock::now();
    Result<void> called = call();
    std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    if (!called)
      return called.error();
    times.push_back(took.count());
  }
  if (Result<void> done = device.synchronize(); !done)
    return done.error();
  return median(times);
}

double quantile(std::vector<double> values, double part) {
  if (values.empty())
    return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  double at = part * double(values.size() - 1);
  auto below = size_t(at);
  size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - double(below)) * (values[above] - values[below]);
}

double spread(const std::vector<double> &values) {
  return (quantile(values, 0.75) - quantile(values, 0.25)) / median(values);
}

} // namespace moejit::tool
