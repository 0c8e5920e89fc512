// What each value of each factor stands for, and why it is there.
#include "tests/pipeline/MatrixSpecs.h"

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
constexpr int64_t columns[] = {8, 128, 192, 200, 264, 320, 256};
// 16: the least. 128: one step. 208: a tail of five 16-byte groups, no multiple of 32. 384: three
// steps.
constexpr int64_t depths[] = {16, 128, 208, 384};
constexpr ElementType outTypes[] = {ElementType::BF16, ElementType::F16, ElementType::F32};

ScaleLayout activations(int choice, Dispatch dispatch) {
  const Granule one = Granule::of(1), whole = Granule::whole();
  const std::vector<Granule> granules[] = {
      {whole, whole},             // static per tensor
      {Granule::expert(), whole}, // static per expert
      {whole, whole},             // dynamic per tensor
      {one, whole},               // dynamic per token
      {one, Granule::of(128)},    // row-major
      {one, Granule::of(128)},    // m contiguous, aligned
      {one, Granule::of(128)},    // m contiguous
      {one, Granule::of(256)},    // more than a step of K, row-major
      {one, Granule::of(64)},     // less than a step, m contiguous and aligned
      {one, Granule::of(32)},     // the least there is, row-major
  };
  ScaleLayout layout;
  layout.granule = granules[choice];
  layout.source = choice < 2 ? ScaleSource::Static : ScaleSource::Dynamic;
  const bool isMnMajor = choice == 5 || choice == 6 || choice == 8;
  layout.order = isMnMajor ? ScaleOrder::MnMajor : ScaleOrder::RowMajor;
  layout.alignBytes = choice == 5 || choice == 8 ? 16 : 0;
  if (dispatch == Dispatch::Masked) {
    const bool isPerExpert = layout.granule[0].kind == Granule::Kind::Expert;
    if (isPerExpert)
      layout.granule[0] = whole;
    layout.granule.insert(layout.granule.begin(),
                          isPerExpert || layout.granule[0].kind == Granule::Kind::Extent ? one
                                                                                         : whole);
  }
  return layout;
}

ScaleLayout weights(int choice, Dispatch dispatch) {
  const Granule one = Granule::of(1), whole = Granule::whole();
  const std::vector<Granule> granules[] = {{whole, whole, whole},
                                           {one, whole, whole},
                                           {one, one, whole},
                                           {one, Granule::of(128), Granule::of(128)},
                                           {one, Granule::of(64), Granule::of(128)},
                                           {one, Granule::of(256), Granule::of(256)},
                                           {one, one, Granule::of(64)},
                                           {one, Granule::of(32), whole},
                                           {one, Granule::of(128), Granule::of(128)}};
  ScaleLayout layout;
  layout.parts = choice == 8 ? 2 : 1;
  layout.granule = granules[choice];
  if (dispatch == Dispatch::Eager)
    layout.granule.erase(layout.granule.begin());
  return layout;
}

} // namespace

Spec matrix::specOf(const Choice &choice) {
  Spec spec;
  spec.dispatch = dispatches[choice[DispatchForm]];
  spec.numExperts = spec.dispatch == Dispatch::Eager ? 1 : 3 + choice[Experts];
  if (spec.dispatch == Dispatch::Masked)
    spec.maxRows = 148; // a tile of 128 and 20 rows
  spec.n = columns[choice[N]];
  spec.k = depths[choice[K]];
  spec.xType = choice[Types] == 1 ? ElementType::F8E5M2 : ElementType::F8E4M3FN;
  spec.wType = choice[Types] == 2 ? ElementType::F8E5M2 : ElementType::F8E4M3FN;
  spec.outType = outTypes[choice[Out]];
  spec.accumulate = choice[Accumulation] ? Accumulate::Fast : Accumulate::Exact;
  spec.skipped = choice[Unowned] ? Skipped::Untouched : Skipped::Zeroed;
  spec.xScales = activations(choice[Activations], spec.dispatch);
  spec.wScales = weights(choice[Weights], spec.dispatch);
  return spec;
}

Choice matrix::randomChoice(oracle::Random &random) {
  Choice choice;
  for (int f = 0; f < FactorCount; ++f)
    choice[f] = static_cast<int>(random.below(levels[f]));
  return choice;
}
