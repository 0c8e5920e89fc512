// Driver calls of benchmarks. The kernel below measures memory; it computes nothing.
#include "tools/moejit/BenchDevice.h"

#include <fmt/format.h>

#include <algorithm>

namespace moejit::tool {
namespace {

/// Loads 16 bytes a thread, eight loads under way. ptxas drops loads that nobody uses, so their sum
/// is stored in a case that never comes: no launch has a count of 0.
constexpr const char *readSource = R"(
extern "C" __global__ void __launch_bounds__(512)
moejit_bench_read(uint4 *from, unsigned long long count) {
  const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
  unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  unsigned sum = 0;
  for (; i + 7 * step < count; i += 8 * step) {
    uint4 words[8];
#pragma unroll
    for (int j = 0; j < 8; ++j)
      words[j] = from[i + j * step];
#pragma unroll
    for (int j = 0; j < 8; ++j)
      sum += words[j].x ^ words[j].y ^ words[j].z ^ words[j].w;
  }
  for (; i < count; i += step)
    sum += from[i].x ^ from[i].y ^ from[i].z ^ from[i].w;
  if (count == 0)
    from[threadIdx.x].x = sum;
}
)";
constexpr unsigned readThreads = 512;
constexpr unsigned readBlocksPerSm = 4;

} // namespace

DeviceBuffer &DeviceBuffer::operator=(DeviceBuffer &&other) noexcept {
  std::swap(api, other.api);
  std::swap(address, other.address);
  std::swap(count, other.count);
  return *this;
}

DeviceBuffer::~DeviceBuffer() {
  if (address)
    api->memFree(address);
}

Error BenchDevice::failure(cu::Status status, const char *call) const {
  return driverError(*api, status, call);
}

Result<std::unique_ptr<BenchDevice>> BenchDevice::open(const BenchDeviceOptions &options) {
  Result<std::unique_ptr<Gpu>> gpu = Gpu::open();
  if (!gpu)
    return gpu.error();
  std::unique_ptr<BenchDevice> device(new BenchDevice);
  device->gpu = std::move(*gpu);
  device->api = &device->gpu->api();
  const DriverApi &api = *device->api;
  // A stream that waits for the default one, on which copies run, and is waited for by it.
  if (cu::Status status = api.streamCreate(&device->queue, 0))
    return device->failure(status, "cuStreamCreate");
  for (cu::Event *event : {&device->begin, &device->end})
    if (cu::Status status = api.eventCreate(event, 0))
      return device->failure(status, "cuEventCreate");
  if (options.flushBytes > 0) {
    Result<DeviceBuffer> flush = device->allocate(options.flushBytes);
    if (!flush)
      return flush.error();
    device->flush = std::move(*flush);
    if (Result<void> filled = device->fill(device->flush, 0x5a, options.flushBytes); !filled)
      return filled.error();
  }
  if (Result<void> made = device->makeReader(options.nvrtc); !made)
    return made.error();
  return device;
}

BenchDevice::~BenchDevice() {
  if (!api)
    return;
  // Buffers need the context, which `gpu` holds.
  flush = DeviceBuffer();
  copy = DeviceBuffer();
  if (module)
    api->moduleUnload(module);
  for (cu::Event event : {begin, end})
    if (event)
      api->eventDestroy(event);
  if (queue)
    api->streamDestroy(queue);
}

Result<void> BenchDevice::makeReader(const NvrtcOptions &options) {
  readName = "cuMemcpyDtoD of half the bytes, which reads and writes as many";
  Result<Nvrtc> nvrtc = Nvrtc::open(options);
  if (!nvrtc)
    return {};
  Result<NvrtcOutput> made = nvrtc->compile(readSource, info().arch());
  if (!made)
    return made.error();
  // A driver that refuses the cubin costs nothing but this reading.
  if (api->moduleLoadData(&module, made->cubin.data()) != cu::success) {
    module = nullptr;
    return {};
  }
  if (cu::Status status = api->moduleGetFunction(&reader, module, "moejit_bench_read"))
    return failure(status, "cuModuleGetFunction");
  readName = "a kernel that loads 16 bytes a thread, eight loads under way";
  return {};
}

