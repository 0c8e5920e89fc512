// Which passes make a kernel, in which order, and which of them may be left out.
#pragma once

#include "runtime/Plan.h"

#include "mlir/Pass/PassManager.h"

#include <string>
#include <vector>

namespace moejit {

/// The passes that only make a kernel faster, by argument (tile-split-columns, …), in the order
/// they run in.
const std::vector<std::string> &optionalPasses();

/// From a module with moe.kernels to plain tile programs: moe-check, moe-expand-scales,
/// moe-lower-to-tile and the passes without which no tile program is right.
void buildTilePipeline(mlir::OpPassManager &manager, const KernelPlan &plan);
/// The schedule of `plan`: the optional passes, without those named in `skipped`.
void buildSchedulePipeline(mlir::OpPassManager &manager, const KernelPlan &plan,
                           const std::vector<std::string> &skipped = {});
/// From tile programs to ptx.kernels.
void buildLoweringPipeline(mlir::OpPassManager &manager);

/// Registers the three with MLIR's pass registry as moejit-tile, moejit-schedule and moejit-lower;
/// the first two with the default KernelPlan.
void registerPipelines();

} // namespace moejit
