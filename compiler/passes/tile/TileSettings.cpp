// Owns the decisions that set one property of an op: ring depth, raster, queue, store path, cache
// policy, when to draw, how many blocks share an SM.
#include "compiler/passes/tile/TilePasses.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILEDEEPENRING
#define GEN_PASS_DEF_TILEPREFETCHTILE
#define GEN_PASS_DEF_TILESTAGESTORES
#define GEN_PASS_DEF_TILEHINTWEIGHTS
#define GEN_PASS_DEF_TILERASTER
#define GEN_PASS_DEF_TILESHARESM
#define GEN_PASS_DEF_TILEUSEQUEUE
#define GEN_PASS_DEF_TILEDEEPENQUANTIZE
#define GEN_PASS_DEF_TILESHAREGRANULES
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

struct ShareSm : tile::impl::TileShareSmBase<ShareSm> {
  using Base::Base;
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    // Roles need a warpgroup more.
    const int64_t most = 2048 / (128 * (kernel.getWarpgroups() + 1));
    if (blocks < 1 || blocks > most) {
      kernel.emitOpError("is to run in ") << blocks.getValue() << " blocks an SM, expected 1 to "
                                          << most << ": an SM has 2048 threads";
      return signalPassFailure();
    }
    if (!kernel.hasRoles() && !kernel.getBlocksPerSm())
      kernel.setBlocksPerSm(blocks);
  }
};

struct DeepenRing : tile::impl::TileDeepenRingBase<DeepenRing> {
  using Base::Base;
  void runOnOperation() override {
    getOperation().walk([&](RingOp ring) { ring.setStages(stages); });
  }
};

struct PrefetchTile : tile::impl::TilePrefetchTileBase<PrefetchTile> {
  void runOnOperation() override {
    getOperation().walk([&](ForTilesOp tiles) {
      Block &body = tiles.getBody().front();
      if (!body.getOps<NextTileOp>().empty())
        return;
      for (StoreOp store : body.getOps<StoreOp>()) {
        OpBuilder builder(store);
        NextTileOp::create(builder, store.getLoc());
        return;
      }
    });
  }
};

struct StageStores : tile::impl::TileStageStoresBase<StageStores> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    kernel.walk([&](StoreOp store) {
      std::optional<Distribution> distribution =
          distribute(store.getAcc().getType(), kernel.getWarpgroups());
      ViewType view = store.getView().getType();
      // Staging moves 64 columns at a time, 8 of them a thread; transposed, 16 columns of acc.
      const int64_t together = store.getTransposed() ? 16 : 64;
      if (!view.getElementType().isF32() && distribution && distribution->n % together == 0 &&
          view.getShape()[1] % 8 == 0)
        store.setStaged(true);
    });
  }
};

struct HintWeights : tile::impl::TileHintWeightsBase<HintWeights> {
  using Base::Base;
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    kernel.walk([&](CopyOp copy) {
      auto argument = dyn_cast<BlockArgument>(copy.getView());
      if (argument && argument.getOwner()->getParentOp() == kernel &&
          kernel.getOperandName(argument.getArgNumber()) == operand)
        copy.setEvictFirst(true);
    });
  }
};

struct Raster : tile::impl::TileRasterBase<Raster> {
  using Base::Base;
  void runOnOperation() override {
    getOperation().walk([&](SchedulerOp scheduler) { scheduler.setRaster(rows); });
  }
};

struct UseQueue : tile::impl::TileUseQueueBase<UseQueue> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    SmallVector<SchedulerOp> schedulers(kernel.getBody().getOps<SchedulerOp>());
    // One counter, one walk over it: a loop of all warps, or one of each role.
    if (schedulers.size() != 1 || schedulers.front().getOrder() == Order::Queue)
      return;
    SmallPtrSet<Operation *, 2> walkers;
    for (Operation *loop : schedulers.front().getResult().getUsers())
      if (!walkers.insert(loop->getParentOp()).second)
        return;
    Builder builder(&getContext());
    SmallVector<Attribute> names(kernel.getOperandNames().begin(), kernel.getOperandNames().end());
    names.push_back(builder.getStringAttr("workspace"));
    kernel.setOperandNamesAttr(builder.getArrayAttr(names));
    Value counter = kernel.getBody().addArgument(
        ViewType::get(&getContext(), {1}, builder.getI32Type()), kernel.getLoc());
    schedulers.front().getCounterMutable().assign(counter);
    schedulers.front().setOrder(Order::Queue);
  }
};

struct DeepenQuantize : tile::impl::TileDeepenQuantizeBase<DeepenQuantize> {
  using Base::Base;
  void runOnOperation() override {
    // More vectors than a row of the box has would stay empty.
    auto fitting = [&](int64_t columns) {
      constexpr int64_t warpColumns = 256;
      return std::clamp<int64_t>((columns + warpColumns - 1) / warpColumns, 1, vectors);
    };
    getOperation().walk([&](AmaxOp op) { op.setVectors(fitting(op.getColumns())); });
    getOperation().walk([&](QuantizeOp op) {
      op.setVectors(fitting(op.isWideGranule() ? *op.getGranule() : op.getColumns()));
    });
  }
};

struct ShareGranules : tile::impl::TileShareGranulesBase<ShareGranules> {
  using Base::Base;
  void runOnOperation() override {
    int64_t inBlock = getOperation().getThreads() / 32;
    getOperation().walk([&](QuantizeOp op) {
      if (op.isWideGranule() && inBlock % warps == 0)
        op.setWarps(warps);
    });
  }
};

} // namespace
