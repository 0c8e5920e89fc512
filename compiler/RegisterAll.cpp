// The list of dialects and passes. Adding one is a line here.
#include "compiler/RegisterAll.h"

#include "compiler/dialect/moe/Moe.h"
#include "compiler/dialect/ptx/Ptx.h"
#include "compiler/dialect/tile/Tile.h"
#include "compiler/passes/moe/MoePasses.h"
#include "compiler/passes/tile/TilePasses.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace moejit {

void registerDialects(mlir::DialectRegistry &registry) {
  registry.insert<mlir::arith::ArithDialect, mlir::scf::SCFDialect>();
  registry.insert<moe::MoeDialect, ptx::PtxDialect, tile::TileDialect>();
}

void registerAllMoejit(mlir::DialectRegistry &registry) {
  registerDialects(registry);
  moe::registerMoePasses();
  tile::registerTilePasses();
}

} // namespace moejit
