// A checked kernel looks at the scales that it reads, where it reads them.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-check-scales))' -split-input-file -verify-diagnostics | FileCheck %s

// Scales of rows: as far as the tile has rows. Scales of columns: as far as the view goes.
// CHECK-LABEL: tile.kernel @loads
// CHECK-SAME: "errors" %[[ERRORS:.*]]: !tile.view<8xi64>) warpgroups 1
tile.kernel @loads("x" %x: !tile.view<?x128xf8E4M3FN>, "x_scales" %xs: !tile.view<?xf32>, "w_scales" %ws: !tile.view<1x128xf32>) warpgroups 1 {
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  // CHECK: tile.for_tiles %{{.*}} -> %[[E:.*]], %[[M:.*]], %[[N:.*]], %[[ROWS:.*]], %
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<64x128>
    // CHECK: tile.load %[[XS:.*]][%[[M]]]
    // CHECK-NEXT: tile.check_scales %[[XS]][%[[M]]] box [64] rows %[[ROWS]] along 0 kind 5 into %[[ERRORS]]
    %sa = tile.load %xs[%m] : !tile.view<?xf32> -> !tile.block<64xf32>
    // CHECK: tile.load %[[WS:.*]][%[[E]], %[[N]]]
    // CHECK-NEXT: tile.check_scales %[[WS]][%[[E]], %[[N]]] box [1, 128] kind 6 into %[[ERRORS]]
    %sb = tile.load %ws[%e, %n] : !tile.view<1x128xf32> -> !tile.block<1x128xf32>
    tile.scale %acc rows %sa per 1 : !tile.block<64xf32> columns %sb per 1 : !tile.block<1x128xf32> : !tile.acc<64x128>
    // Data is no scale, and what nobody uses is not looked at.
    // CHECK-NOT: tile.check_scales
    %unused = tile.load %ws[%e, %n] : !tile.view<1x128xf32> -> !tile.block<1x128xf32>
    %a = tile.load %x[%m, %e] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  }
}

// -----

// Staged scales are read from the ring, and looked at where they came from.
// CHECK-LABEL: tile.kernel @staged
tile.kernel @staged("x_scales" %xs: !tile.view<2x?xf32>) warpgroups 1 {
  %ring = tile.ring stages 1 [!tile.block<1x64xf32>]
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    tile.once {
      %in = tile.acquire %ring
      tile.copy %xs[%e, %m] -> %in[0] : !tile.view<2x?xf32>
      tile.publish %in
    }
    %s = tile.await %ring
    // CHECK: tile.field
    // CHECK-NEXT: tile.check_scales %{{.*}}[%{{.*}}, %{{.*}}] box [1, 64] rows %{{.*}} along 1 kind 5
    %sa = tile.field %s[0] = %xs[%e, %m] : !tile.view<2x?xf32> -> !tile.block<1x64xf32>
    %acc = tile.acc : !tile.acc<64x128>
    tile.scale %acc rows %sa per 1 : !tile.block<1x64xf32> : !tile.acc<64x128>
    tile.release %s
  }
}

// -----

// What is used under a condition is looked at under it: past K there may be no scale.
// CHECK-LABEL: tile.kernel @guarded
tile.kernel @guarded("x_scales" %xs: !tile.view<2x?xf32>) warpgroups 1 {
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    // CHECK: tile.load
    // CHECK-NOT: tile.check_scales
    %sa = tile.load %xs[%e, %m] : !tile.view<2x?xf32> -> !tile.block<1x64xf32>
    %acc = tile.acc : !tile.acc<64x128>
    // CHECK: scf.if
    // CHECK-NEXT: tile.check_scales
    scf.if %live {
      tile.scale %acc rows %sa per 1 : !tile.block<1x64xf32> : !tile.acc<64x128>
    }
  }
}

// -----

// Outside tiles no rows are known to be anybody's.
// CHECK-LABEL: tile.kernel @noTiles
// CHECK-NOT: errors
tile.kernel @noTiles("w_scales" %ws: !tile.view<1x128xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %sb = tile.load %ws[%c0, %c0] : !tile.view<1x128xf32> -> !tile.block<1x128xf32>
}

// -----

tile.kernel @rank("w_scales" %ws: !tile.view<1x128xf32>, "errors" %e: !tile.view<8xi64>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  // expected-error@+1 {{'tile.check_scales' op of a view of rank 2 takes as many coordinates and extents, got 1 and 2}}
  tile.check_scales %ws[%c0] box [1, 128] kind 6 into %e : !tile.view<1x128xf32>, !tile.view<8xi64>
}

// -----

tile.kernel @kind("w_scales" %ws: !tile.view<1x128xf32>, "errors" %e: !tile.view<8xi64>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  // expected-error@+1 {{'tile.check_scales' op reports kind 7, there are 7}}
  tile.check_scales %ws[%c0, %c0] box [1, 128] kind 7 into %e : !tile.view<1x128xf32>, !tile.view<8xi64>
}
