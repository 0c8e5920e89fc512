// Opens the driver, names its errors, asks its devices and has it encode tensor maps.
#include "runtime/Driver.h"

#include <fmt/format.h>

#include <dlfcn.h>

namespace moejit {
namespace {

Result<const DriverApi *> openOnce() {
  static DriverApi api;
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return Error{ErrorCode::Unavailable,
                 "no CUDA driver on this machine: libcuda.so.1 cannot be opened",
                 {"kernels can be built ahead of time here and launched where a driver is"}};
  const char *missing = nullptr;
#define MOEJIT_DRIVER_OPEN(member, symbol, parameters)                                             \
  api.member = reinterpret_cast<decltype(api.member)>(dlsym(library, #symbol));                    \
  if (!api.member)                                                                                 \
    missing = #symbol;
  MOEJIT_DRIVER_SYMBOLS(MOEJIT_DRIVER_OPEN)
#undef MOEJIT_DRIVER_OPEN
  int version = 0;
  if (api.driverGetVersion)
    api.driverGetVersion(&version);
  void *encode = nullptr;
  int found = 0;
  if (!missing &&
      (api.getProcAddress("cuTensorMapEncodeTiled", &encode, 12000, 0, &found) != 0 || !encode))
    missing = "cuTensorMapEncodeTiled";
  if (missing)
    return Error{ErrorCode::Unavailable,
                 fmt::format("the CUDA driver ({}) has no {}", cudaVersionText(version), missing),
                 {"moejit needs a driver for CUDA 12.0 or later"}};
  api.tensorMapEncodeTiled = reinterpret_cast<decltype(api.tensorMapEncodeTiled)>(encode);
  if (cu::Status status = api.init(0))
    return driverError(api, status, "cuInit");
  return &api;
}

/// CU_TENSOR_MAP_DATA_TYPE_…; fp8 and ue8m0 are moved as bytes.
int tensorMapType(ElementType type) {
  switch (type) {
  case ElementType::F8E4M3FN:
  case ElementType::F8E5M2:
  case ElementType::F8E8M0FNU:
    return 0;
  case ElementType::I32:
    return 3;
  case ElementType::F16:
    return 6;
  case ElementType::F32:
    return 7;
  case ElementType::BF16:
    break;
  }
  return 9;
}

} // namespace

Result<const DriverApi *> openDriver() {
  static const Result<const DriverApi *> opened = openOnce();
  return opened;
}

Error driverError(const DriverApi &driver, cu::Status status, std::string_view call) {
  const char *name = nullptr;
  const char *text = nullptr;
  if (driver.getErrorName)
    driver.getErrorName(status, &name);
  if (driver.getErrorString)
    driver.getErrorString(status, &text);
  std::string message = fmt::format("{}: {} ({})", call, name ? name : "CUresult", status);
  if (text)
    message += fmt::format(": {}", text);
  return {ErrorCode::DriverError, std::move(message), {}};
}

std::string cudaVersionText(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string DeviceInfo::arch() const {
  return fmt::format("sm_{}{}{}", computeMajor, computeMinor, computeMajor >= 9 ? "a" : "");
}

Result<int> deviceCount(const DriverApi &driver) {
  int count = 0;
  if (cu::Status status = driver.deviceGetCount(&count))
    return driverError(driver, status, "cuDeviceGetCount");
  return count;
}

Result<DeviceInfo> deviceInfo(const DriverApi &driver, int ordinal) {
  cu::Device device = 0;
  if (cu::Status status = driver.deviceGet(&device, ordinal))
    return driverError(driver, status, "cuDeviceGet");
  DeviceInfo info;
  char name[256] = {};
  if (cu::Status status = driver.deviceGetName(name, int(sizeof name) - 1, device))
    return driverError(driver, status, "cuDeviceGetName");
  info.name = name;
  int l2Bytes = 0;
  const std::pair<int, int *> attributes[] = {
      {cu::multiprocessorCount, &info.smCount},
      {cu::computeCapabilityMajor, &info.computeMajor},
      {cu::computeCapabilityMinor, &info.computeMinor},
      {cu::maxSharedMemoryPerBlockOptin, &info.sharedBytesPerBlock},
      {cu::l2CacheSize, &l2Bytes},
  };
  for (auto [attribute, value] : attributes)
    if (cu::Status status = driver.deviceGetAttribute(value, attribute, device))
      return driverError(driver, status, "cuDeviceGetAttribute");
  info.l2Bytes = l2Bytes;
  if (cu::Status status = driver.driverGetVersion(&info.driverVersion))
    return driverError(driver, status, "cuDriverGetVersion");
  return info;
}

Result<TensorMapBytes> encodeTensorMap(const DriverApi &driver, const TensorMapValues &values) {
  constexpr uint32_t unitStrides[TensorMapValues::maxRank] = {1, 1, 1, 1, 1};
  constexpr int l2Promotion256Bytes = 3;
  TensorMapBytes bytes;
  cu::Status status = driver.tensorMapEncodeTiled(
      &bytes, tensorMapType(values.type), values.rank, reinterpret_cast<void *>(values.address),
      values.extents.data(), values.strideBytes.data(), values.box.data(), unitStrides,
      /*interleave=*/0, int(values.swizzle), l2Promotion256Bytes, /*fill=*/0);
  if (status == cu::success)
    return bytes;
  Error error = driverError(driver, status, "cuTensorMapEncodeTiled");
  error.notes.push_back(fmt::format("the operand is {}, rank {}, address {:#x}",
                                    operandName(values.operand), values.rank, values.address));
  return error;
}

} // namespace moejit
