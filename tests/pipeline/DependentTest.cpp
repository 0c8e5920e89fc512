// Launches that may start before the one before them has ended: a down projection that quantizes
// what gate_up has just computed, on the emulator, which refuses what is touched too early.
#include "compiler/Pipeline.h"
#include "runtime/Rules.h"
#include "tests/pipeline/Runner.h"

#include <doctest/doctest.h>

using namespace moejit;
using namespace moejit::test;
using oracle::Routing;

namespace {

const Granule one = Granule::of(1);

Spec gateUp() {
  Spec spec;
  spec.numExperts = 3;
  spec.n = 320;
  spec.k = 272;
  spec.xScales.granule = {one, Granule::of(128)};
  spec.xScales.source = ScaleSource::Dynamic;
  spec.wScales.granule = {one, Granule::of(128), Granule::of(128)};
  return spec;
}

/// Its x is gate_up's y.
Spec down() {
  Spec spec = gateUp();
  spec.k = gateUp().n;
  spec.n = 272;
  spec.quantizeFrom = ElementType::BF16;
  return spec;
}

KernelPlan dependentPlan() {
  KernelPlan plan;
  plan.tileN = 128;
  plan.stages = 2;
  plan.dependentLaunch = true;
  return plan;
}

/// Both launches over the same rows, and all they need.
struct Chain {
  oracle::HostProblem first, second;
  oracle::HostOutput h, y;
  KeptWorkspace firstWorkspace, secondWorkspace;

  Chain() {
    const LaunchCase launch = {"two experts", 300, Routing::fromCounts({200, 0, 97})};
    first = problemOf(gateUp(), launch, 5);
    second = problemOf(down(), launch, 6);
    h = oracle::HostOutput::make(first);
    y = oracle::HostOutput::make(second);
  }

  GemmArguments argumentsOf(const Artifact &artifact, oracle::HostProblem &problem,
                            oracle::HostOutput &output, KeptWorkspace &workspace) {
    GemmArguments arguments;
    arguments.rows = problem.rows;
    arguments.w.data = problem.w.data();
    arguments.wScales.data = problem.wScales.data();
    arguments.offsets.data = problem.offsets.data();
    arguments.y = {output.data(), problem.yStride};
    arguments.workspaceBytes = workspaceBytes(artifact.launch, problem.rows);
    workspace.bind(arguments);
    return arguments;
  }

  std::pair<GemmArguments, GemmArguments> arguments(const Artifact &a, const Artifact &b) {
    GemmArguments one = argumentsOf(a, first, h, firstWorkspace);
    one.x = {first.x.data(), first.xStride};
    one.xScales = {first.xScales.data(), first.xScaleStride};
    GemmArguments two = argumentsOf(b, second, y, secondWorkspace);
    two.x = {h.data(), first.yStride};
    return {one, two};
  }

  /// The error of both launches, the second of which may start early.
  std::string run(const Artifact &a, const Artifact &b, ThreadOrder order) {
    const auto [one, two] = arguments(a, b);
    Result<std::pair<EmulatorReport, EmulatorReport>> report =
        emulator(order).launchDependent(a, one, b, two);
    return report ? std::string() : report.error().text();
  }
};

/// What the two launches give, one after the other.
std::vector<uint8_t> inOrder() {
  KernelPlan plan = dependentPlan();
  plan.dependentLaunch = false;
  const Artifact a = build(gateUp(), plan), b = build(down(), plan);
  Chain chain;
  const auto [one, two] = chain.arguments(a, b);
  for (const auto &[artifact, arguments] : {std::pair(&a, &one), std::pair(&b, &two)})
    if (Result<EmulatorReport> report = emulator().launch(*artifact, *arguments); !report)
      FAIL_CHECK(report.error().text());
  return chain.y.bytes;
}

const char *const tooEarly = "griddepcontrol_wait must come first";

std::string withoutWaits(std::string source) {
  const std::string wait = "griddepcontrol_wait();";
  for (size_t at = source.rfind(wait); at != std::string::npos; at = source.rfind(wait))
    source.erase(at, wait.size());
  return source;
}

} // namespace

TEST_CASE("down reads what gate_up computed, and may start before that has ended") {
  const std::vector<uint8_t> expected = inOrder();
  KernelPlan alike = dependentPlan(), paired = dependentPlan(), inTurn = dependentPlan();
  alike.specializeWarps = false;
  paired.cluster = 2;
  inTurn.scheduler = SchedulerKind::Static;
  for (const KernelPlan &plan : {dependentPlan(), alike, paired, inTurn}) {
    CAPTURE(planText(plan));
    const Artifact a = build(gateUp(), plan), b = build(down(), plan);
    CHECK(a.launch.dependentLaunch);
    CHECK(b.launch.dependentLaunch);
    for (ThreadOrder order : {ThreadOrder::RoundRobin, ThreadOrder::Random}) {
      Chain chain;
      CHECK(chain.run(a, b, order) == "");
      CHECK(chain.y.bytes == expected);
      // Once more, in the same workspaces.
      CHECK(chain.run(a, b, order) == "");
      CHECK(chain.y.bytes == expected);
    }
  }
}

// The proof of the test above.
TEST_CASE("a kernel that does not wait for the one before is found") {
  const Artifact a = build(gateUp(), dependentPlan());
  Artifact b = build(down(), dependentPlan());
  REQUIRE(withoutWaits(b.source) != b.source);
  b.source = withoutWaits(b.source);
  CHECK(Chain().run(a, b, ThreadOrder::RoundRobin).find(tooEarly) != std::string::npos);
  Artifact skipped = build(down(), dependentPlan(), {"tile-dependent-launch"});
  CHECK_FALSE(skipped.launch.dependentLaunch);
  CHECK(Chain().run(a, skipped, ThreadOrder::RoundRobin) == ""); // it does not start early
  skipped.launch.dependentLaunch = true;
  CHECK(Chain().run(a, skipped, ThreadOrder::RoundRobin).find(tooEarly) != std::string::npos);
}

// What is zeroed lies between the two kernels on the stream.
TEST_CASE("a launch that zeroes its words first starts when the one before has ended") {
  const Artifact a = build(gateUp(), dependentPlan());
  Artifact b = build(down(), dependentPlan());
  b.source = withoutWaits(b.source);
  Chain chain;
  auto [one, two] = chain.arguments(a, b);
  two.workspaceIsClean = false;
  CHECK(emulator().launchDependent(a, one, b, two));
}

TEST_CASE("every kernel waits before it touches memory, and lets the next one start") {
  for (const Spec &spec : {gateUp(), down()})
    for (bool checked : {false, true}) {
      KernelPlan plan = dependentPlan();
      plan.checked = checked;
      const std::string source = build(spec, plan).source;
      const size_t begin = source.rfind("__global__");
      const size_t wait = source.find("griddepcontrol_wait();", begin);
      REQUIRE(wait != std::string::npos);
      CHECK(source.find("griddepcontrol_launch_dependents();", begin) < wait);
      // The barriers of the ring are set up before.
      CHECK(source.find("mbarrier_init(", begin) < wait);
      CHECK(source.find("_global", source.find('{', begin)) > wait);
    }
}
