// Kernels whose blocks share the steps along K of a tile: every dispatch form, parts of unlike
// length, the order of the sums, and what a plan may ask for.
#include "compiler/Pipeline.h"
#include "runtime/Arguments.h"
#include "tests/oracle/Fp8.h"
#include "tests/oracle/Random.h"
#include "tests/pipeline/Runner.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <regex>

using namespace moejit;
using namespace moejit::test;

namespace {

Spec blockScaled(Dispatch dispatch, int64_t k) {
  Spec spec;
  spec.dispatch = dispatch;
  spec.numExperts = dispatch == Dispatch::Eager ? 1 : 4;
  spec.maxRows = dispatch == Dispatch::Masked ? 150 : 0;
  spec.n = 328; // tiles of columns with a tail
  spec.k = k;
  spec.xScales.granule = {Granule::of(1), Granule::of(128)};
  spec.xScales.source = ScaleSource::Dynamic;
  spec.xScales.order = ScaleOrder::MnMajor;
  spec.xScales.alignBytes = 16;
  spec.wScales.granule = {Granule::of(1), Granule::of(128), Granule::of(128)};
  if (dispatch == Dispatch::Eager)
    spec.wScales.granule.erase(spec.wScales.granule.begin());
  if (dispatch == Dispatch::Masked)
    spec.xScales.granule.insert(spec.xScales.granule.begin(), Granule::of(1));
  return spec;
}

/// No scales along K: sums meet before they are scaled.
Spec channelByToken(ElementType out) {
  Spec spec;
  spec.numExperts = 4;
  spec.n = 264;
  spec.k = 400;
  spec.outType = out;
  spec.xScales.granule = {Granule::of(1), Granule::whole()};
  spec.xScales.source = ScaleSource::Dynamic;
  spec.wScales.granule = {Granule::of(1), Granule::of(1), Granule::whole()};
  return spec;
}

KernelPlan shared(int64_t splitK) {
  KernelPlan plan;
  plan.tileM = 64;
  plan.tileN = 128;
  plan.stages = 3;
  plan.raster = 2;
  plan.splitK = splitK;
  return plan;
}

void checkShared(const Spec &spec, const KernelPlan &plan, std::vector<LaunchCase> launches = {}) {
  Result<void> verified = verifyPlan(plan, spec, Target());
  REQUIRE_MESSAGE(bool(verified), (verified ? "" : verified.error().text()));
  Artifact artifact = build(spec, plan);
  CHECK(artifact.launch.cluster == plan.splitK);
  CHECK(artifact.source.find("st_async_v4_f32(") != std::string::npos);
  // One row is a tile of rows, as many more may be nobody's; each has its blocks.
  const int64_t columnTiles = (spec.n + plan.tileN - 1) / plan.tileN;
  const int64_t rowTiles = 2 + (spec.skipped == Skipped::Zeroed ? 2 : 0);
  Result<uint32_t> blocks = gridBlocks(spec, artifact.launch, 1, 1 << 20, 0);
  REQUIRE(blocks);
  CHECK(*blocks == rowTiles * columnTiles * plan.splitK);
  for (LaunchCase &launch : edgeCases(spec, plan.tileM))
    launches.push_back(std::move(launch));
  checkAll(artifact, launches, "shared steps, " + canonicalText(spec) + "\n  " + planText(plan));
}

} // namespace

TEST_CASE("steps shared by blocks in every dispatch form") {
  // Four steps of K are two a block, or one.
  for (Dispatch dispatch :
       {Dispatch::Grouped, Dispatch::Masked, Dispatch::Eager, Dispatch::Batched})
    for (SchedulerKind scheduler : {SchedulerKind::Queue, SchedulerKind::Static}) {
      KernelPlan plan = shared(scheduler == SchedulerKind::Queue ? 2 : 4);
      plan.scheduler = scheduler;
      std::vector<LaunchCase> launches;
      if (dispatch == Dispatch::Masked)
        launches.push_back({"no row", 600, oracle::Routing::fromCounts({0, 0, 0, 0})});
      checkShared(blockScaled(dispatch, 400), plan, launches);
    }
}

