// Passes over the `tile` dialect. Each is one schedule decision, right on tile IR from anywhere.
#ifndef MOEJIT_TILE_PASSES
#define MOEJIT_TILE_PASSES

include "mlir/Pass/PassBase.td"

class TilePass<string argument> : Pass<argument, "::moejit::tile::KernelOp"> {
  let dependentDialects = ["::moejit::tile::TileDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect"];
}
class TileLoweringPass<string argument> : Pass<argument, "::moejit::tile::KernelOp"> {
  let dependentDialects = ["::moejit::tile::TileDialect", "::moejit::ptx::PtxDialect", "::mlir::scf::SCFDialect",
                           "::mlir::arith::ArithDialect"];
}

//===-- Required: from what to how -----------------------------------------------------------------------------===//

def MoeLowerToTile : Pass<"moe-lower-to-tile", "::mlir::ModuleOp"> {
  let summary = "Compute each moe.kernel as output tiles with steps along K";
  let description = [{
    The plainest tile program of a GEMM: every tile loads its operands step by step, multiplies, scales and stores. Scales that
    vary along K belong to the dot; the others are applied once at the end. Run moe-expand-scales first.
  }];
  let options = [Option<"tileM", "tile-m", "int64_t", "128", "Rows of a tile">,
                 Option<"tileN", "tile-n", "int64_t", "128", "Columns of a tile">,
                 Option<"tileK", "tile-k", "int64_t", "128", "Elements of K in a step">,
                 Option<"warpgroups", "warpgroups", "int64_t", "2", "Warpgroups that issue dots">];
  let dependentDialects = ["::moejit::tile::TileDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect"];
}

def MoeLowerQuantize : Pass<"moe-lower-quantize", "::mlir::ModuleOp"> {
  let summary = "Compute each moe.kernel that quantizes as boxes of rows and columns";
  let description = [{
    Each tile is one `tile.quantize`. One dynamic scale per tensor takes two phases: `tile.amax` of every box in a
    `tile.grid_for`, then the tiles. Kernels that hold a moe.gemm are left alone.
  }];
  let options = [Option<"tileM", "tile-m", "int64_t", "32", "Rows of a tile">,
                 Option<"tileN", "tile-n", "int64_t", "1024", "Columns of a tile; a tile has whole granules all the same">,
                 Option<"warpgroups", "warpgroups", "int64_t", "4", "Warpgroups of a block">];
  let dependentDialects = ["::moejit::tile::TileDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect"];
}

//===-- Required: values to staged memory and registers --------------------------------------------------------===//

def TilePromoteDots : TilePass<"tile-promote-dots"> {
  let summary = "Move scaled and exact dots to a temporary accumulator that is promoted to fp32 registers";
  let description = [{
    Required: no instruction scales a product, and the tensor core's own accumulator loses bits over long K.

    ```mlir
    tile.dot %acc, %a, %b rows %sa per 1 : … columns %sb per 128 : … exact
    tile.wait %acc
    ```
    becomes
    ```mlir
    tile.dot %t, %a, %b fresh
    tile.wait %t
    tile.promote %acc, %t rows %sa per 1 : … columns %sb per 128 : …
    ```
  }];
}
def TileStageLoads : TilePass<"tile-stage-loads"> {
  let summary = "Give the operands of dots, and scales that can be copied in bulk, a ring in shared memory";
  let description = [{
    Required: `wgmma` reads shared memory. The ring has one slot: one thread fills it, every warp waits for it.
    Loads of scales that bulk copies cannot bring stay, and are read from global memory where they are used.
  }];
}

//===-- Optional: each makes the kernel faster, none makes it right --------------------------------------------===//

