// Owns the decision to read scales while the dot they belong to is under way.
#include "compiler/passes/tile/TilePasses.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILEREADSCALES
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

struct ReadScales : tile::impl::TileReadScalesBase<ReadScales> {
  void runOnOperation() override {
    SmallVector<PromoteOp> promotions;
    getOperation().walk([&](PromoteOp promote) {
      if (promote.getBatch())
        promotions.push_back(promote);
    });
    for (PromoteOp promote : promotions)
      hoist(promote);
  }

  void hoist(PromoteOp promote) {
    WaitOp wait;
    for (Operation *op = promote->getPrevNode(); op && !wait; op = op->getPrevNode())
      if (auto candidate = dyn_cast<WaitOp>(op);
          candidate && candidate.getAcc() == promote.getFrom())
        wait = candidate;
    AccType of = promote.getInto().getType();
    std::optional<Distribution> distribution = distribute(of, getOperation().getWarpgroups());
    if (!wait || !distribution)
      return;
    // One value a thread stands for all columns only where one scale covers the fragment.
    if (promote.getColumnScales() &&
        static_cast<int64_t>(*promote.getColumnGranule()) % distribution->n != 0)
      return;
    auto precedesWait = [&](Value scales) {
      Operation *definition = scales ? scales.getDefiningOp() : nullptr;
      return !definition || definition->getBlock() != wait->getBlock() ||
             definition->isBeforeInBlock(wait);
    };
    if (!precedesWait(promote.getRowScales()) || !precedesWait(promote.getColumnScales()))
      return;

    OpBuilder builder(wait);
    Type f32 = builder.getF32Type();
    auto read = [&](Value block, Side side, IntegerAttr granule) {
      SmallVector<Type> types(side == Side::Rows ? 2 : 1, f32);
      return ReadOp::create(builder, promote.getLoc(), types, block,
                            SideAttr::get(&getContext(), side), granule, promote.getBatchAttr(),
                            TypeAttr::get(of));
    };
    if (Value rows = promote.getRowScales()) {
      promote.getRowValuesMutable().assign(
          read(rows, Side::Rows, promote.getRowGranuleAttr()).getValues());
      promote.getRowScalesMutable().clear();
      promote.removeRowGranuleAttr();
    }
    if (Value columns = promote.getColumnScales()) {
      promote.getColumnValuesMutable().assign(
          read(columns, Side::Columns, promote.getColumnGranuleAttr()).getValues());
      promote.getColumnScalesMutable().clear();
      promote.removeColumnGranuleAttr();
    }
  }
};

} // namespace
