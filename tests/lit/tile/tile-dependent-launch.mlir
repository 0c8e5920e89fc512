// Blocks start early, and wait before they touch global memory.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-dependent-launch))' -split-input-file -verify-diagnostics | FileCheck %s
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-dependent-launch,tile-lower-roles))' -split-input-file -verify-diagnostics | FileCheck %s --check-prefix=LOWER

// The ring's barriers are set up while the kernel before may still run. All threads wait, before they have roles.
// CHECK-LABEL: tile.kernel @gemm
// CHECK-NEXT: tile.launch_dependents
// CHECK-NEXT: %[[RING:.*]] = tile.ring stages 2
// CHECK-NEXT: tile.wait_grid
// CHECK-NEXT: tile.scheduler
// CHECK-NOT: tile.ring
// CHECK-NOT: tile.wait_grid
// LOWER-LABEL: tile.kernel @gemm
// LOWER-SAME: tile.dependent
// LOWER-NEXT: ptx.griddepcontrol_launch_dependents
// LOWER-NEXT: tile.ring
// LOWER-NEXT: ptx.griddepcontrol_wait
// LOWER-NEXT: tile.scheduler
tile.kernel @gemm("offsets" %o: !tile.view<5xi32>, "y" %y: !tile.view<?x128xf32>) warpgroups 1 {
  %q = tile.scheduler grouped(%o) tile [64, 128] columns 128 experts 4 order static raster 1 : !tile.view<5xi32>
  %ring = tile.ring stages 2 [!tile.block<64x128xf8E4M3FN>]
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
  }
}

// -----

// Boxes that are shared out before the tiles are memory, too.
// CHECK-LABEL: tile.kernel @boxes
// CHECK: tile.wait_grid
// CHECK: tile.grid_for
tile.kernel @boxes("counters" %c: !tile.view<2xi32>) warpgroups 1 {
  %n = arith.constant 9 : i32
  tile.grid_for %c at 0 extent %n -> %i : !tile.view<2xi32> {
  }
}

// -----

// A kernel that waits already stays as it is.
// CHECK-LABEL: tile.kernel @waits
// CHECK-NEXT: tile.wait_grid
// CHECK-NEXT: tile.ring
// CHECK-NOT: tile.wait_grid
// CHECK-NOT: tile.launch_dependents
tile.kernel @waits("y" %y: !tile.view<?x128xf32>) warpgroups 1 {
  tile.wait_grid
  %ring = tile.ring stages 2 [!tile.block<64x128xf8E4M3FN>]
}

// -----

tile.kernel @late("offsets" %o: !tile.view<5xi32>) warpgroups 1 {
  // expected-note@+1 {{this op comes before it}}
  %q = tile.scheduler grouped(%o) tile [64, 128] columns 128 experts 4 order static raster 1 : !tile.view<5xi32>
  // expected-error@+1 {{'tile.wait_grid' op comes before all that touches global memory}}
  tile.wait_grid
}

// -----

tile.kernel @some("y" %y: !tile.view<?x128xf32>) warpgroups 1 {
  tile.once {
    // expected-error@+1 {{'tile.wait_grid' op expects parent op 'tile.kernel'}}
    tile.wait_grid
  }
}
