// Makes test operands. The order in which random numbers are drawn is part of what a seed means.
#include "tests/oracle/Problem.h"

#include "tests/oracle/Fp8.h"
#include "tests/oracle/Random.h"
#include "tests/oracle/ScaleGeometry.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <numeric>
#include <span>

namespace moejit::oracle {

namespace {

int64_t roundUp(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

/// Random fp8 codes: 2^16 rounded normals made once, then drawn from.
class CodeSource {
public:
  CodeSource(ElementType type, uint64_t seed) : random(seed) {
    pool.resize(1 << 16);
    for (uint8_t &code : pool)
      code = encodeFp8(type, random.normal() * largestFinite(type) / 4);
  }
  void fill(uint8_t *out, int64_t count) {
    for (int64_t i = 0; i < count;) {
      uint64_t bits = random.next();
      for (int j = 0; j < 4 && i < count; ++j, ++i, bits >>= 16)
        out[i] = pool[bits & 0xffff];
    }
  }

private:
  Random random;
  std::vector<uint8_t> pool;
};

/// `count` scales around 2^centre: evenly spread exponents in random order, or random powers of two
/// for e8m0.
std::vector<float> drawScales(const ScaleLayout &layout, int64_t count, int64_t centre,
                              int64_t span, double shift, Random &random) {
  std::vector<float> scales(count);
  for (int64_t i = 0; i < count; ++i) {
    double position =
        2.0 * (double(i) + shift) / double(count) - 1; // in [-1, 1), `shift` in [0, 1)
    if (layout.type == ElementType::F32)
      scales[i] = float(std::exp2(double(centre) + double(span) * position));
    else
      scales[i] = float(std::ldexp(1.0, int(centre - span + int64_t(random.below(2 * span + 1)))));
  }
  random.shuffle(scales);
  return scales;
}

/// Scatters logical scales into their storage, NaN where there is padding.
std::vector<float> storeScales(const ScaleGeometry &geometry, const std::vector<float> &logical) {
  std::vector<float> stored(geometry.storedSize(), std::numeric_limits<float>::quiet_NaN());
  size_t next = 0;
  for (int64_t e = 0; e < geometry.expert.count; ++e)
    for (int64_t mn = 0; mn < geometry.mn.count; ++mn)
      for (int64_t k = 0; k < geometry.k.count; ++k)
        stored[geometry.position(e, mn, k)] = logical[next++];
  return stored;
}

/// Writes `value` as element `index` of an array of `type`, and returns what then is there.
float writeElement(ElementType type, uint8_t *data, int64_t index, double value) {
  if (type == ElementType::F32) {
    auto rounded = float(value);
    std::memcpy(data + 4 * index, &rounded, 4);
  } else {
    uint16_t code = type == ElementType::BF16 ? encodeBf16(value) : encodeF16(value);
    std::memcpy(data + 2 * index, &code, 2);
  }
  return float(readElement(type, data, index));
}

/// The scale of `values` in the type that `layout` stores.
float scaleOf(const ScaleLayout &layout, ElementType type, std::span<const float> values) {
  float scale = quantizationScale(values, type);
  if (layout.type == ElementType::F32)
    return scale;
  return decodeTable(ElementType::F8E8M0FNU)[encodeE8M0(scale, PowerRounding::Up)];
}

/// Draws x as it is given, then codes and scales as quantization defines them. Every granule has a
/// magnitude of its own, so that no scale stands for another. Rows nobody owns stay poison.
void makeSource(HostProblem &problem, const ScaleGeometry &geometry, int64_t centre,
                const ProblemOptions &options, Random &random) {
  const Spec &spec = problem.spec;
  const ElementType from = *spec.quantizeFrom;
  const int64_t step = 16 / bytesOf(from);
  problem.xSourceStride = roundUp(spec.k + options.xPadBytes, step);
  problem.xSource.assign(problem.rows * problem.xSourceStride * bytesOf(from), poisonByte);
  std::fill(problem.xScales.begin(), problem.xScales.end(),
            std::numeric_limits<float>::quiet_NaN());
  const std::vector<int32_t> owners = rowOwners(problem);
  std::vector<float> all(problem.rows * spec.k);
  const bool isPerTensor = spec.xScales.isPerTensor();
  const int64_t granule = spec.xScales.kGranule() ? spec.xScales.kGranule() : spec.k;
  const double sigma = largestFinite(spec.xType) / 4 * std::exp2(double(centre));
  auto span = double(options.scaleExponent);
  for (int64_t r = 0; r < problem.rows; ++r)
    for (int64_t k = 0; owners[r] >= 0 && k < spec.k; k += granule) {
      double spread = double(random.below(1 << 16)) / (1 << 15) - 1;
      double magnitude = sigma * (isPerTensor ? 1 : std::exp2(span * spread));
      for (int64_t i = k; i < std::min(k + granule, spec.k); ++i)
        all[r * spec.k + i] =
            writeElement(from, problem.xSource.data(), r * problem.xSourceStride + i,
                         random.normal() * magnitude);
    }
  // Rows of nobody are zero here: they raise no magnitude.
  const float tensorScale = isPerTensor ? scaleOf(spec.xScales, spec.xType, all) : 0;
  for (int64_t r = 0; r < problem.rows; ++r)
    for (int64_t k = 0; owners[r] >= 0 && k < spec.k; k += granule) {
      std::span<const float> values(all.data() + r * spec.k + k,
                                    size_t(std::min(granule, spec.k - k)));
      float scale = isPerTensor ? tensorScale : scaleOf(spec.xScales, spec.xType, values);
      problem.xScales[geometry.index(owners[r], r, k)] = scale;
      for (size_t i = 0; i < values.size(); ++i)
        problem.x[r * problem.xStride + k + int64_t(i)] = quantize(values[i], scale, spec.xType);
    }
}

/// Fills offsets, expertIds or counts.
void route(HostProblem &problem, const Routing &routing, uint64_t seed,
           const ProblemOptions &options) {
  const Spec &spec = problem.spec;
  int64_t numExperts = spec.numExperts;
  if (routing.kind == Routing::Kind::Offsets) {
    assert(spec.dispatch == Dispatch::Grouped);
    assert(int64_t(routing.offsets.size()) == numExperts + 1);
    problem.offsets = routing.offsets;
    return;
  }
  if (spec.dispatch == Dispatch::Eager)
    return;
  bool isGrouped = spec.dispatch == Dispatch::Grouped;
  int64_t ownable = problem.rows - (isGrouped ? options.leadingRows + options.trailingRows : 0);
  assert(ownable >= 0);
  std::vector<int64_t> counts = drawCounts(routing, numExperts, ownable, seed);
  if (isGrouped) {
    int64_t boundary = options.leadingRows;
    problem.offsets.push_back(int32_t(boundary));
    for (int64_t count : counts)
      problem.offsets.push_back(int32_t(boundary += count));
    assert(boundary <= problem.rows && "more counts than rows");
  } else if (spec.dispatch == Dispatch::Masked) {
    for (int64_t count : counts)
      problem.counts.push_back(int32_t(std::min(count, spec.maxRows)));
  } else {
    for (int64_t e = 0; e < numExperts; ++e)
      problem.expertIds.insert(problem.expertIds.end(), counts[e], int32_t(e));
    assert(int64_t(problem.expertIds.size()) <= problem.rows && "more counts than rows");
    // Rows left over carry both kinds of sentinel.
    while (int64_t(problem.expertIds.size()) < problem.rows)
      problem.expertIds.push_back(problem.expertIds.size() % 2 ? -1 : int32_t(numExperts));
    Random(seed ^ 0x1d).shuffle(problem.expertIds);
    // Local expert e is the global one at the map's other end; global experts in front of the local
    // ones live elsewhere.
    if (int64_t globals = spec.expertMapSize; globals != 0) {
      assert(globals >= numExperts && "fewer global than local experts");
      problem.expertMap.assign(globals, -1);
      for (int64_t e = 0; e < numExperts; ++e)
        problem.expertMap[globals - 1 - e] = int32_t(e);
      for (int32_t &id : problem.expertIds)
        if (id == numExperts)
          id = globals > numExperts ? 0 : int32_t(globals);
        else if (id >= 0)
          id = int32_t(globals - 1 - id);
    }
  }
}

} // namespace

/// The binary exponent around which the scales of `spec` lie: it brings a typical y to 1 (f16:
/// 2^-6, as the largest scales multiply it by 2^16).
static int64_t scaleCentre(const Spec &spec) {
  double deviation = largestFinite(spec.xType) * largestFinite(spec.wType) / 16;
  int64_t centre = -int64_t(std::lround(std::log2(deviation * std::sqrt(double(spec.k)))));
  return spec.outType == ElementType::F16 ? centre - 6 : centre;
}

/// All but the weights; the random numbers that come after.
static Random makeRows(HostProblem &problem, int64_t rows, const Routing &routing, uint64_t seed,
                       const ProblemOptions &options) {
  const Spec &spec = problem.spec;
  assert(rows >= 0 && spec.n > 0 && spec.k > 0);
  problem.rows = rows;
  problem.xStride = roundUp(spec.k + options.xPadBytes, 16);
  problem.yStride = roundUp(spec.n + options.yPadElements, 16 / bytesOf(spec.outType));
  route(problem, routing, seed + 1, options);

  CodeSource xCodes(spec.xType, seed + 2);
  problem.x.assign(rows * problem.xStride, poisonByte);
  std::vector<int32_t> owners = rowOwners(problem);
  for (int64_t r = 0; r < rows; ++r)
    if (owners[r] >= 0)
      xCodes.fill(problem.x.data() + r * problem.xStride, spec.k);

  int64_t centre = scaleCentre(spec);
  Random scaleRandom(seed + 4);
  ScaleGeometry x = ScaleGeometry::ofX(spec, rows);
  if (options.xScalePad > 0 && rows > 0) {
    int64_t wordBytes = bytesOf(spec.xScales.type) * spec.xScales.packing;
    int64_t step = std::max<int64_t>(1, spec.xScales.alignBytes / wordBytes);
    // The only row of a tensor is not padded, but a stride that is given is a legal one.
    x = ScaleGeometry::ofX(spec, rows, roundUp(x.stride + options.xScalePad, step));
  }
  problem.xScaleStride = x.stride;
  problem.xScales = storeScales(x, drawScales(spec.xScales, x.logicalSize(), centre / 2,
                                              options.scaleExponent, 0.25, scaleRandom));
  if (spec.quantizeFrom) {
    Random sourceRandom(seed + 5);
    makeSource(problem, x, centre / 2, options, sourceRandom);
  }
  return scaleRandom;
}

HostProblem makeProblem(const Spec &spec, int64_t rows, const Routing &routing, uint64_t seed,
                        const ProblemOptions &options) {
  HostProblem problem;
  problem.spec = spec;
  Random scaleRandom = makeRows(problem, rows, routing, seed, options);
  problem.w.resize(spec.numExperts * spec.n * spec.k);
  CodeSource(spec.wType, seed + 3).fill(problem.w.data(), int64_t(problem.w.size()));
  int64_t centre = scaleCentre(spec);
  ScaleGeometry w = ScaleGeometry::ofW(spec);
  problem.wScales = storeScales(w, drawScales(spec.wScales, w.logicalSize(), centre - centre / 2,
                                              options.scaleExponent, 0.75, scaleRandom));
  return problem;
}

void remakeRows(HostProblem &problem, int64_t rows, const Routing &routing, uint64_t seed,
                const ProblemOptions &options) {
  HostProblem fresh;
  fresh.spec = problem.spec;
  makeRows(fresh, rows, routing, seed, options);
  fresh.w.swap(problem.w);
  fresh.wScales.swap(problem.wScales);
  problem = std::move(fresh);
}

HostOutput HostOutput::make(const HostProblem &problem) {
  HostOutput output;
  output.rowBytes = problem.yStride * bytesOf(problem.spec.outType);
  output.bytes.assign((problem.rows + 2 * canaryRows) * output.rowBytes, poisonByte);
  return output;
}

std::string findOverwrittenCanary(const HostProblem &problem, const HostOutput &output) {
  int64_t used = problem.spec.n * bytesOf(problem.spec.outType);
  int64_t allRows = int64_t(output.bytes.size()) / output.rowBytes;
  for (int64_t r = 0; r < allRows; ++r) {
    int64_t row = r - HostOutput::canaryRows;
    bool isCanary = row < 0 || row >= problem.rows;
    for (int64_t b = isCanary ? 0 : used; b < output.rowBytes; ++b)
      if (output.bytes[r * output.rowBytes + b] != poisonByte)
        return fmt::format("byte {} of row {} was overwritten; y has rows 0 to {} of {} bytes", b,
                           row, problem.rows - 1, used);
  }
  return {};
}

std::vector<uint8_t> storedScales(const ScaleLayout &layout, const std::vector<float> &scales) {
  if (layout.type == ElementType::F32) {
    std::vector<uint8_t> bytes(scales.size() * 4);
    std::memcpy(bytes.data(), scales.data(), bytes.size());
    return bytes;
  }
  std::vector<uint8_t> bytes;
  for (float scale : scales)
    bytes.push_back(encodeE8M0(scale, PowerRounding::Down));
  return bytes;
}

} // namespace moejit::oracle
