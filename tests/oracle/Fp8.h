// Conversions between small float formats and host numbers, bit by bit: the one definition tests
// compare with. Knows nothing of tensors. Everything is pure.
#pragma once

#include "runtime/Spec.h"

#include <array>
#include <cstdint>
#include <span>

namespace moejit::oracle {

/// The value of an fp8 code. e4m3fn: S.1111.111 is NaN, there is no infinity, the largest value is
/// 448. e5m2: IEEE-like, with infinities; the largest finite value is 57344 (OCP FP8 1.0).
float decodeE4M3(uint8_t code);
float decodeE5M2(uint8_t code);
/// 2^(code - 127); 255 is NaN, 0 is 2^-127, a subnormal of fp32 (OCP MX 1.0).
float decodeE8M0(uint8_t code);
float decodeBf16(uint16_t code);
float decodeF16(uint16_t code);

/// The nearest code, ties to even. Saturating: anything beyond the largest finite value, infinities
/// too, gives that value with its sign. NaN gives 0x7f with the sign of the NaN.
uint8_t encodeE4M3(double value);
uint8_t encodeE5M2(double value);
/// The nearest code, ties to even, overflow to infinity (PTX cvt.rn). NaN gives the canonical
/// 0x7fff of PTX.
uint16_t encodeBf16(double value);
uint16_t encodeF16(double value);

/// Which power of two stands for a scale that is none.
enum class PowerRounding { Down, Up };
/// The exponent byte of a positive `value`: its fp32 exponent field, one more when rounding up and
/// the fraction is not zero. Values up to 2^-127 give 0, values above 2^127 (infinity too) 254,
/// negative values and NaN 255.
uint8_t encodeE8M0(float value, PowerRounding rounding);

/// True for the two fp8 types that data may have.
bool isFp8(ElementType type);
/// The 256 values of an fp8 or e8m0 type.
const std::array<float, 256> &decodeTable(ElementType type);
/// encodeE4M3 or encodeE5M2, by `type`.
uint8_t encodeFp8(ElementType type, double value);
/// The largest finite value of an fp8, f16 or bf16 type, or of f32.
double largestFinite(ElementType type);
/// The element at `index` of an array of f32, bf16 or f16.
double readElement(ElementType type, const void *data, int64_t index);
/// Bytes of one element; the oracle's own, so that it agrees with nobody by construction.
int64_t bytesOf(ElementType type);
/// Half the distance between neighbours of `type` (bf16, f16, f32) around `magnitude` ≥ 0: the
/// largest error that round-to-nearest makes there. Gradual underflow is counted.
double halfUlp(ElementType type, double magnitude);

/// The dynamic scale of one granule: max(amax, 1e-12) / largestFinite(type), in fp32. amax skips
/// NaN and takes infinities as the largest fp32, so that the scale is always finite and not zero.
float quantizationScale(std::span<const float> granule, ElementType type);
/// The code of `value` under `scale`: IEEE fp32 division, then saturating round to nearest even;
/// NaN stays NaN.
uint8_t quantize(float value, float scale, ElementType type);

} // namespace moejit::oracle
