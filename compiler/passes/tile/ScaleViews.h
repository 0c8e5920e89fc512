// Where a tile program finds the scales of one side: the view of the stored tensor, and the loads
// of what one tile needs. Knows no schedules.
#pragma once

#include "compiler/passes/tile/Lowering.h"
#include "runtime/Plan.h"

namespace moejit::tile {

/// What a coordinate of a view of scales counts.
enum class ScaleAxis { None, Expert, Item, K };

/// One dimension of a view of scales.
struct ScaleDimension {
  ScaleAxis axis = ScaleAxis::None;
  int64_t extent = 1;     ///< stored scales (or words) along it; dynamic: the launch's rows
  int64_t perExpert = 0;  ///< with axis K: dimensions of experts and K are one, so many of K each
  bool isAllRows = false; ///< with axis Item: rows of all experts' buffers are counted as one
};

/// One side's scales, as the tile program sees them.
struct ScaleView {
  ViewType type;
  mlir::Value view; ///< set by whoever makes the kernel
  llvm::SmallVector<ScaleDimension> dimensions;
  int64_t tileItems = 1; ///< rows or columns of a tile
  int64_t granule = 1;   ///< rows or columns that one entry of a loaded block covers
  int64_t entries = 1;   ///< of a loaded block
  int64_t kGranule = 0;  ///< elements of K one scale covers; 0: all
  int64_t kPhase = 0;
  int64_t packing = 1;
  ItemsAttr items = {};       ///< where entries are not one after the other
  int64_t bufferRows = 0;     ///< Mmax of masked: items count from the first row of the buffer on
  bool canCopyInBulk = false; ///< every vector of items starts a multiple of 16 bytes after another
};

/// The scales of x, and those of w, of the GEMM `spec` in tiles of so many rows or columns.
ScaleView activationScales(mlir::MLIRContext *context, const Spec &spec, int64_t tileM);
ScaleView weightScales(mlir::MLIRContext *context, const Spec &spec, int64_t tileN);

/// Builds the loads of one side's scales in the body of `tiles`, for one step along K after the
/// other.
class ScaleLoader {
public:
  /// `rowsBy`: the scheduler that sorts rows; null: none does. `first`: first row or column of the
  /// tile.
  ScaleLoader(const ScaleView &scales, ForTilesOp tiles, mlir::Value first, mlir::Value rowsBy)
      : scales(scales), tiles(tiles), first(first), rowsBy(rowsBy) {}

  /// The scales of the part of a step that begins `begin` elements into it, at element `at` of K
  /// (which may be negative): loaded, or those of the part before where they still hold.
  mlir::Value at(Code &code, const StepsAlongK &steps, int64_t begin, mlir::Value at);
  /// The scales that hold for all of K.
  mlir::Value ofAllK(Code &code);

private:
  mlir::Value load(Code &code, mlir::Value kIndex);
  mlir::Value unpack(Code &code, mlir::Value words, mlir::Value index);

  const ScaleView &scales;
  ForTilesOp tiles;
  mlir::Value first, rowsBy;
  mlir::Value words, current;
};

} // namespace moejit::tile
