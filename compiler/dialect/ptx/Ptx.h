// Owns the C++ face of the ptx dialect: one operation per PTX instruction, register arrays, the
// kernel. Include this to build or read ptx operations.
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <optional>
#include <string>

namespace moejit::ptx {

/// One argument of a wrapper's call: a value, a fragment of a register array, or an integer.
struct CallArgument {
  CallArgument(mlir::Value value, llvm::ArrayRef<mlir::OpFoldResult> indices = {})
      : value(value), indices(indices) {}
  static CallArgument ofInteger(int64_t integer) {
    CallArgument argument((mlir::Value()));
    argument.integer = integer;
    return argument;
  }

  mlir::Value value;                                ///< null when it is the integer
  llvm::SmallVector<mlir::OpFoldResult, 2> indices; ///< leading indices into a register array
  int64_t integer = 0;
};

/// The parts of a wrapper whose text is fixed; see Ptx_Instr in Ptx.td.
struct InstructionText {
  const char *name;
  const char *result;
  const char *parameters;
  const char *assembly;
  const char *constraints;
  const char *body;
  const char *head;
  bool hasEffect;
};

/// The definition of the `__device__` function around one instruction.
std::string instructionWrapper(const InstructionText &text);

/// Whether `name` may be the C++ identifier of a value: [a-zA-Z][a-zA-Z0-9_]*, without `__`, at
/// most 64 characters, and no keyword of C++ or CUDA.
bool isIdentifier(llvm::StringRef name);

#define MOEJIT_PTX_RESOURCE(Class, text)                                                           \
  struct Class : mlir::SideEffects::Resource::Base<Class> {                                        \
    llvm::StringRef getName() final { return text; }                                               \
  };
MOEJIT_PTX_RESOURCE(SharedMemory, "shared memory")
MOEJIT_PTX_RESOURCE(GlobalMemory, "global memory")
MOEJIT_PTX_RESOURCE(Registers, "register arrays")
MOEJIT_PTX_RESOURCE(Threads, "threads")
#undef MOEJIT_PTX_RESOURCE

} // namespace moejit::ptx

#include "compiler/dialect/ptx/PtxDialect.h.inc"
#include "compiler/dialect/ptx/PtxInterfaces.h.inc"

#define GET_TYPEDEF_CLASSES
#include "compiler/dialect/ptx/PtxTypes.h.inc"

#define GET_OP_CLASSES
#include "compiler/dialect/ptx/PtxOps.h.inc"
