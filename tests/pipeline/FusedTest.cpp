// Launches that quantize their own activations before the first tile, and those that map expert
// ids: the whole way from a Spec to values, on the emulator.
#include "compiler/Pipeline.h"
#include "runtime/Rules.h"
#include "tests/pipeline/Runner.h"

#include <doctest/doctest.h>

#include <functional>

using namespace moejit;
using namespace moejit::test;
using oracle::Routing;

namespace {

const Granule one = Granule::of(1), whole = Granule::whole();

Spec fusedSpec(Dispatch dispatch, Granule rows, Granule k, ElementType from) {
  Spec spec;
  spec.dispatch = dispatch;
  spec.numExperts = dispatch == Dispatch::Eager ? 1 : 3;
  spec.n = 200;
  spec.k = 336; // two steps and a tail
  spec.quantizeFrom = from;
  spec.xScales.granule = {rows, k};
  spec.xScales.source = ScaleSource::Dynamic;
  spec.wScales.granule = {one, Granule::of(128), Granule::of(128)};
  if (dispatch == Dispatch::Eager)
    spec.wScales.granule.erase(spec.wScales.granule.begin());
  if (dispatch == Dispatch::Masked) {
    spec.maxRows = 75;
    spec.xScales.granule.insert(spec.xScales.granule.begin(), one);
  }
  return spec;
}

Spec with(Spec spec, const std::function<void(Spec &)> &edit) {
  edit(spec);
  return spec;
}

KernelPlan planOf(const Spec &spec) { return planRanges(spec, Target())[0].plan; }

LaunchCase fewRows(const Spec &spec, int64_t rows) {
  if (spec.dispatch == Dispatch::Masked)
    return {"some rows of every buffer", spec.numExperts * spec.maxRows,
            Routing::fromCounts({rows, 0, 2})};
  return {"few rows", rows,
          spec.dispatch == Dispatch::Eager ? Routing() : Routing::fromCounts({rows / 2, 0, 1})};
}

/// The output of `artifact` over `problem`, whose x is given as it is or quantized.
std::vector<uint8_t> outputOf(const Artifact &artifact, oracle::HostProblem problem) {
  const Spec &spec = artifact.spec;
  oracle::HostOutput output = oracle::HostOutput::make(problem);
  std::vector<uint8_t> xScales = oracle::storedScales(spec.xScales, problem.xScales);
  std::vector<uint8_t> wScales = oracle::storedScales(spec.wScales, problem.wScales);
  GemmArguments arguments;
  arguments.rows = problem.rows;
  if (spec.quantizeFrom) {
    arguments.x = {problem.xSource.data(), problem.xSourceStride};
  } else {
    arguments.x = {problem.x.data(), problem.xStride};
    arguments.xScales = {xScales.data(), spec.xScales.kGranule() ? problem.xScaleStride : 0};
  }
  arguments.w.data = problem.w.data();
  arguments.wScales.data = wScales.data();
  arguments.offsets.data = problem.offsets.data();
  arguments.expertIds.data = problem.expertIds.data();
  arguments.counts.data = problem.counts.data();
  arguments.y = {output.data(), problem.yStride};
  arguments.workspaceBytes = workspaceBytes(artifact.launch, problem.rows);
  std::vector<uint64_t> workspace(arguments.workspaceBytes / 8 + 2);
  arguments.workspace = workspace.data();
  Result<EmulatorReport> report = emulator().launch(artifact, arguments);
  if (!report)
    FAIL_CHECK(report.error().text());
  return output.bytes;
}

} // namespace

