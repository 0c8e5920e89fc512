// Launching an artifact: arguments by the launch data, operands bounded by the spec, the workspace
// zeroed.
#include "runtime/emulator/Build.h"
#include "tests/emulator/Harness.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace moejit;
using namespace moejit::test;

namespace {

constexpr int64_t n = 16, k = 128, experts = 2;

// Not a GEMM: y[row][c] = sum of the codes of x's row, plus the expert's first row, as f32. One
// warp for each tile of 16 rows, drawn from the queue in the workspace.
const std::string body = R"(
  const int base = shared_base();
  const int barrier = base + 2048;
  const int lane = thread_index();
  if (lane == 0) {
    mbarrier_init(barrier, 1);
    fence_mbarrier_init();
  }
  syncwarp();
  int phase = 0;
  while (true) {
    int tile = 0;
    if (lane == 0) tile = atom_add_global_i32(queue, 0, 1);
    tile = shfl_idx(tile, 0);
    if (tile * 16 >= rows) break;
    if (lane == 0) {
      mbarrier_expect_tx(barrier, 2048);
      tma_load_2d(base, xMap, 0, tile * 16, barrier);
    }
    mbarrier_wait(barrier, phase);
    phase ^= 1;
    const int row = tile * 16 + lane;
    if (lane < 16 && row < rows) {
      int sum = 0;
      for (int i = 0; i < 128; i += 4) {
        const int word = ld_shared_i32(base + lane * 128 + i);
        sum += (word & 255) + (word >> 8 & 255) + (word >> 16 & 255) + (word >> 24 & 255);
      }
      const int second = ld_global_i32(offsets, 4);
      for (int c = 0; c < COLUMNS; ++c)
        st_global_f32(y, (row * yStride + c) * 4, sum + (row < second ? 0 : second) + 0.0f);
    }
    syncwarp();
  }
)";

Artifact makeArtifact(const std::string &columns) {
  Artifact artifact;
  Spec &spec = artifact.spec;
  spec.dispatch = Dispatch::Grouped;
  spec.numExperts = experts;
  spec.n = n;
  spec.k = k;
  spec.outType = ElementType::F32;
  spec.xScales.granule = {Granule::whole(), Granule::whole()};
  spec.wScales.granule = {Granule::whole(), Granule::whole(), Granule::whole()};
  LaunchData &launch = artifact.launch;
  launch.grid = {16, 16, n, experts, 1};
  launch.threads = 32;
  launch.sharedBytes = 2048 + 16;
  launch.workspace = {{Operand::Workspace, 16, 0, true}};
  TensorMapRecipe map;
  map.operand = Operand::X;
  map.type = ElementType::F8E4M3FN;
  map.extents = {{LaunchValue::Kind::Constant, k, Operand::X},
                 {LaunchValue::Kind::Rows, 0, Operand::X}};
  map.strideBytes = {{LaunchValue::Kind::StrideBytes, 0, Operand::X}};
  map.box = {128, 16};
  launch.tensorMaps = {map};
  launch.parameters = {{KernelParameter::Kind::TensorMap, 0, Operand::X},
                       {KernelParameter::Kind::Pointer, 0, Operand::Offsets},
                       {KernelParameter::Kind::Pointer, 0, Operand::Y},
                       {KernelParameter::Kind::Pointer, 0, Operand::Workspace},
                       {KernelParameter::Kind::Rows, 0, Operand::X},
                       {KernelParameter::Kind::Stride, 0, Operand::Y}};
  std::string text = body;
  text.replace(text.find("COLUMNS"), 7, columns);
  artifact.source =
      kernelSource("const __grid_constant__ TensorMap xMap, const void *offsets, void *y, "
                   "void *queue, int rows, long long yStride",
                   text);
  return artifact;
}

struct Tensors {
  static constexpr int64_t rows = 41, xStride = 144, yStride = 20;
  Buffer x{"x", (rows - 1) * xStride + k, false}, offsets{"offsets", 4 * (experts + 1), false};
  Buffer y{"y", ((rows - 1) * yStride + n) * 4, true}, workspace{"workspace", 16, true};
  GemmArguments arguments;

  Tensors() {
    for (int64_t i = 0; i < x.bytes(); ++i)
      x.data()[i] = static_cast<uint8_t>(i * 11);
    offsets.as<int>()[0] = 0;
    offsets.as<int>()[1] = 17;
    offsets.as<int>()[2] = rows;
    arguments.x = {x.data(), xStride};
    arguments.offsets = {offsets.data(), 0};
    arguments.y = {y.data(), yStride};
    arguments.workspace = workspace.data();
    arguments.workspaceBytes = 16;
    arguments.rows = rows;
  }
};

} // namespace

TEST_CASE("an artifact runs on host tensors") {
  Result<std::unique_ptr<Emulator>> emulator = Emulator::create(testOptions());
  REQUIRE(emulator);
  const Artifact artifact = makeArtifact("16");
  Tensors tensors;
  for (int launch = 0; launch < 2; ++launch) { // the second finds the queue as the first left it
    Result<EmulatorReport> report = (*emulator)->launch(artifact, tensors.arguments);
    REQUIRE_MESSAGE(report, report.error().text());
    CHECK(report->blocks == 4);
    CHECK(report->tmaLoads == 3);
    for (int64_t r = 0; r < Tensors::rows; ++r)
      for (int64_t c = 0; c < Tensors::yStride && r * Tensors::yStride + c < tensors.y.bytes() / 4;
           ++c) {
        float &value = tensors.y.as<float>()[r * Tensors::yStride + c];
        if (c >= n) { // between rows nothing is written
          CHECK(*reinterpret_cast<uint32_t *>(&value) == 0xa5a5a5a5);
          continue;
        }
        int expected = r < 17 ? 0 : 17;
        for (int64_t i = 0; i < k; ++i)
          expected += tensors.x.data()[r * Tensors::xStride + i];
        CHECK(value == float(expected));
        value = 0;
      }
  }
  tensors.arguments.rows = 0;
  Result<EmulatorReport> nothing = (*emulator)->launch(artifact, tensors.arguments);
  REQUIRE(nothing);
  CHECK(nothing->blocks == 0);
}

