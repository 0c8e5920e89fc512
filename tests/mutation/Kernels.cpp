// Small extents, the same tile logic: a tail along N and K, more K steps than slots in the ring,
// more tiles than blocks, experts without rows.
#include "tests/mutation/Kernels.h"

#include "compiler/Pipeline.h"
#include "tests/mutation/Trials.h"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

namespace moejit::mutation {
namespace {

const Granule one = Granule::of(1), group = Granule::of(128), whole = Granule::whole();

/// DeepSeek's layout: 1x128 groups by 128x128 blocks.
Spec blockScaled() {
  Spec spec;
  spec.numExperts = 3;
  spec.n = 328;
  spec.k = 656;
  spec.xScales.granule = {one, group};
  spec.xScales.source = ScaleSource::Dynamic;
  spec.xScales.order = ScaleOrder::MnMajor;
  spec.xScales.alignBytes = 16;
  spec.wScales.granule = {one, group, group};
  return spec;
}

/// A kernel: its Spec, which of the plans of its rows, what is changed about that, and the passes
/// that are left out.
struct Recipe {
  const char *name;
  Spec spec;
  size_t range = 0; ///< index into planRanges, past the plan of a row or a few
  void (*edit)(KernelPlan &plan) = nullptr;
  std::vector<std::string> skippedPasses = {};
};

/// No sweep has more than one row tile: buffers have no more.
void flat(KernelPlan &plan) { plan.raster = 1; }
void queued(KernelPlan &plan) { plan.scheduler = SchedulerKind::Queue; }
void checked(KernelPlan &plan) { plan.checked = true; }
/// Columns with scales of their own as columns of a wgmma, which reads them in more ways.
void unswapped(KernelPlan &plan) {
  plan.swapOperands = false;
  plan.fitRows = 0;
  plan.stages = plan.tileM == 64 ? 5 : 4;
}
/// As planRanges gives it to kernels of more columns.
void tailed(KernelPlan &plan) {
  plan.tailRows = 16;
  plan.consumerRegs = 240;
  plan.producerRegs = 24;
  plan.raster = 1;
}

ScaleLayout dynamic(std::vector<Granule> granule, ElementType type = ElementType::F32) {
  return {std::move(granule), type, ScaleSource::Dynamic};
}

template <typename T, typename Edit> T with(T made, Edit edit) {
  edit(made);
  return made;
}

const std::vector<Recipe> &recipes() {
  static const std::vector<Recipe> table = {
      // Ten steps of K: constants that are off by little show late.
      {"grouped.few-rows", with(blockScaled(), [](Spec &s) { s.k = 1168; }), 0},
      {"grouped.many-rows", blockScaled(), 1},
      {"grouped.tails", with(blockScaled(), [](Spec &s) { s.k = 272; }), 1, tailed},
      {"grouped.queue", with(blockScaled(), [](Spec &s) { s.k = 272; }), 0, queued},
      {"grouped.checked", with(blockScaled(), [](Spec &s) { s.k = 272; }), 0, checked},
      {"grouped.unscheduled", with(blockScaled(), [](Spec &s) { s.k = 272; }), 1, nullptr,
       optionalPasses()},
      {"masked.per-token",
       with(blockScaled(),
            [](Spec &s) {
              s.dispatch = Dispatch::Masked;
              s.maxRows = 136;
              s.xScales = {{one, one, whole}};
              s.xScales.source = ScaleSource::Dynamic;
              s.wScales.granule = {one, one, whole};
              s.outType = ElementType::F16;
            }),
       0},
      // A tile a buffer: each block begins in another one. A row past the last buffer is the first
      // of a fragment's upper half, in masked.per-token the first of its lower half.
      {"masked.small-buffers",
       with(blockScaled(),
            [](Spec &s) {
              s.dispatch = Dispatch::Masked;
              s.maxRows = 48;
              s.xScales.granule = {one, one, group};
            }),
       0, flat},
      {"batched.groups",
       with(blockScaled(),
            [](Spec &s) {
              s.dispatch = Dispatch::Batched;
              s.xScales.order = ScaleOrder::RowMajor;
              s.xScales.alignBytes = 0;
            }),
       0},
      {"batched.many-rows",
       with(blockScaled(),
            [](Spec &s) {
              s.dispatch = Dispatch::Batched;
              s.numExperts = 37; // more than a warp has lanes
              s.k = 272;
              s.xScales = dynamic({one, whole});
              s.wScales.granule = {one, one, whole};
            }),
       1},
      {"grouped.per-expert.untouched",
       with(blockScaled(),
            [](Spec &s) {
              s.xScales = {{Granule::expert(), whole}};
              s.wScales.granule = {one, whole, whole};
              s.outType = ElementType::F32;
              s.skipped = Skipped::Untouched;
              s.xType = ElementType::F8E5M2;
              s.accumulate = Accumulate::Fast;
            }),
       0},
      {"eager.small-groups",
       with(blockScaled(),
            [](Spec &s) {
              s.dispatch = Dispatch::Eager;
              s.numExperts = 1;
              s.k = 336;
              s.xScales.granule = {one, Granule::of(32)};
              s.wScales.granule = {one, Granule::of(32)};
            }),
       0, unswapped},
      {"eager.mx-packed",
       with(blockScaled(),
            [](Spec &s) {
              s.dispatch = Dispatch::Eager;
              s.numExperts = 1;
              s.k = 336;
              s.xScales.granule = {one, Granule::of(32)};
              s.xScales.type = s.wScales.type = ElementType::F8E8M0FNU;
              s.xScales.packing = 4;
              s.wScales.granule = {one, Granule::of(32)};
            }),
       1, unswapped},
      {"batched.fused",
       with(blockScaled(),
            [](Spec &s) {
              s.dispatch = Dispatch::Batched;
              s.expertMapSize = 5;
              s.quantizeFrom = ElementType::BF16;
              s.k = 272;
              s.xScales.order = ScaleOrder::RowMajor;
              s.xScales.alignBytes = 0;
            }),
       0},
      {"grouped.shard",
       with(blockScaled(),
            [](Spec &s) {
              s.n = 320;
              s.k = 272;
              s.xScales.phase = {0, 64};
              s.wScales.phase = {0, 0, 64};
              s.wScales.parts = 2;
            }),
       0},
      {"eager.fused-per-tensor",
       with(blockScaled(),
            [](Spec &s) {
              s.dispatch = Dispatch::Eager;
              s.numExperts = 1;
              s.quantizeFrom = ElementType::F16;
              s.k = 272;
              s.xScales = dynamic({whole, whole});
              s.wScales.granule = {group, group};
            }),
       0},
      {"quantize.groups",
       quantizeSpec(336, ElementType::BF16, ElementType::F8E4M3FN, dynamic({one, group})), 0},
      {"quantize.mx",
       quantizeSpec(336, ElementType::F32, ElementType::F8E5M2,
                    with(dynamic({one, Granule::of(32)}, ElementType::F8E8M0FNU),
                         [](ScaleLayout &s) { s.packing = 4; })),
       0},
      {"quantize.per-token",
       quantizeSpec(1168, ElementType::F16, ElementType::F8E4M3FN, dynamic({one, whole})), 1},
      {"quantize.per-tensor",
       quantizeSpec(336, ElementType::BF16, ElementType::F8E4M3FN, dynamic({whole, whole})), 0},
  };
  return table;
}

} // namespace

const std::vector<std::string> &subjectNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Recipe &recipe : recipes())
      all.push_back(recipe.name);
    all.push_back("golden.dense-gemm");
    return all;
  }();
  return names;
}

