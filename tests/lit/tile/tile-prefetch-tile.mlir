// The next tile is drawn before the store of this one.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-prefetch-tile))' -split-input-file | FileCheck %s

// Before the first store of the loop, and once.
// CHECK-LABEL: tile.kernel @dense
tile.kernel @dense("y" %y: !tile.view<?x128xf32>) warpgroups 1 {
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<64x128>
    // CHECK: tile.fill
    tile.fill %acc : !tile.acc<64x128>
    // CHECK-NEXT: tile.next_tile
    // CHECK-NEXT: tile.store
    // CHECK-NEXT: tile.store
    // CHECK-NEXT: }
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<64x128>, !tile.view<?x128xf32>
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<64x128>, !tile.view<?x128xf32>
  }
}

// -----

// A loop that draws already, and one that stores in a branch, stay as they are.
// CHECK-LABEL: tile.kernel @drawn
tile.kernel @drawn("y" %y: !tile.view<?x128xf32>) warpgroups 1 {
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  // CHECK: tile.for_tiles
  // CHECK-NEXT: tile.next_tile
  // CHECK-NOT: tile.next_tile
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    tile.next_tile
    %acc = tile.acc : !tile.acc<64x128>
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<64x128>, !tile.view<?x128xf32>
  }
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<64x128>
    scf.if %live {
      tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<64x128>, !tile.view<?x128xf32>
    }
  }
}
