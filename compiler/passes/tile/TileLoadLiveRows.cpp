// Owns the decision to load no rows past those a tile's expert owns.
#include "compiler/passes/tile/Lowering.h"

namespace moejit::tile {
#define GEN_PASS_DEF_TILELOADLIVEROWS
#include "compiler/passes/tile/TilePasses.h.inc"
} // namespace moejit::tile

using namespace mlir;
using namespace moejit;
using namespace moejit::tile;

namespace {

struct LoadLiveRows : tile::impl::TileLoadLiveRowsBase<LoadLiveRows> {
  using TileLoadLiveRowsBase::TileLoadLiveRowsBase;

  void runOnOperation() override {
    getOperation().walk([&](CopyOp copy) {
      auto tiles = copy->getParentOfType<ForTilesOp>();
      if (copy.getFirst() || copy.getMulticast() || !tiles || !startsAtTile(copy, tiles) ||
          !storesOnlyItsRows(tiles))
        return;
      if (!copy.getRowsBy()) {
        if (together <= 0 || together % 8 != 0 || rowsOf(copy) % together != 0)
          return;
        copy.setFirstPer(together);
      }
      copy.getFirstMutable().assign(tiles.getTileRows());
    });
  }

  /// Rows of the field that `copy` fills.
  static int64_t rowsOf(CopyOp copy) {
    return ringOf(copy.getSlot()).getField(copy.getField()).getShape().drop_back().back();
  }

  /// True when the copy's rows are those of the tile, from its first on, and lie below each other
  /// in rows of 128 bytes.
  static bool startsAtTile(CopyOp copy, ForTilesOp tiles) {
    OperandRange at = copy.getCoordinates();
    ArrayRef<int64_t> shape = ringOf(copy.getSlot()).getField(copy.getField()).getShape();
    return at.size() >= 2 && at[at.size() - 2] == tiles.getFirstRow() &&
           shape.size() == at.size() && shape.back() == 128 &&
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
