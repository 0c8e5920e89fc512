// The other operand gives the rows of accumulators; results are stored as their transpose.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-swap-operands))' -split-input-file | FileCheck %s

// CHECK-LABEL: tile.kernel @scaled
tile.kernel @scaled("x" %x: !tile.view<?x128xf8E4M3FN>, "x_scales" %xs: !tile.view<1x?xf32>, "w" %w: !tile.view<256x128xf8E4M3FN>, "w_scales" %ws: !tile.view<2x1xf32>, "y" %y: !tile.view<?x256xbf16>) warpgroups 2 {
  %q = tile.scheduler tile [64, 256] columns 256 experts 1 order static raster 1
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %c0 = arith.constant 0 : i32
    // CHECK: %[[ACC:.*]] = tile.acc : !tile.acc<256x64>
    // CHECK: %[[T:.*]] = tile.acc : !tile.acc<256x64>
    %acc = tile.acc : !tile.acc<64x256>
    %t = tile.acc : !tile.acc<64x256>
    tile.fill %acc : !tile.acc<64x256>
    // CHECK: %[[A:.*]] = tile.load {{.*}} -> <64x128xf8E4M3FN>
    %a = tile.load %x[%m, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
    // CHECK: %[[B:.*]] = tile.load {{.*}} -> <256x128xf8E4M3FN>
    %b = tile.load %w[%n, %c0] : !tile.view<256x128xf8E4M3FN> -> !tile.block<256x128xf8E4M3FN>
    %sa = tile.load %xs[%c0, %m] : !tile.view<1x?xf32> -> !tile.block<1x64xf32>
    %sb = tile.load %ws[%c0, %c0] : !tile.view<2x1xf32> -> !tile.block<2x1xf32>
    // CHECK: tile.dot %[[T]], %[[B]], %[[A]] fresh
    tile.dot %t, %a, %b fresh : !tile.acc<64x256>, !tile.block<64x128xf8E4M3FN>, !tile.block<256x128xf8E4M3FN>
    tile.wait %t : !tile.acc<64x256>
    // CHECK: tile.promote %[[ACC]], %[[T]] rows %{{.*}} per 128 : !tile.block<2x1xf32> columns %{{.*}} per 1 : !tile.block<1x64xf32>
    tile.promote %acc, %t rows %sa per 1 : !tile.block<1x64xf32> columns %sb per 128 : !tile.block<2x1xf32> : !tile.acc<64x256>, !tile.acc<64x256>
    // CHECK: tile.scale %[[ACC]] columns %{{.*}} per 1
    tile.scale %acc rows %sa per 1 : !tile.block<1x64xf32> : !tile.acc<64x256>
    // CHECK: tile.store %[[ACC]] {{.*}} transposed
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<64x256>, !tile.view<?x256xbf16>
  }
}

// -----

// 72 columns are no rows of a wgmma: everything stays.
// CHECK-LABEL: tile.kernel @odd
tile.kernel @odd("y" %y: !tile.view<?x72xbf16>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  // CHECK: tile.acc : !tile.acc<64x72>
  %acc = tile.acc : !tile.acc<64x72>
  // CHECK: tile.store
  // CHECK-NOT: transposed
  tile.store %acc -> %y[%c0, %c0] rows %c0 : !tile.acc<64x72>, !tile.view<?x72xbf16>
}

// -----

// An accumulator that is divided already stays, and with it all others.
// CHECK-LABEL: tile.kernel @divided
tile.kernel @divided("y" %y: !tile.view<?x128xbf16>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  // CHECK: tile.acc : !tile.acc<64x128>
  // CHECK: tile.acc : !tile.acc<64x128, columns, n = 64>
  %acc = tile.acc : !tile.acc<64x128>
  %other = tile.acc : !tile.acc<64x128, columns, n = 64>
  // CHECK: tile.store
  // CHECK-NOT: transposed
  tile.store %acc -> %y[%c0, %c0] rows %c0 : !tile.acc<64x128>, !tile.view<?x128xbf16>
}
