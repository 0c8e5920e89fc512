// Chooses codes, scales and values; makeProblem has laid the tensors out.
#include "tests/gpu/CalibrateProblems.h"

#include "tests/oracle/Fp8.h"
#include "tests/oracle/Random.h"
#include "tests/oracle/ScaleGeometry.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace moejit::gpu {

using oracle::HostProblem;
using oracle::Random;
using oracle::Routing;

namespace {

/// A power of two in the middle of the type's range: twice it is a code too.
double unitOf(ElementType type) { return type == ElementType::F8E5M2 ? 0x1p13 : 0x1p6; }

void fillExact(ElementType type, uint8_t *codes, int64_t count, Random &random) {
  uint8_t choices[5];
  for (int c = -2; c <= 2; ++c)
    choices[c + 2] = oracle::encodeFp8(type, c * unitOf(type));
  for (int64_t i = 0; i < count; ++i)
    codes[i] = choices[random.below(5)];
}

/// Sets every scale, padding too, to 1.
void clearScales(std::vector<float> &scales) { std::fill(scales.begin(), scales.end(), 1.0f); }

/// x and w of `problem` all zeros, scales all 1.
HostProblem plainProblem(const Spec &spec, int64_t rows) {
  HostProblem problem = oracle::makeProblem(
      spec, rows, spec.dispatch == Dispatch::Eager ? Routing::uniform() : Routing::oneExpert(0), 1);
  std::fill(problem.x.begin(), problem.x.end(), uint8_t(0));
  std::fill(problem.w.begin(), problem.w.end(), uint8_t(0));
  clearScales(problem.xScales);
  clearScales(problem.wScales);
  return problem;
}

} // namespace

void makeExact(HostProblem &problem) {
  const Spec &spec = problem.spec;
  Random random(uint64_t(problem.rows) * 31 + uint64_t(spec.n));
  fillExact(spec.wType, problem.w.data(), int64_t(problem.w.size()), random);
  std::vector<int32_t> owners = oracle::rowOwners(problem);
  auto geometry = oracle::ScaleGeometry::ofX(spec, problem.rows, problem.xScaleStride);
  for (int64_t r = 0; r < problem.rows; ++r) {
    if (owners[size_t(r)] < 0)
      continue;
    if (!spec.quantizeFrom) {
      fillExact(spec.xType, problem.x.data() + r * problem.xStride, spec.k, random);
      continue;
    }
    // 448 times a power of two is the largest of almost every granule, 7 · 2^13 as well: the scale
    // is a power of two, and a code 7 · 2^i or half of it.
    for (int64_t k = 0; k < spec.k; ++k) {
      uint64_t granule = uint64_t(geometry.index(owners[size_t(r)], r, k));
      int exponent = spec.xScales.isPerTensor() ? -9 : int(Random(granule).below(9)) - 13;
      double value = std::ldexp(224.0 * (double(random.below(5)) - 2), exponent);
      oracle::writeElement(*spec.quantizeFrom, problem.xSource.data(),
                           r * problem.xSourceStride + k, value);
    }
  }
}

HostProblem everyPairOfCodes(const Spec &spec) {
  HostProblem problem = plainProblem(spec, 256);
  constexpr int64_t place = 37;
  for (int64_t s = 0; s < 256; ++s)
    problem.x[size_t(s * problem.xStride + place)] = uint8_t(s);
  for (int64_t n = 0; n < spec.n; ++n)
    problem.w[size_t(n * spec.k + place)] = uint8_t(n);
  return problem;
}

HostProblem everyRounding(const Spec &spec) {
  constexpr int leastExponent = -149, exponents = 277;
  HostProblem problem = plainProblem(spec, 2 * exponents);
  for (int64_t r = 0; r < problem.rows; ++r) {
    problem.x[size_t(r * problem.xStride)] = oracle::encodeFp8(spec.xType, r % 2 ? -1 : 1);
    problem.xScales[size_t(r)] = float(std::ldexp(1.0, leastExponent + int(r / 2)));
  }
  for (int64_t n = 0; n < spec.n; ++n) {
    problem.w[size_t(n * spec.k)] = oracle::encodeFp8(spec.wType, 1);
    // An eighth of the output's unit is the step of f16 columns, a quarter that of bf16 ones; the
    // last columns come from below to the next power of two.
    double step = spec.outType == ElementType::F16 ? 0x1p-13 : 0x1p-9;
    problem.wScales[size_t(n)] =
        float(n < 200 ? 1 + double(n) * 3 * step : 2 - double(n - 200) * step / 2);
  }
  return problem;
}

