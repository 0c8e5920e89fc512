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
  CHECK(choosePlan(spec, Target(), 256 * 48 - 1).tileM == 64);
  CHECK(choosePlan(spec, Target(), 256 * 48).tileM == 128);
  CHECK(choosePlan(spec, Target(), 256 * 8).tileN == 128);
  CHECK(!choosePlan(spec, Target(), 256 * 8).swapOperands);
  // A row or a few: the weights' columns are the rows of a wgmma.
  for (int64_t rows : {1, 256, 256 * 8 - 1}) {
    CHECK(choosePlan(spec, Target(), rows).swapOperands);
    CHECK(choosePlan(spec, Target(), rows).tileN == 256);
    CHECK(choosePlan(spec, Target(), rows).fitRows == 16);
  }
  // Mixtral's down: 8 experts of 16 wide tiles are fewer than one for each of 132 processors.
  Spec few = blockScaled(8, 4096, 14336);
  CHECK(choosePlan(few, Target(), 8).tileN == 256);
  CHECK(choosePlan(few, Target(), 8).scheduler == SchedulerKind::Static);
  CHECK(choosePlan(few, Target(), 8 * 64).tileM == 128);
  CHECK(choosePlan(few, Target(), 8 * 128).tileM == 64);
  CHECK(choosePlan(few, Target(), 8 * 256).tileM == 128);
}

TEST_CASE("a little more than 128 rows an expert give tiles that take them along") {
  auto copied = [](int64_t experts, int64_t n, int64_t k) {
    Spec spec = blockScaled(experts, n, k);
    spec.xScales.order = ScaleOrder::MnMajor;
    spec.xScales.alignBytes = 16;
    return spec;
  };
  Spec spec = copied(32, 4096, 7168);
  CHECK(choosePlan(spec, Target(), 32 * 104 - 1).tailRows == 0);
  CHECK(choosePlan(spec, Target(), 32 * 104).tailRows == 16);
  CHECK(choosePlan(spec, Target(), 32 * 152 - 1).tailRows == 16);
  CHECK(choosePlan(spec, Target(), 32 * 152).tailRows == 0);
  // Two whole tiles and a few rows are alike, where 16 of them fit.
  for (const auto &[rows, tailRows] : {std::pair(32 * 247, 0), std::pair(32 * 248, 16),
                                       std::pair(32 * 280 - 1, 16), std::pair(32 * 280, 0)})
    CHECK(choosePlan(spec, Target(), rows).tailRows == tailRows);
  CHECK(choosePlan(spec, Target(), 32 * 128).raster == 1);
  CHECK(choosePlan(spec, Target(), 32 * 256).raster == 16);
  CHECK(choosePlan(copied(128, 2048, 768), Target(), 128 * 256).tailRows == 0);
  // Few columns of few experts: tiles of 64 rows at 128, tails at 256.
  CHECK(choosePlan(copied(8, 4096, 14336), Target(), 8 * 128).tailRows == 0);
  CHECK(choosePlan(copied(8, 4096, 14336), Target(), 8 * 256).tailRows == 16);
  // Scales outside of K, promoted all the same.
  Spec once = spec;
  once.xScales.granule = {Granule::of(1), Granule::whole()};
  once.wScales.granule = {Granule::of(1), Granule::of(1), Granule::whole()};
  CHECK(choosePlan(once, Target(), 32 * 128).tailRows == 16);
  once.accumulate = Accumulate::Fast;
  CHECK(choosePlan(once, Target(), 32 * 128).tailRows == 0);
  CHECK(choosePlan(copied(32, 4096, 1536), Target(), 32 * 128).tailRows == 16);
  CHECK(choosePlan(copied(128, 2048, 768), Target(), 128 * 128).tailRows == 8);
  Spec rowMajor = spec;
  rowMajor.xScales.order = ScaleOrder::RowMajor;
  CHECK(choosePlan(rowMajor, Target(), 32 * 128).tailRows == 8);
  // All of DeepSeek-V3's experts on one GPU: their boundaries fit beside four slots.
  CHECK(choosePlan(copied(256, 4096, 7168), Target(), 256 * 128).tailRows == 16);
  CHECK(choosePlan(copied(256, 4096, 7168), Target(), 256 * 128).stages == 4);
  spec.dispatch = Dispatch::Batched;
  CHECK(choosePlan(spec, Target(), 32 * 128).tailRows == 0);
  spec.dispatch = Dispatch::Grouped;
  CHECK(choosePlan(spec, Target(), 32 * 512).unrollSlots);
  spec.wScales.granule[1] = Granule::of(32);
  CHECK(choosePlan(spec, Target(), 32 * 128).tailRows == 0);
  CHECK(!choosePlan(spec, Target(), 32 * 512).unrollSlots);
}

