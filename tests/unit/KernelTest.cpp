// Kernels on a driver that records: launches, loading per context, refused images and captures.
#include "runtime/Kernel.h"

#include "FakeDriver.h"
#include "Samples.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

using namespace moejit;

namespace {

GemmArguments legal(int64_t rows = 100) {
  auto at = [](uint64_t address) { return reinterpret_cast<void *>(address); };
  GemmArguments arguments;
  arguments.x.data = at(0x10000000);
  arguments.xScales.data = at(0x20000000);
  arguments.w.data = at(0x30000000);
  arguments.wScales.data = at(0x40000000);
  arguments.offsets.data = at(0x50000000);
  arguments.y.data = at(0x60000000);
  arguments.rows = rows;
  return arguments;
}

std::shared_ptr<const Artifact> sample(void (*change)(Artifact &) = nullptr) {
  Artifact artifact = samples::artifact();
  if (change)
    change(artifact);
  return std::make_shared<const Artifact>(std::move(artifact));
}

const cu::Stream stream = reinterpret_cast<cu::Stream>(uintptr_t(0x77));

struct Fixture {
  Fixture() {
    samples::installFakeDriver(driver);
    driver.parameterCount = 9;
  }
  samples::FakeDriver driver;
};

} // namespace

TEST_CASE_FIXTURE(Fixture, "a launch passes grid, block, stream and parameters") {
  Kernel kernel(sample(), &driver.api);
  REQUIRE(kernel.launch(legal(), stream));
  REQUIRE(driver.launches.size() == 1);
  const auto &launch = driver.launches[0];
  CHECK(launch.config.grid[0] == 7);
  CHECK(launch.config.grid[1] == 1);
  CHECK(launch.config.block[0] == 384);
  CHECK(launch.config.sharedBytes == 200000);
  CHECK(launch.config.stream == stream);
  CHECK(launch.config.numAttributes == 0);
  CHECK(launch.values == std::vector<uint64_t>{0xabc1, 0xabc2, 0x20000000, 0x40000000, 0x50000000,
                                               0x60000000, 100, 256, 100});
  CHECK(driver.functionAttributes ==
        std::vector<std::pair<int, int>>{{cu::maxDynamicSharedSizeBytes, 200000}});
  CHECK(driver.calls == std::vector<std::string>{"launch"});
}

TEST_CASE_FIXTURE(Fixture, "maps are encoded again only when they differ from the last launch's") {
  Kernel kernel(sample(), &driver.api);
  const auto encodes = [&](const GemmArguments &arguments) {
    const size_t before = driver.encoded.size();
    REQUIRE(kernel.launch(arguments, stream));
    return driver.encoded.size() - before;
  };
  GemmArguments arguments = legal();
  CHECK(encodes(arguments) == 2);
  CHECK(encodes(arguments) == 0);
  CHECK(driver.launches[1].values == driver.launches[0].values);
  arguments.x.data = reinterpret_cast<void *>(0x11000000);
  CHECK(encodes(arguments) == 1);
  CHECK(driver.launches[2].values[0] == 0xabc3);
  CHECK(driver.launches[2].values[1] == 0xabc2);
  arguments.x.rowStride = 1024;
  CHECK(encodes(arguments) == 1);
  arguments.rows = 90; // an extent
  CHECK(encodes(arguments) == 1);
  arguments.w.data = reinterpret_cast<void *>(0x31000000);
  CHECK(encodes(arguments) == 1);
  driver.context = 2;
  CHECK(encodes(arguments) == 2);
  CHECK(encodes(arguments) == 0);
  // What could not be encoded is not remembered.
  arguments.rows = 80;
  driver.encodeStatus = 1;
  CHECK_FALSE(kernel.launch(arguments, stream));
  driver.encodeStatus = cu::success;
  CHECK(encodes(arguments) == 1);
}

// Each thread's x lies elsewhere, and so does its y: a launch must be given the map of its own.
TEST_CASE("launches of many threads have maps of their own") {
  samples::FakeDriver fake;
  samples::installFakeDriver(fake);
  static constexpr uint64_t fromXToY = 0x60000000 - 0x10000000;
  static std::atomic<int> wrong;
  wrong = 0;
  DriverApi api = fake.api;
  api.tensorMapEncodeTiled = [](void *map, int, uint32_t, void *address, const uint64_t *,
                                const uint64_t *, const uint32_t *, const uint32_t *, int, int, int,
                                int) {
    std::memcpy(map, &address, sizeof address);
    return cu::success;
  };
  api.launchKernelEx = [](const cu::LaunchConfig *, cu::Function, void **parameters, void **) {
    uint64_t x = 0, y = 0;
    std::memcpy(&x, parameters[0], sizeof x);
    std::memcpy(&y, parameters[5], sizeof y);
    wrong += y - x != fromXToY;
    return cu::success;
  };
  Kernel kernel(sample(), &api);
  REQUIRE(kernel.load());
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 2000; ++i) {
        GemmArguments arguments = legal();
        const uint64_t moved = 0x100000 * (4 * (i % 3) + t);
        arguments.x.data = reinterpret_cast<void *>(0x10000000 + moved);
        arguments.y.data = reinterpret_cast<void *>(0x60000000 + moved);
        wrong += !kernel.launch(arguments, stream);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(wrong == 0);
}

