// The driver's table: its layouts, its errors and the answer of a machine without one.
#include "runtime/Driver.h"

#include "FakeDriver.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <dlfcn.h>

using namespace moejit;

// cuda.h of CUDA 13.0: CUlaunchConfig and CUlaunchAttribute on 64-bit hosts.
TEST_CASE("launch structures have the driver's layout") {
  CHECK(offsetof(cu::LaunchConfig, sharedBytes) == 24);
  CHECK(offsetof(cu::LaunchConfig, stream) == 32);
  CHECK(offsetof(cu::LaunchConfig, attributes) == 40);
  CHECK(offsetof(cu::LaunchConfig, numAttributes) == 48);
  CHECK(offsetof(cu::LaunchAttribute, value) == 8);
  CHECK(sizeof(TensorMapBytes) == 128);
  CHECK(alignof(TensorMapBytes) == 64);
}

TEST_CASE("an error names call, CUresult and its text") {
  samples::FakeDriver driver;
  samples::installFakeDriver(driver);
  Error error = driverError(driver.api, cu::invalidImage, "cuModuleLoadData");
  CHECK(error.code == ErrorCode::DriverError);
  CHECK(error.message == "cuModuleLoadData: CUDA_ERROR_INVALID_IMAGE (200): words");
  CHECK(driverError(DriverApi(), 7, "cuInit").message == "cuInit: CUresult (7)");
}

TEST_CASE("device facts come from the driver") {
  samples::FakeDriver driver;
  samples::installFakeDriver(driver);
  CHECK(*deviceCount(driver.api) == 2);
  Result<DeviceInfo> info = deviceInfo(driver.api, 1);
  REQUIRE(info);
  CHECK(info->name == "NVIDIA H200");
  CHECK(info->smCount == 132);
  CHECK(info->sharedBytesPerBlock == 232448);
  CHECK(info->l2Bytes == 62914560);
  CHECK(info->driverVersion == 12040);
  CHECK(info->arch() == "sm_90a");
  info->computeMajor = 8;
  info->computeMinor = 9;
  CHECK(info->arch() == "sm_89");
}

TEST_CASE("a failing device query is an error with its call") {
  samples::FakeDriver driver;
  samples::installFakeDriver(driver);
  driver.api.deviceGet = [](cu::Device *, int) { return 101; };
  Result<DeviceInfo> info = deviceInfo(driver.api, 5);
  REQUIRE_FALSE(info);
  CHECK(info.error().message == "cuDeviceGet: CUDA_ERROR_SOME (101): words");
}

TEST_CASE("versions read as CUDA writes them") {
  CHECK(cudaVersionText(13000) == "13.0");
  CHECK(cudaVersionText(12080) == "12.8");
}

// Both kinds of machine run this: with a driver the table is whole, without one the refusal says
// so.
TEST_CASE("opening the driver works or is a typed refusal, each time the same") {
  Result<const DriverApi *> first = openDriver();
  Result<const DriverApi *> second = openDriver();
  CHECK(bool(first) == bool(second));
  if (first) {
    CHECK(*first == *second);
    CHECK(((*first)->launchKernelEx != nullptr));
    CHECK(((*first)->tensorMapEncodeTiled != nullptr));
  } else {
    CHECK((first.error().code == ErrorCode::Unavailable ||
           first.error().code == ErrorCode::DriverError));
    if (!dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD)) {
      CHECK(first.error().message ==
            "no CUDA driver on this machine: libcuda.so.1 cannot be opened");
    }
  }
}
