// Dots that are scaled or exact get a temporary accumulator; plain ones stay as they are.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-promote-dots))' -split-input-file -verify-diagnostics | FileCheck %s

// The temporary is dotted afresh, waited for, then promoted with the scales; it stands beside the accumulator, outside the loop.
// CHECK-LABEL: tile.kernel @scaled
tile.kernel @scaled("x" %x: !tile.view<?x512xf8E4M3FN>, "x_scales" %xs: !tile.view<?x4xf32>, "w" %w: !tile.view<256x512xf8E4M3FN>,
                    "w_scales" %ws: !tile.view<2x4xf32>, "y" %y: !tile.view<?x256xf32>) warpgroups 2 {
  %q = tile.scheduler tile [128, 256] columns 256 experts 1 order static raster 1
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %c128 = arith.constant 128 : i32
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    // CHECK: %[[ACC:.*]] = tile.acc : !tile.acc<128x256>
    // CHECK-NEXT: %[[T:.*]] = tile.acc : !tile.acc<128x256>
    %acc = tile.acc : !tile.acc<128x256>
    tile.fill %acc : !tile.acc<128x256>
    // CHECK: scf.for
    scf.for %step = %c0 to %c4 step %c1 : i32 {
      %k = arith.muli %step, %c128 : i32
      %a = tile.load %x[%m, %k] : !tile.view<?x512xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
      %b = tile.load %w[%n, %k] : !tile.view<256x512xf8E4M3FN> -> !tile.block<256x128xf8E4M3FN>
      // CHECK: %[[SA:.*]] = tile.load {{.*}} -> <128x1xf32>
      %sa = tile.load %xs[%m, %step] : !tile.view<?x4xf32> -> !tile.block<128x1xf32>
      // CHECK: %[[SB:.*]] = tile.load {{.*}} -> <2x1xf32>
      %sb = tile.load %ws[%c0, %step] : !tile.view<2x4xf32> -> !tile.block<2x1xf32>
      // CHECK-NEXT: tile.dot %[[T]], %{{.*}}, %{{.*}} fresh : !tile.acc<128x256>
      tile.dot %acc, %a, %b rows %sa per 1 : !tile.block<128x1xf32> columns %sb per 128 : !tile.block<2x1xf32>
        : !tile.acc<128x256>, !tile.block<128x128xf8E4M3FN>, !tile.block<256x128xf8E4M3FN>
      // CHECK-NEXT: tile.wait %[[T]] : !tile.acc<128x256>
      tile.wait %acc : !tile.acc<128x256>
      // CHECK-NEXT: tile.promote %[[ACC]], %[[T]] rows %[[SA]] per 1 : !tile.block<128x1xf32> columns %[[SB]] per 128 : !tile.block<2x1xf32>
      // CHECK-NEXT: }
    }
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<128x256>, !tile.view<?x256xf32>
  }
}

// -----

// An exact dot without scales is promoted as it is; where no wait follows, or one that leaves dots pending, the promotion has its own.
// CHECK-LABEL: tile.kernel @exact
tile.kernel @exact("x" %x: !tile.view<?x256xf8E4M3FN>, "w" %w: !tile.view<128x256xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  // CHECK: %[[ACC:.*]] = tile.acc : !tile.acc<64x128>
  // CHECK-DAG: %[[T0:.*]] = tile.acc : !tile.acc<64x128>
  // CHECK-DAG: %[[T1:.*]] = tile.acc : !tile.acc<64x128>
  %acc = tile.acc : !tile.acc<64x128>
  tile.fill %acc : !tile.acc<64x128>
  %a0 = tile.load %x[%c0, %c0] : !tile.view<?x256xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b0 = tile.load %w[%c0, %c0] : !tile.view<128x256xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  %a1 = tile.load %x[%c0, %c128] : !tile.view<?x256xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b1 = tile.load %w[%c0, %c128] : !tile.view<128x256xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  // CHECK: tile.dot %[[T:.*]], %{{.*}}, %{{.*}} fresh : !tile.acc<64x128>
  // CHECK-NEXT: tile.wait %[[T]] : !tile.acc<64x128>
  // CHECK-NEXT: tile.promote %[[ACC]], %[[T]] : <64x128>, !tile.acc<64x128>
  tile.dot %acc, %a0, %b0 exact : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
  tile.wait %acc pending 1 : !tile.acc<64x128>
  // CHECK-NEXT: tile.dot %[[U:.*]], %{{.*}}, %{{.*}} fresh : !tile.acc<64x128>
  // CHECK-NEXT: tile.wait %[[U]] : !tile.acc<64x128>
  // CHECK-NEXT: tile.promote %[[ACC]], %[[U]] : <64x128>, !tile.acc<64x128>
  tile.dot %acc, %a1, %b1 exact : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
}

