// Accumulators become register arrays.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-lower-accumulators))' -split-input-file -verify-diagnostics | FileCheck %s

// One array for each fragment of a warpgroup's share; filling writes every register.
// CHECK-LABEL: tile.kernel @filled
tile.kernel @filled() warpgroups 2 {
  // CHECK: %[[ACC:.*]] = ptx.regs {ptx.name = "acc"} : !ptx.regs<2x64xf32>
  // CHECK: %[[ZERO:.*]] = ptx.constant_f32 0.0
  // CHECK: ptx.unroll %[[I:.*]] = 0 to 64 {
  // CHECK-NEXT: ptx.regs_set %[[ZERO]], %[[ACC]][0, %[[I]]]
  // CHECK: ptx.unroll %[[J:.*]] = 0 to 64 {
  // CHECK-NEXT: ptx.regs_set %[[ZERO]], %[[ACC]][1, %[[J]]]
  %acc = tile.acc : !tile.acc<128x256, columns, n = 128>
  tile.fill %acc : !tile.acc<128x256, columns, n = 128>
  // CHECK: ptx.regs {ptx.name = "part"} : !ptx.regs<64xf32>
  %t = tile.acc : !tile.fragment<n = 128>
}

// -----

// A kernel without accumulators stays as it is.
// CHECK-LABEL: tile.kernel @none
tile.kernel @none() warpgroups 1 {
  // CHECK-NEXT: tile.sync
  // CHECK-NEXT: }
  tile.sync
}

// -----

// Ops that take tile values must be gone by then.
tile.kernel @early("y" %y: !tile.view<?x128xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x128>
  // expected-error@+1 {{'tile.store' op still uses an accumulator; lower it before its registers}}
  tile.store %acc -> %y[%c0, %c0] rows %c0 : !tile.acc<64x128>, !tile.view<?x128xf32>
}
