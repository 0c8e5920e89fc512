// Runs a kernel on a GPU of this machine: memory, copies, launches, times.
#pragma once

#include "runtime/Driver.h"
#include "runtime/Kernel.h"
#include "tools/moejit/HostLaunch.h"

#include <memory>
#include <string>
#include <vector>

namespace moejit::tool {

/// A device whose primary context is current in this thread while the object lives.
class Gpu {
public:
  /// The first device. Errors: Unavailable when there is no driver or no device; DriverError.
  static Result<std::unique_ptr<Gpu>> open();
  ~Gpu();

  const DeviceInfo &info() const { return device; }
  const DriverApi &api() const { return *driver; }

  /// Copies the operands of `given` to the device, launches once, then `repeat` times with the L2
  /// cache flushed in between, and copies the outputs back. Returns the time of each repeated
  /// launch in milliseconds. Errors: those of Kernel::launch, DriverError.
  Result<std::vector<float>> run(Kernel &kernel, const HostLaunch &given, int64_t repeat);

private:
  Gpu() = default;
  const DriverApi *driver = nullptr;
  cu::Device ordinal = 0;
  bool isRetained = false;
  DeviceInfo device;
};

} // namespace moejit::tool