TEST_CASE("a launch that quantizes gives the bits of quantization and GEMM") {
  struct Variant {
    const char *why;
    Spec spec;
  };
  const Variant variants[] = {
      {"groups, a bf16 decoder",
       fusedSpec(Dispatch::Batched, one, Granule::of(128), ElementType::BF16)},
      {"tokens", fusedSpec(Dispatch::Batched, one, whole, ElementType::F16)},
      {"MX groups", with(fusedSpec(Dispatch::Batched, one, Granule::of(32), ElementType::F32),
                         [](Spec &s) {
                           s.xScales.type = ElementType::F8E8M0FNU;
                           s.xType = ElementType::F8E5M2;
                         })},
      {"sorted rows", with(fusedSpec(Dispatch::Grouped, one, Granule::of(128), ElementType::BF16),
                           [](Spec &s) {
                             s.xScales.order = ScaleOrder::MnMajor; // of its own scales: no matter
                             s.xScales.alignBytes = 16;
                           })},
      {"one expert, one scale", fusedSpec(Dispatch::Eager, whole, whole, ElementType::BF16)},
      {"buffers", fusedSpec(Dispatch::Masked, one, Granule::of(128), ElementType::F16)},
  };
  for (const Variant &variant : variants) {
    CAPTURE(variant.why);
    REQUIRE(checkSpec(variant.spec, Target()).empty());
    const Artifact fused = build(variant.spec, planOf(variant.spec));
    const Spec gemm = with(variant.spec, [](Spec &s) { s.quantizeFrom.reset(); });
    const Artifact separate = build(gemm, planOf(gemm));
    REQUIRE(!fused.source.empty());
    REQUIRE(!separate.source.empty());
    for (int64_t rows : {1, 70}) {
      const LaunchCase launch = fewRows(variant.spec, rows);
      const oracle::HostProblem problem = problemOf(variant.spec, launch, 7);
      LaunchResult result = run(fused, problem, ThreadOrder::Random);
      CHECK_MESSAGE(result.wrong.empty(), result.wrong);
      CHECK(outputOf(fused, problem) == outputOf(separate, problem));
    }
  }
}

TEST_CASE("quantization works without any optional pass, and with roles") {
  const Spec spec = fusedSpec(Dispatch::Batched, one, Granule::of(128), ElementType::BF16);
  const LaunchCase launch = fewRows(spec, 20);
  LaunchResult plain =
      run(build(spec, planOf(spec), optionalPasses()), launch, 3, ThreadOrder::RoundRobin);
  CHECK_MESSAGE(plain.wrong.empty(), plain.wrong);
  const PlannedRange wide = planRanges(spec, Target()).back();
  LaunchResult roles = run(build(spec, wide.plan), launch, 4, ThreadOrder::Random);
  CHECK_MESSAGE(roles.wrong.empty(), roles.wrong);
}

TEST_CASE("scratch memory grows with the rows, and is not zeroed") {
  const Spec spec = fusedSpec(Dispatch::Batched, one, Granule::of(128), ElementType::BF16);
  const LaunchData launch = build(spec, planOf(spec)).launch;
  CHECK(zeroedBytes(launch) < 512);
  CHECK(workspaceBytesPerRow(launch) == 336 + 3 * 4);
  CHECK(workspaceBytes(launch, 100) >= zeroedBytes(launch) + 100 * (336 + 3 * 4));
  const RegionPlace codes = regionPlace(launch, Operand::XQuantized, 100);
  CHECK(codes.offset % 128 == 0);
  CHECK(codes.offset >= zeroedBytes(launch));
  CHECK(codes.bytes == 100 * 336);
}

// A block draws until nothing is left and only then waits: blocks that start when others have ended
// find all done.
TEST_CASE("blocks of a quantization need not all be resident") {
  EmulatorOptions options;
  options.workFolder = MOEJIT_TEST_WORK_FOLDER;
  options.threads = 1; // one block at a time
  options.maxSeconds = 60;
  Result<std::unique_ptr<Emulator>> serial = Emulator::create(options);
  REQUIRE(serial);
  const Spec spec = fusedSpec(Dispatch::Batched, one, Granule::of(128), ElementType::BF16);
  const Artifact artifact = build(spec, planOf(spec));
  oracle::HostProblem problem = problemOf(spec, fewRows(spec, 70), 5);
  oracle::HostOutput output = oracle::HostOutput::make(problem);
  GemmArguments arguments;
  arguments.rows = problem.rows;
  arguments.x = {problem.xSource.data(), problem.xSourceStride};
  arguments.w.data = problem.w.data();
  arguments.wScales.data = problem.wScales.data();
  arguments.expertIds.data = problem.expertIds.data();
  arguments.y = {output.data(), problem.yStride};
  arguments.workspaceBytes = workspaceBytes(artifact.launch, problem.rows);
  std::vector<uint64_t> workspace(arguments.workspaceBytes / 8 + 2);
  arguments.workspace = workspace.data();
  Result<EmulatorReport> report = (*serial)->launch(artifact, arguments);
  REQUIRE_MESSAGE(report, (report ? "" : report.error().text()));
  CHECK(report->blocks > 1);
  oracle::Comparison comparison = oracle::compare(problem, oracle::reference(problem), output);
  CHECK_MESSAGE(comparison.ok(), comparison.text());
}

