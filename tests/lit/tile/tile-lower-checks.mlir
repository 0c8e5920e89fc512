// Checks become loads, comparisons and a maximum that any order of threads leaves the same.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-allocate-shared,tile-lower-checks))' -split-input-file -verify-diagnostics | FileCheck %s

// One block looks at routing; its threads share the entries. Word 0: outside the rows; word 1, at
// byte 8: less than the one before.
// CHECK-LABEL: tile.kernel @routing
tile.kernel @routing("offsets" %o: !tile.view<5xi32>, "errors" %e: !tile.view<8xi64>) warpgroups 1 {
  // CHECK: %[[BLOCK:.*]] = ptx.block_index
  // CHECK: arith.cmpi eq, %[[BLOCK]], %
  // CHECK: scf.if
  // CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %
  // CHECK: ptx.ld_global_i32
  // CHECK: scf.if
  // CHECK: %[[WORD0:.*]] = arith.constant 0 : i64
  // CHECK: ptx.red_max_global_i64 %{{.*}}, %[[WORD0]]
  // CHECK: scf.if
  // CHECK: %[[WORD1:.*]] = arith.constant 8 : i64
  // CHECK: ptx.red_max_global_i64 %{{.*}}, %[[WORD1]]
  // CHECK: ptx.syncwarp
  // CHECK-NOT: tile.check_routing
  tile.check_routing grouped(%o : !tile.view<5xi32>) experts 4 into %e : !tile.view<8xi64>
}

// -----

// The warps that compute look at scales; offsets into a strided tensor are 64-bit.
// CHECK-LABEL: tile.kernel @scales
tile.kernel @scales("x_scales" %xs: !tile.view<2x?xf32>, "errors" %e: !tile.view<8xi64>) warpgroups 2 {
  %c0 = arith.constant 0 : i32
  %rows = tile.rows
  // CHECK: arith.constant 64 : i32
  // CHECK: scf.for
  // CHECK: scf.if
  // CHECK: %[[STRIDE:.*]] = tile.stride
  // CHECK: arith.muli %{{.*}}, %[[STRIDE]] : i64
  // CHECK: ptx.ld_global_i32
  // CHECK: arith.constant 2139095040 : i32
  // CHECK: ptx.red_max_global_i64
  tile.check_scales %xs[%rows, %c0] box [1, 64] rows %rows along 1 kind 5 into %e : !tile.view<2x?xf32>, !tile.view<8xi64>
}

// -----

tile.kernel @unknown("w_scales" %ws: !tile.view<1x128xf16>, "errors" %e: !tile.view<8xi64>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  // expected-error@+1 {{'tile.check_scales' op looks at '!tile.view<1x128xf16>', and knows scales of f32 and powers of two}}
  tile.check_scales %ws[%c0, %c0] box [1, 128] kind 6 into %e : !tile.view<1x128xf16>, !tile.view<8xi64>
}
