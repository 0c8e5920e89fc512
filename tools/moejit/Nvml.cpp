// NVML by dlopen; its ABI as nvml.h declares it (NVML API reference, device queries).
#include "tools/moejit/Nvml.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <dlfcn.h>
#include <mutex>
#include <thread>

namespace moejit::tool {
namespace {

using Handle = void *;

struct NvmlApi {
  int (*init)() = nullptr;
  int (*handleByBusId)(const char *, Handle *) = nullptr;
  int (*powerUsage)(Handle, unsigned *milliwatts) = nullptr;
  int (*clockInfo)(Handle, int clock, unsigned *megahertz) = nullptr;
  int (*temperature)(Handle, int sensor, unsigned *celsius) = nullptr;
  int (*throttleReasons)(Handle, unsigned long long *reasons) = nullptr;
};

constexpr int smClock = 1;   ///< NVML_CLOCK_SM
constexpr int gpuSensor = 0; ///< NVML_TEMPERATURE_GPU

/// nvmlClocksEventReason…; gpu idle (1) and application clocks (2) cost no speed by accident.
constexpr struct {
  uint64_t bit;
  const char *name;
} reasonNames[] = {
    {0x4, "sw_power_cap"},     {0x8, "hw_slowdown"}, {0x10, "sync_boost"},
    {0x20, "sw_thermal"},      {0x40, "hw_thermal"}, {0x80, "hw_power_brake"},
    {0x100, "display_clocks"},
};

template <typename F> bool find(void *library, F &function, const char *name) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

/// Where device 0 of the driver sits; CUDA and NVML may count devices differently.
std::string busId() {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  int (*get)(char *, int, int) = nullptr;
  char text[64] = {};
  if (!driver || !find(driver, get, "cuDeviceGetPCIBusId") || get(text, int(sizeof text) - 1, 0))
    return {};
  return text;
}

} // namespace

void ClockSummary::add(const ClockSummary &other) {
  if (other.samples == 0)
    return;
  leastSmMHz = samples ? std::min(leastSmMHz, other.leastSmMHz) : other.leastSmMHz;
  mostSmMHz = std::max(mostSmMHz, other.mostSmMHz);
  mostWatts = std::max(mostWatts, other.mostWatts);
  mostCelsius = std::max(mostCelsius, other.mostCelsius);
  throttleReasons |= other.throttleReasons;
  samples += other.samples;
}

std::string ClockSummary::text() const {
  if (samples == 0)
    return {};
  std::vector<std::string> reasons = throttleNames(throttleReasons);
  return fmt::format(
      "{} to {} MHz, up to {:.0f} W, {} °C, {}", leastSmMHz, mostSmMHz, mostWatts, mostCelsius,
      reasons.empty() ? "not throttled" : fmt::format("throttled by {}", fmt::join(reasons, ", ")));
}

std::vector<std::string> throttleNames(uint64_t reasons) {
  std::vector<std::string> names;
  for (const auto &reason : reasonNames)
    if (reasons & reason.bit)
      names.push_back(reason.name);
  return names;
}

struct ClockLog::Impl {
  NvmlApi api;
  Handle handle = nullptr;
  std::mutex mutex; ///< guards samples
  std::vector<std::pair<double, ClockSummary>> samples;
  std::atomic<bool> isStopping = false;
  std::thread thread;

  ClockSummary sample() const {
    ClockSummary now;
    unsigned milliwatts = 0, megahertz = 0, celsius = 0;
    unsigned long long reasons = 0;
    if (api.powerUsage(handle, &milliwatts) || api.clockInfo(handle, smClock, &megahertz))
      return now;
    api.temperature(handle, gpuSensor, &celsius);
    if (api.throttleReasons)
      api.throttleReasons(handle, &reasons);
    now.samples = 1;
    now.leastSmMHz = now.mostSmMHz = megahertz;
    now.mostWatts = milliwatts / 1e3;
    now.mostCelsius = celsius;
    now.throttleReasons = reasons;
    return now;
  }
};

ClockLog::ClockLog(std::unique_ptr<Impl> given) : impl(std::move(given)) {
  impl->thread = std::thread([self = impl.get()] {
    while (!self->isStopping) {
      ClockSummary seen = self->sample();
      {
        std::lock_guard guard(self->mutex);
        self->samples.emplace_back(now(), seen);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
}

ClockLog::~ClockLog() {
  impl->isStopping = true;
  impl->thread.join();
}

Result<std::unique_ptr<ClockLog>> ClockLog::open() {
  void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return Error{ErrorCode::Unavailable, "no NVML on this machine: no clocks and power are noted"};
  auto impl = std::make_unique<Impl>();
  NvmlApi &api = impl->api;
  if (!find(library, api.init, "nvmlInit_v2") ||
      !find(library, api.handleByBusId, "nvmlDeviceGetHandleByPciBusId_v2") ||
      !find(library, api.powerUsage, "nvmlDeviceGetPowerUsage") ||
      !find(library, api.clockInfo, "nvmlDeviceGetClockInfo") ||
      !find(library, api.temperature, "nvmlDeviceGetTemperature"))
    return Error{ErrorCode::Unavailable, "NVML lacks functions: no clocks and power are noted"};
  find(library, api.throttleReasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
  std::string bus = busId();
  if (api.init() != 0 || bus.empty() || api.handleByBusId(bus.c_str(), &impl->handle) != 0 ||
      impl->sample().samples == 0)
    return Error{ErrorCode::Unavailable,
                 "NVML does not know this device: no clocks and power are noted"};
  return std::unique_ptr<ClockLog>(new ClockLog(std::move(impl)));
}

double ClockLog::now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

ClockSummary ClockLog::since(double begin) {
  ClockSummary all = impl->sample();
  std::lock_guard guard(impl->mutex);
  for (auto at = impl->samples.rbegin(); at != impl->samples.rend() && at->first >= begin; ++at)
    all.add(at->second);
  return all;
}

} // namespace moejit::tool
