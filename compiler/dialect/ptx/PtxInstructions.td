// Owns the operations that are PTX instructions, but for those on memory, and the text of each.
// Sections refer to the PTX ISA, version 9.0.
#ifndef MOEJIT_PTX_INSTRUCTIONS_TD
#define MOEJIT_PTX_INSTRUCTIONS_TD

include "compiler/dialect/ptx/Ptx.td"

//===- Special registers (PTX ISA, Special Registers) -----------------------------------------===//

class Ptx_SpecialRegister<string opMnemonic, string register> : Ptx_PureInstr<opMnemonic> {
  let results = (outs I32:$value);
  let assemblyFormat = "attr-dict";
  let result = "int";
  let assembly = "mov.u32 %0, %%"#register#";";
  let constraints = [{: "=r"(result)}];
}

def Ptx_ThreadIndexOp : Ptx_SpecialRegister<"thread_index", "tid.x"> {
  let summary = "Read the index of the thread in its block";
  let description = [{ PTX `%tid.x`. }];
}
def Ptx_BlockIndexOp : Ptx_SpecialRegister<"block_index", "ctaid.x"> {
  let summary = "Read the index of the block in the grid";
  let description = [{ PTX `%ctaid.x`. }];
}
def Ptx_GridSizeOp : Ptx_SpecialRegister<"grid_size", "nctaid.x"> {
  let summary = "Read the number of blocks of the grid";
  let description = [{ PTX `%nctaid.x`. }];
}
def Ptx_ClusterRankOp : Ptx_SpecialRegister<"cluster_rank", "cluster_ctarank"> {
  let summary = "Read the rank of the block in its cluster";
  let description = [{ PTX `%cluster_ctarank`. }];
}

def Ptx_SharedBaseOp : Ptx_PureInstr<"shared_base"> {
  let summary = "Take the shared address of the block's dynamic shared memory";
  let description = [{
    `cvta.to.shared` of the first byte. It is 1024-aligned, as swizzled tiles need, because the
    launch asks for no static shared memory.
  }];
  let results = (outs I32:$address);
  let assemblyFormat = "attr-dict";
  let result = "int";
  let body = [{extern __shared__ __align__(1024) unsigned char dynamicShared[];
return (int)__cvta_generic_to_shared(dynamicShared);}];
}

//===- Warp (PTX ISA, Data Movement: shfl; Parallel Synchronization: elect, bar.warp) ---------===//

def Ptx_ShflIdxOp : Ptx_Instr<"shfl_idx", [Ptx_Convergent]> {
  let summary = "Read `value` of lane `lane`";
  let description =
      [{ PTX `shfl.sync.idx.b32` with the full mask. Every lane of the warp takes part. }];
  let arguments = (ins I32:$value, I32:$lane);
  let results = (outs I32:$shuffled);
  let assemblyFormat = "$value `,` $lane attr-dict";
  let result = "int";
  let parameters = "int value, int lane";
  let assembly = "shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xffffffff;";
  let constraints = [{: "=r"(result) : "r"(value), "r"(lane)}];
}

def Ptx_ShflBflyOp : Ptx_Instr<"shfl_bfly", [Ptx_Convergent]> {
  let summary = "Read `value` of the lane whose number differs in the bits of `mask`";
  let description = [{
    PTX `shfl.sync.bfly.b32` with the full mask: lane l reads lane l ^ mask. Every lane of the warp
    takes part.
  }];
  let arguments = (ins I32:$value, I32:$mask);
  let results = (outs I32:$shuffled);
  let assemblyFormat = "$value `,` $mask attr-dict";
  let result = "int";
  let parameters = "int value, int mask";
  let assembly = "shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;";
  let constraints = [{: "=r"(result) : "r"(value), "r"(mask)}];
}

def Ptx_ElectOneOp : Ptx_Instr<"elect_one", [Ptx_Convergent]> {
  let summary = "Choose one lane of the warp";
  let description =
      [{ PTX `elect.sync` with the full mask: true in one lane, the same at every call. }];
  let results = (outs I1:$elected);
  let assemblyFormat = "attr-dict";
  let result = "bool";
  let body = [{int elected;
asm volatile("{\n"
             ".reg .pred p;\n"
             "elect.sync _|p, 0xffffffff;\n"
             "selp.b32 %0, 1, 0, p;\n"
             "}" : "=r"(elected));
return elected != 0;}];
}

