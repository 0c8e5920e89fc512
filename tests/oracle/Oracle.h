// The definition of the right answer: y = Σ_k x·sx · w·sw in fp64 for the rows that experts own,
// and a bound on how far a correct kernel may be from it (docs/numerics.md). Knows nothing of
// kernels, plans or devices.
#pragma once

#include "runtime/Spec.h"

#include <cstdint>
#include <vector>

namespace moejit::oracle {

/// One launch's operands on the host. Rows of masked problems are counted flat: row r is row r %
/// maxRows of expert r / maxRows, and `rows` is numExperts · maxRows.
struct HostProblem {
  Spec spec;
  int64_t rows = 0;               ///< S
  std::vector<int32_t> offsets;   ///< grouped: [E + 1], as the kernel sees them (not clamped)
  std::vector<int32_t> expertIds; ///< batched: [S]
  std::vector<int32_t> expertMap; ///< batched with a map: global → local
  std::vector<int32_t> counts;    ///< masked: [E]
  std::vector<uint8_t> x;         ///< codes, row r at r · xStride
  /// Where the launch itself quantizes x: x as it is given, of spec.quantizeFrom, row r at element
  /// r · xSourceStride. `x` and `xScales` then are what quantization must make of it.
  std::vector<uint8_t> xSource;
  std::vector<uint8_t> w;     ///< codes [E, N, K], contiguous
  std::vector<float> xScales; ///< as stored, padding included; e8m0 scales as their values
  std::vector<float> wScales; ///< as stored
  int64_t xStride = 0;        ///< bytes between rows of x, ≥ K
  int64_t xSourceStride = 0;  ///< elements between rows of xSource, ≥ K
  int64_t yStride = 0;        ///< elements between rows of y, ≥ N
  int64_t xScaleStride = 0;   ///< words between rows (row_major) or K blocks (mn_major) of xScales
};

/// The local expert of each row, -1 where nobody owns it. The row contract:
/// grouped: o'[0] = clamp(o[0], 0, S), o'[i] = max(o'[i-1], clamp(o[i], 0, S)), expert e owns
/// [o'[e], o'[e+1]); batched: ids (through the map, if any) in [0, E); masked: rows below
/// clamp(counts[e], 0, maxRows); eager: all.
std::vector<int32_t> rowOwners(const HostProblem &problem);

/// Which elements to look at: every pair of a row and a column. Ascending, no duplicates.
struct Selection {
  std::vector<int64_t> rows;
  std::vector<int64_t> columns;

  static Selection all(const HostProblem &problem);
  /// All rows, and as many columns as `maxProducts` multiplications allow (at least 16, all when
  /// they fit): first and last ones, neighbours of multiples of 64, part seams, the rest drawn by
  /// `seed`.
  static Selection sampled(const HostProblem &problem, int64_t maxProducts = 2'000'000'000,
                           uint64_t seed = 1);
};

/// What the selected elements should be. Row-major [rows, columns] of the selection; elements of
/// unowned rows are 0.
struct OracleResult {
  Selection selection;
  std::vector<int32_t> owners;   ///< of all S rows, as rowOwners
  std::vector<double> reference; ///< the exact sum, up to fp64 rounding
  std::vector<double> bound;     ///< largest error before the output is rounded (docs/numerics.md)
};

/// Computes the reference. Pure; uses `threads` threads (0: one per core). Takes about 1 s for 512
/// x 512 x 7168.
OracleResult reference(const HostProblem &problem, const Selection &selection,
                       unsigned threads = 0);
/// The reference of everything.
OracleResult reference(const HostProblem &problem);

/// Terms that one wgmma K step of 32 may each truncate: 32 products, the accumulator, and the
/// result.
constexpr double truncatedTerms = 34;
/// Relative weight of what one truncation drops: fp8 wgmma keeps 13 fraction bits of the largest
/// term.
constexpr double truncationUnit = 0x1p-13;
/// Unit roundoff of fp32.
constexpr double fp32Roundoff = 0x1p-24;

} // namespace moejit::oracle
