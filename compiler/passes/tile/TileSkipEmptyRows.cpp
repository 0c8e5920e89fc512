// Owns the decision to leave out dots whose rows no expert owns.
#include "compiler/passes/tile/TilePasses.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILESKIPEMPTYROWS
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

struct SkipEmptyRows : tile::impl::TileSkipEmptyRowsBase<SkipEmptyRows> {
  void runOnOperation() override {
    SmallVector<PromoteOp> promotions;
    getOperation().walk([&](PromoteOp promote) {
      if (promote.getBatch())
        promotions.push_back(promote);
    });
    for (PromoteOp promote : promotions)
      skip(promote);
  }

  /// True when all from `dot` to `promote` serves this batch alone, so that leaving it out leaves
  /// out nothing else.
  static bool isItsOwn(DotOp dot, PromoteOp promote) {
    for (Operation *op = dot; op; op = op->getNextNode()) {
      auto wait = dyn_cast<WaitOp>(op);
      bool isOwn = op == dot || op == promote || (wait && wait.getAcc() == dot.getAcc()) ||
                   isPure(op) || isa<ReadOp, LoadOp>(op);
      bool isUsedAfter = llvm::any_of(op->getUsers(), [&](Operation *user) {
        Operation *ancestor = dot->getBlock()->findAncestorOpInBlock(*user);
        return !ancestor || promote->isBeforeInBlock(ancestor);
      });
      if (!isOwn || isUsedAfter)
        return false;
      if (op == promote)
        return true;
    }
    return false;
  }

  /// The side of `acc` that stands for rows of the tile, where no row past those the expert owns is
  /// ever looked at.
  static std::optional<Side> sideOfRows(Value acc, ForTilesOp tiles) {
    std::optional<Side> side;
    for (Operation *user : acc.getUsers()) {
      auto store = dyn_cast<StoreOp>(user);
      if (!store)
        continue;
      Side itsSide = store.getTransposed() ? Side::Columns : Side::Rows;
      if (store.getRows() != tiles.getTileRows() || side.value_or(itsSide) != itsSide)
        return std::nullopt;
      side = itsSide;
    }
    return side;
  }

  void skip(PromoteOp promote) {
    // The dot of this batch, in the same block: everything from it to the promotion is the batch's
    // own.
    DotOp dot;
    for (Operation *op = promote->getPrevNode(); op && !dot; op = op->getPrevNode())
      if (auto candidate = dyn_cast<DotOp>(op);
          candidate && candidate.getAcc() == promote.getFrom())
        dot = candidate;
    auto tiles = promote->getParentOfType<ForTilesOp>();
    if (!dot || !tiles || dot.getBatch() != promote.getBatch())
      return;
    std::optional<Side> side = sideOfRows(promote.getInto(), tiles);
    if (!side || !isItsOwn(dot, promote))
      return;
    std::optional<Distribution> distribution =
        distribute(promote.getInto().getType(), getOperation().getWarpgroups());
    const bool isRows = *side == Side::Rows;
    const bool isShared = distribution->warpgroups > 1 &&
                          distribution->split == (isRows ? Split::Rows : Split::Columns);
    int64_t batch = *promote.getBatch();
    int64_t firstRow = isRows ? distribution->batchRow(batch) : distribution->batchColumn(batch);
    // A tile has at least one row, so its first batch is never empty.
    if (!isShared && firstRow == 0)
      return;

    OpBuilder builder(dot);
    Location loc = dot.getLoc();
    Value row = arith::ConstantIntOp::create(builder, loc, firstRow, 32);
    if (isShared) {
      Value share = arith::ConstantIntOp::create(
          builder, loc, isRows ? distribution->rows : distribution->columns, 32);
      Value warpgroup = WarpgroupOp::create(builder, loc, builder.getI32Type());
      row = arith::AddIOp::create(builder, loc,
                                  arith::MulIOp::create(builder, loc, warpgroup, share), row);
    }
    Value isNeeded =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt, tiles.getTileRows(), row);
    auto branch = scf::IfOp::create(builder, loc, isNeeded, /*withElseRegion=*/false);
    Block *body = branch.thenBlock();
    body->getOperations().splice(body->begin(), dot->getBlock()->getOperations(),
                                 dot->getIterator(), std::next(promote->getIterator()));
  }
};

} // namespace
