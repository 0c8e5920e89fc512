// Runs a kernel on a GPU of this machine: memory, copies, launches, times.
#pragma once

#include "runtime/Driver.h"
#include "runtime/Kernel.h"
#include "tests/oracle/Problem.h"

#include <memory>
#include <string>
#include <vector>

namespace moejit::tool {

/// One operand of a problem as bytes on the host.
struct OperandBytes {
  Operand operand;
  const void *data;
  size_t bytes;
  int64_t rowStride; ///< as TensorArgument counts
};

/// The operands of `problem` that are read. Scales that have to be converted lie in `storage`.
std::vector<OperandBytes> operandsOf(const oracle::HostProblem &problem,
                                     std::vector<std::vector<uint8_t>> &storage);
/// The member of `arguments` that is `operand`.
TensorArgument &argumentOf(GemmArguments &arguments, Operand operand);

/// A device whose primary context is current in this thread while the object lives.
class Gpu {
public:
  /// The first device. Errors: Unavailable when there is no driver or no device; DriverError.
  static Result<std::unique_ptr<Gpu>> open();
  ~Gpu();

  const DeviceInfo &info() const { return device; }

  /// Copies `problem` and the poisoned `output` to the device, launches once, then `repeat` times
  /// with the L2 cache flushed in between, and copies the output back. Returns the time of each
  /// repeated launch in milliseconds. Errors: those of Kernel::launch, DriverError.
  Result<std::vector<float>> run(Kernel &kernel, const oracle::HostProblem &problem,
                                 oracle::HostOutput &output, int64_t repeat);

private:
  Gpu() = default;
  const DriverApi *driver = nullptr;
  cu::Device ordinal = 0;
  bool isRetained = false;
  DeviceInfo device;
};

} // namespace moejit::tool
