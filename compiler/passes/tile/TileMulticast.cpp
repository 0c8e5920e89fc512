// Owns the decision to let the blocks of a cluster take neighbouring tiles and load what these
// share once.
#include "compiler/passes/tile/TilePasses.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILEMULTICAST
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

/// Rows of 128 bytes whose swizzle repeats: a part of a box starts at a multiple of them.
constexpr int64_t swizzleRows = 8;
/// More blocks are not portable (CUDA C++ Programming Guide, Thread Block Clusters).
constexpr int64_t mostBlocks = 8;

struct Multicast : tile::impl::TileMulticastBase<Multicast> {
  using Base::Base;

  void runOnOperation() override {
    KernelOp kernel = getOperation();
    std::optional<Side> asked = symbolizeSide(side);
    if (!asked || blocks < 2 || blocks > mostBlocks || (blocks & (blocks - 1)) != 0) {
      kernel.emitOpError("is to run in clusters of ")
          << blocks.getValue() << " along '" << side.getValue()
          << "', expected 2, 4 or 8 along rows or columns";
      return signalPassFailure();
    }
    SmallVector<SchedulerOp> schedulers(kernel.getBody().getOps<SchedulerOp>());
    if (kernel.getClusterSize() > 1 || schedulers.size() != 1 || schedulers.front().getIds())
      return;
    SchedulerOp scheduler = schedulers.front();
    along = *asked;
    const int64_t columnTiles =
        (scheduler.getColumns() + scheduler.getTileN() - 1) / scheduler.getTileN();
    hasIdleTiles = along == Side::Rows || columnTiles % blocks != 0;
    // A block alone in its cluster would only wait for the others.
    if (along == Side::Columns && columnTiles == 1)
      return;
    // A tile without rows stores nothing; a store of other rows would be there twice.
    WalkResult walked = kernel.walk([&](StoreOp store) {
      auto tiles = store->getParentOfType<ForTilesOp>();
      bool isOwn = tiles && store.getRows() == tiles.getTileRows();
      return hasIdleTiles && !isOwn ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return;
    if (!shareCopies(kernel))
      return;
    kernel.setCluster(blocks);
    scheduler.setCluster(along == Side::Rows ? Spread::Rows : Spread::Columns);
  }

  /// Marks the copies that bring the same to every block, and their rings. False: there are none.
  bool shareCopies(KernelOp kernel) {
    SmallVector<RingOp> rings;
    kernel.walk([&](RingOp ring) { rings.push_back(ring); });
    bool isShared = false;
    for (RingOp ring : rings) {
      SmallVector<CopyOp> copies;
      if (!isFilledAlike(ring, copies) || copies.empty())
        continue;
      for (CopyOp copy : copies)
        copy.setMulticast(true);
      ring.setMulticast(true);
      isShared = true;
    }
    return isShared;
  }

  /// True where the blocks of a cluster acquire slots of `ring` equally often for a tile. `copies`
  /// are then those whose box is the same for all blocks.
  bool isFilledAlike(RingOp ring, SmallVectorImpl<CopyOp> &copies) {
    for (Operation *user : ring.getResult().getUsers()) {
      auto acquire = dyn_cast<AcquireOp>(user);
      if (!acquire)
        continue;
      if (!isReachedAlike(acquire))
        return false;
      for (Operation *filler : acquire.getSlot().getUsers()) {
        auto copy = dyn_cast<CopyOp>(filler);
        if (copy && copy->getBlock() == acquire->getBlock() && canShare(copy, ring))
          copies.push_back(copy);
      }
    }
    return true;
  }

  bool canShare(CopyOp copy, RingOp ring) {
    BlockType box = ring.getField(copy.getField());
    std::optional<FieldLayout> layout = fieldLayout(box);
    if (!layout || layout->kind != FieldLayout::Kind::Matrix || copy.getRowsBy() || copy.getFirst())
      return false;
    ArrayRef<int64_t> shape = box.getShape();
    return shape.size() >= 2 && shape[shape.size() - 2] % (swizzleRows * blocks) == 0 &&
           llvm::all_of(copy.getCoordinates(), [&](Value at) { return isAlike(at); });
  }

  /// True where every block of the cluster comes to `op` equally often while it works on a tile.
  bool isReachedAlike(Operation *op) {
    for (Operation *parent = op->getParentOp(); parent; parent = parent->getParentOp()) {
      if (isa<ForTilesOp>(parent))
        return true;
      bool isOk = llvm::TypeSwitch<Operation *, bool>(parent)
                      .Case([](OnceOp) { return true; })
                      .Case([&](scf::IfOp branch) { return isAlike(branch.getCondition()); })
                      .Case([&](scf::ForOp loop) { return hasAlikeBounds(loop); })
                      .Default([](Operation *) { return false; });
      if (!isOk)
        return false;
    }
    return false;
  }

  bool hasAlikeBounds(scf::ForOp loop) {
    return isAlike(loop.getLowerBound()) && isAlike(loop.getUpperBound()) &&
           isAlike(loop.getStep());
  }

  /// True where `value` is the same in every block of a cluster, when their tiles are neighbours.
  bool isAlike(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      Operation *owner = argument.getOwner()->getParentOp();
      if (auto tiles = dyn_cast<ForTilesOp>(owner))
        return argument == tiles.getExpert() || argument == tiles.getLive() ||
               (argument == tiles.getFirstRow() && along == Side::Columns) ||
               (argument == tiles.getFirstColumn() && along == Side::Rows) ||
               (argument == tiles.getTileRows() && !hasIdleTiles);
      auto loop = dyn_cast<scf::ForOp>(owner);
      return loop && argument == loop.getInductionVar() && hasAlikeBounds(loop);
    }
    Operation *op = value.getDefiningOp();
    if (isa<RowsOp>(op))
      return true;
    return isa<arith::ArithDialect>(op->getDialect()) && isPure(op) &&
           llvm::all_of(op->getOperands(), [&](Value operand) { return isAlike(operand); });
  }

  Side along = Side::Columns;
  bool hasIdleTiles = false;
};

} // namespace
