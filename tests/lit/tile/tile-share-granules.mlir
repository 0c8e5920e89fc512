// Warps share granules that are long, or of a length that lanes cannot divide; short ones have lanes enough.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-share-granules{warps=4}))' | FileCheck %s
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-share-granules{warps=8}))' | FileCheck %s --check-prefix=EIGHT

// Eight warps do not divide the four of this block.
// EIGHT-NOT: warps 8
// CHECK-LABEL: tile.kernel @boxes
tile.kernel @boxes("x" %x: !tile.view<?x3072xbf16>, "x_scales" %s: !tile.view<?x24xf32>, "x_scales" %t: !tile.view<?x1xf32>, "x_scales" %o: !tile.view<?x32xf32>, "y" %y: !tile.view<?x3072xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  // CHECK: tile.quantize %{{.*}} per 3072 warps 4 :
  tile.quantize %x[%c0, %c0] rows %c0 columns 3072 -> %y, %t per 3072 : !tile.view<?x3072xbf16> -> !tile.view<?x3072xf8E4M3FN>, !tile.view<?x1xf32>
  // CHECK: tile.quantize %{{.*}} per 96 warps 4 :
  tile.quantize %x[%c0, %c0] rows %c0 columns 960 -> %y, %o per 96 : !tile.view<?x3072xbf16> -> !tile.view<?x3072xf8E4M3FN>, !tile.view<?x32xf32>
  // CHECK: tile.quantize %{{.*}} per 128 :
  tile.quantize %x[%c0, %c0] rows %c0 columns 1024 -> %y, %s per 128 : !tile.view<?x3072xbf16> -> !tile.view<?x3072xf8E4M3FN>, !tile.view<?x24xf32>
}
