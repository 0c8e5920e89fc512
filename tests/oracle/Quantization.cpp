// Quantization by definition: granule by granule, element by element.
#include "tests/oracle/Quantization.h"

#include "tests/oracle/Fp8.h"
#include "tests/oracle/Problem.h"
#include "tests/oracle/Random.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

namespace moejit::oracle {

namespace {

int64_t roundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Elements that one scale covers along K.
int64_t granuleOf(const Spec &spec) {
  const Granule &k = spec.xScales.granule.back();
  return k.kind == Granule::Kind::Extent ? k.extent : spec.k;
}

bool isPerTensor(const Spec &spec) {
  return spec.xScales.granule.front().kind == Granule::Kind::Whole;
}

/// The stored scale tensor: `outer` rows of `inner` words.
struct StoredScales {
  int64_t rows;   ///< scale rows
  int64_t groups; ///< scales of one
  int64_t outer, inner, wordBytes;
};

StoredScales storedOf(const Spec &spec, int64_t rows) {
  const ScaleLayout &layout = spec.xScales;
  StoredScales stored;
  stored.rows = isPerTensor(spec) ? 1 : rows;
  stored.groups = isPerTensor(spec) ? 1 : (spec.k + granuleOf(spec) - 1) / granuleOf(spec);
  int64_t words = (stored.groups + layout.packing - 1) / layout.packing;
  stored.wordBytes = bytesOf(layout.type) * layout.packing;
  bool isMnMajor = layout.order == ScaleOrder::MnMajor;
  stored.outer = isMnMajor ? words : stored.rows;
  stored.inner = isMnMajor ? stored.rows : words;
  return stored;
}

/// Byte of the scale of `group` in scale row `row`.
int64_t scaleByte(const QuantizeProblem &problem, int64_t row, int64_t group) {
  const ScaleLayout &layout = problem.spec.xScales;
  int64_t word = group / layout.packing, inWord = group % layout.packing;
  int64_t words = layout.order == ScaleOrder::MnMajor ? word * problem.scaleStride + row
                                                      : row * problem.scaleStride + word;
  return words * bytesOf(layout.type) * layout.packing + inWord * bytesOf(layout.type);
}

/// The scale that data is divided by, and its bytes.
struct Scale {
  float value;
  std::vector<uint8_t> bytes;
};

Scale scaleOf(ElementType type, float exact) {
  if (type == ElementType::F32) {
    Scale scale{exact, std::vector<uint8_t>(4)};
    std::memcpy(scale.bytes.data(), &exact, 4);
    return scale;
  }
  uint8_t exponent = encodeE8M0(exact, PowerRounding::Up);
  return {decodeE8M0(exponent), {exponent}};
}

bool isNan(ElementType type, uint8_t code) {
  return type == ElementType::F8E4M3FN ? (code & 0x7f) == 0x7f : (code & 0x7f) > 0x7c;
}

/// Fills one granule with values of a kind that quantization could get wrong.
void fillSpecial(std::vector<double> &granule, int64_t kind, ElementType from, ElementType to,
                 Random &random) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  // The least magnitude of each type is a subnormal.
  double least = from == ElementType::F16    ? 0x1p-24
                 : from == ElementType::BF16 ? 0x1p-133
                                             : 0x1p-149;
  auto any = [&]() -> double & { return granule[random.below(granule.size())]; };
  switch (kind) {
  case 0: // nothing but zeros
    for (double &value : granule)
      value = random.below(2) ? 0.0 : -0.0;
    break;
  case 1:
    any() = nan;
    any() = -nan;
    break;
  case 2: // nothing to take a scale from
    std::fill(granule.begin(), granule.end(), nan);
    break;
  case 3:
    any() = infinity;
    break;
  case 4:
    any() = -infinity;
    any() = nan;
    break;
  case 5:
    for (double &value : granule)
      value = least * double(int64_t(random.below(7)) - 3);
    break;
  case 6: // a scale of exactly 1, and ties between codes
    for (double &value : granule)
      value = double(int64_t(random.below(57)) - 28) / 2;
    any() = from == ElementType::F16 || to == ElementType::F8E4M3FN ? 448.0 : 57344.0;
    break;
  default: // one value that dwarfs the others
    any() = largestFinite(from);
    break;
  }
}

} // namespace

