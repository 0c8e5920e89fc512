// Spec and `moe` module, one from the other. Each is the inverse of the other for kernels of one
// GEMM.
#pragma once

#include "compiler/dialect/moe/Moe.h"
#include "runtime/Result.h"
#include "runtime/Spec.h"

#include "mlir/IR/BuiltinOps.h"

namespace moejit {

/// What `gemm` is. Every verified op has a Spec, legal or not; ask runtime/Rules.h about that.
Spec specFromGemm(moe::GemmOp gemm);

/// What `quantize` is, as a launch of its own.
Spec specFromQuantize(moe::QuantizeOp quantize);

/// The Spec of a kernel that returns the result of its one moe.gemm, on its own arguments (given
/// whole or joined by moe.scaled) or on an x that its one moe.quantize makes of them; or that of
/// its one moe.quantize. Errors: InvalidArgument naming the op that does not fit.
Result<Spec> specFromKernel(moe::KernelOp kernel);

/// The kernel named `name` of `module`, or its only one where `name` is empty. Errors: NotFound
/// naming the kernels.
Result<moe::KernelOp> findKernel(mlir::ModuleOp module, llvm::StringRef name = "");

/// Appends the kernel of `spec` at the builder's insertion point. Arguments: x, offsets (ids,
/// counts), w, expert map, those that the dispatch takes; row counts are `?`. Needs granules of the
/// right rank (rule MJ009) and extents that are not negative; other rules may be broken, and
/// moe-check then says so.
moe::KernelOp buildKernel(mlir::OpBuilder &builder, const Spec &spec, llvm::StringRef name);

} // namespace moejit
