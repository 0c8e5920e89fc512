// A GPU as benchmarks need it: buffers, an L2 cache without operands in it, times of calls, and a
// plain read of memory to compare with.
#pragma once

#include "compiler/Nvrtc.h"
#include "tools/moejit/Gpu.h"

#include <functional>
#include <memory>
#include <string>

namespace moejit::tool {

/// Device memory that is given back at the end.
class DeviceBuffer {
public:
  DeviceBuffer() = default;
  DeviceBuffer(const DriverApi &driver, cu::DevicePointer pointer, size_t size)
      : api(&driver), address(pointer), count(size) {}
  DeviceBuffer(DeviceBuffer &&other) noexcept { *this = std::move(other); }
  DeviceBuffer &operator=(DeviceBuffer &&other) noexcept;
  ~DeviceBuffer();

  cu::DevicePointer pointer() const { return address; }
  size_t bytes() const { return count; }

private:
  const DriverApi *api = nullptr;
  cu::DevicePointer address = 0;
  size_t count = 0;
};

struct BenchDeviceOptions {
  size_t flushBytes = size_t(512) << 20; ///< read before each call; 0: nothing is flushed
  NvrtcOptions nvrtc = {};               ///< of the kernel that reads
};

/// The first device, its context, one stream. Not thread-safe. Errors of all calls: DriverError,
/// with what to do about it where memory runs out.
class BenchDevice {
public:
  using Call = std::function<Result<void>()>;

  static Result<std::unique_ptr<BenchDevice>> open(const BenchDeviceOptions &options);
  ~BenchDevice();

  const DeviceInfo &info() const { return gpu->info(); }
  cu::Stream stream() const { return queue; }

  /// At least 256 bytes.
  Result<DeviceBuffer> allocate(size_t bytes);
  Result<DeviceBuffer> upload(const void *data, size_t bytes);
  Result<void> download(void *to, const DeviceBuffer &from, size_t bytes);
  /// Every byte of the first `bytes` of `buffer`.
  Result<void> fill(const DeviceBuffer &buffer, uint8_t value, size_t bytes);
  Result<void> synchronize();

  /// Device time of what `call` puts on stream(), in µs, the L2 flushed before.
  Result<double> timeUs(const Call &call);
  /// Device time of one of `count` calls without pause or flush, in µs.
  Result<double> windowUs(const Call &call, int64_t count);

  /// Puts a plain read of the first `bytes` of `buffer` on stream().
  Result<void> read(const DeviceBuffer &buffer, size_t bytes);
  /// What read() is: "a kernel that loads 16 bytes a thread", or a copy where there is no NVRTC.
  const std::string &readText() const { return readName; }
  /// How the L2 is flushed.
  std::string flushText() const;

private:
  BenchDevice() = default;
  Result<void> makeReader(const NvrtcOptions &options);
  Result<void> flushL2();
  Error failure(cu::Status status, const char *call) const;

  std::unique_ptr<Gpu> gpu;
  const DriverApi *api = nullptr;
  cu::Stream queue = nullptr;
  cu::Event begin = nullptr, end = nullptr;
  DeviceBuffer flush, copy;
  cu::Module module = nullptr;
  cu::Function reader = nullptr; ///< null: read() copies
  std::string readName;
};

} // namespace moejit::tool
