// What each value of each factor stands for, and why it is there.
#include "tests/pipeline/MatrixSpecs.h"

#include <optional>
#include <vector>

using namespace moejit;
using namespace moejit::test;
using namespace moejit::test::matrix;

namespace {

constexpr Dispatch dispatches[] = {Dispatch::Grouped, Dispatch::Eager, Dispatch::Masked,
                                   Dispatch::Batched};
// 8: less than an instruction's share. 192, 200: no multiple of the tile, or of a fragment. 320: a
// whole tile and a quarter. 264: a tile and one group of eight columns. 128: one narrow tile.
// 256: two parts, each whole blocks.
constexpr int64_t columns[] = {256, 8, 128, 192, 200, 264, 320};
// 16: the least. 48, 144: a tail of less than one instruction, after none or one step. 128: one
// step. 208: a tail of five 16-byte groups. 384: three steps.
constexpr int64_t depths[] = {384, 16, 48, 128, 144, 208};
// One expert, few, and an odd number of which some get no row.
constexpr int64_t experts[] = {3, 1, 5};
constexpr ElementType outTypes[] = {ElementType::BF16, ElementType::F16, ElementType::F32};

const Granule one = Granule::of(1), whole = Granule::whole();

/// How often activations are scaled, and when that is known.
struct Activation {
  Granule rows, k;
  ScaleSource source;
  bool isPerBuffer = true; ///< masked: false where the buffers of all experts share their scales
};
const Activation activations[] = {
    {one, Granule::of(128), ScaleSource::Dynamic}, // DeepSeek's groups, one step
    {whole, whole, ScaleSource::Static},           // calibrated per tensor
    {Granule::expert(), whole, ScaleSource::Static},
    {whole, whole, ScaleSource::Dynamic},
    {one, whole, ScaleSource::Dynamic},            // per token
    {one, Granule::of(256), ScaleSource::Dynamic}, // more than a step of K
    {one, Granule::of(64), ScaleSource::Dynamic},  // less than a step
    {one, Granule::of(32), ScaleSource::Dynamic},  // MX: as often as an instruction allows
    {one, whole, ScaleSource::Static},             // no rule allows it
    {one, Granule::of(48), ScaleSource::Dynamic},  // changes inside an instruction
    {Granule::of(4), Granule::of(128), ScaleSource::Dynamic}, // of several rows
    {Granule::of(3), Granule::of(96), ScaleSource::Dynamic},  // that no tile is a multiple of
    {one, Granule::of(160), ScaleSource::Dynamic, false},     // neither a step nor a part of one
};

/// How often weights are scaled along N and K; `isPerExpert` false: one scale for all experts.
struct Weight {
  bool isPerExpert;
  Granule n, k;
};
const Weight weightGranules[] = {
    {true, Granule::of(128), Granule::of(128)}, // DeepSeek's blocks
    {false, whole, whole},
    {true, whole, whole},
    {true, one, whole},                         // per channel
    {true, Granule::of(64), Granule::of(128)},  // two in a narrow tile
    {true, Granule::of(256), Granule::of(256)}, // one in a wide tile, two steps
    {true, one, Granule::of(64)},               // groups of each channel
    {true, Granule::of(32), whole},             // many along N, one along K
    {true, one, Granule::of(32)},               // MX
    {true, Granule::of(96), Granule::of(64)},   // a block that no tile is a multiple of
};

/// How scales lie in memory: order of the last two dimensions, alignment of strides.
struct Store {
  ScaleOrder order;
  int64_t alignBytes;
};
constexpr Store stores[] = {{ScaleOrder::RowMajor, 0},
                            {ScaleOrder::MnMajor, 16},
                            {ScaleOrder::MnMajor, 0},
                            {ScaleOrder::RowMajor, 16}};

/// Scale type and packing: fp32, an exponent, four exponents in a word.
void setType(ScaleLayout &layout, int choice) {
  layout.type = choice == 0 ? ElementType::F32 : ElementType::F8E8M0FNU;
  layout.packing = choice == 2 ? 4 : 1;
}

ScaleLayout xLayout(const Choice &choice, Dispatch dispatch) {
  const Activation &scaled = activations[choice[XGranule]];
  ScaleLayout layout;
  layout.source = scaled.source;
  layout.granule = {scaled.rows, scaled.k};
  if (dispatch == Dispatch::Masked) {
    // Experts are a dimension of masked activations.
    const bool isPerExpert = scaled.rows.kind == Granule::Kind::Expert;
    const bool isOfBuffer = scaled.rows.kind == Granule::Kind::Extent && scaled.isPerBuffer;
    layout.granule = {isPerExpert || isOfBuffer ? one : whole, isPerExpert ? whole : scaled.rows,
                      scaled.k};
  }
  layout.order = stores[choice[XStore]].order;
  layout.alignBytes = stores[choice[XStore]].alignBytes;
  setType(layout, choice[XScaleType]);
  if (choice[XPhase] && scaled.k.kind == Granule::Kind::Extent) {
    // A shard of K that starts half a granule in, or as far as instructions allow.
    layout.phase.assign(layout.granule.size(), 0);
    layout.phase.back() = scaled.k.extent / 2;
  }
  return layout;
}

ScaleLayout wLayout(const Choice &choice, Dispatch dispatch) {
  const Weight &scaled = weightGranules[choice[WGranule]];
  ScaleLayout layout;
  layout.granule = {scaled.isPerExpert ? one : whole, scaled.n, scaled.k};
  layout.order = stores[choice[WStore]].order;
  layout.alignBytes = stores[choice[WStore]].alignBytes;
  setType(layout, choice[WScaleType]);
  constexpr int64_t parts[] = {1, 2, 2, 3, 4};
  layout.parts = parts[choice[WParts]];
  layout.interleaved = choice[WParts] == 2 || choice[WParts] == 4;
  // 1: a shard of N, 2: a shard of K, each half a granule in.
  const Granule &sharded = choice[WPhase] == 1 ? scaled.n : scaled.k;
  if (choice[WPhase] && sharded.kind == Granule::Kind::Extent && sharded.extent > 1) {
    layout.phase = {0, 0, 0};
    layout.phase[choice[WPhase]] = sharded.extent / 2;
  }
  if (dispatch == Dispatch::Eager) {
    layout.granule.erase(layout.granule.begin());
    if (!layout.phase.empty())
      layout.phase.erase(layout.phase.begin());
  }
  return layout;
}

std::optional<ElementType> sourceType(int choice) {
  constexpr ElementType types[] = {ElementType::BF16, ElementType::F16, ElementType::F32};
  return choice ? std::optional(types[choice - 1]) : std::nullopt;
}

/// `plan` with weights as the rows of wgmma, where that works.
KernelPlan swappedPlan(const KernelPlan &plan, const Spec &spec) {
  KernelPlan swapped = plan;
  swapped.swapOperands = true;
  swapped.fitRows = 32;
  swapped.tileN = 128;
  swapped.split = WarpgroupSplit::Columns;
  swapped.warpgroups = 2;
  return verifyPlan(swapped, spec, Target()) ? swapped : plan;
}

} // namespace

