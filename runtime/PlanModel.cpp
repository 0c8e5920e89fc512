// The model of docs/performance.md: memory and processors work at the same time, the slower one
// shows; processors wait for the one with the most tiles.
#include "runtime/PlanModel.h"

#include "runtime/Tuned.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace moejit {
namespace {

/// Fitted to the 72 times of two plans in docs/results/speed.md, but for those of 64-row tiles at
/// 128 and more rows of 256 experts, which run into power or L2 limits that nothing here describes.
namespace fitted {
constexpr double clockMHz = 1700;           ///< the fit's unit, not a reading
constexpr double memoryShare = 0.96;        ///< of the profile's copy bandwidth
constexpr double columnCycles = 2.64;       ///< a column of 64 rows by 128 of K; 2 is the peak
constexpr double scaledColumnCycles = 1.39; ///< the same where sums are promoted…
/// …and what a step then costs besides with two warpgroups; more of them hide it better: with that,
/// the four times of 192x128 tiles in docs/results/speed.md are met within 5 %.
constexpr double scaledStepCycles = 671;
constexpr double tileCycles = 2050;
constexpr double launchUs = 5.1;
constexpr double rereadShare = 0.16; ///< of weights that must not stay in L2, by further row tiles
constexpr double queueTail = 0.9;    ///< tiles that the last SM is behind the mean
constexpr double sharpness = 6;      ///< of the maximum of memory and processors
} // namespace fitted
constexpr double copyBytesPerCycle = 64; ///< of one SM, from L2; never the limit in the fit

int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Means over a binomial draw of one expert's rows.
struct RowDraw {
  double active = 0;    ///< probability of any row
  double tiles = 0;     ///< of tileM rows
  double fragments = 0; ///< of 64 rows, where rows come `unit` at a time
};

/// Tiles come in sets of `together`: those of a cluster that lack rows are taken all the same. The
/// last tile takes up to `tail` rows more, which cost as many columns of a fragment.
RowDraw drawRows(int64_t rows, int64_t experts, int64_t tileM, int64_t tail, int64_t together,
                 int64_t unit) {
  RowDraw mean;
  auto add = [&](int64_t count, double weight) {
    mean.active += count > 0 ? weight : 0;
    const int64_t own = std::max(count - tail, std::min<int64_t>(count, tileM));
    const int64_t tiles = ceilDivide(own, tileM * together) * together;
    const int64_t asRows = std::min(count, tiles * tileM);
    mean.tiles += weight * double(tiles);
    mean.fragments += weight * double(ceilDivide(asRows, unit) * unit) / 64;
    if (count > asRows)
      mean.fragments += weight * double(tail) / 64;
  };
  if (experts <= 1 || rows == 0) {
    add(rows, 1);
    return mean;
  }
  double n = double(rows), p = 1.0 / double(experts);
  double centre = n * p, deviation = std::sqrt(n * p * (1 - p));
  auto first = int64_t(std::max(0.0, std::floor(centre - 6 * deviation)));
  auto last = int64_t(std::min(n, std::ceil(centre + 6 * deviation)));
  // The probability of `first`, then ratios: no factorial is too large for its logarithm.
  double begin = double(first);
  int sign = 0;
  double weight =
      std::exp(lgamma_r(n + 1, &sign) - lgamma_r(begin + 1, &sign) -
               lgamma_r(n - begin + 1, &sign) + begin * std::log(p) + (n - begin) * std::log1p(-p));
  double sum = 0;
  for (int64_t count = first; count <= last; ++count) {
    add(count, weight);
    sum += weight;
    weight *= double(rows - count) / double(count + 1) * p / (1 - p);
  }
  mean.active /= sum;
  mean.tiles /= sum;
  mean.fragments /= sum;
  return mean;
}

/// Rows that are computed or left out together.
int64_t rowsOfDots(const KernelPlan &plan) {
  if (!plan.swapOperands)
    return 64;
  return plan.fitRows != 0 ? plan.fitRows : plan.tileM > 128 ? plan.tileM / 2 : plan.tileM;
}

/// As many stages as fit, from `most` down; 0: the plan works with none.
int64_t fittingStages(KernelPlan plan, const Spec &spec, const Target &target, int64_t most) {
  for (plan.stages = most; plan.stages > 0; --plan.stages)
    if (verifyPlan(plan, spec, target))
      return plan.stages;
  return 0;
}

void addOnce(std::vector<KernelPlan> &plans, const KernelPlan &plan, const Spec &spec,
             const Target &target) {
  if (verifyPlan(plan, spec, target) && std::find(plans.begin(), plans.end(), plan) == plans.end())
    plans.push_back(plan);
}

/// Who divides a tile of this shape: registers of sums decide. False: nobody can.
bool shareTile(KernelPlan &plan) {
  plan.split = WarpgroupSplit::Columns;
  plan.warpgroups = 2;
  plan.consumerRegs = 232;
  plan.producerRegs = 40;
  if (plan.tileM <= 128 && plan.tileN >= 128)
    return true;
  // Each 64 rows: tall tiles, and columns too few to divide.
  plan.split = WarpgroupSplit::Rows;
  plan.warpgroups = plan.tileM / 64;
  if (plan.warpgroups == 3) {
    plan.consumerRegs = 152;
    plan.producerRegs = 40;
  }
  return plan.tileN <= 128;
}

PlanEstimate estimateQuantize(const Spec &spec, const Target &target, int64_t rows) {
  PlanEstimate estimate;
  double elements = double(rows) * double(spec.k);
  estimate.memoryBytes = elements * double(elementBytes(*spec.quantizeFrom) + 1);
  estimate.memoryUs =
      estimate.memoryBytes / (double(target.profile.bandwidthGBps) * fitted::memoryShare * 1e3);
  estimate.us = fitted::launchUs + estimate.memoryUs;
  return estimate;
}

std::string estimateJson(const PlanEstimate &estimate) {
  return fmt::format(
      "{{\"us\": {:.1f}, \"limit\": \"{}\", \"memoryUs\": {:.1f}, \"dotUs\": {:.1f}, "
      "\"copyUs\": {:.1f}, \"tileUs\": {:.1f}, \"memoryBytes\": {:.0f}, "
      "\"tiles\": {:.1f}, \"waves\": {:.2f}, \"fragments\": {:.1f}}}",
      estimate.us, estimate.limit(), estimate.memoryUs, estimate.dotUs, estimate.copyUs,
      estimate.tileUs, estimate.memoryBytes, estimate.tiles, estimate.waves, estimate.fragments);
}

} // namespace

