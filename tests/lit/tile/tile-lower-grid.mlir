// Blocks share work out by a counter and wait for what others drew.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-allocate-shared,tile-lower-grid))' -split-input-file -verify-diagnostics | FileCheck %s

// A block draws before it waits: nobody waits for a block that has not started. Every draw is by one thread, for all.
// CHECK-LABEL: tile.kernel @share
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %{{.*}} {ptx.name = "isFirstThread"} : i32
// CHECK: scf.if %[[FIRST]]
// CHECK:   %[[DRAWN:.*]] = ptx.atom_add_global_i32
// CHECK:   ptx.st_shared_i32 %[[SLOT:.*]], %[[DRAWN]]
// CHECK: ptx.bar_sync 0, 256
// CHECK: ptx.ld_shared_i32 %[[SLOT]]
// CHECK: scf.while
// CHECK:   arith.cmpi slt
// CHECK: } do {
// CHECK:   ptx.st_global_b32
// What was written is vouched for by one thread.
// CHECK-NEXT: ptx.bar_sync 0, 256
// CHECK-NEXT: scf.if %[[FIRST]]
// CHECK-NEXT:   ptx.fence_acq_rel_gpu
// CHECK:   ptx.atom_add_global_i32
// CHECK:   ptx.atom_add_global_i32
// CHECK:   ptx.bar_sync 0, 256
// It is ordered for the bulk copies of each thread once, when all is over.
// CHECK-NOT: ptx.fence_proxy_async_global
// CHECK: scf.if %[[FIRST]]
// CHECK-NEXT: ptx.wait_global_i32
// CHECK: ptx.bar_sync 0, 256
// CHECK-NEXT: ptx.fence_proxy_async_global
// CHECK-NOT: tile.grid_for
tile.kernel @share("counters" %c: !tile.view<4xi32>, "y" %y: !tile.view<?x128xf32>) warpgroups 2 {
  %n = arith.constant 9 : i32
  tile.grid_for %c at 2 extent %n -> %i : !tile.view<4xi32> {
    %p = builtin.unrealized_conversion_cast %y : !tile.view<?x128xf32> to !ptx.ptr
    %offset = arith.extsi %i : i32 to i64
    ptx.st_global_b32 %p, %offset, %i
  }
}

// -----

// Warps that will have roles of their own meet here all the same: the producer's are among them.
// CHECK-LABEL: tile.kernel @roles
// CHECK: ptx.bar_sync 0, 256
// CHECK: tile.role producer
tile.kernel @roles("counters" %c: !tile.view<2xi32>) warpgroups 1 {
  %n = arith.constant 9 : i32
  tile.grid_for %c at 0 extent %n -> %i : !tile.view<2xi32> {
  }
  tile.role producer registers 0 {
  }
  tile.role consumer registers 0 {
  }
}

// -----

tile.kernel @late("counters" %c: !tile.view<2xi32>) warpgroups 1 {
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
  }
  %extent = arith.constant 9 : i32
  // expected-error@+1 {{comes before the tiles, while all warps are alike}}
  tile.grid_for %c at 0 extent %extent -> %i : !tile.view<2xi32> {
  }
}

// -----

tile.kernel @outside("counters" %c: !tile.view<2xi32>) warpgroups 1 {
  %extent = arith.constant 9 : i32
  // expected-error@+1 {{counts in two i32 from entry 1 on, got counters '!tile.view<2xi32>'}}
  tile.grid_for %c at 1 extent %extent -> %i : !tile.view<2xi32> {
  }
}

// -----

// The last block has counted all others, in order, before it stores. The launch data will say so.
// CHECK-LABEL: tile.kernel @clean
// CHECK-SAME: tile.cleans
// CHECK: ptx.fence_acq_rel_gpu
// CHECK: %[[BEFORE:.*]] = ptx.atom_add_global_i32 %{{.*}}, %{{.*}}, %{{.*}} {ptx.name = "blocksBefore"}
// CHECK: %[[BLOCKS:.*]] = ptx.grid_size
// CHECK: %[[OTHERS:.*]] = arith.addi %[[BLOCKS]], %{{.*}}
// CHECK: arith.cmpi eq, %[[BEFORE]], %[[OTHERS]]
// CHECK-NEXT: scf.if
// CHECK-NEXT:   ptx.fence_acq_rel_gpu
// CHECK-COUNT-3: ptx.st_global_b32
// CHECK-NOT: ptx.st_global_b32
tile.kernel @clean("workspace" %c: !tile.view<2xi32>, "counters" %d: !tile.view<1xi32>) warpgroups 1 {
  tile.once {
    tile.clean %c, %d counted in %c at 1 : !tile.view<2xi32>, !tile.view<1xi32> in !tile.view<2xi32>
  }
}

// -----

tile.kernel @half("workspace" %c: !tile.view<2xi32>, "counters" %d: !tile.view<1xi32>) warpgroups 1 {
  tile.once {
    // expected-error@+1 {{'tile.clean' op leaves out 'counters', which must be zero when the kernel begins}}
    tile.clean %c counted in %c at 1 : !tile.view<2xi32> in !tile.view<2xi32>
  }
}