std::string BenchDevice::flushText() const {
  if (flush.bytes() == 0)
    return "not flushed";
  return fmt::format("flushed by {} of {} MiB before each call", reader ? "a read" : "a memset",
                     flush.bytes() >> 20);
}

Result<DeviceBuffer> BenchDevice::allocate(size_t bytes) {
  size_t size = std::max<size_t>(bytes, 256);
  cu::DevicePointer pointer = 0;
  if (cu::Status status = api->memAlloc(&pointer, size)) {
    Error error = failure(status, "cuMemAlloc");
    error.notes.push_back("everything that is compared lies on the device at the same time: give "
                          "fewer FILEs, or fewer --rows");
    return error;
  }
  return DeviceBuffer(*api, pointer, size);
}

Result<DeviceBuffer> BenchDevice::upload(const void *data, size_t bytes) {
  Result<DeviceBuffer> buffer = allocate(bytes);
  if (buffer && bytes > 0)
    if (cu::Status status = api->memcpyHtoD(buffer->pointer(), data, bytes))
      return failure(status, "cuMemcpyHtoD");
  return buffer;
}

Result<void> BenchDevice::download(void *to, const DeviceBuffer &from, size_t bytes) {
  if (bytes > 0)
    if (cu::Status status = api->memcpyDtoH(to, from.pointer(), bytes))
      return failure(status, "cuMemcpyDtoH");
  return {};
}

Result<void> BenchDevice::fill(const DeviceBuffer &buffer, uint8_t value, size_t bytes) {
  if (bytes > 0)
    if (cu::Status status = api->memsetD8Async(buffer.pointer(), value, bytes, queue))
      return failure(status, "cuMemsetD8Async");
  return {};
}

Result<void> BenchDevice::synchronize() {
  if (cu::Status status = api->streamSynchronize(queue))
    return failure(status, "cuStreamSynchronize");
  return {};
}

Result<void> BenchDevice::flushL2() {
  if (flush.bytes() == 0)
    return {};
  // What a memset leaves is dirty, and written back while the next kernel runs.
  return reader ? read(flush, flush.bytes()) : fill(flush, 0x5a, flush.bytes());
}

Result<void> BenchDevice::read(const DeviceBuffer &buffer, size_t bytes) {
  if (!reader) {
    size_t half = bytes / 2;
    if (copy.bytes() < half) {
      Result<DeviceBuffer> larger = allocate(half);
      if (!larger)
        return larger.error();
      copy = std::move(*larger);
    }
    if (cu::Status status = api->memcpyDtoD(copy.pointer(), buffer.pointer(), half))
      return failure(status, "cuMemcpyDtoD");
    return {};
  }
  cu::DevicePointer from = buffer.pointer();
  unsigned long long count = bytes / 16;
  void *parameters[] = {&from, &count};
  cu::LaunchConfig config;
  config.grid[0] = unsigned(info().smCount) * readBlocksPerSm;
  config.block[0] = readThreads;
  config.stream = queue;
  if (cu::Status status = api->launchKernelEx(&config, reader, parameters, nullptr))
    return failure(status, "cuLaunchKernelEx (read)");
  return {};
}

Result<double> BenchDevice::timeUs(const Call &call) {
  if (Result<void> flushed = flushL2(); !flushed)
    return flushed.error();
  return windowUs(call, 1);
}

Result<double> BenchDevice::windowUs(const Call &call, int64_t count) {
  if (cu::Status status = api->eventRecord(begin, queue))
    return failure(status, "cuEventRecord");
  for (int64_t i = 0; i < count; ++i)
    if (Result<void> called = call(); !called)
      return called.error();
  if (cu::Status status = api->eventRecord(end, queue))
    return failure(status, "cuEventRecord");
  if (cu::Status status = api->eventSynchronize(end))
    return failure(status, "cuEventSynchronize");
  float milliseconds = 0;
  if (cu::Status status = api->eventElapsedTime(&milliseconds, begin, end))
    return failure(status, "cuEventElapsedTime");
  return double(milliseconds) * 1e3 / double(std::max<int64_t>(count, 1));
}

} // namespace moejit::tool
