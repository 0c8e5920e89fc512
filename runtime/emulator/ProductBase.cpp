// The inner product of wgmma for any CPU.
#include "runtime/emulator/Product.inc"

namespace moejit::emulated {
void multiplyTileBase(float *d, int n, const float *a, const float *b) { multiply(d, n, a, b); }
} // namespace moejit::emulated