Spec matrix::specOf(const Choice &choice) {
  Spec spec;
  spec.dispatch = dispatches[choice[DispatchForm]];
  spec.numExperts = spec.dispatch == Dispatch::Eager ? 1 : experts[choice[Experts]];
  if (spec.dispatch == Dispatch::Masked)
    spec.maxRows = 148; // a tile of 128 and 20 rows
  spec.n = columns[choice[N]];
  spec.k = depths[choice[K]];
  spec.xType = choice[Types] % 2 ? ElementType::F8E5M2 : ElementType::F8E4M3FN;
  spec.wType = choice[Types] / 2 ? ElementType::F8E5M2 : ElementType::F8E4M3FN;
  spec.outType = outTypes[choice[Out]];
  spec.accumulate = choice[Accumulation] ? Accumulate::Fast : Accumulate::Exact;
  spec.skipped = choice[Unowned] ? Skipped::Untouched : Skipped::Zeroed;
  spec.quantizeFrom = sourceType(choice[QuantizedFrom]);
  spec.xScales = xLayout(choice, spec.dispatch);
  spec.wScales = wLayout(choice, spec.dispatch);
  // Some global experts are other ranks'.
  spec.expertMapSize = choice[Map] ? 2 * spec.numExperts + 3 : 0;
  return spec;
}

KernelPlan matrix::planOf(const Choice &choice, const Spec &spec) {
  PlanRequest request;
  request.checked = choice[Plan] / 2;
  const std::vector<PlannedRange> ranges = planRanges(spec, Target(), request);
  if (choice[Plan] % 2 == 0)
    return ranges[0].plan;
  // Those for more rows take turns, and one that multiplies the other way round.
  const size_t turn = choice[N] % ranges.size();
  return turn == 0 ? swappedPlan(ranges.back().plan, spec) : ranges[turn].plan;
}

Choice matrix::choiceAt(int64_t index) {
  Choice choice;
  for (int f = 0; f < numLayoutFactors; ++f) {
    choice[f] = static_cast<uint8_t>(index % levels[f]);
    index /= levels[f];
  }
  // Mixed, so that the rest does not repeat in step with the layouts.
  uint64_t hash = 0;
  for (int f = 0; f < numLayoutFactors; ++f)
    hash = (hash ^ choice[f]) * 0x9e3779b97f4a7c15u + 0x632be59bd9b4e019u;
  oracle::Random random(hash);
  for (int f = numLayoutFactors; f < FactorCount; ++f)
    choice[f] = static_cast<uint8_t>(random.below(levels[f]));
  return choice;
}

Choice matrix::randomChoice(oracle::Random &random) {
  Choice choice;
  for (int f = 0; f < FactorCount; ++f)
    choice[f] = static_cast<uint8_t>(random.below(levels[f]));
  return choice;
}
