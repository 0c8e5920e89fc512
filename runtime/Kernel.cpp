// Loads binaries into contexts and launches them. Calls that a stream capture forbids happen only
// in loadHere.
#include "runtime/Kernel.h"

#include <fmt/format.h>

#include <array>

namespace moejit {
namespace {

/// Whether a driver that says `status` to a cubin may still take PTX.
bool refusesImage(cu::Status status) {
  return status == cu::invalidImage || status == cu::noBinaryForGpu || status == cu::invalidPtx ||
         status == cu::unsupportedPtxVersion;
}

/// "9.0" of the line ".version 9.0".
std::string_view ptxVersion(std::string_view ptx) {
  size_t at = ptx.find(".version ");
  if (at == std::string_view::npos)
    return "?";
  ptx.remove_prefix(at + 9);
  return ptx.substr(0, ptx.find_first_of("\r\n "));
}

/// Lets this thread make calls that captures of other threads would otherwise forbid (and be ruined
/// by).
class RelaxedCaptureMode {
public:
  explicit RelaxedCaptureMode(const DriverApi &driver) : api(driver) {
    changed = api.exchangeCaptureMode(&mode) == cu::success;
  }
  ~RelaxedCaptureMode() {
    if (changed)
      api.exchangeCaptureMode(&mode);
  }
  RelaxedCaptureMode(const RelaxedCaptureMode &) = delete;
  RelaxedCaptureMode &operator=(const RelaxedCaptureMode &) = delete;

private:
  const DriverApi &api;
  int mode = cu::captureModeRelaxed;
  bool changed = false;
};

} // namespace

Result<bool> isCapturing(const DriverApi &driver, cu::Stream stream) {
  int status = cu::captureStatusNone;
  cu::Status call = driver.streamIsCapturing(stream, &status);
  // The legacy stream while another stream captures: nothing may be launched there now.
  if (call == cu::captureImplicit)
    return true;
  if (call != cu::success)
    return driverError(driver, call, "cuStreamIsCapturing");
  return status != cu::captureStatusNone;
}

Error captureActive(std::string_view what) {
  return {ErrorCode::CaptureActive,
          fmt::format("{} while its stream is being captured; the capture stays usable", what),
          {"prepare the kernel before the capture begins (Jit::prepare, Kernel::load)"}};
}

Result<const DriverApi *> Kernel::driver() const {
  return api ? Result<const DriverApi *>(api) : openDriver();
}

/// The entry of the current context; `function` is null when this kernel is not loaded there yet.
Result<Kernel::Loaded> Kernel::findLoaded(const DriverApi &driver) const {
  cu::Context context = nullptr;
  if (cu::Status status = driver.ctxGetCurrent(&context))
    return driverError(driver, status, "cuCtxGetCurrent");
  if (!context)
    return Error{ErrorCode::InvalidArgument,
                 "this thread has no current CUDA context",
                 {"select a device first (cudaSetDevice, cuCtxSetCurrent)"}};
  Loaded result;
  // Addresses of contexts are used again after a reset, ids are not.
  if (cu::Status status = driver.ctxGetId(context, &result.contextId))
    return driverError(driver, status, "cuCtxGetId");
  std::shared_lock guard(mutex);
  for (const Loaded &entry : loaded)
    if (entry.contextId == result.contextId)
      return entry;
  return result;
}

Result<cu::Module> Kernel::loadModule(const DriverApi &driver, cu::Device device) const {
  cu::Module module = nullptr;
  cu::Status cubin = cu::invalidImage;
  if (!made->cubin.empty()) {
    cubin = driver.moduleLoadData(&module, made->cubin.data());
    if (cubin == cu::success)
      return module;
    if (!refusesImage(cubin))
      return driverError(driver, cubin, "cuModuleLoadData");
  }
  // The driver compiles PTX itself, once for each process: slower, but it may serve where the cubin
  // does not.
  cu::Status ptx = cu::invalidPtx;
  if (!made->ptx.empty()) {
    ptx = driver.moduleLoadData(&module, made->ptx.c_str());
    if (ptx == cu::success)
      return module;
  }
  int version = 0, major = 0, minor = 0;
  driver.driverGetVersion(&version);
  driver.deviceGetAttribute(&major, cu::computeCapabilityMajor, device);
  driver.deviceGetAttribute(&minor, cu::computeCapabilityMinor, device);
  Error error;
  error.code = ErrorCode::DriverError;
  error.message =
      fmt::format("the driver refuses the kernel built for {}: the device has compute "
                  "capability {}.{}, the driver is for CUDA {}, NVRTC was {}",
                  made->arch, major, minor, cudaVersionText(version), made->nvrtcVersion);
  if (!made->cubin.empty())
    error.notes.push_back("cubin: " + driverError(driver, cubin, "cuModuleLoadData").message);
  if (!made->ptx.empty())
    error.notes.push_back(fmt::format("PTX {}: {}", ptxVersion(made->ptx),
                                      driverError(driver, ptx, "cuModuleLoadData").message));
  if (made->cubin.empty() && made->ptx.empty())
    error.notes.push_back("the artifact holds neither cubin nor PTX");
  if (version < int(made->minDriver))
    error.notes.push_back(fmt::format("this kernel needs a driver for CUDA {} or later",
                                      cudaVersionText(int(made->minDriver))));
  return error;
}

Result<Kernel::Loaded> Kernel::loadHere(const DriverApi &driver, unsigned long long contextId) {
  std::unique_lock guard(mutex);
  for (const Loaded &entry : loaded)
    if (entry.contextId == contextId)
      return entry; // another thread was first
  RelaxedCaptureMode relaxed(driver);
  cu::Device device = 0;
  Loaded entry;
  entry.contextId = contextId;
  if (cu::Status status = driver.ctxGetDevice(&device))
    return driverError(driver, status, "cuCtxGetDevice");
  if (cu::Status status =
          driver.deviceGetAttribute(&entry.smCount, cu::multiprocessorCount, device))
    return driverError(driver, status, "cuDeviceGetAttribute");
  Result<cu::Module> module = loadModule(driver, device);
  if (!module)
    return module.error();
  const LaunchData &launch = made->launch;
  cu::Status status = driver.moduleGetFunction(&entry.function, *module, launch.entry.c_str());
  const char *call = "cuModuleGetFunction";
  if (status == cu::success && launch.sharedBytes > 0) {
    call = "cuFuncSetAttribute (dynamic shared memory)";
    status = driver.funcSetAttribute(entry.function, cu::maxDynamicSharedSizeBytes,
                                     int(launch.sharedBytes));
  }
  // Clusters of more than 8 blocks are not portable and must be asked for.
  if (status == cu::success && launch.cluster > 8) {
    call = "cuFuncSetAttribute (cluster size)";
    status = driver.funcSetAttribute(entry.function, cu::nonPortableClusterSizeAllowed, 1);
  }
  if (status != cu::success) {
    driver.moduleUnload(*module);
    return driverError(driver, status, call);
  }
  loaded.push_back(entry);
  return entry;
}

Result<void> Kernel::load() {
  Result<const DriverApi *> opened = driver();
  if (!opened)
    return opened.error();
  Result<Loaded> found = findLoaded(**opened);
  if (!found)
    return found.error();
  if (found->function)
    return {};
  Result<Loaded> fresh = loadHere(**opened, found->contextId);
  if (!fresh)
    return fresh.error();
  return {};
}

/// The weights' map is that of the last launch, and others often are. Whoever finds another thread
/// at it encodes all maps for itself.
Result<void> Kernel::encodeMaps(const DriverApi &driver, unsigned long long contextId,
                                const std::vector<TensorMapValues> &values,
                                std::span<TensorMapBytes> maps) {
  std::unique_lock guard(mapsMutex, std::try_to_lock);
  if (guard)
    lastMaps.resize(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    EncodedMap *last = guard ? &lastMaps[i] : nullptr;
    if (last && last->contextId == contextId && last->values == values[i]) {
      maps[i] = last->bytes;
      continue;
    }
    Result<TensorMapBytes> bytes = encodeTensorMap(driver, values[i]);
    if (!bytes)
      return bytes.error();
    maps[i] = *bytes;
    if (last)
      *last = {contextId, values[i], *bytes};
  }
  return {};
}

Result<void> Kernel::launch(const GemmArguments &arguments, cu::Stream stream) {
  if (arguments.rows == 0)
    return checkArguments(made->spec, made->launch, arguments);
  Result<const DriverApi *> opened = driver();
  if (!opened)
    return opened.error();
  const DriverApi &cuda = **opened;
  Result<Loaded> entry = findLoaded(cuda);
  if (!entry)
    return entry.error();
  if (!entry->function) {
    Result<bool> capturing = isCapturing(cuda, stream);
    if (!capturing)
      return capturing.error();
    if (*capturing)
      return captureActive("this kernel is not loaded in the current context");
    entry = loadHere(cuda, entry->contextId);
    if (!entry)
      return entry.error();
  }

  Result<LaunchPlan> plan = prepareLaunch(*made, arguments, entry->smCount);
  if (!plan)
    return plan.error();
  std::array<TensorMapBytes, maxTensorMaps> maps;
  if (Result<void> encoded = encodeMaps(cuda, entry->contextId, plan->tensorMaps, maps); !encoded)
    return encoded;
  std::array<void *, maxKernelParameters> parameters;
  for (size_t i = 0; i < plan->parameters.size(); ++i) {
    LaunchParameter &parameter = plan->parameters[i];
    parameters[i] = parameter.kind == KernelParameter::Kind::TensorMap
                        ? static_cast<void *>(&maps[parameter.tensorMap])
                        : static_cast<void *>(&parameter.value);
  }

  if (plan->zeroedBytes > 0)
    if (cu::Status status = cuda.memsetD8Async(reinterpret_cast<cu::DevicePointer>(plan->workspace),
                                               0, size_t(plan->zeroedBytes), stream))
      return driverError(cuda, status, "cuMemsetD8Async (workspace)");
  cu::LaunchAttribute attributes[2];
  unsigned numAttributes = 0;
  if (plan->cluster > 1)
    attributes[numAttributes++] = {cu::LaunchAttribute::clusterDimension, 0, {plan->cluster, 1, 1}};
  if (made->launch.dependentLaunch)
    attributes[numAttributes++] = {cu::LaunchAttribute::programmaticStreamSerialization, 0, {1}};
  cu::LaunchConfig config;
  config.grid[0] = plan->blocks;
  config.block[0] = plan->threads;
  config.sharedBytes = plan->sharedBytes;
  config.stream = stream;
  config.attributes = attributes;
  config.numAttributes = numAttributes;
  if (cu::Status status = cuda.launchKernelEx(&config, entry->function, parameters.data(), nullptr))
    return driverError(cuda, status, "cuLaunchKernelEx");
  return {};
}

} // namespace moejit