TEST_CASE("a store past the last row's columns is out of the operand's bounds") {
  // One host thread: blocks run in order, and the first to fail is the first there is.
  EmulatorOptions options = testOptions();
  options.threads = 1;
  Result<std::unique_ptr<Emulator>> emulator = Emulator::create(options);
  REQUIRE(emulator);
  Tensors tensors;
  Result<EmulatorReport> report = (*emulator)->launch(makeArtifact("17"), tensors.arguments);
  REQUIRE(!report);
  INFO(report.error().text());
  CHECK(contains(
      report.error().text(),
      "st_global_f32: 4 bytes at offset 64 of y reach past the 64 bytes of row 0 (stride 80)"));
}

TEST_CASE("launch data that does not fit the kernel is refused before it runs") {
  Result<std::unique_ptr<Emulator>> emulator = Emulator::create(testOptions());
  REQUIRE(emulator);
  Tensors tensors;
  Artifact artifact = makeArtifact("16");
  std::swap(artifact.launch.parameters[3], artifact.launch.parameters[4]);
  Result<EmulatorReport> report = (*emulator)->launch(artifact, tensors.arguments);
  REQUIRE(!report);
  CHECK(contains(report.error().text(),
                 "parameter 3 of the kernel has 8 bytes, the launch data says 4"));
}

TEST_CASE("an emulator needs a folder and a compiler that runs") {
  EmulatorOptions options = testOptions();
  options.compiler = "no-such-compiler";
  Result<std::unique_ptr<Emulator>> emulator = Emulator::create(options);
  REQUIRE(!emulator);
  CHECK(emulator.error().code == ErrorCode::Unavailable);
  options.workFolder.clear();
  emulator = Emulator::create(options);
  REQUIRE(!emulator);
  CHECK(emulator.error().code == ErrorCode::InvalidArgument);
}

TEST_CASE("units that are there need no compiler") {
  EmulatorOptions options = testOptions();
  options.workFolder += "-kept";
  Result<std::unique_ptr<Emulator>> maker = Emulator::create(options);
  REQUIRE(maker);
  Tensors tensors;
  REQUIRE((*maker)->launch(makeArtifact("16"), tensors.arguments));
  Result<emulated::HostCompiler> compiler = emulated::findCompiler("", options.workFolder);
  REQUIRE(compiler);
  options.compiler = compiler->path;
  options.compilerVersion = compiler->version;
  const std::string path = std::getenv("PATH");
  setenv("PATH", "/nowhere", 1);
  Result<std::unique_ptr<Emulator>> user = Emulator::create(options);
  Result<EmulatorReport> known = Error{}, other = Error{};
  if (user) {
    known = (*user)->launch(makeArtifact("16"), tensors.arguments);
    other = (*user)->launch(makeArtifact("17 + 0 * 23"), tensors.arguments);
  }
  setenv("PATH", path.c_str(), 1);
  CHECK_MESSAGE(known, known.error().text());
  CHECK(!other);
}

// g++ 11 is one.
TEST_CASE("a compiler that gives variables no pattern will do") {
  EmulatorOptions options = testOptions();
  options.workFolder += "-plain";
  std::filesystem::create_directories(options.workFolder);
  options.compiler = options.workFolder + "/plain-c++";
  std::ofstream(options.compiler)
      << "#!/bin/sh\ncase \"$*\" in *-ftrivial-auto-var-init*) exit 1 ;; "
         "esac\nexec c++ \"$@\"\n";
  std::filesystem::permissions(options.compiler, std::filesystem::perms::owner_all);
  Result<std::unique_ptr<Emulator>> emulator = Emulator::create(options);
  REQUIRE(emulator);
  Tensors tensors;
  Result<EmulatorReport> report = (*emulator)->launch(makeArtifact("16"), tensors.arguments);
  CHECK_MESSAGE(report, report.error().text());
}

// Units must not lean on one compiler: whatever is found besides the default one gives the same
// values.
TEST_CASE("other compilers and debug flags give the same results") {
  for (const char *compiler : {"g++", "clang++"}) {
    CAPTURE(compiler);
    EmulatorOptions options = testOptions();
    options.compiler = compiler;
    options.compilerFlags = {"-g", "-O0"};
    Result<std::unique_ptr<Emulator>> emulator = Emulator::create(options);
    if (!emulator) {
      MESSAGE(compiler, " is not on this machine");
      continue;
    }
    Tensors tensors;
    Result<EmulatorReport> report = (*emulator)->launch(makeArtifact("16"), tensors.arguments);
    REQUIRE_MESSAGE(report, report.error().text());
    int expected = 17;
    for (int64_t i = 0; i < k; ++i)
      expected += tensors.x.data()[40 * Tensors::xStride + i];
    CHECK(tensors.y.as<float>()[40 * Tensors::yStride + 15] == float(expected));
  }
}
