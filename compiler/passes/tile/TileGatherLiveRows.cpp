// Owns the decision to gather no rows past those a tile's expert owns.
#include "compiler/passes/tile/TilePasses.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILEGATHERLIVEROWS
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

struct GatherLiveRows : tile::impl::TileGatherLiveRowsBase<GatherLiveRows> {
  void runOnOperation() override {
    getOperation().walk([&](CopyOp copy) {
      auto tiles = copy->getParentOfType<ForTilesOp>();
      if (copy.getRowsBy() && !copy.getFirst() && tiles && startsAtTile(copy, tiles) &&
          storesOnlyItsRows(tiles))
        copy.getFirstMutable().assign(tiles.getTileRows());
    });
  }

  /// True when the copy's rows are those of the tile, from its first on, and the tile is a matrix.
  static bool startsAtTile(CopyOp copy, ForTilesOp tiles) {
    return copy.getCoordinates().size() == 2 && copy.getCoordinates()[0] == tiles.getFirstRow() &&
           copy.getView().getType().getElementBytes() == 1;
  }

  /// True when no row past those the expert owns is ever looked at: a row of the product depends on
  /// no other row.
  static bool storesOnlyItsRows(ForTilesOp tiles) {
    bool hasStores = false, isOwn = true;
    tiles.walk([&](StoreOp store) {
      hasStores = true;
      isOwn &= store.getRow() == tiles.getFirstRow() && store.getRows() == tiles.getTileRows();
    });
    return hasStores && isOwn;
  }
};

} // namespace