def TileSwapOperands : TilePass<"tile-swap-operands"> {
  let summary = "Multiply the other way round, so that rows of the result are columns of the accumulator";
  let description = [{
    A wgmma has 64 rows, but any multiple of 8 columns. For whole accumulators that nothing divides yet, and all of them or none.

    ```mlir
    %acc = tile.acc : !tile.acc<64x256>
    tile.dot %acc, %x, %w
    tile.store %acc -> %y[%m, %n] rows %rows
    ```
    becomes
    ```mlir
    %acc = tile.acc : !tile.acc<256x64>
    tile.dot %acc, %w, %x
    tile.store %acc -> %y[%m, %n] rows %rows transposed
    ```
  }];
}
def TileTailRows : TilePass<"tile-tail-rows"> {
  let summary = "Multiply the last few rows of an expert as columns, beside the rows of its last tile";
  let description = [{
    A wgmma has 64 rows, but any multiple of 8 columns. Where an expert has a few rows more than whole tiles, the last tile takes
    them too: fields of x and its scales hold that many more rows, and the weights are multiplied by them while the last batch of a
    product is promoted, into an accumulator that is stored transposed. For kernels whose products are all promoted, and that nothing has swapped.

    ```mlir
    %q = tile.scheduler (%off) tile [128, 256] columns 4096 …
    tile.dot %part, %x, %w fresh
    tile.wait %part
    tile.promote %acc, %part rows %xs per 1 columns %ws per 128
    tile.store %acc -> %y[%m, %n] rows %rows
    ```
    becomes
    ```mlir
    %q = tile.scheduler (%off) tile [128, 256] tail 16 columns 4096 …
    tile.dot %part, %x, %w fresh
    %x2 = tile.field %slot[0] from 128 = … -> <16x128xf8E4M3FN>
    scf.if %moreThan128 { tile.dot %few, %w, %x2 batch 0 of !tile.acc<256x16> fresh … }
    scf.if %moreThan128 { tile.wait %part pending 2 } else { tile.wait %part }
    tile.promote %acc, %part rows %xs per 1 columns %ws per 128
    scf.if %moreThan128 { tile.wait %few …; tile.promote %tail, %few rows %ws per 128 columns %xs2 per 1 batch 0 … }
    tile.store %acc -> %y[%m, %n] rows %rows
    tile.store %tail -> %y[%m + 128, %n] rows %rows - 128 transposed
    ```
  }];
  let options = [Option<"rows", "rows", "int64_t", /*default=*/"16", "Rows a tile takes besides its own, a multiple of 8">];
}
def TileFitColumns : TilePass<"tile-fit-columns"> {
  let summary = "Give tiles of few rows dots of few columns, where rows of the result are columns of the accumulator";
  let description = [{
    The loop over K is there once for each width, and a tile takes the narrowest that holds its rows.

    ```mlir
    scf.for … { tile.dot %t, %w, %x batch 0 of !tile.acc<128x64> fresh; tile.wait %t; tile.promote %acc, %t … batch 0 }
    tile.store %acc -> %y[%m, %n] rows %rows transposed
    ```
    becomes, with `step = 32`,
    ```mlir
    scf.if %rows <= 32 {
      scf.for … { tile.dot %narrow, %w, %x batch 0 of !tile.acc<128x64> fresh … }
    } else {
      scf.for … { tile.dot %t, %w, %x batch 0 of !tile.acc<128x64> fresh … }
    }
    ```
    with a `!tile.fragment<n = 32>` for `%narrow`.
  }];
  let options = [Option<"step", "step", "int64_t", "32", "Columns from one width to the next, a multiple of 8">];
}
def TileSplitColumns : TilePass<"tile-split-columns"> {
  let summary = "Divide the columns of accumulators, not the rows, among the warpgroups";
  let options = [Option<"n", "n", "int64_t", "0", "Columns of one fragment; 0: as many as leave registers for a second">];
}
def TileBatchDots : TilePass<"tile-batch-dots"> {
  let summary = "Compute and promote one fragment at a time, so that one temporary serves them all";
}
def TileSkipEmptyRows : TilePass<"tile-skip-empty-rows"> {
  let summary = "Issue no dot for fragments whose rows all lie past the rows of the tile";
}
def TileUnswitchRows : TilePass<"tile-unswitch-rows"> {
  let summary = "Decide once a tile, not once a step, which fragments are empty";
  let description = [{
    A branch around a dot whose condition does not change along K moves out of the loop, which is then there twice.

    ```mlir
    scf.for … { tile.dot … batch 0; scf.if %c { tile.dot … batch 1 } }
    ```
    becomes
    ```mlir
    scf.if %c { scf.for … { tile.dot … batch 0; tile.dot … batch 1 } } else { scf.for … { tile.dot … batch 0 } }
    ```
  }];
}
def TileReadScales : TilePass<"tile-read-scales"> {
  let summary = "Read the scales of a promotion before the wait for its dot";
}
def TileSpecializeWarps : TilePass<"tile-specialize-warps"> {
  let summary = "Give loading to a producer warp of its own and computing to consumer warpgroups";
  let options = [Option<"producerRegisters", "producer-registers", "int64_t", "40", "Registers a producer thread keeps">,
                 Option<"consumerRegisters", "consumer-registers", "int64_t", "232", "Registers a consumer thread takes">];
}
def TileDeepenRing : TilePass<"tile-deepen-ring"> {
  let summary = "Give rings more slots, so that loads run ahead of dots";
  let options = [Option<"stages", "stages", "int64_t", "4", "Slots of each ring">];
}
def TileHoistRelease : TilePass<"tile-hoist-release"> {
  let summary = "Release a slot as soon as its last dot is done, before the promotion that follows";
}
def TilePrefetchTile : TilePass<"tile-prefetch-tile"> {
  let summary = "Draw the next tile before this one is stored";
}
def TileUnrollSlots : Pass<"tile-unroll-slots", "::moejit::tile::KernelOp"> {
  let summary = "Unroll loops by the slots of their ring, so that slots are constants";
  let description = [{
    For a loop that awaits one slot a round, a multiple of the ring's slots in all: then every run of it starts at the first
    slot. Only the loops with most dots; others are left alone. Descriptors and addresses of constant slots cost no
    instructions (measured: 2 to 4 % on an H200).

    ```mlir
    scf.for %i = %c0 to %c56 step %c1 { %s = tile.await %ring … }
    ```
    becomes, for a ring of 4,
    ```mlir
    scf.for %t = %c0 to %c56 step %c4 { ptx.unroll %u = 0 to 4 step 1 { %i = arith.addi %t, %u … %s = tile.await %ring slot %u … } }
    ```
  }];
  let dependentDialects = ["::moejit::tile::TileDialect", "::moejit::ptx::PtxDialect", "::mlir::scf::SCFDialect",
                           "::mlir::arith::ArithDialect"];
}

