// Rings, store buffers and schedulers get their places in shared memory.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-allocate-shared))' -split-input-file -verify-diagnostics | FileCheck %s

// Operands on 1024 bytes, scales behind them, two barriers last, slots a multiple of 1024 apart. Then the store buffer of one warpgroup,
// which both stores use, then the queue and the boundaries of 3 experts. All threads meet before the tiles.
// CHECK-LABEL: tile.kernel @all
// CHECK-SAME: attributes {shared_bytes = 60480 : i64}
tile.kernel @all("offsets" %o: !tile.view<4xi32>, "y" %y: !tile.view<?x128xbf16>) warpgroups 1 {
  // CHECK: tile.scheduler {{.*}} {shared_offset = 60416 : i64}
  %q = tile.scheduler grouped(%o) tile [64, 128] columns 128 experts 3 order static raster 1 : !tile.view<4xi32>
  // CHECK: tile.ring stages 2 {{.*}} {barrier_offset = 24960 : i64, field_offsets = array<i64: 0, 8192, 24576>, shared_offset = 0 : i64, stride = 25600 : i64}
  %ring = tile.ring stages 2 [!tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>, !tile.block<1x64xf32>]
  // CHECK: tile.sync
  // CHECK-NEXT: tile.for_tiles
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<64x128>
    // CHECK: tile.store {{.*}} staged {shared_offset = 51200 : i64}
    // CHECK: tile.store {{.*}} staged {shared_offset = 51200 : i64}
    tile.store %acc -> %y[%m, %n] rows %rows staged : !tile.acc<64x128>, !tile.view<?x128xbf16>
    tile.store %acc -> %y[%m, %n] rows %rows staged : !tile.acc<64x128>, !tile.view<?x128xbf16>
  }
}

// -----

// Without staging, a store takes nothing; where all threads meet already, they do not meet twice.
// CHECK-LABEL: tile.kernel @nothing
// CHECK-SAME: attributes {shared_bytes = 0 : i64}
tile.kernel @nothing("y" %y: !tile.view<?x128xbf16>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x128>
  // CHECK: tile.sync
  // CHECK-NOT: tile.sync
  tile.sync
  // CHECK: tile.store
  // CHECK-NOT: shared_offset
  tile.store %acc -> %y[%c0, %c0] rows %c0 : !tile.acc<64x128>, !tile.view<?x128xbf16>
}

// -----

// More than a block may have: the message counts and says what to change.
// expected-error@+1 {{'tile.kernel' op needs 249856 bytes of shared memory, a block has}}
tile.kernel @large() warpgroups 1 {
  %ring = tile.ring stages 4 [!tile.block<224x128xf8E4M3FN>, !tile.block<256x128xf8E4M3FN>]
}
