// Kernels on a real driver and device: loading, launching, captures. Every case passes at once
// where there is none.
#include "runtime/Kernel.h"

#include "Samples.h"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

using namespace moejit;

namespace {

/// y[block] = rows + 1000 * blocks of the cluster; takes a tensor map that it does not read.
constexpr const char *ptx = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry moejit_kernel(.param .align 64 .b8 map[128], .param .u64 y, .param .u32 rows, .param .u64 stride)
{
  .reg .b32 %r<5>;
  .reg .b64 %p<4>;
  ld.param.u64 %p1, [y];
  ld.param.u32 %r1, [rows];
  cvta.to.global.u64 %p1, %p1;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %cluster_nctarank;
  mad.lo.u32 %r4, %r3, 1000, %r1;
  mul.wide.u32 %p2, %r2, 4;
  add.s64 %p3, %p1, %p2;
  st.global.u32 [%p3], %r4;
  ret;
}
)";

std::shared_ptr<const Artifact> sample(uint32_t cluster = 1, uint64_t workspaceBytes = 0) {
  Artifact artifact = samples::artifact();
  artifact.ptx = ptx; // the cubin is an empty ELF file, which the driver refuses
  artifact.launch.cluster = cluster;
  artifact.launch.threads = 32;
  artifact.launch.sharedBytes = 100 << 10;
  if (workspaceBytes > 0)
    artifact.launch.workspace = {{Operand::Workspace, workspaceBytes, 0, true}};
  artifact.launch.tensorMaps.resize(1);
  using Kind = KernelParameter::Kind;
  artifact.launch.parameters = {{Kind::TensorMap, 0, Operand::X},
                                {Kind::Pointer, 0, Operand::Y},
                                {Kind::Rows, 0, Operand::X},
                                {Kind::Stride, 0, Operand::Y}};
  return std::make_shared<const Artifact>(std::move(artifact));
}

/// The first device, its primary context current, a stream and 1 MiB of memory; `driver` null
/// without a device.
struct Fixture {
  Fixture() {
    Result<const DriverApi *> opened = openDriver();
    int count = 0;
    if (!opened || (*opened)->deviceGetCount(&count) != cu::success || count == 0)
      return;
    driver = *opened;
    Result<DeviceInfo> info = deviceInfo(*driver, 0);
    REQUIRE(info);
    if (info->computeMajor < 9) {
      driver = nullptr;
      return;
    }
    cu::Context context = nullptr;
    REQUIRE(driver->primaryCtxRetain(&context, 0) == cu::success);
    REQUIRE(driver->ctxSetCurrent(context) == cu::success);
    REQUIRE(driver->streamCreate(&stream, 1) == cu::success);
    REQUIRE(driver->memAlloc(&memory, bytes) == cu::success);
    REQUIRE(driver->memsetD8Async(memory, 0xee, bytes, stream) == cu::success);
    REQUIRE(driver->streamSynchronize(stream) == cu::success);
  }
  ~Fixture() {
    if (!driver)
      return;
    driver->memFree(memory);
    driver->streamDestroy(stream);
    driver->primaryCtxRelease(0);
  }
  GemmArguments arguments(int64_t rows) const {
    GemmArguments arguments;
    arguments.x.data = reinterpret_cast<void *>(memory);
    arguments.y.data = reinterpret_cast<void *>(memory + bytes / 2);
    arguments.workspace = reinterpret_cast<void *>(memory + bytes / 4);
    arguments.workspaceBytes = 256;
    arguments.rows = rows;
    return arguments;
  }
  std::vector<uint32_t> read(size_t offset, size_t count) {
    std::vector<uint32_t> words(count);
    REQUIRE(driver->streamSynchronize(stream) == cu::success);
    REQUIRE(driver->memcpyDtoH(words.data(), memory + offset, count * 4) == cu::success);
    return words;
  }
  std::vector<uint32_t> output(size_t count) { return read(bytes / 2, count); }

