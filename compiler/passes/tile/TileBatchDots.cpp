// Owns the decision to compute one fragment of the output at a time.
#include "compiler/passes/tile/TilePasses.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILEBATCHDOTS
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

struct BatchDots : tile::impl::TileBatchDotsBase<BatchDots> {
  void runOnOperation() override {
    SmallVector<AccOp> temporaries;
    getOperation().walk([&](AccOp acc) { temporaries.push_back(acc); });
    for (AccOp acc : temporaries)
      batch(acc);
  }

  /// Rewrites dot, wait, promote of a temporary that serves nothing else.
  void batch(AccOp temporary) {
    auto type = dyn_cast<AccType>(temporary.getResult().getType());
    if (!type)
      return;
    DotOp dot;
    WaitOp wait;
    PromoteOp promote;
    for (Operation *user : temporary.getResult().getUsers()) {
      if (auto op = dyn_cast<DotOp>(user); op && !dot && op.getFresh())
        dot = op;
      else if (auto op = dyn_cast<WaitOp>(user); op && !wait)
        wait = op;
      else if (auto op = dyn_cast<PromoteOp>(user);
               op && !promote && op.getFrom() == temporary.getResult())
        promote = op;
      else
        return;
    }
    if (!dot || !wait || !promote || dot->getBlock() != wait->getBlock() ||
        wait->getBlock() != promote->getBlock() || !dot->isBeforeInBlock(wait) ||
        !wait->isBeforeInBlock(promote))
      return;
    // The dot moves down to its promotion: nothing on the way may end what it reads.
    for (Operation *op = dot->getNextNode(); op != promote; op = op->getNextNode())
      if (op != wait && !isPure(op) && !isa<LoadOp, ReadOp>(op))
        return;
    AccType into = promote.getInto().getType();
    std::optional<Distribution> distribution = distribute(into, getOperation().getWarpgroups());
    if (!distribution || into != type)
      return;

    OpBuilder builder(temporary);
    Value fragment = AccOp::create(builder, temporary.getLoc(),
                                   FragmentType::get(&getContext(), distribution->n));
    builder.setInsertionPoint(promote);
    auto of = TypeAttr::get(into);
    for (int64_t index = 0; index < distribution->fragments(); ++index) {
      IntegerAttr batch = builder.getI64IntegerAttr(index);
      DotOp::create(builder, dot.getLoc(), fragment, dot.getA(), dot.getB(), Value(), Value(),
                    IntegerAttr(), IntegerAttr(), dot.getKBeginAttr(), dot.getKSizeAttr(),
                    /*fresh=*/builder.getUnitAttr(),
                    /*exact=*/UnitAttr(), batch, of);
      WaitOp::create(builder, wait.getLoc(), fragment, 0);
      PromoteOp::create(builder, promote.getLoc(), promote.getInto(), fragment,
                        promote.getRowScales(), promote.getColumnScales(), ValueRange(),
                        ValueRange(), promote.getRowGranuleAttr(), promote.getColumnGranuleAttr(),
                        batch);
    }
    promote.erase();
    wait.erase();
    dot.erase();
    temporary.erase();
  }
};

} // namespace