Subject makeSubject(const std::string &name, const std::string &golden) {
  if (name == "golden.dense-gemm") {
    std::stringstream source;
    source << std::ifstream(golden).rdbuf();
    return denseGemm(source.str());
  }
  for (const Recipe &recipe : recipes()) {
    if (name != recipe.name)
      continue;
    const Spec &spec = recipe.spec;
    std::vector<PlannedRange> ranges = planRanges(spec, Target());
    // Plans of a row or a few multiply the other way round, which no subject does.
    if (ranges.size() > 1 && ranges[0].plan.swapOperands && !ranges[1].plan.swapOperands)
      ranges.erase(ranges.begin());
    KernelPlan plan = ranges[std::min(recipe.range, ranges.size() - 1)].plan;
    if (spec.computation == Computation::Gemm)
      plan.raster = 2; // few row tiles make a sweep, so that few rows make two
    if (recipe.edit)
      recipe.edit(plan);
    Subject subject{name, test::build(spec, plan, recipe.skippedPasses), {}};
    if (subject.artifact.source.empty())
      return subject;
    if (spec.computation == Computation::Quantize) {
      subject.trials = quantizeTrials(spec);
      return subject;
    }
    subject.trials = gemmTrials(spec, plan);
    if (spec.quantizeFrom)
      for (Trial &trial : sourceTrials(spec))
        subject.trials.push_back(std::move(trial));
    if (plan.checked)
      for (Trial &trial : wrongTrials(spec))
        subject.trials.push_back(std::move(trial));
    if (spec.xScales.type == ElementType::F8E8M0FNU) {
      subject.trials.push_back(extremeScalesTrial(spec, plan.tileM - 40, Smallest::X));
      subject.trials.push_back(extremeScalesTrial(spec, plan.tileM / 2 - 3, Smallest::X));
      subject.trials.push_back(extremeScalesTrial(spec, plan.tileM - 5, Smallest::W));
      subject.trials.push_back(extremeScalesTrial(spec, 60, Smallest::W));
      subject.trials.push_back(notANumberTrial(spec, plan.tileM - 5));
      subject.trials.push_back(notANumberTrial(spec, 60)); // in one fragment
    }
    return subject;
  }
  FAIL("no kernel ", name);
  return {};
}

} // namespace moejit::mutation