double Probes::exactSum(size_t kind, int shift, bool withSmall) const {
  const Probe &probe = kinds[kind];
  double small = std::ldexp(probe.isSubtracted ? -1.0 : 1.0, 8 - shift);
  double sum = 256.0 * double(probe.largeAt.size());
  if (withSmall)
    sum += small * double(probe.smallAt.size());
  return probe.isNegative ? -sum : sum;
}

Probes makeProbes(const Spec &spec) {
  auto range = [](int first, int end) {
    std::vector<int> places;
    for (int i = first; i < end; ++i)
      places.push_back(i);
    return places;
  };
  Probes probes;
  probes.kinds = {
      {"one term beside a large one", {0}, {1}},
      {"one term in the other half of the instruction", {0}, {17}},
      {"the last term of the instruction", {0}, {31}},
      {"one term after a large accumulator", {0}, {32}},
      {"a small accumulator before a large term", {32}, {0}},
      {"one term taken from a large one", {0}, {1}, true},
      {"one term taken from a large accumulator", {0}, {32}, true},
      {"both negative", {0}, {1}, false, true},
      {"31 terms beside a large one", {0}, range(1, 32)},
      {"32 terms after a large accumulator", {0}, range(32, 64)},
      {"one term beside 16 large ones", range(0, 16), {16}},
      {"one term after an accumulator of 16 large ones", range(0, 16), {32}},
  };
  probes.problem = plainProblem(spec, int64_t(probes.kinds.size()) * Probes::shifts);
  for (size_t p = 0; p < probes.kinds.size(); ++p)
    for (int shift = 1; shift <= Probes::shifts; ++shift) {
      const Probe &probe = probes.kinds[p];
      const int64_t row = int64_t(p) * Probes::shifts + shift - 1;
      uint8_t *x = probes.problem.x.data() + row * probes.problem.xStride;
      const double sign = probe.isNegative ? -1 : 1;
      for (int k : probe.largeAt)
        x[k] = oracle::encodeFp8(spec.xType, sign * 256);
      for (int k : probe.smallAt)
        x[k] = oracle::encodeFp8(spec.xType,
                                 sign * std::ldexp(probe.isSubtracted ? -1.0 : 1.0, 8 - shift));
    }
  std::fill(probes.problem.w.begin(), probes.problem.w.end(), oracle::encodeFp8(spec.wType, 1));
  return probes;
}

oracle::QuantizeProblem everyValue(const Spec &spec, float givenScale, uint64_t seed) {
  oracle::QuantizeOptions options;
  options.hasSpecialValues = false;
  options.givenScale = givenScale;
  const int64_t rows = (65536 + spec.k - 1) / spec.k;
  oracle::QuantizeProblem problem =
      oracle::makeQuantizeProblem(spec, rows, std::max<uint64_t>(seed, 1), options);
  std::vector<uint16_t> values(65536);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = uint16_t(i);
  Random random(seed);
  if (seed != 0)
    random.shuffle(values);
  const bool isWide = *spec.quantizeFrom == ElementType::F32;
  constexpr uint16_t lowerHalves[] = {0, 0x7fff, 0x8000, 0x8001};
  for (int64_t i = 0; i < rows * spec.k; ++i) {
    const int64_t at = i / spec.k * problem.xStride + i % spec.k;
    const uint16_t upper = values[size_t(i) % values.size()];
    if (!isWide) {
      std::memcpy(problem.x.data() + 2 * at, &upper, 2);
      continue;
    }
    const uint32_t bits = uint32_t(upper) << 16 | lowerHalves[i % 4];
    std::memcpy(problem.x.data() + 4 * at, &bits, 4);
  }
  return problem;
}

} // namespace moejit::gpu