// -----

// A fast dot without scales sums in its own accumulator: nothing changes.
// CHECK-LABEL: tile.kernel @dense
tile.kernel @dense("x" %x: !tile.view<?x256xf8E4M3FN>, "w" %w: !tile.view<128x256xf8E4M3FN>, "y" %y: !tile.view<?x128xbf16>) warpgroups 1 {
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %c0 = arith.constant 0 : i32
    // CHECK: %[[ACC:.*]] = tile.acc : !tile.acc<64x128>
    // CHECK-NOT: tile.acc :
    %acc = tile.acc : !tile.acc<64x128>
    %a = tile.load %x[%m, %c0] : !tile.view<?x256xf8E4M3FN> -> !tile.block<64x256xf8E4M3FN>
    %b = tile.load %w[%n, %c0] : !tile.view<128x256xf8E4M3FN> -> !tile.block<128x256xf8E4M3FN>
    // CHECK: tile.dot %[[ACC]], %{{.*}}, %{{.*}} fresh : !tile.acc<64x128>
    tile.dot %acc, %a, %b fresh : !tile.acc<64x128>, !tile.block<64x256xf8E4M3FN>, !tile.block<128x256xf8E4M3FN>
    // CHECK-NEXT: tile.wait %[[ACC]]
    tile.wait %acc : !tile.acc<64x128>
    // CHECK-NOT: tile.promote
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<64x128>, !tile.view<?x128xbf16>
  }
}

// -----

// Exact means at most 128 of K in the tensor core's own accumulator.
tile.kernel @long("x" %x: !tile.view<?x256xf8E4M3FN>, "w" %w: !tile.view<128x256xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x128>
  %a = tile.load %x[%c0, %c0] : !tile.view<?x256xf8E4M3FN> -> !tile.block<64x256xf8E4M3FN>
  %b = tile.load %w[%c0, %c0] : !tile.view<128x256xf8E4M3FN> -> !tile.block<128x256xf8E4M3FN>
  // expected-error@+1 {{'tile.dot' op sums 256 of K before promotion, more than the 128 allowed}}
  tile.dot %acc, %a, %b exact : !tile.acc<64x128>, !tile.block<64x256xf8E4M3FN>, !tile.block<128x256xf8E4M3FN>
}

// -----

// A promotion adds to what the accumulator holds; it cannot also forget it.
tile.kernel @fresh("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<128x128xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x128>
  %a = tile.load %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b = tile.load %w[%c0, %c0] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  // expected-error@+1 {{'tile.dot' op is promoted into its accumulator, so it cannot start it afresh}}
  tile.dot %acc, %a, %b fresh exact : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
}

// -----

// Batches are made of promoted dots, so a scaled batch comes from passes in the wrong order.
tile.kernel @batch("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<128x128xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %t = tile.acc : !tile.fragment<n = 128>
  %a = tile.load %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b = tile.load %w[%c0, %c0] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  // expected-error@+1 {{'tile.dot' op is already a batch; promote dots before they are split into batches}}
  tile.dot %t, %a, %b batch 0 of !tile.acc<64x128> exact : !tile.fragment<n = 128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
}