TEST_CASE("expert ids pass through the map: foreign, unmapped and local ones") {
  for (int64_t globals : {3, 8}) {
    Spec spec = fusedSpec(Dispatch::Batched, one, Granule::of(128), ElementType::BF16);
    spec.quantizeFrom.reset();
    spec.expertMapSize = globals;
    REQUIRE(checkSpec(spec, Target()).empty());
    const KernelPlan plan = planOf(spec);
    checkAll(build(spec, plan), edgeCases(spec, plan.tileM), canonicalText(spec));
  }
}

// Hopper gathers rows one by one: what is not gathered is neither waited for nor looked at.
TEST_CASE("a tile gathers the rows it has and no others") {
  Spec spec = fusedSpec(Dispatch::Batched, one, Granule::of(128), ElementType::BF16);
  spec.quantizeFrom.reset();
  spec.n = 64;
  const KernelPlan plan = planOf(spec);
  const Artifact live = build(spec, plan);
  const Artifact all = build(spec, plan, {"tile-load-live-rows"});
  int64_t loads[2] = {};
  const LaunchCase launch = {"one row", 1, Routing::oneExpert(1)};
  oracle::HostProblem problem = problemOf(spec, launch, 9);
  for (int i : {0, 1}) {
    oracle::HostOutput output = oracle::HostOutput::make(problem);
    GemmArguments arguments;
    arguments.rows = 1;
    arguments.x = {problem.x.data(), problem.xStride};
    arguments.xScales = {problem.xScales.data(), problem.xScaleStride};
    arguments.w.data = problem.w.data();
    arguments.wScales.data = problem.wScales.data();
    arguments.expertIds.data = problem.expertIds.data();
    arguments.y = {output.data(), problem.yStride};
    const Artifact &artifact = i == 0 ? live : all;
    arguments.workspaceBytes = workspaceBytes(artifact.launch, 1);
    std::vector<uint64_t> workspace(arguments.workspaceBytes / 8 + 2);
    arguments.workspace = workspace.data();
    Result<EmulatorReport> report = emulator().launch(artifact, arguments);
    REQUIRE_MESSAGE(report, (report ? "" : report.error().text()));
    loads[i] = report->tmaLoads;
    oracle::Comparison comparison = oracle::compare(problem, oracle::reference(problem), output);
    CHECK_MESSAGE(comparison.ok(), comparison.text());
  }
  // Three steps along K, each with 63 rows less.
  CHECK(loads[1] - loads[0] == 3 * 63);
}

TEST_CASE("a batched launch that quantizes is right without any one optional pass") {
  const Spec spec = fusedSpec(Dispatch::Batched, one, Granule::of(128), ElementType::BF16);
  KernelPlan plan; // wide, with a queue
  plan.stages = 3;
  plan.weightPolicy = CachePolicy::EvictFirst;
  const LaunchCase launch = fewRows(spec, 150);
  for (const std::string &pass : optionalPasses()) {
    CAPTURE(pass);
    LaunchResult result = run(build(spec, plan, {pass}), launch, 11, ThreadOrder::Random);
    CHECK_MESSAGE(result.wrong.empty(), result.wrong);
  }
}
