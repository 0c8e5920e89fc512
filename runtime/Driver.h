// The CUDA driver, opened with dlopen on first use behind one table of symbols. Needs no CUDA
// header to build; loading the library opens nothing and initialises nothing.
#pragma once

#include "runtime/Result.h"
#include "runtime/TensorMap.h"

#include <cstddef>
#include <cstdint>
#include <string>

// The driver's own opaque types, as cuda.h declares them, so that its CUstream and cudaStream_t are
// ours.
struct CUctx_st;
struct CUmod_st;
struct CUfunc_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;

namespace moejit {

/// The part of cuda.h (12.0 and later) that moejit uses; values and layouts are the driver's ABI.
namespace cu {

using Status = int; ///< CUresult
using Device = int;
using DevicePointer = unsigned long long;
using Context = CUctx_st *;
using Module = CUmod_st *;
using Function = CUfunc_st *;
using Stream = CUstream_st *;
using Event = CUevent_st *;
using Graph = CUgraph_st *;
using GraphExec = CUgraphExec_st *;

constexpr Status success = 0;
constexpr Status invalidImage = 200;
constexpr Status noBinaryForGpu = 209;
constexpr Status invalidPtx = 218;
constexpr Status unsupportedPtxVersion = 222;
constexpr Status captureUnsupported = 900;
constexpr Status captureImplicit = 906;

constexpr int multiprocessorCount = 16; ///< CU_DEVICE_ATTRIBUTE_…
constexpr int l2CacheSize = 38;
constexpr int computeCapabilityMajor = 75;
constexpr int computeCapabilityMinor = 76;
constexpr int maxSharedMemoryPerBlockOptin = 97;

constexpr int maxDynamicSharedSizeBytes = 8; ///< CU_FUNC_ATTRIBUTE_…
constexpr int nonPortableClusterSizeAllowed = 14;

constexpr int captureModeGlobal = 0; ///< CU_STREAM_CAPTURE_MODE_…
constexpr int captureModeThreadLocal = 1;
constexpr int captureModeRelaxed = 2;
constexpr int captureStatusNone = 0; ///< CU_STREAM_CAPTURE_STATUS_…

struct alignas(8) LaunchAttribute {
  static constexpr unsigned clusterDimension = 4;                ///< value: x, y, z
  static constexpr unsigned programmaticStreamSerialization = 6; ///< value: 1 where it is allowed

