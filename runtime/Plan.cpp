// The heuristic behind plans: measured regimes. Tuning tables are given (runtime/Tuned.h), never
// looked for.
#include "runtime/Plan.h"

#include "runtime/QuantizePlan.h"
#include "runtime/Tuned.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace moejit {
namespace {

int64_t roundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Whether what a spec counts can be computed with. One that fails breaks rules, and no plan of it
/// is ever compiled; it may still be asked for.
bool isCountable(const Spec &spec) {
  constexpr int64_t most = int64_t(1) << 31;
  auto isCount = [](int64_t value) { return value >= 1 && value <= most; };
  auto isLayoutCountable = [&](const ScaleLayout &layout) {
    bool isSound = isCount(layout.parts) && layout.phase.size() <= layout.granule.size();
    for (const Granule &granule : layout.granule)
      isSound = isSound && (granule.kind != Granule::Kind::Extent || isCount(granule.extent));
    for (int64_t phase : layout.phase)
      isSound = isSound && (phase == 0 || isCount(phase));
    return isSound;
  };
  if (!isCount(spec.k) || !isLayoutCountable(spec.xScales))
    return false;
  return spec.computation == Computation::Quantize ||
         (isCount(spec.n) && isCount(spec.numExperts) && isLayoutCountable(spec.wScales));
}

/// Columns that one weight scale covers; 0 where one covers all.
int64_t columnGranule(const Spec &spec) {
  size_t rank = spec.wScales.granule.size();
  if (rank < 2 || spec.wScales.granule[rank - 2].kind != Granule::Kind::Extent)
    return 0;
  return spec.wScales.granule[rank - 2].extent;
}

/// Whether a step of K brings one weight scale for the columns of a warpgroup and one scale for
/// each row, or none: what a loop needs registers for is little.
bool hasCoarseSteps(const Spec &spec) {
  const ScaleLayout &x = spec.xScales, &w = spec.wScales;
  if (x.kGranule() % 128 != 0 || w.kGranule() % 128 != 0 || x.hasPhase() || w.hasPhase())
    return false;
  if (w.kGranule() == 0)
    return true;
  int64_t columns = columnGranule(spec);
  return !w.interleaved && columns % 128 == 0 &&
         (w.parts == 1 || (columns != 0 && spec.n / w.parts % columns == 0));
}

/// Upper bound of the shared memory a kernel of `plan` takes: ring slots of both operands, their
/// scales and two barriers, the store buffers, the expert boundaries.
int64_t sharedBytes(const KernelPlan &plan, const Spec &spec) {
  const int64_t rows = plan.tileM + plan.tailRows;
  int64_t slot = (rows + plan.tileN) * plan.tileK;
  // Scales finer than a step come several times in it.
  StepsAlongK steps = stepsAlongK(spec, plan.tileK);
  auto timesInStep = [&](const ScaleLayout &layout) {
    int64_t times = 0;
    for (int64_t begin = 0; begin < plan.tileK; begin += steps.part)
      times += steps.canStartAt(begin, layout.kGranule(), layout.kPhase());
    return times;
  };
  // A vector comes with up to 16 bytes more.
  auto vectorBytes = [](int64_t entries) { return roundUp(entries * 4 + 16, 128); };
  if (spec.xScales.kGranule() != 0)
    slot += timesInStep(spec.xScales) * vectorBytes(rows);
  // Weight scales of up to four ranges of columns are copied one by one, those of more as a vector.
  if (spec.wScales.kGranule() != 0) {
    int64_t columns = columnGranule(spec);
    bool isVector =
        spec.wScales.order == ScaleOrder::MnMajor && columns > 0 && columns < plan.tileN;
    // Blocks that begin with tiles, or hold whole ones, are as many as fit; of others up to four.
    bool isAligned = hasCoarseSteps(spec) && columns > 0 &&
                     (plan.tileN % columns == 0 || columns % plan.tileN == 0);
    int64_t bytes = 128 * (isAligned ? std::max<int64_t>(1, plan.tileN / columns) : 4);
    if (isVector)
      bytes = std::max(bytes, vectorBytes(plan.tileN / columns));
    slot += timesInStep(spec.wScales) * bytes;
  }
  slot = roundUp(slot + 16, 1024);
  int64_t store = plan.store == StorePath::Staged ? 2304 * 4 * plan.warpgroups : 0;
  int64_t sorting =
      spec.dispatch == Dispatch::Batched ? 4 * (spec.numExperts + 1 + 2 * batchedRowLimit) : 0;
  int64_t quantizing = spec.quantizeFrom ? 256 : 0; // what blocks draw, and where warps meet
  // A barrier a warp, and what every other block sends at a time.
  int64_t summing = 0;
  if (plan.splitK > 1) {
    const int64_t bytesOfVector = 16 * 128 * plan.warpgroups * (plan.splitK - 1);
    const int64_t vectors = plan.tileM * plan.tileN / (4 * 128 * plan.warpgroups);
    summing = 32 * plan.warpgroups +
              bytesOfVector * std::clamp<int64_t>(splitKBufferBytes / bytesOfVector, 1,
                                                  std::max<int64_t>(1, vectors));
  }
  return slot * plan.stages + store + 96 + 4 * (spec.numExperts + 1) + sorting + quantizing +
         summing;
}

/// Shared memory of a block. Each takes 1 KiB of an SM's more than it may use (CUDA C++ Programming
/// Guide, compute capability 9.0).
int64_t mostSharedBytes(const KernelPlan &plan, const Target &target) {
  constexpr int64_t reserved = 1024;
  const int64_t ofSm = target.profile.sharedBytesPerBlock + reserved;
  return ofSm / plan.blocksPerSm / 128 * 128 - reserved;
}

/// Takes slots away until the block fits.
void fitStages(KernelPlan &plan, const Spec &spec, const Target &target) {
  while (plan.stages > 1 && sharedBytes(plan, spec) > mostSharedBytes(plan, target))
    --plan.stages;
}

/// Many rows an expert: 128 rows by 256 columns, two warpgroups side by side, each with 128 final
/// and 64 temporary registers of sums.
KernelPlan widePlan(const Spec &spec, const Target &target) {
  KernelPlan plan;
  plan.tileN = spec.n > 128 ? 256 : 128;
  // Scales of single columns or a few are read for each column in every step: a narrow tile leaves
  // registers for them. As a vector of the slot they are 252 at most.
  bool areFine = spec.wScales.interleaved || (columnGranule(spec) > 0 && columnGranule(spec) < 32);
  if (areFine && spec.wScales.kGranule() != 0)
    plan.tileN = 128;
  if (spec.outType == ElementType::F32)
    plan.store = StorePath::Direct;
  plan.unrollSlots = hasCoarseSteps(spec);
  fitStages(plan, spec, target);
  return plan;
}

/// Few rows an expert: the weights' way from memory is the limit. One 64-row tile an expert reads
/// them once, and they need not stay in L2.
KernelPlan narrowPlan(const Spec &spec, const Target &target) {
  KernelPlan plan = widePlan(spec, target);
  plan.tileM = 64;
  plan.stages = 5;
  plan.weightPolicy = CachePolicy::EvictFirst;
  plan.scheduler = SchedulerKind::Static;
  plan.unrollSlots = false;
  fitStages(plan, spec, target);
  return plan;
}

/// So few rows that wide tiles leave processors without one: narrow ones, a warpgroup each, read
/// the weights from more of them at a time.
KernelPlan sparsePlan(const Spec &spec, const Target &target) {
  KernelPlan plan = narrowPlan(spec, target);
  plan.tileN = 64;
  plan.warpgroups = 1;
  plan.stages = 10;
  fitStages(plan, spec, target);
  return plan;
}

/// Few rows of many tiles: narrower ones, drawn from a queue, keep every processor reading to the
/// end (measured on an H200: 3 to 8 % over narrowPlan).
KernelPlan decodePlan(const Spec &spec, const Target &target) {
  KernelPlan plan = narrowPlan(spec, target);
  plan.tileN = 128;
  plan.stages = 8;
  plan.scheduler = SchedulerKind::Queue;
  fitStages(plan, spec, target);
  return plan;
}

/// Whether sums of 16 rows past a tile leave registers.
bool hasRoomForTails(const Spec &spec) {
  if (spec.quantizeFrom || spec.k < 1536)
    return false;
  const ScaleLayout &x = spec.xScales;
  return x.kGranule() == 0 ||
         (x.order == ScaleOrder::MnMajor && x.alignBytes > 0 && x.alignBytes % 16 == 0 &&
          x.granule[x.granule.size() - 2] == Granule::of(1));
}

/// A row or a few an expert: the weights come as the rows of wgmmas of 16 columns (measured on an
/// H200 over decodePlan: 5 to 11 % at 1 and 4 rows).
KernelPlan fewestPlan(const Spec &spec, const Target &target) {
  KernelPlan plan = narrowPlan(spec, target);
  plan.swapOperands = true;
  plan.fitRows = 16;
  plan.weightPolicy = CachePolicy::Normal;
  if (spec.numExperts >= 32) // fewer have tiles all alike
    plan.scheduler = SchedulerKind::Queue;
  fitStages(plan, spec, target);
  return plan;
}

/// A little more than whole tiles of rows an expert: the few rows past them go with the last tile,
/// so that weights pass through a processor once less. With sums of 16 such rows the consumers want
/// all registers there are. Scales of x that do not come in the ring, and short sums, leave no room
/// for as many (measured on an H200, 128 rows: 8 to 15 % over 128x256 tiles without; at K = 768
/// 4 % with 8 rows and nothing with 16). Checked kernels spill a few.
KernelPlan tailPlan(const Spec &spec, const Target &target) {
  KernelPlan plan = widePlan(spec, target);
  plan.tailRows = 8;
  if (hasRoomForTails(spec)) {
    plan.tailRows = 16;
    plan.consumerRegs = 240;
    plan.producerRegs = 24;
  }
  fitStages(plan, spec, target);
  return plan;
}

/// Whether tails are worth it for some row counts: promoted products, and scales that need few
/// registers. Batched rows are few, and gathered.
bool takesTails(const Spec &spec) {
  const bool isScaled = spec.xScales.kGranule() != 0 && spec.wScales.kGranule() != 0;
  const bool isScaledOnce = spec.xScales.kGranule() == 0 && spec.wScales.kGranule() == 0;
  return spec.dispatch != Dispatch::Batched && spec.numExperts > 1 && spec.n >= 1024 &&
         hasCoarseSteps(spec) &&
         (isScaled || (isScaledOnce && spec.accumulate == Accumulate::Exact)) &&
         (isScaledOnce || 256 % std::max<int64_t>(1, columnGranule(spec)) == 0) &&
         spec.outType != ElementType::F32;
}

/// Many rows and a long K: two blocks side by side load the rows that both multiply once (measured
/// on an H200: 0.5 to 1 % from 272 rows an expert and K = 4096 on, a loss below).
KernelPlan pairedPlan(const Spec &spec, const Target &target) {
  KernelPlan plan = widePlan(spec, target);
  const int64_t columnTiles = (spec.n + plan.tileN - 1) / plan.tileN;
  if (spec.k >= 4096 && columnTiles % 2 == 0)
    plan.cluster = 2;
  return plan;
}

/// Rows an expert, in the mean, from which on tiles of 128 rows are worth it.
constexpr int64_t wideRows = 48;
/// Rows an expert below which they are best as columns of a wgmma, whatever the scales.
constexpr int64_t fewestRows = 8;
/// Rows an expert up to which four blocks share the steps of wide tiles: more are too many sums.
constexpr int64_t mostSharedRows = 16;
/// Rows an expert from which on columns with scales of their own are better columns of a wgmma.
constexpr int64_t leastUnswappedRows = 384;
/// Rows an expert for which tails past one tile of 128 rows are, and past two (measured on an H200:
/// 2 to 5 % at 240 to 272 rows of 32 experts, 2 to 11 % of 8; a loss at 224 and 288).
constexpr int64_t leastTailRows = 104, mostTailRows = 152;
constexpr int64_t leastSecondTailRows = 248, mostSecondTailRows = 280;
/// Rows an expert of which tiles of 128 rows are two or one and a bit: where columns are few, the
/// last round of them leaves most processors idle, and tiles of 64 rows are better.
constexpr int64_t leastUnevenRows = 96, mostUnevenRows = 192;

/// Weights with a scale for each column in every step of K: as the 64 rows of a wgmma they take two
/// scales a thread, as its columns one for every two sums (measured on an H200 for MX weights: 2.6
/// times faster at 4 rows an expert, 1.1 at 1024; for granules of 128 of K 1.2 up to 128 rows, and
/// slower from 512 on, where three warpgroups of 64 rows share the columns' scales).
std::vector<PlannedRange> columnScaledPlanRanges(const Spec &spec, const Target &target) {
  KernelPlan few = narrowPlan(spec, target);
  few.tileN = 128;
  few.stages = 8;
  few.swapOperands = true;
  few.fitRows = 16;
  if (spec.numExperts * ((spec.n + few.tileN - 1) / few.tileN) >= 4 * target.profile.smCount)
    few.scheduler = SchedulerKind::Queue;
  fitStages(few, spec, target);
  KernelPlan many = few;
  many.tileM = 128;
  many.fitRows = 32; // each width is a loop to compile
  many.stages = 6;
  many.scheduler = SchedulerKind::Queue;
  many.weightPolicy = CachePolicy::Normal;
  fitStages(many, spec, target);
  const int64_t fewRows = wideRows * spec.numExperts;
  std::vector<PlannedRange> ranges = {{0, fewRows - 1, few}, {fewRows, INT64_MAX, many}};
  if (spec.dispatch == Dispatch::Batched || spec.wScales.kGranule() % 128 != 0 ||
      spec.xScales.kGranule() % 128 != 0 || spec.outType == ElementType::F32 ||
      spec.wScales.order != ScaleOrder::MnMajor ||
      spec.wScales.packing == 1) // no words in the ring
    return ranges;
  KernelPlan tall = widePlan(spec, target);
  tall.tileM = 192;
  tall.tileN = 128;
  tall.split = WarpgroupSplit::Rows;
  tall.warpgroups = 3;
  tall.consumerRegs = 152;
  tall.unrollSlots = true;
  fitStages(tall, spec, target);
  ranges.back().maxRows = leastUnswappedRows * spec.numExperts - 1;
  ranges.push_back({leastUnswappedRows * spec.numExperts, INT64_MAX, tall});
  return ranges;
}

/// Steps along K that a block should have left, for its share to be worth the sums that follow.
constexpr int64_t leastSharedSteps = 8;
/// Rows of a decode step for which a range of their own is worth a kernel.
constexpr int64_t leastSharedRows = 4;

/// The most rows, from `least` to `last`, whose tiles run at once with `blocks` blocks each, which
/// all have steps enough; below `least`: none.
int64_t lastSharedRow(const KernelPlan &plan, const Spec &spec, const Target &target,
                      int64_t blocks, int64_t least, int64_t last) {
  if (plan.tileM != 64 || stepsAlongK(spec, plan.tileK).count < blocks * leastSharedSteps)
    return least - 1;
  const int64_t columnTiles = (spec.n + plan.tileN - 1) / plan.tileN;
  // Clusters of 4 leave two of 18 processors of a group empty.
  const int64_t smCount = target.profile.smCount, there = blocks > 2 ? smCount / 16 * 16 : smCount;
  int64_t most = least - 1, past = std::min(last, int64_t(1) << 20) + 1;
  while (past - most > 1) {
    const int64_t middle = most + (past - most) / 2;
    // As many experts as there can be have a tile that is not full.
    const int64_t rowTiles = std::min(middle, spec.numExperts) + (middle - 1) / plan.tileM;
    (rowTiles * columnTiles * blocks <= there ? most : past) = middle;
  }
  return most;
}

/// So few rows that tiles leave half of the processors without one, or three quarters: two or four
/// share the steps of each (measured on an H200: 1.3 to 2 times faster at 1 to 16 rows).
std::vector<PlannedRange> withSharedSteps(const std::vector<PlannedRange> &ranges, const Spec &spec,
                                          const Target &target) {
  std::vector<PlannedRange> shared;
  for (PlannedRange rest : ranges) {
    for (int64_t blocks : {4, 2}) {
      PlannedRange few = rest;
      few.maxRows = lastSharedRow(rest.plan, spec, target, blocks, rest.minRows, rest.maxRows);
      // A kernel more for a few row counts of a range is worth it to decode steps alone.
      if (few.maxRows != rest.maxRows && (spec.dispatch != Dispatch::Batched ||
                                          few.maxRows < std::max(rest.minRows, leastSharedRows)))
        continue;
      few.plan.splitK = blocks;
      fitStages(few.plan, spec, target);
      if (few.plan.stages < 2)
        continue;
      shared.push_back(few);
      rest.minRows = few.maxRows + 1;
      if (rest.minRows > rest.maxRows)
        break;
    }
    if (rest.minRows <= rest.maxRows)
      shared.push_back(rest);
  }
  return shared;
}

std::vector<PlannedRange> gemmPlanRanges(const Spec &spec, const Target &target) {
  if (spec.wScales.kGranule() != 0 && columnGranule(spec) == 1)
    return columnScaledPlanRanges(spec, target);
  // The routing is not known: rows are taken to spread over all experts.
  const int64_t experts = spec.numExperts, processors = target.profile.smCount;
  const KernelPlan narrow = narrowPlan(spec, target), wide = widePlan(spec, target);
  const int64_t wideTiles = experts * ((spec.n + wide.tileN - 1) / wide.tileN);
  const bool isDecode = spec.dispatch != Dispatch::Batched && spec.n > 128 &&
                        wideTiles >= 2 * processors && hasCoarseSteps(spec);
  std::vector<PlannedRange> ranges;
  const auto add = [&](int64_t rowsAnExpert, const KernelPlan &plan) {
    const int64_t first = rowsAnExpert * experts;
    if (!ranges.empty())
      ranges.back().maxRows = first - 1;
    ranges.push_back({first, INT64_MAX, plan});
  };
  // Blocks share wide tiles, where K is long, or more narrow ones have them; with more rows sums
  // are too many.
  const int64_t lastRow = (mostSharedRows + 1) * experts - 1;
  const bool isFree = spec.dispatch != Dispatch::Batched && narrow.tileN == 256;
  const bool sharesWide = isFree && lastSharedRow(narrow, spec, target, 4, 0, lastRow) == lastRow;
  if (sharesWide || (isFree && experts == 1 && 2 * wideTiles <= processors)) {
    if (sharesWide)
      add(0, narrow);
    add(sharesWide ? mostSharedRows + 1 : 0, sparsePlan(spec, target));
  } else {
    // Kernels of fewer tiles are quick whatever their plan is.
    const bool isFew = isFree && experts > 1 && wideTiles >= 32 && hasCoarseSteps(spec);
    if (isFew)
      add(0, fewestPlan(spec, target));
    add(isFew ? fewestRows : 0, isDecode ? decodePlan(spec, target) : narrow);
  }
  add(wideRows, wide);
  if (experts > 1 && wideTiles < 3 * processors) {
    add(leastUnevenRows, narrow);
    add(mostUnevenRows, wide);
  } else if (takesTails(spec)) {
    KernelPlan tail = tailPlan(spec, target);
    // Sweeps of one row tile spare the producer a division, where it has few registers.
    if (tail.tailRows == 16)
      tail.raster = 1;
    add(leastTailRows, tail);
    add(mostTailRows, wide);
  }
  if (takesTails(spec)) {
    const KernelPlan many = wideTiles < 3 * processors ? wide : pairedPlan(spec, target);
    if (hasRoomForTails(spec))
      add(leastSecondTailRows, tailPlan(spec, target));
    if (hasRoomForTails(spec) || many != wide)
      add(mostSecondTailRows, many);
  }
  const int64_t threshold = wideRows * experts;
  // Tokens of a decode step come with as many experts as rows, at most.
  int64_t sparseRows = target.profile.smCount / ((spec.n + narrow.tileN - 1) / narrow.tileN);
  if (spec.dispatch == Dispatch::Batched && narrow.tileN > 64 && spec.n > 64 && sparseRows >= 1 &&
      sparseRows < threshold - 1) {
    ranges.front().minRows = sparseRows + 1;
    ranges.insert(ranges.begin(), {0, sparseRows, sparsePlan(spec, target)});
  }
  return ranges;
}

/// What keeps blocks from sharing one tile's steps along K.
Result<void> verifySplitK(const KernelPlan &plan, const Spec &spec) {
  auto refuse = [](std::string message, std::string note) {
    return Error{ErrorCode::InvalidArgument, std::move(message), {std::move(note)}};
  };
  if (plan.splitK != 1 && plan.splitK != 2 && plan.splitK != 4 && plan.splitK != 8)
    return refuse(fmt::format("plan: splitK is {}, expected 1, 2, 4 or 8", plan.splitK),
                  "blocks of a cluster share a tile, and larger clusters are not portable");
  if (plan.splitK == 1)
    return {};
  if (plan.cluster > 1)
    return refuse("plan: the blocks of a cluster take one tile, or neighbouring ones; not both",
                  "use splitK = 1 or cluster = 1");
  if (plan.tailRows != 0)
    return refuse("plan: splitK takes tiles without tails",
                  "use splitK = 1 or tailRows = 0: tails are for rows that fill a GPU");
  const int64_t steps = stepsAlongK(spec, plan.tileK).count;
  if (steps < plan.splitK)
    return refuse(fmt::format("plan: {} blocks share the {} steps along K", plan.splitK, steps),
                  "each takes one at least");
  return {};
}

} // namespace