def TileStageStores : TilePass<"tile-stage-stores"> {
  let summary = "Pass 16-bit results through shared memory and store 16 bytes a thread";
}
def TileHintWeights : TilePass<"tile-hint-weights"> {
  let summary = "Load weights with the L2 policy evict_first";
  let options = [Option<"operand", "operand", "std::string", "\"w\"", "Launch operand whose loads are hinted">];
}
def TileLoadLiveRows : TilePass<"tile-load-live-rows"> {
  let summary = "Load only the rows of a tile that its expert owns";
  let description = [{
    Gathered rows come one by one, those of other copies so many at a time as `together` says.

    ```mlir
    tile.copy %x[%row, %k] -> %s[0]
    ```
    becomes
    ```mlir
    tile.copy %x[%row, %k] first %rows per 16 -> %s[0]
    ```
  }];
  let options = [Option<"together", "together", "int64_t", "0", "Rows of a copy that gathers none, a multiple of 8; 0: all at once">];
}
def TileRaster : TilePass<"tile-raster"> {
  let summary = "Let neighbouring row tiles share one sweep over the columns";
  let options = [Option<"rows", "rows", "int64_t", "16", "Row tiles of one sweep">];
}
def TileShareSm : TilePass<"tile-share-sm"> {
  let summary = "Let blocks share an SM, so that one stores or waits while another multiplies";
  let description = [{
    Sets `blocks_per_sm` of a kernel that has none: the launch has as many blocks for each SM, and each has its part of the
    registers. Whether the ring leaves shared memory for more than one is the plan's concern: where it does not, blocks take turns.
    Not after warps were given roles, which divide the registers of a block.

    ```mlir
    tile.kernel @k(…) warpgroups 1 { … }
    ```
    becomes
    ```mlir
    tile.kernel @k(…) warpgroups 1 attributes {blocks_per_sm = 2} { … }
    ```
  }];
  let options = [Option<"blocks", "blocks", "int64_t", "2", "Blocks of an SM">];
}
def TileMulticast : TilePass<"tile-multicast"> {
  let summary = "Pair blocks in clusters that load what their neighbouring tiles share once, for both";
  let description = [{
    Blocks that take neighbouring column tiles share the rows of x, those that take neighbouring row tiles of an expert share
    the columns of w: each loads half of such a box and multicasts it, so that a byte leaves L2 once for both. Only
    where every slot is filled alike in both blocks, and some matrix is the same for both.

    ```mlir
    tile.scheduler … raster 16
    tile.ring stages 4 […]
    tile.copy %x[%row, %k] -> %s[0]
    ```
    becomes
    ```mlir
    tile.scheduler … raster 16 cluster columns
    tile.ring stages 4 […] multicast
    tile.copy %x[%row, %k] -> %s[0] multicast
    ```
    in a kernel with `cluster = 2`.
  }];
  let options = [Option<"blocks", "blocks", "int64_t", "2", "Blocks of a cluster">,
                 Option<"side", "side", "std::string", "\"columns\"", "Along which side of the output they are neighbours: columns or rows">];
}
def TileSplitK : TilePass<"tile-split-k"> {
  let summary = "Let the blocks of a cluster take a part of one tile's steps along K each, and add up in the first of them";
  let description = [{
    For launches of fewer tiles than there are processors. Part r of S is steps n * r / S to n * (r + 1) / S. Sums are added in
    the order of the parts, so a launch has one result. For one loop over the tiles of which one loop has all dots, from step 0 on,
    and that stores no other rows than those of its tiles.

    ```mlir
    tile.scheduler … raster 1
    scf.for %i = %c0 to %steps step %c1 { … tile.promote %acc, %part }
    tile.store %acc -> %y[%m, %n] rows %rows
    ```
    becomes, in a kernel with `cluster = 4`,
    ```mlir
    tile.scheduler … raster 1 cluster k
    %rank = tile.cluster_rank
    scf.for %i = %steps * %rank / 4 to %steps * (%rank + 1) / 4 step %c1 { … tile.promote %acc, %part }
    tile.reduce %acc rows %rows
    tile.store %acc -> %y[%m, %n] rows %rows by_first
    ```
  }];
  let options = [Option<"blocks", "blocks", "int64_t", "2", "Blocks of a cluster, a power of two">];
}
def TileUseQueue : TilePass<"tile-use-queue"> {
  let summary = "Hand out tiles from an atomic counter, so that uneven tiles even out";
}
def TileCleanWorkspace : TilePass<"tile-clean-workspace"> {
  let summary = "Leave the words zero that were zero when the kernel began";
  let description = [{
    The last block to end sets counters of tiles and boxes, and what else a launch zeroes, to zero. A launch that follows then
    zeroes nothing, where its caller says that the words are clean. Run it when no pass adds such words any more.

    ```mlir
    tile.role producer registers 40 { tile.for_tiles %tiles -> … }
    ```
    becomes
    ```mlir
    tile.role producer registers 40 { tile.for_tiles %tiles -> …
      tile.clean %workspace counted in %workspace at 1 : !tile.view<2xi32> in !tile.view<2xi32> }
    ```
    Where warps are alike one of their threads does so.
  }];
}

