// Passes over the `moe` dialect.
#ifndef MOEJIT_MOE_PASSES
#define MOEJIT_MOE_PASSES

include "mlir/Pass/PassBase.td"

def MoeCheck : Pass<"moe-check", "::mlir::ModuleOp"> {
  let summary = "Refuse every GEMM that breaks a rule of the table";
  let description = [{
    Applies `checkSpec` (runtime/Rules.h) to each `moe.gemm`, and compares scale tensors joined by `moe.scaled` with
    the number of experts, which only the GEMM knows. Changes nothing.

    ```
    error: 'moe.gemm' op batched takes dynamic activation scales, got static [MJ001]
    note: x is declared here
    note: 'eager' consumes static scales, one expert at a time
    ```
  }];
  let dependentDialects = ["::moejit::moe::MoeDialect"];
  let options = [
    Option<"arch", "arch", "std::string", "\"sm_90a\"", "Architecture the rules are asked for">,
  ];
}

def MoeExpandScales : Pass<"moe-expand-scales", "::moejit::moe::KernelOp"> {
  let summary = "Turn each scaled argument of a kernel into data and scale tensors";
  let description = [{
    A launch is given data and scales apart. The scale argument follows its data; its shape is the stored one, in the
    order of the layout, and `?` where it depends on a row count. A kernel that returns scaled tensors is refused.

    ```mlir
    moe.kernel @k(%x: tensor<?x7168xf8E4M3FN, #x>, …)
    ```
    becomes
    ```mlir
    moe.kernel @k(%x: tensor<?x7168xf8E4M3FN>, %xScales: tensor<56x?xf32>, …) {
      %0 = moe.scaled(%x, %xScales) : tensor<?x7168xf8E4M3FN>, tensor<56x?xf32> -> tensor<?x7168xf8E4M3FN, #x>
    ```
  }];
  let dependentDialects = ["::moejit::moe::MoeDialect"];
}

#endif
