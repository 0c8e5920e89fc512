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

struct SplitColumns : tile::impl::TileSplitColumnsBase<SplitColumns> {
  using Base::Base;

  void runOnOperation() override {
    int64_t warpgroups = getOperation().getWarpgroups();
    getOperation().walk([&](AccOp acc) {
      auto type = dyn_cast<AccType>(acc.getResult().getType());
      if (!type || type.getSplit())
        return;
      // Operands whose columns do not divide keep their rows divided: slower, not wrong.
      auto withSplit =
          AccType::get(&getContext(), type.getRows(), type.getColumns(), Split::Columns, n);
      std::optional<Distribution> distribution = distribute(withSplit, warpgroups);
      if (!distribution)
        return;
      acc.getResult().setType(AccType::get(&getContext(), type.getRows(), type.getColumns(),
                                           Split::Columns, distribution->n));
    });
  }
};

} // namespace
