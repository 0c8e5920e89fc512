// Results leave the registers, directly or through shared memory, masked by rows and columns.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-lower-stores))' -split-input-file -verify-diagnostics | FileCheck %s

// Direct f32: a thread writes two neighbours of every eight columns, of its two rows, where these are inside. Whole tiles of columns need no mask.
// CHECK-LABEL: tile.kernel @direct
// CHECK-SAME: "y" %[[Y:.*]]: !tile.view<?x128xf32>
tile.kernel @direct("y" %y: !tile.view<?x128xf32>) warpgroups 1 {
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  // CHECK: tile.for_tiles %{{.*}} -> %{{.*}}, %[[M:.*]], %[[N:.*]], %[[ROWS:.*]], %{{.*}} {
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<64x128>
    // CHECK-DAG: %[[P:.*]] = builtin.unrealized_conversion_cast %[[Y]] : !tile.view<?x128xf32> to !ptx.ptr
    // CHECK-DAG: tile.stride %[[Y]]
    // CHECK: %[[IN:.*]] = arith.cmpi slt, %[[ROW:.*]], %[[ROWS]] : i32
    // CHECK: scf.if %[[IN]] {
    // CHECK: ptx.unroll %[[J:.*]] = 0 to 16 {
    // CHECK-NOT: scf.if
    // CHECK: ptx.st_global_f32 %[[P]], %[[AT:.*]], %{{.*}}
    // CHECK: %[[NEXT:.*]] = arith.addi %[[AT]]
    // CHECK-NEXT: ptx.st_global_f32 %[[P]], %[[NEXT]], %{{.*}}
    // CHECK: %[[BELOW:.*]] = arith.addi %[[ROW]]
    // CHECK: arith.cmpi slt, %[[BELOW]], %[[ROWS]] : i32
    // CHECK: ptx.st_global_f32
    // CHECK: ptx.st_global_f32
    // CHECK-NOT: ptx.st_global
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<64x128>, !tile.view<?x128xf32>
  }
}

// -----

// 16-bit neighbours are packed; columns past the last are left out by groups of eight.
// CHECK-LABEL: tile.kernel @packed
tile.kernel @packed("y" %y: !tile.view<?x72xf16>, "y" %z: !tile.view<?x64xbf16>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x64>
  // CHECK: ptx.unroll
  // CHECK: %[[LAST:.*]] = arith.constant 72 : i32
  // CHECK: %[[IN:.*]] = arith.cmpi slt, %{{.*}}, %[[LAST]] : i32
  // CHECK: scf.if %[[IN]] {
  // CHECK: %[[PAIR:.*]] = ptx.cvt_f16x2_f32 %{{.*}}, %{{.*}}
  // CHECK-NEXT: ptx.st_global_b32 %{{.*}}, %{{.*}}, %[[PAIR]]
  tile.store %acc -> %y[%c0, %c0] rows %c0 : !tile.acc<64x64>, !tile.view<?x72xf16>
  // CHECK: ptx.cvt_bf16x2_f32
  tile.store %acc -> %z[%c0, %c0] rows %c0 : !tile.acc<64x64>, !tile.view<?x64xbf16>
}

// -----

// Staged: a warp writes 64 columns with stmatrix, meets, reads rows back and stores 16 bytes a thread; it meets again before the next 64.
// CHECK-LABEL: tile.kernel @staged
tile.kernel @staged("y" %y: !tile.view<?x128xbf16>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x128>
  // CHECK: ptx.syncwarp
  // CHECK: ptx.unroll %{{.*}} = 0 to 8 step 2 {
  // CHECK-COUNT-4: ptx.cvt_bf16x2_f32
  // CHECK: ptx.stmatrix_x4
  // CHECK: ptx.syncwarp
  // CHECK: ptx.unroll %{{.*}} = 0 to 16 step 4 {
  // CHECK: scf.if
  // CHECK: ptx.ld_shared_v4
  // CHECK: ptx.st_global_v4
  // CHECK: ptx.syncwarp
  // CHECK: ptx.stmatrix_x4
  // CHECK: ptx.syncwarp
  // CHECK: ptx.st_global_v4
  // CHECK-NOT: ptx.stmatrix_x4
  tile.store %acc -> %y[%c0, %c0] rows %c0 staged {shared_offset = 1024 : i64} : !tile.acc<64x128>, !tile.view<?x128xbf16>
}

