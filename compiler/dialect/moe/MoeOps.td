// Ops of the `moe` dialect. Verifiers check structure (ranks, equal extents); what is legal is runtime/Rules.h.
#ifndef MOEJIT_MOE_OPS
#define MOEJIT_MOE_OPS

include "compiler/dialect/moe/MoeDialect.td"
include "compiler/dialect/moe/MoeSteps.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Moe_Op<string mnemonic, list<Trait> traits = []> : Op<Moe_Dialect, mnemonic, traits>;

def Moe_KernelOp : Moe_Op<"kernel", [
    IsolatedFromAbove, OpAsmOpInterface, FunctionOpInterface]> {
  let summary = "What one launch does";
  let description = [{
    Arguments are the tensors a launch is given, results those it writes.

    ```mlir
    moe.kernel @gate_up(%x: tensor<?x7168xf8E4M3FN, #x>, %offsets: tensor<33xi32>,
                        %w: tensor<32x4096x7168xf8E4M3FN, #w>) -> tensor<?x4096xbf16> {
      %y = moe.gemm grouped(%x, %offsets, %w) : … -> tensor<?x4096xbf16>
      moe.return %y : tensor<?x4096xbf16>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<StrAttr>:$sym_visibility, OptionalAttr<DictArrayAttr>:$arg_attrs,
                       OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region SizedRegion<1>:$body);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::FunctionType":$type)>];
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    bool isDeclaration() { return false; }

    /// Names arguments by the operand of a GEMM they are: x, xScales, offsets, w, wScales.
    void getAsmBlockArgumentNames(::mlir::Region &region, ::mlir::OpAsmSetValueNameFn setName);
    /// Prints `moe.` before the ops of the body, as everywhere else.
    static ::llvm::StringRef getDefaultDialect() { return ""; }
  }];
}

def Moe_ReturnOp : Moe_Op<"return", [Pure, HasParent<"KernelOp">, Terminator]> {
  let summary = "Name the tensors a kernel writes";
  let description = [{ `moe.return %y : tensor<?x4096xbf16>` }];
  let arguments = (ins Variadic<AnyRankedTensor>:$operands);
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
  let hasVerifier = 1;
}

def Moe_ScaledOp : Moe_Op<"scaled", [Pure]> {
  let summary = "Join data with its scales";
  let description = [{
    The scale tensor has the shape that the layout asks for (`scaleShape` in runtime/Spec.h).

    ```mlir
    %x = moe.scaled(%data, %scales) : tensor<?x7168xf8E4M3FN>, tensor<56x?xf32> -> tensor<?x7168xf8E4M3FN, #x>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$data, AnyRankedTensor:$scales);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    `(` $data `,` $scales `)` attr-dict `:` type($data) `,` type($scales) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Moe_GemmOp : Moe_Op<"gemm", [
    Pure, AttrSizedOperandSegments, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "Multiply each row with the weights of its expert";
  let description = [{
    `y[s, n] = sum over k of x[s, k] · w[expert of s, n, k]`, both sides scaled.

    | form | x | routing | w | y |
    |---|---|---|---|---|
    | `eager(%x, %w)` | [m, K] | | [N, K] | [m, N] |
    | `batched(%x, %ids, %w)`, `batched(%x, %ids, %w, %map)` | [S, K] | expert of a row, i32 [S] | [E, N, K] | [S, N] |
    | `grouped(%x, %offsets, %w)` | [S, K] | boundaries, i32 [E+1] | [E, N, K] | [S, N] |
    | `masked(%x, %counts, %w)` | [E, Mmax, K] | rows in use, i32 [E] | [E, N, K] | [E, Mmax, N] |

    `accumulate = exact` (default) promotes sums to fp32 at least every 128 of K; `fast` leaves them in the tensor
    core's accumulator. `skipped = zeroed` (default) writes zeros to rows that no expert owns; `untouched` leaves them.

    ```mlir
    %y = moe.gemm grouped(%x, %offsets, %w) {accumulate = fast, skipped = untouched}
       : tensor<?x7168xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x4096x7168xf8E4M3FN, #w> -> tensor<?x4096xbf16>
    ```
  }];
  let arguments = (ins Moe_DispatchAttr:$dispatch, Moe_AccumulateAttr:$accumulate, Moe_SkippedAttr:$skipped,
                       AnyRankedTensor:$x, Optional<AnyRankedTensor>:$routing, AnyRankedTensor:$w,
                       Optional<AnyRankedTensor>:$expert_map);
  let results = (outs AnyRankedTensor:$y);
  let builders = [OpBuilder<(ins "::mlir::Type":$resultType, "::moejit::Dispatch":$dispatch,
                                 "::moejit::Accumulate":$accumulate, "::moejit::Skipped":$skipped,
                                 "::mlir::Value":$x, "::mlir::Value":$routing, "::mlir::Value":$w,
                                 "::mlir::Value":$expertMap)>];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// E: the first extent of w, or 1 for eager.
    int64_t getNumExperts();
    /// "offsets", "ids", "counts", or nothing for eager.
    ::llvm::StringRef getRoutingName();
  }];
}

#endif
