// Operands whose results are specified to the last bit, so that a GPU and the emulator must agree
// on them: exact sums, every pair of codes, every rounding, every 16-bit value; and probes of how
// the tensor cores add. Launches nothing.
#pragma once

#include "tests/oracle/Problem.h"
#include "tests/oracle/Quantization.h"

#include <string>
#include <vector>

namespace moejit::gpu {

/// Replaces the codes of w and of owned rows of x by multiples of one power of two between -2 and 2
/// times it. Every product and every sum over up to 2^11 of them then is a multiple of it that fits
/// into 13 fraction bits: whatever the order and the cuts of docs/numerics.md, nothing is lost.
/// Where the launch quantizes x, its x becomes such that codes and scales are exact.
void makeExact(oracle::HostProblem &problem);

/// 256 rows times N columns of one expert: row s has the code s at one place of K, column n the
/// code n mod 256, everything else is 0 and every scale 1. For unpacked f32 scales and both types
/// fp8.
oracle::HostProblem everyPairOfCodes(const Spec &spec);

/// y = ±2^e · (1 + f) for every exponent e of fp32 and an f for each column: ties of the output
/// type, values next to them, and carries into the next power of two. For one scale a row and one a
/// column.
oracle::HostProblem everyRounding(const Spec &spec);

/// A way to put a large product, 2^8, and small ones, 2^(8 - j), into one sum.
struct Probe {
  std::string name;
  std::vector<int> largeAt, smallAt; ///< places along K, one wgmma instruction each 32
  bool isSubtracted = false;         ///< the small ones are negative
  bool isNegative = false;           ///< all are
};

/// Rows of one problem: probe p with shift j is row p · shifts + j - 1, j from 1 to `shifts`. Every
/// column is the same.
struct Probes {
  static constexpr int shifts = 17; ///< 2^8 / 2^17 is the smallest e4m3 number
  std::vector<Probe> kinds;
  oracle::HostProblem problem;

  /// The sum in exact arithmetic; `withSmall` false: of the large products alone.
  double exactSum(size_t kind, int shift, bool withSmall = true) const;
};
/// For an eager `spec` of e4m3 codes, one scale a row and one a column, and f32 output.
Probes makeProbes(const Spec &spec);

/// Every value of 16 bits once or more among the elements of x, in order, or in an order drawn by
/// `seed` when that is not 0. An f32 x gets them as its upper halves, with a lower half that is 0,
/// half a unit, or next to it.
oracle::QuantizeProblem everyValue(const Spec &spec, float givenScale, uint64_t seed);

} // namespace moejit::gpu
