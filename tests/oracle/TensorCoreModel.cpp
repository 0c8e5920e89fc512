// The model: exact products, one truncated sum of 33 terms per K step of 32, fp32 above it.
#include "tests/oracle/TensorCoreModel.h"

#include "tests/oracle/Fp8.h"
#include "tests/oracle/ScaleGeometry.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace moejit::oracle {

namespace {

/// `accumulator` + Σ terms as fp8 wgmma is believed to add them: every term, the accumulator too,
/// is cut below 13 fraction bits of the largest exponent, the sum is exact and cut to 13 fraction
/// bits of its own.
double truncatedSum(double accumulator, const double *terms, int64_t count) {
  double largest = std::fabs(accumulator);
  for (int64_t i = 0; i < count; ++i)
    largest = std::max(largest, std::fabs(terms[i]));
  if (largest == 0)
    return 0;
  auto cut = [](double value, int exponent) {
    return std::ldexp(std::trunc(std::ldexp(value, 13 - exponent)), exponent - 13);
  };
  int exponent = std::ilogb(largest);
  double sum = cut(accumulator, exponent);
  for (int64_t i = 0; i < count; ++i)
    sum += cut(terms[i], exponent);
  return sum == 0 ? 0 : cut(sum, std::ilogb(sum));
}

void store(ElementType type, void *out, int64_t index, double value) {
  if (type == ElementType::F32) {
    float narrowed = float(value);
    std::memcpy(static_cast<char *>(out) + index * 4, &narrowed, 4);
    return;
  }
  uint16_t code = type == ElementType::BF16 ? encodeBf16(value) : encodeF16(value);
  std::memcpy(static_cast<char *>(out) + index * 2, &code, 2);
}

} // namespace

HostOutput runModel(const HostProblem &problem, Defect defect) {
  const Spec &spec = problem.spec;
  HostOutput output = HostOutput::make(problem);
  std::vector<int32_t> owners = rowOwners(problem);
  ScaleGeometry xGeometry = ScaleGeometry::ofX(spec, problem.rows, problem.xScaleStride);
  ScaleGeometry wGeometry = ScaleGeometry::ofW(spec);
  auto changesScale = [](const ScaleAxis &axis, int64_t k) {
    return axis.granule != 0 && (k + axis.phase) % axis.granule == 0;
  };
  bool isFirstUnowned = true;
  for (int64_t row = 0; row < problem.rows; ++row) {
    int64_t expert = owners[row];
    if (expert < 0) {
      bool writes = defect == Defect::WritesUnowned && isFirstUnowned;
      isFirstUnowned = false;
      if (spec.skipped == Skipped::Zeroed)
        for (int64_t n = 0; n < spec.n; ++n)
          store(spec.outType, output.data(), row * problem.yStride + n, 0);
      if (writes)
        store(spec.outType, output.data(), row * problem.yStride + spec.n - 1, 1);
      continue;
    }
    bool isFirstOfExpert = row == 0 || owners[row - 1] != expert;
    int64_t wExpert = defect == Defect::ReadsNextExpert && isFirstOfExpert
                          ? (expert + 1) % spec.numExperts
                          : expert;
    int64_t xScaleRow = defect == Defect::SwapsXScales ? row ^ 1 : row;
    for (int64_t n = 0; n < spec.n; ++n) {
      const uint8_t *x = problem.x.data() + row * problem.xStride;
      const uint8_t *w = problem.w.data() + (wExpert * spec.n + n) * spec.k;
      float sum = 0;
      double accumulator = 0;
      for (int64_t k = 0; k < spec.k; k += 32) {
        int64_t end = std::min(k + 32, spec.k);
        double terms[32];
        for (int64_t i = k; i < end; ++i)
          terms[i - k] = double(decodeE4M3(x[i])) * decodeE4M3(w[i]);
        if (defect != Defect::DropsLastK || end != spec.k)
          accumulator = truncatedSum(accumulator, terms, end - k);
        bool promotes = end == spec.k || changesScale(xGeometry.k, end) ||
                        changesScale(wGeometry.k, end) ||
                        (spec.accumulate == Accumulate::Exact && end % 128 == 0);
        if (!promotes)
          continue;
        int64_t wScaleK = k;
        if (defect == Defect::SwapsWScales && wGeometry.k.count > 1)
          wScaleK = (k / wGeometry.k.granule ^ 1) * wGeometry.k.granule % spec.k;
        float scale = problem.xScales[xGeometry.index(expert, xScaleRow, k)] *
                      problem.wScales[wGeometry.index(wExpert, n, wScaleK)];
        sum = std::fma(float(accumulator), scale, sum);
        accumulator = 0;
      }
      store(spec.outType, output.data(), row * problem.yStride + n, sum);
    }
  }
  if (defect == Defect::WritesPastRow)
    store(spec.outType, output.data(), (problem.rows - 1) * problem.yStride + spec.n, 1);
  return output;
}

} // namespace moejit::oracle
