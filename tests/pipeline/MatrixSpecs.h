// The Specs of the matrix: every combination of one value of each of a few factors, legal or not.
// The rule table alone says which are; nothing here repeats it.
#pragma once

#include "runtime/Plan.h"
#include "runtime/Spec.h"
#include "tests/oracle/Random.h"

#include <array>
#include <cstdint>

namespace moejit::test::matrix {

/// What a kernel of the matrix is made of. Every combination of the factors before `Types` is
/// looked at; those from there on, which rules hardly look at, go along by turns.
enum Factor {
  DispatchForm,
  XGranule,
  XStore,
  XScaleType,
  XPhase,
  QuantizedFrom,
  WGranule,
  WStore,
  WScaleType,
  WParts,
  WPhase,
  Map,
  Types,
  Out,
  Accumulation,
  Unowned,
  N,
  K,
  Experts,
  Plan, ///< the first plan of planRanges or one after it, plain or checked
  FactorCount
};
constexpr int numLayoutFactors = Types;
using Choice = std::array<uint8_t, FactorCount>;
constexpr Choice levels = {4, 13, 4, 3, 2, 4, 10, 3, 3, 5, 3, 2, 4, 3, 2, 2, 7, 6, 3, 4};

/// Combinations of the layout factors.
constexpr int64_t numLayouts() {
  int64_t product = 1;
  for (int f = 0; f < numLayoutFactors; ++f)
    product *= levels[f];
  return product;
}
/// Combination `index` of the layout factors, from 0 to numLayouts(); the other factors are drawn
/// by it, the same on every machine.
Choice choiceAt(int64_t index);
Choice randomChoice(oracle::Random &random);

/// The Spec of `choice`, legal or not.
Spec specOf(const Choice &choice);
/// The plan of `choice` for `spec`, which is legal.
KernelPlan planOf(const Choice &choice, const Spec &spec);

} // namespace moejit::test::matrix
