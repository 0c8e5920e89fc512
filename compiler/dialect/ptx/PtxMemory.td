// Owns the operations that are PTX instructions on shared and global memory, and the text of each.
#ifndef MOEJIT_PTX_MEMORY_TD
#define MOEJIT_PTX_MEMORY_TD

include "compiler/dialect/ptx/Ptx.td"

//===- TMA (PTX ISA, Data Movement: cp.async.bulk.tensor, createpolicy, prefetch) -------------===//

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
    PTX `cp.async.bulk.tensor.Nd.shared::cluster.global.mbarrier::complete_tx::bytes`, N from 1 to
    3; coordinate 0 is the contiguous dimension. `policy` adds `.L2::cache_hint`, `multicast` adds
    `.multicast::cluster` with a mask of blocks: the box arrives at the same addresses, and its bytes
    at the same barrier, of each. `dst` is 128-byte aligned (1024 for SWIZZLE_128B); outside the
    tensor zeros are written, and still counted as bytes.

    ```mlir
    ptx.tma_load %dst, %map[%k, %row], %full
    ptx.tma_load %dst, %map[%k, %row], %full policy %evictFirst
    ptx.tma_load %dst, %map[%k, %row], %full multicast %mask
    ptx.tma_load %dst, %map[%k, %row], %full policy %evictFirst multicast %mask
    ```
  }];
  let arguments = (ins Ptx_SharedWrite:$dst, Arg<Ptx_Tmap, "", [Ptx_ReadGlobal]>:$map,
      Variadic<I32>:$coords, Ptx_Barrier:$barrier, Optional<I64>:$policy, Optional<I32>:$multicast);
  let assemblyFormat = [{
    $dst `,` $map `[` $coords `]` `,` $barrier (`policy` $policy^)? (`multicast` $multicast^)?
    attr-dict
  }];
  let hasVerifier = 1;
}

def Ptx_TmaStoreOp : Ptx_ParametricInstr<"tma_store"> {
  let summary = "Copy shared memory to the box at `coords` of a tensor, completing by groups";
  let description = [{
    PTX `cp.async.bulk.tensor.Nd.global.shared::cta.tile.bulk_group`, N from 1 to 3; coordinate 0 is
    the contiguous dimension. `src` is 128-byte aligned (1024 for SWIZZLE_128B) and is undone of the
    map's swizzle; what lies outside the tensor is not written. Ordinary stores to `src` need
    `ptx.fence_proxy_async` between. `src` may be written again after `ptx.bulk_wait_read` of this
    thread; before the thread ends, it must have waited so.

    ```mlir
    ptx.tma_store %map[%k, %row], %src
    ptx.bulk_commit
    ptx.bulk_wait_read 0
    ```
  }];
  let arguments = (ins Arg<Ptx_Tmap, "", [Ptx_WriteGlobal]>:$map, Variadic<I32>:$coords,
      Ptx_SharedRead:$src);
  let assemblyFormat = "$map `[` $coords `]` `,` $src attr-dict";
  let hasVerifier = 1;
}

// Waits until at most `pending` of the groups that the thread has committed are unfinished.
class Ptx_WaitForGroups<string opMnemonic, string instruction>
    : Ptx_Instr<opMnemonic, [Ptx_Synchronizes]> {
  let description = "PTX `"#instruction#"`.";
  let arguments = (ins I32Attr:$pending);
  let assemblyFormat = "$pending attr-dict";
  let hasVerifier = 1;
  let head = "template <int Pending>";
  let assembly = instruction#" %0;";
  let constraints = [{:: "n"(Pending) : "memory"}];
  let extraDefinition = [{
    ::std::string $cppClass::calleeName() {
      return wrapperName() + "<" + ::std::to_string(getPending()) + ">";
    }
    ::llvm::LogicalResult $cppClass::verify() { return verifyPendingGroups(*this, getPending()); }
  }];
  let extraClassDeclaration = "::std::string calleeName();";
}

def Ptx_BulkCommitOp : Ptx_Instr<"bulk_commit", [Ptx_Synchronizes]> {
  let summary = "Close the group of this thread's bulk stores issued so far";
  let description = [{ PTX `cp.async.bulk.commit_group`. }];
  let assemblyFormat = "attr-dict";
  let assembly = "cp.async.bulk.commit_group;";
  let constraints = [{::: "memory"}];
}
def Ptx_BulkWaitOp : Ptx_WaitForGroups<"bulk_wait", "cp.async.bulk.wait_group"> {
  let summary = "Wait until all but `pending` groups of this thread have written their results";
}
def Ptx_BulkWaitReadOp : Ptx_WaitForGroups<"bulk_wait_read", "cp.async.bulk.wait_group.read"> {
  let summary = "Wait until all but `pending` groups of this thread have read their sources";
}

