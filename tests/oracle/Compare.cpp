// The comparison of an output with the reference, element by element and as norms.
#include "tests/oracle/Compare.h"

#include "tests/oracle/Fp8.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace moejit::oracle {

namespace {

void checkUnowned(const HostProblem &problem, const OracleResult &result, const uint8_t *out,
                  int64_t elementSize, Comparison &comparison) {
  uint8_t wanted = problem.spec.skipped == Skipped::Zeroed ? 0 : poisonByte;
  for (int64_t r = 0; r < problem.rows; ++r) {
    if (result.owners[r] >= 0)
      continue;
    ++comparison.unownedRows;
    const uint8_t *row = out + r * problem.yStride * elementSize;
    if (std::all_of(row, row + problem.spec.n * elementSize,
                    [&](uint8_t byte) { return byte == wanted; }))
      continue;
    ++comparison.unownedWrong;
    if (comparison.firstUnownedWrong < 0)
      comparison.firstUnownedWrong = r;
  }
}

} // namespace

Comparison compare(const HostProblem &problem, const OracleResult &result, const void *out,
                   ElementType type) {
  Comparison comparison;
  checkUnowned(problem, result, static_cast<const uint8_t *>(out), bytesOf(type), comparison);
  double errorSquares = 0, referenceSquares = 0;
  int64_t columns = int64_t(result.selection.columns.size());
  for (size_t i = 0; i < result.selection.rows.size(); ++i) {
    int64_t row = result.selection.rows[i];
    if (result.owners[row] < 0)
      continue;
    double rowErrorSquares = 0, rowReferenceSquares = 0;
    for (int64_t j = 0; j < columns; ++j) {
      int64_t column = result.selection.columns[j];
      double value = readElement(type, out, row * problem.yStride + column);
      double wanted = result.reference[i * columns + j];
      double accumulation = result.bound[i * columns + j];
      ++comparison.compared;
      // Where even the bound allows the rounded result to overflow, the infinity of that sign is
      // right.
      double largest = largestFinite(type);
      double overflow = largest + halfUlp(type, largest);
      bool mayOverflow = std::fabs(wanted) + accumulation >= overflow;
      if (mayOverflow && std::isinf(value) && std::signbit(value) == std::signbit(wanted))
        continue;
      double error = std::fabs(value - wanted);
      double bound = accumulation + halfUlp(type, std::fabs(wanted) + accumulation);
      double ratio = error / bound;
      if (!std::isfinite(value)) {
        ++comparison.nonFinite;
        ratio = INFINITY;
      } else {
        rowErrorSquares += error * error;
        rowReferenceSquares += wanted * wanted;
      }
      if (ratio > comparison.worstRatio || comparison.worstRow < 0) {
        comparison.worstRatio = ratio;
        comparison.worstRow = row;
        comparison.worstColumn = column;
        comparison.worstOut = value;
        comparison.worstReference = wanted;
        comparison.worstBound = bound;
      }
    }
    errorSquares += rowErrorSquares;
    referenceSquares += rowReferenceSquares;
    double rowError = rowReferenceSquares > 0 ? std::sqrt(rowErrorSquares / rowReferenceSquares)
                      : rowErrorSquares > 0   ? INFINITY
                                              : 0;
    if (rowError > comparison.worstRowError || comparison.worstErrorRow < 0) {
      comparison.worstRowError = rowError;
      comparison.worstErrorRow = row;
    }
  }
  comparison.relativeError = referenceSquares > 0 ? std::sqrt(errorSquares / referenceSquares)
                             : errorSquares > 0   ? INFINITY
                                                  : 0;
  return comparison;
}

Comparison compare(const HostProblem &problem, const OracleResult &result,
                   const HostOutput &output) {
  Comparison comparison = compare(problem, result, output.data(), problem.spec.outType);
  comparison.canary = findOverwrittenCanary(problem, output);
  return comparison;
}

bool Comparison::ok() const {
  return worstRatio <= 1 && nonFinite == 0 && unownedWrong == 0 && canary.empty();
}

std::string Comparison::text() const {
  std::string line =
      fmt::format("{}: relative error {:.2e} (worst row {:.2e}), worst element {:.2f} of its bound",
                  ok() ? "ok" : "WRONG", relativeError, worstRowError, worstRatio);
  if (worstRow >= 0)
    line += fmt::format(" at [{}, {}]: {:.9g}, expected {:.9g} ± {:.2g}", worstRow, worstColumn,
                        worstOut, worstReference, worstBound);
  line += fmt::format("; {} elements, {} unowned rows", compared, unownedRows);
  if (nonFinite)
    line += fmt::format("; {} not finite", nonFinite);
  if (unownedWrong)
    line += fmt::format("; {} unowned rows were not left as they must be, first row {}",
                        unownedWrong, firstUnownedWrong);
  if (!canary.empty())
    line += "; " + canary;
  return line;
}

double expectedRelativeError(ElementType outType, Accumulate accumulate) {
  // Rounding of the output alone is at most its unit roundoff, and close to 0.42 of it in the mean
  // square.
  double rounding = outType == ElementType::BF16  ? 0x1p-8 * 0.5
                    : outType == ElementType::F16 ? 0x1p-11 * 0.5
                                                  : 0x1p-24 * 0.5;
  double accumulation = accumulate == Accumulate::Exact ? 1e-3 : 5e-3;
  // Not hypot: that one is a newer symbol than the glibc programs must run on.
  return std::sqrt(rounding * rounding + accumulation * accumulation);
}

} // namespace moejit::oracle