def Ptx_SyncwarpOp : Ptx_Instr<"syncwarp", [Ptx_Synchronizes]> {
  let summary = "Wait for all lanes of the warp";
  let description = [{ PTX `bar.warp.sync` with the full mask. }];
  let assemblyFormat = "attr-dict";
  let assembly = "bar.warp.sync 0xffffffff;";
  let constraints = [{::: "memory"}];
}

//===- Barriers (PTX ISA, Parallel Synchronization: bar, barrier.cluster) ---------------------===//

class Ptx_NamedBarrier<string opMnemonic> : Ptx_Instr<opMnemonic, [Ptx_Synchronizes]> {
  let arguments = (ins I32Attr:$id, I32Attr:$threads);
  let assemblyFormat = "$id `,` $threads attr-dict";
  let hasVerifier = 1;
  let parameters = "int id, int threads";
  let constraints = [{:: "r"(id), "r"(threads) : "memory"}];
  let extraDefinition = [{
    ::llvm::SmallVector<::moejit::ptx::CallArgument> $cppClass::callArguments() {
      return {::moejit::ptx::CallArgument::ofInteger(getId()),
              ::moejit::ptx::CallArgument::ofInteger(getThreads())};
    }
    ::llvm::LogicalResult $cppClass::verify() {
      return verifyNamedBarrier(*this, getId(), getThreads());
    }
  }];
  let extraClassDeclaration = "::llvm::SmallVector<::moejit::ptx::CallArgument> callArguments();";
}

def Ptx_BarSyncOp : Ptx_NamedBarrier<"bar_sync"> {
  let summary = "Wait at named barrier `id` for `threads` threads";
  let description = [{ PTX `bar.sync`. Barrier 0 to 15; `threads` is a multiple of 32. }];
  let assembly = "bar.sync %0, %1;";
}
def Ptx_BarArriveOp : Ptx_NamedBarrier<"bar_arrive"> {
  let summary = "Arrive at named barrier `id` of `threads` threads and go on";
  let description = [{ PTX `bar.arrive`. Barrier 0 to 15; `threads` is a multiple of 32. }];
  let assembly = "bar.arrive %0, %1;";
}

def Ptx_ClusterArriveOp : Ptx_Instr<"cluster_arrive", [Ptx_Synchronizes]> {
  let summary = "Arrive at the cluster's barrier";
  let description = [{ PTX `barrier.cluster.arrive.release.aligned`. }];
  let assemblyFormat = "attr-dict";
  let assembly = "barrier.cluster.arrive.release.aligned;";
  let constraints = [{::: "memory"}];
}
def Ptx_ClusterWaitOp : Ptx_Instr<"cluster_wait", [Ptx_Synchronizes]> {
  let summary = "Wait until every thread of the cluster has arrived";
  let description = [{ PTX `barrier.cluster.wait.acquire.aligned`. }];
  let assemblyFormat = "attr-dict";
  let assembly = "barrier.cluster.wait.acquire.aligned;";
  let constraints = [{::: "memory"}];
}

//===- Registers (PTX ISA, Miscellaneous: setmaxnreg) -----------------------------------------===//

class Ptx_SetMaxNReg<string opMnemonic, string direction>
    : Ptx_Instr<opMnemonic, [Ptx_Convergent]> {
  let arguments = (ins I32Attr:$registers);
  let assemblyFormat = "$registers attr-dict";
  let hasVerifier = 1;
  let description = "PTX `setmaxnreg."#direction#".sync.aligned.u32`: 24 to 256, a multiple of 8. "
                    "Every warp of the warpgroup executes it.";
  let assembly = "setmaxnreg."#direction#".sync.aligned.u32 %0;";
  let constraints = [{:: "n"(Registers)}];
  let extraDefinition = [{
    ::std::string $cppClass::calleeName() {
      return wrapperName() + "<" + ::std::to_string(getRegisters()) + ">";
    }
    ::llvm::LogicalResult $cppClass::verify() { return verifyRegisterCount(*this, getRegisters()); }
  }];
  let extraClassDeclaration = "::std::string calleeName();";
}

