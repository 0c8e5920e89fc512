// Owns the operations that are PTX instructions, and the text of each. Sections refer to the PTX ISA, version 9.0.
#ifndef MOEJIT_PTX_INSTRUCTIONS_TD
#define MOEJIT_PTX_INSTRUCTIONS_TD

include "compiler/dialect/ptx/Ptx.td"

//===- Special registers (PTX ISA, Special Registers) ----------------------------------------===//

class Ptx_SpecialRegister<string opMnemonic, string register> : Ptx_PureInstr<opMnemonic> {
  let results = (outs I32:$value);
  let assemblyFormat = "attr-dict";
  let result = "int";
  let assembly = "mov.u32 %0, %%" # register # ";";
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
    `cvta.to.shared` of the first byte. It is 1024-aligned, as swizzled tiles need, because the launch asks for no
    static shared memory.
  }];
  let results = (outs I32:$address);
  let assemblyFormat = "attr-dict";
  let result = "int";
  let body = [{extern __shared__ __align__(1024) unsigned char dynamicShared[];
return (int)__cvta_generic_to_shared(dynamicShared);}];
}

//===- Warp (PTX ISA, Data Movement: shfl.sync; Parallel Synchronization: elect.sync, bar.warp.sync) -===//

def Ptx_ShflIdxOp : Ptx_Instr<"shfl_idx", [Ptx_Convergent]> {
  let summary = "Read `value` of lane `lane`";
  let description = [{ PTX `shfl.sync.idx.b32` with the full mask. Every lane of the warp takes part. }];
  let arguments = (ins I32:$value, I32:$lane);
  let results = (outs I32:$shuffled);
  let assemblyFormat = "$value `,` $lane attr-dict";
  let result = "int";
  let parameters = "int value, int lane";
  let assembly = "shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xffffffff;";
  let constraints = [{: "=r"(result) : "r"(value), "r"(lane)}];
}

def Ptx_ElectOneOp : Ptx_Instr<"elect_one", [Ptx_Convergent]> {
  let summary = "Choose one lane of the warp";
  let description = [{ PTX `elect.sync` with the full mask: true in one lane, the same at every call. }];
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

//===- Barriers (PTX ISA, Parallel Synchronization: bar, barrier.cluster) --------------------===//

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
    ::llvm::LogicalResult $cppClass::verify() { return verifyNamedBarrier(*this, getId(), getThreads()); }
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

//===- Registers (PTX ISA, Miscellaneous: setmaxnreg) ----------------------------------------===//

class Ptx_SetMaxNReg<string opMnemonic, string direction>
    : Ptx_Instr<opMnemonic, [Ptx_Convergent]> {
  let arguments = (ins I32Attr:$registers);
  let assemblyFormat = "$registers attr-dict";
  let hasVerifier = 1;
  let description = "PTX `setmaxnreg." # direction # ".sync.aligned.u32`: 24 to 256, a multiple of 8. "
                    "Every warp of the warpgroup executes it.";
  let assembly = "setmaxnreg." # direction # ".sync.aligned.u32 %0;";
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
    An empty `asm volatile` with each register as "+f" or "+r": no instruction, but the C++ optimiser cannot move
    accesses of an accumulator over a `wgmma_fence` or `wgmma_wait`, which it does not know to touch them.
  }];
  let arguments = (ins Ptx_RegsReadWrite:$regs, Variadic<I32>:$indices, DenseI64ArrayAttr:$static_indices);
  let assemblyFormat = "$regs `` custom<Indices>($indices, $static_indices) attr-dict `:` type($regs)";
  let builders = [OpBuilder<(ins "::mlir::Value":$regs,
                                 CArg<"::llvm::ArrayRef<::mlir::OpFoldResult>", "{}">:$fragment)>];
  let hasVerifier = 1;
}

//===- mbarrier (PTX ISA, Parallel Synchronization: mbarrier) --------------------------------===//

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
    PTX `mapa.shared::cluster.u32`, then `mbarrier.arrive.shared::cluster.b64`. Without `.release.cluster`: what the
    consumers read came through the asynchronous proxy, and the fence that form implies costs time.
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
    PTX `mbarrier.try_wait.parity.shared::cta.b64` in a loop. A fresh barrier has completed the phase of parity 1.

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

