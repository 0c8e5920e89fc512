// Owns the decision to give tiles with few rows a loop over K of their own.
#include "compiler/passes/tile/TilePasses.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILEUNSWITCHROWS
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

/// Moves what computes `value` out of `loop`. False, with nothing moved, when it depends on the
/// loop.
bool moveOut(Value value, scf::ForOp loop) {
  SmallVector<Operation *> chain;
  SmallVector<Value> open = {value};
  while (!open.empty()) {
    Value next = open.pop_back_val();
    if (loop.isDefinedOutsideOfLoop(next))
      continue;
    Operation *op = next.getDefiningOp();
    if (!op || op->getBlock() != loop.getBody() || !isPure(op) || op->getNumRegions() != 0)
      return false;
    if (!llvm::is_contained(chain, op))
      chain.push_back(op);
    open.append(op->operand_begin(), op->operand_end());
  }
  // In the loop's own order, so that every operand goes before its user.
  llvm::sort(chain, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  for (Operation *op : chain)
    op->moveBefore(loop);
  return true;
}

/// What `condition` is where `known` is `isTrue`; nothing where that does not tell. Rows that are
/// more than 128 are more than 64 too.
std::optional<bool> follows(Value condition, Value known, bool isTrue) {
  if (condition == known)
    return isTrue;
  auto first = condition.getDefiningOp<arith::CmpIOp>(),
       second = known.getDefiningOp<arith::CmpIOp>();
  APInt x, y;
  if (!first || !second || first.getPredicate() != second.getPredicate() ||
      first.getLhs() != second.getLhs() || !matchPattern(first.getRhs(), m_ConstantInt(&x)) ||
      !matchPattern(second.getRhs(), m_ConstantInt(&y)))
    return std::nullopt;
  if (x == y)
    return isTrue;
  if (first.getPredicate() != arith::CmpIPredicate::sgt || (isTrue ? x.sgt(y) : x.slt(y)))
    return std::nullopt;
  return isTrue;
}

struct UnswitchRows : tile::impl::TileUnswitchRowsBase<UnswitchRows> {
  void runOnOperation() override {
    // Each change makes new loops, those inside the changed one among them: look again from the
    // start.
    bool hasChanged = true;
    while (hasChanged)
      hasChanged = getOperation()
                       .walk([&](scf::ForOp loop) {
                         return unswitch(loop) ? WalkResult::interrupt() : WalkResult::advance();
                       })
                       .wasInterrupted();
  }

  /// Turns `for { if (c) … else … }` with invariant c into `if (c) for … else for …`. False when
  /// there is no such c.
  bool unswitch(scf::ForOp loop) {
    if (loop.getNumResults() != 0)
      return false;
    scf::IfOp branch;
    for (scf::IfOp candidate : loop.getBody()->getOps<scf::IfOp>())
      if (candidate.getNumResults() == 0 && containsDot(candidate) &&
          moveOut(candidate.getCondition(), loop)) {
        branch = candidate;
        break;
      }
    if (!branch)
      return false;
    OpBuilder builder(loop);
    auto outer = scf::IfOp::create(builder, branch.getLoc(), branch.getCondition(),
                                   /*withElseRegion=*/true);
    for (bool taken : {true, false}) {
      builder.setInsertionPointToStart(taken ? outer.thenBlock() : outer.elseBlock());
      IRMapping mapping;
      Operation *copy = builder.clone(*loop, mapping);
      // All that ask the same, or for what follows, know the answer, wherever in the loop.
      SmallVector<std::pair<scf::IfOp, bool>> known;
      copy->walk([&](scf::IfOp inner) {
        if (inner.getNumResults() != 0)
          return;
        if (std::optional<bool> answer =
                follows(inner.getCondition(), branch.getCondition(), taken))
          known.emplace_back(inner, *answer);
      });
      for (auto [inner, answer] : known) {
        if (Block *kept = answer ? inner.thenBlock() : inner.elseBlock())
          inner->getBlock()->getOperations().splice(inner->getIterator(), kept->getOperations(),
                                                    kept->begin(), std::prev(kept->end()));
        inner.erase();
      }
    }
    loop.erase();
    return true;
  }

  bool containsDot(scf::IfOp branch) {
    return branch->walk([](DotOp) { return WalkResult::interrupt(); }).wasInterrupted();
  }
};

} // namespace