def Ptx_SetmaxnregIncOp : Ptx_SetMaxNReg<"setmaxnreg_inc", "inc"> {
  let summary = "Take registers until the thread has `registers`";
  let head = "template <int Registers>";
}
def Ptx_SetmaxnregDecOp : Ptx_SetMaxNReg<"setmaxnreg_dec", "dec"> {
  let summary = "Give registers back until the thread has `registers`";
  let head = "template <int Registers>";
}

def Ptx_RegsPinOp : Ptx_ParametricInstr<"regs_pin"> {
  let summary = "Fix every register of a fragment at this point of the program";
  let description = [{
    An empty `asm volatile` with each register as "+f" or "+r": no instruction, but the C++
    optimiser cannot move accesses of an accumulator over a `wgmma_fence` or `wgmma_wait`, which it
    does not know to touch them.
  }];
  let arguments = (ins Ptx_RegsReadWrite:$regs, Variadic<I32>:$indices,
      DenseI64ArrayAttr:$static_indices);
  let assemblyFormat =
      "$regs `` custom<Indices>($indices, $static_indices) attr-dict `:` qualified(type($regs))";
  let builders = [OpBuilder<(ins "::mlir::Value":$regs,
      CArg<"::llvm::ArrayRef<::mlir::OpFoldResult>", "{}">:$fragment)>];
  let hasVerifier = 1;
}

//===- mbarrier (PTX ISA, Parallel Synchronization: mbarrier) ---------------------------------===//

def Ptx_MbarrierInitOp : Ptx_Instr<"mbarrier_init"> {
  let summary = "Set up a barrier whose phase completes after `count` arrivals";
  let description = [{ PTX `mbarrier.init.shared::cta.b64`. }];
  let arguments = (ins Ptx_Barrier:$barrier, I32:$count);
  let assemblyFormat = "$barrier `,` $count attr-dict";
  let parameters = "int barrier, int count";
  let assembly = "mbarrier.init.shared::cta.b64 [%0], %1;";
  let constraints = [{:: "r"(barrier), "r"(count) : "memory"}];
}

def Ptx_MbarrierExpectTxOp : Ptx_Instr<"mbarrier_expect_tx"> {
  let summary = "Arrive at a barrier and have its phase wait for `bytes` bytes of copies";
  let description = [{ PTX `mbarrier.arrive.expect_tx.shared::cta.b64`. }];
  let arguments = (ins Ptx_Barrier:$barrier, I32:$bytes);
  let assemblyFormat = "$barrier `,` $bytes attr-dict";
  let parameters = "int barrier, int bytes";
  let assembly = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;";
  let constraints = [{:: "r"(barrier), "r"(bytes) : "memory"}];
}

def Ptx_MbarrierArriveOp : Ptx_Instr<"mbarrier_arrive", [Ptx_Synchronizes]> {
  let summary = "Arrive at a barrier of this block";
  let description = [{ PTX `mbarrier.arrive.shared::cta.b64` (release, cta scope). }];
  let arguments = (ins I32:$barrier);
  let assemblyFormat = "$barrier attr-dict";
  let parameters = "int barrier";
  let assembly = "mbarrier.arrive.shared::cta.b64 _, [%0];";
  let constraints = [{:: "r"(barrier) : "memory"}];
}

def Ptx_MbarrierArriveClusterOp : Ptx_Instr<"mbarrier_arrive_cluster", [Ptx_Synchronizes]> {
  let summary = "Arrive at the barrier at the same address in block `rank` of the cluster";
  let description = [{
    PTX `mapa.shared::cluster.u32`, then `mbarrier.arrive.shared::cluster.b64`. Without
    `.release.cluster`: what the consumers read came through the asynchronous proxy, and the fence
    that form implies costs time.
  }];
  let arguments = (ins I32:$barrier, I32:$rank);
  let assemblyFormat = "$barrier `,` $rank attr-dict";
  let parameters = "int barrier, int rank";
  let assembly = [{{
.reg .b32 remote;
mapa.shared::cluster.u32 remote, %0, %1;
mbarrier.arrive.shared::cluster.b64 _, [remote];
}
  }];
  let constraints = [{:: "r"(barrier), "r"(rank) : "memory"}];
}