const char *PlanEstimate::limit() const {
  double most = std::max({memoryUs, dotUs, copyUs, tileUs});
  return most == memoryUs ? "memory" : most == dotUs ? "dots" : most == copyUs ? "copies" : "tiles";
}

PlanEstimate estimatePlan(const KernelPlan &plan, const Spec &spec, const Target &target,
                          int64_t rows) {
  if (spec.computation == Computation::Quantize)
    return estimateQuantize(spec, target, rows);
  PlanEstimate estimate;
  // Of what the tiles of a cluster share, each block loads its part.
  const int64_t beside = plan.clusterSide == ClusterSide::Columns ? plan.cluster : 1;
  const int64_t below = plan.clusterSide == ClusterSide::Rows ? plan.cluster : 1;
  RowDraw draw =
      drawRows(rows, spec.numExperts, plan.tileM, plan.tailRows, below, rowsOfDots(plan));
  auto columns = double(ceilDivide(spec.n, plan.tileN * beside) * beside);
  auto experts = double(spec.numExperts);
  estimate.activeExperts = draw.active * experts;
  estimate.tiles = draw.tiles * experts * columns;
  double fragmentsOfTiles = plan.skipEmptyRows || plan.fitRows != 0
                                ? draw.fragments
                                : draw.tiles * double(plan.tileM) / 64;
  estimate.fragments = fragmentsOfTiles * experts * columns;
  auto smCount = double(std::max<int64_t>(1, target.profile.smCount));
  // Blocks that share a tile work on it side by side.
  const double blocks = estimate.tiles * double(plan.splitK);
  estimate.waves = blocks / smCount / double(plan.blocksPerSm);
  if (rows == 0)
    return estimate;

  double weights = estimate.activeExperts * double(spec.n) * double(spec.k);
  double tilesOfExpert = draw.active > 0 ? draw.tiles / draw.active / double(below) : 0;
  if (plan.weightPolicy == CachePolicy::EvictFirst)
    weights *= 1 + fitted::rereadShare * std::max(0.0, tilesOfExpert - 1);
  double xBytes = spec.quantizeFrom ? double(elementBytes(*spec.quantizeFrom)) + 2 : 1;
  double ownRows = double(rows) *
                   (double(spec.k) * xBytes + double(spec.n) * double(elementBytes(spec.outType)));
  estimate.memoryBytes = weights + ownRows;
  double bandwidth = double(target.profile.bandwidthGBps) * fitted::memoryShare * 1e3;
  estimate.memoryUs = estimate.memoryBytes / bandwidth;

  // Times of the mean SM, then of the one that is last.
  double last = 1;
  if (estimate.waves < 1)
    last = 1 / std::max(estimate.waves, 1e-9);
  else if (plan.scheduler == SchedulerKind::Queue)
    last = (estimate.waves + fitted::queueTail) / estimate.waves;
  else
    last = std::ceil(estimate.waves) / estimate.waves;
  // The longest part of a tile's steps is what its blocks wait for.
  auto steps = double(ceilDivide(ceilDivide(spec.k, plan.tileK), plan.splitK) * plan.splitK);
  bool isPromoted = spec.xScales.kGranule() != 0 || spec.wScales.kGranule() != 0;
  double scale = last / smCount / fitted::clockMHz;
  auto tileColumns = double(std::min(plan.tileN, spec.n));
  estimate.dotUs =
      isPromoted ? estimate.fragments * steps * tileColumns * fitted::scaledColumnCycles * scale +
                       estimate.tiles * steps * fitted::scaledStepCycles * 2 /
                           double(plan.warpgroups) * scale
                 : estimate.fragments * steps * tileColumns * fitted::columnCycles * scale;
  estimate.copyUs =
      estimate.tiles * steps *
      double(((plan.tileM + plan.tailRows) / beside + plan.tileN / below) * plan.tileK) /
      copyBytesPerCycle * scale;
  // The first block of a cluster adds up what the others send.
  const double sumBytes = double(plan.splitK - 1) * 4 * tileColumns * 64 *
                          (estimate.tiles > 0 ? estimate.fragments / estimate.tiles : 0);
  const double sumCycles = plan.splitK > 1 ? sumBytes / copyBytesPerCycle + fitted::tileCycles : 0;
  // While a block is between two tiles, the others of its SM are not.
  estimate.tileUs = blocks * (fitted::tileCycles + sumCycles) * scale / double(plan.blocksPerSm);
  // Without slots to run ahead, or without a warp that does, copies and dots take turns.
  bool isPipelined = plan.stages > 1 && plan.specializeWarps;
  double onSm =
      isPipelined ? std::max(estimate.dotUs, estimate.copyUs) : estimate.dotUs + estimate.copyUs;
  onSm += estimate.tileUs;
  estimate.us = fitted::launchUs + std::pow(std::pow(onSm, fitted::sharpness) +
                                                std::pow(estimate.memoryUs, fitted::sharpness),
                                            1 / fitted::sharpness);
  return estimate;
}