TEST_CASE("columns with scales of their own are rows of a wgmma") {
  Spec spec = blockScaled(16, 16384, 5120);
  spec.wScales.granule[1] = Granule::of(1);
  for (int64_t rows : {1, 16 * 16, 16 * 128, 16 * 383}) {
    CHECK(choosePlan(spec, Target(), rows).swapOperands);
    CHECK(choosePlan(spec, Target(), rows).fitRows == (rows < 16 * 48 ? 16 : 32));
    CHECK(choosePlan(spec, Target(), rows).tileM == (rows < 16 * 48 ? 64 : 128));
  }
  CHECK(choosePlan(spec, Target(), 16 * 384).swapOperands);
  Spec packed = spec;
  packed.xScales.type = packed.wScales.type = ElementType::F8E8M0FNU;
  packed.xScales.packing = packed.wScales.packing = 4;
  packed.wScales.order = ScaleOrder::MnMajor;
  CHECK(choosePlan(packed, Target(), 16 * 383).swapOperands);
  CHECK(choosePlan(packed, Target(), 16 * 384).tileM == 192);
  CHECK(!choosePlan(packed, Target(), 16 * 384).swapOperands);
  spec.xScales.granule[1] = spec.wScales.granule[2] = Granule::of(32);
  CHECK(choosePlan(spec, Target(), 16 * 1024).swapOperands);
  // One scale a column for all of K is applied once.
  spec.xScales.granule[1] = spec.wScales.granule[2] = Granule::whole();
  CHECK(!choosePlan(spec, Target(), 16 * 16).swapOperands);
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
  CHECK(choosePlan(spec, Target(), 32 * 8).tileN == 128);
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
  add([](KernelPlan &plan) { plan.swapOperands = true; });
  add([](KernelPlan &plan) { plan.fitRows = 32; });
  add([](KernelPlan &plan) { plan.tailRows = 16; });
  add([](KernelPlan &plan) { plan.cluster = 2; });
  add([](KernelPlan &plan) { plan.clusterSide = ClusterSide::Rows; });
  add([](KernelPlan &plan) { plan.blocksPerSm = 2; });
  add([](KernelPlan &plan) { plan.splitK = 2; });
  CHECK(planText(base).starts_with("tileM=128,tileN=256,tileK=128,stages=4,"));
  CHECK(planJson(base).starts_with("{\"tileM\": 128, "));
}

TEST_CASE("blocks come in pairs for many rows and a long K, where columns make pairs of tiles") {
  const Spec spec = blockScaled(32, 4096, 7168);
  for (int64_t rows : {1, 32 * 16, 32 * 128, 32 * 279})
    CHECK(choosePlan(spec, Target(), rows).cluster == 1);
  CHECK(choosePlan(spec, Target(), 32 * 280).cluster == 2);
  CHECK(choosePlan(spec, Target(), 32 * 512).clusterSide == ClusterSide::Columns);
  CHECK(choosePlan(blockScaled(32, 4352, 7168), Target(), 32 * 512).cluster == 1);
  CHECK(choosePlan(blockScaled(32, 7168, 2048), Target(), 32 * 512).cluster == 1);
}

