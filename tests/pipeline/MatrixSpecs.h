// The Specs of the matrix: one value of each of a few factors.
#pragma once

#include "runtime/Spec.h"
#include "tests/oracle/Random.h"

#include <array>

namespace moejit::test::matrix {

/// What a kernel of the matrix is made of. Plan chooses between the two plans of planRanges.
enum Factor {
  Weights,
  Activations,
  DispatchForm,
  Types,
  Out,
  Accumulation,
  Unowned,
  N,
  K,
  Experts,
  Plan,
  FactorCount
};
using Choice = std::array<int, FactorCount>;
constexpr Choice levels = {9, 10, 4, 3, 3, 2, 2, 7, 4, 3, 2};

Choice randomChoice(oracle::Random &random);
/// The Spec of `choice`, legal or not.
Spec specOf(const Choice &choice);

} // namespace moejit::test::matrix
