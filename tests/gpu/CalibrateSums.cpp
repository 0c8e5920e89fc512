// The candidates: alignment, order, cut and width of each addition.
#include "tests/gpu/CalibrateSums.h"

#include "tests/oracle/Fp8.h"
#include "tests/oracle/Random.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace moejit::gpu {

using oracle::HostProblem;
using oracle::Random;

namespace {

/// `value` without what lies more than `bits` below `exponent`.
double cut(double value, int exponent, int bits, bool down) {
  const double scaled = std::ldexp(value, bits - exponent);
  return std::ldexp(down ? std::floor(scaled) : std::trunc(scaled), exponent - bits);
}

double cutResult(double value, const SumModel &model) {
  return value == 0 ? 0 : cut(value, std::ilogb(value), model.resultBits, model.cutsDown);
}

/// The sum of `terms` and `accumulator`, all aligned to the largest.
double alignedSum(double accumulator, const double *terms, int64_t count, const SumModel &model) {
  double largest = std::fabs(accumulator);
  for (int64_t i = 0; i < count; ++i)
    largest = std::max(largest, std::fabs(terms[i]));
  if (largest == 0)
    return 0;
  const int exponent = std::ilogb(largest);
  double sum = cut(accumulator, exponent, model.fractionBits, model.cutsDown);
  for (int64_t i = 0; i < count; ++i)
    sum += cut(terms[i], exponent, model.fractionBits, model.cutsDown);
  return sum;
}

/// The products of one row and column of makeSums.
std::vector<double> productsOf(const HostProblem &problem, int64_t row, int64_t column) {
  const std::array<float, 256> &x = oracle::decodeTable(problem.spec.xType),
                               &w = oracle::decodeTable(problem.spec.wType);
  std::vector<double> terms;
  for (int64_t k = 0; k < 32 * instructionsOfRow(row); ++k)
    terms.push_back(double(x[problem.x[size_t(row * problem.xStride + k)]]) *
                    double(w[problem.w[size_t(column * problem.spec.k + k)]]));
  return terms;
}

float sumOf(const std::vector<double> &terms, const SumModel &model) {
  double accumulator = 0;
  for (size_t i = 0; i < terms.size(); i += 32)
    accumulator = model.add(accumulator, terms.data() + i, 32);
  return float(accumulator);
}

} // namespace

std::string SumModel::text() const {
  return fmt::format("{} fraction bits, {} products at once, accumulator {}, cut {}, result of {} "
                     "bits",
                     fractionBits, termsAtOnce, alignsAccumulator ? "among them" : "after them",
                     cutsDown ? "down" : "towards zero", resultBits);
}

double SumModel::add(double accumulator, const double *terms, int64_t count) const {
  for (int64_t i = 0; i < count; i += termsAtOnce) {
    const int64_t part = std::min<int64_t>(termsAtOnce, count - i);
    if (alignsAccumulator) {
      accumulator = cutResult(alignedSum(accumulator, terms + i, part, *this), *this);
      continue;
    }
    const double products = alignedSum(0, terms + i, part, *this);
    accumulator = cutResult(alignedSum(accumulator, &products, 1, *this), *this);
  }
  return accumulator;
}

HostProblem makeSums(const Spec &spec) {
  HostProblem problem = oracle::makeProblem(spec, 128, oracle::Routing::uniform(), 17);
  std::fill(problem.xScales.begin(), problem.xScales.end(), 1.0f);
  std::fill(problem.wScales.begin(), problem.wScales.end(), 1.0f);
  for (int64_t r = 0; r < problem.rows; ++r) {
    uint8_t *x = problem.x.data() + r * problem.xStride;
    std::fill(x + 32 * instructionsOfRow(r), x + spec.k, uint8_t(0));
  }
  // Codes of the tests lie within a factor of a few: other exponents for some columns.
  Random random(18);
  for (int64_t n = 0; n < spec.n; n += 2)
    for (int64_t k = 0; k < spec.k; ++k)
      problem.w[size_t(n * spec.k + k)] =
          oracle::encodeFp8(spec.wType, std::ldexp(random.normal(), int(random.below(14)) - 6));
  return problem;
}

float modelSum(const HostProblem &problem, const SumModel &model, int64_t row, int64_t column) {
  return sumOf(productsOf(problem, row, column), model);
}

std::vector<SumScore> scoreModels(const HostProblem &problem, const float *sums) {
  std::vector<SumScore> scores;
  for (int fractionBits : {10, 11, 12, 13, 14, 15, 21, 22, 23, 24, 25, 26})
    for (int termsAtOnce : {4, 8, 16, 32})
      for (bool alignsAccumulator : {true, false})
        for (bool cutsDown : {false, true})
          for (int resultBits : {13, 23}) {
            SumScore score;
            score.model = {fractionBits, termsAtOnce, alignsAccumulator, cutsDown, resultBits};
            scores.push_back(score);
          }
  // Every 23rd column: even and odd ones.
  for (int64_t r = 0; r < problem.rows; ++r)
    for (int64_t n = r % 23; n < problem.spec.n; n += 23) {
      const std::vector<double> terms = productsOf(problem, r, n);
      const float sum = sums[r * problem.yStride + n];
      for (SumScore &score : scores) {
        const bool isEqual = sumOf(terms, score.model) == sum;
        ++score.comparedAll;
        score.equalAll += isEqual;
        if (instructionsOfRow(r) == 1) {
          ++score.compared;
          score.equal += isEqual;
        }
      }
    }
  std::stable_sort(scores.begin(), scores.end(), [](const SumScore &a, const SumScore &b) {
    return std::pair(a.equalAll, a.equal) > std::pair(b.equalAll, b.equal);
  });
  return scores;
}

} // namespace moejit::gpu
