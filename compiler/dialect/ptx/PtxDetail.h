// Owns what the files of the ptx dialect share among themselves. Not for others.
#pragma once

#include "compiler/dialect/ptx/Ptx.h"

namespace moejit::ptx {

llvm::LogicalResult verifyNamedBarrier(mlir::Operation *op, uint32_t id, uint32_t threads);
llvm::LogicalResult verifyRegisterCount(mlir::Operation *op, uint32_t registers);
llvm::LogicalResult verifyPendingGroups(mlir::Operation *op, uint32_t pending);
/// Checks that `indices`, of which `staticIndices` holds the integers, pick a fragment of `regs`
/// (all but the last index given). `size` and `element` are what the fragment must be, unless 0 and
/// null.
llvm::LogicalResult verifyFragment(mlir::Operation *op, mlir::Value regs, size_t numIndices,
                                   llvm::ArrayRef<int64_t> staticIndices, int64_t size,
                                   mlir::Type element);
llvm::LogicalResult verifyVector(mlir::Operation *op, mlir::Value regs, mlir::ValueRange indices,
                                 llvm::ArrayRef<int64_t> staticIndices);
/// The operands of `op` in order, with `regs` and its indices made one argument.
llvm::SmallVector<CallArgument> vectorArguments(mlir::Operation *op, mlir::Value regs,
                                                mlir::ValueRange indices,
                                                llvm::ArrayRef<int64_t> staticIndices);
/// The mixed list that `indices` and `staticIndices` stand for.
llvm::SmallVector<mlir::OpFoldResult> mixedIndices(mlir::ValueRange indices,
                                                   llvm::ArrayRef<int64_t> staticIndices,
                                                   mlir::MLIRContext *context);

} // namespace moejit::ptx
