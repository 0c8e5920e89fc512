// Owns the ptx dialect's base: types, memory resources, the wrapper interface and the class of an
// instruction. Operations are in PtxInstructions.td and PtxMemory.td (one per PTX instruction) and
// PtxStructure.td (everything that becomes C++).
#ifndef MOEJIT_PTX_TD
#define MOEJIT_PTX_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Ptx_Dialect : Dialect {
  let name = "ptx";
  let summary = "Which PTX instructions a kernel executes";
  let description = [{
    One operation for each PTX instruction that kernels use; its definition holds the text of the
    inline-assembly wrapper, and is the only place that knows it. Control flow is `scf`, integer
    arithmetic is `arith` on i1, i32 and i64. `compiler/emit` prints a `ptx.kernel` as one CUDA C++
    translation unit.

    Discardable attributes: `ptx.name` on an operation with a result, on a loop (its induction
    variable) or on a kernel's parameter is the C++ identifier to use; `ptx.names` on `scf.for`,
    `scf.while` and `scf.if` names the results, which are the loop-carried variables.
  }];
  let cppNamespace = "::moejit::ptx";
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
}

//===- Types ----------------------------------------------------------------------------------===//

class Ptx_Type<string name, string typeMnemonic> : TypeDef<Ptx_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def Ptx_Ptr : Ptx_Type<"Ptr", "ptr"> {
  let summary = "device address; offsets from it are bytes in i64";
  let builderCall = "$_builder.getType<::moejit::ptx::PtrType>()";
}

def Ptx_Tmap : Ptx_Type<"Tmap", "tmap"> {
  let summary = "tensor map (CUtensorMap), a kernel parameter by value";
  let builderCall = "$_builder.getType<::moejit::ptx::TmapType>()";
}