  static constexpr size_t bytes = 1 << 20;
  const DriverApi *driver = nullptr;
  cu::Stream stream = nullptr;
  cu::DevicePointer memory = 0;
};

constexpr uint32_t untouched = 0xeeeeeeee;

} // namespace

TEST_CASE_FIXTURE(Fixture, "device: a refused cubin falls back to PTX, which runs on every block") {
  if (!driver)
    return;
  Kernel kernel(sample(), driver);
  REQUIRE(kernel.launch(arguments(0), stream));
  CHECK(output(1)[0] == untouched);
  Result<void> launched = kernel.launch(arguments(100), stream);
  CAPTURE((launched ? std::string() : launched.error().text()));
  REQUIRE(launched);
  std::vector<uint32_t> words = output(8); // 1 + 4 + 2 tiles
  for (size_t block = 0; block < 7; ++block)
    CHECK(words[block] == 1100);
  CHECK(words[7] == untouched);
}

TEST_CASE_FIXTURE(Fixture, "device: clusters form and the workspace is zeroed") {
  if (!driver)
    return;
  Kernel kernel(sample(2, 64), driver);
  REQUIRE(kernel.launch(arguments(300), stream));
  CHECK(output(10) ==
        std::vector<uint32_t>{2300, 2300, 2300, 2300, 2300, 2300, 2300, 2300, 2300, 2300});
  std::vector<uint32_t> workspace = read(bytes / 4, 17);
  for (size_t word = 0; word < 16; ++word)
    CHECK(workspace[word] == 0);
  CHECK(workspace[16] == untouched);
}

// DeepGEMM #443: the refusal leaves the capture usable, and a loaded kernel can be captured.
TEST_CASE_FIXTURE(Fixture, "device: a capture survives a kernel that is not loaded") {
  if (!driver)
    return;
  Kernel early(sample(1, 64), driver), late(sample(), driver);
  REQUIRE(early.load());
  REQUIRE(driver->streamBeginCapture(stream, cu::captureModeGlobal) == cu::success);
  Result<void> refused = late.launch(arguments(100), stream);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::CaptureActive);
  CHECK(early.launch(arguments(100), stream));
  // Another thread loads a kernel meanwhile; in global mode that would end the capture, were it not
  // relaxed.
  cu::Context context = nullptr;
  REQUIRE(driver->ctxGetCurrent(&context) == cu::success);
  bool isLoaded = false;
  std::thread([&] {
    driver->ctxSetCurrent(context);
    isLoaded = bool(late.load());
  }).join();
  CHECK(isLoaded);
  CHECK(late.launch(arguments(200), stream));
  cu::Graph graph = nullptr;
  REQUIRE(driver->streamEndCapture(stream, &graph) == cu::success);
  cu::GraphExec exec = nullptr;
  REQUIRE(driver->graphInstantiate(&exec, graph, 0) == cu::success);
  CHECK(output(1)[0] == untouched);
  for (int replay = 0; replay < 2; ++replay) {
    REQUIRE(driver->graphLaunch(exec, stream) == cu::success);
    CHECK(output(1)[0] == 1200);
  }
  driver->graphExecDestroy(exec);
  driver->graphDestroy(graph);
}

TEST_CASE_FIXTURE(Fixture, "device: a kernel refused in both forms names every version") {
  if (!driver)
    return;
  Artifact artifact = *sample();
  artifact.ptx = ".version 99.0\n.target sm_90\n.address_size 64\n";
  Kernel kernel(std::make_shared<const Artifact>(artifact), driver);
  Result<void> refused = kernel.launch(arguments(100), stream);
  REQUIRE_FALSE(refused);
  CAPTURE(refused.error().text());
  CHECK(refused.error().code == ErrorCode::DriverError);
  CHECK(refused.error().message.find("built for sm_90a") != std::string::npos);
  REQUIRE(refused.error().notes.size() >= 2);
  CHECK(refused.error().notes[1].find("PTX 99.0: cuModuleLoadData: CUDA_ERROR_") == 0);
  CHECK(Kernel(sample(), driver).launch(arguments(100), stream)); // the error does not stick
}