TEST_CASE("steps that blocks do not share evenly") {
  // Nine steps: 4 and 5; 2, 2, 2 and 3. Seven: 1, 2, 2 and 2.
  for (int64_t splitK : {2, 4})
    checkShared(blockScaled(Dispatch::Grouped, 1104), shared(splitK));
  checkShared(blockScaled(Dispatch::Batched, 896), shared(4));
}

TEST_CASE("sums of blocks for tiles of every shape") {
  const Spec spec = blockScaled(Dispatch::Grouped, 528);
  std::vector<KernelPlan> plans;
  auto add = [&](int64_t splitK, auto change) {
    plans.push_back(shared(splitK));
    change(plans.back());
  };
  // Several pieces of an accumulator, fragments of rows and of columns.
  add(2, [](KernelPlan &plan) {
    plan.tileM = 128;
    plan.tileN = 256;
    plan.stages = 2;
  });
  add(4, [](KernelPlan &plan) {
    plan.tileM = 192;
    plan.warpgroups = 3;
    plan.split = WarpgroupSplit::Rows;
    plan.consumerRegs = 152;
    plan.stages = 2;
  });
  // The tile of a decode step.
  add(4, [](KernelPlan &plan) {
    plan.tileN = 64;
    plan.warpgroups = 1;
    plan.stages = 6;
    plan.liveRows = 16;
    plan.weightPolicy = CachePolicy::EvictFirst;
  });
  // Rows as columns, of a few widths or one.
  add(2, [](KernelPlan &plan) {
    plan.swapOperands = true;
    plan.fitRows = 16;
  });
  add(2, [](KernelPlan &plan) {
    plan.tileM = 192;
    plan.swapOperands = true;
    plan.split = WarpgroupSplit::Rows;
    plan.store = StorePath::Direct;
  });
  add(2, [](KernelPlan &plan) {
    plan.specializeWarps = false;
    plan.prefetchTile = false;
    plan.skipEmptyRows = false;
    plan.store = StorePath::Direct;
    plan.stages = 1;
  });
  add(2, [](KernelPlan &plan) {
    plan.tileM = 128;
    plan.checked = true;
  });
  for (const KernelPlan &plan : plans)
    checkShared(spec, plan);
}

TEST_CASE("sums of blocks that are scaled, quantized or stored another way") {
  for (ElementType out : {ElementType::F16, ElementType::F32}) {
    Spec spec = channelByToken(out);
    KernelPlan plan = shared(2);
    plan.store = out == ElementType::F32 ? StorePath::Direct : StorePath::Staged;
    checkShared(spec, plan);
    spec.accumulate = Accumulate::Exact;
    plan.checked = true;
    checkShared(spec, plan);
  }
  Spec spec = blockScaled(Dispatch::Grouped, 400);
  spec.quantizeFrom = ElementType::BF16;
  checkShared(spec, shared(4));
}

TEST_CASE("shared steps without any of the passes that follow") {
  const Spec spec = blockScaled(Dispatch::Grouped, 400);
  KernelPlan plan = shared(2);
  plan.unrollSlots = true;
  plan.weightPolicy = CachePolicy::EvictFirst;
  plan.liveRows = 16;
  std::vector<LaunchCase> launches;
  for (const LaunchCase &launch : edgeCases(spec, plan.tileM))
    if (launch.name.starts_with("empty in") || launch.name.starts_with("rows before"))
      launches.push_back(launch);
  REQUIRE(launches.size() == 2);
  std::vector<std::string> others;
  for (const std::string &pass : optionalPasses())
    if (pass != "tile-split-k")
      others.push_back(pass);
  checkAll(build(spec, plan, others), launches, "shared steps, without all others");
  for (const std::string &pass : others)
    checkAll(build(spec, plan, {pass}), launches, "shared steps, without " + pass);
}

