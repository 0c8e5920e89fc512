// The order of the passes.
#include "compiler/Pipeline.h"

#include "compiler/dialect/moe/Moe.h"
#include "compiler/passes/moe/MoePasses.h"
#include "compiler/passes/tile/TilePasses.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace moejit {
namespace {

struct OptionalPass {
  const char *argument;
  std::unique_ptr<Pass> (*create)(const KernelPlan &plan); ///< null where the plan does without
};

/// Loops of fitting widths have no empty rows to skip.
bool skipsRows(const KernelPlan &plan) { return plan.skipEmptyRows && plan.fitRows == 0; }

/// Later passes work on what earlier ones made, and each on what is left when any are missing.
const OptionalPass schedule[] = {
    // First, while slots are filled in one place, and one loop sums all of K.
    {"tile-split-k",
     [](const KernelPlan &plan) -> std::unique_ptr<Pass> {
       if (plan.splitK == 1)
         return nullptr;
       tile::TileSplitKOptions options;
       options.blocks = plan.splitK;
       return tile::createTileSplitK(options);
     }},
    {"tile-multicast",
     [](const KernelPlan &plan) -> std::unique_ptr<Pass> {
       if (plan.cluster == 1)
         return nullptr;
       tile::TileMulticastOptions options;
       options.blocks = plan.cluster;
       options.side = namesOf(plan.clusterSide)[size_t(plan.clusterSide)];
       return tile::createTileMulticast(options);
     }},
    {"tile-share-sm",
     [](const KernelPlan &plan) -> std::unique_ptr<Pass> {
       if (plan.blocksPerSm == 1)
         return nullptr;
       tile::TileShareSmOptions options;
       options.blocks = plan.blocksPerSm;
       return tile::createTileShareSm(options);
     }},
    {"tile-swap-operands",
     [](const KernelPlan &plan) -> std::unique_ptr<Pass> {
       return plan.swapOperands ? tile::createTileSwapOperands() : nullptr;
     }},
    // Columns of the tile are rows of accumulators that are swapped.
    {"tile-split-columns",
     [](const KernelPlan &plan) -> std::unique_ptr<Pass> {
       return (plan.split == WarpgroupSplit::Columns) != plan.swapOperands
                  ? tile::createTileSplitColumns()
                  : nullptr;
     }},
    {"tile-batch-dots",
     [](const KernelPlan &) -> std::unique_ptr<Pass> { return tile::createTileBatchDots(); }},
    {"tile-fit-columns",
     [](const KernelPlan &plan) -> std::unique_ptr<Pass> {
       if (plan.fitRows == 0)
         return nullptr;
       tile::TileFitColumnsOptions options;
       options.step = plan.fitRows;
       return tile::createTileFitColumns(options);
     }},
    {"tile-skip-empty-rows",
     [](const KernelPlan &plan) -> std::unique_ptr<Pass> {
       return skipsRows(plan) ? tile::createTileSkipEmptyRows() : nullptr;
     }},
    // Behind the last batch there is, and before what hides behind each of them.
    {"tile-tail-rows",
     [](const KernelPlan &plan) -> std::unique_ptr<Pass> {
       if (plan.tailRows == 0)
         return nullptr;
       tile::TileTailRowsOptions options;
       options.rows = plan.tailRows;
       return tile::createTileTailRows(options);
     }},
    {"tile-read-scales",
     [](const KernelPlan &) -> std::unique_ptr<Pass> { return tile::createTileReadScales(); }},
    {"tile-unswitch-rows",
     [](const KernelPlan &plan) -> std::unique_ptr<Pass> {
       return skipsRows(plan) ? tile::createTileUnswitchRows() : nullptr;
     }},
    {"tile-load-live-rows",
     [](const KernelPlan &plan) -> std::unique_ptr<Pass> {
       tile::TileLoadLiveRowsOptions options;
       options.together = plan.liveRows;
       return tile::createTileLoadLiveRows(options);
     }},
    {"tile-prefetch-tile",
     [](const KernelPlan &plan) -> std::unique_ptr<Pass> {
       return plan.prefetchTile ? tile::createTilePrefetchTile() : nullptr;
     }},
    {"tile-specialize-warps",
     [](const KernelPlan &plan) -> std::unique_ptr<Pass> {
       if (!plan.specializeWarps)
         return nullptr;
       tile::TileSpecializeWarpsOptions options;
       options.producerRegisters = plan.producerRegs;
       options.consumerRegisters = plan.consumerRegs;
       return tile::createTileSpecializeWarps(options);
     }},
    {"tile-deepen-ring",
     [](const KernelPlan &plan) -> std::unique_ptr<Pass> {
       tile::TileDeepenRingOptions options;
       options.stages = plan.stages;
       return tile::createTileDeepenRing(options);
     }},
    {"tile-hoist-release",
     [](const KernelPlan &plan) -> std::unique_ptr<Pass> {
       return plan.hoistRelease ? tile::createTileHoistRelease() : nullptr;
     }},
    {"tile-unroll-slots",
     [](const KernelPlan &plan) -> std::unique_ptr<Pass> {
       return plan.unrollSlots ? tile::createTileUnrollSlots() : nullptr;
     }},
    {"tile-stage-stores",
     [](const KernelPlan &plan) -> std::unique_ptr<Pass> {
       return plan.store == StorePath::Staged ? tile::createTileStageStores() : nullptr;
     }},
    {"tile-hint-weights",
     [](const KernelPlan &plan) -> std::unique_ptr<Pass> {
       return plan.weightPolicy == CachePolicy::EvictFirst ? tile::createTileHintWeights()
                                                           : nullptr;
     }},
    {"tile-raster",
     [](const KernelPlan &plan) -> std::unique_ptr<Pass> {
       tile::TileRasterOptions options;
       options.rows = plan.raster;
       return tile::createTileRaster(options);
     }},
    {"tile-use-queue",
     [](const KernelPlan &plan) -> std::unique_ptr<Pass> {
       return plan.scheduler == SchedulerKind::Queue ? tile::createTileUseQueue() : nullptr;
     }},
    // When no pass adds such words any more.
    {"tile-clean-workspace",
     [](const KernelPlan &plan) -> std::unique_ptr<Pass> {
       return plan.cleanWorkspace ? tile::createTileCleanWorkspace() : nullptr;
     }},
    {"tile-deepen-quantize",
     [](const KernelPlan &plan) -> std::unique_ptr<Pass> {
       tile::TileDeepenQuantizeOptions options;
       options.vectors = plan.vectors;
       return tile::createTileDeepenQuantize(options);
     }},
    {"tile-share-granules",
     [](const KernelPlan &plan) -> std::unique_ptr<Pass> {
       tile::TileShareGranulesOptions options;
       options.warps = plan.granuleWarps;
       return tile::createTileShareGranules(options);
     }},
    {"tile-check-routing",
     [](const KernelPlan &plan) -> std::unique_ptr<Pass> {
       return plan.checked ? tile::createTileCheckRouting() : nullptr;
     }},
    {"tile-check-scales",
     [](const KernelPlan &plan) -> std::unique_ptr<Pass> {
       return plan.checked ? tile::createTileCheckScales() : nullptr;
     }},
    // Before all that reads, wherever it came from.
    {"tile-dependent-launch",
     [](const KernelPlan &plan) -> std::unique_ptr<Pass> {
       return plan.dependentLaunch ? tile::createTileDependentLaunch() : nullptr;
     }},
};

} // namespace

