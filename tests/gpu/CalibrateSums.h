// Candidate models of how fp8 wgmma adds, and how many sums of a GPU each gives bit for bit. Finds
// out what no document specifies; defines nothing: docs/numerics.md's bound stands on its own.
#pragma once

#include "tests/oracle/Problem.h"

#include <cstdint>
#include <string>
#include <vector>

namespace moejit::gpu {

/// One way to add 32 products to an accumulator.
struct SumModel {
  int fractionBits = 13; ///< kept below the largest exponent when terms are aligned
  int termsAtOnce = 32;  ///< products aligned and added together; the accumulator goes through all
  bool alignsAccumulator = true; ///< with the products; else it is added to their sum afterwards
  bool cutsDown = false;         ///< what is cut off: downwards, else towards zero
  int resultBits = 13;           ///< fraction bits of what an addition leaves; 23: fp32, cut

  std::string text() const;
  /// `accumulator` plus `count` exact products.
  double add(double accumulator, const double *terms, int64_t count) const;
};

/// Random codes in the first 32, 64, 96 or 128 of K, by row: 1 to 4 instructions and one block; all
/// scales 1, so that a result is the tensor core's own sum. For an eager spec of fp8 codes, one
/// scale a row and one a column, and f32 output.
oracle::HostProblem makeSums(const Spec &spec);
/// Instructions that row `row` of makeSums takes.
constexpr int64_t instructionsOfRow(int64_t row) { return row % 4 + 1; }

/// What row `row`, column `column` of makeSums is by `model`.
float modelSum(const oracle::HostProblem &problem, const SumModel &model, int64_t row,
               int64_t column);

/// How many of `compared` sums a model gives.
struct SumScore {
  SumModel model;
  int64_t compared = 0, equal = 0;       ///< rows of one instruction
  int64_t comparedAll = 0, equalAll = 0; ///< rows of 1 to 4
};
/// Scores every candidate against `sums`, row 0 of y as problem.yStride lays it out. Best first: by
/// all rows, then by rows of one instruction.
std::vector<SumScore> scoreModels(const oracle::HostProblem &problem, const float *sums);

} // namespace moejit::gpu
