// Tables of measured plans: what `moejit tune` writes and plans are chosen by. Tables are given to
// those who use them; nothing here looks for one.
#pragma once

#include "runtime/Plan.h"
#include "runtime/Spec.h"
#include "runtime/Target.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace moejit {

/// The fastest plan that was found for a range of row counts.
struct TunedRange {
  int64_t minRows = 0;
  int64_t maxRows = 0;
  int64_t measuredRows = 0; ///< the row count inside the range that was measured last
  KernelPlan plan;
  double us = 0;          ///< its time over measuredRows
  double heuristicUs = 0; ///< the time of the plan that is chosen without a table
  bool operator==(const TunedRange &) const = default;
};

/// The ranges of one spec, ascending, apart from each other.
struct TunedSpec {
  std::string spec; ///< canonical text
  std::vector<TunedRange> ranges;
  bool operator==(const TunedSpec &) const = default;
};

/// What was measured on one kind of GPU.
struct TunedTable {
  static constexpr int64_t format = 1;

  std::string gpu;  ///< "NVIDIA H200"
  std::string arch; ///< "sm_90a"
  int64_t smCount = 0;
  std::string driver; ///< the CUDA version the driver is for, "13.0"
  std::string nvrtc;
  std::string how; ///< how it was measured, a sentence
  std::vector<TunedSpec> specs;
  bool operator==(const TunedTable &) const = default;

  /// The entry of `spec` on `target`; null when the table is of another architecture or number of
  /// SMs, or the spec was not measured.
  const TunedSpec *find(const Spec &spec, const Target &target) const;
};

/// Reads what tunedTableJson wrote. Never crashes on hostile bytes. Errors: ParseError naming what
/// is wrong: JSON, a missing or mistyped field, a spec, a plan, ranges that overlap or are empty.
Result<TunedTable> parseTunedTable(std::string_view json);
/// JSON of `table`: specs sorted by their text, a line for each range; equal tables give equal
/// text.
std::string tunedTableJson(const TunedTable &table);
/// Puts `newer` into `table`: specs that both have take newer's ranges, and header fields are
/// newer's. Errors: InvalidArgument when the tables are of different GPUs.
Result<void> mergeTuned(TunedTable &table, const TunedTable &newer);

/// `ranges` with the plans of `table` in place of theirs where it has measured ones that verifyPlan
/// accepts. `ranges` cover [0, INT64_MAX], and so does the result; neighbours of equal plans are
/// one.
std::vector<PlannedRange> withTuned(std::vector<PlannedRange> ranges, const TunedTable &table,
                                    const Spec &spec, const Target &target);

/// A plan and its median time.
struct PlanTime {
  KernelPlan plan;
  double us = 0;
};
/// What was measured at one row count: candidates, the heuristic's own first.
struct MeasuredRows {
  int64_t rows = 0;
  std::vector<PlanTime> times;
};
/// The ranges of a spec from what was measured at its row counts, ascending. A range reaches to the
/// geometric middle between neighbouring row counts, and by a factor of √2 beyond the first and the
/// last. Where several plans are within `tolerance` (0.01: one percent) of the fastest, the
/// heuristic's is taken, else that of the row count before, else the fastest; so noise makes no
/// kernels.
std::vector<TunedRange> tunedRanges(const std::vector<MeasuredRows> &points, double tolerance);

} // namespace moejit
