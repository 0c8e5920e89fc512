// Driver calls of the GPU tests, and the layout of a launch in memory.
#include "tests/gpu/Device.h"

#include "tests/oracle/Fp8.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace moejit::gpu {

namespace {

constexpr cu::Status notReady = 600; // CUDA_ERROR_NOT_READY
constexpr unsigned nonBlocking = 1;  // CU_STREAM_NON_BLOCKING
constexpr size_t gapBytes = 1024;    // of poison between tensors
constexpr size_t alignBytes = 256;

ContextLost contextLost = nullptr;

[[noreturn]] void lose(const std::string &what) {
  if (contextLost)
    contextLost(what);
  fmt::print(stderr, "{}\n", what);
  std::_Exit(3);
}

size_t roundUp(size_t value, size_t step) { return (value + step - 1) / step * step; }

} // namespace

void onContextLost(ContextLost handler) { contextLost = handler; }

Result<std::unique_ptr<Device>> Device::open(int ordinal) {
  Result<const DriverApi *> driver = openDriver();
  if (!driver)
    return driver.error();
  std::unique_ptr<Device> device(new Device());
  device->driver = *driver;
  Result<DeviceInfo> info = deviceInfo(**driver, ordinal);
  if (!info)
    return info.error();
  device->described = *info;
  auto find = [&](const char *symbol, void **function) {
    int status = 0;
    return (*driver)->getProcAddress(symbol, function, 12000, 0, &status);
  };
  if (cu::Status status = find("cuStreamQuery", reinterpret_cast<void **>(&device->streamQuery)))
    return driverError(**driver, status, "cuGetProcAddress(cuStreamQuery)");
  if (cu::Status status =
          find("cuGraphGetNodes", reinterpret_cast<void **>(&device->graphGetNodes)))
    return driverError(**driver, status, "cuGetProcAddress(cuGraphGetNodes)");
  if (cu::Status status = (*driver)->deviceGet(&device->handle, ordinal))
    return driverError(**driver, status, "cuDeviceGet");
  if (cu::Status status = (*driver)->primaryCtxRetain(&device->context, device->handle))
    return driverError(**driver, status, "cuDevicePrimaryCtxRetain");
  device->makeCurrent();
  return device;
}

Device::~Device() {
  if (context)
    driver->primaryCtxRelease(handle);
}

void Device::makeCurrent() const { check(driver->ctxSetCurrent(context), "cuCtxSetCurrent"); }

void Device::check(cu::Status status, const char *call) const {
  if (status != cu::success)
    lose(driverError(*driver, status, call).message);
}

void Device::wait(cu::Stream stream) const {
  auto start = std::chrono::steady_clock::now();
  for (int polls = 0;; ++polls) {
    cu::Status status = streamQuery(stream);
    if (status == cu::success)
      return;
    if (status != notReady)
      lose(driverError(*driver, status, "waiting for the kernel").message);
    if (polls < 2000)
      continue;
    std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
    if (waited.count() > hangSeconds)
      lose(fmt::format("the kernel has not ended after {:.0f} s", waited.count()));
    std::this_thread::sleep_for(std::chrono::microseconds(waited.count() > 0.01 ? 1000 : 20));
  }
}

size_t Device::nodeCount(cu::Graph graph) const {
  size_t count = 0;
  check(graphGetNodes(graph, nullptr, &count), "cuGraphGetNodes");
  return count;
}

DeviceMemory::DeviceMemory(const Device &onDevice, size_t count) : device(&onDevice) {
  bytes = count;
  device->check(device->api().memAlloc(&pointer, std::max<size_t>(count, 16)), "cuMemAlloc");
}

DeviceMemory::~DeviceMemory() {
  if (pointer)
    device->api().memFree(pointer);
}

void DeviceMemory::upload(const void *from, size_t count, size_t offset) const {
  if (count == 0)
    return;
  device->check(device->api().memcpyHtoD(pointer + offset, from, count), "cuMemcpyHtoD");
  // From pageable memory the call may return while the copy is still under way.
  device->check(device->api().ctxSynchronize(), "cuCtxSynchronize");
}

void DeviceMemory::download(void *to, size_t count, size_t offset) const {
  if (count > 0)
    device->check(device->api().memcpyDtoH(to, pointer + offset, count), "cuMemcpyDtoH");
}

Stream::Stream(const Device &onDevice) : device(onDevice) {
  device.check(device.api().streamCreate(&stream, nonBlocking), "cuStreamCreate");
}

Stream::~Stream() { device.api().streamDestroy(stream); }

