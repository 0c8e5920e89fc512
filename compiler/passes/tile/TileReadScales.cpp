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

/// Values a thread needs for the first `width` of the `n` columns of a fragment; 0: they stay where
/// they are. One stands for all columns where one scale covers the fragment. Where every column has
/// its own, a thread takes those of its columns, as long as registers are left beside two sums of
/// the fragment.
int64_t columnValues(Value scales, int64_t granule, int64_t n, int64_t width) {
  constexpr int64_t mostColumns = 64;
  if (granule % n == 0)
    return 1;
  if (auto unpack = scales.getDefiningOp<UnpackOp>())
    scales = unpack.getWords();
  // Few runs of columns are read with the promotion: global memory is not ordered by its wait.
  auto load = scales.getDefiningOp<LoadOp>();
  bool hasRuns = load && load.getItems() && !load.getItems()->getInterleaved() &&
                 load.getItems()->getGranule() * 2 >= n;
  return granule == 1 && width <= mostColumns && !hasRuns ? width / 4 : 0;
}

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
    // How long it waits may depend on a branch.
    auto waits = [&](Operation *op) {
      return op
          ->walk([&](WaitOp wait) {
            return wait.getAcc() == promote.getFrom() ? WalkResult::interrupt()
                                                      : WalkResult::advance();
          })
          .wasInterrupted();
    };
    Operation *wait = promote->getPrevNode();
    while (wait && !waits(wait))
      wait = wait->getPrevNode();
    AccType of = promote.getInto().getType();
    std::optional<Distribution> distribution = distribute(of, getOperation().getWarpgroups());
    if (!wait || !distribution)
      return;
    auto precedesWait = [&](Value scales) {
      Operation *definition = scales ? scales.getDefiningOp() : nullptr;
      return !definition || definition->getBlock() != wait->getBlock() ||
             definition->isBeforeInBlock(wait);
    };
    OpBuilder builder(wait);
    Type f32 = builder.getF32Type();
    auto read = [&](Value block, Side side, IntegerAttr granule, int64_t values) {
      return ReadOp::create(builder, promote.getLoc(), SmallVector<Type>(values, f32), block,
                            SideAttr::get(&getContext(), side), granule, promote.getBatchAttr(),
                            TypeAttr::get(of));
    };
    if (Value rows = promote.getRowScales(); rows && precedesWait(rows)) {
      promote.getRowValuesMutable().assign(
          read(rows, Side::Rows, promote.getRowGranuleAttr(), 2).getValues());
      promote.getRowScalesMutable().clear();
      promote.removeRowGranuleAttr();
    }
    if (Value columns = promote.getColumnScales(); columns && precedesWait(columns)) {
      int64_t values = columnValues(columns, *promote.getColumnGranule(), distribution->n,
                                    cast<FragmentType>(promote.getFrom().getType()).getN());
      if (values == 0)
        return;
      promote.getColumnValuesMutable().assign(
          read(columns, Side::Columns, promote.getColumnGranuleAttr(), values).getValues());
      promote.getColumnScalesMutable().clear();
      promote.removeColumnGranuleAttr();
    }
  }
};

} // namespace