// -----

// Transposed: what lies beside an element in the accumulator lies below it in the view.
// CHECK-LABEL: tile.kernel @transposed
tile.kernel @transposed("y" %y: !tile.view<?x64xbf16>, "y" %z: !tile.view<?x72xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x16>
  // CHECK: ptx.unroll %{{.*}} = 0 to 2 {
  // CHECK-COUNT-4: ptx.st_global_b16
  // CHECK-NOT: ptx.st_global_b16
  tile.store %acc -> %y[%c0, %c0] rows %c0 transposed : !tile.acc<64x16>, !tile.view<?x64xbf16>
  // CHECK: arith.constant 72 : i32
  // CHECK: ptx.st_global_f32
  tile.store %acc -> %z[%c0, %c0] rows %c0 transposed : !tile.acc<64x16>, !tile.view<?x72xf32>
}

// -----

// Transposed and staged: 32 columns of the accumulator at a time, sixteen of them an instruction; the last 16 are half of that.
// CHECK-LABEL: tile.kernel @turned
tile.kernel @turned("y" %y: !tile.view<?x64xbf16>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x48>
  // CHECK: scf.if
  // CHECK: ptx.syncwarp
  // CHECK-COUNT-2: ptx.stmatrix_x4_trans
  // CHECK: ptx.syncwarp
  // CHECK-COUNT-2: ptx.st_global_v4
  // CHECK: scf.if
  // CHECK: ptx.syncwarp
  // CHECK-COUNT-1: ptx.stmatrix_x4_trans
  // CHECK: ptx.syncwarp
  // CHECK-COUNT-1: ptx.st_global_v4
  // CHECK-NOT: ptx.st_global_v4
  tile.store %acc -> %y[%c0, %c0] rows %c0 transposed staged {shared_offset = 1024 : i64} : !tile.acc<64x48>, !tile.view<?x64xbf16>
}

// -----

// A kernel that stores nothing stays as it is.
// CHECK-LABEL: tile.kernel @nothing
tile.kernel @nothing() warpgroups 1 {
  // CHECK-NEXT: tile.acc
  // CHECK-NEXT: }
  %acc = tile.acc : !tile.acc<64x128>
}

// -----

// Staging needs its buffer.
tile.kernel @noBuffer("y" %y: !tile.view<?x128xbf16>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x128>
  // expected-error@+1 {{'tile.store' op has no buffer to stage in; run tile-allocate-shared, and stage fragments of a multiple of 64 columns only}}
  tile.store %acc -> %y[%c0, %c0] rows %c0 staged : !tile.acc<64x128>, !tile.view<?x128xbf16>
}

// -----

// Stores mask eight columns at a time.
tile.kernel @columns("y" %y: !tile.view<?x100xbf16>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x128>
  // expected-error@+1 {{'tile.store' op writes columns by the eight, its view has 100}}
  tile.store %acc -> %y[%c0, %c0] rows %c0 : !tile.acc<64x128>, !tile.view<?x100xbf16>
}

// -----

// Rows can only be found by a scheduler that sorts them.
tile.kernel @notSorted("y" %y: !tile.view<?x128xbf16>) warpgroups 1 {
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1 {shared_offset = 0 : i64}
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<64x128>
    tile.fill %acc : !tile.acc<64x128>
    // expected-error@+1 {{'tile.store' op finds rows by a scheduler that does not sort them, or has no shared memory yet}}
    tile.store %acc -> %y[%m, %n] rows %rows rows_by %q : !tile.acc<64x128>, !tile.view<?x128xbf16>
  }
}