std::vector<KernelPlan> candidatePlans(const Spec &spec, const Target &target) {
  std::vector<KernelPlan> plans;
  if (spec.computation == Computation::Quantize) {
    for (const PlannedRange &range : planRanges(spec, target)) {
      addOnce(plans, range.plan, spec, target);
      for (const KernelPlan &near : neighbourPlans(range.plan, spec, target))
        addOnce(plans, near, spec, target);
    }
    return plans;
  }
  // What the heuristic takes for some row count comes first, whatever it is.
  for (const PlannedRange &range : planRanges(spec, target))
    addOnce(plans, range.plan, spec, target);
  for (int64_t tileM : {64, 128, 192})
    for (int64_t tileN : {64, 128, 192, 256})
      for (bool isForFew : {true, false}) {
        KernelPlan plan;
        plan.tileM = tileM;
        plan.tileN = tileN;
        if (!shareTile(plan))
          continue;
        if (isForFew) {
          plan.scheduler = SchedulerKind::Static;
          plan.weightPolicy = CachePolicy::EvictFirst;
        }
        if (spec.outType == ElementType::F32)
          plan.store = StorePath::Direct;
        plan.stages = fittingStages(plan, spec, target, 10);
        addOnce(plans, plan, spec, target);
        if (tileM <= 128 && tileN == 128) {
          // Two blocks an SM, of one warpgroup and half of the slots each.
          KernelPlan shared = plan;
          shared.warpgroups = 1;
          shared.blocksPerSm = 2;
          shared.consumerRegs = 216;
          shared.stages = fittingStages(shared, spec, target, 10);
          addOnce(plans, shared, spec, target);
        }
        // The other way round, as far as sums leave registers.
        if (tileM * tileN > 128 * 256 || tileN % 128 != 0)
          continue;
        plan.split = WarpgroupSplit::Columns;
        plan.warpgroups = 2;
        plan.consumerRegs = 232;
        plan.producerRegs = 40;
        plan.swapOperands = true;
        plan.fitRows = tileM > 64 ? 32 : 16;
        plan.stages = fittingStages(plan, spec, target, 10);
        addOnce(plans, plan, spec, target);
      }
  return plans;
}

