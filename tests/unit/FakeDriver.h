// A driver that records what it is asked and answers as a test says. One at a time: its state is
// global.
#pragma once

#include "runtime/Driver.h"

#include <cstring>
#include <string>
#include <vector>

namespace moejit::samples {

struct FakeDriver {
  struct Launch {
    cu::LaunchConfig config;
    unsigned cluster = 1;
    bool isDependent = false;     ///< programmatic stream serialization
    std::vector<uint64_t> values; ///< first 8 bytes of each parameter
    cu::Function function = nullptr;
  };
  struct Encoded {
    int type = 0;
    uint32_t rank = 0;
    uint64_t address = 0;
    std::vector<uint64_t> extents, strideBytes;
    std::vector<uint32_t> box;
    int swizzle = 0;
  };

  cu::Status cubinStatus = cu::success; ///< of cuModuleLoadData with an ELF image
  cu::Status ptxStatus = cu::success;   ///< with any other image
  cu::Status encodeStatus = cu::success;
  cu::Status capturingStatus = cu::success;
  int captureStatus = cu::captureStatusNone;
  uintptr_t context = 1; ///< current context; also its id
  int smCount = 132;

  int captureMode = cu::captureModeGlobal;
  std::vector<int> loadModes; ///< capture mode of the thread at each module load
  std::vector<std::string> loads;
  std::vector<std::pair<int, int>> functionAttributes;
  std::vector<std::string> calls; ///< work put on the stream, in order
  std::vector<Launch> launches;
  std::vector<Encoded> encoded;
  size_t memsetBytes = 0;
  size_t parameterCount = 0; ///< a launch does not say how many it passes

  DriverApi api;
};

inline FakeDriver *fake = nullptr;

/// Installs a fresh fake; its `api` goes where a DriverApi is asked for.
inline FakeDriver &installFakeDriver(FakeDriver &driver) {
  fake = &driver;
  DriverApi &api = driver.api;
  api.driverGetVersion = [](int *version) { return *version = 12040, cu::success; };
  api.getErrorName = [](cu::Status status, const char **name) {
    *name = status == cu::invalidImage            ? "CUDA_ERROR_INVALID_IMAGE"
            : status == cu::unsupportedPtxVersion ? "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
                                                  : "CUDA_ERROR_SOME";
    return cu::success;
  };
  api.getErrorString = [](cu::Status, const char **text) { return *text = "words", cu::success; };
  api.deviceGetCount = [](int *count) { return *count = 2, cu::success; };
  api.deviceGet = [](cu::Device *device, int ordinal) { return *device = ordinal, cu::success; };
  api.deviceGetName = [](char *name, int length, cu::Device) {
    std::strncpy(name, "NVIDIA H200", size_t(length));
    return cu::success;
  };
  api.deviceGetAttribute = [](int *value, int attribute, cu::Device) {
    *value = attribute == cu::multiprocessorCount            ? fake->smCount
             : attribute == cu::computeCapabilityMajor       ? 9
             : attribute == cu::maxSharedMemoryPerBlockOptin ? 232448
             : attribute == cu::l2CacheSize                  ? 62914560
                                                             : 0;
    return cu::success;
  };
  api.ctxGetCurrent = [](cu::Context *context) {
    return *context = reinterpret_cast<cu::Context>(fake->context), cu::success;
  };
  api.ctxGetDevice = [](cu::Device *device) { return *device = 0, cu::success; };
  api.ctxGetId = [](cu::Context context, unsigned long long *id) {
    return *id = reinterpret_cast<uintptr_t>(context), cu::success;
  };
  api.moduleLoadData = [](cu::Module *module, const void *image) -> cu::Status {
    bool isCubin = std::memcmp(image,
                               "\x7f"
                               "ELF",
                               4) == 0;
    fake->loads.push_back(isCubin ? "cubin" : "ptx");
    fake->loadModes.push_back(fake->captureMode);
    *module = reinterpret_cast<cu::Module>(uintptr_t(isCubin ? 0x100 : 0x200));
    return isCubin ? fake->cubinStatus : fake->ptxStatus;
  };
  api.moduleUnload = [](cu::Module) { return cu::success; };
  api.moduleGetFunction = [](cu::Function *function, cu::Module module, const char *name) {
    *function = reinterpret_cast<cu::Function>(reinterpret_cast<uintptr_t>(module) + fake->context);
    return std::string(name) == "moejit_kernel" ? cu::success : 500;
  };
  api.funcSetAttribute = [](cu::Function, int attribute, int value) {
    fake->functionAttributes.emplace_back(attribute, value);
    return cu::success;
  };
  api.exchangeCaptureMode = [](int *mode) {
    return std::swap(*mode, fake->captureMode), cu::success;
  };
  api.streamIsCapturing = [](cu::Stream, int *status) {
    return *status = fake->captureStatus, fake->capturingStatus;
  };
  api.memsetD8Async = [](cu::DevicePointer, unsigned char, size_t count, cu::Stream) {
    fake->calls.push_back("memset");
    fake->memsetBytes = count;
    return cu::success;
  };
  api.tensorMapEncodeTiled = [](void *map, int type, uint32_t rank, void *address,
                                const uint64_t *extents, const uint64_t *strideBytes,
                                const uint32_t *box, const uint32_t *, int, int swizzle, int, int) {
    fake->encoded.push_back({type,
                             rank,
                             reinterpret_cast<uint64_t>(address),
                             {extents, extents + rank},
                             {strideBytes, strideBytes + rank - 1},
                             {box, box + rank},
                             swizzle});
    uint64_t mark = 0xabc0 + fake->encoded.size();
    std::memcpy(map, &mark, sizeof mark);
    return fake->encodeStatus;
  };
  api.launchKernelEx = [](const cu::LaunchConfig *config, cu::Function function, void **parameters,
                          void **) {
    FakeDriver::Launch launch;
    launch.config = *config;
    launch.function = function;
    for (unsigned i = 0; i < config->numAttributes; ++i) {
      const cu::LaunchAttribute &attribute = config->attributes[i];
      if (attribute.id == cu::LaunchAttribute::clusterDimension)
        launch.cluster = attribute.value[0];
      else if (attribute.id == cu::LaunchAttribute::programmaticStreamSerialization)
        launch.isDependent = attribute.value[0] != 0;
    }
    for (size_t i = 0; i < fake->parameterCount; ++i) {
      uint64_t value = 0;
      std::memcpy(&value, parameters[i], sizeof value);
      launch.values.push_back(value);
    }
    fake->launches.push_back(launch);
    fake->calls.push_back("launch");
    return cu::success;
  };
  return driver;
}

} // namespace moejit::samples