//===- TMA (PTX ISA, Data Movement: cp.async.bulk.tensor, createpolicy, prefetch) ------------===//

def Ptx_PrefetchTensormapOp : Ptx_Instr<"prefetch_tensormap", [Ptx_Convergent]> {
  let summary = "Bring a tensor map into the descriptor cache";
  let description = [{ PTX `prefetch.tensormap`. }];
  let arguments = (ins Ptx_Tmap:$map);
  let assemblyFormat = "$map attr-dict";
  let parameters = "const TensorMap &map";
  let assembly = "prefetch.tensormap [%0];";
  let constraints = [{:: "l"(&map) : "memory"}];
}

def Ptx_TmaLoadOp : Ptx_ParametricInstr<"tma_load", [AttrSizedOperandSegments]> {
  let summary = "Copy the box at `coords` of a tensor to shared memory, completing on a barrier";
  let description = [{
    PTX `cp.async.bulk.tensor.Nd.shared::cluster.global.mbarrier::complete_tx::bytes`, N from 1 to 3; coordinate 0 is
    the contiguous dimension. `policy` adds `.L2::cache_hint`, `multicast` adds `.multicast::cluster` with a mask of
    blocks; one of the two at most. `dst` is 128-byte aligned (1024 for SWIZZLE_128B); outside the tensor zeros are
    written, and still counted as bytes.

    ```mlir
    ptx.tma_load %dst, %map[%k, %row], %full
    ptx.tma_load %dst, %map[%k, %row], %full policy %evictFirst
    ptx.tma_load %dst, %map[%k, %row], %full multicast %mask
    ```
  }];
  let arguments = (ins Ptx_SharedWrite:$dst, Arg<Ptx_Tmap, "", [Ptx_ReadGlobal]>:$map, Variadic<I32>:$coords,
                       Ptx_Barrier:$barrier, Optional<I64>:$policy, Optional<I32>:$multicast);
  let assemblyFormat = [{
    $dst `,` $map `[` $coords `]` `,` $barrier (`policy` $policy^)? (`multicast` $multicast^)? attr-dict
  }];
  let hasVerifier = 1;
}

class Ptx_CreatePolicy<string opMnemonic, string priority> : Ptx_PureInstr<opMnemonic> {
  let results = (outs I64:$policy);
  let assemblyFormat = "attr-dict";
  let description = "PTX `createpolicy.fractional.L2::" # priority # ".b64` of all accesses.";
  let result = "long long";
  let assembly = "createpolicy.fractional.L2::" # priority # ".b64 %0, 1.0;";
  let constraints = [{: "=l"(result)}];
}
def Ptx_CreatepolicyEvictFirstOp : Ptx_CreatePolicy<"createpolicy_evict_first", "evict_first"> {
  let summary = "Make the policy of data that is read once";
}
def Ptx_CreatepolicyEvictLastOp : Ptx_CreatePolicy<"createpolicy_evict_last", "evict_last"> {
  let summary = "Make the policy of data that is read again";
}

//===- wgmma (PTX ISA, Asynchronous Warpgroup Level Matrix Instructions) ---------------------===//

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
  let summary = "Start regs = A · B (+ regs) on tiles of 64×32 and n×32 fp8 elements in shared memory";
  let description = [{
    PTX `wgmma.mma_async.sync.aligned.m64nNk32.f32.<a>.<b>`. A descriptor's low word is
    `(address >> 4) | 0x10000`; its high word is the constant 0x40000040 (K-major, SWIZZLE_128B, 1024 bytes from one
    group of 8 rows to the next). `accumulate` 0 ignores what the registers held. The fragment of a thread: row
    16·warp + lane/4 (+8), column 8j + 2·(lane%4); registers 4j, 4j+1 are the row, 4j+2, 4j+3 the row 8 below.

    ```mlir
    ptx.wgmma %acc[0], %descA, %descB, %one {n = 128 : i32, a = "e4m3", b = "e4m3"} : !ptx.regs<2x64xf32>
    ```
  }];
  let arguments = (ins Ptx_RegsReadWrite:$regs, Variadic<I32>:$indices, Ptx_SharedRead:$descA,
                       Ptx_SharedRead:$descB, I32:$accumulate, I32Attr:$n, StrAttr:$a, StrAttr:$b,
                       DenseI64ArrayAttr:$static_indices);
  let assemblyFormat = [{
    $regs `` custom<Indices>($indices, $static_indices) `,` $descA `,` $descB `,` $accumulate attr-dict
    `:` type($regs)
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$regs, "::mlir::Value":$descA, "::mlir::Value":$descB,
                                 "::mlir::Value":$accumulate, "int64_t":$n, "::llvm::StringRef":$a,
                                 "::llvm::StringRef":$b,
                                 CArg<"::llvm::ArrayRef<::mlir::OpFoldResult>", "{}">:$fragment)>];
  let hasVerifier = 1;
}

