// Owns the choice of what is printed inside an expression rather than as a variable. It changes no
// IR.
#pragma once

#include "mlir/IR/Block.h"
#include "llvm/ADT/DenseSet.h"

namespace moejit::emit {

/// The operations of one block that have no statement of their own: those without effect, with one
/// use in the same block and no name, and reads of register arrays with no write before the
/// statement that uses them. Constants are not in it.
llvm::DenseSet<mlir::Operation *> planInlining(mlir::Block &block);

} // namespace moejit::emit
