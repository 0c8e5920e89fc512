// The definition of the right answer of a quantization of its own, its test data, and the
// comparison, which is exact. Knows nothing of kernels, plans or devices.
#pragma once

#include "runtime/Spec.h"

#include <cstdint>
#include <string>
#include <vector>

namespace moejit::oracle {

/// One launch's operands on the host.
struct QuantizeProblem {
  Spec spec;               ///< of Computation::Quantize
  int64_t rows = 0;        ///< S
  std::vector<uint8_t> x;  ///< elements of quantizeFrom, row r at r · xStride
  int64_t xStride = 0;     ///< elements between rows of x, ≥ K
  int64_t yStride = 0;     ///< codes between rows of y, ≥ K
  int64_t scaleStride = 0; ///< stored words between stored rows of scales, ≥ the words of one
  std::vector<uint8_t> givenScale; ///< static: the bytes of the one scale; dynamic: empty
};

struct QuantizeOptions {
  int64_t xPadElements = 0;   ///< between rows of x, poisoned; xStride stays a multiple of 16 bytes
  int64_t yPadElements = 0;   ///< between rows of y; yStride stays a multiple of 16
  int64_t scalePadWords = 0;  ///< between stored rows; the stride keeps the layout's alignment
  float givenScale = 0.0625f; ///< static schemes; ue8m0 takes the power of two below it
  bool hasSpecialValues = true; ///< zeros of both signs, NaN, infinities, subnormals, exact ties
};

/// Random values for `spec` and `rows` rows, deterministic in `seed`. The magnitude changes every
/// 32 elements by up to 2^±12, so that a scale of a neighbour shows; with special values some
/// granules are all zero, all NaN, hold an infinity, only subnormals, or exactly the largest value
/// of y.
QuantizeProblem makeQuantizeProblem(const Spec &spec, int64_t rows, uint64_t seed,
                                    const QuantizeOptions &options = {});

/// Writes `value`, rounded, as element `index` of an array of bf16, f16 or f32.
void writeElement(ElementType type, void *data, int64_t index, double value);

/// Codes, and scales as they are stored.
struct QuantizeResult {
  std::vector<uint8_t> codes;  ///< [rows, K], packed
  std::vector<uint8_t> scales; ///< stored rows at scaleStride words; poison between them
};

/// Bytes of the stored scale tensor of `problem`, padding between its rows counted.
int64_t storedScaleBytes(const QuantizeProblem &problem);
/// The right answer. Static schemes give the scale that was given.
QuantizeResult quantized(const QuantizeProblem &problem);

/// Output buffers: every byte poison, with canaries around y and the scales.
struct QuantizeOutput {
  static constexpr int64_t canaryBytes = 256; ///< before and after each
  std::vector<uint8_t> y, scales;

  /// Of static schemes `scales` holds the scale that was given, between its canaries.
  static QuantizeOutput make(const QuantizeProblem &problem);
  uint8_t *yData() { return y.data() + canaryBytes; }
  uint8_t *scaleData() { return scales.data() + canaryBytes; }
};

/// What `output` is, beside `problem`'s right answer.
struct QuantizeComparison {
  int64_t codes = 0, wrongCodes = 0; ///< NaN codes are equal whatever their sign
  int64_t scaleBytes = 0, wrongScaleBytes = 0;
  std::string first;  ///< the first difference, or nothing
  std::string canary; ///< the first byte overwritten outside the results, or nothing

  bool ok() const { return wrongCodes == 0 && wrongScaleBytes == 0 && canary.empty(); }
  std::string text() const;
};
QuantizeComparison compareQuantized(const QuantizeProblem &problem, const QuantizeOutput &output);

} // namespace moejit::oracle
