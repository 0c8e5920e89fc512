// Leaving out any of the optional passes gives a slower kernel, and a right one.
#include "compiler/Pipeline.h"
#include "tests/oracle/Random.h"
#include "tests/pipeline/Runner.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace moejit;
using namespace moejit::test;

namespace {

using Passes = std::vector<std::string>;

/// Scales along K on both sides: dots are promoted with them, and their copies ride in the ring.
Spec blockScaled() {
  Spec spec;
  spec.numExperts = 4;
  spec.n = 320;
  spec.k = 400; // a tail of 16
  spec.xScales.granule = {Granule::of(1), Granule::of(128)};
  spec.xScales.source = ScaleSource::Dynamic;
  spec.xScales.order = ScaleOrder::MnMajor;
  spec.xScales.alignBytes = 16;
  spec.wScales.granule = {Granule::of(1), Granule::of(128), Granule::of(128)};
  return spec;
}

/// No scales along K: they apply once, at the end.
Spec channelByToken() {
  Spec spec;
  spec.numExperts = 4;
  spec.n = 264;
  spec.k = 400;
  spec.outType = ElementType::F16;
  spec.xScales.granule = {Granule::of(1), Granule::whole()};
  spec.xScales.source = ScaleSource::Dynamic;
  spec.wScales.granule = {Granule::of(1), Granule::of(1), Granule::whole()};
  return spec;
}

/// A plan that every optional pass has something to do for.
KernelPlan busyPlan() {
  KernelPlan plan;
  plan.stages = 2; // four steps are two turns of the ring
  plan.unrollSlots = true;
  plan.scheduler = SchedulerKind::Queue;
  plan.raster = 2;
  plan.liveRows = 16;
  plan.weightPolicy = CachePolicy::EvictFirst;
  plan.cluster = 2;
  plan.clusterSide =
      ClusterSide::Rows; // of x only live rows are loaded, which no other block knows
  plan.dependentLaunch = true;
  plan.checked = true;
  return plan;
}

/// The same with weights as the rows of wgmma.
KernelPlan swappedPlan() {
  KernelPlan plan = busyPlan();
  plan.tileN = 128;
  plan.swapOperands = true;
  plan.fitRows = 32;
  return plan;
}

/// The same with rows past whole tiles in the last.
KernelPlan tailPlan() {
  KernelPlan plan = busyPlan();
  plan.tailRows = 16;
  plan.liveRows = 0;
  plan.clusterSide = ClusterSide::Columns;
  return plan;
}

/// The same with two blocks on an SM.
KernelPlan sharedPlan() {
  KernelPlan plan = busyPlan();
  plan.tileN = 128;
  plan.warpgroups = 1;
  plan.consumerRegs = 216;
  plan.cluster = 1;
  plan.blocksPerSm = 2;
  return plan;
}

/// The same with tiles that two blocks share.
KernelPlan splitPlan() {
  KernelPlan plan = busyPlan();
  plan.tileM = 64;
  plan.cluster = 1;
  plan.splitK = 2;
  return plan;
}

struct NamedPlan {
  std::string name;
  KernelPlan plan;
};

std::vector<NamedPlan> variedPlans() {
  KernelPlan rows = busyPlan();
  rows.tileN = 128;
  rows.split = WarpgroupSplit::Rows;
  KernelPlan tall = rows;
  tall.warpgroups = 1;
  tall.tileM = 192;
  tall.tileN = 64;
  tall.scheduler = SchedulerKind::Static;
  KernelPlan three = rows;
  three.tileM = 192;
  three.warpgroups = 3;
  three.consumerRegs = 160;
  three.producerRegs = 32;
  KernelPlan small = busyPlan();
  small.tileM = 64;
  small.tileN = 128;
  small.warpgroups = 1;
  KernelPlan deep = busyPlan();
  deep.tileM = 64;
  deep.tileN = 128;
  deep.stages = 8;
  deep.unrollSlots = false;
  KernelPlan odd = busyPlan();
  odd.tileM = 64;
  odd.tileN = 192; // fragments of 96 columns, too many to stage
  odd.scheduler = SchedulerKind::Static;
  KernelPlan wide = busyPlan();
  wide.tileM = 64;
  wide.warpgroups = 4; // 64 columns each
  wide.consumerRegs = 104;
  wide.producerRegs = 40;
  KernelPlan alike = busyPlan();
  alike.specializeWarps = false;
  KernelPlan unpipelined = busyPlan();
  unpipelined.stages = 1;
  unpipelined.raster = 1;
  KernelPlan beside = busyPlan();
  beside.tileN = 128; // three tiles of columns: the last has no neighbour
  beside.clusterSide = ClusterSide::Columns;
  KernelPlan besideStatic = beside;
  besideStatic.scheduler = SchedulerKind::Static;
  besideStatic.specializeWarps = false;
  KernelPlan alone = busyPlan();
  alone.cluster = 1;
  KernelPlan direct = busyPlan();
  direct.store = StorePath::Direct;
  direct.prefetchTile = false;
  direct.skipEmptyRows = false;
  direct.hoistRelease = false;
  direct.scheduler = SchedulerKind::Static;
  KernelPlan swappedDirect = swappedPlan();
  swappedDirect.tileM = 64;
  swappedDirect.fitRows = 16;
  swappedDirect.store = StorePath::Direct;
  KernelPlan swappedTall = swappedPlan();
  swappedTall.tileM = 192; // fragments of 96 columns
  swappedTall.fitRows = 0;
  KernelPlan swappedRows = swappedPlan();
  swappedRows.tileM = 192;
  swappedRows.split = WarpgroupSplit::Rows; // 96 rows of x each, which no width fits
  KernelPlan swappedWide = swappedPlan();
  swappedWide.tileN = 256; // two fragments of 64 weights each
  swappedWide.unrollSlots = false;
  KernelPlan tailAlike = tailPlan();
  tailAlike.tileM = 64;
  tailAlike.tailRows = 8;
  tailAlike.cluster = 1;
  tailAlike.specializeWarps = false;
  tailAlike.store = StorePath::Direct;
  KernelPlan sharedAlike = splitPlan();
  sharedAlike.tileN = 128;
  sharedAlike.splitK = 4;
  sharedAlike.specializeWarps = false;
  KernelPlan sharedSwapped = swappedPlan();
  sharedSwapped.cluster = 1;
  sharedSwapped.splitK = 2;
  return {{"rows divided", rows},
          {"tiles shared by two", splitPlan()},
          {"tiles shared by four, warps alike", sharedAlike},
          {"swapped, tiles shared by two", sharedSwapped},
          {"three warpgroups", three},
          {"64x128, eight slots", deep},
          {"one warpgroup, three fragments of rows", tall},
          {"one warpgroup, 64x128", small},
          {"64x192", odd},
          {"four warpgroups", wide},
          {"warps alike", alike},
          {"one stage", unpipelined},
          {"direct stores, static, nothing early", direct},
          {"tiles side by side", beside},
          {"tiles side by side, static, alike", besideStatic},
          {"no clusters", alone},
          {"swapped, 64x128, direct stores", swappedDirect},
          {"swapped, 192x128, one width", swappedTall},
          {"swapped, rows divided", swappedRows},
          {"swapped, 128x256", swappedWide},
          {"tails, warps alike", tailAlike},
          {"two blocks on an SM", sharedPlan()}};
}

/// None, all, each alone, all but each, and `count` drawn by `seed`.
std::vector<Passes> subsets(int count, uint64_t seed) {
  const Passes &all = optionalPasses();
  std::vector<Passes> result = {{}, all};
  for (const std::string &one : all) {
    result.push_back({one});
    Passes others;
    std::copy_if(all.begin(), all.end(), std::back_inserter(others),
                 [&](const std::string &pass) { return pass != one; });
    result.push_back(others);
  }
  oracle::Random random(seed);
  for (int i = 0; i < count; ++i) {
    Passes drawn;
    for (const std::string &pass : all)
      if (random.below(2))
        drawn.push_back(pass);
    result.push_back(drawn);
  }
  return result;
}

/// The launches that tell schedules apart: more tiles than blocks, experts of many sizes, rows
/// owned by nobody.
std::vector<LaunchCase> launches(const Spec &spec, int64_t tileRows) {
  std::vector<LaunchCase> all = edgeCases(spec, tileRows), chosen;
  for (const LaunchCase &launch : all)
    if (launch.name.starts_with("empty") || launch.name.starts_with("skewed") ||
        launch.name.starts_with("rows before") || launch.name.starts_with("one row"))
      chosen.push_back(launch);
  REQUIRE(chosen.size() == 5);
  return chosen;
}

void checkWithout(const Spec &spec, const KernelPlan &plan, const Passes &skipped) {
  std::string what = canonicalText(spec) + "\n  plan: " + planText(plan) + "\n  without:";
  for (const std::string &pass : skipped)
    what += " " + pass;
  INFO(what);
  checkAll(build(spec, plan, skipped), launches(spec, plan.tileM), what);
}

/// One half of the subsets, for ctest to run beside the other.
void checkSubsets(const Spec &spec, const KernelPlan &plan, size_t half) {
  std::vector<Passes> all = subsets(12, 7);
  for (size_t i = half; i < all.size(); i += 2)
    checkWithout(spec, plan, all[i]);
}

} // namespace