//===- cp.async (PTX ISA, Data Movement: Non-bulk copy) ---------------------------------------===//

def Ptx_CpAsyncOp : Ptx_ParametricInstr<"cp_async"> {
  let summary = "Start a copy of `bytes` bytes from global to shared memory";
  let description = [{
    PTX `cp.async.<cache>.shared::cta.global`, `cache` being `ca` (4, 8 or 16 bytes) or `cg` (16).
    Both addresses are multiples of `bytes`. With `size`, 0 to `bytes`, only that many bytes are
    read and the rest is zeros. The thread itself may read the bytes after its `ptx.cp_async_wait`,
    others behind a barrier after that. The copy writes through the generic proxy.

    ```mlir
    ptx.cp_async %dst, %pointer, %offset {bytes = 16 : i32, cache = "cg"}
    ptx.cp_async %dst, %pointer, %offset size %inside {bytes = 4 : i32, cache = "ca"}
    ```
  }];
  let arguments = (ins Ptx_SharedWrite:$dst, Ptx_GlobalRead:$pointer, I64:$offset,
      Optional<I32>:$size, I32Attr:$bytes, StrAttr:$cache);
  let assemblyFormat = "$dst `,` $pointer `,` $offset (`size` $size^)? attr-dict";
  let hasVerifier = 1;
}

def Ptx_CpAsyncCommitOp : Ptx_Instr<"cp_async_commit", [Ptx_Synchronizes]> {
  let summary = "Close the group of this thread's copies issued so far";
  let description = [{ PTX `cp.async.commit_group`. }];
  let assemblyFormat = "attr-dict";
  let assembly = "cp.async.commit_group;";
  let constraints = [{::: "memory"}];
}
def Ptx_CpAsyncWaitOp : Ptx_WaitForGroups<"cp_async_wait", "cp.async.wait_group"> {
  let summary = "Wait until at most `pending` groups of this thread's copies are unfinished";
}
def Ptx_CpAsyncWaitAllOp : Ptx_Instr<"cp_async_wait_all", [Ptx_Synchronizes]> {
  let summary = "Wait for all of this thread's copies, committed or not";
  let description = [{ PTX `cp.async.wait_all`. }];
  let assemblyFormat = "attr-dict";
  let assembly = "cp.async.wait_all;";
  let constraints = [{::: "memory"}];
}
def Ptx_CpAsyncArriveOp : Ptx_Instr<"cp_async_arrive", [Ptx_Synchronizes]> {
  let summary = "Have a barrier of this block get an arrival when this thread's copies are done";
  let description = [{
    PTX `cp.async.mbarrier.arrive.noinc.shared::cta.b64`: one of the arrivals that
    `ptx.mbarrier_init` counted. Who waits for the barrier may read what all copies have written that
    the thread had issued.

    ```mlir
    ptx.cp_async_arrive %full
    ```
  }];
  let arguments = (ins I32:$barrier);
  let assemblyFormat = "$barrier attr-dict";
  let parameters = "int barrier";
  let assembly = "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];";
  let constraints = [{:: "r"(barrier) : "memory"}];
}

class Ptx_CreatePolicy<string opMnemonic, string priority> : Ptx_PureInstr<opMnemonic> {
  let results = (outs I64:$policy);
  let assemblyFormat = "attr-dict";
  let description = "PTX `createpolicy.fractional.L2::"#priority#".b64` of all accesses.";
  let result = "long long";
  let assembly = "createpolicy.fractional.L2::"#priority#".b64 %0, 1.0;";
  let constraints = [{: "=l"(result)}];
}
def Ptx_CreatepolicyEvictFirstOp : Ptx_CreatePolicy<"createpolicy_evict_first", "evict_first"> {
  let summary = "Make the policy of data that is read once";
}
def Ptx_CreatepolicyEvictLastOp : Ptx_CreatePolicy<"createpolicy_evict_last", "evict_last"> {
  let summary = "Make the policy of data that is read again";
}

