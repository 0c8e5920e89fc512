// Kernels that leave the words of their workspace zero: launches in a row with nothing zeroed
// between them, on the emulator, which looks at the words before and after each.
#include "compiler/Pipeline.h"
#include "runtime/Rules.h"
#include "tests/pipeline/Runner.h"

#include <doctest/doctest.h>

using namespace moejit;
using namespace moejit::test;
using oracle::Routing;

namespace {

const Granule one = Granule::of(1), whole = Granule::whole();

Spec gemmSpec(Dispatch dispatch) {
  Spec spec;
  spec.dispatch = dispatch;
  spec.numExperts = 3;
  spec.n = 320;
  spec.k = 272;
  spec.xScales.granule = {one, Granule::of(128)};
  spec.xScales.source = ScaleSource::Dynamic;
  spec.wScales.granule = {one, Granule::of(128), Granule::of(128)};
  if (dispatch == Dispatch::Masked) {
    spec.maxRows = 75;
    spec.xScales.granule.insert(spec.xScales.granule.begin(), one);
  }
  return spec;
}

Spec fusedSpec(Dispatch dispatch) {
  Spec spec = gemmSpec(dispatch);
  spec.quantizeFrom = ElementType::BF16;
  return spec;
}

/// One scale for all of x: two phases, and a word that atomics raise.
Spec perTensorSpec() {
  Spec spec = fusedSpec(Dispatch::Eager);
  spec.numExperts = 1;
  spec.xScales.granule = {whole, whole};
  spec.wScales.granule = {Granule::of(128), Granule::of(128)};
  return spec;
}

KernelPlan queuePlan() {
  KernelPlan plan;
  plan.tileN = 128;
  plan.stages = 2;
  return plan;
}

KernelPlan with(KernelPlan plan, void (*edit)(KernelPlan &)) {
  edit(plan);
  return plan;
}

void alike(KernelPlan &plan) { plan.specializeWarps = false; }
void paired(KernelPlan &plan) { plan.cluster = 2; }
void inTurn(KernelPlan &plan) { plan.scheduler = SchedulerKind::Static; }

struct Variant {
  const char *why;
  Spec spec;
  KernelPlan plan;
};

std::vector<Variant> variants() {
  const KernelPlan queue = queuePlan();
  return {{"a queue", gemmSpec(Dispatch::Grouped), queue},
          {"a queue of warps alike", gemmSpec(Dispatch::Grouped), with(queue, alike)},
          {"a queue of pairs", gemmSpec(Dispatch::Grouped), with(queue, paired)},
          {"pairs of warps alike", gemmSpec(Dispatch::Grouped), with(with(queue, paired), alike)},
          {"buffers", gemmSpec(Dispatch::Masked), queue},
          {"sorted rows", gemmSpec(Dispatch::Batched), queue},
          {"boxes and a queue", fusedSpec(Dispatch::Grouped), queue},
          {"boxes alone", fusedSpec(Dispatch::Batched), with(with(queue, alike), inTurn)},
          {"two rounds of boxes and a queue", perTensorSpec(), queue},
          {"two rounds of boxes alone", perTensorSpec(), with(with(queue, alike), inTurn)}};
}

std::vector<LaunchCase> launches(const Spec &spec) {
  if (spec.dispatch == Dispatch::Masked)
    return {{"some", 3 * 75, Routing::fromCounts({70, 0, 2})},
            {"none", 3 * 75, Routing::fromCounts({0, 0, 0})},
            {"others", 3 * 75, Routing::fromCounts({0, 75, 75})}};
  if (spec.dispatch == Dispatch::Eager)
    return {{"many", 300}, {"one", 1}, {"more", 400}};
  return {{"many", 300, Routing::fromCounts({200, 0, 100})},
          {"one", 1, Routing::fromCounts({0, 0, 1})},
          {"others", 400, Routing::fromCounts({129, 260, 11})}};
}

} // namespace