//===- Shared memory (PTX ISA, Data Movement: ld, st; Warp Level Matrix Instructions: stmatrix) -===//

class Ptx_LoadShared<string opMnemonic, string suffix, TypeConstraint type, string cType, string constraint>
    : Ptx_Instr<opMnemonic> {
  let summary = "Load a word from shared memory";
  let description = "PTX `ld.shared." # suffix # "`.";
  let arguments = (ins Ptx_SharedRead:$address);
  let results = (outs type:$value);
  let assemblyFormat = "$address attr-dict";
  let result = cType;
  let parameters = "int address";
  let assembly = "ld.shared." # suffix # " %0, [%1];";
  let constraints = ": \"=" # constraint # "\"(result) : \"r\"(address) : \"memory\"";
}
def Ptx_LdSharedF32Op : Ptx_LoadShared<"ld_shared_f32", "f32", F32, "float", "f">;
def Ptx_LdSharedI32Op : Ptx_LoadShared<"ld_shared_i32", "b32", I32, "int", "r">;

class Ptx_StoreShared<string opMnemonic, string suffix, TypeConstraint type, string cType, string constraint>
    : Ptx_Instr<opMnemonic> {
  let summary = "Store a word to shared memory";
  let description = "PTX `st.shared." # suffix # "`.";
  let arguments = (ins Ptx_SharedWrite:$address, type:$value);
  let assemblyFormat = "$address `,` $value attr-dict";
  let parameters = "int address, " # cType # " value";
  let assembly = "st.shared." # suffix # " [%0], %1;";
  let constraints = ":: \"r\"(address), \"" # constraint # "\"(value) : \"memory\"";
}
def Ptx_StSharedF32Op : Ptx_StoreShared<"st_shared_f32", "f32", F32, "float", "f">;
def Ptx_StSharedI32Op : Ptx_StoreShared<"st_shared_i32", "b32", I32, "int", "r">;

// A copy between four registers of i32 and memory.
class Ptx_VectorInstr<string opMnemonic> : Ptx_Instr<opMnemonic> {
  let hasVerifier = 1;
  let extraDefinition = [{
    ::llvm::SmallVector<::moejit::ptx::CallArgument> $cppClass::callArguments() {
      return vectorArguments(*this, getRegs(), getIndices(), getStaticIndices());
    }
    ::llvm::LogicalResult $cppClass::verify() {
      return verifyVector(*this, getRegs(), getIndices(), getStaticIndices());
    }
  }];
  let extraClassDeclaration = "::llvm::SmallVector<::moejit::ptx::CallArgument> callArguments();";
}

def Ptx_LdSharedV4Op : Ptx_VectorInstr<"ld_shared_v4"> {
  let summary = "Load 16 bytes from shared memory into four registers";
  let description = [{
    PTX `ld.shared.v4.b32`; `address` is a multiple of 16.

    ```mlir
    ptx.ld_shared_v4 %address, %words : !ptx.regs<4xi32>
    ```
  }];
  let arguments = (ins Ptx_SharedRead:$address, Ptx_RegsWrite:$regs, Variadic<I32>:$indices,
                       DenseI64ArrayAttr:$static_indices);
  let assemblyFormat = [{
    $address `,` $regs `` custom<Indices>($indices, $static_indices) attr-dict `:` type($regs)
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$address, "::mlir::Value":$regs,
                                 CArg<"::llvm::ArrayRef<::mlir::OpFoldResult>", "{}">:$fragment)>];
  let parameters = "int address, int (&v)[4]";
  let assembly = "ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];";
  let constraints = [{: "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(address) : "memory"}];
}

def Ptx_StSharedV4Op : Ptx_VectorInstr<"st_shared_v4"> {
  let summary = "Store four registers to 16 bytes of shared memory";
  let description = [{ PTX `st.shared.v4.b32`; `address` is a multiple of 16. }];
  let arguments = (ins Ptx_SharedWrite:$address, Ptx_RegsRead:$regs, Variadic<I32>:$indices,
                       DenseI64ArrayAttr:$static_indices);
  let assemblyFormat = [{
    $address `,` $regs `` custom<Indices>($indices, $static_indices) attr-dict `:` type($regs)
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$address, "::mlir::Value":$regs,
                                 CArg<"::llvm::ArrayRef<::mlir::OpFoldResult>", "{}">:$fragment)>];
  let parameters = "int address, const int (&v)[4]";
  let assembly = "st.shared.v4.b32 [%0], {%1, %2, %3, %4};";
  let constraints = [{:: "r"(address), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]) : "memory"}];
}