//===- Shared memory (PTX ISA, Data Movement: ld, st; Warp Level Matrix: stmatrix) ------------===//

class Ptx_LoadShared<string opMnemonic, string suffix, TypeConstraint type, string cType,
                     string constraint> : Ptx_Instr<opMnemonic> {
  let summary = "Load a word from shared memory";
  let description = "PTX `ld.shared."#suffix#"`.";
  let arguments = (ins Ptx_SharedRead:$address);
  let results = (outs type:$value);
  let assemblyFormat = "$address attr-dict";
  let result = cType;
  let parameters = "int address";
  let assembly = "ld.shared."#suffix#" %0, [%1];";
  let constraints = ": \"="#constraint#"\"(result) : \"r\"(address) : \"memory\"";
}
def Ptx_LdSharedF32Op : Ptx_LoadShared<"ld_shared_f32", "f32", F32, "float", "f">;
def Ptx_LdSharedI32Op : Ptx_LoadShared<"ld_shared_i32", "b32", I32, "int", "r">;

def Ptx_LdSharedU8Op : Ptx_LoadShared<"ld_shared_u8", "u8", I32, "int", "r"> {
  let summary = "Load a byte from shared memory";
}

class Ptx_StoreShared<string opMnemonic, string suffix, TypeConstraint type, string cType,
                      string constraint> : Ptx_Instr<opMnemonic> {
  let summary = "Store a word to shared memory";
  let description = "PTX `st.shared."#suffix#"`.";
  let arguments = (ins Ptx_SharedWrite:$address, type:$value);
  let assemblyFormat = "$address `,` $value attr-dict";
  let parameters = "int address, "#cType#" value";
  let assembly = "st.shared."#suffix#" [%0], %1;";
  let constraints = ":: \"r\"(address), \""#constraint#"\"(value) : \"memory\"";
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
    $address `,` $regs `` custom<Indices>($indices, $static_indices)
    attr-dict `:` qualified(type($regs))
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
    $address `,` $regs `` custom<Indices>($indices, $static_indices)
    attr-dict `:` qualified(type($regs))
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$address, "::mlir::Value":$regs,
      CArg<"::llvm::ArrayRef<::mlir::OpFoldResult>", "{}">:$fragment)>];
  let parameters = "int address, const int (&v)[4]";
  let assembly = "st.shared.v4.b32 [%0], {%1, %2, %3, %4};";
  let constraints = [{:: "r"(address), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]) : "memory"}];
}

class Ptx_Stmatrix<string mnemonic, string modifier> : Ptx_Instr<mnemonic, [Ptx_Convergent]> {
  let description = "PTX `stmatrix.sync.aligned.m8n8.x4"#modifier#".shared.b16`.";
  let arguments = (ins Ptx_SharedWrite:$address, I32:$r0, I32:$r1, I32:$r2, I32:$r3);
  let assemblyFormat = "$address `,` $r0 `,` $r1 `,` $r2 `,` $r3 attr-dict";
  let parameters = "int address, int r0, int r1, int r2, int r3";
  let assembly = "stmatrix.sync.aligned.m8n8.x4"#modifier#".shared.b16 [%0], {%1, %2, %3, %4};";
  let constraints = [{:: "r"(address), "r"(r0), "r"(r1), "r"(r2), "r"(r3) : "memory"}];
}
def Ptx_StmatrixX4Op : Ptx_Stmatrix<"stmatrix_x4", ""> {
  let summary =
      "Store four 8×8 matrices of 16-bit elements, one row of one matrix at each lane's address";
}
def Ptx_StmatrixX4TransOp : Ptx_Stmatrix<"stmatrix_x4_trans", ".trans"> {
  let summary =
      "Store four 8×8 matrices of 16-bit elements, one column of one matrix at each lane's address";
}

