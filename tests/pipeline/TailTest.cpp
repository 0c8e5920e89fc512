// Rows past whole tiles that the last tile of an expert takes too (tile-tail-rows): how many, under
// every dispatch form, with scales of every kind beside them.
#include "compiler/Pipeline.h"
#include "tests/pipeline/Runner.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

using namespace moejit;
using namespace moejit::test;

namespace {

Spec blockScaled(Dispatch dispatch) {
  Spec spec;
  spec.dispatch = dispatch;
  spec.numExperts = dispatch == Dispatch::Eager ? 1 : 5;
  spec.n = 320; // a tile of 256 columns and one of 64
  spec.k = 400;
  if (dispatch == Dispatch::Masked)
    spec.maxRows = 290;
  spec.xScales.granule = {Granule::of(1), Granule::of(128)};
  spec.xScales.source = ScaleSource::Dynamic;
  spec.xScales.order = ScaleOrder::MnMajor;
  spec.xScales.alignBytes = 16;
  spec.wScales.granule = {Granule::of(1), Granule::of(128), Granule::of(128)};
  if (dispatch == Dispatch::Masked)
    spec.xScales.granule.insert(spec.xScales.granule.begin(), Granule::of(1));
  if (dispatch == Dispatch::Eager)
    spec.wScales.granule.erase(spec.wScales.granule.begin());
  return spec;
}

KernelPlan tailPlan(int64_t tileM, int64_t tailRows) {
  KernelPlan plan;
  plan.tileM = tileM;
  plan.tailRows = tailRows;
  plan.stages = 2;
  plan.unrollSlots = true;
  return plan;
}

bool hasTails(const Artifact &artifact, int64_t tailRows) {
  return artifact.source.find(fmt::format("wgmma_m64n{}k32", tailRows)) != std::string::npos;
}

/// Every number of rows around whole tiles and their tails, a few experts at a time.
std::vector<LaunchCase> aroundTails(const Spec &spec, const KernelPlan &plan) {
  const int64_t t = plan.tileM, tail = plan.tailRows, e = spec.numExperts;
  std::vector<int64_t> counts = {0,
                                 1,
                                 tail,
                                 t / 2 + 1,
                                 t,
                                 t + 1,
                                 t + tail / 2,
                                 t + tail - 1,
                                 t + tail,
                                 t + tail + 1,
                                 2 * t,
                                 2 * t + 1,
                                 2 * t + tail,
                                 2 * t + tail + 1,
                                 2 * t - 1};
  oracle::ProblemOptions padded;
  padded.xPadBytes = 48;
  padded.yPadElements = 24;
  padded.xScalePad = 5;
  std::vector<LaunchCase> cases;
  for (size_t first = 0; first < counts.size(); first += size_t(e)) {
    std::vector<int64_t> some;
    int64_t rows = 0;
    for (size_t i = first; i < first + size_t(e); ++i) {
      int64_t count = i < counts.size() ? counts[i] : 3;
      if (spec.dispatch == Dispatch::Masked)
        count = std::min(count, spec.maxRows);
      some.push_back(count);
      rows += count;
    }
    LaunchCase launch{fmt::format("rows from {} on", counts[first]), rows};
    if (spec.dispatch == Dispatch::Masked)
      launch.rows = e * spec.maxRows;
    if (spec.dispatch != Dispatch::Eager)
      launch.routing = oracle::Routing::fromCounts(some);
    if (first != 0)
      launch.options = padded;
    cases.push_back(launch);
  }
  if (spec.dispatch == Dispatch::Grouped) {
    // Rows nobody owns are tiles with tails too.
    LaunchCase unowned{"rows before and after those of experts", 3 * t, oracle::Routing::uniform()};
    unowned.options.leadingRows = t + 3;
    unowned.options.trailingRows = t + tail;
    cases.push_back(unowned);
  }
  return cases;
}

void checkTails(const Spec &spec, const KernelPlan &plan) {
  INFO(canonicalText(spec), "\n  plan: ", planText(plan));
  const Artifact artifact = build(spec, plan);
  CHECK(hasTails(artifact, plan.tailRows));
  checkAll(artifact, aroundTails(spec, plan), canonicalText(spec) + "\n  plan: " + planText(plan));
}

} // namespace

TEST_CASE("a tail of every size, under every dispatch form with contiguous rows") {
  for (Dispatch dispatch : {Dispatch::Grouped, Dispatch::Masked, Dispatch::Eager})
    for (int64_t tailRows : {8, 16, 24}) {
      KernelPlan plan = tailPlan(tailRows == 24 ? 64 : 128, tailRows);
      plan.scheduler = tailRows == 8 ? SchedulerKind::Static : SchedulerKind::Queue;
      plan.store = tailRows == 24 ? StorePath::Direct : StorePath::Staged;
      plan.checked = tailRows == 16;
      checkTails(blockScaled(dispatch), plan);
    }
}

TEST_CASE("a tail beside scales of every kind") {
  KernelPlan plan = tailPlan(64, 16);
  plan.checked = true;
  Spec exact = blockScaled(Dispatch::Grouped); // promoted, and scaled once at the end
  exact.xScales.granule = {Granule::of(1), Granule::whole()};
  exact.wScales.granule = {Granule::of(1), Granule::of(1), Granule::whole()};
  checkTails(exact, plan);
  Spec mx = blockScaled(Dispatch::Grouped); // four products a step
  mx.k = 384;
  mx.xScales.granule = {Granule::of(1), Granule::of(32)};
  mx.wScales.granule = {Granule::of(1), Granule::of(1), Granule::of(32)};
  for (ScaleLayout *scales : {&mx.xScales, &mx.wScales})
    scales->type = ElementType::F8E8M0FNU;
  KernelPlan narrow = plan;
  narrow.tileN = 128;
  checkTails(mx, narrow);
  Spec rowMajor = blockScaled(Dispatch::Grouped); // scales of x are read from global memory
  rowMajor.xScales.order = ScaleOrder::RowMajor;
  rowMajor.xScales.alignBytes = 0;
  checkTails(rowMajor, plan);
}

TEST_CASE("a tail with tiles side by side that load x once") {
  Spec spec = blockScaled(Dispatch::Grouped);
  spec.n = 512;
  KernelPlan plan = tailPlan(128, 16);
  plan.cluster = 2;
  checkTails(spec, plan);
}
