// Everything a tool over moejit's IR has to know: dialects and passes.
#pragma once

#include "mlir/IR/DialectRegistry.h"

namespace moejit {

/// Adds every dialect that moejit's IR uses to `registry`.
void registerDialects(mlir::DialectRegistry &registry);

/// Adds every dialect that moejit's IR uses to `registry`, and registers its passes with MLIR's
/// pass registry. Tools call it once; compile() does not need it.
void registerAllMoejit(mlir::DialectRegistry &registry);

} // namespace moejit
