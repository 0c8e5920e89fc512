// The passes over the `tile` dialect: optional schedule decisions, and the lowering to `ptx`.
#pragma once

#include "compiler/dialect/ptx/Ptx.h"
#include "compiler/dialect/tile/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>

namespace moejit::tile {

#define GEN_PASS_DECL
#include "compiler/passes/tile/TilePasses.h.inc"

#define GEN_PASS_REGISTRATION
#include "compiler/passes/tile/TilePasses.h.inc"

} // namespace moejit::tile
