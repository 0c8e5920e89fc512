// Test data: random operands that make a wrong index visible, poisoned padding, and output buffers
// with canaries.
#pragma once

#include "tests/oracle/Oracle.h"
#include "tests/oracle/Routing.h"

#include <cstdint>
#include <string>
#include <vector>

namespace moejit::oracle {

/// Byte that fills padding, outputs and canaries: NaN as e4m3fn, e5m2, bf16, f16 and f32, -1 as an
/// integer.
constexpr uint8_t poisonByte = 0xff;

struct ProblemOptions {
  int64_t leadingRows = 0;  ///< grouped: rows before offsets[0], owned by nobody
  int64_t trailingRows = 0; ///< grouped: rows from offsets[E] on, owned by nobody
  int64_t xPadBytes = 0;    ///< bytes between rows of x, poisoned; xStride stays a multiple of 16
  int64_t yPadElements = 0; ///< elements between rows of y; yStride stays a multiple of 16 bytes
  int64_t xScalePad =
      0; ///< words between rows or K blocks of xScales, NaN; keeps the layout's alignment
  int64_t scaleExponent = 8; ///< scales span 2^-this to 2^this around their centre
};

/// Operands for `spec` and `rows` rows (masked: numExperts · maxRows), deterministic in `seed`.
///
/// Codes are rounded normal numbers of a quarter of the type's range, never NaN or infinite. Scales
/// are all distinct (f32), spread evenly over the exponents in random order, so that swapping any
/// two of them shows; their centre keeps y within f16's range. Rows of x that nobody owns are
/// poison: reading them into another row's sum shows as NaN. Where the launch quantizes x, normal
/// numbers of a magnitude of their own for each granule are drawn instead, and quantized.
HostProblem makeProblem(const Spec &spec, int64_t rows, const Routing &routing, uint64_t seed,
                        const ProblemOptions &options = {});

/// Other rows for the same weights: everything of `problem` but w and its scales is made anew, as
/// makeProblem would.
void remakeRows(HostProblem &problem, int64_t rows, const Routing &routing, uint64_t seed,
                const ProblemOptions &options = {});

/// An output buffer: every byte poison, `canaryRows` rows before and after the rows of y.
struct HostOutput {
  static constexpr int64_t canaryRows = 4;
  std::vector<uint8_t> bytes;
  int64_t rowBytes = 0; ///< of one row, padding included

  static HostOutput make(const HostProblem &problem);
  /// Row 0 of y. 16-byte aligned.
  void *data() { return bytes.data() + canaryRows * rowBytes; }
  const void *data() const { return bytes.data() + canaryRows * rowBytes; }
};

/// Bytes written before the first row, after the last one, or between rows; a sentence naming the
/// first, or nothing.
std::string findOverwrittenCanary(const HostProblem &problem, const HostOutput &output);

/// The bytes of a scale tensor as a kernel reads them: fp32 values, or exponent bytes for
/// f8E8M0FNU, packed ones too (the first of a word is its lowest byte).
std::vector<uint8_t> storedScales(const ScaleLayout &layout, const std::vector<float> &scales);

} // namespace moejit::oracle