TEST_CASE("blocks share steps along K where tiles leave half of the processors without one") {
  // 16 tiles of 256 columns on 132 processors, and 32 where there are more than 64 rows.
  Spec spec = blockScaled(1, 4096, 7168);
  CHECK(choosePlan(spec, Target(), 1).splitK == 4);
  CHECK(choosePlan(spec, Target(), 16).splitK == 4);
  // More rows are more sums to send: two blocks share narrow tiles.
  CHECK(choosePlan(spec, Target(), 17).splitK == 2);
  CHECK(choosePlan(spec, Target(), 47).tileN == 64);
  CHECK(choosePlan(spec, Target(), 128).splitK == 1);
  // Blocks have eight steps left: of 55 four would have 13, of 31 two have 15, of 15 two have 7.
  CHECK(choosePlan(blockScaled(1, 4096, 31 * 128), Target(), 1).splitK == 2);
  CHECK(choosePlan(blockScaled(1, 4096, 31 * 128), Target(), 1).tileN == 64);
  CHECK(choosePlan(blockScaled(1, 4096, 15 * 128), Target(), 1).splitK == 1);
  // Too many tiles for four blocks each: two share those of a few rows, narrow ones come next.
  CHECK(choosePlan(blockScaled(8, 2048, 7168), Target(), 1).swapOperands);
  CHECK(choosePlan(blockScaled(8, 2048, 7168), Target(), 1).splitK == 2);
  // 33 clusters of four are one more than fit.
  CHECK(choosePlan(blockScaled(1, 8192, 7168), Target(), 1).splitK == 4);
  CHECK(choosePlan(blockScaled(1, 8448, 7168), Target(), 1).splitK != 4);
  // 8 columns of tiles, of as many experts as rows.
  spec = blockScaled(64, 512, 7168);
  spec.dispatch = Dispatch::Batched;
  CHECK(choosePlan(spec, Target(), 4).splitK == 4);
  CHECK(choosePlan(spec, Target(), 5).splitK == 2);
  CHECK(choosePlan(spec, Target(), 8).splitK == 2);
  CHECK(choosePlan(spec, Target(), 9).splitK == 1);
  for (const Spec &each : {spec, blockScaled(1, 4096, 7168), blockScaled(8, 512, 7168)}) {
    int64_t next = 0;
    for (const PlannedRange &range : planRanges(each, Target())) {
      CHECK(range.minRows == next);
      CHECK(range.minRows <= range.maxRows);
      CHECK(bool(verifyPlan(range.plan, each, Target())));
      next = range.maxRows == INT64_MAX ? -1 : range.maxRows + 1;
    }
    CHECK(next == -1);
  }
  // Launches that fill the processors stay as they were.
  for (int64_t rows : {1, 32, 1024, 65536})
    CHECK(choosePlan(blockScaled(32, 4096, 7168), Target(), rows).splitK == 1);
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
  // Blocks of 128 columns that divide no tile of 192: each column finds its scale by itself.
  CHECK(refusal([](KernelPlan &plan) { plan.tileN = 192; }) == "");
  // With operands swapped columns come in the 64 rows of a wgmma, and rows by the eight.
  CHECK(refusal([](KernelPlan &plan) { plan.fitRows = 32; }).find("takes swapOperands") !=
        std::string::npos);
  for (int64_t tailRows : {INT64_MIN, int64_t(-8), int64_t(4), int64_t(12), int64_t(40), INT64_MAX})
    CHECK(refusal([&](KernelPlan &plan) { plan.tailRows = tailRows; }).find("tailRows is") !=
          std::string::npos);
  CHECK(refusal([](KernelPlan &plan) { plan.tailRows = 16; }) == "");
  // What no pass would do is no plan.
  auto hasNothingToDo = [&](const Spec &kernel, auto change) {
    KernelPlan plan;
    plan.tailRows = 16;
    change(plan);
    Result<void> verified = verifyPlan(plan, kernel, Target());
    return !verified && verified.error().message.find("nothing to do") != std::string::npos;
  };
  CHECK(hasNothingToDo(spec, [](KernelPlan &plan) { plan.split = WarpgroupSplit::Rows; }));
  CHECK(hasNothingToDo(spec, [](KernelPlan &plan) { plan.tileN = 192; }));
  CHECK(hasNothingToDo(spec, [](KernelPlan &plan) {
    plan.tailRows = 8;
    plan.cluster = 2;
  }));
  Spec batched = spec;
  batched.dispatch = Dispatch::Batched;
  CHECK(hasNothingToDo(batched, [](KernelPlan &) {}));
  Spec inPlace = spec;
  inPlace.accumulate = Accumulate::Fast;
  inPlace.xScales.granule.back() = inPlace.wScales.granule.back() = Granule::whole();
  CHECK(hasNothingToDo(inPlace, [](KernelPlan &) {}));
  for (auto change : {+[](KernelPlan &plan) { plan.swapOperands = true; },
                      +[](KernelPlan &plan) { plan.liveRows = 32; },
                      +[](KernelPlan &plan) { plan.clusterSide = ClusterSide::Rows; }})
    CHECK(refusal([&](KernelPlan &plan) {
            plan.tailRows = 16;
            change(plan);
          }).find("tailRows takes tiles") != std::string::npos);
  // Blocks that share an SM share its registers and memory.
  auto refuseShared = [&](auto change) {
    return refusal([&](KernelPlan &plan) {
      plan.tileN = 128;
      plan.warpgroups = 1;
      plan.blocksPerSm = 2;
      plan.consumerRegs = 216;
      plan.stages = 3;
      change(plan);
    });
  };
  CHECK(refuseShared([](KernelPlan &) {}) == "");
  CHECK(refuseShared([](KernelPlan &plan) { plan.consumerRegs = 224; }).find("roles take") !=
        std::string::npos);
  CHECK(refuseShared([](KernelPlan &plan) { plan.stages = 4; }).find("shared memory") !=
        std::string::npos);
  CHECK(refuseShared([](KernelPlan &plan) { plan.cluster = 2; }).find("an SM each") !=
        std::string::npos);
  for (int64_t blocks : {INT64_MIN, int64_t(0), int64_t(9), INT64_MAX})
    CHECK(refuseShared([&](KernelPlan &plan) {
            plan.blocksPerSm = blocks;
          }).find("blocksPerSm is") != std::string::npos);
  for (int64_t fitRows : {INT64_MIN, int64_t(8), int64_t(20), int64_t(48), INT64_MAX})
    CHECK(refusal([&](KernelPlan &plan) {
            plan.swapOperands = true;
            plan.fitRows = fitRows;
          }).find("fitRows is") != std::string::npos);
  CHECK(refusal([](KernelPlan &plan) {
          plan.swapOperands = true;
          plan.fitRows = 32;
        }) == "");
  CHECK(refusal([](KernelPlan &plan) {
          plan.swapOperands = true;
          plan.tileN = 192;
        }).find("do not divide") != std::string::npos);
  CHECK(refusal([](KernelPlan &plan) {
          plan.swapOperands = true;
          plan.tileM = 64;
          plan.split = WarpgroupSplit::Rows;
        }) == "");
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
  // Five warpgroups start with 96 registers a thread: 480 in all, not 512.
  auto fourWarpgroups = [](KernelPlan &plan) {
    plan.warpgroups = 4;
    plan.stages = 3;
    plan.producerRegs = 24;
    plan.consumerRegs = 120;
  };
  CHECK(refusal(fourWarpgroups).find("take 64512 registers, a block has 61440") !=
        std::string::npos);
  CHECK(refusal([&](KernelPlan &plan) {
          fourWarpgroups(plan);
          plan.consumerRegs = 112;
        }) == "");
  for (int64_t count : {INT64_MIN, int64_t(-8), int64_t(16), int64_t(236), int64_t(264), INT64_MAX})
    for (int64_t KernelPlan::*field : {&KernelPlan::producerRegs, &KernelPlan::consumerRegs}) {
      CAPTURE(count);
      CHECK(refusal([&](KernelPlan &plan) {
              plan.*field = count;
            }).find("expected a multiple of 8 from 24 to 256") != std::string::npos);
    }
  for (int64_t count : {int64_t(0), int64_t(1) << 32, int64_t(1) << 50, INT64_MAX})
    for (int64_t KernelPlan::*field :
         {&KernelPlan::stages, &KernelPlan::raster, &KernelPlan::warpgroups}) {
      CAPTURE(count);
      CHECK(refusal([&](KernelPlan &plan) { plan.*field = count; }).find("expected 1 to 64") !=
            std::string::npos);
    }
  // Of a launch that quantizes its x these count too; of others they say nothing.
  CHECK(refusal([](KernelPlan &plan) { plan.vectors = 0; }) == "");
  spec.quantizeFrom = ElementType::BF16;
  CHECK(refusal([](KernelPlan &plan) { plan.vectors = 0; }).find("expected 1 to 8") !=
        std::string::npos);
  CHECK(refusal([](KernelPlan &plan) { plan.granuleWarps = 2; }).find("share a granule") !=
        std::string::npos);
  CHECK(refusal([](KernelPlan &plan) { plan.vectors = 8; }) == "");
  spec.quantizeFrom = std::nullopt;
  spec.outType = ElementType::F32;
  CHECK(refusal([](KernelPlan &) {}).find("y is f32") != std::string::npos);
}

