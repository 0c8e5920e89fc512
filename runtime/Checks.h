// What a checked kernel (KernelPlan::checked) reports about the operands it was given, and how a
// report reads. Shared by the compiler, which numbers the words, and by whoever launches.
#pragma once

#include "runtime/Spec.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace moejit {

/// What can be wrong, and the number of its word in GemmArguments::errors.
enum class CheckKind : int64_t {
  OffsetRange, ///< grouped: an offset outside [0, S]; index: of the offset
  OffsetOrder, ///< grouped: an offset below the one before it; index: of the offset
  CountRange,  ///< masked: a count outside [0, Mmax]; index: the expert
  IdRange,     ///< batched: an id below -1, or with a map past its end; index: the row
  MapRange,    ///< batched: an entry of the map outside [-1, E); index: the global expert
  XScale,      ///< a scale of an owned row, or of its expert, that is not positive and finite
  WScale,      ///< the same of the weights of an expert that owns rows
};
inline constexpr int64_t numCheckKinds = 7;
/// Words of an error report; those past the last kind stay zero.
inline constexpr int64_t errorWords = 8;

/// The word that says that the first finding of a kind is at `index`. Words begin as zero and are
/// raised by an atomic maximum, so the least index is what stays, in whatever order threads come.
constexpr int64_t checkWord(int64_t index) { return INT64_MAX - index; }

/// One kind that was found, and where first. Indices of scales count elements of the stored tensor
/// (words, where scales are packed), padding between its rows included.
struct CheckFinding {
  CheckKind kind = CheckKind::OffsetRange;
  int64_t index = 0;
  bool operator==(const CheckFinding &) const = default;
};

/// The findings in `words`, errorWords of them, in the order of CheckKind.
std::vector<CheckFinding> checkFindings(std::span<const int64_t> words);

/// A sentence for each finding in `words` of a launch of `spec`, joined by "; ". Names the expert
/// where the index alone says it. Empty when nothing was found.
std::string describeChecks(const Spec &spec, std::span<const int64_t> words);

} // namespace moejit
