// Owns the decision to let the blocks of a cluster share the steps along K of one tile.
#include "compiler/passes/tile/Lowering.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILESPLITK
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

/// More blocks are not portable (CUDA C++ Programming Guide, Thread Block Clusters).
constexpr int64_t mostBlocks = 8;

struct SplitK : tile::impl::TileSplitKBase<SplitK> {
  using Base::Base;

  SchedulerOp scheduler;
  ForTilesOp tiles;
  scf::ForOp loop;
  llvm::SetVector<Value> sums; ///< accumulators that the loop adds to and that are used after it

  void runOnOperation() override {
    KernelOp kernel = getOperation();
    if (blocks < 2 || blocks > mostBlocks || (blocks & (blocks - 1)) != 0) {
      kernel.emitOpError("is to have tiles shared by ")
          << blocks.getValue() << " blocks, expected 2, 4 or 8";
      return signalPassFailure();
    }
    sums.clear();
    if (!findLoop() || !canRepeat() || !findSums() || !storesSums())
      return;
    kernel.setCluster(blocks);
    scheduler.setCluster(Spread::K);
    split();
  }

  /// One loop over tiles, with one loop in it that has all dots and whose steps start at 0.
  bool findLoop() {
    KernelOp kernel = getOperation();
    SmallVector<SchedulerOp> schedulers(kernel.getBody().getOps<SchedulerOp>());
    if (kernel.getClusterSize() > 1 || kernel.hasRoles() || schedulers.size() != 1)
      return false;
    scheduler = schedulers.front();
    SmallVector<ForTilesOp> walks;
    kernel.walk([&](ForTilesOp op) { walks.push_back(op); });
    if (scheduler.getTail() || walks.size() != 1 || walks.front()->getParentOp() != kernel)
      return false;
    tiles = walks.front();
    SmallVector<scf::ForOp> loops(tiles.getBody().getOps<scf::ForOp>());
    if (loops.size() != 1)
      return false;
    loop = loops.front();
    bool hasAllDots = true;
    kernel.walk([&](DotOp dot) { hasAllDots &= loop->isProperAncestor(dot); });
    return hasAllDots && loop.getNumResults() == 0 && isConstant(loop.getLowerBound(), 0) &&
           stepOf(loop) > 0 && isAlike(loop.getUpperBound());
  }

  /// 0: it is not known.
  static int64_t stepOf(scf::ForOp loop) {
    APInt constant;
    return matchPattern(loop.getStep(), m_ConstantInt(&constant)) ? constant.getSExtValue() : 0;
  }

  static bool isConstant(Value value, int64_t expected) {
    APInt constant;
    return matchPattern(value, m_ConstantInt(&constant)) && constant.getSExtValue() == expected;
  }

  /// True where `value` is the same in blocks that take the same tile.
  bool isAlike(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return argument.getOwner()->getParentOp() == tiles;
    Operation *op = value.getDefiningOp();
    if (isa<RowsOp>(op))
      return true;
    return isa<arith::ArithDialect>(op->getDialect()) && isPure(op) &&
           llvm::all_of(op->getOperands(), [&](Value operand) { return isAlike(operand); });
  }

  /// True where all else that a tile does may be done by every block.
  bool canRepeat() {
    return !tiles
                .walk([&](Operation *op) {
                  bool isKnown =
                      isa<ForTilesOp, AccOp, FillOp, LoadOp, DotOp, WaitOp, PromoteOp, ScaleOp,
                          StoreOp, OnceOp, AcquireOp, CopyOp, PublishOp, AwaitOp, ReleaseOp>(op) ||
                      isa<scf::IfOp, scf::YieldOp>(op) || op == loop || isPure(op);
                  return isKnown ? WalkResult::advance() : WalkResult::interrupt();
                })
                .wasInterrupted();
  }

  bool isInLoop(Operation *op) { return loop->isProperAncestor(op); }
  Operation *inTiles(Operation *op) { return tiles.getBody().front().findAncestorOpInBlock(*op); }
  bool isAfterLoop(Operation *op) {
    Operation *ancestor = inTiles(op);
    return ancestor && loop->isBeforeInBlock(ancestor);
  }