TEST_CASE("plans of quantizations whose numbers leave 32 bits are refused") {
  Spec spec =
      quantizeSpec(7168, ElementType::BF16, ElementType::F8E4M3FN,
                   {{Granule::of(1), Granule::of(128)}, ElementType::F32, ScaleSource::Dynamic});
  const KernelPlan good = choosePlan(spec, Target(), 64);
  REQUIRE(verifyPlan(good, spec, Target()));
  for (int64_t count : {INT64_MIN, int64_t(0), int64_t(1) << 32, INT64_MAX})
    for (int64_t KernelPlan::*field :
         {&KernelPlan::tileM, &KernelPlan::tileN, &KernelPlan::raster, &KernelPlan::warpgroups,
          &KernelPlan::vectors, &KernelPlan::granuleWarps}) {
      CAPTURE(count);
      KernelPlan plan = good;
      plan.*field = count;
      CHECK_FALSE(verifyPlan(plan, spec, Target()));
    }
}

TEST_CASE("quantizations have plans of their own, which work") {
  const Granule one = Granule::of(1), whole = Granule::whole();
  for (int64_t k : {16, 272, 7168, 33040, 1 << 20})
    for (const std::vector<Granule> &granule :
         {std::vector{one, Granule::of(32)}, std::vector{one, Granule::of(96)},
          std::vector{one, Granule::of(512)}, std::vector{one, whole}, std::vector{whole, whole}}) {
      ScaleLayout layout{granule, ElementType::F32, ScaleSource::Dynamic};
      Spec spec = quantizeSpec(k, ElementType::BF16, ElementType::F8E4M3FN, layout);
      CAPTURE(canonicalText(spec));
      std::vector<PlannedRange> ranges = planRanges(spec, Target());
      REQUIRE(ranges.size() == 2);
      CHECK(ranges[0].minRows == 0);
      CHECK(ranges[1].minRows == ranges[0].maxRows + 1);
      CHECK(ranges[1].maxRows == INT64_MAX);
      // Few rows are spread over more blocks.
      CHECK(ranges[0].plan.tileM < ranges[1].plan.tileM);
      for (const PlannedRange &range : ranges) {
        Result<void> verified = verifyPlan(range.plan, spec, Target());
        CHECK_MESSAGE(bool(verified), (verified ? "" : verified.error().text()));
      }
    }
}

