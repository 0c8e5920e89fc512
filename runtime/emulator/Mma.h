// mma.sync of one warp: fragments, and the product. No state.
#pragma once

namespace moejit::emulated {

/// The operands of the 32 lanes of a warp at mma.m16n8k32 (fp8) or mma.m16n8k16 (bf16, f16).
struct MmaFragments {
  int a[32][4];
  int b[32][2];
  float d[32][4]; ///< the accumulator, then the result
};

/// d += A · B. `types`: WgmmaTypes for fp8, MmaTypes for 16 bits (DeviceTable.h). For each element
/// the products are added to the accumulator one by one in the order of k; each product is exact
/// and each sum rounded to fp32. NaN has no particular payload.
void multiplyFragments(MmaFragments &fragments, int types);

} // namespace moejit::emulated
