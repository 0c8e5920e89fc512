// What a launch is refused for, and the grid and parameters of those that are not.
#include "runtime/Arguments.h"

#include "Samples.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdint>

using namespace moejit;

namespace {

void *at(uint64_t address) { return reinterpret_cast<void *>(address); }

/// Legal arguments at made-up addresses: nothing reads them.
GemmArguments legal(int64_t rows = 100) {
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

Result<void> check(const GemmArguments &arguments) {
  return checkArguments(samples::spec(), samples::launchData(), arguments);
}

/// The message of the refusal, or "" when there is none.
std::string refusal(const GemmArguments &arguments) {
  Result<void> result = check(arguments);
  if (result)
    return "";
  CHECK(result.error().code == ErrorCode::InvalidArgument);
  CHECK_FALSE(result.error().notes.empty());
  return result.error().message;
}

} // namespace

TEST_CASE("legal arguments pass, packed and strided") {
  CHECK(refusal(legal()) == "");
  GemmArguments strided = legal();
  strided.x.rowStride = 528;
  strided.y.rowStride = 264;
  strided.xScales.rowStride = 104;
  CHECK(refusal(strided) == "");
}

TEST_CASE("the stride of a single row means nothing") {
  // PyTorch says anything of a dimension of one.
  GemmArguments arguments = legal(1);
  arguments.x.rowStride = 7;
  arguments.y.rowStride = 3;
  CHECK(refusal(arguments) == "");
  CHECK(rowStrideElements(samples::spec(), arguments, Operand::X) == samples::spec().k);
  arguments.rows = 2;
  CHECK(refusal(arguments) != "");
}

// sglang #38773: an idle rank has no rows, and its empty tensors have null pointers.
TEST_CASE("no rows succeed with null pointers, rows do not") {
  GemmArguments idle;
  CHECK(refusal(idle) == "");
  GemmArguments missing = legal();
  missing.x.data = nullptr;
  CHECK(refusal(missing) == "x: the pointer is null with 100 rows");
  missing = legal();
  missing.offsets.data = nullptr;
  CHECK(refusal(missing) == "offsets: the pointer is null with 100 rows");
  // Operands that the kernel does not read may be anything.
  GemmArguments unused = legal();
  unused.counts.data = at(3);
  CHECK(refusal(unused) == "");
}

TEST_CASE("row counts are bounded") {
  GemmArguments arguments = legal(-1);
  CHECK(refusal(arguments) == "rows: -1 is out of range");
  arguments.rows = int64_t(1) << 31;
  CHECK(refusal(arguments) == "rows: 2147483648 is out of range");
  // Rounded up to whole tiles, it would leave 32 bits inside the kernel.
  arguments.rows = INT32_MAX;
  CHECK(refusal(arguments) == "rows: 2147483647 is out of range");
  arguments.rows = maxLaunchRows + 1;
  CHECK(refusal(arguments) == "rows: 2146434817 is out of range");
  arguments = legal();
  arguments.smLimit = -1;
  CHECK(refusal(arguments) == "smLimit: -1 is negative");
}

// Liger-Kernel #1248: more than 2^31 elements of output are ordinary.
TEST_CASE("outputs past 2^31 elements pass") {
  GemmArguments arguments = legal(maxLaunchRows);
  arguments.x.data = at(uint64_t(1) << 50);
  arguments.y.data = at(uint64_t(2) << 50);
  arguments.xScales.data = at(uint64_t(3) << 50);
  CHECK(refusal(arguments) == "");
}

TEST_CASE("misaligned addresses and strides name operand, value and limit") {
  GemmArguments arguments = legal();
  arguments.x.data = at(0x10000008);
  CHECK(refusal(arguments) == "x: address 0x10000008 is not a multiple of 16");
  arguments = legal();
  arguments.offsets.data = at(0x50000002);
  CHECK(refusal(arguments) == "offsets: address 0x50000002 is not a multiple of 4");
  arguments = legal();
  arguments.x.rowStride = 520;
  CHECK(refusal(arguments) == "x: row stride of 520 bytes is not a multiple of 16");
  CHECK(check(arguments).error().notes[0] == "the next legal row stride is 528 elements");
  arguments = legal();
  arguments.y.rowStride = 260;
  CHECK(refusal(arguments) == "y: row stride of 520 bytes is not a multiple of 16");
  arguments = legal();
  arguments.xScales.rowStride = 101;
  CHECK(refusal(arguments) == "xScales: row stride of 404 bytes is not a multiple of 16");
}

TEST_CASE("strides too small, negative or not taken by the kernel are refused") {
  GemmArguments arguments = legal();
  arguments.x.rowStride = 496;
  CHECK(refusal(arguments) == "x: row stride 496 is less than the 512 elements of a row");
  arguments.x.rowStride = -512;
  CHECK(refusal(arguments) == "x: row stride -512 is negative");
  arguments = legal();
  arguments.xScales.rowStride = 96; // stored [K / 128, S]: a row is 100 scales
  CHECK(refusal(arguments) == "xScales: row stride 96 is less than the 100 elements of a row");
  arguments = legal();
  arguments.w.rowStride = 528;
  CHECK(refusal(arguments) == "w: row stride 528, but this kernel takes packed rows");
  arguments.w.rowStride = 512;
  CHECK(refusal(arguments) == "");
  arguments = legal();
  arguments.y.rowStride = INT64_MAX - 7;
  CHECK(refusal(arguments).find("leaves the address space") != std::string::npos);
}

TEST_CASE("an output over an input is refused") {
  GemmArguments arguments = legal();
  arguments.y.data = at(0x10000000 + 512 * 100 - 16);
  CHECK(refusal(arguments).find("overlaps x at [0x10000000, 0x1000c800)") != std::string::npos);
  arguments.y.data = at(0x10000000 + 512 * 100);
  CHECK(refusal(arguments) == "");
  arguments.y.data = at(0x50000000 - 512 * 99 - 16);
  CHECK(refusal(arguments).find("overlaps offsets") != std::string::npos);
}

// x and y may be column ranges of one wider buffer: their rows interleave and never touch.
TEST_CASE("interleaved views of one buffer pass when no byte is shared") {
  GemmArguments arguments = legal();
  arguments.x.rowStride = 1024;
  arguments.y.rowStride = 512; // 1024 bytes
  arguments.y.data = at(0x10000000 + 512);
  CHECK(refusal(arguments) == "");
  std::swap(arguments.x.data, arguments.y.data);
  CHECK(refusal(arguments) == "");
  arguments.x.data = at(0x10000000 + 496);
  CHECK(refusal(arguments).find("overlaps x") != std::string::npos);
  std::swap(arguments.x.data, arguments.y.data);
  CHECK(refusal(arguments).find("overlaps x") != std::string::npos);
}

TEST_CASE("a workspace must be there, large enough and apart from all operands") {
  LaunchData launch = samples::launchData();
  launch.workspace = {{Operand::Workspace, 256, 0, true}};
  GemmArguments arguments = legal();
  auto message = [&] {
    Result<void> result = checkArguments(samples::spec(), launch, arguments);
    return result ? std::string() : result.error().message;
  };
  CHECK(message() == "workspace: 0 bytes at 0x0, the kernel needs 256 for 100 rows");
  arguments.workspace = at(0x70000000);
  arguments.workspaceBytes = 255;
  CHECK(message() == "workspace: 255 bytes at 0x70000000, the kernel needs 256 for 100 rows");
  arguments.workspaceBytes = 256;
  CHECK(message() == "");
  arguments.workspace = at(0x60000010);
  CHECK(message() == "y: overlaps the workspace at 0x60000010");
  arguments.workspace = arguments.w.data;
  CHECK(message() == fmt::format("w: overlaps the workspace at {:#x}",
                                 reinterpret_cast<uint64_t>(arguments.w.data)));
  arguments.workspace = at(0x70000008);
  CHECK(message() == "workspace: address 0x70000008 is not a multiple of 16");
}

TEST_CASE("error words of a checked kernel must be there and apart from all operands") {
  LaunchData launch = samples::launchData();
  GemmArguments arguments = legal();
  auto message = [&] {
    Result<void> result = checkArguments(samples::spec(), launch, arguments);
    return result ? std::string() : result.error().message;
  };
  CHECK(message() == ""); // this kernel has none
  launch.parameters.push_back({KernelParameter::Kind::Pointer, 0, Operand::Errors});
  CHECK(message() == "errors: the pointer is null with 100 rows");
  arguments.errors.data = at(0x70000004);
  CHECK(message() == "errors: address 0x70000004 is not a multiple of 8");
  arguments.errors.data = at(0x70000008);
  CHECK(message() == "");
  for (uint64_t inside : {0x10000000, 0x60000008, 0x50000010}) {
    arguments.errors.data = at(inside);
    CHECK(message().find("errors: [") == 0);
    CHECK(message().find("overlaps") != std::string::npos);
  }
}

TEST_CASE("masked buffers are passed whole") {
  Spec spec = samples::spec();
  spec.dispatch = Dispatch::Masked;
  spec.maxRows = 64;
  spec.xScales.granule = {Granule::of(1), Granule::of(1), Granule::of(128)};
  spec.xScales.order = ScaleOrder::RowMajor;
  LaunchData launch = samples::launchData();
  GemmArguments arguments = legal(100);
  Result<void> part = checkArguments(spec, launch, arguments);
  REQUIRE_FALSE(part);
  CHECK(part.error().message == "rows: 100, but the masked buffers have 256 (4 experts of 64)");
  arguments.rows = 256;
  CHECK(checkArguments(spec, launch, arguments));
}

TEST_CASE("layouts follow the spec") {
  Spec spec = samples::spec();
  OperandLayout scales = operandLayout(spec, Operand::XScales, 101);
  CHECK(scales.rows == 4);
  CHECK(scales.columns == 101);
  CHECK(scales.packedStride == 104); // the next multiple of 16 bytes
  spec.xScales.order = ScaleOrder::RowMajor;
  spec.xScales.alignBytes = 0;
  scales = operandLayout(spec, Operand::XScales, 101);
  CHECK(scales.rows == 101);
  CHECK(scales.packedStride == 4);
  CHECK(operandLayout(spec, Operand::WScales, 101).rows == 4 * 2);
  CHECK(operandLayout(spec, Operand::WScales, 101).columns == 4);
  CHECK(operandLayout(spec, Operand::Y, 101).elementBytes == 2);
  CHECK(operandLayout(spec, Operand::Offsets, 101).columns == 5);
  CHECK(operandLayout(spec, Operand::ExpertIds, 101).columns == 101);
}

// Tiles = (ceil(S / 128) + min(E, S) + 2 zeroed groups) · ceil(256 / 256), at most one block an SM.
TEST_CASE("the grid is the least of tiles and SMs") {
  Spec spec = samples::spec();
  LaunchData launch = samples::launchData();
  auto blocks = [&](int64_t rows, int64_t sms, int64_t limit = 0) {
    Result<uint32_t> result = gridBlocks(spec, launch, rows, sms, limit);
    return result ? int64_t(*result) : -1;
  };
  CHECK(blocks(0, 132) == 0);
  CHECK(blocks(1, 132) == 1 + 1 + 2);
  CHECK(blocks(100, 132) == 1 + 4 + 2);
  CHECK(blocks(129, 132) == 2 + 4 + 2);
  CHECK(blocks(1 << 20, 132) == 132);
  CHECK(blocks(1 << 20, 132, 100) == 100);
  CHECK(blocks(1 << 20, 132, 1000) == 132);
  CHECK(blocks(INT32_MAX, 132) == 132);
  spec.skipped = Skipped::Untouched;
  CHECK(blocks(1, 132) == 1 + 1);
  launch.grid.n = 257;
  CHECK(blocks(1, 132) == 2 * 2);
  launch.grid.blocksPerSm = 2;
  CHECK(blocks(1 << 20, 132) == 264);
  launch.cluster = 2;
  launch.grid.blocksPerSm = 1;
  launch.grid.n = 256;
  CHECK(blocks(300, 132) == 8); // 3 + 4 tiles, rounded up to whole clusters
  CHECK(blocks(1 << 20, 131) == 130);
  CHECK(blocks(1 << 20, 132, 1) == -1); // half a cluster cannot run
}

TEST_CASE("a prepared launch holds every number of it") {
  Artifact artifact = samples::artifact();
  GemmArguments arguments = legal(100);
  arguments.y.rowStride = 264;
  Result<LaunchPlan> plan = prepareLaunch(artifact, arguments, 132);
  REQUIRE(plan);
  CHECK(plan->blocks == 7);
  CHECK(plan->threads == 384);
  CHECK(plan->sharedBytes == 200000);
  REQUIRE(plan->tensorMaps.size() == 2);
  REQUIRE(plan->parameters.size() == 9);
  CHECK(plan->parameters[0].tensorMap == 0);
  CHECK(plan->parameters[1].tensorMap == 1);
  CHECK(plan->parameters[2].value == 0x20000000);
  CHECK(plan->parameters[5].value == 0x60000000);
  CHECK(plan->parameters[6].value == 100);
  CHECK(plan->parameters[7].value == 264);
  CHECK(plan->parameters[8].value == 100); // packed: 100 is a multiple of 4
}

TEST_CASE("a launch of no rows has no blocks") {
  Result<LaunchPlan> plan = prepareLaunch(samples::artifact(), GemmArguments(), 132);
  REQUIRE(plan);
  CHECK(plan->blocks == 0);
  CHECK(plan->parameters.empty());
}

TEST_CASE("launch data that cannot be launched is an error, not a crash") {
  auto code = [](void (*change)(LaunchData &)) {
    Artifact artifact = samples::artifact();
    change(artifact.launch);
    Result<LaunchPlan> plan = prepareLaunch(artifact, legal(), 132);
    return plan ? ErrorCode::Internal : plan.error().code;
  };
  CHECK(code([](LaunchData &l) { l.grid.tileM = 0; }) == ErrorCode::ParseError);
  CHECK(code([](LaunchData &l) { l.grid.tileN = -1; }) == ErrorCode::ParseError);
  // Tiles of them would not be counted in 64 bits.
  CHECK(code([](LaunchData &l) { l.grid.n = int64_t(1) << 40; }) == ErrorCode::ParseError);
  CHECK(code([](LaunchData &l) { l.grid.n = int64_t(1) << 30; }) == ErrorCode::Internal);
  CHECK(code([](LaunchData &l) { l.threads = 0; }) == ErrorCode::ParseError);
  CHECK(code([](LaunchData &l) { l.cluster = 0; }) == ErrorCode::ParseError);
  CHECK(code([](LaunchData &l) { l.parameters[0].recipe = 2; }) == ErrorCode::ParseError);
  CHECK(code([](LaunchData &l) { l.tensorMaps[0].box.clear(); }) == ErrorCode::ParseError);
  CHECK(code([](LaunchData &l) { l.tensorMaps[0].extents.clear(); }) == ErrorCode::ParseError);
}

TEST_CASE("scratch operands lie in the workspace, by rows, and are no tensors of the caller") {
  Artifact artifact = samples::quantizingArtifact();
  const LaunchData &launch = artifact.launch;
  CHECK(zeroedBytes(launch) == 128 + 8);
  CHECK(workspaceBytesPerRow(launch) == 528);
  CHECK(workspaceBytes(launch, 0) == 256);
  // 100 rows of codes end on a multiple of 128.
  CHECK(workspaceBytes(launch, 100) == 256 + 51200 + 1600);
  CHECK(workspaceBytes(launch, 3) == 256 + 1536 + 48);

  GemmArguments arguments = legal();
  arguments.xScales.data = nullptr;
  arguments.workspace = at(0x70000000);
  arguments.workspaceBytes = 256 + 51200 + 1599;
  Result<void> small = checkArguments(artifact.spec, launch, arguments);
  REQUIRE_FALSE(small);
  CHECK(small.error().message.find("the kernel needs 53056 for 100 rows") != std::string::npos);
  arguments.workspaceBytes += 1;
  Result<LaunchPlan> plan = prepareLaunch(artifact, arguments, 132);
  REQUIRE_MESSAGE(plan, (plan ? "" : plan.error().text()));
  CHECK(plan->zeroedBytes == 136);
  CHECK(plan->tensorMaps[2].address == 0x70000000 + 256);
  CHECK(plan->tensorMaps[2].strideBytes[0] == 512);
  CHECK(plan->parameters[2].value == 0x70000000 + 128);
  CHECK(plan->parameters[3].value == 0x70000000 + 256 + 51200);
  CHECK(plan->parameters[4].value == 4); // scales of a row: K / 128

  // x is given in bf16: its rows are twice as long.
  arguments.x.rowStride = 516;
  Result<void> odd = checkArguments(artifact.spec, launch, arguments);
  REQUIRE_FALSE(odd);
  CHECK(odd.error().message.find("x: row stride") != std::string::npos);
}

TEST_CASE("launch data with more maps or parameters than any kernel has are refused") {
  for (bool isMaps : {false, true}) {
    Artifact artifact = samples::artifact();
    LaunchData &launch = artifact.launch;
    if (isMaps)
      launch.tensorMaps.resize(maxTensorMaps + 1, launch.tensorMaps[0]);
    else
      launch.parameters.resize(maxKernelParameters + 1, launch.parameters[0]);
    Result<LaunchPlan> refused = prepareLaunch(artifact, legal(), 132);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::ParseError);
    launch.tensorMaps.resize(std::min(launch.tensorMaps.size(), maxTensorMaps));
    launch.parameters.resize(std::min(launch.parameters.size(), maxKernelParameters));
    CHECK(prepareLaunch(artifact, legal(), 132));
  }
}