def Ptx_LdmatrixOp : Ptx_ParametricInstr<"ldmatrix", [Ptx_Convergent]> {
  let summary = "Load one, two or four 8×8 matrices of 16-bit elements, spread over the warp";
  let description = [{
    PTX `ldmatrix.sync.aligned.m8n8.x<N>[.trans].shared.b16`, N being the registers of the fragment:
    1, 2 or 4. Lane 8i + r gives the address of row r of matrix i, a multiple of 16; addresses of
    lanes from 8N on are not used. Lane l gets elements 2·(l%4) and the next of row l/4 of each
    matrix, or, with `trans`, of column l/4. Every lane of the warp takes part.

    ```mlir
    ptx.ldmatrix %address, %words : !ptx.regs<4xi32>
    ptx.ldmatrix %address, %pairs[1] {trans} : !ptx.regs<2x2xi32>
    ```
  }];
  let arguments = (ins Ptx_SharedRead:$address, Ptx_RegsWrite:$regs, Variadic<I32>:$indices,
      DenseI64ArrayAttr:$static_indices, UnitAttr:$trans);
  let assemblyFormat = [{
    $address `,` $regs `` custom<Indices>($indices, $static_indices)
    attr-dict `:` qualified(type($regs))
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$address, "::mlir::Value":$regs,
      "bool":$isTransposed, CArg<"::llvm::ArrayRef<::mlir::OpFoldResult>", "{}">:$fragment)>];
  let hasVerifier = 1;
}

def Ptx_StAsyncI32Op : Ptx_Instr<"st_async_i32"> {
  let summary = "Store a word to block `rank` of the cluster, completing on a barrier there";
  let description = [{
    PTX `mapa.shared::cluster.u32` of both addresses, then
    `st.async.shared::cluster.mbarrier::complete_tx::bytes.b32`: the barrier counts 4 bytes, and who
    waits for it by `ptx.mbarrier_wait_cluster` sees the word.

    ```mlir
    ptx.st_async_i32 %address, %value, %barrier, %rank
    ```
  }];
  let arguments = (ins Ptx_SharedWrite:$address, I32:$value, Ptx_Barrier:$barrier, I32:$rank);
  let assemblyFormat = "$address `,` $value `,` $barrier `,` $rank attr-dict";
  let parameters = "int address, int value, int barrier, int rank";
  let assembly = [{{
.reg .b32 place, signal;
mapa.shared::cluster.u32 place, %0, %3;
mapa.shared::cluster.u32 signal, %2, %3;
st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [place], %1, [signal];
}
  }];
  let constraints = [{:: "r"(address), "r"(value), "r"(barrier), "r"(rank) : "memory"}];
}

def Ptx_StAsyncV4F32Op : Ptx_Instr<"st_async_v4_f32"> {
  let summary = "Store four floats to block `rank` of the cluster, completing on a barrier there";
  let description = [{
    PTX `mapa.shared::cluster.u32` of both addresses, then
    `st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32`: the barrier counts 16 bytes, and
    who waits for it by `ptx.mbarrier_wait_cluster` sees them. `address` is a multiple of 16.

    ```mlir
    ptx.st_async_v4_f32 %address, %v0, %v1, %v2, %v3, %barrier, %rank
    ```
  }];
  let arguments = (ins Ptx_SharedWrite:$address, F32:$v0, F32:$v1, F32:$v2, F32:$v3,
      Ptx_Barrier:$barrier, I32:$rank);
  let assemblyFormat = [{
    $address `,` $v0 `,` $v1 `,` $v2 `,` $v3 `,` $barrier `,` $rank attr-dict
  }];
  let parameters = "int address, float v0, float v1, float v2, float v3, int barrier, int rank";
  let assembly = [{{
.reg .b32 place, signal;
mapa.shared::cluster.u32 place, %0, %6;
mapa.shared::cluster.u32 signal, %5, %6;
st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [place], {%1, %2, %3, %4}, [signal];
}
  }];
  let constraints = [{:: "r"(address), "f"(v0), "f"(v1), "f"(v2), "f"(v3),
"r"(barrier), "r"(rank) : "memory"}];
}

//===- Global memory (PTX ISA, Data Movement: ld, ld.global.nc, st, atom) ---------------------===//

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
def Ptx_LdGlobalFreshF32Op : Ptx_LoadGlobal<"ld_global_fresh_f32", F32> {
  let summary = "Load a float that the kernel itself may have written";
  let description = [{ PTX `ld.global.f32` at `offset` bytes. }];
  let result = "float";
  let assembly = "ld.global.f32 %0, [%1];";
  let constraints = [{: "=f"(result) : "l"((const char *)pointer + offset) : "memory"}];
}
def Ptx_LdGlobalFreshU8Op : Ptx_LoadGlobal<"ld_global_fresh_u8", I32> {
  let summary = "Load a byte that the kernel itself may have written";
  let description = [{ PTX `ld.global.u8` at `offset` bytes. }];
  let result = "int";
  let assembly = "ld.global.u8 %0, [%1];";
  let constraints = [{: "=r"(result) : "l"((const char *)pointer + offset) : "memory"}];
}
def Ptx_LdGlobalI32Op : Ptx_LoadGlobal<"ld_global_i32", I32> {
  let summary = "Load a 32-bit word";
  let description = [{ PTX `ld.global.b32` at `offset` bytes. }];
  let result = "int";
  let assembly = "ld.global.b32 %0, [%1];";
  let constraints = [{: "=r"(result) : "l"((const char *)pointer + offset) : "memory"}];
}