  unsigned id = 0;
  unsigned padding = 0;
  unsigned value[16] = {};
};
static_assert(sizeof(LaunchAttribute) == 72);

struct LaunchConfig {
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned sharedBytes = 0;
  Stream stream = nullptr;
  LaunchAttribute *attributes = nullptr;
  unsigned numAttributes = 0;
};
static_assert(sizeof(LaunchConfig) == 56);

} // namespace cu

/// Every driver function in use. X(member, symbol of libcuda.so.1, parameters). All return a
/// CUresult.
#define MOEJIT_DRIVER_SYMBOLS(X)                                                                   \
  X(init, cuInit, (unsigned flags))                                                                \
  X(driverGetVersion, cuDriverGetVersion, (int *version))                                          \
  X(getErrorName, cuGetErrorName, (cu::Status status, const char **name))                          \
  X(getErrorString, cuGetErrorString, (cu::Status status, const char **text))                      \
  X(deviceGetCount, cuDeviceGetCount, (int *count))                                                \
  X(deviceGet, cuDeviceGet, (cu::Device * device, int ordinal))                                    \
  X(deviceGetName, cuDeviceGetName, (char *name, int length, cu::Device device))                   \
  X(deviceGetAttribute, cuDeviceGetAttribute, (int *value, int attribute, cu::Device device))      \
  X(primaryCtxRetain, cuDevicePrimaryCtxRetain, (cu::Context * context, cu::Device device))        \
  X(primaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (cu::Device device))                          \
  X(ctxSetCurrent, cuCtxSetCurrent, (cu::Context context))                                         \
  X(ctxGetCurrent, cuCtxGetCurrent, (cu::Context * context))                                       \
  X(ctxGetDevice, cuCtxGetDevice, (cu::Device * device))                                           \
  X(ctxGetId, cuCtxGetId, (cu::Context context, unsigned long long *id))                           \
  X(ctxSynchronize, cuCtxSynchronize, ())                                                          \
  X(moduleLoadData, cuModuleLoadData, (cu::Module * module, const void *image))                    \
  X(moduleUnload, cuModuleUnload, (cu::Module module))                                             \
  X(moduleGetFunction, cuModuleGetFunction,                                                        \
    (cu::Function * function, cu::Module module, const char *name))                                \
  X(funcSetAttribute, cuFuncSetAttribute, (cu::Function function, int attribute, int value))       \
  X(funcGetAttribute, cuFuncGetAttribute, (int *value, int attribute, cu::Function function))      \
  X(launchKernelEx, cuLaunchKernelEx,                                                              \
    (const cu::LaunchConfig *config, cu::Function function, void **parameters, void **extra))      \
  X(memAlloc, cuMemAlloc_v2, (cu::DevicePointer * pointer, size_t bytes))                          \
  X(memFree, cuMemFree_v2, (cu::DevicePointer pointer))                                            \
  X(memcpyHtoD, cuMemcpyHtoD_v2, (cu::DevicePointer to, const void *from, size_t bytes))           \
  X(memcpyDtoH, cuMemcpyDtoH_v2, (void *to, cu::DevicePointer from, size_t bytes))                 \
  X(memcpyDtoD, cuMemcpyDtoD_v2, (cu::DevicePointer to, cu::DevicePointer from, size_t bytes))     \
  X(memsetD8Async, cuMemsetD8Async,                                                                \
    (cu::DevicePointer to, unsigned char value, size_t count, cu::Stream stream))                  \
  X(memsetD32Async, cuMemsetD32Async,                                                              \
    (cu::DevicePointer to, unsigned value, size_t count, cu::Stream stream))                       \
  X(streamCreate, cuStreamCreate, (cu::Stream * stream, unsigned flags))                           \
  X(streamDestroy, cuStreamDestroy_v2, (cu::Stream stream))                                        \
  X(streamSynchronize, cuStreamSynchronize, (cu::Stream stream))                                   \
  X(streamIsCapturing, cuStreamIsCapturing, (cu::Stream stream, int *status))                      \
  X(streamBeginCapture, cuStreamBeginCapture_v2, (cu::Stream stream, int mode))                    \
  X(streamEndCapture, cuStreamEndCapture, (cu::Stream stream, cu::Graph * graph))                  \
  X(exchangeCaptureMode, cuThreadExchangeStreamCaptureMode, (int *mode))                           \
  X(eventCreate, cuEventCreate, (cu::Event * event, unsigned flags))                               \
  X(eventDestroy, cuEventDestroy_v2, (cu::Event event))                                            \
  X(eventRecord, cuEventRecord, (cu::Event event, cu::Stream stream))                              \
  X(eventSynchronize, cuEventSynchronize, (cu::Event event))                                       \
  X(eventElapsedTime, cuEventElapsedTime, (float *milliseconds, cu::Event start, cu::Event end))   \
  X(graphInstantiate, cuGraphInstantiateWithFlags,                                                 \
    (cu::GraphExec * exec, cu::Graph graph, unsigned long long flags))                             \
  X(graphLaunch, cuGraphLaunch, (cu::GraphExec exec, cu::Stream stream))                           \
  X(graphDestroy, cuGraphDestroy, (cu::Graph graph))                                               \
  X(graphExecDestroy, cuGraphExecDestroy, (cu::GraphExec exec))                                    \
  X(getProcAddress, cuGetProcAddress_v2,                                                           \
    (const char *symbol, void **function, int cudaVersion, uint64_t flags, int *status))

/// The table of driver functions. openDriver() fills the process's one; tests fill their own.
struct DriverApi {
#define MOEJIT_DRIVER_MEMBER(member, symbol, parameters) cu::Status(*member) parameters = nullptr;
  MOEJIT_DRIVER_SYMBOLS(MOEJIT_DRIVER_MEMBER)
#undef MOEJIT_DRIVER_MEMBER
  /// cuTensorMapEncodeTiled, by way of cuGetProcAddress.
  cu::Status (*tensorMapEncodeTiled)(void *map, int type, uint32_t rank, void *address,
                                     const uint64_t *extents, const uint64_t *strideBytes,
                                     const uint32_t *box, const uint32_t *elementStrides,
                                     int interleave, int swizzle, int l2Promotion,
                                     int fill) = nullptr;
};

/// Opens libcuda.so.1 and calls cuInit on the first call; later calls give the same answer.
/// Thread-safe; a process forked before the first call opens its own. Errors: Unavailable without a
/// driver or with one before CUDA 12.0; DriverError when cuInit fails.
Result<const DriverApi *> openDriver();

/// The Error of a driver call that did not succeed: "cuModuleLoadData: CUDA_ERROR_INVALID_IMAGE
/// (200): …".
Error driverError(const DriverApi &driver, cu::Status status, std::string_view call);

/// "13.0" for 13000.
std::string cudaVersionText(int version);

/// What moejit asks of a device.
struct DeviceInfo {
  std::string name;
  int smCount = 0;
  int computeMajor = 0;
  int computeMinor = 0;
  int sharedBytesPerBlock = 0; ///< the opt-in limit
  int64_t l2Bytes = 0;
  int driverVersion = 0; ///< as cuDriverGetVersion counts: 13000

  /// The architecture kernels for this device are built for, such as "sm_90a": from 9.0 on with the
  /// suffix.
  std::string arch() const;
};

/// Errors: DriverError naming the call.
Result<int> deviceCount(const DriverApi &driver);
Result<DeviceInfo> deviceInfo(const DriverApi &driver, int ordinal);

} // namespace moejit
