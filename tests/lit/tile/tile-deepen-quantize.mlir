// A lane has as many vectors under way as asked for, and not more than a row of the box, or a long granule, has for it.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-deepen-quantize))' | FileCheck %s
// RUN: not moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-deepen-quantize{vectors=9}))' 2>&1 | FileCheck %s --check-prefix=MANY

// MANY: op has 1 to 8 vectors under way, got 9
// CHECK-LABEL: tile.kernel @boxes
tile.kernel @boxes("x" %x: !tile.view<?x4096xbf16>, "x_scales" %s: !tile.view<?x32xf32>, "x_scales" %l: !tile.view<?x8xf32>, "y" %y: !tile.view<?x4096xf8E4M3FN>, "counters" %c: !tile.view<3xi32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  // CHECK: tile.amax %{{.*}} columns 4096 -> %{{.*}} at 2 vectors 4 :
  tile.amax %x[%c0, %c0] rows %c0 columns 4096 -> %c at 2 : !tile.view<?x4096xbf16>, !tile.view<3xi32>
  // CHECK: tile.quantize %{{.*}} columns 1024 -> %{{.*}} per 128 vectors 4 :
  tile.quantize %x[%c0, %c0] rows %c0 columns 1024 -> %y, %s per 128 : !tile.view<?x4096xbf16> -> !tile.view<?x4096xf8E4M3FN>, !tile.view<?x32xf32>
  // CHECK: tile.quantize %{{.*}} columns 512 -> %{{.*}} per 128 vectors 2 :
  tile.quantize %x[%c0, %c0] rows %c0 columns 512 -> %y, %s per 128 : !tile.view<?x4096xbf16> -> !tile.view<?x4096xf8E4M3FN>, !tile.view<?x32xf32>
  // CHECK: tile.quantize %{{.*}} columns 4096 -> %{{.*}} per 512 vectors 2 :
  tile.quantize %x[%c0, %c0] rows %c0 columns 4096 -> %y, %l per 512 : !tile.view<?x4096xbf16> -> !tile.view<?x4096xf8E4M3FN>, !tile.view<?x8xf32>
}
