// A lowered tile.kernel becomes a ptx.kernel: views turn into the parameters that are used.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile-lower-kernel)' -split-input-file -verify-diagnostics | FileCheck %s

// Maps first, then pointers, the row count, strides; x itself is read through its map only. The launch learns how to bind each.
// CHECK-LABEL: ptx.kernel @parameters
// CHECK-SAME: (%xMap: !ptx.tmap {ptx.name = "xMap"}, %y: !ptx.ptr {ptx.name = "y"}, %rows: i32 {ptx.name = "rows"}, %yStride: i64 {ptx.name = "yStride"})
// CHECK-SAME: shared_bytes = 1024 : i32, threads = 128 : i32
// CHECK-SAME: tile.parameters = [{kind = "map", operand = "x", recipe = 0 : i64}, {kind = "pointer", operand = "y"}, {kind = "rows", operand = ""}, {kind = "stride", operand = "y"}]
tile.kernel @parameters("x" %x: !tile.view<?x128xf8E4M3FN>, "y" %y: !tile.view<?x128xf32>, "x" %map: !ptx.tmap) warpgroups 1
    attributes {shared_bytes = 1024 : i64, tile.threads = 128 : i64} {
  // CHECK: ptx.prefetch_tensormap %xMap
  ptx.prefetch_tensormap %map
  %p = builtin.unrealized_conversion_cast %y : !tile.view<?x128xf32> to !ptx.ptr
  %stride = tile.stride %y : !tile.view<?x128xf32>
  %rows = tile.rows
  %f = ptx.constant_f32 1.0
  // CHECK: %[[AT:.*]] = arith.extsi %rows : i32 to i64
  %at = arith.extsi %rows : i32 to i64
  // CHECK: %[[TO:.*]] = arith.muli %[[AT]], %yStride : i64
  %to = arith.muli %at, %stride : i64
  // CHECK: ptx.st_global_f32 %y, %[[TO]]
  ptx.st_global_f32 %p, %to, %f
}

// -----

// The workspace is as large as its view. Two maps of one operand have two names.
// CHECK-LABEL: ptx.kernel @workspace
// CHECK-SAME: %xMap: !ptx.tmap {ptx.name = "xMap"}, %xMap1: !ptx.tmap {ptx.name = "xMap1"}, %workspace: !ptx.ptr
// CHECK-SAME: tile.workspace = [{bytes = 16 : i64, operand = "workspace", row_bytes = 0 : i64, zeroed = true}]
tile.kernel @workspace("x" %a: !ptx.tmap, "x" %b: !ptx.tmap, "workspace" %c: !tile.view<4xi32>) warpgroups 1 attributes {tile.threads = 128 : i64} {
  ptx.prefetch_tensormap %a
  ptx.prefetch_tensormap %b
  %p = builtin.unrealized_conversion_cast %c : !tile.view<4xi32> to !ptx.ptr
  %zero = arith.constant 0 : i64
  %v = ptx.ld_global_i32 %p, %zero
}

// -----

// Scratch memory has a region each: counters first, which start as zeros, then what grows with the rows.
// CHECK-LABEL: ptx.kernel @regions
// CHECK-SAME: %xQuantized: !ptx.ptr {{.*}}, %counters: !ptx.ptr
// CHECK-SAME: tile.workspace = [{bytes = 8 : i64, operand = "counters", row_bytes = 0 : i64, zeroed = true},
// CHECK-SAME:  {bytes = 0 : i64, operand = "x_quantized", row_bytes = 512 : i64, zeroed = false}]
tile.kernel @regions("x_quantized" %x: !tile.view<?x512xf8E4M3FN>, "counters" %c: !tile.view<2xi32>) warpgroups 1 attributes {tile.threads = 128 : i64} {
  %p = builtin.unrealized_conversion_cast %x : !tile.view<?x512xf8E4M3FN> to !ptx.ptr
  %q = builtin.unrealized_conversion_cast %c : !tile.view<2xi32> to !ptx.ptr
  %zero = arith.constant 0 : i64
  %v = ptx.ld_global_i32 %p, %zero
  %w = ptx.ld_global_i32 %q, %zero
}

// -----

// A module without tile kernels stays as it is.
// CHECK-LABEL: ptx.kernel @other
// CHECK-NOT: tile.parameters
ptx.kernel @other() attributes {threads = 128 : i32} {
}

// -----

// The launch must know what to bind.
// expected-error@+1 {{'tile.kernel' op binds an argument to 'bias'; known are x, x_scales, w, w_scales, offsets}}
tile.kernel @operand("bias" %b: !tile.view<128xf32>) warpgroups 1 attributes {tile.threads = 128 : i64} {
}

// -----

// Copies and loads must be gone by then.
tile.kernel @view("x_scales" %x: !tile.view<?xf32>) warpgroups 1 attributes {tile.threads = 128 : i64} {
  %c0 = arith.constant 0 : i32
  // expected-error@+1 {{'tile.load' op still uses a view; lower it before the kernel}}
  %a = tile.load %x[%c0] : !tile.view<?xf32> -> !tile.block<64xf32>
}

// -----

// Without tile-lower-roles nobody counted the threads.
// expected-error@+1 {{'tile.kernel' op still has roles; run tile-lower-roles first}}
tile.kernel @threads() warpgroups 1 {
}

// -----

// Anything else of the dialect is named, too.
tile.kernel @left() warpgroups 1 attributes {tile.threads = 128 : i64} {
  // expected-error@+1 {{'tile.sync' op is not lowered; a lowering pass is missing from the pipeline}}
  tile.sync
}