TEST_CASE("launches in a row are right with nothing zeroed between them") {
  for (const Variant &variant : variants()) {
    CAPTURE(variant.why);
    REQUIRE(checkSpec(variant.spec, Target()).empty());
    const Artifact artifact = build(variant.spec, variant.plan);
    CHECK(artifact.launch.cleansWorkspace);
    const uint64_t zeroed = zeroedBytes(artifact.launch);
    CHECK(zeroed > 0);
    KeptWorkspace kept;
    uint64_t seed = 3;
    for (const LaunchCase &launch : launches(variant.spec))
      for (ThreadOrder order : {ThreadOrder::RoundRobin, ThreadOrder::Random}) {
        CAPTURE(launch.name);
        const oracle::HostProblem problem = problemOf(variant.spec, launch, ++seed);
        const LaunchResult result = run(artifact, problem, order, false, nullptr, 0, &kept);
        CHECK_MESSAGE(result.wrong.empty(), result.wrong);
        for (uint64_t i = 0; i < zeroed / 4; ++i)
          CHECK(reinterpret_cast<const uint32_t *>(kept.words.data())[i] == 0);
      }
  }
}

TEST_CASE("a quantization with one scale for all cleans behind the threads that read the word") {
  ScaleLayout scales{{whole, whole}, ElementType::F32};
  scales.source = ScaleSource::Dynamic;
  const Spec spec = quantizeSpec(272, ElementType::BF16, ElementType::F8E4M3FN, scales);
  REQUIRE(checkSpec(spec, Target()).empty());
  for (const PlannedRange &range : planRanges(spec, Target())) {
    const Artifact artifact = build(spec, range.plan);
    CHECK(artifact.launch.cleansWorkspace);
    KeptWorkspace kept;
    // Magnitudes of one launch must not reach the next: the large one comes first.
    for (int64_t rows : {90, 1, 40})
      for (ThreadOrder order : {ThreadOrder::RoundRobin, ThreadOrder::Random}) {
        CAPTURE(rows);
        CHECK(runQuantization(artifact, oracle::makeQuantizeProblem(spec, rows, uint64_t(rows)),
                              order, &kept) == "");
      }
  }
}

// The proof of the test above: who says so and does not is found out.
TEST_CASE("a kernel that does not clean, and says so, is told") {
  for (const Variant &variant : variants()) {
    CAPTURE(variant.why);
    Artifact artifact = build(variant.spec, variant.plan, {"tile-clean-workspace"});
    CHECK_FALSE(artifact.launch.cleansWorkspace);
    artifact.launch.cleansWorkspace = true;
    const oracle::HostProblem problem = problemOf(variant.spec, launches(variant.spec)[0], 5);
    KeptWorkspace kept;
    LaunchResult result = run(artifact, problem, ThreadOrder::Random, false, nullptr, 0, &kept);
    CHECK(result.wrong.find("said to be zero after the launch") != std::string::npos);
    result = run(artifact, problem, ThreadOrder::Random, false, nullptr, 0, &kept);
    CHECK(result.wrong.find("said to be zero before the launch") != std::string::npos);
    // One that says that it does not is given zeros, whatever the caller says.
    artifact.launch.cleansWorkspace = false;
    for (int i = 0; i < 2; ++i) {
      result = run(artifact, problem, ThreadOrder::Random, false, nullptr, 0, &kept);
      CHECK_MESSAGE(result.wrong.empty(), result.wrong);
    }
  }
}

TEST_CASE("a plan that leaves its words as they are makes a kernel that does not clean") {
  KernelPlan plan = queuePlan();
  plan.cleanWorkspace = false;
  CHECK_FALSE(build(gemmSpec(Dispatch::Grouped), plan).launch.cleansWorkspace);
  // Nothing to clean is nothing to say.
  CHECK_FALSE(build(gemmSpec(Dispatch::Grouped), with(queuePlan(), inTurn)).launch.cleansWorkspace);
}

// One workspace serves the kernels of all row counts: what one leaves zero no other writes.
TEST_CASE("kernels of one spec share a clean workspace") {
  const Spec spec = fusedSpec(Dispatch::Grouped);
  const Artifact queue = build(spec, queuePlan());
  const Artifact boxes = build(spec, with(with(queuePlan(), alike), inTurn));
  REQUIRE(zeroedBytes(queue.launch) != zeroedBytes(boxes.launch));
  KeptWorkspace kept;
  for (const Artifact *artifact : {&queue, &boxes, &queue, &boxes}) {
    const LaunchResult result = run(*artifact, problemOf(spec, launches(spec)[0], 8),
                                    ThreadOrder::RoundRobin, false, nullptr, 0, &kept);
    CHECK_MESSAGE(result.wrong.empty(), result.wrong);
  }
}
