// How a lowering pass reads single scales: from where, and as what number.
#pragma once

#include "compiler/passes/tile/Lowering.h"

namespace moejit::tile {

/// Reads single scales of a block, from a field of a slot or from global memory, as fp32.
class ScaleReader {
public:
  /// `block`: what a field, a load or an unpack of one of them gives; null: nothing to read.
  ScaleReader(KernelOp kernel, mlir::Value block);

  /// The block in memory: of packed scales, that of words.
  mlir::Value getBlock() const { return block; }
  /// True where two neighbouring columns, the first of them even in the tile, have one scale.
  bool hasPairs(int64_t granule) const;
  /// What the first item that `load` reads is a multiple of: `n` where tiles begin at multiples of
  /// it, as along the columns of y; 1 along rows, which experts own from any row on.
  static int64_t firstItemAlign(LoadOp load, int64_t n);
  /// The scale at `index` along the block's one long dimension; past the view's last, 0 or what
  /// bulk copies fill in. Null after an error at `op`.
  mlir::Value read(Code &code, mlir::Operation *op, mlir::Value index) const;

private:
  mlir::Value readShared(Code &code, mlir::Operation *op, FieldOp field, mlir::Value index) const;
  mlir::Value readGlobal(Code &code, LoadOp load, mlir::Value index) const;
  mlir::Value loadGlobal(Code &code, LoadOp load, llvm::ArrayRef<mlir::Value> coordinates) const;

  KernelOp kernel;
  mlir::Value block;
  mlir::Value byte; ///< of packed scales: which of a word's
};

} // namespace moejit::tile
