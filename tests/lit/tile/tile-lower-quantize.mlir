// Boxes are quantized eight elements a lane: sixteen lanes meet for 128 columns, whole warps for more.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-lower-quantize))' -split-input-file -verify-diagnostics | FileCheck %s

// Groups of 128 in whole boxes: no mask. Sixteen lanes reduce in four steps; the first of them stores the scale.
// CHECK-LABEL: tile.kernel @groups
tile.kernel @groups("x" %x: !tile.view<?x1024xbf16>, "x_scales" %s: !tile.view<8x?xf32>, "y" %y: !tile.view<?x1024xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %rows = tile.rows
  // CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}} : i32 {
  // CHECK: %[[V:.*]] = ptx.regs {ptx.name = "values"} : !ptx.regs<2x4xi32>
  // CHECK: ptx.unroll %[[I:.*]] = 0 to 2 {
  // CHECK-NOT: scf.if
  // CHECK: ptx.ld_global_v4 %{{.*}}, %{{.*}}, %[[V]][%[[I]]] : !ptx.regs<2x4xi32>
  // CHECK: ptx.unroll %[[J:.*]] = 0 to 2 {
  // CHECK: scf.if
  // CHECK-COUNT-4: ptx.shfl_bfly
  // CHECK-NOT: ptx.shfl_bfly
  // CHECK: ptx.div_f32
  // CHECK-COUNT-2: ptx.cvt_e4m3x2_f32
  // CHECK: ptx.st_global_v2
  // CHECK: scf.if
  // CHECK: ptx.st_global_f32
  tile.quantize %x[%c0, %c0] rows %rows columns 1024 -> %y, %s per 128 mn_major vectors 2
    : !tile.view<?x1024xbf16> -> !tile.view<?x1024xf8E4M3FN>, !tile.view<8x?xf32>
}

// -----

// f32 takes two loads for eight elements. The last box reaches past the view: what lies there is zero. Powers of two leave by the byte;
// three groups leave a byte of the word, which is zero.
// CHECK-LABEL: tile.kernel @tail
tile.kernel @tail("x" %x: !tile.view<?x96xf32>, "x_scales" %s: !tile.view<?x1xi32>, "y" %y: !tile.view<?x96xf8E5M2>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %rows = tile.rows
  // CHECK: %[[V:.*]] = ptx.regs {ptx.name = "values"} : !ptx.regs<2x4xi32>
  // CHECK: scf.if
  // CHECK-COUNT-2: ptx.ld_global_v4
  // CHECK: } else {
  // CHECK-COUNT-8: ptx.regs_set %{{.*}}, %[[V]]
  // CHECK-COUNT-2: ptx.shfl_bfly
  // CHECK: ptx.cvt_e5m2x2_f32
  // CHECK: ptx.st_global_b8
  // CHECK: scf.if
  // CHECK-COUNT-1: ptx.st_global_b8
  // CHECK-NOT: ptx.st_global
  tile.quantize %x[%c0, %c0] rows %rows columns 96 -> %y, %s per 32
    : !tile.view<?x96xf32> -> !tile.view<?x96xf8E5M2>, !tile.view<?x1xi32>
}

// -----

// A given scale is read once, in front of the walk, and nobody meets.
// CHECK-LABEL: tile.kernel @given
tile.kernel @given("x" %x: !tile.view<?x256xf16>, "x_scales" %s: !tile.view<1x1xf8E8M0FNU>, "y" %y: !tile.view<?x256xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %rows = tile.rows
  // CHECK: ptx.ld_global_u8
  // CHECK: scf.for
  // CHECK-NOT: ptx.shfl_bfly
  // CHECK: ptx.cvt_f32_f16
  // CHECK: ptx.st_global_v2
  // CHECK-NOT: ptx.st_global
  tile.quantize %x[%c0, %c0] rows %rows columns 256 -> %y, %s
    : !tile.view<?x256xf16> -> !tile.view<?x256xf8E4M3FN>, !tile.view<1x1xf8E8M0FNU>
}

// -----

// The warps of a block meet, and one lane raises the magnitude of all.
// CHECK-LABEL: tile.kernel @phases
tile.kernel @phases("x" %x: !tile.view<?x256xbf16>, "x_scales" %s: !tile.view<1x1xf32>, "y" %y: !tile.view<?x256xf8E4M3FN>, "counters" %c: !tile.view<3xi32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %rows = tile.rows
  // CHECK: scf.for
  // CHECK-COUNT-5: ptx.shfl_bfly
  // CHECK: ptx.st_shared_i32
  // CHECK: ptx.bar_sync 0, 128
  // CHECK: ptx.ld_shared_i32
  // CHECK-COUNT-5: ptx.shfl_bfly
  // CHECK: ptx.red_max_global_i32
  // CHECK-NOT: ptx.red_max_global_i32
  // CHECK: ptx.bar_sync 0, 128
  tile.amax %x[%c0, %c0] rows %rows columns 256 -> %c at 2 {shared_offset = 32 : i64} : !tile.view<?x256xbf16>, !tile.view<3xi32>
  // CHECK: ptx.ld_global_i32
  // CHECK: ptx.div_f32
  // CHECK: scf.if
  // CHECK: ptx.st_global_f32
  // CHECK: scf.for
  // CHECK: ptx.st_global_v2
  tile.quantize %x[%c0, %c0] rows %rows columns 256 -> %y, %s amax %c : !tile.view<3xi32> at 2
    : !tile.view<?x256xbf16> -> !tile.view<?x256xf8E4M3FN>, !tile.view<1x1xf32>
}