TEST_CASE_FIXTURE(Fixture, "clusters are an attribute of the launch, large ones are asked for") {
  Kernel pair(sample([](Artifact &a) { a.launch.cluster = 2; }), &driver.api);
  REQUIRE(pair.launch(legal(), stream));
  CHECK(driver.launches[0].cluster == 2);
  CHECK(driver.launches[0].config.grid[0] == 8);
  Kernel large(sample([](Artifact &a) { a.launch.cluster = 16; }), &driver.api);
  REQUIRE(large.launch(legal(), stream));
  CHECK(driver.functionAttributes.back() ==
        std::pair<int, int>{cu::nonPortableClusterSizeAllowed, 1});
}

TEST_CASE_FIXTURE(Fixture,
                  "a kernel that waits for the one before may start before that has ended") {
  for (unsigned cluster : {1u, 2u}) {
    Artifact artifact = *sample();
    artifact.launch.cluster = cluster;
    artifact.launch.dependentLaunch = true;
    Kernel kernel(std::make_shared<const Artifact>(std::move(artifact)), &driver.api);
    REQUIRE(kernel.launch(legal(), stream));
    CHECK(driver.launches.back().isDependent);
    CHECK(driver.launches.back().cluster == cluster);
    CHECK(driver.launches.back().config.numAttributes == cluster);
  }
  Kernel plain(sample(), &driver.api);
  REQUIRE(plain.launch(legal(), stream));
  CHECK_FALSE(driver.launches.back().isDependent);
}

TEST_CASE_FIXTURE(Fixture, "the workspace is zeroed in-stream before the kernel") {
  Kernel kernel(
      sample([](Artifact &a) { a.launch.workspace = {{Operand::Workspace, 48, 0, true}}; }),
      &driver.api);
  GemmArguments arguments = legal();
  arguments.workspace = reinterpret_cast<void *>(0x70000000);
  arguments.workspaceBytes = 64;
  REQUIRE(kernel.launch(arguments, stream));
  CHECK(driver.calls == std::vector<std::string>{"memset", "launch"});
  CHECK(driver.memsetBytes == 48);
}

TEST_CASE_FIXTURE(Fixture, "a clean workspace is one call of the driver less") {
  Kernel kernel(sample([](Artifact &a) {
                  a.launch.workspace = {{Operand::Workspace, 48, 0, true}};
                  a.launch.cleansWorkspace = true;
                }),
                &driver.api);
  GemmArguments arguments = legal();
  arguments.workspace = reinterpret_cast<void *>(0x70000000);
  arguments.workspaceBytes = 64;
  REQUIRE(kernel.launch(arguments, stream));
  arguments.workspaceIsClean = true;
  REQUIRE(kernel.launch(arguments, stream));
  CHECK(driver.calls == std::vector<std::string>{"memset", "launch", "launch"});
}

// sglang #38773: nothing to do is a success without a driver, a context or a launch.
TEST_CASE_FIXTURE(Fixture, "no rows launch nothing") {
  driver.context = 0;
  Kernel kernel(sample(), &driver.api);
  CHECK(kernel.launch(GemmArguments(), stream));
  CHECK(driver.loads.empty());
  CHECK(driver.launches.empty());
  driver.context = 1;
  CHECK(kernel.launch(legal(), stream));
  CHECK(driver.launches.size() == 1);
}

TEST_CASE_FIXTURE(Fixture, "refused arguments launch nothing") {
  Kernel kernel(sample(), &driver.api);
  GemmArguments arguments = legal();
  arguments.x.data = nullptr;
  Result<void> refused = kernel.launch(arguments, stream);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::InvalidArgument);
  CHECK(driver.calls.empty());
}