TEST_CASE("subset of every optional pass does something for a busy plan") {
  // Else leaving it out would test nothing.
  for (const Spec &spec : {blockScaled(), channelByToken()}) {
    for (const std::string &pass : optionalPasses()) {
      CAPTURE(pass);
      // Fragments of a promotion with channel scales have none to read early: blocks do.
      if (spec == channelByToken() && pass == "tile-read-scales")
        continue;
      if (pass == "tile-deepen-quantize" || pass == "tile-share-granules")
        continue; // of quantizations: QuantizeTest.cpp
      const bool swaps = pass == "tile-swap-operands" || pass == "tile-fit-columns";
      const KernelPlan plan = swaps                      ? swappedPlan()
                              : pass == "tile-tail-rows" ? tailPlan()
                              : pass == "tile-share-sm"  ? sharedPlan()
                              : pass == "tile-split-k"   ? splitPlan()
                                                         : busyPlan();
      CHECK(build(spec, plan, {pass}).source != build(spec, plan).source);
    }
  }
}

TEST_CASE("subset part 0") { checkSubsets(blockScaled(), busyPlan(), 0); }
TEST_CASE("subset part 1") { checkSubsets(blockScaled(), busyPlan(), 1); }
TEST_CASE("subset part 2") { checkSubsets(channelByToken(), busyPlan(), 0); }
TEST_CASE("subset part 3") { checkSubsets(channelByToken(), busyPlan(), 1); }
TEST_CASE("subset part 5") { checkSubsets(blockScaled(), swappedPlan(), 0); }
TEST_CASE("subset part 6") { checkSubsets(blockScaled(), swappedPlan(), 1); }
TEST_CASE("subset part 7") { checkSubsets(blockScaled(), tailPlan(), 0); }
TEST_CASE("subset part 8") { checkSubsets(channelByToken(), tailPlan(), 1); }
TEST_CASE("subset part 4") {
  for (const Spec &spec : {blockScaled(), channelByToken()})
    for (const NamedPlan &plan : variedPlans()) {
      CAPTURE(plan.name);
      if (128 % plan.plan.tileN != 0 && plan.plan.tileN % 128 != 0 && spec.wScales.kGranule() != 0)
        continue; // blocks of 128 columns are not lowered for this tile
      std::vector<Passes> all = subsets(12, 11);
      checkWithout(spec, plan.plan, {});
      checkWithout(spec, plan.plan, optionalPasses());
      for (size_t i = all.size() - 3; i < all.size(); ++i)
        checkWithout(spec, plan.plan, all[i]);
    }
}
