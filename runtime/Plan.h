// How one kernel is scheduled. choosePlan is a pure function: no environment, no device, no MLIR.
#pragma once

#include "runtime/Spec.h"
#include "runtime/Target.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace moejit {

struct TunedTable; // runtime/Tuned.h

enum class WarpgroupSplit { Rows, Columns };
enum class SchedulerKind { Static, Queue };
enum class StorePath { Direct, Staged };
enum class CachePolicy { Normal, EvictFirst };
/// Where the blocks of a cluster are neighbours: tiles side by side share rows of x, tiles one
/// above the other share columns of the weights.
enum class ClusterSide { Columns, Rows };

/// The names of all values of an enumeration of plans, in their order; the argument only says
/// which.
std::span<const char *const> namesOf(WarpgroupSplit);
std::span<const char *const> namesOf(SchedulerKind);
std::span<const char *const> namesOf(StorePath);
std::span<const char *const> namesOf(CachePolicy);
std::span<const char *const> namesOf(ClusterSide);

/// One list of fields makes the struct, its key text, its JSON and the `#moe.plan` attribute.
/// X(type, name, default, meaning)
#define MOEJIT_PLAN_FIELDS(X)                                                                      \
  X(int64_t, tileM, 128, "rows of one output tile")                                                \
  X(int64_t, tileN, 256, "columns of one output tile")                                             \
  X(int64_t, tileK, 128, "elements of K in one step")                                              \
  X(int64_t, stages, 4, "slots of the operand ring; 1 is the unpipelined base")                    \
  X(int64_t, warpgroups, 2, "warpgroups that issue wgmma")                                         \
  X(WarpgroupSplit, split, WarpgroupSplit::Columns, "which side of the tile warpgroups divide")    \
  X(bool, specializeWarps, true, "a producer warp of its own loads the ring")                      \
  X(int64_t, producerRegs, 40, "registers a producer thread keeps")                                \
  X(int64_t, consumerRegs, 232, "registers a consumer thread takes")                               \
  X(SchedulerKind, scheduler, SchedulerKind::Queue, "how blocks come by their next tile")          \
  X(int64_t, raster, 16, "row tiles that share one sweep over the columns")                        \
  X(StorePath, store, StorePath::Staged, "how results reach global memory")                        \
  X(int64_t, liveRows, 0, "rows of x of one load, where a tile may have fewer; 0: all in one")     \
  X(int64_t, tailRows, 0,                                                                          \
    "rows past whole tiles that the last one takes too, as columns; 0: none")                      \
  X(bool, swapOperands, false, "weights give the 64 rows of a wgmma, rows of x its columns")       \
  X(int64_t, fitRows, 0, "rows from one width of those wgmmas to the next; 0: all of one width")   \
  X(bool, skipEmptyRows, true, "64-row batches past the last row issue no wgmma")                  \
  X(bool, hoistRelease, true, "a slot is freed before the last promotion reads registers")         \
  X(bool, unrollSlots, false, "slots are constants where steps are a multiple of them")            \
  X(bool, prefetchTile, true, "the next tile is drawn before the store of this one")               \
  X(int64_t, vectors, 1, "vectors of eight elements a lane of a quantization has under way")       \
  X(int64_t, granuleWarps, 1, "warps that quantize one long granule together")                     \
  X(CachePolicy, weightPolicy, CachePolicy::Normal, "L2 eviction priority of weight loads")        \
  X(int64_t, cluster, 1, "blocks that take neighbouring tiles and load what these share once")     \
  X(ClusterSide, clusterSide, ClusterSide::Columns, "where those tiles are neighbours")            \
  X(int64_t, blocksPerSm, 1, "blocks that share an SM: one stores while another multiplies")       \
  X(bool, cleanWorkspace, true, "the kernel leaves counters zero for the launch after it")         \
  X(bool, dependentLaunch, false,                                                                  \
    "blocks start while the kernel before still ends, and wait for it")                            \
  X(int64_t, splitK, 1, "blocks of a cluster that share one tile's steps along K")                 \
  X(bool, checked, false, "routing and scales are looked at, and findings reported")

struct KernelPlan {
#define MOEJIT_PLAN_FIELD(type, name, value, meaning) type name = value;
  MOEJIT_PLAN_FIELDS(MOEJIT_PLAN_FIELD)
#undef MOEJIT_PLAN_FIELD
  bool operator==(const KernelPlan &) const = default;
};

/// A plan and the closed range of row counts it is meant for. A kernel is right for any row count;
/// the range is speed.
struct PlannedRange {
  int64_t minRows = 0;
  int64_t maxRows = 0; ///< INT64_MAX for the last range
  KernelPlan plan;
};

/// What a caller asks of plans that no heuristic knows.
struct PlanRequest {
  bool checked = false; ///< KernelPlan::checked
  /// Measured plans, which come before the heuristic's where they fit; null: none.
  std::shared_ptr<const TunedTable> tuned = {};
  bool operator==(const PlanRequest &) const = default;
};

/// How the steps of a kernel along K meet the scales: step i covers elements
/// [i * tileK - shift, (i + 1) * tileK - shift), and is summed in parts of `part` elements, inside
/// each of which no scale changes.
struct StepsAlongK {
  int64_t tileK = 0;
  int64_t shift = 0; ///< elements before the first of K, which count as zero
  int64_t count = 0;
  int64_t part = 0;

  /// True where a granule of `granule` elements, the first of which starts `phase` elements before
  /// K does, may begin `begin` elements into a step. 0 always may: what a step holds, the next has
  /// to load again.
  bool canStartAt(int64_t begin, int64_t granule, int64_t phase) const;
};
StepsAlongK stepsAlongK(const Spec &spec, int64_t tileK);

/// The plans of `spec` on `target`, by rows, ascending, covering [0, INT64_MAX] without gaps. Plans
/// of `request.tuned` come before the heuristic's for the rows they were measured for, where the
/// table is of this architecture and number of SMs and verifyPlan accepts them.
std::vector<PlannedRange> planRanges(const Spec &spec, const Target &target,
                                     const PlanRequest &request = {});
/// The plan for `rows` rows (or `expectedRows` of a masked launch): the member of planRanges that
/// holds it.
KernelPlan choosePlan(const Spec &spec, const Target &target, int64_t rows,
                      const PlanRequest &request = {});
/// Stable text `tileM=128,tileN=256,…`, part of the BuildKey.
std::string planText(const KernelPlan &plan);
std::string planJson(const KernelPlan &plan);
/// `base` with the fields that `text` names, `name=value` with commas between them, as planText
/// writes them. Errors: ParseError naming the field, and the values or fields there are.
Result<KernelPlan> parsePlan(std::string_view text, const KernelPlan &base = {});
/// Refuses plans that cannot work (tile not a multiple of 64 rows, shared memory over the block
/// limit, …).
Result<void> verifyPlan(const KernelPlan &plan, const Spec &spec, const Target &target);

} // namespace moejit