TEST_CASE("plans that a quantization cannot have are refused") {
  Spec spec =
      quantizeSpec(7168, ElementType::BF16, ElementType::F8E4M3FN,
                   {{Granule::of(1), Granule::whole()}, ElementType::F32, ScaleSource::Dynamic});
  auto refusal = [&](auto change) {
    KernelPlan plan = choosePlan(spec, Target(), 64);
    change(plan);
    Result<void> verified = verifyPlan(plan, spec, Target());
    return verified ? std::string() : verified.error().message;
  };
  CHECK(refusal([](KernelPlan &) {}) == "");
  CHECK(refusal([](KernelPlan &p) { p.tileM = 257; }).starts_with("plan: tileM is 257"));
  CHECK(refusal([](KernelPlan &p) { p.warpgroups = 9; }).starts_with("plan: 9 warpgroups"));
  CHECK(refusal([](KernelPlan &p) { p.vectors = 9; }).starts_with("plan: vectors is 9"));
  CHECK(refusal([](KernelPlan &p) { p.granuleWarps = 3; }).starts_with("plan: 3 warps share"));
  for (int64_t blocks : {-1, 0, 2, 100})
    CHECK(refusal([&](KernelPlan &p) { p.blocksPerSm = blocks; }).starts_with("plan: blocksPerSm"));
  CHECK(refusal([](KernelPlan &p) {
          p.granuleWarps = 8;
          p.warpgroups = 1;
        }).starts_with("plan: 8 warps share"));
  CHECK(refusal([](KernelPlan &p) { p.specializeWarps = true; }).find("no producer warp") !=
        std::string::npos);
}

