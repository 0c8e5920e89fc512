// The `moe` dialect: what one launch computes. Verifiers check structure; legality is
// runtime/Rules.h.
#pragma once

#include "runtime/Spec.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <optional>

namespace moejit {
/// For attribute uniquing.
inline llvm::hash_code hash_value(const Granule &granule) {
  return llvm::hash_combine(granule.kind, granule.extent);
}
} // namespace moejit

#include "compiler/dialect/moe/MoeDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "compiler/dialect/moe/MoeAttributes.h.inc"

#define GET_OP_CLASSES
#include "compiler/dialect/moe/MoeOps.h.inc"

namespace moejit::moe {

/// The ElementType of an MLIR type, or nothing when moejit has none.
std::optional<ElementType> elementTypeOf(mlir::Type type);
mlir::Type mlirType(ElementType type, mlir::MLIRContext *context);

/// The scale layout of a tensor type, or null.
ScalesAttr scalesOf(mlir::Type type);
/// `type` without its encoding.
mlir::RankedTensorType dataType(mlir::RankedTensorType type);
/// Extents as runtime/Spec.h counts them, -1 for `?`, and back.
std::vector<int64_t> shapeOf(mlir::RankedTensorType type);
mlir::RankedTensorType tensorType(const std::vector<int64_t> &shape, mlir::Type elementType,
                                  mlir::Attribute encoding = {});
/// The type of the scale tensor that belongs to data of `type`, whose encoding must be a
/// #moe.scales. `numExperts` is the extent of an `expert` granule, or -1.
mlir::RankedTensorType scaleTensorType(mlir::RankedTensorType type, int64_t numExperts);

} // namespace moejit::moe
