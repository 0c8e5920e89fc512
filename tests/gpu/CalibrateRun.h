// One launch on both devices: the same bytes at two addresses, the kernel's cubin on the GPU, its
// source on the emulator.
#pragma once

#include "runtime/Jit.h"
#include "runtime/emulator/Emulator.h"
#include "tests/gpu/Device.h"
#include "tests/oracle/Quantization.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace moejit::gpu {

/// All tensors of one launch as one block of bytes, and its arguments for a block that lies at
/// `base` (a multiple of 256).
struct LaunchBytes {
  std::vector<uint8_t> bytes;
  std::function<GemmArguments(uint64_t base)> arguments;
};

/// `image`, and behind it zeroed error words at `errorsAt`. `image` must outlive the result.
LaunchBytes launchBytes(const LaunchImage &image, size_t &errorsAt);

/// A quantization's tensors: x, its scales, the workspace, y, as makeQuantizeProblem and
/// QuantizeOutput lay them out, poison between them.
struct QuantizeImage {
  LaunchImage::Place x, scales, workspace, y; ///< scales and y with their canaries
  LaunchBytes launch;
  QuantizeImage(const oracle::QuantizeProblem &problem, uint64_t workspaceBytes);
};

/// What both devices have made of one block of bytes.
struct BothResults {
  std::vector<uint8_t> gpu, emulator;
  int64_t blocks = 0; ///< of the grid, the same on both
};

/// Runs launches on `device` and on an emulator with as many SMs. Thread-safe: launches on the GPU
/// come one after the other, those of the emulator run in their callers' threads.
class BothDevices {
public:
  /// `workFolder`: where the emulator keeps compiled units. Errors: those of Emulator::create.
  static Result<std::unique_ptr<BothDevices>> create(const Device &device,
                                                     const std::string &workFolder);
  /// Launches `kernel` on both. Errors: what either refuses, told by side; a fault the emulator
  /// finds. A fault on the GPU ends the process (onContextLost).
  Result<BothResults> run(Kernel &kernel, const LaunchBytes &launch, const std::string &what);
  const std::string &current() const { return running; }

private:
  BothDevices(const Device &onDevice, std::unique_ptr<Emulator> made)
      : device(onDevice), emulator(std::move(made)) {}
  const Device &device;
  std::unique_ptr<Emulator> emulator;
  std::mutex gpu; ///< guards `memory`, `running` and the launch in flight
  DeviceMemory memory;
  std::string running; ///< what the GPU is at
};

} // namespace moejit::gpu