std::vector<KernelPlan> neighbourPlans(const KernelPlan &plan, const Spec &spec,
                                       const Target &target) {
  std::vector<KernelPlan> plans = {plan};
  auto with = [&](auto change) {
    KernelPlan other = plan;
    change(other);
    addOnce(plans, other, spec, target);
  };
  if (spec.computation == Computation::Quantize) {
    for (int64_t vectors : {1, 2, 4})
      with([&](KernelPlan &p) { p.vectors = vectors; });
    for (int64_t warps : {1, 2, 4, 8})
      with([&](KernelPlan &p) { p.granuleWarps = warps; });
    for (int64_t tileM : {1, 4, 8, 32})
      with([&](KernelPlan &p) { p.tileM = tileM; });
    for (int64_t warpgroups : {4, 8})
      with([&](KernelPlan &p) { p.warpgroups = warpgroups; });
  } else {
    for (int64_t stages : {plan.stages + 1, plan.stages - 1, plan.stages - 2})
      with([&](KernelPlan &p) { p.stages = stages; });
    for (int64_t raster : {1, 4, 8, 16, 32})
      with([&](KernelPlan &p) { p.raster = raster; });
    with([](KernelPlan &p) {
      p.scheduler =
          p.scheduler == SchedulerKind::Queue ? SchedulerKind::Static : SchedulerKind::Queue;
    });
    with([](KernelPlan &p) {
      p.weightPolicy =
          p.weightPolicy == CachePolicy::Normal ? CachePolicy::EvictFirst : CachePolicy::Normal;
    });
    with([](KernelPlan &p) {
      p.store = p.store == StorePath::Staged ? StorePath::Direct : StorePath::Staged;
    });
    with([](KernelPlan &p) {
      p.split = p.split == WarpgroupSplit::Columns ? WarpgroupSplit::Rows : WarpgroupSplit::Columns;
    });
    with([](KernelPlan &p) { p.unrollSlots = !p.unrollSlots; });
    with([](KernelPlan &p) { p.prefetchTile = !p.prefetchTile; });
    with([](KernelPlan &p) { p.cluster = p.cluster == 1 ? 2 : 1; });
    // Where one row of tiles leaves processors without one. Buffers for sums take slots.
    if (2 * ceilDivide(spec.n, plan.tileN) <= target.profile.smCount)
      for (int64_t splitK : {1, 2, 4})
        with([&](KernelPlan &p) {
          p.splitK = splitK;
          if (splitK > 1)
            p.stages = fittingStages(p, spec, target, p.stages);
        });
    with([](KernelPlan &p) { p.liveRows = p.liveRows == 0 ? 32 : 0; });
    with([](KernelPlan &p) { p.swapOperands = !p.swapOperands; });
    for (int64_t fitRows : {0, 16, 32, 64})
      with([&](KernelPlan &p) { p.fitRows = fitRows; });
    for (int64_t tailRows : {0, 16})
      with([&](KernelPlan &p) { p.tailRows = tailRows; });
  }
  plans.erase(plans.begin());
  return plans;
}

