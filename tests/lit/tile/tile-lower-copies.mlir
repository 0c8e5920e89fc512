// Copies become bulk tensor copies, and the launch learns which tensor maps to make.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-lower-copies))' -split-input-file -verify-diagnostics | FileCheck %s

// The contiguous dimension comes first. Copies of like boxes share a map; rows of a launch's tensor have the launch's stride, packed views
// their own. The policy is made once.
// CHECK-LABEL: tile.kernel @matrices
// CHECK-SAME: "x" %[[XMAP:[^:]*]]: !ptx.tmap, "w" %[[WMAP:[^:]*]]: !ptx.tmap) warpgroups 1
// CHECK-SAME: tensor_maps = [
// CHECK-SAME: {box = array<i64: 128, 64>, extents = array<i64: 512, -9223372036854775808>, operand = "x", strides = array<i64: -9223372036854775808>, swizzled = true, type = f8E4M3FN}
// CHECK-SAME: {box = array<i64: 128, 128, 1>, extents = array<i64: 512, 256, 4>, operand = "w", strides = array<i64: 512, 131072>, swizzled = true, type = f8E4M3FN}]
tile.kernel @matrices("x" %x: !tile.view<?x512xf8E4M3FN>, "w" %w: !tile.view<4x256x512xf8E4M3FN>) warpgroups 1 {
  // CHECK: %[[POLICY:.*]] = ptx.createpolicy_evict_first
  %c0 = arith.constant 0 : i32
  %e = arith.constant 3 : i32
  // CHECK: %[[M:.*]] = tile.rows
  %m = tile.rows
  %k = arith.constant 128 : i32
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>, !tile.block<1x128x128xf8E4M3FN>, !tile.block<64x128xf8E4M3FN>] {barrier_offset = 32768 : i64, field_offsets = array<i64: 0, 8192, 24576>, shared_offset = 0 : i64, stride = 33792 : i64}
  %s = tile.acquire %ring
  // CHECK: %[[FULL:.*]] = arith.constant 32768 : i32
  // CHECK: ptx.tma_load %{{.*}}, %[[XMAP]][%{{.*}}, %[[M]]], %{{.*}}
  tile.copy %x[%m, %k] -> %s[0] : !tile.view<?x512xf8E4M3FN>
  // CHECK: ptx.tma_load %{{.*}}, %[[WMAP]][%{{.*}}, %[[M]], %{{.*}}], %{{.*}} policy %[[POLICY]]
  tile.copy %w[%e, %m, %k] -> %s[1] {evict_first} : !tile.view<4x256x512xf8E4M3FN>
  // CHECK: ptx.tma_load %{{.*}}, %[[XMAP]][%{{.*}}, %[[M]]], %{{.*}}
  tile.copy %x[%m, %c0] -> %s[2] : !tile.view<?x512xf8E4M3FN>
}

// -----

// A vector of scales starts at a multiple of four and brings four more; single scales of a packed view come 16 bytes each through a rank-1 map.
// CHECK-LABEL: tile.kernel @scales
// CHECK-SAME: {box = array<i64: 68>, extents = array<i64: 256>, operand = "x_scales", strides = array<i64>, swizzled = false, type = f32}
// CHECK-SAME: {box = array<i64: 4>, extents = array<i64: 32>, operand = "w_scales", strides = array<i64>, swizzled = false, type = f32}
tile.kernel @scales("x_scales" %xs: !tile.view<256xf32>, "w_scales" %ws: !tile.view<4x2x4xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  // CHECK: %[[M:.*]] = tile.rows
  %m = tile.rows
  %ring = tile.ring stages 1 [!tile.block<64xf32>, !tile.block<1x2x1xf32>] {barrier_offset = 640 : i64, field_offsets = array<i64: 0, 384>, shared_offset = 0 : i64, stride = 1024 : i64}
  %s = tile.acquire %ring
  // CHECK: %[[MASK:.*]] = arith.constant -4 : i32
  // CHECK: %[[START:.*]] = arith.andi %[[M]], %[[MASK]] : i32
  // CHECK: ptx.tma_load %{{.*}}, %{{.*}}[%[[START]]], %{{.*}}
  tile.copy %xs[%m] -> %s[0] : !tile.view<256xf32>
  // CHECK-COUNT-2: ptx.tma_load
  // CHECK-NOT: ptx.tma_load
  tile.copy %ws[%m, %c0, %c0] -> %s[1] : !tile.view<4x2x4xf32>
}

// -----

