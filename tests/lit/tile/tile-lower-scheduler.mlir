// Schedulers become loops over tile numbers.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-lower-scheduler))' -split-input-file -verify-diagnostics | FileCheck %s

// A plain dense GEMM: block b takes tiles b, b + blocks, …; all rows are one group. The launch learns how large its grid may be.
// CHECK-LABEL: tile.kernel @dense
// CHECK-SAME: tile.grid = {columns = 200 : i64, experts = 1 : i64, tile_m = 64 : i64, tile_n = 128 : i64
tile.kernel @dense("y" %y: !tile.view<?x200xf32>) warpgroups 1 {
  %q = tile.scheduler tile [64, 128] columns 200 experts 1 order static raster 1 {shared_offset = 0 : i64}
  // CHECK: %[[S:.*]] = tile.rows
  // CHECK: %[[WALK:.*]] = ptx.regs {ptx.name = "walk"}
  // CHECK: %[[BLOCK:.*]] = ptx.block_index
  // CHECK: ptx.regs_set %[[BLOCK]], %[[WALK]][0]
  // CHECK: ptx.regs_set %[[S]], %[[WALK]][3]
  // CHECK: scf.while
  // CHECK: scf.while
  // CHECK: %[[ROW:.*]] = arith.addi {{.*}} {ptx.name = "tileRow"} : i32
  // CHECK: %[[COLUMN:.*]] = arith.muli {{.*}} {ptx.name = "tileColumn"} : i32
  // CHECK: %[[IN:.*]] = arith.minsi {{.*}} {ptx.name = "rowsInTile"} : i32
  // CHECK: tile.store %{{.*}} -> %{{.*}}[%[[ROW]], %[[COLUMN]]] rows %[[IN]]
  // CHECK: %[[BLOCKS:.*]] = ptx.grid_size
  // CHECK: %[[NEXT:.*]] = arith.addi %{{.*}}, %[[BLOCKS]] : i32
  // CHECK-NEXT: ptx.regs_set %[[NEXT]], %[[WALK]][0]
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<64x128>
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<64x128>, !tile.view<?x200xf32>
  }
}

// -----

// Boundaries of experts come to shared memory, clamped to [0, S], before the tiles; an expert is clamped as well. An early draw stays where it is.
// CHECK-LABEL: tile.kernel @grouped
tile.kernel @grouped("offsets" %o: !tile.view<5xi32>, "y" %y: !tile.view<?x128xf32>) warpgroups 1 {
  // CHECK: %[[S:.*]] = tile.rows
  // CHECK: scf.for
  // CHECK: %[[O:.*]] = ptx.ld_global_i32
  // CHECK: %[[ZERO:.*]] = arith.constant 0 : i32
  // CHECK: %[[LOW:.*]] = arith.maxsi %[[O]], %[[ZERO]] : i32
  // CHECK: %[[CLAMPED:.*]] = arith.minsi %[[LOW]], %[[S]] : i32
  // CHECK: ptx.st_shared_i32 %{{.*}}, %[[CLAMPED]]
  // CHECK: tile.sync
  %q = tile.scheduler grouped(%o) tile [64, 128] columns 128 experts 4 order static raster 1 zeroed {shared_offset = 0 : i64} : !tile.view<5xi32>
  tile.sync
  // CHECK: arith.andi {{.*}} {ptx.name = "isOwned"} : i1
  // CHECK: ptx.grid_size
  // CHECK: scf.while
  // CHECK: tile.store
  // CHECK-NOT: ptx.grid_size
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<64x128>
    tile.next_tile
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<64x128>, !tile.view<?x128xf32>
  }
}

// -----

// With a queue the producer asks the counter as the tile begins, and hands the answer to the consumers through shared memory.
// CHECK-LABEL: tile.kernel @queue
tile.kernel @queue("workspace" %c: !tile.view<1xi32>) warpgroups 1 {
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order queue counter (%c : !tile.view<1xi32>) raster 1 {shared_offset = 0 : i64}
  // CHECK-COUNT-4: ptx.mbarrier_init
  // CHECK: tile.role {{ *}}producer
  // The answer is first used when the tile is over.
  // CHECK: %[[DRAWN:.*]] = ptx.atom_add_global_i32
  // CHECK-NOT: %[[DRAWN]]
  // CHECK: tile.rows
  // CHECK: %[[NUMBER:.*]] = arith.addi %[[DRAWN]]
  // CHECK: ptx.mbarrier_wait
  // CHECK: ptx.st_shared_i32 %{{.*}}, %[[NUMBER]]
  // CHECK: ptx.mbarrier_arrive
  tile.role producer registers 0 {
    tile.for_tiles %q -> %e, %m, %n, %rows, %live {
      %s = tile.rows
    }
  }
  // CHECK: tile.role {{ *}}consumer
  // CHECK-NOT: ptx.atom_add_global_i32
  // CHECK: ptx.mbarrier_wait
  // CHECK: ptx.ld_shared_i32
  // CHECK: ptx.mbarrier_arrive
  tile.role consumer registers 0 {
    tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    }
  }
}

// -----

// A kernel without a scheduler stays as it is.
// CHECK-LABEL: tile.kernel @none
tile.kernel @none() warpgroups 1 {
  // CHECK-NEXT: tile.sync
  // CHECK-NEXT: }
  tile.sync
}

// -----

// Boundaries and queue need their place.
tile.kernel @noPlace() warpgroups 1 {
  // expected-error@+1 {{'tile.scheduler' op has no shared memory; run tile-allocate-shared first}}
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
}

// -----

// With tails the rows of a group make a tile for all of 64 but the last 8 of the rest, and at least one; the last tile has up to 72.
// CHECK-LABEL: tile.kernel @tails
tile.kernel @tails("y" %y: !tile.view<?x128xf32>) warpgroups 1 {
  %q = tile.scheduler tile [64, 128] tail 8 columns 128 experts 1 order static raster 1 {shared_offset = 0 : i64}
  // CHECK: scf.while
  // CHECK: %[[COUNT:.*]] = arith.subi
  // CHECK: %[[ONE:.*]] = arith.minsi %[[COUNT]], %c1_i32
  // CHECK: %[[MORE:.*]] = arith.addi %[[COUNT]], %c-8_i32
  // CHECK: arith.maxsi %[[MORE]], %[[ONE]] : i32
  // CHECK: %[[LIMIT:.*]] = arith.constant 72 : i32
  // CHECK: %[[IS_MORE:.*]] = arith.cmpi sgt, %[[LEFT:.*]], %[[LIMIT]] : i32
  // CHECK: arith.select %[[IS_MORE]], %c64_i32{{.*}}, %[[LEFT]] {ptx.name = "rowsInTile"} : i32
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<64x128>
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<64x128>, !tile.view<?x128xf32>
  }
}
