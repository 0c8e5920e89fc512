// What blocks of a cluster do together, lowered: who fills and empties a slot, who draws, where all meet.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-lower-copies,tile-lower-ring))' -split-input-file -allow-unregistered-dialect | FileCheck %s --check-prefix=RING
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-allocate-shared,tile-lower-scheduler,tile-lower-roles))' -split-input-file -allow-unregistered-dialect | FileCheck %s --check-prefix=TILES
// RUN: moejit-opt %s -split-input-file -allow-unregistered-dialect | moejit-opt -split-input-file -allow-unregistered-dialect | FileCheck %s --check-prefix=TEXT

// A block brings its half of the rows to both, at the same place, and the slot waits for both halves; warps of both blocks empty it, 4 each.
// RING-LABEL: tile.kernel @slot
// RING-SAME: {box = array<i64: 128, 32>, extents = array<i64: 512, -9223372036854775808>, operand = "x"
// RING: %[[RANK:.*]] = ptx.cluster_rank
// RING: scf.if
// RING: %[[WARPS:.*]] = arith.constant 8 : i32
// RING: ptx.mbarrier_init %{{.*}}, %[[WARPS]]
// RING: ptx.mbarrier_wait
// RING-NEXT: %[[BYTES:.*]] = arith.constant 8192 : i32
// RING-NEXT: ptx.mbarrier_expect_tx %{{.*}}, %[[BYTES]]
// RING: %[[PART:.*]] = arith.muli %[[RANK]], %{{.*}} {ptx.name = "firstOfPart"}
// RING: %[[ROW:.*]] = arith.addi %{{.*}}, %[[PART]] : i32
// RING: %[[MASK:.*]] = arith.constant 3 : i32
// RING: ptx.tma_load %{{.*}}, %{{.*}}[%{{.*}}, %[[ROW]]], %{{.*}} policy %{{.*}} multicast %[[MASK]]
// RING: %[[BLOCKS:.*]] = arith.constant 2 : i32
// RING: arith.cmpi slt, %[[LANE:.*]], %[[BLOCKS]] : i32
// RING: ptx.mbarrier_arrive_cluster %{{.*}}, %[[LANE]]
// TEXT-LABEL: tile.kernel @slot
// TEXT-SAME: attributes {cluster = 2 : i64}
// TEXT: tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>] multicast
// TEXT: tile.copy %{{.*}} -> %{{.*}}[0] multicast {evict_first} : <?x512xf8E4M3FN>
tile.kernel @slot("x" %x: !tile.view<?x512xf8E4M3FN>) warpgroups 1 attributes {cluster = 2 : i64} {
  %m = tile.rows
  %k = arith.constant 128 : i32
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>] multicast {barrier_offset = 8192 : i64, field_offsets = array<i64: 0>, shared_offset = 0 : i64, stride = 9216 : i64}
  %s = tile.acquire %ring
  tile.copy %x[%m, %k] -> %s[0] multicast {evict_first} : !tile.view<?x512xf8E4M3FN>
  %f = tile.await %ring
  tile.release %f
}

// -----

// Pairs of tiles are walked and drawn. The first block's producer draws and tells both blocks, the other one's is told; all arrive at
// the first block's barrier: 4 warps and a producer of the other one's, and 4 warps. The third tile of columns is alone: its neighbour takes it, without rows.
// TILES-LABEL: tile.kernel @queue
// TILES: %[[RANK:.*]] = ptx.cluster_rank
// TILES: %[[READERS:.*]] = arith.constant 9 : i32
// TILES: ptx.mbarrier_init %{{.*}}, %[[READERS]]
// TILES: ptx.cluster_arrive
// TILES-NEXT: ptx.cluster_wait
// TILES: %[[BLOCK:.*]] = ptx.block_index
// TILES: %[[PAIR:.*]] = arith.shrsi %[[BLOCK]], %{{.*}} : i32
// TILES: ptx.regs_set %[[PAIR]], %{{.*}}[0]
// TILES: ptx.atom_add_global_i32
// TILES: %[[IDLE:.*]] = arith.cmpi sgt, %[[COLUMN:.*]], %{{.*}} {ptx.name = "isIdle"}
// TILES: arith.minsi %[[COLUMN]], %{{.*}} {ptx.name = "tileColumn"}
// TILES: arith.select %[[IDLE]], %{{.*}}, %{{.*}} {ptx.name = "rowsInTile"}
// TILES: ptx.mbarrier_wait
// TILES: ptx.mbarrier_expect_tx
// TILES-COUNT-2: ptx.st_async_i32
// TILES: ptx.mbarrier_wait_cluster
// TILES: ptx.ld_shared_i32
// TILES: ptx.mbarrier_arrive_cluster
// The other role waits alike, and draws nothing.
// TILES-NOT: ptx.atom_add_global_i32
// TILES: ptx.mbarrier_wait_cluster
// TILES: ptx.mbarrier_arrive_cluster
// TILES: ptx.syncwarp
// TILES-NEXT: ptx.cluster_arrive
// TILES-NEXT: ptx.cluster_wait
// TILES-NEXT: }
// TEXT-LABEL: tile.kernel @queue
// TEXT: raster 1 cluster {{ *}}columns
tile.kernel @queue("workspace" %c: !tile.view<1xi32>) warpgroups 1 attributes {cluster = 2 : i64} {
  %q = tile.scheduler tile [64, 128] columns 384 experts 1 order queue counter (%c : !tile.view<1xi32>) raster 1 cluster columns
  tile.role producer registers 0 {
    tile.for_tiles %q -> %e, %m, %n, %rows, %live {
      "use"(%m, %n, %rows) : (i32, i32, i32) -> ()
    }
  }
  tile.role consumer registers 0 {
    tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    }
  }
}

// -----

// Row tiles in pairs: the last of an expert may be alone. Where all blocks meet already, they do not meet twice.
// TILES-LABEL: tile.kernel @rows
// TILES-COUNT-1: ptx.cluster_wait
// TILES-NOT: ptx.cluster_wait
// TILES: arith.cmpi slt, %[[LAST:.*]], %[[ROW:.*]] {ptx.name = "isIdle"}
// TILES: arith.minsi %[[ROW]], %[[LAST]] {ptx.name = "tileRow"}
// TILES: ptx.cluster_wait
// TILES-NEXT: }
tile.kernel @rows("offsets" %o: !tile.view<4xi32>) warpgroups 1 attributes {cluster = 2 : i64} {
  %q = tile.scheduler grouped(%o) tile [64, 128] columns 128 experts 3 order static raster 4 cluster rows : !tile.view<4xi32>
  tile.sync cluster
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    "use"(%m, %n, %rows) : (i32, i32, i32) -> ()
  }
}