TEST_CASE("words that are clean are not zeroed, where the kernel leaves them clean") {
  Artifact artifact = samples::quantizingArtifact();
  GemmArguments arguments = legal();
  arguments.xScales.data = nullptr;
  arguments.workspace = at(0x70000000);
  arguments.workspaceBytes = 1 << 20;
  for (bool cleans : {false, true})
    for (bool isClean : {false, true}) {
      artifact.launch.cleansWorkspace = cleans;
      arguments.workspaceIsClean = isClean;
      Result<LaunchPlan> plan = prepareLaunch(artifact, arguments, 132);
      REQUIRE(plan);
      CHECK(plan->zeroedBytes == (cleans && isClean ? 0 : 136));
    }
}

// What one kernel leaves zero no other of a shared workspace may write.
TEST_CASE("scratch that is not zeroed begins behind all words that any kernel zeroes") {
  LaunchData launch;
  launch.workspace = {{Operand::Counters, 8, 0, true}, {Operand::XQuantized, 0, 512, false}};
  CHECK(zeroedBytes(launch) == 8);
  CHECK(regionPlace(launch, Operand::XQuantized, 1).offset == WorkspaceRegion::unzeroedFrom);
  launch.workspace.erase(launch.workspace.begin());
  CHECK(zeroedBytes(launch) == 0);
  CHECK(regionPlace(launch, Operand::XQuantized, 1).offset == WorkspaceRegion::unzeroedFrom);
  CHECK(workspaceBytes(launch, 1) == WorkspaceRegion::unzeroedFrom + 512);
}

TEST_CASE("a kernel that uses scratch without a place in its workspace cannot be launched") {
  Artifact artifact = samples::quantizingArtifact();
  artifact.launch.workspace.pop_back();
  GemmArguments arguments = legal();
  arguments.workspace = at(0x70000000);
  arguments.workspaceBytes = 1 << 20;
  Result<LaunchPlan> plan = prepareLaunch(artifact, arguments, 132);
  REQUIRE_FALSE(plan);
  CHECK(plan.error().code == ErrorCode::ParseError);
  CHECK(plan.error().message.find("xQuantizedScales") != std::string::npos);
}
