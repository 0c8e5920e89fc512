// The inner product of wgmma for x86-64-v3 (AVX2 and FMA): the same values, sooner.
#include "runtime/emulator/Product.inc"

namespace moejit::emulated {
void multiplyTileV3(float *d, int n, const float *a, const float *b) { multiply(d, n, a, b); }
} // namespace moejit::emulated