def Ptx_MbarrierWaitOp : Ptx_Instr<"mbarrier_wait", [Ptx_Synchronizes]> {
  let summary = "Wait until a barrier completes the phase of parity `parity`";
  let description = [{
    PTX `mbarrier.try_wait.parity.shared::cta.b64` in a loop. A fresh barrier has completed the
    phase of parity 1.

    ```mlir
    ptx.mbarrier_wait %full, %phase
    ```
  }];
  let arguments = (ins I32:$barrier, I32:$parity);
  let assemblyFormat = "$barrier `,` $parity attr-dict";
  let parameters = "int barrier, int parity";
  let body = [{int done;
do {
  asm volatile("{\n"
               ".reg .pred p;\n"
               "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
               "selp.b32 %0, 1, 0, p;\n"
               "}" : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
} while (!done);}];
}

def Ptx_MbarrierWaitClusterOp : Ptx_Instr<"mbarrier_wait_cluster", [Ptx_Synchronizes]> {
  let summary = "Wait like `ptx.mbarrier_wait`, for what another block of the cluster has stored";
  let description = [{
    PTX `mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64` in a loop.

    ```mlir
    ptx.mbarrier_wait_cluster %full, %phase
    ```
  }];
  let arguments = (ins I32:$barrier, I32:$parity);
  let assemblyFormat = "$barrier `,` $parity attr-dict";
  let parameters = "int barrier, int parity";
  let body = [{int done;
do {
  asm volatile("{\n"
               ".reg .pred p;\n"
               "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
               "selp.b32 %0, 1, 0, p;\n"
               "}" : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
} while (!done);}];
}

def Ptx_FenceMbarrierInitOp : Ptx_Instr<"fence_mbarrier_init", [Ptx_Synchronizes]> {
  let summary = "Make initialised barriers visible to the cluster and to copies";
  let description = [{ PTX `fence.mbarrier_init.release.cluster`. }];
  let assemblyFormat = "attr-dict";
  let assembly = "fence.mbarrier_init.release.cluster;";
  let constraints = [{::: "memory"}];
}

def Ptx_FenceProxyAsyncOp : Ptx_Instr<"fence_proxy_async", [Ptx_Synchronizes]> {
  let summary = "Order this thread's accesses of shared memory with those of wgmma and TMA";
  let description = [{ PTX `fence.proxy.async.shared::cta`. }];
  let assemblyFormat = "attr-dict";
  let assembly = "fence.proxy.async.shared::cta;";
  let constraints = [{::: "memory"}];
}

def Ptx_FenceProxyAsyncGlobalOp : Ptx_Instr<"fence_proxy_async_global", [Ptx_Synchronizes]> {
  let summary = "Order this thread's accesses of global memory with those of TMA";
  let description = [{ PTX `fence.proxy.async.global`. }];
  let assemblyFormat = "attr-dict";
  let assembly = "fence.proxy.async.global;";
  let constraints = [{::: "memory"}];
}

def Ptx_FenceAcqRelGpuOp : Ptx_Instr<"fence_acq_rel_gpu", [Ptx_Synchronizes]> {
  let summary = "Order this thread's accesses, and those it has seen, for all blocks of the device";
  let description = [{ PTX `fence.acq_rel.gpu`. }];
  let assemblyFormat = "attr-dict";
  let assembly = "fence.acq_rel.gpu;";
  let constraints = [{::: "memory"}];
}

//===- Dependent launches (PTX ISA, Parallel Synchronization: griddepcontrol) -----------------===//

def Ptx_GriddepcontrolLaunchDependentsOp
    : Ptx_Instr<"griddepcontrol_launch_dependents", [Ptx_Synchronizes]> {
  let summary = "Let the next grid of the stream start once every block has come here or ended";
  let description = [{
    PTX `griddepcontrol.launch_dependents`. Makes nothing visible: see `ptx.griddepcontrol_wait`.
  }];
  let assemblyFormat = "attr-dict";
  let assembly = "griddepcontrol.launch_dependents;";
  let constraints = [{::: "memory"}];
}
def Ptx_GriddepcontrolWaitOp : Ptx_Instr<"griddepcontrol_wait", [Ptx_Synchronizes]> {
  let summary = "Wait until the grids before have ended and what they wrote is visible";
  let description = [{
    PTX `griddepcontrol.wait`. Does nothing in a grid that was launched without programmatic stream
    serialization.
  }];
  let assemblyFormat = "attr-dict";
  let assembly = "griddepcontrol.wait;";
  let constraints = [{::: "memory"}];
}

//===- wgmma (PTX ISA, Asynchronous Warpgroup Level Matrix Instructions) ----------------------===//

def Ptx_WgmmaFenceOp : Ptx_Instr<"wgmma_fence", [Ptx_OrdersWgmma]> {
  let summary = "Order accesses of registers before the wgmmas that follow";
  let description = [{ PTX `wgmma.fence.sync.aligned`. }];
  let assemblyFormat = "attr-dict";
  let assembly = "wgmma.fence.sync.aligned;";
  let constraints = [{::: "memory"}];
}
def Ptx_WgmmaCommitOp : Ptx_Instr<"wgmma_commit", [Ptx_OrdersWgmma]> {
  let summary = "Close the group of wgmmas issued so far";
  let description = [{ PTX `wgmma.commit_group.sync.aligned`. }];
  let assemblyFormat = "attr-dict";
  let assembly = "wgmma.commit_group.sync.aligned;";
  let constraints = [{::: "memory"}];
}
def Ptx_WgmmaWaitOp : Ptx_Instr<"wgmma_wait", [Ptx_OrdersWgmma]> {
  let summary = "Wait until at most `pending` groups of wgmmas are unfinished";
  let description = [{ PTX `wgmma.wait_group.sync.aligned`. }];
  let arguments = (ins I32Attr:$pending);
  let assemblyFormat = "$pending attr-dict";
  let hasVerifier = 1;
  let head = "template <int Pending>";
  let assembly = "wgmma.wait_group.sync.aligned %0;";
  let constraints = [{:: "n"(Pending) : "memory"}];
  let extraDefinition = [{
    ::std::string $cppClass::calleeName() {
      return wrapperName() + "<" + ::std::to_string(getPending()) + ">";
    }
  }];
  let extraClassDeclaration = "::std::string calleeName();";
}

def Ptx_WgmmaOp : Ptx_ParametricInstr<"wgmma"> {
  let summary =
      "Start regs = A · B (+ regs) on tiles of 64×32 and n×32 fp8 elements in shared memory";
  let description = [{
    PTX `wgmma.mma_async.sync.aligned.m64nNk32.f32.<a>.<b>`. A descriptor's low word is `(address >>
    4) | 0x10000`; its high word is the constant 0x40000040 (K-major, SWIZZLE_128B, 1024 bytes from
    one group of 8 rows to the next). `accumulate` 0 ignores what the registers held. The fragment
    of a thread: row 16·warp + lane/4 (+8), column 8j + 2·(lane%4); registers 4j, 4j+1 are the row,
    4j+2, 4j+3 the row 8 below.

    ```mlir
    ptx.wgmma %acc[0], %descA, %descB, %one
        {n = 128 : i32, a = "e4m3", b = "e4m3"} : !ptx.regs<2x64xf32>
    ```
  }];
  let arguments = (ins Ptx_RegsReadWrite:$regs, Variadic<I32>:$indices, Ptx_SharedRead:$descA,
      Ptx_SharedRead:$descB, I32:$accumulate, I32Attr:$n, StrAttr:$a, StrAttr:$b,
      DenseI64ArrayAttr:$static_indices);
  let assemblyFormat = [{
    $regs `` custom<Indices>($indices, $static_indices) `,` $descA `,` $descB `,` $accumulate
    attr-dict `:` qualified(type($regs))
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$regs, "::mlir::Value":$descA,
      "::mlir::Value":$descB, "::mlir::Value":$accumulate, "int64_t":$n, "::llvm::StringRef":$a,
      "::llvm::StringRef":$b, CArg<"::llvm::ArrayRef<::mlir::OpFoldResult>", "{}">:$fragment)>];
  let hasVerifier = 1;
}

//===- mma (PTX ISA, Warp Level Matrix Instructions: mma) -------------------------------------===//

def Ptx_MmaOp : Ptx_ParametricInstr<"mma", [AttrSizedOperandSegments, Ptx_Convergent]> {
  let summary = "Compute acc += A · B on fragments of 16×k and k×8 elements of one warp";
  let description = [{
    PTX `mma.sync.aligned.m16n8k<K>.row.col.f32.<a>.<b>.f32`: K is 32 for e4m3 and e5m2, in any mix,
    and 16 for bf16 with bf16 and f16 with f16. With g = lane/4 and t = lane%4: registers 0 to 3 of
    `a` hold elements of k from 4t on (2t for 16-bit types) of row g, of row g + 8, and the same
    half of k further on; registers 0 and 1 of `b` column g, from the same k on; registers 0 and 1 of
    `acc` row g, columns 2t and 2t + 1, registers 2 and 3 row g + 8. Every lane of the warp takes
    part.

    ```mlir
    ptx.mma %acc[0], %a, %b[1] {a_type = "e4m3", b_type = "e5m2"}
        : !ptx.regs<2x4xf32>, !ptx.regs<4xi32>, !ptx.regs<2x2xi32>
    ```
  }];
  let arguments = (ins Ptx_RegsReadWrite:$acc, Variadic<I32>:$acc_indices, Ptx_RegsRead:$a,
      Variadic<I32>:$a_indices, Ptx_RegsRead:$b, Variadic<I32>:$b_indices, StrAttr:$a_type,
      StrAttr:$b_type, DenseI64ArrayAttr:$static_acc_indices,
      DenseI64ArrayAttr:$static_a_indices, DenseI64ArrayAttr:$static_b_indices);
  let assemblyFormat = [{
    $acc `` custom<Indices>($acc_indices, $static_acc_indices) `,`
    $a `` custom<Indices>($a_indices, $static_a_indices) `,`
    $b `` custom<Indices>($b_indices, $static_b_indices)
    attr-dict `:` qualified(type($acc)) `,` qualified(type($a)) `,` qualified(type($b))
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$acc, "::mlir::Value":$a, "::mlir::Value":$b,
      "::llvm::StringRef":$aType, "::llvm::StringRef":$bType,
      CArg<"::llvm::ArrayRef<::mlir::OpFoldResult>", "{}">:$accFragment,
      CArg<"::llvm::ArrayRef<::mlir::OpFoldResult>", "{}">:$aFragment,
      CArg<"::llvm::ArrayRef<::mlir::OpFoldResult>", "{}">:$bFragment)>];
  let hasVerifier = 1;
}

//===- f32 and conversions (PTX ISA, Floating Point Instructions; Data Movement: cvt, mov) ----===//

def Ptx_FmaF32Op : Ptx_PureInstr<"fma_f32"> {
  let summary = "Compute a · b + c with one rounding";
  let description = [{ PTX `fma.rn.f32`. }];
  let arguments = (ins F32:$a, F32:$b, F32:$c);
  let results = (outs F32:$value);
  let assemblyFormat = "$a `,` $b `,` $c attr-dict";
  let result = "float";
  let parameters = "float a, float b, float c";
  let assembly = "fma.rn.f32 %0, %1, %2, %3;";
  let constraints = [{: "=f"(result) : "f"(a), "f"(b), "f"(c)}];
}

class Ptx_BinaryF32<string opMnemonic, string instruction> : Ptx_PureInstr<opMnemonic> {
  let description = "PTX `"#instruction#"`.";
  let arguments = (ins F32:$a, F32:$b);
  let results = (outs F32:$value);
  let assemblyFormat = "$a `,` $b attr-dict";
  let result = "float";
  let parameters = "float a, float b";
  let assembly = instruction#" %0, %1, %2;";
  let constraints = [{: "=f"(result) : "f"(a), "f"(b)}];
}
def Ptx_MulF32Op : Ptx_BinaryF32<"mul_f32", "mul.rn.f32"> { let summary = "Multiply"; }
def Ptx_DivF32Op : Ptx_BinaryF32<"div_f32", "div.rn.f32"> {
  let summary = "Divide, with IEEE rounding and subnormals";
}
def Ptx_AddF32Op : Ptx_BinaryF32<"add_f32", "add.rn.f32"> { let summary = "Add"; }

class Ptx_PackF32<string opMnemonic, string instruction> : Ptx_PureInstr<opMnemonic> {
  let description = "PTX `"#instruction#"`, which takes the upper half first.";
  let arguments = (ins F32:$low, F32:$high);
  let results = (outs I32:$packed);
  let assemblyFormat = "$low `,` $high attr-dict";
  let result = "int";
  let parameters = "float low, float high";
  let assembly = instruction#" %0, %1, %2;";
  let constraints = [{: "=r"(result) : "f"(high), "f"(low)}];
}
def Ptx_CvtBf16x2F32Op : Ptx_PackF32<"cvt_bf16x2_f32", "cvt.rn.bf16x2.f32"> {
  let summary = "Round two floats to bf16 and pack them";
}
def Ptx_CvtF16x2F32Op : Ptx_PackF32<"cvt_f16x2_f32", "cvt.rn.f16x2.f32"> {
  let summary = "Round two floats to f16 and pack them; overflow gives infinity";
}

class Ptx_PackFp8<string opMnemonic, string type> : Ptx_PureInstr<opMnemonic> {
  let description = "PTX `cvt.rn.satfinite."#type#".f32`, which takes the upper byte first. Overflow "
                    "and infinities give the largest finite value, NaN gives NaN.";
  let arguments = (ins F32:$low, F32:$high);
  let results = (outs I32:$packed);
  let assemblyFormat = "$low `,` $high attr-dict";
  let result = "int";
  let parameters = "float low, float high";
  let assembly = [{{
.reg .b16 packed;
cvt.rn.satfinite.}]#type#[{.f32 packed, %1, %2;
cvt.u32.u16 %0, packed;
}
  }];
  let constraints = [{: "=r"(result) : "f"(high), "f"(low)}];
}
def Ptx_CvtE4m3x2F32Op : Ptx_PackFp8<"cvt_e4m3x2_f32", "e4m3x2"> {
  let summary = "Round two floats to e4m3 and pack them in the low 16 bits";
}
def Ptx_CvtE5m2x2F32Op : Ptx_PackFp8<"cvt_e5m2x2_f32", "e5m2x2"> {
  let summary = "Round two floats to e5m2 and pack them in the low 16 bits";
}

def Ptx_CvtF32F16Op : Ptx_PureInstr<"cvt_f32_f16"> {
  let summary = "Widen the f16 in the low 16 bits of a word";
  let description = [{ PTX `cvt.f32.f16`, which is exact. }];
  let arguments = (ins I32:$bits);
  let results = (outs F32:$value);
  let assemblyFormat = "$bits attr-dict";
  let result = "float";
  let parameters = "int bits";
  let assembly = "cvt.f32.f16 %0, %1;";
  let constraints = [{: "=f"(result) : "h"((short)bits)}];
}

def Ptx_BitsF32Op : Ptx_PureInstr<"bits_f32"> {
  let summary = "Take the bits of a float";
  let description = [{ PTX `mov.b32`. }];
  let arguments = (ins F32:$value);
  let results = (outs I32:$bits);
  let assemblyFormat = "$value attr-dict";
  let result = "int";
  let parameters = "float value";
  let assembly = "mov.b32 %0, %1;";
  let constraints = [{: "=r"(result) : "f"(value)}];
}
def Ptx_FloatBitsOp : Ptx_PureInstr<"float_bits"> {
  let summary = "Take the float with these bits";
  let description = [{ PTX `mov.b32`. }];
  let arguments = (ins I32:$bits);
  let results = (outs F32:$value);
  let assemblyFormat = "$bits attr-dict";
  let result = "float";
  let parameters = "int bits";
  let assembly = "mov.b32 %0, %1;";
  let constraints = [{: "=f"(result) : "r"(bits)}];
}

#endif // MOEJIT_PTX_INSTRUCTIONS_TD