std::string planDifference(const KernelPlan &plan, const KernelPlan &base) {
  std::string text = planText(plan), other = planText(base), difference;
  size_t at = 0, otherAt = 0;
  while (at < text.size()) {
    size_t end = std::min(text.find(',', at), text.size());
    size_t otherEnd = std::min(other.find(',', otherAt), other.size());
    std::string field = text.substr(at, end - at);
    if (field != other.substr(otherAt, otherEnd - otherAt))
      difference += (difference.empty() ? "" : ",") + field;
    at = end + 1;
    otherAt = otherEnd + 1;
  }
  return difference;
}

PlanExplanation explainPlan(const Spec &spec, const Target &target, int64_t rows,
                            const PlanRequest &request) {
  PlanExplanation why;
  why.rows = rows;
  why.plan = choosePlan(spec, target, rows, request);
  why.chosenBy = "heuristic";
  if (const TunedSpec *tuned = request.tuned ? request.tuned->find(spec, target) : nullptr)
    for (const TunedRange &range : tuned->ranges)
      if (range.minRows <= rows && rows <= range.maxRows && verifyPlan(range.plan, spec, target)) {
        why.chosenBy = "tuned table";
        why.tunedUs = range.us;
        why.heuristicUs = range.heuristicUs;
      }
  why.estimate = estimatePlan(why.plan, spec, target, rows);
  for (KernelPlan plan : candidatePlans(spec, target)) {
    plan.checked = request.checked;
    // The model does not see every field: plans that differ in nothing it sees are one.
    auto isSeen = [&](const KernelPlan &other) {
      return plan.tileM != other.tileM || plan.tileN != other.tileN ||
             plan.scheduler != other.scheduler || plan.weightPolicy != other.weightPolicy ||
             plan.swapOperands != other.swapOperands || plan.fitRows != other.fitRows ||
             plan.tailRows != other.tailRows;
    };
    bool isNew = isSeen(why.plan) &&
                 std::all_of(why.alternatives.begin(), why.alternatives.end(),
                             [&](const PlanAlternative &other) { return isSeen(other.plan); });
    if (isNew)
      why.alternatives.push_back({plan, estimatePlan(plan, spec, target, rows)});
  }
  std::stable_sort(why.alternatives.begin(), why.alternatives.end(),
                   [](const PlanAlternative &a, const PlanAlternative &b) {
                     return a.estimate.us < b.estimate.us;
                   });
  if (why.alternatives.size() > 3)
    why.alternatives.resize(3);
  return why;
}

std::string PlanExplanation::text() const {
  std::string text;
  if (tunedUs > 0)
    text =
        fmt::format("Measured: {:.1f} us, the heuristic's plan {:.1f} us. ", tunedUs, heuristicUs);
  text += fmt::format("The model gives {:.1f} us for {} rows: memory {:.1f}, dots {:.1f}, copies "
                      "{:.1f}, tiles {:.1f}; {:.0f} tiles, {:.1f} an SM; limited by {}.",
                      estimate.us, rows, estimate.memoryUs, estimate.dotUs, estimate.copyUs,
                      estimate.tileUs, estimate.tiles, estimate.waves, estimate.limit());
  if (!alternatives.empty()) {
    const PlanAlternative &second = alternatives.front();
    double slower = second.estimate.us / estimate.us - 1;
    text += fmt::format(" Next: {}, {:.1f} us, {:.1f} % {}", planDifference(second.plan, plan),
                        second.estimate.us, 100 * std::fabs(slower),
                        slower >= 0 ? "slower." : "faster in the model, which does not choose.");
  }
  return text;
}

std::string PlanExplanation::json() const {
  std::string out =
      fmt::format("{{\"chosenBy\": \"{}\", \"rows\": {}, \"text\": \"{}\",\n  \"estimate\": {},\n"
                  "  \"alternatives\": [",
                  chosenBy, rows, text(), estimateJson(estimate));
  for (size_t i = 0; i < alternatives.size(); ++i)
    out += fmt::format("{}\n    {{\"differs\": \"{}\", \"slower\": {:.4f}, \"estimate\": {}}}",
                       i ? "," : "", planDifference(alternatives[i].plan, plan),
                       alternatives[i].estimate.us / std::max(estimate.us, 1e-9) - 1,
                       estimateJson(alternatives[i].estimate));
  return out + "]}";
}

} // namespace moejit