def Ptx_StmatrixX4Op : Ptx_Instr<"stmatrix_x4", [Ptx_Convergent]> {
  let summary = "Store four 8×8 matrices of 16-bit elements, one row of one matrix at each lane's address";
  let description = [{ PTX `stmatrix.sync.aligned.m8n8.x4.shared.b16`. }];
  let arguments = (ins Ptx_SharedWrite:$address, I32:$r0, I32:$r1, I32:$r2, I32:$r3);
  let assemblyFormat = "$address `,` $r0 `,` $r1 `,` $r2 `,` $r3 attr-dict";
  let parameters = "int address, int r0, int r1, int r2, int r3";
  let assembly = "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};";
  let constraints = [{:: "r"(address), "r"(r0), "r"(r1), "r"(r2), "r"(r3) : "memory"}];
}

//===- Global memory (PTX ISA, Data Movement: ld, ld.global.nc, st, atom) --------------------===//

class Ptx_LoadGlobal<string opMnemonic, TypeConstraint type> : Ptx_Instr<opMnemonic> {
  let arguments = (ins Ptx_GlobalRead:$pointer, I64:$offset);
  let results = (outs type:$value);
  let assemblyFormat = "$pointer `,` $offset attr-dict";
  let parameters = "const void *pointer, long long offset";
}
def Ptx_LdGlobalF32Op : Ptx_LoadGlobal<"ld_global_f32", F32> {
  let summary = "Load a float that no one writes while the kernel runs";
  let description = [{ PTX `ld.global.nc.f32` at `offset` bytes. }];
  let result = "float";
  let hasEffect = 0;
  let assembly = "ld.global.nc.f32 %0, [%1];";
  let constraints = [{: "=f"(result) : "l"((const char *)pointer + offset)}];
}
def Ptx_LdGlobalI32Op : Ptx_LoadGlobal<"ld_global_i32", I32> {
  let summary = "Load a 32-bit word";
  let description = [{ PTX `ld.global.b32` at `offset` bytes. }];
  let result = "int";
  let assembly = "ld.global.b32 %0, [%1];";
  let constraints = [{: "=r"(result) : "l"((const char *)pointer + offset) : "memory"}];
}

class Ptx_StoreGlobal<string opMnemonic, string suffix, TypeConstraint type, string cType, string argument>
    : Ptx_Instr<opMnemonic> {
  let description = "PTX `st.global." # suffix # "` at `offset` bytes.";
  let arguments = (ins Ptx_GlobalWrite:$pointer, I64:$offset, type:$value);
  let assemblyFormat = "$pointer `,` $offset `,` $value attr-dict";
  let parameters = "void *pointer, long long offset, " # cType # " value";
  let assembly = "st.global." # suffix # " [%0], %1;";
  let constraints = [{:: "l"((char *)pointer + offset), }] # argument # [{ : "memory"}];
}
def Ptx_StGlobalF32Op : Ptx_StoreGlobal<"st_global_f32", "f32", F32, "float", [{"f"(value)}]> {
  let summary = "Store a float";
}
def Ptx_StGlobalB16Op : Ptx_StoreGlobal<"st_global_b16", "b16", I32, "int", [{"h"((short)value)}]> {
  let summary = "Store the low 16 bits of a word";
}
def Ptx_StGlobalB32Op : Ptx_StoreGlobal<"st_global_b32", "b32", I32, "int", [{"r"(value)}]> {
  let summary = "Store a 32-bit word";
}

