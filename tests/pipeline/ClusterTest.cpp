// Kernels whose blocks work in clusters: who shares which loads, tiles without a neighbour, and
// what a plan may ask for.
#include "compiler/Pipeline.h"
#include "tests/pipeline/Runner.h"

#include <doctest/doctest.h>

using namespace moejit;
using namespace moejit::test;

namespace {

Spec blockScaled(Dispatch dispatch, int64_t n) {
  Spec spec;
  spec.dispatch = dispatch;
  spec.numExperts = dispatch == Dispatch::Eager ? 1 : 4;
  spec.maxRows = dispatch == Dispatch::Masked ? 150 : 0;
  spec.n = n;
  spec.k = 400; // a tail of 16
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

KernelPlan paired(ClusterSide side, SchedulerKind scheduler) {
  KernelPlan plan;
  plan.tileN = 128;
  plan.stages = 3;
  plan.raster = 2;
  plan.cluster = 2;
  plan.clusterSide = side;
  plan.scheduler = scheduler;
  return plan;
}

void checkPaired(const Spec &spec, const KernelPlan &plan, const std::string &what) {
  Result<void> verified = verifyPlan(plan, spec, Target());
  REQUIRE_MESSAGE(bool(verified), (verified ? "" : verified.error().text()));
  Artifact artifact = build(spec, plan);
  CHECK(artifact.launch.cluster == 2);
  CHECK(artifact.source.find("_multicast(") != std::string::npos);
  checkAll(artifact, edgeCases(spec, plan.tileM), what + ", " + planText(plan));
}

} // namespace

TEST_CASE("clusters of every dispatch form that has them, along both sides") {
  // Two tiles of columns, and three, of which the last has no neighbour and a tail.
  for (Dispatch dispatch : {Dispatch::Grouped, Dispatch::Masked, Dispatch::Eager})
    for (ClusterSide side : {ClusterSide::Columns, ClusterSide::Rows})
      for (SchedulerKind scheduler : {SchedulerKind::Queue, SchedulerKind::Static}) {
        const int64_t n = scheduler == SchedulerKind::Queue ? 328 : 256;
        checkPaired(blockScaled(dispatch, n), paired(side, scheduler), "cluster");
      }
}

TEST_CASE("clusters of the tiles that the heuristic knows") {
  Spec spec = blockScaled(Dispatch::Grouped, 520);
  KernelPlan tall = paired(ClusterSide::Columns, SchedulerKind::Queue);
  tall.tileM = 192;
  tall.split = WarpgroupSplit::Rows;
  tall.warpgroups = 3;
  tall.consumerRegs = 160;
  tall.producerRegs = 32;
  tall.unrollSlots = true;
  tall.stages = 2;
  KernelPlan narrow = paired(ClusterSide::Rows, SchedulerKind::Static);
  narrow.tileM = 64;
  narrow.tileN = 256;
  narrow.weightPolicy = CachePolicy::EvictFirst;
  KernelPlan wide = paired(ClusterSide::Columns, SchedulerKind::Queue);
  wide.tileN = 256;
  wide.checked = true;
  for (const KernelPlan &plan : {tall, narrow, wide})
    checkPaired(spec, plan, "cluster");
}

TEST_CASE("clusters of launches that quantize their own activations") {
  Spec spec = blockScaled(Dispatch::Grouped, 328);
  spec.quantizeFrom = ElementType::BF16;
  for (ClusterSide side : {ClusterSide::Columns, ClusterSide::Rows})
    checkPaired(spec, paired(side, SchedulerKind::Queue), "cluster, quantized");
}

TEST_CASE("clusters without any of the passes that follow") {
  const Spec spec = blockScaled(Dispatch::Grouped, 328);
  KernelPlan plan = paired(ClusterSide::Columns, SchedulerKind::Queue);
  plan.stages = 2; // four steps are two turns of the ring
  plan.unrollSlots = true;
  plan.weightPolicy = CachePolicy::EvictFirst;
  plan.checked = true;
  std::vector<LaunchCase> launches;
  for (const LaunchCase &launch : edgeCases(spec, plan.tileM))
    if (launch.name.starts_with("empty in") || launch.name.starts_with("rows before"))
      launches.push_back(launch);
  REQUIRE(launches.size() == 2);
  std::vector<std::string> others;
  for (const std::string &pass : optionalPasses())
    if (pass != "tile-multicast")
      others.push_back(pass);
  checkAll(build(spec, plan, others), launches, "cluster, without all others");
  for (const std::string &pass : others)
    checkAll(build(spec, plan, {pass}), launches, "cluster, without " + pass);
}

TEST_CASE("a block that does not wait for its neighbour's warps is seen to be wrong") {
  // Each warp tells its own block twice, and the other one nothing.
  const Spec spec = blockScaled(Dispatch::Grouped, 256);
  KernelPlan plan = paired(ClusterSide::Columns, SchedulerKind::Static);
  Artifact artifact = build(spec, plan);
  const std::string arrival = "mbarrier_arrive_cluster(", lane = ", lane)";
  const size_t at = artifact.source.find(lane, artifact.source.find(arrival));
  REQUIRE(at != std::string::npos);
  artifact.source.replace(at, lane.size(), ", clusterRank)");
  const LaunchCase launch{"uniform", 300, oracle::Routing::uniform()};
  const std::string wrong = run(artifact, launch, 1, ThreadOrder::Random).wrong;
  INFO(wrong);
  CHECK((wrong.find("copies over") != std::string::npos ||
         wrong.find("the destination of a TMA load") != std::string::npos));
}

TEST_CASE("plans of clusters that cannot work are refused with what would") {
  auto refusal = [](const Spec &spec, auto change) {
    KernelPlan plan = paired(ClusterSide::Columns, SchedulerKind::Queue);
    change(plan);
    Result<void> verified = verifyPlan(plan, spec, Target());
    return verified ? std::string() : verified.error().text();
  };
  const Spec spec = blockScaled(Dispatch::Grouped, 256);
  CHECK(refusal(spec, [](KernelPlan &) {}).empty());
  CHECK(refusal(spec, [](KernelPlan &plan) {
          plan.cluster = 3;
        }).find("cluster is 3, expected 1 or 2") != std::string::npos);
  // One tile of columns has no neighbour, rows of tiles may.
  CHECK(refusal(spec, [](KernelPlan &plan) {
          plan.tileN = 256;
        }).find("the 256 columns of y are one tile of 256") != std::string::npos);
  CHECK(refusal(spec, [](KernelPlan &plan) {
          plan.tileN = 256;
          plan.clusterSide = ClusterSide::Rows;
        }).empty());
  CHECK(refusal(blockScaled(Dispatch::Batched, 256), [](KernelPlan &) {
        }).find("batched gathers rows") != std::string::npos);
  Spec quantize = spec;
  quantize.computation = Computation::Quantize;
  CHECK(refusal(quantize, [](KernelPlan &plan) { plan.tileM = 32; }).find("share no loads") !=
        std::string::npos);
}