// -----

// At the end of a round of a grid loop all threads meet anyhow.
// CHECK-LABEL: tile.kernel @shared_out
tile.kernel @shared_out("x" %x: !tile.view<?x256xbf16>, "y" %y: !tile.view<?x256xf8E4M3FN>, "counters" %c: !tile.view<3xi32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %rows = tile.rows
  tile.grid_for %c at 0 extent %rows -> %i : !tile.view<3xi32> {
    // CHECK: ptx.bar_sync 0, 128
    // CHECK: ptx.red_max_global_i32
    // CHECK-NOT: ptx.bar_sync
    tile.amax %x[%i, %c0] rows %rows columns 256 -> %c at 2 {shared_offset = 32 : i64} : !tile.view<?x256xbf16>, !tile.view<3xi32>
  }
}

// -----

// With work behind it in the round, the words are left by all before.
// CHECK-LABEL: tile.kernel @again_in_a_round
tile.kernel @again_in_a_round("x" %x: !tile.view<?x256xbf16>, "y" %y: !tile.view<?x256xf8E4M3FN>, "counters" %c: !tile.view<4xi32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %rows = tile.rows
  tile.grid_for %c at 0 extent %rows -> %i : !tile.view<4xi32> {
    // CHECK: ptx.red_max_global_i32
    // CHECK: ptx.bar_sync 0, 128
    // CHECK: ptx.bar_sync 0, 128
    // CHECK: ptx.red_max_global_i32
    // CHECK-NOT: ptx.bar_sync
    tile.amax %x[%i, %c0] rows %rows columns 256 -> %c at 2 {shared_offset = 32 : i64} : !tile.view<?x256xbf16>, !tile.view<4xi32>
    tile.amax %x[%i, %c0] rows %rows columns 256 -> %c at 3 {shared_offset = 32 : i64} : !tile.view<?x256xbf16>, !tile.view<4xi32>
  }
}

// -----

// A long granule that its warps can hold is read once; they meet in shared memory.
// CHECK-LABEL: tile.kernel @held
tile.kernel @held("x" %x: !tile.view<?x1024xbf16>, "x_scales" %s: !tile.view<?x1xf32>, "y" %y: !tile.view<?x1024xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %rows = tile.rows
  // CHECK: ptx.ld_global_v4
  // CHECK-COUNT-5: ptx.shfl_bfly
  // CHECK: ptx.st_shared_i32
  // CHECK: ptx.bar_sync 0, 128
  // CHECK: ptx.ld_shared_i32
  // CHECK-COUNT-1: ptx.shfl_bfly
  // CHECK-NOT: ptx.ld_global_v4
  // CHECK: ptx.st_global_v2
  // CHECK: ptx.bar_sync 0, 128
  tile.quantize %x[%c0, %c0] rows %rows columns 1024 -> %y, %s per 1024 vectors 2 warps 2 {shared_offset = 64 : i64}
    : !tile.view<?x1024xbf16> -> !tile.view<?x1024xf8E4M3FN>, !tile.view<?x1xf32>
}

// -----

// What a warp alone cannot hold it reads twice.
// CHECK-LABEL: tile.kernel @twice
tile.kernel @twice("x" %x: !tile.view<?x1024xbf16>, "x_scales" %s: !tile.view<?x1xf32>, "y" %y: !tile.view<?x1024xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %rows = tile.rows
  // CHECK: scf.for
  // CHECK: scf.for
  // CHECK: ptx.ld_global_v4
  // CHECK-COUNT-5: ptx.shfl_bfly
  // CHECK-NOT: ptx.bar_sync
  // CHECK: scf.for
  // CHECK: ptx.ld_global_v4
  // CHECK: ptx.st_global_v2
  tile.quantize %x[%c0, %c0] rows %rows columns 1024 -> %y, %s per 1024
    : !tile.view<?x1024xbf16> -> !tile.view<?x1024xf8E4M3FN>, !tile.view<?x1xf32>
}

// -----

tile.kernel @unplaced("x" %x: !tile.view<?x1024xbf16>, "x_scales" %s: !tile.view<?x1xf32>, "y" %y: !tile.view<?x1024xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %rows = tile.rows
  // expected-error@+1 {{'tile.quantize' op has no shared memory to meet in; run tile-allocate-shared first}}
  tile.quantize %x[%c0, %c0] rows %rows columns 1024 -> %y, %s per 1024 warps 2
    : !tile.view<?x1024xbf16> -> !tile.view<?x1024xf8E4M3FN>, !tile.view<?x1xf32>
}

// -----

tile.kernel @uneven("x" %x: !tile.view<?x1024xbf16>, "x_scales" %s: !tile.view<?x1xf32>, "y" %y: !tile.view<?x1024xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %rows = tile.rows
  // expected-error@+1 {{'tile.quantize' op shares a granule among 8 warps, which do not divide the 4 of the block}}
  tile.quantize %x[%c0, %c0] rows %rows columns 1024 -> %y, %s per 1024 warps 8
    : !tile.view<?x1024xbf16> -> !tile.view<?x1024xf8E4M3FN>, !tile.view<?x1xf32>
}

// -----

tile.kernel @amax_unplaced("x" %x: !tile.view<?x256xbf16>, "counters" %c: !tile.view<3xi32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  // expected-error@+1 {{'tile.amax' op has no shared memory to meet in; run tile-allocate-shared first}}
  tile.amax %x[%c0, %c0] rows %c0 columns 256 -> %c : !tile.view<?x256xbf16>, !tile.view<3xi32>
}