  /// Tells what the loop adds to from what lives for one of its steps. False: something else.
  bool findSums() {
    bool isClear = true;
    getOperation().walk([&](AccOp acc) {
      Value value = acc.getResult();
      bool isUsedInLoop = false, isUsedOutside = false;
      for (Operation *user : value.getUsers())
        (isInLoop(user) ? isUsedInLoop : isUsedOutside) = true;
      if (!isUsedInLoop)
        return;
      if (!isUsedOutside)
        isClear &= livesForAStep(value);
      else if (isSum(value))
        sums.insert(value);
      else
        isClear = false;
    });
    return isClear && !sums.empty();
  }

  /// True where every step begins `value` afresh before anything else happens to it.
  bool livesForAStep(Value value) {
    Operation *first = nullptr;
    for (Operation *user : value.getUsers()) {
      if (first && user->getBlock() != first->getBlock())
        return false;
      if (!first || user->isBeforeInBlock(first))
        first = user;
    }
    auto dot = dyn_cast<DotOp>(first);
    return dot && dot.getFresh();
  }

  /// True where `value` is zero before the loop, gains something in each step, and is looked at
  /// only after the last.
  bool isSum(Value value) {
    if (!isa<AccType>(value.getType()))
      return false;
    bool isFilled = false;
    for (Operation *user : value.getUsers()) {
      if (isInLoop(user)) {
        auto dot = dyn_cast<DotOp>(user);
        auto promote = dyn_cast<PromoteOp>(user);
        bool isAdded = (dot && !dot.getFresh()) ||
                       (promote && promote.getInto() == value && promote.getFrom() != value);
        if (!isAdded && !isa<WaitOp>(user))
          return false;
      } else if (isAfterLoop(user)) {
        if (!isa<WaitOp, ScaleOp, StoreOp>(user))
          return false;
      } else if (isa<FillOp>(user) && user->getParentOp() == tiles) {
        isFilled = true;
      } else {
        return false;
      }
    }
    return isFilled;
  }

  /// True where sums, and nothing else, are stored, and their rows are those of the tile.
  bool storesSums() {
    bool isClear = true;
    DenseMap<Value, bool> isTransposed;
    tiles.walk([&](StoreOp store) {
      bool isFirst = isTransposed.try_emplace(store.getAcc(), store.getTransposed()).second;
      isClear &= sums.contains(store.getAcc()) && store.getRows() == tiles.getTileRows() &&
                 (isFirst || isTransposed.lookup(store.getAcc()) == store.getTransposed());
    });
    return isClear && isTransposed.size() == sums.size();
  }

  /// The first op after the loop that looks at `sum`: what waits for its dots comes before.
  Operation *firstReader(Value sum) {
    Operation *first = nullptr;
    for (Operation *user : sum.getUsers()) {
      if (isInLoop(user) || !isAfterLoop(user) || isa<WaitOp>(user))
        continue;
      Operation *ancestor = inTiles(user);
      if (!first || ancestor->isBeforeInBlock(first))
        first = ancestor;
    }
    return first;
  }

  void split() {
    // Neighbours' ends are computed alike, so no step is lost, whatever their number.
    OpBuilder builder(loop);
    Code code(builder, loop.getLoc());
    Value steps = code.ceilDiv(loop.getUpperBound(), stepOf(loop));
    Value rank = ClusterRankOp::create(builder, code.loc, builder.getI32Type());
    auto endOf = [&](Value part, StringRef name) {
      Value end = code.name(code.div(code.mul(steps, part), blocks.getValue()), name);
      return code.mul(end, stepOf(loop));
    };
    loop.getLowerBoundMutable().assign(endOf(rank, "firstStep"));
    loop.getUpperBoundMutable().assign(endOf(code.add(rank, 1), "stepsEnd"));
    for (Value sum : sums) {
      builder.setInsertionPoint(firstReader(sum));
      // Without steps there is nothing to add.
      Value rows = code.select(code.less(code.i32(0), steps), tiles.getTileRows(), code.i32(0));
      bool isTransposed = false;
      for (Operation *user : sum.getUsers())
        if (auto store = dyn_cast<StoreOp>(user)) {
          isTransposed = store.getTransposed();
          store.setByFirst(true);
        }
      ReduceOp::create(builder, code.loc, sum, code.name(rows, "rowsToSum"), isTransposed, nullptr,
                       nullptr);
    }
  }
};

} // namespace