namespace {

/// What the steps along K of a column sum to: 64 times 448 · 448, which 1/4 is lost beside, or its
/// opposite, or 1/4, or nothing.
constexpr float stepSums[] = {12845056, -12845056, 0.25, 0};
using Steps = std::vector<int>; // of a column, into stepSums

/// The sum of `steps` from the first to the last, each addition rounded.
float inOrder(const Steps &steps) {
  float sum = 0;
  for (int step : steps)
    sum += stepSums[step];
  return sum;
}

Spec unscaled(int64_t steps) {
  Spec spec;
  spec.dispatch = Dispatch::Eager;
  spec.n = 128;
  spec.k = 128 * steps;
  spec.outType = ElementType::F32;
  spec.xScales.granule = {Granule::whole(), Granule::whole()};
  spec.wScales.granule = {Granule::whole(), Granule::whole()};
  return spec;
}

/// Every column's steps, drawn.
std::vector<Steps> drawnColumns(const Spec &spec) {
  oracle::Random random(7);
  std::vector<Steps> columns(static_cast<size_t>(spec.n));
  for (Steps &steps : columns)
    for (int64_t k = 0; k < spec.k; k += 128)
      steps.push_back(static_cast<int>(random.below(4)));
  return columns;
}

/// Runs `artifact`, whose blocks take one of `columns`' steps each. What is wrong with y, or empty.
std::string wrongSums(const Artifact &artifact, const std::vector<Steps> &columns) {
  constexpr int64_t rows = 20; // of one warp whole ones, of the next eight less some
  const Spec &spec = artifact.spec;
  oracle::HostProblem problem;
  problem.spec = spec;
  problem.rows = rows;
  problem.xStride = spec.k;
  problem.yStride = spec.n;
  const size_t k = static_cast<size_t>(spec.k);
  problem.x.resize(rows * k);
  for (size_t i = 0; i < problem.x.size(); ++i)
    problem.x[i] = oracle::encodeE4M3(i % 128 < 64 ? 448 : 1);
  problem.w.resize(columns.size() * k);
  for (size_t i = 0; i < problem.w.size(); ++i) {
    const float sum = stepSums[columns[i / k][i % k / 128]];
    const bool isLarge = std::abs(sum) > 1;
    const float value =
        isLarge ? (i % 128 < 64 ? std::copysign(448.F, sum) : 0) : (i % 128 == 64 ? sum : 0);
    problem.w[i] = oracle::encodeE4M3(value);
  }
  float one = 1;
  oracle::HostOutput output = oracle::HostOutput::make(problem);
  GemmArguments arguments;
  arguments.rows = rows;
  arguments.x = {problem.x.data(), problem.xStride};
  arguments.w.data = problem.w.data();
  arguments.xScales.data = arguments.wScales.data = &one;
  arguments.y = {output.data(), problem.yStride};
  std::vector<uint32_t> workspace(workspaceBytes(artifact.launch, rows) / 4 + 4, UINT32_MAX);
  arguments.workspace = workspace.data();
  arguments.workspaceBytes = workspaceBytes(artifact.launch, rows);
  // A cluster of eight wants as many SMs.
  EmulatorOptions options = emulatorOptions(ThreadOrder::Random);
  options.smCount = artifact.launch.cluster;
  Result<std::unique_ptr<Emulator>> device = Emulator::create(options);
  REQUIRE(device);
  Result<EmulatorReport> report = (*device)->launch(artifact, arguments);
  if (!report)
    return report.error().text();
  for (int64_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < columns.size(); ++column) {
      float sum = 0;
      const auto *y = static_cast<const uint8_t *>(output.data());
      std::memcpy(&sum, y + 4 * (row * spec.n + int64_t(column)), 4);
      if (sum != inOrder(columns[column]))
        return fmt::format("[{}, {}] is {}, expected {}", row, column, sum,
                           inOrder(columns[column]));
    }
  return oracle::findOverwrittenCanary(problem, output);
}

Artifact withSource(Artifact artifact, const std::string &what, const std::string &by) {
  const std::string before = artifact.source;
  artifact.source = std::regex_replace(before, std::regex(what), by);
  REQUIRE_MESSAGE(artifact.source != before, what);
  return artifact;
}

} // namespace