void writeElement(ElementType type, void *data, int64_t index, double value) {
  char *at = static_cast<char *>(data) + index * bytesOf(type);
  if (type == ElementType::F32) {
    float narrow = float(value);
    std::memcpy(at, &narrow, 4);
    return;
  }
  uint16_t code = type == ElementType::BF16 ? encodeBf16(value) : encodeF16(value);
  if (std::isnan(value) && std::signbit(value))
    code |= 0x8000;
  std::memcpy(at, &code, 2);
}

QuantizeProblem makeQuantizeProblem(const Spec &spec, int64_t rows, uint64_t seed,
                                    const QuantizeOptions &options) {
  assert(spec.computation == Computation::Quantize && spec.quantizeFrom && rows >= 0);
  constexpr int64_t run = 32;
  ElementType from = *spec.quantizeFrom;
  QuantizeProblem problem;
  problem.spec = spec;
  problem.rows = rows;
  problem.xStride = roundUp(spec.k + options.xPadElements, 16 / bytesOf(from));
  problem.yStride = roundUp(spec.k + options.yPadElements, 16);
  StoredScales stored = storedOf(spec, rows);
  int64_t align = std::max<int64_t>(spec.xScales.alignBytes, stored.wordBytes);
  bool hasRows = stored.outer > 1 || spec.xScales.alignBytes > 0;
  int64_t pad = hasRows ? options.scalePadWords : 0;
  problem.scaleStride = roundUp((stored.inner + pad) * stored.wordBytes, align) / stored.wordBytes;
  if (spec.xScales.source == ScaleSource::Static) {
    problem.givenScale = scaleOf(spec.xScales.type, options.givenScale).bytes;
    if (spec.xScales.type != ElementType::F32)
      problem.givenScale[0] = encodeE8M0(options.givenScale, PowerRounding::Down);
    problem.givenScale.resize(stored.wordBytes);
  }

  problem.x.assign(rows * problem.xStride * bytesOf(from), poisonByte);
  Random random(seed);
  int64_t granule = granuleOf(spec);
  std::vector<double> values(spec.k);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t begin = 0; begin < spec.k; begin += run) {
      double magnitude = std::ldexp(1.0, int(random.below(25)) - 12);
      for (int64_t k = begin; k < std::min(begin + run, spec.k); ++k)
        values[k] = random.normal() * magnitude;
    }
    for (int64_t begin = 0; options.hasSpecialValues && begin < spec.k; begin += granule) {
      // Most granules of one row, and most rows of one granule each, stay as they are.
      if (random.below(3) != 0)
        continue;
      int64_t size = std::min(granule, spec.k - begin);
      std::vector<double> special(values.begin() + begin, values.begin() + begin + size);
      fillSpecial(special, int64_t(random.below(8)), from, spec.xType, random);
      std::copy(special.begin(), special.end(), values.begin() + begin);
    }
    for (int64_t k = 0; k < spec.k; ++k)
      writeElement(from, problem.x.data(), r * problem.xStride + k, values[k]);
  }
  return problem;
}

int64_t storedScaleBytes(const QuantizeProblem &problem) {
  StoredScales stored = storedOf(problem.spec, problem.rows);
  if (stored.outer == 0 || stored.inner == 0)
    return 0;
  return ((stored.outer - 1) * problem.scaleStride + stored.inner) * stored.wordBytes;
}

QuantizeResult quantized(const QuantizeProblem &problem) {
  const Spec &spec = problem.spec;
  ElementType from = *spec.quantizeFrom;
  std::vector<float> values(problem.rows * spec.k);
  for (int64_t r = 0; r < problem.rows; ++r)
    for (int64_t k = 0; k < spec.k; ++k)
      values[r * spec.k + k] = float(readElement(from, problem.x.data(), r * problem.xStride + k));

  QuantizeResult result;
  result.codes.resize(values.size());
  result.scales.assign(storedScaleBytes(problem), poisonByte);
  StoredScales stored = storedOf(spec, problem.rows);
  auto quantizeRange = [&](int64_t begin, int64_t size, float scale) {
    for (int64_t i = begin; i < begin + size; ++i)
      result.codes[i] = quantize(values[i], scale, spec.xType);
  };
  auto put = [&](const Scale &scale, int64_t row, int64_t group) {
    std::copy(scale.bytes.begin(), scale.bytes.end(),
              result.scales.begin() + scaleByte(problem, row, group));
  };
  if (spec.xScales.source == ScaleSource::Static) {
    float scale = 0;
    if (spec.xScales.type == ElementType::F32)
      std::memcpy(&scale, problem.givenScale.data(), 4);
    else
      scale = decodeE8M0(problem.givenScale[0]);
    std::copy(problem.givenScale.begin(), problem.givenScale.end(), result.scales.begin());
    quantizeRange(0, int64_t(values.size()), scale);
    return result;
  }
  // What a row's last word has no scale for is zero.
  for (int64_t row = 0; row < stored.rows && problem.rows > 0; ++row)
    for (int64_t group = stored.groups; group % spec.xScales.packing != 0; ++group)
      result.scales[scaleByte(problem, row, group)] = 0;
  if (isPerTensor(spec)) {
    if (problem.rows == 0)
      return result;
    Scale scale = scaleOf(spec.xScales.type, quantizationScale(values, spec.xType));
    put(scale, 0, 0);
    quantizeRange(0, int64_t(values.size()), scale.value);
    return result;
  }
  int64_t granule = granuleOf(spec);
  for (int64_t row = 0; row < problem.rows; ++row)
    for (int64_t group = 0; group < stored.groups; ++group) {
      int64_t begin = row * spec.k + group * granule;
      int64_t size = std::min(granule, spec.k - group * granule);
      std::span<const float> members(values.data() + begin, size_t(size));
      Scale scale = scaleOf(spec.xScales.type, quantizationScale(members, spec.xType));
      put(scale, row, group);
      quantizeRange(begin, size, scale.value);
    }
  return result;
}

