// Plans as a table, and the texts made of them.
#include "runtime/Plan.h"

#include <doctest/doctest.h>

#include <set>

using namespace moejit;

namespace {

Spec blockScaled(int64_t numExperts, int64_t n, int64_t k) {
  Spec spec;
  spec.numExperts = numExperts;
  spec.n = n;
  spec.k = k;
  spec.xScales.granule = {Granule::of(1), Granule::of(128)};
  spec.xScales.source = ScaleSource::Dynamic;
  spec.wScales.granule = {Granule::of(1), Granule::of(128), Granule::of(128)};
  return spec;
}

} // namespace

TEST_CASE("row ranges cover every row count once, and each has a plan that works") {
  // The extents at which the shared memory of the boundaries starts to matter, and the smallest.
  for (int64_t numExperts : {1, 8, 256, 1024})
    for (int64_t n : {8, 128, 1536, 7168})
      for (ElementType out : {ElementType::BF16, ElementType::F32}) {
        Spec spec = blockScaled(numExperts, n, 7168);
        spec.outType = out;
        spec.dispatch = numExperts == 8 ? Dispatch::Batched : Dispatch::Grouped;
        int64_t next = 0;
        for (const PlannedRange &range : planRanges(spec, Target())) {
          CHECK(range.minRows == next);
          CHECK(range.maxRows >= range.minRows);
          next = range.maxRows == INT64_MAX ? -1 : range.maxRows + 1;
          Result<void> verified = verifyPlan(range.plan, spec, Target());
          CHECK_MESSAGE(bool(verified), (verified ? "" : verified.error().text()));
          CHECK(choosePlan(spec, Target(), range.minRows) == range.plan);
          CHECK(choosePlan(spec, Target(), range.maxRows) == range.plan);
        }
        CHECK(next == -1);
      }
}

TEST_CASE("few rows an expert give 64-row tiles, many give 128-row tiles") {
  Spec spec = blockScaled(256, 4096, 7168);
  CHECK(choosePlan(spec, Target(), 0).tileM == 64);
  CHECK(choosePlan(spec, Target(), 256 * 96 - 1).tileM == 64);
  CHECK(choosePlan(spec, Target(), 256 * 96).tileM == 128);
}

TEST_CASE("batched rows too few to give every processor a wide tile get narrow ones") {
  Spec spec = blockScaled(32, 4096, 7168); // 16 tiles of 256 columns an expert, 132 processors
  spec.dispatch = Dispatch::Batched;
  CHECK(choosePlan(spec, Target(), 1).tileN == 64);
  CHECK(choosePlan(spec, Target(), 8).tileN == 64);
  CHECK(choosePlan(spec, Target(), 9).tileN == 256);
  for (int64_t rows : {1, 8, 9, 64, 256})
    CHECK(choosePlan(spec, Target(), rows).tileM == 64);
  spec.dispatch = Dispatch::Grouped;
  CHECK(choosePlan(spec, Target(), 1).tileN == 256);
}

TEST_CASE("a request for checks changes every plan of a spec, and nothing else") {
  Spec spec = blockScaled(8, 512, 1024);
  PlanRequest request;
  request.checked = true;
  std::vector<PlannedRange> plain = planRanges(spec, Target()),
                            checked = planRanges(spec, Target(), request);
  REQUIRE(plain.size() == checked.size());
  for (size_t i = 0; i < plain.size(); ++i) {
    CHECK(!plain[i].plan.checked);
    CHECK(planText(plain[i].plan) != planText(checked[i].plan));
    plain[i].plan.checked = true;
    CHECK(plain[i].plan == checked[i].plan);
    CHECK(choosePlan(spec, Target(), plain[i].minRows, request) == checked[i].plan);
  }
}

TEST_CASE("plans that differ in any field have different texts") {
  KernelPlan base;
  std::set<std::string> texts = {planText(base)};
  auto add = [&](auto change) {
    KernelPlan plan;
    change(plan);
    CHECK(texts.insert(planText(plan)).second);
  };
  add([](KernelPlan &plan) { plan.tileM = 64; });
  add([](KernelPlan &plan) { plan.tileN = 128; });
  add([](KernelPlan &plan) { plan.stages = 3; });
  add([](KernelPlan &plan) { plan.split = WarpgroupSplit::Rows; });
  add([](KernelPlan &plan) { plan.specializeWarps = false; });
  add([](KernelPlan &plan) { plan.scheduler = SchedulerKind::Static; });
  add([](KernelPlan &plan) { plan.store = StorePath::Direct; });
  add([](KernelPlan &plan) { plan.weightPolicy = CachePolicy::EvictFirst; });
  CHECK(planText(base).starts_with("tileM=128,tileN=256,tileK=128,stages=4,"));
  CHECK(planJson(base).starts_with("{\"tileM\": 128, "));
}

TEST_CASE("plans that cannot work are refused with what would") {
  Spec spec = blockScaled(8, 4096, 4096);
  auto refusal = [&](auto change) {
    KernelPlan plan;
    change(plan);
    Result<void> verified = verifyPlan(plan, spec, Target());
    return verified ? std::string() : verified.error().message;
  };
  CHECK(refusal([](KernelPlan &) {}) == "");
  CHECK(refusal([](KernelPlan &plan) { plan.tileM = 100; }).find("tileM is 100") !=
        std::string::npos);
  CHECK(refusal([](KernelPlan &plan) { plan.stages = 9; }).find("shared memory") !=
        std::string::npos);
  CHECK(refusal([](KernelPlan &plan) {
          plan.split = WarpgroupSplit::Rows;
          plan.tileM = 64;
        }).find("do not divide") != std::string::npos);
  CHECK(refusal([](KernelPlan &plan) {
          plan.tileN = 192;
        }).find("a weight scale covers 128 columns") != std::string::npos);
  auto threeWarpgroups = [](KernelPlan &plan) {
    plan.warpgroups = 3;
    plan.tileM = 192;
    plan.tileN = 128;
    plan.split = WarpgroupSplit::Rows;
    plan.stages = 3;
  };
  CHECK(refusal(threeWarpgroups).find("a block has 65536") != std::string::npos);
  CHECK(refusal([&](KernelPlan &plan) {
          threeWarpgroups(plan);
          plan.consumerRegs = 152;
        }) == "");
  spec.outType = ElementType::F32;
  CHECK(refusal([](KernelPlan &) {}).find("y is f32") != std::string::npos);
}