const std::vector<std::string> &optionalPasses() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const OptionalPass &pass : schedule)
      all.push_back(pass.argument);
    return all;
  }();
  return names;
}

void buildTilePipeline(OpPassManager &manager, const KernelPlan &plan) {
  manager.addPass(moe::createMoeCheck());
  manager.addNestedPass<moe::KernelOp>(moe::createMoeExpandScales());
  tile::MoeLowerQuantizeOptions quantize;
  quantize.tileM = plan.tileM;
  quantize.tileN = plan.tileN;
  quantize.warpgroups = plan.warpgroups;
  manager.addPass(tile::createMoeLowerQuantize(quantize));
  tile::MoeLowerToTileOptions options;
  options.tileM = plan.tileM;
  options.tileN = plan.tileN;
  options.tileK = plan.tileK;
  options.warpgroups = plan.warpgroups;
  manager.addPass(tile::createMoeLowerToTile(options));
  manager.addNestedPass<tile::KernelOp>(tile::createTilePromoteDots());
  manager.addNestedPass<tile::KernelOp>(tile::createTileStageLoads());
}

void buildSchedulePipeline(OpPassManager &manager, const KernelPlan &plan,
                           const std::vector<std::string> &skipped) {
  OpPassManager &kernels = manager.nest<tile::KernelOp>();
  for (const OptionalPass &pass : schedule) {
    if (llvm::is_contained(skipped, pass.argument))
      continue;
    if (std::unique_ptr<Pass> made = pass.create(plan))
      kernels.addPass(std::move(made));
  }
}

void buildLoweringPipeline(OpPassManager &manager) {
  OpPassManager &kernels = manager.nest<tile::KernelOp>();
  kernels.addPass(tile::createTileAllocateShared());
  kernels.addPass(tile::createTileLowerChecks());
  kernels.addPass(tile::createTileLowerQuantize());
  kernels.addPass(tile::createTileLowerStores());
  kernels.addPass(tile::createTileLowerReduce());
  kernels.addPass(tile::createTileLowerDots());
  kernels.addPass(tile::createTileLowerScales());
  kernels.addPass(tile::createTileLowerAccumulators());
  kernels.addPass(tile::createTileLowerCopies());
  kernels.addPass(tile::createTileLowerRing());
  kernels.addPass(tile::createTileLowerScheduler());
  kernels.addPass(tile::createTileLowerGrid());
  kernels.addPass(tile::createTileLowerRoles());
  manager.addPass(tile::createTileLowerKernel());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createLoopInvariantCodeMotionPass());
}

void registerPipelines() {
  PassPipelineRegistration<>("moejit-tile", "Lower moe kernels to plain tile programs",
                             [](OpPassManager &manager) { buildTilePipeline(manager, {}); });
  PassPipelineRegistration<>("moejit-schedule", "Apply the default plan's optional passes",
                             [](OpPassManager &manager) { buildSchedulePipeline(manager, {}); });
  PassPipelineRegistration<>("moejit-lower", "Lower tile programs to ptx", buildLoweringPipeline);
}

} // namespace moejit