QuantizeOutput QuantizeOutput::make(const QuantizeProblem &problem) {
  QuantizeOutput output;
  int64_t yBytes = problem.rows * problem.yStride;
  output.y.assign(yBytes + 2 * canaryBytes, poisonByte);
  output.scales.assign(storedScaleBytes(problem) + 2 * canaryBytes, poisonByte);
  std::copy(problem.givenScale.begin(), problem.givenScale.end(),
            output.scales.begin() + canaryBytes);
  return output;
}

std::string QuantizeComparison::text() const {
  if (ok())
    return fmt::format("{} codes and {} bytes of scales, bit for bit", codes, scaleBytes);
  std::string text = fmt::format("{} of {} codes and {} of {} bytes of scales differ", wrongCodes,
                                 codes, wrongScaleBytes, scaleBytes);
  if (!first.empty())
    text += "; first: " + first;
  if (!canary.empty())
    text += "; " + canary;
  return text;
}

QuantizeComparison compareQuantized(const QuantizeProblem &problem, const QuantizeOutput &output) {
  const Spec &spec = problem.spec;
  QuantizeResult expected = quantized(problem);
  QuantizeComparison comparison;
  const uint8_t *y = output.y.data() + QuantizeOutput::canaryBytes;
  for (int64_t r = 0; r < problem.rows; ++r)
    for (int64_t k = 0; k < spec.k; ++k) {
      uint8_t code = y[r * problem.yStride + k], right = expected.codes[r * spec.k + k];
      ++comparison.codes;
      if (code == right || (isNan(spec.xType, code) && isNan(spec.xType, right)))
        continue;
      if (comparison.wrongCodes++ == 0)
        comparison.first = fmt::format(
            "row {}, element {}: code {:#04x}, expected {:#04x} for {}", r, k, code, right,
            readElement(*spec.quantizeFrom, problem.x.data(), r * problem.xStride + k));
    }
  const uint8_t *scales = output.scales.data() + QuantizeOutput::canaryBytes;
  for (size_t i = 0; i < expected.scales.size(); ++i) {
    ++comparison.scaleBytes;
    if (scales[i] == expected.scales[i])
      continue;
    if (comparison.wrongScaleBytes++ == 0 && comparison.first.empty())
      comparison.first = fmt::format("byte {} of the scales: {:#04x}, expected {:#04x}", i,
                                     scales[i], expected.scales[i]);
  }
  int64_t yBytes = problem.rows * problem.yStride;
  for (int64_t i = -QuantizeOutput::canaryBytes; i < yBytes + QuantizeOutput::canaryBytes; ++i) {
    bool isResult = i >= 0 && i < yBytes && i % problem.yStride < spec.k;
    if (!isResult && y[i] != poisonByte && comparison.canary.empty())
      comparison.canary = fmt::format("byte {} of y was overwritten", i);
  }
  int64_t scaleBytes = int64_t(expected.scales.size());
  for (int64_t i = 1; i <= QuantizeOutput::canaryBytes; ++i)
    if ((scales[-i] != poisonByte || scales[scaleBytes + i - 1] != poisonByte) &&
        comparison.canary.empty())
      comparison.canary = fmt::format("bytes {} before or after the scales were overwritten", i);
  return comparison;
}

} // namespace moejit::oracle