// 16 bytes are 4 words, or 16 bytes: a vector of packed scales, and single powers of two.
// CHECK-LABEL: tile.kernel @powers
// CHECK-SAME: {box = array<i64: 68, 1>, extents = array<i64: -9223372036854775808, 3>, operand = "x_scales", strides = array<i64: -9223372036854775808>, swizzled = false, type = i32}
// CHECK-SAME: {box = array<i64: 16>, extents = array<i64: 32>, operand = "w_scales", strides = array<i64>, swizzled = false, type = f8E8M0FNU}
tile.kernel @powers("x_scales" %xs: !tile.view<3x?xi32>, "w_scales" %ws: !tile.view<4x2x4xf8E8M0FNU>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  // CHECK: %[[M:.*]] = tile.rows
  %m = tile.rows
  %ring = tile.ring stages 1 [!tile.block<1x64xi32>, !tile.block<1x2x1xf8E8M0FNU>] {barrier_offset = 640 : i64, field_offsets = array<i64: 0, 384>, shared_offset = 0 : i64, stride = 1024 : i64}
  %s = tile.acquire %ring
  // CHECK: %[[MASK:.*]] = arith.constant -4 : i32
  // CHECK: arith.andi %[[M]], %[[MASK]] : i32
  tile.copy %xs[%c0, %m] -> %s[0] : !tile.view<3x?xi32>
  // CHECK: %[[BYTES:.*]] = arith.constant -16 : i32
  // CHECK: arith.andi %{{.*}}, %[[BYTES]] : i32
  // CHECK-COUNT-2: ptx.tma_load
  tile.copy %ws[%m, %c0, %c0] -> %s[1] : !tile.view<4x2x4xf8E8M0FNU>
}

// -----

// A kernel that copies nothing gets no maps.
// CHECK-LABEL: tile.kernel @none
// CHECK-NOT: tensor_maps
tile.kernel @none("x" %x: !tile.view<?x512xf8E4M3FN>) warpgroups 1 {
  // CHECK: tile.sync
  tile.sync
}

// -----

// A slot has addresses once its ring has a layout.
tile.kernel @noLayout("x" %x: !tile.view<?x128xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>]
  %s = tile.acquire %ring
  // expected-error@+1 {{'tile.copy' op reads a ring without layout; run tile-allocate-shared first}}
  tile.copy %x[%c0, %c0] -> %s[0] : !tile.view<?x128xf8E4M3FN>
}

// -----

// A field that the ring does not have.
tile.kernel @field("x" %x: !tile.view<?x128xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>] {barrier_offset = 8192 : i64, field_offsets = array<i64: 0>, shared_offset = 0 : i64, stride = 9216 : i64}
  %s = tile.acquire %ring
  // expected-error@+1 {{'tile.copy' op names field 1 of a ring with 1}}
  tile.copy %x[%c0, %c0] -> %s[1] : !tile.view<?x128xf8E4M3FN>
}

// -----

// The launch makes maps of its own tensors only.
tile.kernel @choice("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<?x128xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %true = arith.constant true
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>] {barrier_offset = 8192 : i64, field_offsets = array<i64: 0>, shared_offset = 0 : i64, stride = 9216 : i64}
  %s = tile.acquire %ring
  %v = scf.if %true -> !tile.view<?x128xf8E4M3FN> {
    scf.yield %x : !tile.view<?x128xf8E4M3FN>
  } else {
    scf.yield %w : !tile.view<?x128xf8E4M3FN>
  }
  // expected-error@+1 {{'tile.copy' op copies from a view that is no argument of the kernel}}
  tile.copy %v[%c0, %c0] -> %s[0] : !tile.view<?x128xf8E4M3FN>
}

// -----

// A rank-1 map counts in 32 bits.
tile.kernel @many("w_scales" %ws: !tile.view<65536x65536xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %ring = tile.ring stages 1 [!tile.block<1x1xf32>] {barrier_offset = 128 : i64, field_offsets = array<i64: 0>, shared_offset = 0 : i64, stride = 1024 : i64}
  %s = tile.acquire %ring
  // expected-error@+1 {{'tile.copy' op indexes 4294967296 scales, more than 2^31}}
  tile.copy %ws[%c0, %c0] -> %s[0] : !tile.view<65536x65536xf32>
}

// -----

tile.kernel @fieldBeforeTheFirst("x" %x: !tile.view<?x128xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>] {barrier_offset = 8192 : i64, field_offsets = array<i64: 0>, shared_offset = 0 : i64, stride = 9216 : i64}
  %s = tile.acquire %ring
  // expected-error@+1 {{'tile.copy' op names field -1 of a ring with 1}}
  tile.copy %x[%c0, %c0] -> %s[-1] : !tile.view<?x128xf8E4M3FN>
}
