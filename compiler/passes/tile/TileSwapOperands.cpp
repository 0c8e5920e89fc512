// Owns the decision which operand gives the rows of an accumulator.
#include "compiler/passes/tile/TilePasses.h"

#include "llvm/ADT/SetVector.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILESWAPOPERANDS
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

/// Whether `op` works on whole accumulators, in a way that can be said of their transposes too.
bool canSwap(Operation *op) {
  if (isa<FillOp, WaitOp, DotOp, ScaleOp>(op))
    return true;
  if (auto promote = dyn_cast<PromoteOp>(op))
    return promote.getRowValues().empty() && promote.getColumnValues().empty();
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return !reduce.getTransposed();
  auto store = dyn_cast<StoreOp>(op);
  return store && !store.getTransposed();
}

struct SwapOperands : tile::impl::TileSwapOperandsBase<SwapOperands> {
  void runOnOperation() override {
    int64_t warpgroups = getOperation().getWarpgroups();
    SmallVector<std::pair<AccOp, AccType>> swapped;
    llvm::SetVector<Operation *> users;
    // Products go from one accumulator to another, so all are swapped or none.
    WalkResult all = getOperation().walk([&](AccOp acc) {
      auto type = dyn_cast<AccType>(acc.getResult().getType());
      if (!type || type.getSplit() || !llvm::all_of(acc.getResult().getUsers(), canSwap))
        return WalkResult::interrupt();
      auto transposed =
          AccType::get(&getContext(), type.getColumns(), type.getRows(), std::nullopt, 0);
      if (!distribute(transposed, warpgroups))
        return WalkResult::interrupt();
      swapped.emplace_back(acc, transposed);
      users.insert(acc.getResult().user_begin(), acc.getResult().user_end());
      return WalkResult::advance();
    });
    if (all.wasInterrupted())
      return;
    for (auto [acc, type] : swapped)
      acc.getResult().setType(type);
    for (Operation *op : users) {
      if (auto dot = dyn_cast<DotOp>(op)) {
        Value a = dot.getA(), b = dot.getB();
        dot.getAMutable().assign(b);
        dot.getBMutable().assign(a);
        swapScales(dot);
      } else if (auto promote = dyn_cast<PromoteOp>(op)) {
        swapScales(promote);
      } else if (auto scale = dyn_cast<ScaleOp>(op)) {
        swapScales(scale);
      } else if (auto reduce = dyn_cast<ReduceOp>(op)) {
        reduce.setTransposed(true);
      } else if (auto store = dyn_cast<StoreOp>(op)) {
        store.setTransposed(true);
      }
    }
  }

  template <typename Op> static void swapScales(Op op) {
    Value rows = op.getRowScales(), columns = op.getColumnScales();
    IntegerAttr rowGranule = op.getRowGranuleAttr(), columnGranule = op.getColumnGranuleAttr();
    op.getRowScalesMutable().assign(columns ? ValueRange(columns) : ValueRange());
    op.getColumnScalesMutable().assign(rows ? ValueRange(rows) : ValueRange());
    op.removeRowGranuleAttr();
    op.removeColumnGranuleAttr();
    if (columnGranule)
      op.setRowGranuleAttr(columnGranule);
    if (rowGranule)
      op.setColumnGranuleAttr(rowGranule);
  }
};

} // namespace
