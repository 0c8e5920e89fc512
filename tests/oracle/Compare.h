// Compares what a kernel wrote with the oracle.
#pragma once

#include "tests/oracle/Oracle.h"
#include "tests/oracle/Problem.h"

#include <cstdint>
#include <string>

namespace moejit::oracle {

/// How an output differs from the reference.
struct Comparison {
  int64_t compared = 0;     ///< elements of owned rows that were looked at
  double relativeError = 0; ///< ‖out − ref‖ / ‖ref‖ over them
  double worstRowError = 0; ///< the same over the columns of the worst row
  int64_t worstErrorRow = -1;
  double worstRatio = 0; ///< largest |out − ref| / bound; above 1 is wrong
  int64_t worstRow = -1, worstColumn = -1;
  double worstOut = 0, worstReference = 0, worstBound = 0;
  int64_t nonFinite = 0;   ///< NaN or infinity where the reference allows neither
  int64_t unownedRows = 0; ///< rows that nobody owns; all N columns of each are looked at
  int64_t unownedWrong =
      0; ///< of these, rows with an element that is not zero (untouched: not poison)
  int64_t firstUnownedWrong = -1;
  std::string canary; ///< what findOverwrittenCanary said, when a HostOutput was given

  /// Every element within its bound, everything finite, unowned rows and canaries as they must be.
  bool ok() const;
  /// One line for people: errors, the worst element and, if wrong, what.
  std::string text() const;
};

/// Compares `out`, row 0 of an output with the problem's yStride and elements of `type`, with
/// `result`. For untouched unowned rows the buffer must have been filled with poisonByte before.
Comparison compare(const HostProblem &problem, const OracleResult &result, const void *out,
                   ElementType type);
/// The same, and the canaries.
Comparison compare(const HostProblem &problem, const OracleResult &result,
                   const HostOutput &output);

/// The ‖out − ref‖/‖ref‖ that an output of at least some thousand elements stays below
/// (docs/numerics.md).
double expectedRelativeError(ElementType outType, Accumulate accumulate);

} // namespace moejit::oracle
