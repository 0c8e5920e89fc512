// Device memory, launches and times through the driver table.
#include "tools/moejit/Gpu.h"

#include <algorithm>

namespace moejit::tool {

Result<std::unique_ptr<Gpu>> Gpu::open() {
  Result<const DriverApi *> opened = openDriver();
  if (!opened)
    return opened.error();
  std::unique_ptr<Gpu> gpu(new Gpu);
  gpu->driver = *opened;
  Result<int> count = deviceCount(*gpu->driver);
  if (!count)
    return count.error();
  if (*count == 0)
    return Error{ErrorCode::Unavailable, "the CUDA driver is here, and no device"};
  Result<DeviceInfo> info = deviceInfo(*gpu->driver, 0);
  if (!info)
    return info.error();
  gpu->device = *info;
  if (cu::Status status = gpu->driver->deviceGet(&gpu->ordinal, 0))
    return driverError(*gpu->driver, status, "cuDeviceGet");
  cu::Context context = nullptr;
  if (cu::Status status = gpu->driver->primaryCtxRetain(&context, gpu->ordinal))
    return driverError(*gpu->driver, status, "cuDevicePrimaryCtxRetain");
  gpu->isRetained = true;
  if (cu::Status status = gpu->driver->ctxSetCurrent(context))
    return driverError(*gpu->driver, status, "cuCtxSetCurrent");
  return gpu;
}

Gpu::~Gpu() {
  if (!isRetained)
    return;
  driver->ctxSetCurrent(nullptr);
  driver->primaryCtxRelease(ordinal);
}

namespace {

/// What one run holds on the device; given back at the end. The first failure is kept, and
/// everything after it does nothing.
class Session {
public:
  explicit Session(const DriverApi &api) : driver(api) {}
  ~Session() {
    for (cu::Event event : events)
      driver.eventDestroy(event);
    if (stream)
      driver.streamDestroy(stream);
    for (cu::DevicePointer pointer : pointers)
      driver.memFree(pointer);
  }

  void call(cu::Status status, const char *name) {
    if (!error && status != cu::success)
      error = driverError(driver, status, name);
  }
  /// At least 256 bytes, so that nothing is too small to have an address.
  cu::DevicePointer allocate(size_t bytes) {
    cu::DevicePointer pointer = 0;
    if (error)
      return 0;
    call(driver.memAlloc(&pointer, std::max<size_t>(bytes, 256)), "cuMemAlloc");
    if (error)
      error->notes.push_back("the problem is larger than the device's memory: use fewer --experts, "
                             "or a smaller --n or --k");
    else
      pointers.push_back(pointer);
    return pointer;
  }
  cu::DevicePointer upload(const void *data, size_t bytes) {
    cu::DevicePointer pointer = allocate(bytes);
    if (!error && bytes > 0)
      call(driver.memcpyHtoD(pointer, data, bytes), "cuMemcpyHtoD");
    return pointer;
  }
  cu::Event event() {
    cu::Event made = nullptr;
    if (!error)
      call(driver.eventCreate(&made, 0), "cuEventCreate");
    if (made)
      events.push_back(made);
    return made;
  }

  const DriverApi &driver;
  std::optional<Error> error;
  cu::Stream stream = nullptr;

private:
  std::vector<cu::DevicePointer> pointers;
  std::vector<cu::Event> events;
};

void *asPointer(cu::DevicePointer pointer) { return reinterpret_cast<void *>(pointer); }

} // namespace

Result<std::vector<float>> Gpu::run(Kernel &kernel, const HostLaunch &given, int64_t repeat) {
  Session session(*driver);
  GemmArguments arguments;
  std::vector<cu::DevicePointer> places;
  for (const OperandBytes &operand : given.operands) {
    places.push_back(session.upload(operand.data, operand.bytes));
    arguments.*memberOf(operand.operand) = {asPointer(places.back() + operand.offsetBytes),
                                            operand.rowStride};
  }
  arguments.rows = given.rows;
  // A workspace may come uninitialised.
  std::vector<uint8_t> dirt(kernel.workspaceBytes(given.rows), oracle::poisonByte);
  arguments.workspace = asPointer(session.upload(dirt.data(), dirt.size()));
  arguments.workspaceBytes = kernel.workspaceBytes(given.rows);
  // Twice the L2 cache, written between launches, leaves none of the operands in it.
  size_t flushBytes = repeat > 0 ? size_t(2 * device.l2Bytes) : 0;
  cu::DevicePointer flush = session.allocate(flushBytes);
  if (!session.error)
    session.call(driver->streamCreate(&session.stream, 1), "cuStreamCreate");
  cu::Event start = session.event(), end = session.event();
  if (session.error)
    return *session.error;

  if (Result<void> loaded = kernel.load(); !loaded)
    return loaded.error();
  std::vector<float> times;
  for (int64_t i = 0; i <= repeat && !session.error; ++i) {
    if (i > 0)
      session.call(driver->memsetD8Async(flush, 0, flushBytes, session.stream), "cuMemsetD8Async");
    session.call(driver->eventRecord(start, session.stream), "cuEventRecord");
    if (Result<void> launched = kernel.launch(arguments, session.stream); !launched)
      return launched.error();
    session.call(driver->eventRecord(end, session.stream), "cuEventRecord");
    session.call(driver->streamSynchronize(session.stream), "cuStreamSynchronize");
    float milliseconds = 0;
    if (!session.error && i > 0)
      session.call(driver->eventElapsedTime(&milliseconds, start, end), "cuEventElapsedTime");
    if (i > 0)
      times.push_back(milliseconds);
  }
  for (size_t i = 0; i < places.size(); ++i)
    if (const OperandBytes &operand = given.operands[i]; operand.isOutput && !session.error)
      session.call(driver->memcpyDtoH(operand.data, places[i], operand.bytes), "cuMemcpyDtoH");
  if (session.error)
    return *session.error;
  return times;
}

} // namespace moejit::tool
