// The model against measured times, and the candidates it orders.
#include "runtime/PlanModel.h"

#include "runtime/JsonReader.h"
#include "runtime/Tuned.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

using namespace moejit;

namespace {

enum class Scales { Block, Row };

Spec specOf(Scales scales, int64_t numExperts, int64_t n, int64_t k) {
  Spec spec;
  spec.numExperts = numExperts;
  spec.n = n;
  spec.k = k;
  spec.xScales.source = ScaleSource::Dynamic;
  if (scales == Scales::Block) {
    spec.xScales.granule = {Granule::of(1), Granule::of(128)};
    spec.wScales.granule = {Granule::of(1), Granule::of(128), Granule::of(128)};
  } else {
    spec.xScales.granule = {Granule::of(1), Granule::whole()};
    spec.wScales.granule = {Granule::of(1), Granule::of(1), Granule::whole()};
  }
  return spec;
}

KernelPlan planOf(const char *text) {
  Result<KernelPlan> plan = parsePlan(text);
  REQUIRE(bool(plan));
  return *plan;
}

const char *const wide = "tileM=128,tileN=256,stages=4";
const char *const narrow = "tileM=64,tileN=256,stages=5,scheduler=static,weightPolicy=evict_first";

/// Lines of docs/results/speed.md as of the fit: an H200, µs of both plans.
struct Measured {
  Scales scales;
  int64_t experts, n, k, rowsPerExpert;
  double narrowUs, wideUs;
};
constexpr Measured measured[] = {
    {Scales::Block, 128, 2048, 768, 16, 59.3, 57.8},
    {Scales::Block, 128, 2048, 768, 512, 314.8, 219.3},
    {Scales::Block, 128, 1536, 2048, 128, 156.0, 148.8},
    {Scales::Block, 128, 3072, 4096, 16, 386.5, 389.9},
    {Scales::Block, 128, 3072, 4096, 128, 659.1, 522.2},
    {Scales::Block, 256, 4096, 7168, 16, 1793.8, 1741.1},
    {Scales::Row, 16, 5120, 8192, 16, 180.4, 184.2},
    {Scales::Row, 16, 16384, 5120, 512, 1150.0, 1091.5},
    {Scales::Row, 160, 3072, 5120, 16, 614.8, 603.8},
    {Scales::Row, 160, 3072, 5120, 512, 2259.3, 2122.3},
};

} // namespace

TEST_CASE("the model is near what was measured") {
  double sum = 0;
  int64_t count = 0;
  for (const Measured &line : measured)
    for (auto [text, us] : {std::pair(narrow, line.narrowUs), std::pair(wide, line.wideUs)}) {
      Spec spec = specOf(line.scales, line.experts, line.n, line.k);
      double model =
          estimatePlan(planOf(text), spec, Target(), line.rowsPerExpert * line.experts).us;
      CAPTURE(line.n);
      CAPTURE(line.rowsPerExpert);
      CAPTURE(model);
      CAPTURE(us);
      CHECK(std::fabs(std::log(model / us)) < 0.16);
      sum += std::fabs(std::log(model / us));
      ++count;
    }
  CHECK(sum / double(count) < 0.06);
  // One that is far from it is seen.
  CHECK(std::fabs(std::log(
            estimatePlan(planOf(wide), specOf(Scales::Block, 256, 4096, 7168), Target(), 16).us /
            1741.1)) > 0.5);
}

TEST_CASE("tiles that the model was not fitted to are near too") {
  const char *tall = "tileM=192,tileN=128,warpgroups=3,split=rows,consumerRegs=160,producerRegs=32";
  const struct {
    int64_t experts, n, k;
    double us;
  } lines[] = {{256, 4096, 7168, 2270.4},
               {256, 7168, 2048, 1186.7},
               {128, 3072, 4096, 494.5},
               {128, 1536, 2048, 141.6}};
  for (auto [experts, n, k, us] : lines) {
    PlanEstimate estimate =
        estimatePlan(planOf(tall), specOf(Scales::Block, experts, n, k), Target(), 128 * experts);
    CAPTURE(n);
    CHECK(std::fabs(estimate.us / us - 1) < 0.05);
  }
}