LaunchImage::LaunchImage(const oracle::HostProblem &given, uint64_t workspaceBytes)
    : problem(&given) {
  oracle::HostOutput y = oracle::HostOutput::make(given);
  yRowOffset = size_t(oracle::HostOutput::canaryRows * y.rowBytes);
  std::vector<uint8_t> xScales = oracle::storedScales(given.spec.xScales, given.xScales);
  std::vector<uint8_t> wScales = oracle::storedScales(given.spec.wScales, given.wScales);
  const std::vector<uint8_t> &x = given.spec.quantizeFrom ? given.xSource : given.x;
  const std::array<std::pair<const void *, size_t>, fieldCount> contents = {{
      {x.data(), x.size()},
      {xScales.data(), xScales.size()},
      {given.w.data(), given.w.size()},
      {wScales.data(), wScales.size()},
      {given.offsets.data(), given.offsets.size() * 4},
      {given.counts.data(), given.counts.size() * 4},
      {given.expertIds.data(), given.expertIds.size() * 4},
      {given.expertMap.data(), given.expertMap.size() * 4},
      {nullptr, size_t(workspaceBytes)},
      {y.bytes.data(), y.bytes.size()},
  }};
  size_t end = gapBytes;
  for (size_t i = 0; i < fieldCount; ++i) {
    places[i] = {end, contents[i].second};
    end = roundUp(end + contents[i].second + gapBytes, alignBytes);
  }
  bytes.assign(end, oracle::poisonByte);
  for (size_t i = 0; i < fieldCount; ++i)
    if (contents[i].first && contents[i].second)
      std::memcpy(bytes.data() + places[i].offset, contents[i].first, contents[i].second);
}

GemmArguments LaunchImage::arguments(cu::DevicePointer base) const {
  std::array<cu::DevicePointer, fieldCount> bases;
  for (size_t i = 0; i < fieldCount; ++i)
    bases[i] = base + places[i].offset;
  bases[Y] += yRowOffset;
  return arguments(bases);
}

GemmArguments LaunchImage::arguments(const std::array<cu::DevicePointer, fieldCount> &bases) const {
  auto pointer = [&](Field field) { return reinterpret_cast<void *>(bases[field]); };
  GemmArguments result;
  const Spec &spec = problem->spec;
  if (spec.quantizeFrom) {
    result.x = {pointer(X), problem->xSourceStride};
  } else {
    result.x = {pointer(X), problem->xStride};
    result.xScales = {pointer(XScales), problem->xScaleStride};
  }
  result.w = {pointer(W), 0};
  result.wScales = {pointer(WScales), 0};
  if (spec.dispatch == Dispatch::Grouped)
    result.offsets = {pointer(Offsets), 0};
  if (spec.dispatch == Dispatch::Masked)
    result.counts = {pointer(Counts), 0};
  if (spec.dispatch == Dispatch::Batched)
    result.expertIds = {pointer(ExpertIds), 0};
  if (spec.expertMapSize > 0)
    result.expertMap = {pointer(ExpertMap), 0};
  result.y = {pointer(Y), problem->yStride};
  result.rows = problem->rows;
  result.workspace = pointer(Workspace);
  result.workspaceBytes = places[Workspace].bytes;
  return result;
}

LaunchImage::Place LaunchImage::exactY() const {
  size_t element = size_t(oracle::bytesOf(problem->spec.outType));
  size_t count = 0;
  if (problem->rows > 0)
    count =
        (size_t(problem->rows - 1) * size_t(problem->yStride) + size_t(problem->spec.n)) * element;
  return {places[Y].offset + yRowOffset, count};
}

std::string LaunchImage::inputsAreIntact(const std::vector<uint8_t> &after) const {
  static const char *const names[] = {"x",       "the scales of x", "w",          "the scales of w",
                                      "offsets", "counts",          "expert ids", "expert map"};
  size_t end = places[Workspace].offset;
  if (std::memcmp(bytes.data(), after.data(), end) != 0) {
    size_t at = 0;
    while (bytes[at] == after[at])
      ++at;
    for (size_t i = 0; i < Workspace; ++i)
      if (at < places[i].offset + places[i].bytes)
        return at < places[i].offset
                   ? fmt::format("{} bytes before {} were overwritten", places[i].offset - at,
                                 names[i])
                   : fmt::format("byte {} of {} was overwritten", at - places[i].offset, names[i]);
    return "bytes before the workspace were overwritten";
  }
  auto differs = [&](size_t from, size_t to) {
    return std::memcmp(bytes.data() + from, after.data() + from, to - from) != 0;
  };
  if (differs(places[Workspace].offset + places[Workspace].bytes, places[Y].offset))
    return "bytes between the workspace and y were overwritten";
  if (differs(places[Y].offset + places[Y].bytes, bytes.size()))
    return "bytes after y were overwritten";
  return {};
}

oracle::HostOutput LaunchImage::output(const std::vector<uint8_t> &after) const {
  oracle::HostOutput result = oracle::HostOutput::make(*problem);
  std::memcpy(result.bytes.data(), after.data() + places[Y].offset, places[Y].bytes);
  return result;
}

} // namespace moejit::gpu
