// A simple model of how long a kernel takes, for explaining plans and for tuning: what it says
// orders candidates, it does not choose. Pure.
#pragma once

#include "runtime/Plan.h"

#include <cstdint>
#include <string>
#include <vector>

namespace moejit {

/// What a launch is made of, in the model. Rows are taken to be drawn uniformly over all experts.
struct PlanEstimate {
  double activeExperts = 0; ///< experts with rows, in the mean
  double tiles = 0;         ///< of all experts, in the mean
  double fragments = 0;     ///< of 64 rows by tileN columns that are computed, in the mean
  double waves = 0;         ///< tiles an SM
  double memoryBytes = 0;   ///< to and from device memory, weights as often as they are read
  double memoryUs = 0;      ///< memoryBytes at the device's bandwidth
  double dotUs = 0;         ///< tensor cores and promotion, of the SM with the most tiles
  double copyUs = 0;        ///< operands from L2 to that SM
  double tileUs = 0;        ///< what each tile costs besides: first loads, epilogue
  double us = 0;            ///< all of it

  /// What takes longest: "memory", "dots", "copies" or "tiles".
  const char *limit() const;
};

/// The estimate for `rows` rows of `spec` under `plan`, which verifyPlan accepts. `source` of the
/// constants: fitted to docs/results/speed.md (H200, tiles of 64 and 128 rows by 256 columns); half
/// of its times are within 4 %, all but one within 15 %.
PlanEstimate estimatePlan(const KernelPlan &plan, const Spec &spec, const Target &target,
                          int64_t rows);

/// Plans of every tile shape with the schedules that suit few and many rows, as many stages as fit:
/// where tuning starts. All pass verifyPlan; none is twice.
std::vector<KernelPlan> candidatePlans(const Spec &spec, const Target &target);
/// Plans that differ from `plan` in one decision. All pass verifyPlan; `plan` is not among them.
/// Not tried are `cleanWorkspace` and `dependentLaunch`: what they save lies between kernels, and
/// tuning times one kernel at a time.
std::vector<KernelPlan> neighbourPlans(const KernelPlan &plan, const Spec &spec,
                                       const Target &target);

/// A plan beside the chosen one.
struct PlanAlternative {
  KernelPlan plan;
  PlanEstimate estimate;
};
/// Why a plan was chosen.
struct PlanExplanation {
  KernelPlan plan;
  int64_t rows = 0;
  std::string chosenBy; ///< "heuristic" or "tuned table"
  PlanEstimate estimate;
  std::vector<PlanAlternative> alternatives; ///< the model's fastest others, at most three
  double tunedUs = 0, heuristicUs = 0;       ///< of the table; 0: the heuristic chose

  /// A sentence or two for people.
  std::string text() const;
  /// An object: chosenBy, rows, text, estimate, alternatives (plan, differs, us, slower).
  std::string json() const;
};
/// Explains what choosePlan takes.
PlanExplanation explainPlan(const Spec &spec, const Target &target, int64_t rows,
                            const PlanRequest &request = {});

/// The fields in which `plan` differs from `base`, `name=value` with commas; "" for none.
std::string planDifference(const KernelPlan &plan, const KernelPlan &base);

} // namespace moejit