def TileCheckRouting : TilePass<"tile-check-routing"> {
  let summary = "Report boundaries, counts and ids that a correct caller does not pass";
  let description = [{
    Adds the launch operand `errors` and a `tile.check_routing` of what the scheduler reads. Results stay the same.
  }];
}
def TileCheckScales : TilePass<"tile-check-scales"> {
  let summary = "Report scales of owned rows and their experts that are not positive and finite";
  let description = [{
    Adds the launch operand `errors`, and a `tile.check_scales` beside each load, or field, of a view of scales. Results stay
    the same. Run it last: passes that come later would have to keep the two together.
  }];
}
def TileDependentLaunch : TilePass<"tile-dependent-launch"> {
  let summary = "Let blocks start while the kernel before still ends, and wait for it before they touch global memory";
  let description = [{
    What a block does before it needs memory, such as setting up the barriers of its rings, is then hidden behind the last tiles of the
    kernel before, and so is what a launch costs the device. The next launch may do the same with this one.

    ```mlir
    %q = tile.scheduler …
    %ring = tile.ring …
    ```
    becomes
    ```mlir
    tile.launch_dependents
    %ring = tile.ring …
    tile.wait_grid
    %q = tile.scheduler …
    ```
  }];
}

def TileDeepenQuantize : TilePass<"tile-deepen-quantize"> {
  let summary = "Keep more vectors of a row under way in each lane of a quantization";
  let options = [Option<"vectors", "vectors", "int64_t", "4", "Vectors of eight elements a lane has under way">];
}
def TileShareGranules : TilePass<"tile-share-granules"> {
  let summary = "Let neighbouring warps quantize a long granule together";
  let options = [Option<"warps", "warps", "int64_t", "8", "Warps that share a granule, a power of two">];
}