TEST_CASE("where plans differ much, the model orders them as measured") {
  for (const Measured &line : measured) {
    double ratio = line.narrowUs / line.wideUs;
    if (std::fabs(ratio - 1) < 0.1)
      continue;
    Spec spec = specOf(line.scales, line.experts, line.n, line.k);
    int64_t rows = line.rowsPerExpert * line.experts;
    double model = estimatePlan(planOf(narrow), spec, Target(), rows).us /
                   estimatePlan(planOf(wide), spec, Target(), rows).us;
    CAPTURE(line.n);
    CHECK((model > 1) == (ratio > 1));
  }
}

TEST_CASE("what limits a launch changes with its rows") {
  Spec spec = specOf(Scales::Block, 32, 4096, 7168);
  PlanEstimate few = estimatePlan(planOf(wide), spec, Target(), 32 * 8);
  PlanEstimate many = estimatePlan(planOf(wide), spec, Target(), 32 * 1024);
  CHECK(std::string(few.limit()) == "memory");
  CHECK(std::string(many.limit()) == "dots");
  CHECK(many.us > few.us);
  // More rows never take less, and all parts are numbers.
  double before = 0;
  for (int64_t rows : {0, 1, 7, 100, 1000, 10'000, 1'000'000, 100'000'000}) {
    PlanEstimate estimate = estimatePlan(planOf(wide), spec, Target(), rows);
    CHECK(std::isfinite(estimate.us));
    CHECK(estimate.us >= before);
    CHECK(estimate.activeExperts <= 32.001);
    before = estimate.us;
  }
}

TEST_CASE("the mean number of tiles is that of the draw") {
  // Two experts, two rows: both of one expert or one each, with equal chance.
  Spec spec = specOf(Scales::Block, 2, 256, 256);
  PlanEstimate estimate = estimatePlan(planOf(wide), spec, Target(), 2);
  CHECK(estimate.activeExperts == doctest::Approx(1.5));
  CHECK(estimate.tiles == doctest::Approx(1.5));
  spec.numExperts = 1;
  CHECK(estimatePlan(planOf(wide), spec, Target(), 129).tiles == 2);
  CHECK(estimatePlan(planOf(wide), spec, Target(), 129).fragments == 3);
  KernelPlan all = planOf(wide);
  all.skipEmptyRows = false;
  CHECK(estimatePlan(all, spec, Target(), 129).fragments == 4);
}

TEST_CASE("candidates work, differ, and hold the heuristic's; neighbours differ in one field") {
  Spec quantize = quantizeSpec(4096, ElementType::BF16, ElementType::F8E4M3FN,
                               specOf(Scales::Block, 1, 1, 1).xScales);
  Spec floats = specOf(Scales::Row, 8, 1024, 512);
  floats.outType = ElementType::F32;
  for (const Spec &spec :
       {specOf(Scales::Block, 32, 4096, 7168), specOf(Scales::Row, 8, 64, 128), floats, quantize}) {
    std::vector<KernelPlan> plans = candidatePlans(spec, Target());
    CHECK(plans.size() >= 4);
    std::set<std::string> texts;
    for (const KernelPlan &plan : plans) {
      CHECK(bool(verifyPlan(plan, spec, Target())));
      texts.insert(planText(plan));
    }
    CHECK(texts.size() == plans.size());
    for (const PlannedRange &range : planRanges(spec, Target()))
      CHECK(texts.contains(planText(range.plan)));
    for (const KernelPlan &near : neighbourPlans(plans.front(), spec, Target())) {
      CHECK(bool(verifyPlan(near, spec, Target())));
      std::string differs = planDifference(near, plans.front());
      CHECK(!differs.empty());
      // Blocks that share steps give slots for the buffers of their sums.
      const bool shares = near.splitK != plans.front().splitK;
      CHECK((shares || differs.find(',') == std::string::npos));
    }
  }
}

TEST_CASE("an explanation names the chosen plan, its source and the next one") {
  Spec spec = specOf(Scales::Block, 32, 4096, 7168);
  PlanExplanation why = explainPlan(spec, Target(), 32 * 512);
  CHECK(why.plan == choosePlan(spec, Target(), 32 * 512));
  CHECK(why.chosenBy == "heuristic");
  REQUIRE(why.alternatives.size() == 3);
  CHECK(why.alternatives[0].estimate.us <= why.alternatives[1].estimate.us);
  CHECK(why.text().find("limited by dots") != std::string::npos);
  CHECK(why.text().find("Next: ") != std::string::npos);
  Result<JsonValue> json = parseJson(why.json());
  REQUIRE_MESSAGE(bool(json), (json ? "" : json.error().text()));
  CHECK(json->find("alternatives")->items.size() == 3);
  CHECK(json->find("estimate")->find("us")->number > 0);

  TunedTable table;
  table.arch = "sm_90a";
  table.smCount = 132;
  table.specs = {{canonicalText(spec), {{0, 99, 50, planOf(narrow), 40, 44}}}};
  PlanRequest request;
  request.tuned = std::make_shared<const TunedTable>(table);
  PlanExplanation tuned = explainPlan(spec, Target(), 50, request);
  CHECK(tuned.chosenBy == "tuned table");
  CHECK(tuned.plan == planOf(narrow));
  CHECK(tuned.text().starts_with("Measured: 40.0 us, the heuristic's plan 44.0 us."));
  CHECK(explainPlan(spec, Target(), 100, request).chosenBy == "heuristic");
}

TEST_CASE("a cluster halves the copies of what its tiles share, and pays for tiles without rows") {
  const Spec spec = specOf(Scales::Block, 1, 4096, 7168);
  auto estimate = [&](const char *change, int64_t rows) {
    return estimatePlan(planOf((std::string("tileM=128,tileN=256,") + change).c_str()), spec,
                        Target(), rows);
  };
  const PlanEstimate alone = estimate("cluster=1", 512);
  const PlanEstimate beside = estimate("cluster=2", 512);
  const PlanEstimate below = estimate("cluster=2,clusterSide=rows", 512);
  CHECK(beside.tiles == alone.tiles);
  CHECK(below.tiles == alone.tiles);
  // 128 rows of x and 256 of weights a step: 320 with half of x, 256 with half of the weights.
  CHECK(beside.copyUs == doctest::Approx(alone.copyUs * 320 / 384));
  CHECK(below.copyUs == doctest::Approx(alone.copyUs * 256 / 384));
  CHECK(beside.dotUs == doctest::Approx(alone.dotUs));
  // Five tiles of rows are three pairs; sixteen of columns are eight either way.
  CHECK(estimate("cluster=2,clusterSide=rows", 640).tiles == 6 * 16);
  CHECK(estimate("cluster=2", 640).tiles == 5 * 16);
}

TEST_CASE("blocks that share an SM hide what comes between two tiles") {
  const Spec spec = specOf(Scales::Block, 32, 4096, 7168);
  auto estimate = [&](const char *plan) {
    return estimatePlan(planOf(plan), spec, Target(), 32 * 512);
  };
  const PlanEstimate one = estimate("tileN=128"), two = estimate("tileN=128,blocksPerSm=2");
  CHECK(two.tiles == one.tiles);
  CHECK(two.waves == doctest::Approx(one.waves / 2));
  // The last of half as many rounds is longer.
  const double rounds = (two.waves + 0.9) / two.waves / ((one.waves + 0.9) / one.waves);
  CHECK(two.tileUs == doctest::Approx(one.tileUs / 2 * rounds).epsilon(0.01));
}

TEST_CASE("blocks that share a tile halve its steps, and pay for the sums") {
  const Spec spec = specOf(Scales::Block, 1, 4096, 7168);
  auto estimate = [&](const char *change) {
    return estimatePlan(planOf((std::string("tileM=64,tileN=256,stages=3,") + change).c_str()),
                        spec, Target(), 32);
  };
  const PlanEstimate alone = estimate("splitK=1"), two = estimate("splitK=2"),
                     four = estimate("splitK=4");
  CHECK(two.tiles == alone.tiles);
  CHECK(two.waves == doctest::Approx(2 * alone.waves));
  CHECK(two.dotUs == doctest::Approx(alone.dotUs / 2));
  CHECK(four.dotUs == doctest::Approx(alone.dotUs / 4));
  CHECK(two.tileUs > alone.tileUs);
  CHECK(four.tileUs > two.tileUs);
  CHECK(four.us < two.us);
  CHECK(two.us < alone.us);
  CHECK(two.memoryUs == alone.memoryUs);
  // Neighbours share where columns are few.
  auto splits = [](const std::vector<KernelPlan> &plans) {
    std::set<int64_t> all;
    for (const KernelPlan &plan : plans)
      all.insert(plan.splitK);
    return all;
  };
  const KernelPlan plan = planOf("tileM=64,tileN=256,stages=5");
  CHECK(splits(neighbourPlans(plan, spec, Target())) == std::set<int64_t>{1, 2, 4});
  CHECK(splits(neighbourPlans(plan, specOf(Scales::Block, 1, 34304, 7168), Target())) ==
        std::set<int64_t>{1});
}

TEST_CASE("rows past whole tiles cost a tile only where the last does not take them") {
  const Spec spec = specOf(Scales::Row, 1, 4096, 7168);
  auto estimate = [&](const char *change, int64_t rows) {
    return estimatePlan(planOf(change), spec, Target(), rows);
  };
  const double columns = 4096 / 256;
  CHECK(estimate("tailRows=0", 140).tiles == 2 * columns);
  CHECK(estimate("tailRows=16", 140).tiles == columns);
  CHECK(estimate("tailRows=16", 140).fragments == doctest::Approx(2.25 * columns));
  CHECK(estimate("tailRows=16", 128).fragments == doctest::Approx(2 * columns));
  CHECK(estimate("tailRows=16", 145).tiles == 2 * columns);
  CHECK(estimate("tailRows=16", 145).fragments == doctest::Approx(3 * columns));
  CHECK(estimate("tailRows=16", 5).tiles == columns);
  CHECK(estimate("tailRows=16", 128).copyUs ==
        doctest::Approx(estimate("tailRows=0", 128).copyUs * (144 + 256) / (128 + 256)));
}

TEST_CASE("swapped operands cost dots for the rows there are, by the width that fits") {
  const Spec spec = specOf(Scales::Row, 1, 4096, 7168);
  auto fragments = [&](const char *change, int64_t rows) {
    return estimatePlan(
               planOf((std::string("tileM=192,tileN=128,split=columns,") + change).c_str()), spec,
               Target(), rows)
        .fragments;
  };
  const double columns = 4096 / 128;
  CHECK(fragments("swapOperands=false", 130) == doctest::Approx(3 * columns));
  CHECK(fragments("swapOperands=true,fitRows=32", 130) == doctest::Approx(2.5 * columns));
  CHECK(fragments("swapOperands=true,fitRows=16", 130) == doctest::Approx(2.25 * columns));
  // Fragments of 96 rows are left out whole.
  CHECK(fragments("swapOperands=true", 90) == doctest::Approx(1.5 * columns));
  CHECK(fragments("swapOperands=true", 130) == doctest::Approx(3 * columns));
}
