// Clocks, power and throttling of the GPU, read through NVML where it is.
#pragma once

#include "runtime/Result.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace moejit::tool {

/// What was seen over some time.
struct ClockSummary {
  int64_t samples = 0;
  int64_t leastSmMHz = 0, mostSmMHz = 0;
  double mostWatts = 0;
  int64_t mostCelsius = 0;
  uint64_t throttleReasons = 0; ///< every reason that was seen, nvmlClocksThrottleReason…

  void add(const ClockSummary &other);
  /// "1755 to 1980 MHz, up to 431 W, 53 °C, throttled by sw_power_cap"; empty without samples.
  std::string text() const;
};

/// The names of the bits of `reasons` that mean lost speed; being idle is none.
std::vector<std::string> throttleNames(uint64_t reasons);

/// Samples in a thread of its own, every 20 ms, while the object lives.
class ClockLog {
public:
  /// Errors: Unavailable when NVML or the device is not there.
  static Result<std::unique_ptr<ClockLog>> open();
  ~ClockLog();

  /// Seconds on the clock of the samples.
  static double now();
  /// What was sampled from `begin` until now, and once more right now.
  ClockSummary since(double begin);

private:
  struct Impl;
  explicit ClockLog(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace moejit::tool