//===-- Required: lowering to ptx ------------------------------------------------------------------------------===//

def TileAllocateShared : TilePass<"tile-allocate-shared"> {
  let summary = "Assign shared memory to rings, queues and store buffers, and meet once they are set up";
  let options = [Option<"limitBytes", "limit", "int64_t", "232448", "Shared memory a block may have">];
}
def TileLowerChecks : TileLoweringPass<"tile-lower-checks"> {
  let summary = "Lower tile.check_routing and tile.check_scales to loads, comparisons and reductions";
}
def TileLowerQuantize : TileLoweringPass<"tile-lower-quantize"> {
  let summary = "Lower tile.amax and tile.quantize to vector loads, shuffles, divisions and conversions";
}
def TileLowerStores : TileLoweringPass<"tile-lower-stores"> {
  let summary = "Lower tile.store to conversions and masked global stores";
}
def TileLowerReduce : TileLoweringPass<"tile-lower-reduce"> {
  let summary = "Lower tile.reduce to stores to the first block of the cluster, and additions there";
}
def TileLowerDots : TileLoweringPass<"tile-lower-dots"> {
  let summary = "Lower tile.dot and tile.wait to wgmma";
}
def TileLowerScales : TileLoweringPass<"tile-lower-scales"> {
  let summary = "Lower tile.read, tile.promote and tile.scale to register arithmetic";
}
def TileLowerAccumulators : TileLoweringPass<"tile-lower-accumulators"> {
  let summary = "Lower tile.acc and tile.fill to register arrays";
}
def TileLowerCopies : TileLoweringPass<"tile-lower-copies"> {
  let summary = "Lower tile.copy to bulk tensor copies and their tensor maps";
}
def TileLowerRing : TileLoweringPass<"tile-lower-ring"> {
  let summary = "Lower rings to mbarriers with phases";
}
def TileLowerGrid : TileLoweringPass<"tile-lower-grid"> {
  let summary = "Lower tile.grid_for to draws from a counter and a wait for all that was drawn, tile.clean to a count and stores";
}
def TileLowerScheduler : TileLoweringPass<"tile-lower-scheduler"> {
  let summary = "Lower tile.scheduler and tile.for_tiles to loops over tile numbers";
}
def TileLowerRoles : TileLoweringPass<"tile-lower-roles"> {
  let summary = "Lower roles, tile.once, tile.sync, tile.warpgroup and tile.cluster_rank to branches on the thread index, tile.wait_grid to its instruction";
}
def TileLowerKernel : Pass<"tile-lower-kernel", "::mlir::ModuleOp"> {
  let summary = "Turn a tile.kernel whose body is lowered into a ptx.kernel with its parameters";
  let dependentDialects = ["::moejit::tile::TileDialect", "::moejit::ptx::PtxDialect", "::mlir::scf::SCFDialect",
                           "::mlir::arith::ArithDialect"];
}

#endif