def Ptx_Regs : Ptx_Type<"Regs", "regs"> {
  let summary = "mutable array of registers, of rank 1 or 2";
  let description = [{
    `!ptx.regs<2x64xf32>` is the C++ array `float name[2][64]`: two fragments of 64 registers. Every
    index into it is a constant once `ptx.unroll` is unrolled, or the array would live in local
    memory.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$elementType);
  let builders = [TypeBuilderWithInferredContext<
      (ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$elementType), [{
    return $_get(elementType.getContext(), shape, elementType);
  }]>];
  let extraClassDeclaration = [{
    unsigned getRank() const { return getShape().size(); }
    /// Registers of one fragment: the last extent.
    int64_t getFragmentSize() const { return getShape().back(); }
  }];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

//===- Memory resources -----------------------------------------------------------------------===//

// Shared memory with the mbarriers in it.
def Ptx_SharedMemory : Resource<"::moejit::ptx::SharedMemory">;
def Ptx_GlobalMemory : Resource<"::moejit::ptx::GlobalMemory">;
// Register arrays, among them accumulators that wgmma writes until it is waited for.
def Ptx_Registers : Resource<"::moejit::ptx::Registers">;
// The threads themselves: who has converged, which barrier they stand at.
def Ptx_Threads : Resource<"::moejit::ptx::Threads">;

def Ptx_ReadShared : MemRead<Ptx_SharedMemory>;
def Ptx_WriteShared : MemWrite<Ptx_SharedMemory>;
def Ptx_ReadGlobal : MemRead<Ptx_GlobalMemory>;
def Ptx_WriteGlobal : MemWrite<Ptx_GlobalMemory>;
def Ptx_ReadRegisters : MemRead<Ptx_Registers>;
def Ptx_WriteRegisters : MemWrite<Ptx_Registers>;
def Ptx_Convergent : MemoryEffects<[MemRead<Ptx_Threads>, MemWrite<Ptx_Threads>]>;
// Orders every access to shared and global memory before it against those after it.
def Ptx_Synchronizes : MemoryEffects<[MemRead<Ptx_Threads>, MemWrite<Ptx_Threads>, Ptx_ReadShared,
                                      Ptx_WriteShared, Ptx_ReadGlobal, Ptx_WriteGlobal]>;
// Orders accesses to register arrays as well: what lies around an asynchronous wgmma.
def Ptx_OrdersWgmma : MemoryEffects<[MemRead<Ptx_Threads>, MemWrite<Ptx_Threads>, Ptx_ReadShared,
                                     Ptx_WriteShared, Ptx_ReadRegisters, Ptx_WriteRegisters]>;

def Ptx_SharedRead : Arg<I32, "shared address", [Ptx_ReadShared]>;
def Ptx_SharedWrite : Arg<I32, "shared address", [Ptx_WriteShared]>;
def Ptx_Barrier : Arg<I32, "shared address of an mbarrier", [Ptx_ReadShared, Ptx_WriteShared]>;
def Ptx_GlobalRead : Arg<Ptx_Ptr, "address the offset counts from", [Ptx_ReadGlobal]>;
def Ptx_GlobalWrite : Arg<Ptx_Ptr, "address the offset counts from", [Ptx_WriteGlobal]>;
def Ptx_RegsRead : Arg<Ptx_Regs, "register array", [Ptx_ReadRegisters]>;
def Ptx_RegsWrite : Arg<Ptx_Regs, "register array", [Ptx_WriteRegisters]>;
def Ptx_RegsReadWrite : Arg<Ptx_Regs, "register array", [Ptx_ReadRegisters, Ptx_WriteRegisters]>;

//===- The interface of an operation that is a call of a wrapper ------------------------------===//

def Ptx_WrapperOpInterface : OpInterface<"WrapperOpInterface"> {
  let cppNamespace = "::moejit::ptx";
  let description = [{
    An operation that is printed as the call of one `__device__` function around one PTX
    instruction.
  }];
  let methods =
      [InterfaceMethod<"Name of the function that wrapperSource defines.", "::std::string",
                       "wrapperName">,
       InterfaceMethod<"CUDA C++ text that defines the function: equal text for every operation "
                       "that shares it.",
                       "::std::string", "wrapperSource">,
       InterfaceMethod<
           "What stands before the arguments of the call: the name, and template arguments.",
           "::std::string", "calleeName", (ins), "", [{ return $_op.wrapperName(); }]>,
       InterfaceMethod<"The arguments of the call in order.",
                       "::llvm::SmallVector<::moejit::ptx::CallArgument>", "callArguments", (ins),
                       "", [{
      ::llvm::SmallVector<::moejit::ptx::CallArgument> arguments;
      for (::mlir::Value operand : $_op->getOperands())
        arguments.push_back(::moejit::ptx::CallArgument(operand));
      return arguments;
    }]>,
  ];
}

//===- Base classes of operations -------------------------------------------------------------===//

class Ptx_Op<string opMnemonic, list<Trait> traits = []> : Op<Ptx_Dialect, opMnemonic, traits>;

// An instruction whose wrapper text does not depend on the operation. `assembly` is the
// instruction, one PTX statement a line; `constraints` what follows it inside asm(…). The wrapper
// returns `result`, declared as "=…"(result). Where that shape does not fit, `body` is the whole
// body of the function.
class Ptx_Instr<string opMnemonic, list<Trait> traits = []>
    : Ptx_Op<opMnemonic, traits#[DeclareOpInterfaceMethods<Ptx_WrapperOpInterface>]> {
  string result = "void";
  string parameters = "";
  string assembly = "";
  string constraints = "";
  string body = "";
  // What stands before the function: a comment, a template head.
  string head = "";
  // Whether the instruction does more than compute its result: it is `volatile` then.
  bit hasEffect = 1;

  code extraDefinition = "";
  let extraClassDefinition = [{
    ::std::string $cppClass::wrapperName() { return "}]#opMnemonic#[{"; }
    ::std::string $cppClass::wrapperSource() {
      return ::moejit::ptx::instructionWrapper({"}]#opMnemonic#[{", "}]#result#[{",
          R"ptx(}]#parameters#[{)ptx", R"ptx(}]#assembly#[{)ptx", R"ptx(}]#constraints#[{)ptx",
          R"ptx(}]#body#[{)ptx", R"ptx(}]#head#[{)ptx", }]#!if(hasEffect, "true", "false")#[{});
    }
  }]#extraDefinition;
}

// A pure computation on registers.
class Ptx_PureInstr<string opMnemonic> : Ptx_Instr<opMnemonic, [Pure]> { let hasEffect = 0; }

// An instruction whose wrapper depends on the operation's attributes or types: its text is in
// PtxWrappers.cpp.
class Ptx_ParametricInstr<string opMnemonic, list<Trait> traits = []>
    : Ptx_Op<opMnemonic, traits#[DeclareOpInterfaceMethods<
                             Ptx_WrapperOpInterface, ["calleeName", "callArguments"]>]>;

#endif // MOEJIT_PTX_TD
