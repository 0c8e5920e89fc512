// Times many calls beside each other: shuffled rounds, idle before each block, a cold L2; then, if
// asked for, windows without pause. Knows nothing of what the calls do.
#pragma once

#include "tools/moejit/BenchDevice.h"
#include "tools/moejit/Nvml.h"

#include <cstdint>
#include <string>
#include <vector>

namespace moejit::tool {

/// One thing to be timed, and its times in µs.
struct BenchItem {
  std::string name;
  BenchDevice::Call call;
  bool isSustained = true; ///< takes part in windows

  std::vector<double> us = {};          ///< of single calls, cold L2
  std::vector<double> sustainedUs = {}; ///< of one call, a value for each window
  ClockSummary clocks = {}, sustainedClocks = {};
};

struct MeasureOptions {
  int64_t rounds = 5;
  int64_t repeats = 4; ///< calls of a block
  double idleMs = 50;  ///< before each block
  double windowMs = 0; ///< of sustained windows; 0: none
  uint64_t seed = 1;   ///< of the order
  ClockLog *clocks = nullptr;
};

/// Runs every item once, then times them: in each round every item has one block of calls, in an
/// order drawn for the round. Windows come after all blocks, shuffled likewise. Errors: those of
/// the calls, with the item's name.
Result<void> measure(BenchDevice &device, std::vector<BenchItem> &items,
                     const MeasureOptions &options);

/// Host time of one call of `call` in µs: the median of `calls`, the stream drained every few, so
/// that no call waits for a full queue.
Result<double> hostUs(BenchDevice &device, const BenchDevice::Call &call, int64_t calls = 64);

/// The value below which the share `part` of `values` lies, between neighbours linearly; NaN of
/// none.
double quantile(std::vector<double> values, double part);
inline double median(const std::vector<double> &values) { return quantile(values, 0.5); }
/// The middle half's width over the median.
double spread(const std::vector<double> &values);

} // namespace moejit::tool
