// A slot is released after the last op that reads it.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-hoist-release))' -split-input-file | FileCheck %s

// Promotions from registers need no slot: it is free once the dot is done.
// CHECK-LABEL: tile.kernel @promoted
tile.kernel @promoted("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<128x128xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %f32 = ptx.constant_f32 2.0
  %ring = tile.ring stages 2 [!tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>]
  %acc = tile.acc : !tile.acc<64x128>
  %t = tile.acc : !tile.fragment<n = 128>
  %f = tile.await %ring
  %a = tile.field %f[0] = %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b = tile.field %f[1] = %w[%c0, %c0] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  tile.dot %t, %a, %b batch 0 of !tile.acc<64x128> fresh : !tile.fragment<n = 128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
  // CHECK: tile.wait
  // CHECK-NEXT: tile.release
  // CHECK-NEXT: tile.promote
  // CHECK-NOT: tile.release
  tile.wait %t : !tile.fragment<n = 128>
  tile.promote %acc, %t column_values(%f32 : f32) batch 0 : !tile.acc<64x128>, !tile.fragment<n = 128>
  tile.release %f
}

// -----

// Bytes of words that were loaded past the slot need no slot either.
// CHECK-LABEL: tile.kernel @unpacked
tile.kernel @unpacked("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<128x128xf8E4M3FN>, "x_scales" %xs: !tile.view<?x1xi32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %ring = tile.ring stages 2 [!tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>]
  %acc = tile.acc : !tile.acc<64x128>
  %t = tile.acc : !tile.fragment<n = 128>
  %f = tile.await %ring
  %a = tile.field %f[0] = %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b = tile.field %f[1] = %w[%c0, %c0] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  %words = tile.load %xs[%c0, %c0] : !tile.view<?x1xi32> -> !tile.block<64x1xi32>
  tile.dot %t, %a, %b batch 0 of !tile.acc<64x128> fresh : !tile.fragment<n = 128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
  // CHECK: tile.wait
  // CHECK-NEXT: tile.release
  tile.wait %t : !tile.fragment<n = 128>
  %s = tile.unpack %words[%c0] : !tile.block<64x1xi32> -> !tile.block<64x1xf8E8M0FNU>
  // CHECK: tile.promote
  tile.promote %acc, %t rows %s per 1 : !tile.block<64x1xf8E8M0FNU> batch 0 : !tile.acc<64x128>, !tile.fragment<n = 128>
  // CHECK-NOT: tile.release
  tile.release %f
}

// -----

// Where the last dot runs only if it is needed, each way through releases once: after the dot, or at once.
// CHECK-LABEL: tile.kernel @branch
tile.kernel @branch("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<128x128xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %ring = tile.ring stages 2 [!tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>]
  %acc = tile.acc : !tile.acc<64x128>
  %t = tile.acc : !tile.fragment<n = 128>
  %f = tile.await %ring
  %a = tile.field %f[0] = %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b = tile.field %f[1] = %w[%c0, %c0] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  %rows = tile.rows
  %isNeeded = arith.cmpi sgt, %rows, %c0 : i32
  // CHECK: scf.if
  scf.if %isNeeded {
    tile.dot %t, %a, %b batch 0 of !tile.acc<64x128> fresh : !tile.fragment<n = 128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
    // CHECK: tile.wait
    // CHECK-NEXT: tile.release
    // CHECK-NEXT: tile.promote
    // CHECK-NEXT: } else {
    // CHECK-NEXT: tile.release
    // CHECK-NEXT: }
    tile.wait %t : !tile.fragment<n = 128>
    tile.promote %acc, %t batch 0 : !tile.acc<64x128>, !tile.fragment<n = 128>
  }
  // CHECK-NOT: tile.release
  tile.release %f
}

// -----

// A promotion that reads its scales from the slot keeps it.
// CHECK-LABEL: tile.kernel @scalesInSlot
tile.kernel @scalesInSlot("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<128x128xf8E4M3FN>, "x_scales" %xs: !tile.view<1x?xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %ring = tile.ring stages 2 [!tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>, !tile.block<1x64xf32>]
  %acc = tile.acc : !tile.acc<64x128>
  %t = tile.acc : !tile.acc<64x128>
  %f = tile.await %ring
  %a = tile.field %f[0] = %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b = tile.field %f[1] = %w[%c0, %c0] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  %s = tile.field %f[2] = %xs[%c0, %c0] : !tile.view<1x?xf32> -> !tile.block<1x64xf32>
  tile.dot %t, %a, %b fresh : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
  tile.wait %t : !tile.acc<64x128>
  // CHECK: tile.promote
  // CHECK-NEXT: tile.release
  tile.promote %acc, %t rows %s per 1 : !tile.block<1x64xf32> : !tile.acc<64x128>, !tile.acc<64x128>
  tile.release %f
}

// -----

// A plain dense GEMM waits last in its step: the release follows already.
// CHECK-LABEL: tile.kernel @dense
tile.kernel @dense("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<128x128xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %ring = tile.ring stages 2 [!tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>]
  %acc = tile.acc : !tile.acc<64x128>
  %f = tile.await %ring
  %a = tile.field %f[0] = %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b = tile.field %f[1] = %w[%c0, %c0] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  tile.dot %acc, %a, %b : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
  // CHECK: tile.wait
  // CHECK-NEXT: tile.release
  // CHECK-NEXT: }
  tile.wait %acc : !tile.acc<64x128>
  tile.release %f
}
