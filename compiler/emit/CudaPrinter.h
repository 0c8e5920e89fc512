// Owns the last step of lowering: a ptx.kernel becomes one self-contained CUDA C++ translation
// unit. It prints, op by op, and rewrites nothing.
#pragma once

#include "compiler/dialect/ptx/Ptx.h"

namespace moejit::emit {

/// Prints `kernel` to `os` as `moejit_kernel`, with the wrappers it uses and no include on the
/// GPU's side. Takes ptx operations, scf.for, scf.while, scf.if and a closed list of arith on i1,
/// i32 and i64 (arith.select on f32 too); of anything else it says so at the operation, prints
/// nothing, and fails. The text depends on the IR alone; no string of the IR reaches it except
/// identifiers that ptx::isIdentifier accepts.
llvm::LogicalResult printCuda(ptx::KernelOp kernel, llvm::raw_ostream &os);

} // namespace moejit::emit
