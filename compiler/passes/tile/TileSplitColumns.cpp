// Owns the decision which side of an accumulator the warpgroups divide.
#include "compiler/passes/tile/TilePasses.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILESPLITCOLUMNS
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

/// True when batches, or an accumulator whose division is given, rely on how `acc` is divided now.
bool isDividedElsewhere(AccOp acc) {
  return llvm::any_of(acc.getResult().getUsers(), [&](Operation *user) {
    auto promote = dyn_cast<PromoteOp>(user);
    if (!promote)
      return false;
    auto from = dyn_cast<AccType>(promote.getFrom().getType());
    return promote.getBatch() || !from || from.getSplit() || promote.getInto().getType().getSplit();
  });
}

struct SplitColumns : tile::impl::TileSplitColumnsBase<SplitColumns> {
  using Base::Base;

  void runOnOperation() override {
    int64_t warpgroups = getOperation().getWarpgroups();
    SmallVector<std::pair<AccOp, Type>> divided;
    getOperation().walk([&](AccOp acc) {
      auto type = dyn_cast<AccType>(acc.getResult().getType());
      if (!type || type.getSplit() || isDividedElsewhere(acc))
        return;
      // Operands whose columns do not divide keep their rows divided: slower, not wrong.
      auto withSplit =
          AccType::get(&getContext(), type.getRows(), type.getColumns(), Split::Columns, n);
      std::optional<Distribution> distribution = distribute(withSplit, warpgroups);
      if (!distribution)
        return;
      divided.emplace_back(acc, AccType::get(&getContext(), type.getRows(), type.getColumns(),
                                             Split::Columns, distribution->n));
    });
    for (auto [acc, type] : divided)
      acc.getResult().setType(type);
  }
};

} // namespace
