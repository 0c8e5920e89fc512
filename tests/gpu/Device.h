// One GPU for tests: its context, memory, streams that give up on a kernel that hangs, and the
// image of all tensors of one launch. Checks nothing about results.
#pragma once

#include "runtime/Arguments.h"
#include "runtime/Driver.h"
#include "tests/oracle/Problem.h"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace moejit::gpu {

/// A driver call that must not fail. On failure the context is taken to be lost: see ContextLost.
#define MOEJIT_GPU_CALL(device, call) (device).check((device).api().call, #call)

/// Called when a driver call fails or a kernel does not end: the context is of no more use, and
/// neither is this process. Must not return.
using ContextLost = void (*)(const std::string &what);
void onContextLost(ContextLost handler);

/// A device with its primary context. Thread-safe; every thread calls makeCurrent() first.
class Device {
public:
  /// Errors: those of openDriver and deviceInfo.
  static Result<std::unique_ptr<Device>> open(int ordinal);
  ~Device();

  const DriverApi &api() const { return *driver; }
  const DeviceInfo &info() const { return described; }
  void makeCurrent() const;
  void check(cu::Status status, const char *call) const;

  /// Waits for `stream`; a kernel that has not ended after hangSeconds counts as lost.
  void wait(cu::Stream stream) const;
  /// Nodes of `graph`.
  size_t nodeCount(cu::Graph graph) const;

  double hangSeconds = 10;

private:
  Device() = default;
  const DriverApi *driver = nullptr;
  DeviceInfo described;
  cu::Device handle = 0;
  cu::Context context = nullptr;
  cu::Status (*streamQuery)(cu::Stream) = nullptr;
  cu::Status (*graphGetNodes)(cu::Graph, void **nodes, size_t *count) = nullptr;
};

/// Device memory of the current context.
class DeviceMemory {
public:
  DeviceMemory() = default;
  DeviceMemory(const Device &device, size_t bytes);
  ~DeviceMemory();
  DeviceMemory(DeviceMemory &&other) noexcept { swap(other); }
  DeviceMemory &operator=(DeviceMemory &&other) noexcept {
    swap(other);
    return *this;
  }

  cu::DevicePointer address() const { return pointer; }
  size_t size() const { return bytes; }
  /// Blocking copies; upload() has arrived when it returns.
  void upload(const void *from, size_t count, size_t offset = 0) const;
  void download(void *to, size_t count, size_t offset = 0) const;

private:
  void swap(DeviceMemory &other) {
    std::swap(device, other.device);
    std::swap(pointer, other.pointer);
    std::swap(bytes, other.bytes);
  }
  const Device *device = nullptr;
  cu::DevicePointer pointer = 0;
  size_t bytes = 0;
};

/// A non-blocking stream of the current context.
class Stream {
public:
  explicit Stream(const Device &device);
  ~Stream();
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;
  cu::Stream get() const { return stream; }
  void wait() const { device.wait(stream); }

private:
  const Device &device;
  cu::Stream stream = nullptr;
};

/// All tensors of one launch as one block of bytes, poison between them: x (as the launch is given
/// it), its scales, w, its scales, routing, workspace, y. Read past the end of a tensor shows as
/// NaN, a write anywhere but into y and the workspace shows in inputsAreIntact().
struct LaunchImage {
  enum Field {
    X,
    XScales,
    W,
    WScales,
    Offsets,
    Counts,
    ExpertIds,
    ExpertMap,
    Workspace,
    Y,
    fieldCount
  };
  struct Place {
    size_t offset = 0;
    size_t bytes = 0;
  };

  std::vector<uint8_t> bytes;
  std::array<Place, fieldCount> places;
  size_t yRowOffset = 0; ///< of row 0 of y inside its place: canary rows come first
  const oracle::HostProblem *problem = nullptr;

  LaunchImage(const oracle::HostProblem &problem, uint64_t workspaceBytes);

  /// The arguments of a launch of the image at `base`.
  GemmArguments arguments(cu::DevicePointer base) const;
  /// The arguments with every tensor at an address of its own; y without canaries.
  GemmArguments arguments(const std::array<cu::DevicePointer, fieldCount> &bases) const;
  /// The bytes of row 0 to the end of the last row of y: what a tensor of its own holds.
  Place exactY() const;
  /// A sentence naming what was overwritten outside y and the workspace in `after`, or nothing.
  std::string inputsAreIntact(const std::vector<uint8_t> &after) const;
  /// y of `after`, canaries included.
  oracle::HostOutput output(const std::vector<uint8_t> &after) const;
};

} // namespace moejit::gpu
