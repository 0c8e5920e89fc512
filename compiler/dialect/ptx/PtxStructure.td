// Owns the operations that become C++ rather than instructions: the kernel, register arrays,
// unrolled loops, constants.
#ifndef MOEJIT_PTX_STRUCTURE_TD
#define MOEJIT_PTX_STRUCTURE_TD

include "compiler/dialect/ptx/Ptx.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"

def Ptx_KernelOp
    : Ptx_Op<
          "kernel", [IsolatedFromAbove, NoTerminator, SingleBlock, FunctionOpInterface,
                     DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "Define a kernel";
  let description = [{
    One block without terminator. Parameters are `!ptx.tmap`, `!ptx.ptr`, i32 or i64. `threads` and
    `min_blocks` are the launch bounds, `cluster` the blocks of a cluster, `shared_bytes` the
    dynamic shared memory of a launch.

    ```mlir
    ptx.kernel @gemm(%xMap: !ptx.tmap {ptx.name = "xMap"}, %rows: i32 {ptx.name = "rows"})
        attributes {threads = 384 : i32, cluster = 1 : i32, shared_bytes = 1024 : i32,
                    min_blocks = 1 : i32} {
      …
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
      OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs,
      I32Attr:$threads, DefaultValuedAttr<I32Attr, "1">:$cluster,
      DefaultValuedAttr<I32Attr, "0">:$shared_bytes, DefaultValuedAttr<I32Attr, "1">:$min_blocks);
  let regions = (region SizedRegion<1>:$body);
  let skipDefaultBuilders = 1;
  let builders = [
      // Makes the entry block. `parameterNames` is empty or has one identifier for each type.
      OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::TypeRange":$parameterTypes,
          "::llvm::ArrayRef<::llvm::StringRef>":$parameterNames, "int32_t":$threads,
          CArg<"int32_t", "1">:$cluster, CArg<"int32_t", "0">:$sharedBytes,
          CArg<"int32_t", "1">:$minBlocks)>];
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    ::mlir::Block *getEntry() { return &getBody().front(); }
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Ptx_RegsOp : Ptx_Op<"regs"> {
  let summary = "Declare an array of registers, not initialised";
  let description = [{
    ```mlir
    %acc = ptx.regs {ptx.name = "acc"} : !ptx.regs<2x64xf32>
    ```
  }];
  let results = (outs Res<Ptx_Regs, "", [MemAlloc<Ptx_Registers>]>:$regs);
  let assemblyFormat = "attr-dict `:` qualified(type($regs))";
}

def Ptx_RegsGetOp
    : Ptx_Op<"regs_get", [TypesMatchWith<
                             "result has the element type of the array", "regs", "value",
                             "::llvm::cast<::moejit::ptx::RegsType>($_self).getElementType()">]> {
  let summary = "Read one register of an array";
  let description = [{
    An index is an integer, or an i32 value made of constants and induction variables of
    `ptx.unroll`.

    ```mlir
    %v = ptx.regs_get %acc[0, %j] : !ptx.regs<2x64xf32>
    ```
  }];
  let arguments = (ins Ptx_RegsRead:$regs, Variadic<I32>:$indices,
      DenseI64ArrayAttr:$static_indices);
  let results = (outs AnyTypeOf<[F32, I32]>:$value);
  let assemblyFormat =
      "$regs `` custom<Indices>($indices, $static_indices) attr-dict `:` qualified(type($regs))";
  let builders = [OpBuilder<(ins "::mlir::Value":$regs,
      "::llvm::ArrayRef<::mlir::OpFoldResult>":$indices)>];
  let hasVerifier = 1;
}

def Ptx_RegsSetOp
    : Ptx_Op<"regs_set", [TypesMatchWith<
                             "value has the element type of the array", "regs", "value",
                             "::llvm::cast<::moejit::ptx::RegsType>($_self).getElementType()">]> {
  let summary = "Write one register of an array";
  let description = [{
    ```mlir
    ptx.regs_set %v, %acc[0, %j] : !ptx.regs<2x64xf32>
    ```
  }];
  let arguments = (ins AnyTypeOf<[F32, I32]>:$value, Ptx_RegsWrite:$regs, Variadic<I32>:$indices,
      DenseI64ArrayAttr:$static_indices);
  let assemblyFormat = [{
    $value `,` $regs `` custom<Indices>($indices, $static_indices)
    attr-dict `:` qualified(type($regs))
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$value, "::mlir::Value":$regs,
      "::llvm::ArrayRef<::mlir::OpFoldResult>":$indices)>];
  let hasVerifier = 1;
}

def Ptx_UnrollOp
    : Ptx_Op<
          "unroll", [NoTerminator, SingleBlock, RecursiveMemoryEffects,
                     DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "Repeat a body for a constant number of times, unrolled";
  let description = [{
    The induction variable is i32 and may index register arrays. Printed as a `for` under `#pragma
    unroll`.

    ```mlir
    ptx.unroll %i = 0 to 64 step 4 { … }
    ```
  }];
  let arguments = (ins I32Attr:$lower, I32Attr:$upper, I32Attr:$step);
  let regions = (region SizedRegion<1>:$body);
  let skipDefaultBuilders = 1;
  // Makes the body's block, empty.
  let builders = [OpBuilder<(ins "int32_t":$lower, "int32_t":$upper, CArg<"int32_t", "1">:$step)>];
  let extraClassDeclaration = [{
    ::mlir::Value getInductionVar() { return getBody().front().getArgument(0); }
    ::mlir::Block *getBlock() { return &getBody().front(); }
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def Ptx_ConstantF32Op : Ptx_Op<"constant_f32", [Pure, ConstantLike]> {
  let summary = "Make a float constant";
  let description = [{
    ```mlir
    %zero = ptx.constant_f32 0.0
    ```
  }];
  let arguments = (ins F32Attr:$value);
  let results = (outs F32:$result);
  let assemblyFormat = "$value attr-dict";
  let builders = [OpBuilder<(ins "float":$value)>];
  let hasFolder = 1;
}

#endif // MOEJIT_PTX_STRUCTURE_TD
