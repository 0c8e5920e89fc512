// Passes over the `moe` dialect: what each does is in MoePasses.td.
#pragma once

#include "compiler/dialect/moe/Moe.h"
#include "runtime/Target.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace moejit::moe {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/passes/moe/MoePasses.h.inc"

/// Checks `gemm` for `target`, and emits an error with notes at its location for each rule it
/// breaks. Also compares the shapes of scale tensors joined to its operands.
mlir::LogicalResult checkGemm(GemmOp gemm, const Target &target);

} // namespace moejit::moe
