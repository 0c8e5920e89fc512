// Owns the decision how early a slot of a ring is given back.
#include "compiler/passes/tile/TilePasses.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILEHOISTRELEASE
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

/// True when `op`, or anything inside it, reads shared memory of a slot or waits for what does.
bool readsSlot(Operation *op) {
  WalkResult result = op->walk([](Operation *inner) {
    for (Value operand : inner->getOperands()) {
      if (auto unpack = operand.getDefiningOp<UnpackOp>())
        operand = unpack.getWords();
      if (isa<BlockType>(operand.getType()) && !operand.getDefiningOp<LoadOp>())
        return WalkResult::interrupt();
    }
    return isa<WaitOp, FieldOp, ReleaseOp, AwaitOp, OnceOp, scf::ForOp, scf::WhileOp>(inner)
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  return result.wasInterrupted();
}

struct HoistRelease : tile::impl::TileHoistReleaseBase<HoistRelease> {
  void runOnOperation() override {
    SmallVector<ReleaseOp> releases;
    getOperation().walk([&](ReleaseOp release) { releases.push_back(release); });
    for (ReleaseOp release : releases)
      hoist(release);
  }

  void hoist(ReleaseOp release) {
    Operation *last = release->getPrevNode();
    while (last && last != release.getSlot().getDefiningOp() && !readsSlot(last))
      last = last->getPrevNode();
    if (!last)
      return;
    // The last dot may sit in a branch of its own: then each way through releases once.
    auto branch = dyn_cast<scf::IfOp>(last);
    if (!branch || branch.getNumResults() != 0) {
      release->moveAfter(last);
      return;
    }
    if (branch.getElseRegion().empty()) {
      OpBuilder builder(&getContext());
      Block *block = builder.createBlock(&branch.getElseRegion());
      builder.setInsertionPointToEnd(block);
      scf::YieldOp::create(builder, branch.getLoc());
    }
    OpBuilder builder(branch.thenBlock()->getTerminator());
    auto inThen = cast<ReleaseOp>(builder.clone(*release));
    builder.setInsertionPoint(branch.elseBlock()->getTerminator());
    auto inElse = cast<ReleaseOp>(builder.clone(*release));
    release.erase();
    hoist(inThen);
    hoist(inElse);
  }
};

} // namespace
