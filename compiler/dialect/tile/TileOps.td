// Ops of the `tile` dialect.
#ifndef MOEJIT_TILE_OPS
#define MOEJIT_TILE_OPS

include "compiler/dialect/tile/TileDialect.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Tile_Op<string mnemonic, list<Trait> traits = []> : Op<Tile_Dialect, mnemonic, traits>;

def Tile_AccOrFragment : AnyTypeOf<[Tile_Acc, Tile_Fragment]>;
/// A scale side: a block in memory, or the registers `tile.read` brought it to.
def Tile_ScaleOperand : AnyTypeOf<[Tile_Block, F32]>;

//===-- Kernel and control -------------------------------------------------------------------------------------===//

def Tile_KernelOp : Tile_Op<"kernel", [IsolatedFromAbove, Symbol, SingleBlock, NoTerminator]> {
  let summary = "One launch: what every thread block runs";
  let description = [{
    Arguments are views; `operands` names what the launch binds to each (x, x_scales, w, w_scales, offsets, y).
    `warpgroups` is the number of warpgroups that issue dots, `cluster` how many blocks run together and can reach each
    other's shared memory, `blocks_per_sm` how many share an SM and its registers (both 1 where they are left away).

    ```mlir
    tile.kernel @dense(%x: !tile.view<?x512xf8E4M3FN>, %w: !tile.view<256x512xf8E4M3FN>, %y: !tile.view<?x256xbf16>)
        warpgroups 2 { … }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$operand_names, I64Attr:$warpgroups,
                       OptionalAttr<I64Attr>:$shared_bytes, OptionalAttr<ArrayAttr>:$tensor_maps,
                       OptionalAttr<I64Attr>:$cluster, OptionalAttr<I64Attr>:$blocks_per_sm);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Blocks of a cluster, 1 where each is alone.
    int64_t getClusterSize() { return getCluster().value_or(1); }
    /// Blocks that share an SM, 1 where each has one to itself.
    int64_t getSmShare() { return getBlocksPerSm().value_or(1); }
    /// The launch operand bound to block argument `index`.
    ::llvm::StringRef getOperandName(unsigned index);
    /// True when warps have roles of their own.
    bool hasRoles();
    /// Threads of a block: the warpgroups, and the producer's where there is one.
    int64_t getThreads();
  }];
}

def Tile_RoleOp : Tile_Op<"role", [SingleBlock, NoTerminator, HasParent<"KernelOp">]> {
  let summary = "What the warps of one role run; a producer is one thread";
  let description = [{ `registers` is what `setmaxnreg` leaves or gives each thread of the role (PTX ISA, setmaxnreg). }];
  let arguments = (ins Tile_RoleKindAttr:$kind, I64Attr:$registers);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$kind `registers` $registers attr-dict-with-keyword $body";
}

def Tile_OnceOp : Tile_Op<"once", [SingleBlock, NoTerminator]> {
  let summary = "Run the body in one thread of the block";
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
}

def Tile_SyncOp : Tile_Op<"sync"> {
  let summary = "Every thread of the block, or of its cluster, meets here";
  let arguments = (ins UnitAttr:$cluster);
  let assemblyFormat = "(`cluster` $cluster^)? attr-dict";
}

def Tile_LaunchDependentsOp : Tile_Op<"launch_dependents", [HasParent<"KernelOp">]> {
  let summary = "The next launch may put its blocks where those of this one end";
  let description = [{ Where that launch waits by `tile.wait_grid`. Lowers to `griddepcontrol.launch_dependents`. }];
  let assemblyFormat = "attr-dict";
}

def Tile_WaitGridOp : Tile_Op<"wait_grid", [HasParent<"KernelOp">]> {
  let summary = "Wait until the launches before have ended, and what they wrote is visible";
  let description = [{
    Every thread does so, before anything that reads or writes global memory. What needs none, such as setting up the barriers of a
    ring, may come before. Lowers to `griddepcontrol.wait`; launch data then ask for programmatic stream serialization
    (runtime/Artifact.h, dependentLaunch).
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def Tile_RowsOp : Tile_Op<"rows", [Pure]> {
  let summary = "S, the rows of this launch";
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
}

def Tile_WarpgroupOp : Tile_Op<"warpgroup", [Pure]> {
  let summary = "Index of this warpgroup among those that issue dots";
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
}

def Tile_ClusterRankOp : Tile_Op<"cluster_rank", [Pure]> {
  let summary = "Index of this block in its cluster";
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
}

def Tile_StrideOp : Tile_Op<"stride", [Pure]> {
  let summary = "The row stride of a view in elements, as the launch gave it";
  let arguments = (ins Tile_View:$view);
  let results = (outs I64:$result);
  let assemblyFormat = "$view attr-dict `:` type($view)";
}

//===-- Tile scheduler -----------------------------------------------------------------------------------------===//

def Tile_SchedulerOp : Tile_Op<"scheduler", [AttrSizedOperandSegments]> {
  let summary = "Divide the output into tiles";
  let description = [{
    With `offsets` rows are sorted by expert: expert e owns rows [o'[e], o'[e+1]), where o' is offsets clamped to
    [0, S] and made non-decreasing. With `counts` every expert has a buffer of S / experts rows and owns the first
    counts[e] of them, clamped to the buffer. With `ids` row s belongs to expert ids[s], or to nobody where that is no expert's
    number; with a `map` of G entries too, ids are global and row s belongs to expert map[ids[s]], or to nobody where
    ids[s] is outside [0, G) or its entry is no expert's number. The block sorts the rows by expert, at most 4096 of them, and
    ops that name the scheduler after `rows_by` find the sorted rows where they lie. Without any of these, one expert owns all rows. `zeroed`: rows no expert owns
    are tiles too, with `live` false. `raster` row tiles share one sweep over the columns, so that weights stay in L2.
    `static` order gives block b the tiles b, b + blocks, …. `queue` order gives it tile b, then what it draws from
    `counter`, an i32 in global memory that is zero when the kernel starts.

    With `tail` the last tile of an expert's rows, or of those no expert owns, has up to so many rows more: a tile of their own
    they get only where there are more.

    With `cluster columns` (or `rows`) the blocks of a cluster take neighbouring tiles of a row (or a column) of tiles of one
    expert, together: as many of them are what is counted and drawn. Where fewer are left, the blocks past the last take it
    too, with no rows. With `cluster k` they all take the same tile.

    ```mlir
    %q = tile.scheduler (%off) tile [128, 256] columns 4096 experts 32 order static raster 1 zeroed : !tile.view<33xi32>
    ```
  }];
  let arguments = (ins Optional<Tile_View>:$offsets, Optional<Tile_View>:$counts, Optional<Tile_View>:$ids, Optional<Tile_View>:$map,
                       Optional<Tile_View>:$counter, I64Attr:$tile_m, I64Attr:$tile_n, I64Attr:$columns,
                       I64Attr:$experts, Tile_OrderAttr:$order, I64Attr:$raster, UnitAttr:$zeroed,
                       OptionalAttr<Tile_SpreadAttr>:$cluster, OptionalAttr<I64Attr>:$shared_offset,
                       OptionalAttr<I64Attr>:$tail);
  let results = (outs Tile_Scheduler:$result);
  let assemblyFormat = [{
    (`grouped` `(` $offsets^ `)`)? (`masked` `(` $counts^ `:` type($counts) `)`)? (`batched` `(` $ids^ `:` type($ids) `)`)? (`map` `(` $map^ `:` type($map) `)`)? `tile` `[` $tile_m `,` $tile_n `]` (`tail` $tail^)? `columns` $columns `experts` $experts
    `order` $order (`counter` `(` $counter^ `:` type($counter) `)`)? `raster` $raster (`zeroed` $zeroed^)? (`cluster` $cluster^)? attr-dict
    (`:` type($offsets)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// True where experts own ranges of (sorted) rows.
    bool hasBoundaries() { return getOffsets() || getIds(); }
  }];
}

def Tile_ForTilesOp : Tile_Op<"for_tiles", [SingleBlock, NoTerminator]> {
  let summary = "Run the body for every tile this block is given";
  let description = [{
    Body arguments: expert, first row, first column, rows of the tile that its expert owns, and whether an expert owns
    them at all (all i32, the last i1).

    ```mlir
    tile.for_tiles %q -> %e, %m0, %n0, %rows, %live { … }
    ```
  }];
  let arguments = (ins Tile_Scheduler:$scheduler);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Value getExpert() { return getBody().getArgument(0); }
    ::mlir::Value getFirstRow() { return getBody().getArgument(1); }
    ::mlir::Value getFirstColumn() { return getBody().getArgument(2); }
    ::mlir::Value getTileRows() { return getBody().getArgument(3); }
    ::mlir::Value getLive() { return getBody().getArgument(4); }
  }];
}

def Tile_NextTileOp : Tile_Op<"next_tile", [ParentOneOf<["ForTilesOp"]>]> {
  let summary = "Draw the next tile here instead of at the end of the body";
  let assemblyFormat = "attr-dict";
}

//===-- Grid -----------------------------------------------------------------------------------------------===//

def Tile_GridForOp : Tile_Op<"grid_for", [SingleBlock, NoTerminator, HasParent<"KernelOp">]> {
  let summary = "Run the body once for every i below `extent`, shared out over the blocks of the grid";
  let description = [{
    All threads of one block run the body for an i together. When the op is over in a block, every body of every block is
    over, and what they wrote to global memory is visible to the block, to its bulk copies too.

    `counters` are two i32 in global memory, from entry `at` on, that are zero when the kernel starts: bodies drawn, bodies done.
    A block draws until nothing is left and only then waits for what others drew, so nobody waits for a block that has not
    started: blocks need not all be resident. Comes before roles divide the warps. `shared_offset` is assigned by `tile-allocate-shared`.

    ```mlir
    tile.grid_for %counters at 0 extent %chunks -> %i : !tile.view<2xi32> { … }
    ```
  }];
  let arguments = (ins Tile_View:$counters, I64Attr:$at, I32:$extent, OptionalAttr<I64Attr>:$shared_offset);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Value getIndex() { return getBody().getArgument(0); }
  }];
}

def Tile_CleanOp : Tile_Op<"clean"> {
  let summary = "Set words that were zero when the kernel began to zero again, in the last block that comes here";
  let description = [{
    One thread of each block runs it, when the block reads and changes the words no more. It counts the block out in entry `at` of
    `counter`, one of the views, and whoever finds all other blocks counted sets every entry of every view to zero. The views are all
    that the launch would zero (`workspace`, `counters`): launch data then say that it need not (runtime/Artifact.h, cleansWorkspace).

    ```mlir
    tile.once { tile.clean %workspace, %counters counted in %workspace at 1 : !tile.view<2xi32>, !tile.view<2xi32> in !tile.view<2xi32> }
    ```
  }];
  let arguments = (ins Variadic<Tile_View>:$views, Tile_View:$counter, I64Attr:$at);
  let assemblyFormat = "$views `counted` `in` $counter `at` $at attr-dict `:` type($views) `in` type($counter)";
  let hasVerifier = 1;
}

//===-- Memory -------------------------------------------------------------------------------------------------===//

def Tile_LoadOp : Tile_Op<"load", [AttrSizedOperandSegments, MemoryEffects<[MemRead]>]> {
  let summary = "The box of a view at the given coordinates; outside the view elements are zero";
  let description = [{
    With `rows_by` the coordinate of the view's `?` counts sorted rows. `bulk` promises that the view's address and row strides are multiples of 16 bytes, as a bulk copy needs.
    With `items` the view holds scales: along the long dimension of the box coordinates count rows or columns, and entry i of the
    block is the scale that item coordinate + i has; past the last item entries are zero.
    Not yet staged: `tile-stage-loads` gives it a place in shared memory. Scales that stay unstaged are read from
    global memory where they are used.
  }];
  let arguments = (ins Tile_View:$view, Variadic<I32>:$coordinates, Optional<Tile_Scheduler>:$rows_by, UnitAttr:$bulk,
                       OptionalAttr<Tile_Items>:$items);
  let results = (outs Tile_Block:$result);
  let assemblyFormat = "$view `[` $coordinates `]` (`rows_by` $rows_by^)? (`bulk` $bulk^)? (`items` $items^)? attr-dict `:` type($view) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_UnpackOp : Tile_Op<"unpack", [Pure]> {
  let summary = "Byte `index` of each word of a block of packed ue8m0 scales, the low byte being 0";
  let description = [{
    ```mlir
    %s = tile.unpack %words[%group] : !tile.block<1x128xi32> -> !tile.block<1x128xf8E8M0FNU>
    ```
  }];
  let arguments = (ins Tile_Block:$words, I32:$index);
  let results = (outs Tile_Block:$result);
  let assemblyFormat = "$words `[` $index `]` attr-dict `:` type($words) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_RingOp : Tile_Op<"ring"> {
  let summary = "Shared memory for `stages` slots, each with one block per field";
  let description = [{
    With `multicast` the blocks of a cluster fill the same slot of all their rings together: it is empty when the warps of
    all of them have released it. The layout attributes are assigned by `tile-allocate-shared`.

    ```mlir
    %ring = tile.ring stages 4 [!tile.block<128x128xf8E4M3FN>, !tile.block<256x128xf8E4M3FN>]
    ```
  }];
  let arguments = (ins I64Attr:$stages, TypeArrayAttr:$fields, OptionalAttr<I64Attr>:$shared_offset,
                       OptionalAttr<I64Attr>:$stride, OptionalAttr<DenseI64ArrayAttr>:$field_offsets,
                       OptionalAttr<I64Attr>:$barrier_offset, UnitAttr:$multicast);
  let results = (outs Tile_Ring:$result);
  let assemblyFormat = "`stages` $stages $fields (`multicast` $multicast^)? attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    BlockType getField(unsigned index);
    /// Bytes that one filled slot has received: what the barrier of the slot expects.
    int64_t getTransactionBytes();
  }];
}

def Tile_AcquireOp : Tile_Op<"acquire"> {
  let summary = "Wait for the next slot to be empty and take it for filling";
  let description = [{ `bytes` is what the copies into the slot will bring, where that is not what its fields hold. }];
  let arguments = (ins Tile_Ring:$ring, Optional<I32>:$bytes);
  let results = (outs Tile_Slot:$slot);
  let assemblyFormat = "$ring (`bytes` $bytes^)? attr-dict";
}

def Tile_CopyOp : Tile_Op<"copy", [AttrSizedOperandSegments]> {
  let summary = "Fill a field of a slot with the box of a view, asynchronously";
  let description = [{
    Lowers to `cp.async.bulk.tensor` (PTX ISA). A field of f8 with 128-byte rows is stored with SWIZZLE_128B. A bulk copy
    wants its first byte 16-byte aligned: a vector of scales starts at its coordinate rounded down to 16 bytes and
    carries 16 bytes more; single scales of a packed view are copied one by one, 16 bytes each, through a rank-1 map.
    With `first` only so many rows are copied, or up to `per` - 1 more where they are not gathered; the others of the field
    keep what was there.
    With `multicast` every block of the cluster names the same box: each copies as many of its rows, and sends them to all.
  }];
  let arguments = (ins Tile_View:$view, Variadic<I32>:$coordinates, Tile_Slot:$slot, Optional<Tile_Scheduler>:$rows_by,
                       Optional<I32>:$first, I64Attr:$field, UnitAttr:$evict_first, UnitAttr:$multicast,
                       OptionalAttr<I64Attr>:$first_per);
  let assemblyFormat = "$view `[` $coordinates `]` (`rows_by` $rows_by^)? (`first` $first^)? (`per` $first_per^)? `->` $slot `[` $field `]` (`multicast` $multicast^)? attr-dict `:` type($view)";
  let hasVerifier = 1;
}

def Tile_PublishOp : Tile_Op<"publish"> {
  let summary = "Every copy into the slot has been issued";
  let arguments = (ins Tile_Slot:$slot);
  let assemblyFormat = "$slot attr-dict";
}

def Tile_AwaitOp : Tile_Op<"await"> {
  let summary = "Wait for the next slot to be full";
  let description = [{ `slot` says which of the ring it is, from 0 on, where that is known: the slot after the last is the first. }];
  let arguments = (ins Tile_Ring:$ring, Optional<I32>:$index);
  let results = (outs Tile_Slot:$slot);
  let builders = [OpBuilder<(ins "::mlir::Type":$slot, "::mlir::Value":$ring), [{ build($_builder, $_state, slot, ring, ::mlir::Value()); }]>];
  let assemblyFormat = "$ring (`slot` $index^)? attr-dict";
}

def Tile_FieldOp : Tile_Op<"field", [Pure]> {
  let summary = "The block held by a field of a full slot, or some of its rows";
  let description = [{
    View and coordinates are those of the copy that filled it: they say how far inside the field the data starts. The block has the
    field's rows (scales: entries) from `from` on, as many as its type says.
  }];
  let arguments = (ins Tile_Slot:$slot, I64Attr:$field, Tile_View:$view, Variadic<I32>:$coordinates,
                       DefaultValuedAttr<I64Attr, "0">:$from);
  let results = (outs Tile_Block:$result);
  let assemblyFormat = [{
    $slot `[` $field `]` (`from` $from^)? `=` $view `[` $coordinates `]` attr-dict `:` type($view) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_ReleaseOp : Tile_Op<"release"> {
  let summary = "This role reads the slot no more";
  let arguments = (ins Tile_Slot:$slot);
  let assemblyFormat = "$slot attr-dict";
}

//===-- Compute ------------------------------------------------------------------------------------------------===//

def Tile_AccOp : Tile_Op<"acc", [MemoryEffects<[MemAlloc]>]> {
  let summary = "Declare an accumulator; its contents are undefined";
  let results = (outs Tile_AccOrFragment:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Tile_FillOp : Tile_Op<"fill"> {
  let summary = "Set every element to zero";
  let arguments = (ins Tile_Acc:$acc);
  let assemblyFormat = "$acc attr-dict `:` type($acc)";
}

def Tile_DotOp : Tile_Op<"dot", [AttrSizedOperandSegments]> {
  let summary = "acc (+)= a · b^T, asynchronously; read acc only after `tile.wait`";
  let description = [{
    a is [m, k], b is [n, k] (leading unit extents allowed), both f8 in shared memory. `fresh` forgets what acc held. `rows` and `columns` scale the
    product, one value for every `row_granule` rows or `column_granule` columns; `exact` asks for promotion to fp32 registers after every 128 of K. Both are taken off
    by `tile-promote-dots`. `k [32, 32]` multiplies the 32 elements of K from element 32 on instead of all. `batch` computes one fragment of a warpgroup's share of an accumulator of type `of`,
    or the first columns of it where `acc` is narrower.
    Lowers to `wgmma.mma_async` (PTX ISA).
  }];
  let arguments = (ins Tile_AccOrFragment:$acc, Tile_Block:$a, Tile_Block:$b, Optional<Tile_Block>:$row_scales,
                       Optional<Tile_Block>:$column_scales, OptionalAttr<I64Attr>:$row_granule, OptionalAttr<I64Attr>:$column_granule,
                       OptionalAttr<I64Attr>:$k_begin, OptionalAttr<I64Attr>:$k_size,
                       UnitAttr:$fresh, UnitAttr:$exact, OptionalAttr<I64Attr>:$batch, OptionalAttr<TypeAttrOf<Tile_Acc>>:$of);
  let assemblyFormat = [{
    $acc `,` $a `,` $b (`rows` $row_scales^ `per` $row_granule `:` type($row_scales))?
    (`columns` $column_scales^ `per` $column_granule `:` type($column_scales))? (`k` `[` $k_begin^ `,` $k_size `]`)? (`batch` $batch^ `of` $of)? (`fresh` $fresh^)? (`exact` $exact^)? attr-dict
    `:` type($acc) `,` type($a) `,` type($b)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Elements of K this dot multiplies.
    int64_t getK() { return getKSize() ? static_cast<int64_t>(*getKSize()) : getA().getType().getShape().back(); }
  }];
}

def Tile_WaitOp : Tile_Op<"wait"> {
  let summary = "Wait until at most `pending` dots are under way; acc may then be read";
  let arguments = (ins Tile_AccOrFragment:$acc, DefaultValuedAttr<I64Attr, "0">:$pending);
  let assemblyFormat = "$acc (`pending` $pending^)? attr-dict `:` type($acc)";
}

def Tile_ReadOp : Tile_Op<"read", [MemoryEffects<[MemRead]>]> {
  let summary = "Bring the scales a thread needs for one fragment to registers";
  let description = [{
    `rows`: two values, for the thread's two rows of the fragment. `columns`: one value, where one scale covers all
    columns of the fragment, or one for each of the thread's n / 4 columns (of the first, where there are fewer values).
  }];
  let arguments = (ins Tile_Block:$block, Tile_SideAttr:$side, I64Attr:$granule, I64Attr:$batch, TypeAttrOf<Tile_Acc>:$of);
  let results = (outs Variadic<F32>:$values);
  let assemblyFormat = "$block $side `per` $granule `batch` $batch `of` $of attr-dict `:` type($block) `->` type($values)";
  let hasVerifier = 1;
}

def Tile_PromoteOp : Tile_Op<"promote", [AttrSizedOperandSegments]> {
  let summary = "into += from * row scale * column scale, in fp32 registers";
  let description = [{
    One fused multiply-add an element with the product of the two scales, rounded. Scales are blocks, or registers that `tile.read`
    filled (then `batch` is given).
  }];
  let arguments = (ins Tile_Acc:$into, Tile_AccOrFragment:$from, Optional<Tile_Block>:$row_scales, Optional<Tile_Block>:$column_scales,
                       Variadic<F32>:$row_values, Variadic<F32>:$column_values,
                       OptionalAttr<I64Attr>:$row_granule, OptionalAttr<I64Attr>:$column_granule, OptionalAttr<I64Attr>:$batch);
  let assemblyFormat = [{
    $into `,` $from (`rows` $row_scales^ `per` $row_granule `:` type($row_scales))?
    (`columns` $column_scales^ `per` $column_granule `:` type($column_scales))?
    (`row_values` `(` $row_values^ `:` type($row_values) `)`)? (`column_values` `(` $column_values^ `:` type($column_values) `)`)?
    (`batch` $batch^)? attr-dict `:` type($into) `,` type($from)
  }];
  let hasVerifier = 1;
}

def Tile_ScaleOp : Tile_Op<"scale", [AttrSizedOperandSegments]> {
  let summary = "acc *= row scale * column scale, in fp32 registers";
  let arguments = (ins Tile_Acc:$acc, Optional<Tile_Block>:$row_scales, Optional<Tile_Block>:$column_scales,
                       OptionalAttr<I64Attr>:$row_granule, OptionalAttr<I64Attr>:$column_granule);
  let assemblyFormat = [{
    $acc (`rows` $row_scales^ `per` $row_granule `:` type($row_scales))?
    (`columns` $column_scales^ `per` $column_granule `:` type($column_scales))? attr-dict `:` type($acc)
  }];
  let hasVerifier = 1;
}

def Tile_ReduceOp : Tile_Op<"reduce"> {
  let summary = "Add the accumulators of the other blocks of a cluster to that of the first, in the order of their ranks";
  let description = [{
    The sum is there for the first `rows` rows (with `transposed`: columns), in the first block; what acc holds besides, and in the
    other blocks, is undefined. All blocks have the same `rows`, and come here equally often. The layout attributes are
    assigned by `tile-allocate-shared`: a barrier for each warp lies at `shared_offset`, behind them a buffer for each of
    the other blocks, with room for `vectors` times four elements of each thread. An accumulator of more comes in pieces.

    ```mlir
    tile.reduce %acc rows %rows : !tile.acc<64x128>
    tile.store %acc -> %y[%m, %n] rows %rows by_first : !tile.acc<64x128>, !tile.view<?x1024xbf16>
    ```
  }];
  let arguments = (ins Tile_Acc:$acc, I32:$rows, UnitAttr:$transposed, OptionalAttr<I64Attr>:$shared_offset,
                       OptionalAttr<I64Attr>:$vectors);
  let assemblyFormat = "$acc `rows` $rows (`transposed` $transposed^)? attr-dict `:` type($acc)";
  let hasVerifier = 1;
}

def Tile_StoreOp : Tile_Op<"store"> {
  let summary = "Write the first `rows` rows of acc to a view, rounded to its element type";
  let description = [{
    Columns past the view's are left out. With `transposed` acc holds the transpose: its first `rows` columns are rows of the
    view. Without `staged` each thread writes what it holds, pairs where they are neighbours in the view; with it a warp's
    16 rows pass through shared memory (`stmatrix`) and leave as 16-byte stores. With `by_first` the first block of a cluster
    writes, the others do not.
  }];
  let arguments = (ins Tile_Acc:$acc, Tile_View:$view, I32:$row, I32:$column, I32:$rows, Optional<Tile_Scheduler>:$rows_by,
                       UnitAttr:$transposed, UnitAttr:$staged, UnitAttr:$by_first, OptionalAttr<I64Attr>:$shared_offset);
  let assemblyFormat = [{
    $acc `->` $view `[` $row `,` $column `]` `rows` $rows (`rows_by` $rows_by^)? (`transposed` $transposed^)? (`staged` $staged^)? (`by_first` $by_first^)? attr-dict
    `:` type($acc) `,` type($view)
  }];
  let hasVerifier = 1;
}

//===-- Quantization -------------------------------------------------------------------------------------------===//

def Tile_AmaxOp : Tile_Op<"amax"> {
  let summary = "Raise a word to the largest magnitude of a box";
  let description = [{
    The word holds the bits of a non-negative f32. NaN counts as 0, an infinity as the largest finite f32. The warps of
    the block meet in shared memory, so that one thread raises it; columns past the view's are left out. `vectors` is what a lane has under way, eight elements each.

    ```mlir
    tile.amax %x[%row, %column] rows %rows columns 1024 -> %word : !tile.view<?x7168xbf16>, !tile.view<1xi32>
    ```
  }];
  let arguments = (ins Tile_View:$from, I32:$row, I32:$column, I32:$rows, I64Attr:$columns, Tile_View:$word,
                       DefaultValuedAttr<I64Attr, "0">:$at, DefaultValuedAttr<I64Attr, "1">:$vectors,
                       OptionalAttr<I64Attr>:$shared_offset);
  let assemblyFormat = [{
    $from `[` $row `,` $column `]` `rows` $rows `columns` $columns `->` $word (`at` $at^)? (`vectors` $vectors^)? attr-dict
    `:` type($from) `,` type($word)
  }];
  let hasVerifier = 1;
}

def Tile_QuantizeOp : Tile_Op<"quantize"> {
  let summary = "Quantize a box of a view to fp8";
  let description = [{
    Scales are one of three. `per`: computed, one for every so many columns of a row, and written. `amax`: computed from
    the word that `tile.amax` raised, one for all, and written with the box at row 0 and column 0. Neither: read, one for all.
    A computed scale is max(amax, 1e-12) / largest, rounded up to a power of two where scales are f8E8M0FNU or four of them
    in an i32; codes are x / scale, divided and rounded to nearest even, saturating (docs/numerics.md).

    Scales lie at [row, group], with `mn_major` at [group, row]; four in a word count along the groups, and what is left of a
    row's last word is zero. Every warp of the block takes part; columns past the view's are left out.
    `vectors` is what a lane has under way, eight elements each; `warps` is how many neighbouring warps share a granule of
    more than 256 columns, or of a length that does not divide 256.

    ```mlir
    tile.quantize %x[%row, %column] rows %rows columns 1024 -> %y, %scales per 128 mn_major
        : !tile.view<?x7168xbf16> -> !tile.view<?x7168xf8E4M3FN>, !tile.view<56x?xf32>
    ```
  }];
  let arguments = (ins Tile_View:$from, I32:$row, I32:$column, I32:$rows, I64Attr:$columns, Tile_View:$into,
                       Tile_View:$scales, OptionalAttr<I64Attr>:$granule, Optional<Tile_View>:$amax,
                       DefaultValuedAttr<I64Attr, "0">:$at, UnitAttr:$mn_major, DefaultValuedAttr<I64Attr, "1">:$vectors,
                       DefaultValuedAttr<I64Attr, "1">:$warps, OptionalAttr<I64Attr>:$shared_offset);
  let assemblyFormat = [{
    $from `[` $row `,` $column `]` `rows` $rows `columns` $columns `->` $into `,` $scales (`per` $granule^)?
    (`amax` $amax^ `:` type($amax))? (`at` $at^)? (`mn_major` $mn_major^)? (`vectors` $vectors^)? (`warps` $warps^)? attr-dict
    `:` type($from) `->` type($into) `,` type($scales)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// True where whole warps reduce a granule, not a few lanes.
    bool isWideGranule() { return getGranule() && (*getGranule() > 256 || 256 % *getGranule() != 0); }
  }];
}

//===-- Checks of a checked kernel -----------------------------------------------------------------------------===//

def Tile_CheckRoutingOp : Tile_Op<"check_routing", [AttrSizedOperandSegments]> {
  let summary = "Report routing that a correct caller does not pass";
  let description = [{
    `grouped`: boundaries outside [0, S], or below the one before. `masked`: counts outside [0, S / experts]. `batched`: ids
    below -1 and, with a map, ids past its end and entries of it outside [-1, experts). What is found goes to `errors`, the words
    of `CheckKind` (runtime/Checks.h); nothing else changes. One block looks, the others go on.

    ```mlir
    tile.check_routing grouped(%off : !tile.view<33xi32>) experts 32 into %errors : !tile.view<8xi64>
    ```
  }];
  let arguments = (ins Optional<Tile_View>:$offsets, Optional<Tile_View>:$counts, Optional<Tile_View>:$ids,
                       Optional<Tile_View>:$map, I64Attr:$experts, Tile_View:$errors);
  let assemblyFormat = [{
    (`grouped` `(` $offsets^ `:` type($offsets) `)`)? (`masked` `(` $counts^ `:` type($counts) `)`)?
    (`batched` `(` $ids^ `:` type($ids) `)`)? (`map` `(` $map^ `:` type($map) `)`)? `experts` $experts
    `into` $errors attr-dict `:` type($errors)
  }];
  let hasVerifier = 1;
}

def Tile_CheckScalesOp : Tile_Op<"check_scales", [AttrSizedOperandSegments]> {
  let summary = "Report scales of a box that are not positive and finite";
  let description = [{
    The computing warps read the box of the view at the given coordinates from global memory; outside the view nothing is read. With
    `rows` only the first that many entries along dimension `row_dimension` are looked at. `rows_by` and `items` are those of the
    load beside which the op stands; of packed scales byte `byte` of each word is looked at. What is found goes to word `kind`
    of `errors`.

    ```mlir
    tile.check_scales %s[%k, %m0] box [1, 128] rows %rows along 1 kind 5 into %errors : !tile.view<56x?xf32>, !tile.view<8xi64>
    ```
  }];
  let arguments = (ins Tile_View:$view, Variadic<I32>:$coordinates, DenseI64ArrayAttr:$box, Optional<I32>:$rows,
                       OptionalAttr<I64Attr>:$row_dimension, Optional<Tile_Scheduler>:$rows_by, OptionalAttr<Tile_Items>:$items,
                       Optional<I32>:$byte, I64Attr:$kind, Tile_View:$errors);
  let assemblyFormat = [{
    $view `[` $coordinates `]` `box` $box (`rows` $rows^ `along` $row_dimension)? (`rows_by` $rows_by^)?
    (`items` $items^)? (`byte` $byte^)? `kind` $kind `into` $errors attr-dict `:` type($view) `,` type($errors)
  }];
  let hasVerifier = 1;
}

#endif
