// Plans of kernels that quantize: they are a matter of bandwidth, and know no dots.
#include "runtime/QuantizePlan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace moejit {
namespace {

constexpr int64_t warpColumns = 256; // eight elements a lane
constexpr int64_t maxVectors = 4;    // 64 registers a thread have to do, of which 32 hold f32
constexpr int64_t tileColumns = 1024;

int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Columns of a granule that whole warps reduce; 0 where a few lanes do, or where one scale is for
/// all.
int64_t wideGranule(const Spec &spec) {
  if (spec.xScales.source == ScaleSource::Static || spec.xScales.isPerTensor())
    return 0;
  int64_t granule = spec.xScales.kGranule() == 0 ? spec.k : spec.xScales.kGranule();
  return granule > warpColumns || warpColumns % granule != 0 ? granule : 0;
}

KernelPlan plainPlan() {
  KernelPlan plan;
  plan.tileN = tileColumns;
  plan.stages = 1;
  plan.split = WarpgroupSplit::Rows;
  plan.specializeWarps = false;
  plan.scheduler = SchedulerKind::Static;
  plan.raster = 1;
  plan.store = StorePath::Direct;
  plan.skipEmptyRows = false;
  plan.hoistRelease = false;
  plan.prefetchTile = false;
  return plan;
}

/// Shares a long granule among as many warps as have something of it, at most `most`, and gives
/// each lane enough to hold it where it can.
void shareGranule(KernelPlan &plan, int64_t granule, int64_t most) {
  uint64_t chunks = static_cast<uint64_t>(ceilDivide(granule, warpColumns));
  plan.granuleWarps = std::min(most, static_cast<int64_t>(std::bit_ceil(chunks)));
  plan.vectors = std::min(maxVectors, ceilDivide(granule, warpColumns * plan.granuleWarps));
}

/// Few rows: more blocks, each with less to do.
KernelPlan narrowPlan(const Spec &spec) {
  KernelPlan plan = plainPlan();
  plan.warpgroups = 4;
  plan.vectors = 1;
  plan.tileM = 4;
  if (int64_t granule = wideGranule(spec)) {
    shareGranule(plan, granule, 4 * plan.warpgroups);
    plan.tileM = granule > tileColumns ? 1 : 4;
  }
  return plan;
}

/// Many rows: as much under way as it takes to keep the memory busy.
KernelPlan widePlan(const Spec &spec) {
  KernelPlan plan = plainPlan();
  plan.warpgroups = 8;
  plan.vectors = std::min(maxVectors, ceilDivide(std::min(spec.k, tileColumns), warpColumns));
  plan.tileM = 32;
  if (int64_t granule = wideGranule(spec)) {
    shareGranule(plan, granule, 8);
    plan.tileM = 8;
  }
  return plan;
}

} // namespace

std::vector<PlannedRange> quantizePlanRanges(const Spec &spec, const Target &target) {
  // From here on every SM has a large tile.
  int64_t threshold = std::max<int64_t>(1, target.profile.smCount * 32 * tileColumns /
                                               std::max<int64_t>(1, spec.k));
  return {{0, threshold - 1, narrowPlan(spec)}, {threshold, INT64_MAX, widePlan(spec)}};
}

Result<void> verifyQuantizePlan(const KernelPlan &plan) {
  auto refuse = [](std::string message, std::string note) {
    return Error{ErrorCode::InvalidArgument, std::move(message), {std::move(note)}};
  };
  if (plan.tileM < 1 || plan.tileM > 256)
    return refuse(fmt::format("plan: tileM is {}, expected 1 to 256", plan.tileM),
                  "launches count rows in whole tiles");
  constexpr int64_t leastColumns = 64, mostColumns = 1 << 20;
  if (plan.tileN < leastColumns || plan.tileN > mostColumns)
    return refuse(
        fmt::format("plan: tileN is {}, expected {} to {}", plan.tileN, leastColumns, mostColumns),
        "boxes of a launch are counted in 32 bits, and so are their columns");
  if (plan.tileK != KernelPlan().tileK)
    return refuse(fmt::format("plan: tileK is {}, expected {}", plan.tileK, KernelPlan().tileK),
                  "a quantization has no steps along K");
  if (plan.raster < 1 || plan.raster > mostRaster)
    return refuse(fmt::format("plan: raster is {}, expected 1 to {}", plan.raster, mostRaster), "");
  if (plan.warpgroups < 1 || plan.warpgroups > 8)
    return refuse(fmt::format("plan: {} warpgroups, expected 1 to 8", plan.warpgroups),
                  "a block has at most 1024 threads");
  if (plan.splitK != 1)
    return refuse(fmt::format("plan: splitK is {}, expected 1", plan.splitK),
                  "a quantization has no steps along K");
  if (plan.blocksPerSm != 1)
    return refuse(fmt::format("plan: blocksPerSm is {}, expected 1", plan.blocksPerSm),
                  "a quantization takes what registers and memory leave room for");
  if (plan.cluster != 1)
    return refuse(fmt::format("plan: cluster is {}, expected 1", plan.cluster),
                  "the boxes of a quantization share no loads");
  if (plan.vectors < 1 || plan.vectors > 8)
    return refuse(fmt::format("plan: vectors is {}, expected 1 to 8", plan.vectors),
                  "each takes 4 registers, 8 of f32 values");
  bool isPower = plan.granuleWarps > 0 && (plan.granuleWarps & (plan.granuleWarps - 1)) == 0;
  if (!isPower || 4 * plan.warpgroups % plan.granuleWarps != 0)
    return refuse(fmt::format("plan: {} warps share a granule, expected a power of two that "
                              "divides the {} of the block",
                              plan.granuleWarps, 4 * plan.warpgroups),
                  "1 always works");
  if (plan.specializeWarps || plan.store == StorePath::Staged)
    return refuse("plan: a quantization has no producer warp and no staged stores",
                  "use specializeWarps = false, store = direct");
  return {};
}

} // namespace moejit