TEST_CASE_FIXTURE(Fixture, "each context loads the binary once") {
  Kernel kernel(sample(), &driver.api);
  for (uintptr_t context : {1, 2, 1, 2, 1}) {
    driver.context = context;
    REQUIRE(kernel.launch(legal(), stream));
    CHECK(driver.launches.back().function == reinterpret_cast<cu::Function>(0x100 + context));
  }
  CHECK(driver.loads.size() == 2);
}

TEST_CASE_FIXTURE(Fixture, "concurrent loads happen once") {
  Kernel kernel(sample(), &driver.api);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] { (void)kernel.load(); });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(driver.loads.size() == 1);
}

TEST_CASE_FIXTURE(Fixture, "a thread without a context is told so") {
  driver.context = 0;
  Kernel kernel(sample(), &driver.api);
  Result<void> refused = kernel.launch(legal(), stream);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "this thread has no current CUDA context");
}

// libCEED #1587: the cubin is what is loaded; PTX is only the fallback.
TEST_CASE_FIXTURE(Fixture, "PTX is taken when the cubin is refused, once") {
  driver.cubinStatus = cu::noBinaryForGpu;
  Kernel kernel(sample(), &driver.api);
  REQUIRE(kernel.launch(legal(), stream));
  REQUIRE(kernel.launch(legal(), stream));
  CHECK(driver.loads == std::vector<std::string>{"cubin", "ptx"});
  Kernel ptxOnly(sample([](Artifact &a) { a.cubin.clear(); }), &driver.api);
  REQUIRE(ptxOnly.load());
  CHECK(driver.loads.back() == "ptx");
}

TEST_CASE_FIXTURE(Fixture, "a kernel refused in both forms names every version") {
  driver.cubinStatus = cu::invalidImage;
  driver.ptxStatus = cu::unsupportedPtxVersion;
  Kernel kernel(sample(), &driver.api);
  Result<void> refused = kernel.launch(legal(), stream);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::DriverError);
  CHECK(refused.error().message ==
        "the driver refuses the kernel built for sm_90a: the device has compute capability 9.0, "
        "the driver is for CUDA 12.4, NVRTC was 13.0");
  CHECK(refused.error().notes ==
        std::vector<std::string>{
            "cubin: cuModuleLoadData: CUDA_ERROR_INVALID_IMAGE (200): words",
            "PTX 9.0: cuModuleLoadData: CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222): words",
            "this kernel needs a driver for CUDA 13.0 or later"});
  CHECK(driver.launches.empty());
}

TEST_CASE_FIXTURE(Fixture, "out of memory while loading is not a reason to try PTX") {
  driver.cubinStatus = 2;
  Kernel kernel(sample(), &driver.api);
  CHECK_FALSE(kernel.load());
  CHECK(driver.loads == std::vector<std::string>{"cubin"});
}

TEST_CASE_FIXTURE(Fixture, "a missing entry is an error and is not remembered as loaded") {
  Kernel kernel(sample([](Artifact &a) { a.launch.entry = "other"; }), &driver.api);
  Result<void> refused = kernel.load();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("cuModuleGetFunction") == 0);
  CHECK_FALSE(kernel.load());
  CHECK(driver.loads.size() == 2);
}

// DeepGEMM #443: loading while the stream captures would ruin the capture.
TEST_CASE_FIXTURE(Fixture, "a capture refuses a kernel that is not loaded, and takes one that is") {
  Kernel kernel(sample(), &driver.api);
  driver.captureStatus = 1;
  Result<void> refused = kernel.launch(legal(), stream);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::CaptureActive);
  CHECK(driver.loads.empty());
  CHECK(driver.calls.empty());
  // The legacy stream, while another stream captures.
  driver.captureStatus = 0;
  driver.capturingStatus = cu::captureImplicit;
  CHECK(kernel.launch(legal(), nullptr).error().code == ErrorCode::CaptureActive);
  driver.capturingStatus = cu::success;
  REQUIRE(kernel.load());
  driver.captureStatus = 1;
  CHECK(kernel.launch(legal(), stream));
  CHECK(driver.launches.size() == 1);
}

// A load on this thread must not ruin what another thread captures in global mode.
TEST_CASE_FIXTURE(Fixture, "loads happen in relaxed capture mode, which is put back") {
  Kernel kernel(sample(), &driver.api);
  REQUIRE(kernel.load());
  CHECK(driver.loadModes == std::vector<int>{cu::captureModeRelaxed});
  CHECK(driver.captureMode == cu::captureModeGlobal);
  driver.cubinStatus = driver.ptxStatus = cu::invalidImage;
  driver.context = 2;
  CHECK_FALSE(kernel.load());
  CHECK(driver.captureMode == cu::captureModeGlobal);
}
