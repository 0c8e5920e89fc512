// 16-bit results in whole groups of 64 columns pass through shared memory.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-stage-stores))' -split-input-file | FileCheck %s

// bf16 and f16, fragments of 128 columns.
// CHECK-LABEL: tile.kernel @staged
tile.kernel @staged("y" %y: !tile.view<?x200xbf16>, "y" %z: !tile.view<?x256xf16>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x128>
  // CHECK: tile.store {{.*}} rows %{{.*}} staged : <64x128>, <?x200xbf16>
  tile.store %acc -> %y[%c0, %c0] rows %c0 : !tile.acc<64x128>, !tile.view<?x200xbf16>
  // CHECK: tile.store {{.*}} rows %{{.*}} staged : <64x128>, <?x256xf16>
  tile.store %acc -> %z[%c0, %c0] rows %c0 : !tile.acc<64x128>, !tile.view<?x256xf16>
}

// -----

// f32, fragments of 96 columns, and rows that 16-byte stores would run past stay direct.
// CHECK-LABEL: tile.kernel @direct
tile.kernel @direct("y" %y: !tile.view<?x128xf32>, "y" %z: !tile.view<?x192xbf16>, "y" %odd: !tile.view<?x100xbf16>) warpgroups 1 {
  // CHECK-NOT: staged
  %c0 = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x128>
  tile.store %acc -> %y[%c0, %c0] rows %c0 : !tile.acc<64x128>, !tile.view<?x128xf32>
  tile.store %acc -> %odd[%c0, %c0] rows %c0 : !tile.acc<64x128>, !tile.view<?x100xbf16>
  %narrow = tile.acc : !tile.acc<64x192, columns, n = 96>
  tile.store %narrow -> %z[%c0, %c0] rows %c0 : !tile.acc<64x192, columns, n = 96>, !tile.view<?x192xbf16>
}