bool StepsAlongK::canStartAt(int64_t begin, int64_t granule, int64_t phase) const {
  if (granule <= 0)
    return false;
  // Granules start at every multiple of `granule` from -phase on, steps at those of tileK from
  // -shift on.
  return begin == 0 || (begin - shift + phase) % std::gcd(granule, tileK) == 0;
}

StepsAlongK stepsAlongK(const Spec &spec, int64_t tileK) {
  const ScaleLayout &x = spec.xScales, &w = spec.wScales;
  StepsAlongK steps;
  steps.tileK = tileK;
  // Steps start where granules do; those of the other side are a multiple of 32 apart (MJ003).
  int64_t phase = x.kGranule() != 0 ? x.kPhase() : w.kPhase();
  int64_t apart = x.kGranule() != 0 && w.kGranule() != 0 ? x.kPhase() - w.kPhase() : 0;
  steps.shift = phase % tileK;
  steps.count = (spec.k + steps.shift + tileK - 1) / tileK;
  steps.part = std::gcd(std::gcd(tileK, apart), std::gcd(x.kGranule(), w.kGranule()));
  return steps;
}

std::vector<PlannedRange> planRanges(const Spec &spec, const Target &target,
                                     const PlanRequest &request) {
  if (!isCountable(spec))
    return {{0, INT64_MAX, KernelPlan()}};
  std::vector<PlannedRange> ranges =
      spec.computation == Computation::Quantize
          ? quantizePlanRanges(spec, target)
          : withSharedSteps(gemmPlanRanges(spec, target), spec, target);
  if (request.tuned)
    ranges = withTuned(std::move(ranges), *request.tuned, spec, target);
  for (PlannedRange &range : ranges)
    range.plan.checked = request.checked;
  return ranges;
}