TEST_CASE("sums of blocks are added in the order of their parts, and none is lost") {
  for (int64_t splitK : {2, 4, 8}) {
    CAPTURE(splitK);
    const Spec spec = unscaled(splitK);
    std::vector<Steps> columns = drawnColumns(spec);
    KernelPlan plan = shared(splitK);
    plan.store = StorePath::Direct;
    for (bool isSwapped : {false, true}) {
      CAPTURE(isSwapped);
      plan.swapOperands = isSwapped;
      plan.fitRows = isSwapped ? 32 : 0;
      const std::string wrong = wrongSums(build(spec, plan), columns);
      CHECK_MESSAGE(wrong.empty(), wrong);
    }
  }
}

TEST_CASE("sums of blocks in another order, without a block, or over each other are seen") {
  const Spec spec = unscaled(4);
  const std::vector<Steps> columns = drawnColumns(spec);
  KernelPlan plan = shared(4); // what a thread has comes in two pieces
  plan.store = StorePath::Direct;
  const Artifact artifact = build(spec, plan);
  REQUIRE(wrongSums(artifact, columns).empty());
  const std::string overBlocks = R"(for \(int (v\d+) = 1; \1 < 4; \+\+\1\))";
  CHECK(wrongSums(withSource(artifact, overBlocks, "for (int $1 = 3; $1 > 0; --$1)"), columns)
            .find("expected") != std::string::npos);
  CHECK(wrongSums(withSource(artifact, overBlocks, "for (int $1 = 2; $1 < 4; ++$1)"), columns)
            .find("expected") != std::string::npos);
  // A block takes the steps of the one before it, the first none.
  CHECK(wrongSums(withSource(artifact, R"((firstStep|stepsEnd) = ([^;]*);)", "$1 = ($2) - 1;"),
                  columns) != "");
  // Nobody waits for a buffer to be read before it is written again.
  const std::string overwritten = wrongSums(
      withSource(artifact, R"(mbarrier_wait_cluster\(sumBarrier, \w+ \^ 1\);)", ""), columns);
  INFO(overwritten);
  CHECK(overwritten.find("st_async_v4_f32") != std::string::npos);
  // Half of what comes is waited for.
  CHECK(wrongSums(withSource(artifact, R"((vectorsToSum\w*) \* 1536)", "$1 * 768"), columns) != "");
}

TEST_CASE("plans of shared steps that cannot work are refused with what would") {
  auto refusal = [](const Spec &spec, auto change) {
    KernelPlan plan = shared(2);
    change(plan);
    Result<void> verified = verifyPlan(plan, spec, Target());
    return verified ? std::string() : verified.error().text();
  };
  const Spec spec = blockScaled(Dispatch::Grouped, 400);
  CHECK(refusal(spec, [](KernelPlan &) {}).empty());
  CHECK(refusal(blockScaled(Dispatch::Batched, 400), [](KernelPlan &) {}).empty());
  auto contains = [](const std::string &text, const std::string &part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  contains(refusal(spec, [](KernelPlan &plan) { plan.splitK = 3; }),
           "splitK is 3, expected 1, 2, 4 or 8");
  contains(refusal(spec, [](KernelPlan &plan) { plan.splitK = 16; }), "splitK is 16");
  contains(refusal(spec, [](KernelPlan &plan) { plan.cluster = 2; }),
           "neighbouring ones; not both");
  contains(refusal(spec, [](KernelPlan &plan) { plan.tailRows = 8; }), "tiles without tails");
  contains(refusal(spec, [](KernelPlan &plan) { plan.splitK = 8; }),
           "8 blocks share the 4 steps along K");
  // Buffers for the sums of others take a slot of the ring.
  KernelPlan full = shared(1);
  full.stages = 8;
  CHECK(bool(verifyPlan(full, spec, Target())));
  contains(refusal(spec, [](KernelPlan &plan) { plan.stages = 8; }), "bytes of shared memory");
  Spec quantize = spec;
  quantize.computation = Computation::Quantize;
  contains(refusal(quantize, [](KernelPlan &plan) { plan.tileM = 32; }), "no steps along K");
}
