// The steps around a GEMM: quantization, bias, activation, routing weights, combination.
#ifndef MOEJIT_MOE_STEPS
#define MOEJIT_MOE_STEPS

include "compiler/dialect/moe/MoeDialect.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Moe_StepOp<string mnemonic> : Op<Moe_Dialect, mnemonic, [Pure]> {
  let hasVerifier = 1;
}

def Moe_QuantizeOp : Moe_StepOp<"quantize"> {
  let summary = "Turn values into fp8 data with scales";
  let description = [{
    Dynamic: scale = max(amax over the granule, 1e-12) / largest value of the type. Static: the scales are given. Both:
    IEEE division by the scale, saturating round to nearest even; NaN stays NaN and does not count in amax.

    ```mlir
    %q = moe.quantize(%x) : tensor<?x7168xbf16> -> tensor<?x7168xf8E4M3FN, #dynamic>
    %q = moe.quantize(%x, %scales) : tensor<?x4096xbf16>, tensor<1x1xf32> -> tensor<?x4096xf8E4M3FN, #static>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input, Optional<AnyRankedTensor>:$scales);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    `(` $input (`,` $scales^)? `)` attr-dict `:` type($input) (`,` type($scales)^)? `->` type($result)
  }];
}

def Moe_BiasOp : Moe_StepOp<"bias"> {
  let summary = "Add to each row the bias of its expert";
  let description = [{
    Operands are those of a `moe.gemm` of the same form, with the bias [E, N] (eager: [N]) in place of w.

    ```mlir
    %z = moe.bias grouped(%y, %offsets, %bias) : tensor<?x4096xbf16>, tensor<33xi32>, tensor<32x4096xbf16>
       -> tensor<?x4096xbf16>
    ```
  }];
  let arguments = (ins Moe_DispatchAttr:$dispatch, Variadic<AnyRankedTensor>:$inputs);
  let results = (outs AnyRankedTensor:$result);
  let hasCustomAssemblyFormat = 1;
}

def Moe_SiluMulOp : Moe_StepOp<"silu_mul"> {
  let summary = "Multiply SiLU of the gate half of each row with its up half";
  let description = [{
    `h[s, i] = silu(gate) · up`, in fp32: gate = y[s, i] and up = y[s, I + i]; `interleaved`: y[s, 2i] and y[s, 2i + 1].

    ```mlir
    %h = moe.silu_mul(%y) : tensor<?x4096xbf16> -> tensor<?x2048xbf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input, UnitAttr:$interleaved);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "`(` $input `)` (`interleaved` $interleaved^)? attr-dict `:` type($input) `->` type($result)";
}

def Moe_RouteScaleOp : Moe_StepOp<"route_scale"> {
  let summary = "Multiply each row with its routing weight";
  let description = [{ `%z = moe.route_scale(%y, %weights) : tensor<?x7168xbf16>, tensor<?xf32> -> tensor<?x7168xbf16>` }];
  let arguments = (ins AnyRankedTensor:$input, AnyRankedTensor:$weights);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "`(` $input `,` $weights `)` attr-dict `:` type($input) `,` type($weights) `->` type($result)";
}

def Moe_CombineOp : Moe_StepOp<"combine"> {
  let summary = "Sum the rows that belong to one token";
  let description = [{
    `z[t] = sum over j of y[rows[t, j]]`, in the order of j, in fp32. A row below 0 is none.

    ```mlir
    %z = moe.combine(%y, %rows) : tensor<?x7168xbf16>, tensor<?x8xi32> -> tensor<?x7168xbf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input, AnyRankedTensor:$rows);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "`(` $input `,` $rows `)` attr-dict `:` type($input) `,` type($rows) `->` type($result)";
}

#endif