KernelPlan choosePlan(const Spec &spec, const Target &target, int64_t rows,
                      const PlanRequest &request) {
  std::vector<PlannedRange> ranges = planRanges(spec, target, request);
  for (const PlannedRange &range : ranges)
    if (rows <= range.maxRows)
      return range.plan;
  return ranges.back().plan;
}

Result<void> verifyPlan(const KernelPlan &plan, const Spec &spec, const Target &target) {
  auto refuse = [](std::string message, std::string note) {
    return Error{ErrorCode::InvalidArgument, std::move(message), {std::move(note)}};
  };
  if (!isCountable(spec))
    return refuse("plan: the spec has numbers that no kernel can have", "ask checkSpec which");
  // griddepcontrol (PTX ISA) is for sm_90 and later.
  if (plan.dependentLaunch && (target.arch == "sm_80" || target.arch == "sm_89"))
    return refuse(fmt::format("plan: {} has no dependent launches", target.arch),
                  "use dependentLaunch = false, or an architecture from sm_90a on");
  if (spec.computation == Computation::Quantize)
    return verifyQuantizePlan(plan);
  if (plan.tileK != 128)
    return refuse(fmt::format("plan: tileK is {}, expected 128", plan.tileK),
                  "one step along K is one 128-byte swizzle span");
  if (plan.tileM < 64 || plan.tileM % 64 != 0 || plan.tileM > 192)
    return refuse(fmt::format("plan: tileM is {}, expected 64, 128 or 192", plan.tileM),
                  "a wgmma computes 64 rows, and a copy brings at most 256 scales");
  if (plan.tileN < 64 || plan.tileN % 64 != 0 || plan.tileN > 256)
    return refuse(fmt::format("plan: tileN is {}, expected 64, 128, 192 or 256", plan.tileN),
                  "a bulk copy brings at most 256 rows of weights");
  if (plan.stages < 1 || plan.stages > 64 || plan.warpgroups < 1 || plan.warpgroups > 4 ||
      plan.raster < 1 || plan.raster > mostRaster)
    return refuse(fmt::format("plan: stages = {}, warpgroups = {}, raster = {}, expected 1 to 64, "
                              "1 to 4 and 1 to {}",
                              plan.stages, plan.warpgroups, plan.raster, mostRaster),
                  "");
  if (plan.liveRows != 0 &&
      (plan.liveRows < 8 || plan.liveRows % 8 != 0 || plan.tileM % plan.liveRows != 0))
    return refuse(
        fmt::format("plan: liveRows is {}, expected 0 or a multiple of 8 that divides the "
                    "{} rows of a tile",
                    plan.liveRows, plan.tileM),
        "a load brings whole swizzle atoms, 8 rows of 128 bytes");
  if (spec.quantizeFrom && (plan.vectors < 1 || plan.vectors > 8))
    return refuse(fmt::format("plan: vectors is {}, expected 1 to 8", plan.vectors),
                  "a launch that quantizes its x takes 4 registers for each, 8 of f32 values");
  if (spec.quantizeFrom && plan.granuleWarps != 1)
    return refuse(fmt::format("plan: {} warps share a granule, expected 1", plan.granuleWarps),
                  "only a quantization of its own has granules worth sharing");
  if (plan.cluster != 1 && plan.cluster != 2)
    return refuse(fmt::format("plan: cluster is {}, expected 1 or 2", plan.cluster),
                  "clusters of 4 measured slower, and not all fit a GPU of 132 SMs");
  if (plan.cluster > 1 && spec.dispatch == Dispatch::Batched)
    return refuse("plan: blocks of a cluster share boxes of x, batched gathers rows",
                  "use cluster = 1");
  if (plan.cluster > 1 && plan.clusterSide == ClusterSide::Columns && spec.n <= plan.tileN)
    return refuse(fmt::format("plan: the {} columns of y are one tile of {}, a cluster takes {}",
                              spec.n, plan.tileN, plan.cluster),
                  "use a narrower tile, or cluster = 1");
  if (Result<void> shared = verifySplitK(plan, spec); !shared)
    return shared;
  // One side comes in the 64 rows of a wgmma, the other in its columns.
  const int64_t rowsOfDots = plan.swapOperands ? 8 : 64, columnsOfDots = plan.swapOperands ? 64 : 8;
  bool divides = plan.split == WarpgroupSplit::Columns
                     ? plan.tileN % (columnsOfDots * plan.warpgroups) == 0
                     : plan.tileM % (rowsOfDots * plan.warpgroups) == 0;
  if (!divides)
    return refuse(fmt::format("plan: {} warpgroups do not divide a tile of {}x{} by {}",
                              plan.warpgroups, plan.tileM, plan.tileN,
                              namesOf(plan.split)[size_t(plan.split)]),
                  fmt::format("each takes a multiple of {} rows, or of {} columns", rowsOfDots,
                              columnsOfDots));
  if (plan.fitRows != 0 && !plan.swapOperands)
    return refuse("plan: fitRows takes swapOperands", "rows of a wgmma are always 64");
  if (plan.fitRows != 0 &&
      (plan.fitRows < 16 || plan.fitRows % 8 != 0 || plan.tileM % plan.fitRows != 0))
    return refuse(fmt::format("plan: fitRows is {}, expected 0 or a multiple of 8 from 16 on that "
                              "divides the {} rows of a tile",
                              plan.fitRows, plan.tileM),
                  "the loop over K is there once for each width");
  if (plan.tailRows != 0 &&
      (plan.swapOperands || plan.liveRows != 0 || plan.clusterSide == ClusterSide::Rows))
    return refuse("plan: tailRows takes tiles whose rows are rows of a wgmma and loaded together",
                  "use swapOperands = false, liveRows = 0, clusterSide = columns");
  if (plan.tailRows != 0 && (plan.tailRows < 8 || plan.tailRows > 32 || plan.tailRows % 8 != 0))
    return refuse(fmt::format("plan: tailRows is {}, expected 0, 8, 16, 24 or 32", plan.tailRows),
                  "a wgmma has a multiple of 8 columns, and sums of more leave no registers");
  // What the pass would leave as it is (tile-tail-rows) is no plan with tails.
  const bool isPromoted = spec.accumulate == Accumulate::Exact || spec.xScales.kGranule() != 0 ||
                          spec.wScales.kGranule() != 0;
  if (plan.tailRows != 0 && (!isPromoted || spec.dispatch == Dispatch::Batched ||
                             (plan.split == WarpgroupSplit::Rows && plan.warpgroups > 1) ||
                             plan.tileN % (64 * plan.warpgroups) != 0 ||
                             (plan.tileM + plan.tailRows) % (8 * plan.cluster) != 0))
    return refuse(
        "plan: tailRows has nothing to do for this kernel and tile",
        "tails are of products that are promoted, of rows that lie together, in tiles whose "
        "warpgroups divide columns by 64; each block of a cluster loads a multiple of 8 rows");
  // setmaxnreg takes these (PTX ISA), and waits forever for registers the block was not given.
  if (plan.specializeWarps)
    for (auto [name, count] : {std::pair("producerRegs", plan.producerRegs),
                               std::pair("consumerRegs", plan.consumerRegs)})
      if (count < 24 || count > 256 || count % 8 != 0)
        return refuse(
            fmt::format("plan: {} is {}, expected a multiple of 8 from 24 to 256", name, count),
            "40 and 232 suit two warpgroups");
  int64_t threads = 128 * (plan.warpgroups + 1);
  if (plan.blocksPerSm < 1 || plan.blocksPerSm > 2048 / threads)
    return refuse(
        fmt::format("plan: blocksPerSm is {}, expected 1 to {}", plan.blocksPerSm, 2048 / threads),
        "an SM has 2048 threads");
  if (plan.blocksPerSm > 1 && (plan.cluster > 1 || plan.splitK > 1))
    return refuse("plan: blocks of a cluster have an SM each",
                  "use cluster = 1 and splitK = 1, or blocksPerSm = 1");
  int64_t blockRegisters = 65536 / plan.blocksPerSm / threads / 8 * 8 * threads;
  // Without roles these fields say nothing, and may be any numbers.
  int64_t registers =
      plan.specializeWarps ? 128 * (plan.producerRegs + plan.warpgroups * plan.consumerRegs) : 0;
  if (registers > blockRegisters)
    return refuse(
        fmt::format("plan: roles take {} registers, a block has {}", registers, blockRegisters),
        fmt::format("{} warpgroups and a producer of {} leave {} a consumer thread",
                    plan.warpgroups, plan.producerRegs,
                    (blockRegisters / 128 - plan.producerRegs) / plan.warpgroups / 8 * 8));
  if (plan.store == StorePath::Staged && spec.outType == ElementType::F32)
    return refuse("plan: staged stores move 16-bit results, y is f32", "use store = direct");
  int64_t bytes = sharedBytes(plan, spec), most = mostSharedBytes(plan, target);
  if (bytes > most)
    return refuse(fmt::format("plan: takes {} bytes of shared memory, a block has {}", bytes, most),
                  "use fewer stages or a smaller tile");
  return {};
}

} // namespace moejit
