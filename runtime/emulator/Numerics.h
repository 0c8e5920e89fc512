// The number formats of the emulated instructions: fp8 decoding and the roundings of cvt, bit for
// bit.
#pragma once

#include <array>
#include <cstdint>

namespace moejit::emulated {

/// Values of the 256 codes of fp8 e4m3 (finite only, NaN at 0x7f and 0xff) and of e5m2 (with
/// infinities).
extern const std::array<float, 256> e4m3Values;
extern const std::array<float, 256> e5m2Values;

/// `cvt.rn.bf16.f32`: nearest even; NaN gives 0x7fff; overflow gives infinity.
uint16_t roundToBf16(float value);
/// `cvt.rn.f16.f32`: nearest even, subnormals kept; NaN gives 0x7fff; overflow gives infinity.
uint16_t roundToF16(float value);
/// `cvt.f32.f16`: exact.
float widenF16(uint16_t code);
/// `cvt.rn.satfinite.e4m3x2.f32` and `….e5m2x2.f32`, one element: nearest even, subnormals kept;
/// beyond the largest finite value, infinities too, that value; NaN gives 0x7f.
uint8_t roundToE4M3(float value);
uint8_t roundToE5M2(float value);

} // namespace moejit::emulated