class Ptx_StoreGlobalVector<string opMnemonic> : Ptx_VectorInstr<opMnemonic> {
  let arguments = (ins Ptx_GlobalWrite:$pointer, I64:$offset, Ptx_RegsRead:$regs, Variadic<I32>:$indices,
                       DenseI64ArrayAttr:$static_indices);
  let assemblyFormat = [{
    $pointer `,` $offset `,` $regs `` custom<Indices>($indices, $static_indices) attr-dict `:` type($regs)
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$pointer, "::mlir::Value":$offset, "::mlir::Value":$regs,
                                 CArg<"::llvm::ArrayRef<::mlir::OpFoldResult>", "{}">:$fragment)>];
  let parameters = "void *pointer, long long offset, const int (&v)[4]";
}
def Ptx_StGlobalV2Op : Ptx_StoreGlobalVector<"st_global_v2"> {
  let summary = "Store the first two of four registers to 8 bytes of global memory";
  let description = [{ PTX `st.global.v2.b32`; the address is a multiple of 8. }];
  let assembly = "st.global.v2.b32 [%0], {%1, %2};";
  let constraints = [{:: "l"((char *)pointer + offset), "r"(v[0]), "r"(v[1]) : "memory"}];
}
def Ptx_StGlobalV4Op : Ptx_StoreGlobalVector<"st_global_v4"> {
  let summary = "Store four registers to 16 bytes of global memory";
  let description = [{ PTX `st.global.v4.b32`; the address is a multiple of 16. }];
  let assembly = "st.global.v4.b32 [%0], {%1, %2, %3, %4};";
  let constraints = [{:: "l"((char *)pointer + offset), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]) : "memory"}];
}

def Ptx_AtomAddGlobalI32Op : Ptx_Instr<"atom_add_global_i32"> {
  let summary = "Add to a word of global memory and return what it was";
  let description = [{ PTX `atom.relaxed.gpu.global.add.s32` at `offset` bytes. }];
  let arguments = (ins Arg<Ptx_Ptr, "", [Ptx_ReadGlobal, Ptx_WriteGlobal]>:$pointer, I64:$offset, I32:$value);
  let results = (outs I32:$old);
  let assemblyFormat = "$pointer `,` $offset `,` $value attr-dict";
  let result = "int";
  let parameters = "void *pointer, long long offset, int value";
  let assembly = "atom.relaxed.gpu.global.add.s32 %0, [%1], %2;";
  let constraints = [{: "=r"(result) : "l"((char *)pointer + offset), "r"(value) : "memory"}];
}

//===- f32 and conversions (PTX ISA, Floating Point Instructions; Data Movement: cvt, mov) ---===//

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
  let description = "PTX `" # instruction # "`.";
  let arguments = (ins F32:$a, F32:$b);
  let results = (outs F32:$value);
  let assemblyFormat = "$a `,` $b attr-dict";
  let result = "float";
  let parameters = "float a, float b";
  let assembly = instruction # " %0, %1, %2;";
  let constraints = [{: "=f"(result) : "f"(a), "f"(b)}];
}
def Ptx_MulF32Op : Ptx_BinaryF32<"mul_f32", "mul.rn.f32"> { let summary = "Multiply"; }
def Ptx_AddF32Op : Ptx_BinaryF32<"add_f32", "add.rn.f32"> { let summary = "Add"; }

class Ptx_PackF32<string opMnemonic, string instruction> : Ptx_PureInstr<opMnemonic> {
  let description = "PTX `" # instruction # "`, which takes the upper half first.";
  let arguments = (ins F32:$low, F32:$high);
  let results = (outs I32:$packed);
  let assemblyFormat = "$low `,` $high attr-dict";
  let result = "int";
  let parameters = "float low, float high";
  let assembly = instruction # " %0, %1, %2;";
  let constraints = [{: "=r"(result) : "f"(high), "f"(low)}];
}
def Ptx_CvtBf16x2F32Op : Ptx_PackF32<"cvt_bf16x2_f32", "cvt.rn.bf16x2.f32"> {
  let summary = "Round two floats to bf16 and pack them";
}
def Ptx_CvtF16x2F32Op : Ptx_PackF32<"cvt_f16x2_f32", "cvt.rn.f16x2.f32"> {
  let summary = "Round two floats to f16 and pack them; overflow gives infinity";
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
