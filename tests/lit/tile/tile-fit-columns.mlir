// A loop over K for each width: a tile takes the narrowest that holds its rows.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-fit-columns{step=48}))' -split-input-file | FileCheck %s

// Two fragments of 96 columns: of 48 rows half of the first is computed, of 144 half of the second.
// CHECK-LABEL: tile.kernel @fit
tile.kernel @fit("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<64x128xf8E4M3FN>, "y" %y: !tile.view<?x64xbf16>) warpgroups 1 {
  %q = tile.scheduler tile [192, 64] columns 64 experts 1 order static raster 1
  // CHECK: tile.for_tiles %{{.*}} -> %{{.*}}, %{{.*}}, %{{.*}}, %[[ROWS:.*]], %{{.*}} {
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    // CHECK: %[[HALF:.*]] = tile.acc : !tile.fragment<n = 48>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %acc = tile.acc : !tile.acc<64x192>
    // CHECK: %[[T:.*]] = tile.acc : !tile.fragment<n = 96>
    %t = tile.acc : !tile.fragment<n = 96>
    tile.fill %acc : !tile.acc<64x192>
    // CHECK: %[[W48:.*]] = arith.constant 48 : i32
    // CHECK: %[[IN48:.*]] = arith.cmpi sle, %[[ROWS]], %[[W48]] : i32
    // CHECK: scf.if %[[IN48]] {
    // CHECK: scf.for
    // CHECK: tile.dot %[[HALF]], {{.*}} batch 0
    // CHECK-NEXT: tile.wait %[[HALF]]
    // CHECK-NEXT: tile.promote %{{.*}}, %[[HALF]] batch 0
    // CHECK-NOT: tile.dot
    // CHECK: } else {
    // CHECK: scf.if
    // CHECK: tile.dot %[[T]], {{.*}} batch 0
    // CHECK-NOT: tile.dot
    // CHECK: } else {
    // CHECK: arith.constant 144 : i32
    // CHECK: scf.if
    // CHECK: tile.dot %[[T]], {{.*}} batch 0
    // CHECK: tile.dot %[[HALF]], {{.*}} batch 1
    // CHECK: tile.promote %{{.*}}, %[[HALF]] batch 1
    // CHECK: } else {
    // CHECK: tile.dot %[[T]], {{.*}} batch 0
    // CHECK: tile.dot %[[T]], {{.*}} batch 1
    // CHECK-NOT: tile.dot
    // CHECK: tile.store
    scf.for %i = %c0 to %c1 step %c1 : i32 {
      %a = tile.load %w[%n, %c0] : !tile.view<64x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
      %b = tile.load %x[%m, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<192x128xf8E4M3FN>
      tile.dot %t, %a, %b batch 0 of !tile.acc<64x192> fresh : !tile.fragment<n = 96>, !tile.block<64x128xf8E4M3FN>, !tile.block<192x128xf8E4M3FN>
      tile.wait %t : !tile.fragment<n = 96>
      tile.promote %acc, %t batch 0 : !tile.acc<64x192>, !tile.fragment<n = 96>
      tile.dot %t, %a, %b batch 1 of !tile.acc<64x192> fresh : !tile.fragment<n = 96>, !tile.block<64x128xf8E4M3FN>, !tile.block<192x128xf8E4M3FN>
      tile.wait %t : !tile.fragment<n = 96>
      tile.promote %acc, %t batch 1 : !tile.acc<64x192>, !tile.fragment<n = 96>
    }
    tile.store %acc -> %y[%m, %n] rows %rows transposed : !tile.acc<64x192>, !tile.view<?x64xbf16>
  }
}

// -----

// Columns of the accumulator that are columns of the result are all needed.
// CHECK-LABEL: tile.kernel @straight
tile.kernel @straight("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<96x128xf8E4M3FN>, "y" %y: !tile.view<?x96xbf16>) warpgroups 1 {
  %q = tile.scheduler tile [64, 96] columns 96 experts 1 order static raster 1
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %acc = tile.acc : !tile.acc<64x96>
    %t = tile.acc : !tile.fragment<n = 96>
    tile.fill %acc : !tile.acc<64x96>
    // CHECK-NOT: scf.if
    // CHECK: scf.for
    scf.for %i = %c0 to %c1 step %c1 : i32 {
      %a = tile.load %x[%m, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
      %b = tile.load %w[%n, %c0] : !tile.view<96x128xf8E4M3FN> -> !tile.block<96x128xf8E4M3FN>
      tile.dot %t, %a, %b batch 0 of !tile.acc<64x96> fresh : !tile.fragment<n = 96>, !tile.block<64x128xf8E4M3FN>, !tile.block<96x128xf8E4M3FN>
      tile.wait %t : !tile.fragment<n = 96>
      tile.promote %acc, %t batch 0 : !tile.acc<64x96>, !tile.fragment<n = 96>
    }
    // CHECK-NOT: scf.if
    // CHECK: tile.store
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<64x96>, !tile.view<?x96xbf16>
  }
}

// -----

// The fragment is read by something else as well: nothing is left out.
// CHECK-LABEL: tile.kernel @shared
tile.kernel @shared("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<64x128xf8E4M3FN>, "y" %y: !tile.view<?x64xbf16>) warpgroups 1 {
  %q = tile.scheduler tile [128, 64] columns 64 experts 1 order static raster 1
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %acc = tile.acc : !tile.acc<64x128>
    %t = tile.acc : !tile.fragment<n = 128>
    tile.fill %acc : !tile.acc<64x128>
    // CHECK-NOT: scf.if
    // CHECK: scf.for
    scf.for %i = %c0 to %c1 step %c1 : i32 {
      %a = tile.load %w[%n, %c0] : !tile.view<64x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
      %b = tile.load %x[%m, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
      tile.dot %t, %a, %b batch 0 of !tile.acc<64x128> fresh : !tile.fragment<n = 128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
      tile.wait %t : !tile.fragment<n = 128>
      tile.promote %acc, %t batch 0 : !tile.acc<64x128>, !tile.fragment<n = 128>
      tile.promote %acc, %t batch 0 : !tile.acc<64x128>, !tile.fragment<n = 128>
    }
    // CHECK-NOT: scf.if
    // CHECK: tile.store
    tile.store %acc -> %y[%m, %n] rows %rows transposed : !tile.acc<64x128>, !tile.view<?x64xbf16>
  }
}
