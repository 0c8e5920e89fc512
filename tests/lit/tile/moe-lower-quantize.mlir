// A kernel that quantizes becomes tiles of rows and columns, each of them one op.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(moe-lower-quantize{tile-m=16 tile-n=997 warpgroups=2})' -split-input-file -verify-diagnostics | FileCheck %s

// Groups: a tile has as many whole ones as fit in the columns asked for.
#x = #moe.scales<granule = [1, 128], source = dynamic, order = mn_major, align = 16>
// CHECK-LABEL: tile.kernel @groups
// CHECK-SAME: ("x" %[[X:.*]]: !tile.view<?x7168xbf16>, "x_scales" %[[S:.*]]: !tile.view<56x?xf32>, "y" %[[Y:.*]]: !tile.view<?x7168xf8E4M3FN>) warpgroups 2
// CHECK: %[[Q:.*]] = tile.scheduler tile[16, 896] columns 7168 experts 1
// CHECK: tile.for_tiles %[[Q]] -> %{{.*}}, %[[ROW:.*]], %[[COLUMN:.*]], %[[ROWS:.*]], %{{.*}} {
// CHECK-NEXT: tile.quantize %[[X]][%[[ROW]], %[[COLUMN]]] rows %[[ROWS]] columns 896 -> %[[Y]], %[[S]] per 128 mn_major :
moe.kernel @groups(%x: tensor<?x7168xbf16>) -> tensor<?x7168xf8E4M3FN, #x> {
  %q = moe.quantize(%x) : tensor<?x7168xbf16> -> tensor<?x7168xf8E4M3FN, #x>
  moe.return %q : tensor<?x7168xf8E4M3FN, #x>
}

// -----

// One scale a token: a tile has whole rows. Scales are powers of two, four in a word.
#x = #moe.scales<granule = [1, *], source = dynamic, type = f8E8M0FNU, packing = 4>
// CHECK-LABEL: tile.kernel @tokens
// CHECK-SAME: "x_scales" %[[S:.*]]: !tile.view<?x1xi32>
// CHECK: tile.scheduler tile[16, 2048] columns 2048
// CHECK: tile.quantize %{{.*}} columns 2048 -> %{{.*}}, %[[S]] per 2048 :
moe.kernel @tokens(%x: tensor<?x2048xf16>) -> tensor<?x2048xf8E5M2, #x> {
  %q = moe.quantize(%x) : tensor<?x2048xf16> -> tensor<?x2048xf8E5M2, #x>
  moe.return %q : tensor<?x2048xf8E5M2, #x>
}

// -----

// One computed scale for all: first every box raises a word, then the tiles take their scale from it.
#x = #moe.scales<granule = [*, *], source = dynamic>
// CHECK-LABEL: tile.kernel @tensor
// CHECK-SAME: "counters" %[[C:.*]]: !tile.view<3xi32>
// CHECK: %[[ALL:.*]] = tile.rows
// CHECK: tile.grid_for %[[C]] at 0 extent %{{.*}} -> %{{.*}} {
// CHECK: tile.amax %{{.*}} rows %{{.*}} columns 512 -> %[[C]] at 2 :
// CHECK: tile.for_tiles
// CHECK-NEXT: tile.quantize %{{.*}} columns 512 -> %{{.*}}, %{{.*}} amax %[[C]] : {{.*}} at 2 :
moe.kernel @tensor(%x: tensor<?x512xf32>) -> tensor<?x512xf8E4M3FN, #x> {
  %q = moe.quantize(%x) : tensor<?x512xf32> -> tensor<?x512xf8E4M3FN, #x>
  moe.return %q : tensor<?x512xf8E4M3FN, #x>
}

// -----

// A given scale is read. Columns come in whole eights.
#x = #moe.scales<granule = [*, *]>
// CHECK-LABEL: tile.kernel @given
// CHECK-NOT: tile.amax
// CHECK: tile.quantize %{{.*}} columns 1000 -> %{{.*}}, %{{[a-z0-9]+}} :
moe.kernel @given(%x: tensor<?x4096xbf16>, %s: tensor<1x1xf32>) -> tensor<?x4096xf8E4M3FN, #x> {
  %q = moe.quantize(%x, %s) : tensor<?x4096xbf16>, tensor<1x1xf32> -> tensor<?x4096xf8E4M3FN, #x>
  moe.return %q : tensor<?x4096xf8E4M3FN, #x>
}

// -----

// A kernel that multiplies is left alone.
#x = #moe.scales<granule = [1, *], source = dynamic>
#w = #moe.scales<granule = [1, *]>
// CHECK-LABEL: moe.kernel @multiplies
// CHECK: moe.gemm
moe.kernel @multiplies(%x: tensor<?x512xf8E4M3FN, #x>, %w: tensor<256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm eager(%x, %w) : tensor<?x512xf8E4M3FN, #x>, tensor<256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// Scales of several rows are no boxes of one row's granules.
#x = #moe.scales<granule = [128, 128], source = dynamic>
// expected-error@+1 {{'moe.kernel' op quantizes by granule = [128, 128], source = dynamic, which is not lowered}}
moe.kernel @blocks(%x: tensor<?x512xbf16>) -> tensor<?x512xf8E4M3FN, #x> {
  %q = moe.quantize(%x) : tensor<?x512xbf16> -> tensor<?x512xf8E4M3FN, #x>
  moe.return %q : tensor<?x512xf8E4M3FN, #x>
}