def Ptx_LdGlobalU8Op : Ptx_LoadGlobal<"ld_global_u8", I32> {
  let summary = "Load a byte that no one writes while the kernel runs";
  let description = [{ PTX `ld.global.nc.u8` at `offset` bytes. }];
  let result = "int";
  let hasEffect = 0;
  let assembly = "ld.global.nc.u8 %0, [%1];";
  let constraints = [{: "=r"(result) : "l"((const char *)pointer + offset)}];
}
def Ptx_LdGlobalV4Op : Ptx_VectorInstr<"ld_global_v4"> {
  let summary = "Load 16 bytes of global memory into four registers";
  let description = [{
    PTX `ld.global.v4.b32` at `offset` bytes; the address is a multiple of 16.

    ```mlir
    ptx.ld_global_v4 %pointer, %offset, %words : !ptx.regs<4xi32>
    ```
  }];
  let arguments = (ins Ptx_GlobalRead:$pointer, I64:$offset, Ptx_RegsWrite:$regs,
      Variadic<I32>:$indices, DenseI64ArrayAttr:$static_indices);
  let assemblyFormat = [{
    $pointer `,` $offset `,` $regs `` custom<Indices>($indices, $static_indices)
    attr-dict `:` qualified(type($regs))
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$pointer, "::mlir::Value":$offset,
      "::mlir::Value":$regs, CArg<"::llvm::ArrayRef<::mlir::OpFoldResult>", "{}">:$fragment)>];
  let parameters = "const void *pointer, long long offset, int (&v)[4]";
  let assembly = "ld.global.v4.b32 {%0, %1, %2, %3}, [%4];";
  let constraints = [{: "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
: "l"((const char *)pointer + offset) : "memory"}];
}

class Ptx_StoreGlobal<string opMnemonic, string suffix, TypeConstraint type, string cType,
                      string argument> : Ptx_Instr<opMnemonic> {
  let description = "PTX `st.global."#suffix#"` at `offset` bytes.";
  let arguments = (ins Ptx_GlobalWrite:$pointer, I64:$offset, type:$value);
  let assemblyFormat = "$pointer `,` $offset `,` $value attr-dict";
  let parameters = "void *pointer, long long offset, "#cType#" value";
  let assembly = "st.global."#suffix#" [%0], %1;";
  let constraints = [{:: "l"((char *)pointer + offset), }]#argument#[{ : "memory"}];
}
def Ptx_StGlobalF32Op : Ptx_StoreGlobal<"st_global_f32", "f32", F32, "float", [{"f"(value)}]> {
  let summary = "Store a float";
}
def Ptx_StGlobalB8Op : Ptx_StoreGlobal<"st_global_b8", "b8", I32, "int", [{"r"(value)}]> {
  let summary = "Store the low 8 bits of a word";
}
def Ptx_StGlobalB16Op : Ptx_StoreGlobal<"st_global_b16", "b16", I32, "int", [{"h"((short)value)}]> {
  let summary = "Store the low 16 bits of a word";
}
def Ptx_StGlobalB32Op : Ptx_StoreGlobal<"st_global_b32", "b32", I32, "int", [{"r"(value)}]> {
  let summary = "Store a 32-bit word";
}

class Ptx_StoreGlobalVector<string opMnemonic> : Ptx_VectorInstr<opMnemonic> {
  let arguments = (ins Ptx_GlobalWrite:$pointer, I64:$offset, Ptx_RegsRead:$regs,
      Variadic<I32>:$indices, DenseI64ArrayAttr:$static_indices);
  let assemblyFormat = [{
    $pointer `,` $offset `,` $regs `` custom<Indices>($indices, $static_indices)
    attr-dict `:` qualified(type($regs))
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$pointer, "::mlir::Value":$offset,
      "::mlir::Value":$regs, CArg<"::llvm::ArrayRef<::mlir::OpFoldResult>", "{}">:$fragment)>];
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
  let constraints =
      [{:: "l"((char *)pointer + offset), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]) : "memory"}];
}