TEST_CASE("steps along K start where granules do") {
  Spec spec = blockScaled(8, 4096, 400);
  StepsAlongK steps = stepsAlongK(spec, 128);
  CHECK(steps.shift == 0);
  CHECK(steps.count == 4);
  CHECK(steps.part == 128);
  CHECK(steps.canStartAt(0, 128, 0));
  CHECK(steps.canStartAt(0, 512, 0)); // it does in one step of four, and the others load it again
  CHECK_FALSE(steps.canStartAt(64, 128, 0));
  CHECK_FALSE(steps.canStartAt(0, 0, 0)); // a scale for all of K is in no step

  // A shard whose first block began 80 elements before it.
  spec.xScales.phase = {0, 80};
  spec.wScales.phase = {0, 0, 80};
  steps = stepsAlongK(spec, 128);
  CHECK(steps.shift == 80);
  CHECK(steps.count == 4); // 480 elements with those before
  CHECK(steps.part == 128);
  spec.k = 432;
  CHECK(stepsAlongK(spec, 128).count == 4); // 512, of which none is a fifth step
  spec.k = 448;
  CHECK(stepsAlongK(spec, 128).count == 5);

  // Both sides begin at places of their own, 96 apart: no part of 32 crosses a border of either.
  spec.wScales.phase = {0, 0, 48};
  spec.xScales.phase = {0, 16};
  spec.xScales.granule.back() = Granule::of(64);
  steps = stepsAlongK(spec, 128);
  CHECK(steps.shift == 16);
  CHECK(steps.part == 32);
  for (int64_t begin = 0; begin < 128; begin += 32) {
    CHECK(steps.canStartAt(begin, 64, 16) == (begin % 64 == 0));
    // w's blocks begin at 80 of K, 96 elements into a step; 0 is where a step loads again.
    CHECK(steps.canStartAt(begin, 128, 48) == (begin == 0 || begin == 96));
  }

  // Several whole steps before the first element would be empty: only the last counts.
  spec = blockScaled(8, 4096, 256);
  spec.xScales.granule.back() = spec.wScales.granule.back() = Granule::of(512);
  spec.xScales.phase = {0, 400};
  spec.wScales.phase = {0, 0, 400};
  CHECK(stepsAlongK(spec, 128).shift == 16);
}

TEST_CASE("scales of single columns in every step take narrow tiles") {
  Spec spec = blockScaled(8, 4096, 4096);
  CHECK(choosePlan(spec, Target(), 1 << 20).tileN == 256);
  spec.wScales.granule = {Granule::of(1), Granule::of(1), Granule::of(32)};
  CHECK(choosePlan(spec, Target(), 1 << 20).tileN == 128);
  spec.wScales.granule = {Granule::of(1), Granule::of(1), Granule::whole()};
  CHECK(choosePlan(spec, Target(), 1 << 20).tileN == 256);
  spec.wScales.granule = {Granule::of(1), Granule::of(128), Granule::of(128)};
  spec.wScales.parts = 2;
  spec.wScales.interleaved = true;
  CHECK(choosePlan(spec, Target(), 1 << 20).tileN == 128);
}

TEST_CASE("dependent launches are refused where there are none") {
  const Spec spec = blockScaled(8, 4096, 4096);
  KernelPlan plan;
  plan.dependentLaunch = true;
  CHECK(verifyPlan(plan, spec, Target()));
  for (const char *arch : {"sm_80", "sm_89"}) {
    Result<Target> old = parseTarget(arch);
    REQUIRE(old);
    Result<void> refused = verifyPlan(plan, spec, *old);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message == std::string("plan: ") + arch + " has no dependent launches");
  }
  // Nobody gets them who does not ask.
  for (const PlannedRange &range : planRanges(spec, Target()))
    CHECK_FALSE(range.plan.dependentLaunch);
}
