// A branch around a dot that is the same in every step along K is taken once, outside the loop.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-unswitch-rows))' -split-input-file | FileCheck %s

// The condition moves out with what it is made of, and the loop is there twice: with the second batch and without.
// CHECK-LABEL: tile.kernel @unswitched
tile.kernel @unswitched("x" %x: !tile.view<?x256xf8E4M3FN>, "w" %w: !tile.view<256x256xf8E4M3FN>, "y" %y: !tile.view<?x256xbf16>) warpgroups 2 {
  %q = tile.scheduler tile [128, 256] columns 256 experts 1 order static raster 1
  // CHECK: tile.for_tiles %{{.*}} -> %{{.*}}, %{{.*}}, %{{.*}}, %[[ROWS:.*]], %{{.*}} {
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c128 = arith.constant 128 : i32
    %acc = tile.acc : !tile.acc<128x256, columns, n = 128>
    %t = tile.acc : !tile.fragment<n = 128>
    tile.fill %acc : !tile.acc<128x256, columns, n = 128>
    // CHECK: %[[LIMIT:.*]] = arith.constant 64 : i32
    // CHECK: %[[NEEDED:.*]] = arith.cmpi sgt, %[[ROWS]], %[[LIMIT]] : i32
    // CHECK: scf.if %[[NEEDED]] {
    // CHECK-NEXT: scf.for
    // CHECK-NOT: scf.if
    // CHECK: tile.dot {{.*}} batch 0
    // CHECK: tile.dot {{.*}} batch 1
    // CHECK: tile.promote {{.*}} batch 1
    // CHECK: } else {
    // CHECK-NEXT: scf.for
    // CHECK: tile.dot {{.*}} batch 0
    // CHECK-NOT: tile.dot
    // CHECK: tile.store
    scf.for %i = %c0 to %c2 step %c1 : i32 {
      %k = arith.muli %i, %c128 : i32
      %a = tile.load %x[%m, %k] : !tile.view<?x256xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
      %b = tile.load %w[%n, %k] : !tile.view<256x256xf8E4M3FN> -> !tile.block<256x128xf8E4M3FN>
      tile.dot %t, %a, %b batch 0 of !tile.acc<128x256, columns, n = 128> fresh : !tile.fragment<n = 128>, !tile.block<128x128xf8E4M3FN>, !tile.block<256x128xf8E4M3FN>
      tile.wait %t : !tile.fragment<n = 128>
      tile.promote %acc, %t batch 0 : !tile.acc<128x256, columns, n = 128>, !tile.fragment<n = 128>
      %c64 = arith.constant 64 : i32
      %needed = arith.cmpi sgt, %rows, %c64 : i32
      scf.if %needed {
        tile.dot %t, %a, %b batch 1 of !tile.acc<128x256, columns, n = 128> fresh : !tile.fragment<n = 128>, !tile.block<128x128xf8E4M3FN>, !tile.block<256x128xf8E4M3FN>
        tile.wait %t : !tile.fragment<n = 128>
        tile.promote %acc, %t batch 1 : !tile.acc<128x256, columns, n = 128>, !tile.fragment<n = 128>
      }
    }
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<128x256, columns, n = 128>, !tile.view<?x256xbf16>
  }
}

// -----

// A condition that changes from step to step stays where it is.
// CHECK-LABEL: tile.kernel @varies
tile.kernel @varies("x" %x: !tile.view<?x256xf8E4M3FN>, "w" %w: !tile.view<128x256xf8E4M3FN>, "y" %y: !tile.view<?x128xbf16>) warpgroups 1 {
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %acc = tile.acc : !tile.acc<64x128>
    tile.fill %acc : !tile.acc<64x128>
    // CHECK: scf.for
    // CHECK: scf.if
    // CHECK-NEXT: tile.dot
    // CHECK-NOT: scf.for
    scf.for %i = %c0 to %c2 step %c1 : i32 {
      %a = tile.load %x[%m, %c0] : !tile.view<?x256xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
      %b = tile.load %w[%n, %c0] : !tile.view<128x256xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
      %first = arith.cmpi eq, %i, %c0 : i32
      scf.if %first {
        tile.dot %acc, %a, %b : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
      }
      tile.wait %acc : !tile.acc<64x128>
    }
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<64x128>, !tile.view<?x128xbf16>
  }
}