def Ptx_AtomAddSharedI32Op : Ptx_Instr<"atom_add_shared_i32"> {
  let summary = "Add to a word of shared memory and return what it was";
  let description = [{ PTX `atom.relaxed.cta.shared::cta.add.s32`. }];
  let arguments = (ins Arg<I32, "", [Ptx_ReadShared, Ptx_WriteShared]>:$address, I32:$value);
  let results = (outs I32:$old);
  let assemblyFormat = "$address `,` $value attr-dict";
  let result = "int";
  let parameters = "int address, int value";
  let assembly = "atom.relaxed.cta.shared::cta.add.s32 %0, [%1], %2;";
  let constraints = [{: "=r"(result) : "r"(address), "r"(value) : "memory"}];
}
def Ptx_AtomAddGlobalI32Op : Ptx_Instr<"atom_add_global_i32"> {
  let summary = "Add to a word of global memory and return what it was";
  let description = [{ PTX `atom.relaxed.gpu.global.add.s32` at `offset` bytes. }];
  let arguments = (ins Arg<Ptx_Ptr, "", [Ptx_ReadGlobal, Ptx_WriteGlobal]>:$pointer, I64:$offset,
      I32:$value);
  let results = (outs I32:$old);
  let assemblyFormat = "$pointer `,` $offset `,` $value attr-dict";
  let result = "int";
  let parameters = "void *pointer, long long offset, int value";
  let assembly = "atom.relaxed.gpu.global.add.s32 %0, [%1], %2;";
  let constraints = [{: "=r"(result) : "l"((char *)pointer + offset), "r"(value) : "memory"}];
}

def Ptx_RedMaxGlobalI32Op : Ptx_Instr<"red_max_global_i32"> {
  let summary = "Raise a word of global memory to `value` where it is less";
  let description = [{
    PTX `red.relaxed.gpu.global.max.s32` at `offset` bytes. The bits of non-negative floats are in
    the order of the floats.
  }];
  let arguments = (ins Arg<Ptx_Ptr, "", [Ptx_ReadGlobal, Ptx_WriteGlobal]>:$pointer, I64:$offset,
      I32:$value);
  let assemblyFormat = "$pointer `,` $offset `,` $value attr-dict";
  let parameters = "void *pointer, long long offset, int value";
  let assembly = "red.relaxed.gpu.global.max.s32 [%0], %1;";
  let constraints = [{:: "l"((char *)pointer + offset), "r"(value) : "memory"}];
}
def Ptx_WaitGlobalI32Op : Ptx_Instr<"wait_global_i32", [Ptx_Synchronizes]> {
  let summary = "Wait until a word of global memory is at least `value`";
  let description = [{
    PTX `ld.acquire.gpu.global.b32` at `offset` bytes, in a loop: what other blocks wrote before they
    released the word is visible afterwards.

    ```mlir
    ptx.wait_global_i32 %counters, %offset, %blocks
    ```
  }];
  let arguments = (ins Ptx_Ptr:$pointer, I64:$offset, I32:$value);
  let assemblyFormat = "$pointer `,` $offset `,` $value attr-dict";
  let parameters = "const void *pointer, long long offset, int value";
  let body = [{int seen;
do {
  asm volatile("ld.acquire.gpu.global.b32 %0, [%1];"
               : "=r"(seen) : "l"((const char *)pointer + offset) : "memory");
} while (seen < value);}];
}
def Ptx_RedMaxGlobalI64Op : Ptx_Instr<"red_max_global_i64"> {
  let summary = "Raise a 64-bit word of global memory to `value` where it is less";
  let description = [{
    PTX `red.relaxed.gpu.global.max.s64` at `offset` bytes: what is left does not depend on the
    order in which threads come.
  }];
  let arguments = (ins Arg<Ptx_Ptr, "", [Ptx_ReadGlobal, Ptx_WriteGlobal]>:$pointer, I64:$offset,
      I64:$value);
  let assemblyFormat = "$pointer `,` $offset `,` $value attr-dict";
  let parameters = "void *pointer, long long offset, long long value";
  let assembly = "red.relaxed.gpu.global.max.s64 [%0], %1;";
  let constraints = [{:: "l"((char *)pointer + offset), "l"(value) : "memory"}];
}

#endif // MOEJIT_PTX_MEMORY_TD
