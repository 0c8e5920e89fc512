// Owns the decision where products are promoted to fp32 registers.
#include "compiler/passes/tile/TilePasses.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILEPROMOTEDOTS
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

/// The wait for `dot` in its own block, if there is one before the next dot of the same
/// accumulator.
WaitOp waitFor(DotOp dot) {
  for (Operation *op = dot->getNextNode(); op; op = op->getNextNode()) {
    if (auto wait = dyn_cast<WaitOp>(op); wait && wait.getAcc() == dot.getAcc())
      return wait;
    if (auto next = dyn_cast<DotOp>(op); next && next.getAcc() == dot.getAcc())
      return {};
  }
  return {};
}

/// True when a dot that is not promoted sums in `acc` too.
bool isSummedInPlace(Value acc) {
  return llvm::any_of(acc.getUsers(), [](Operation *user) {
    auto dot = dyn_cast<DotOp>(user);
    return dot && !dot.getExact() && !dot.getRowScales() && !dot.getColumnScales();
  });
}

struct PromoteDots : tile::impl::TilePromoteDotsBase<PromoteDots> {
  void runOnOperation() override {
    SmallVector<DotOp> dots;
    getOperation().walk([&](DotOp dot) {
      if (dot.getExact() || dot.getRowScales() || dot.getColumnScales())
        dots.push_back(dot);
    });
    for (DotOp dot : dots)
      if (failed(promote(dot)))
        return signalPassFailure();
  }

  LogicalResult promote(DotOp dot) {
    if (dot.getBatch())
      return dot.emitOpError("is already a batch; promote dots before they are split into batches");
    int64_t k = dot.getK();
    if (k > 128)
      return dot.emitOpError("sums ") << k << " of K before promotion, more than the 128 allowed";
    if (dot.getFresh())
      return dot.emitOpError("is promoted into its accumulator, so it cannot start it afresh");

    OpBuilder builder(dot);
    Value acc = dot.getAcc();
    builder.setInsertionPointAfterValue(acc);
    Value temporary = AccOp::create(builder, dot.getLoc(), acc.getType());

    builder.setInsertionPoint(dot);
    auto fresh = cast<DotOp>(builder.clone(*dot));
    fresh.getAccMutable().assign(temporary);
    fresh.getRowScalesMutable().clear();
    fresh.getColumnScalesMutable().clear();
    fresh.removeRowGranuleAttr();
    fresh.removeColumnGranuleAttr();
    fresh.setFresh(true);
    fresh.setExact(false);

    WaitOp wait = waitFor(dot);
    if (wait && !isSummedInPlace(acc)) {
      wait.getAccMutable().assign(temporary);
      wait.setPending(0);
      builder.setInsertionPointAfter(wait);
    } else {
      // A wait of the accumulator's own stays: the promotion reads what other dots sum there.
      if (wait)
        wait.setPending(0);
      builder.setInsertionPointAfter(wait ? wait.getOperation() : dot.getOperation());
      WaitOp::create(builder, dot.getLoc(), temporary, 0);
    }
    PromoteOp::create(builder, dot.getLoc(), acc, temporary, dot.getRowScales(),
                      dot.getColumnScales(), ValueRange(), ValueRange(), dot.getRowGranuleAttr(),
                      dot.getColumnGranuleAttr(), IntegerAttr());
    dot.erase();
    return success();
  }
};

} // namespace
