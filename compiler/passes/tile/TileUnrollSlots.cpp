// Owns the decision where the slot of a ring is a constant.
#include "compiler/passes/tile/TilePasses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILEUNROLLSLOTS
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

std::optional<int64_t> constantOf(Value value) {
  APInt constant;
  if (!matchPattern(value, m_ConstantInt(&constant)))
    return std::nullopt;
  return constant.getSExtValue();
}

/// True where `value` is always a multiple of `factor`, as far as constants and choices between
/// them tell.
bool isMultiple(Value value, int64_t factor) {
  if (std::optional<int64_t> constant = constantOf(value))
    return *constant % factor == 0;
  auto select = value.getDefiningOp<arith::SelectOp>();
  return select && isMultiple(select.getTrueValue(), factor) &&
         isMultiple(select.getFalseValue(), factor);
}

/// The loop whose every round awaits `await` and no other slot of its ring, and whose rounds are a
/// multiple of the ring's slots: it starts at the first slot if what came before it did.
scf::ForOp wholeTurns(AwaitOp await, RingOp ring) {
  auto loop = dyn_cast<scf::ForOp>(await->getParentOp());
  if (!loop || loop.getNumResults() != 0 || constantOf(loop.getLowerBound()) != 0 ||
      constantOf(loop.getStep()) != 1 || !isMultiple(loop.getUpperBound(), ring.getStages()))
    return {};
  WalkResult others = loop.walk([&](Operation *op) {
    auto other = dyn_cast<AwaitOp>(op);
    bool walksToo = (other && other != await && other.getRing() == await.getRing()) ||
                    (isa<AcquireOp>(op) && op->getOperand(0) == await.getRing());
    return walksToo ? WalkResult::interrupt() : WalkResult::advance();
  });
  return others.wasInterrupted() ? scf::ForOp() : loop;
}

int64_t dotsIn(scf::ForOp loop) {
  int64_t dots = 0;
  loop.walk([&](DotOp) { ++dots; });
  return dots;
}

/// Sums of two accumulators leave no registers for what constant slots make of addresses.
bool sumsTwice(scf::ForOp loop) {
  SmallPtrSet<Value, 2> sums;
  loop.walk([&](PromoteOp promote) { sums.insert(promote.getInto()); });
  return sums.size() > 1;
}

struct UnrollSlots : tile::impl::TileUnrollSlotsBase<UnrollSlots> {
  void runOnOperation() override {
    SmallVector<RingOp> rings;
    getOperation().walk([&](RingOp ring) { rings.push_back(ring); });
    for (RingOp ring : rings)
      if (ring.getStages() > 1)
        unroll(ring);
  }

  void unroll(RingOp ring) {
    SmallVector<std::pair<AwaitOp, scf::ForOp>> walks;
    int64_t most = 0;
    for (Operation *user : ring.getResult().getUsers()) {
      auto await = dyn_cast<AwaitOp>(user);
      if (!await)
        continue;
      scf::ForOp loop = wholeTurns(await, ring);
      if (!loop || await.getIndex())
        return;
      if (sumsTwice(loop))
        continue;
      most = std::max(most, dotsIn(loop));
      walks.emplace_back(await, loop);
    }
    // Loops for tiles of few rows wait for memory, and would only make the kernel longer.
    for (auto [await, loop] : walks)
      if (dotsIn(loop) == most)
        unroll(await, loop, ring.getStages());
  }

  /// Rounds come by turns of the ring.
  void unroll(AwaitOp await, scf::ForOp loop, int64_t stages) {
    OpBuilder builder(loop);
    Location loc = loop.getLoc();
    Value step = arith::ConstantIntOp::create(builder, loc, stages, 32);
    auto turns = scf::ForOp::create(builder, loc, loop.getLowerBound(), loop.getUpperBound(), step);
    turns->setAttr("ptx.name", builder.getStringAttr("kTurn"));
    builder.setInsertionPointToStart(turns.getBody());
    auto slots = ptx::UnrollOp::create(builder, loc, 0, static_cast<int32_t>(stages), 1);
    slots->setAttr("ptx.name", builder.getStringAttr("slotIndex"));
    builder.setInsertionPointToStart(slots.getBlock());
    Value round =
        arith::AddIOp::create(builder, loc, turns.getInductionVar(), slots.getInductionVar());
    if (Attribute name = loop->getAttr("ptx.name"))
      round.getDefiningOp()->setAttr("ptx.name", name);
    loop.getInductionVar().replaceAllUsesWith(round);
    loop.getBody()->getTerminator()->erase();
    slots.getBlock()->getOperations().splice(slots.getBlock()->end(),
                                             loop.getBody()->getOperations());
    await.getIndexMutable().assign(slots.getInductionVar());
    loop.erase();
  }
};

} // namespace
