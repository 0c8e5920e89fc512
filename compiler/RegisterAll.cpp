// The list of dialects and passes. Adding one is a line here.
#include "compiler/RegisterAll.h"

#include "compiler/dialect/moe/Moe.h"
#include "compiler/passes/moe/MoePasses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace moejit {

void registerAllMoejit(mlir::DialectRegistry &registry) {
  registry.insert<mlir::arith::ArithDialect, mlir::scf::SCFDialect>();
  registry.insert<moe::MoeDialect>();
  moe::registerMoePasses();
}

} // namespace moejit
