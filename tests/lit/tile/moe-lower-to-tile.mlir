// Expert GEMMs become the plainest tile programs: every tile loads its operands step by step, multiplies, scales and stores.
// RUN: moejit-opt %s --moe-lower-to-tile='tile-m=64 tile-n=256' -split-input-file -verify-diagnostics | FileCheck %s
// RUN: not moejit-opt %s --moe-lower-to-tile='tile-k=0' -split-input-file 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: tiles have positive extents, got 128, 128 and 0

// Scales that vary along K belong to the dot; its exactness is the GEMM's. A tile no expert owns takes no step, so that its zeros are stored.
// CHECK-LABEL: tile.kernel @blocks
// CHECK-SAME: ("x" %[[X:.*]]: !tile.view<?x400xf8E4M3FN>, "x_scales" %[[XS:.*]]: !tile.view<4x?xf32>, "offsets" %[[O:.*]]: !tile.view<5xi32>,
// CHECK-SAME: "w" %[[W:.*]]: !tile.view<4x320x400xf8E4M3FN>, "w_scales" %[[WS:.*]]: !tile.view<4x3x4xf32>, "y" %[[Y:.*]]: !tile.view<?x320xbf16>) warpgroups 2
#x = #moe.scales<granule = [1, 128], source = dynamic, order = mn_major, align = 16>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @blocks(%x: tensor<?x400xf8E4M3FN>, %xs: tensor<4x?xf32>, %offsets: tensor<5xi32>, %w: tensor<4x320x400xf8E4M3FN>, %ws: tensor<4x3x4xf32>) -> tensor<?x320xbf16> {
  // CHECK: tile.scheduler grouped(%[[O]]) tile[64, 256] columns 320 experts 4 order {{ *}}static raster 1 zeroed
  // CHECK: tile.for_tiles %{{.*}} -> %[[E:.*]], %[[M:.*]], %[[N:.*]], %[[ROWS:.*]], %[[LIVE:.*]] {
  // CHECK: %[[ACC:.*]] = tile.acc : !tile.acc<64x256>
  // CHECK: tile.fill %[[ACC]]
  // CHECK: %[[STEPS:.*]] = arith.select %[[LIVE]]
  // CHECK: scf.for %{{.*}} = %{{.*}} to %[[STEPS]]
  // CHECK: %[[A:.*]] = tile.load %[[X]][%[[M]], %[[K:.*]]] : <?x400xf8E4M3FN> -> <64x128xf8E4M3FN>
  // CHECK: %[[B:.*]] = tile.load %[[W]][%[[E]], %[[N]], %[[K]]] : <4x320x400xf8E4M3FN> -> <1x256x128xf8E4M3FN>
  // CHECK: %[[SA:.*]] = tile.load %[[XS]][%{{.*}}, %[[M]]] bulk : <4x?xf32> -> <1x64xf32>
  // CHECK: %[[SB:.*]] = tile.load %[[WS]][%[[E]], %{{.*}}, %{{.*}}] : <4x3x4xf32> -> <1x2x1xf32>
  // CHECK: tile.dot %[[ACC]], %[[A]], %[[B]] rows %[[SA]] per 1 : !tile.block<1x64xf32> columns %[[SB]] per 128 : !tile.block<1x2x1xf32> exact
  // CHECK-NEXT: tile.wait %[[ACC]]
  // CHECK-NOT: tile.scale
  // CHECK: tile.store %[[ACC]] -> %[[Y]][%[[M]], %[[N]]] rows %[[ROWS]]
  %0 = moe.scaled(%x, %xs) : tensor<?x400xf8E4M3FN>, tensor<4x?xf32> -> tensor<?x400xf8E4M3FN, #x>
  %1 = moe.scaled(%w, %ws) : tensor<4x320x400xf8E4M3FN>, tensor<4x3x4xf32> -> tensor<4x320x400xf8E4M3FN, #w>
  %y = moe.gemm grouped(%0, %offsets, %1) : tensor<?x400xf8E4M3FN, #x>, tensor<5xi32>, tensor<4x320x400xf8E4M3FN, #w> -> tensor<?x320xbf16>
  moe.return %y : tensor<?x320xbf16>
}

// -----

// Scales that do not vary along K apply once, where an expert owns the tile: those of rows nobody owns may be anything. Fast sums are not exact.
// CHECK-LABEL: tile.kernel @channels
#x = #moe.scales<granule = [1, *], source = dynamic>
#w = #moe.scales<granule = [1, 1, *]>
moe.kernel @channels(%x: tensor<?x256xf8E4M3FN>, %xs: tensor<?x1xf32>, %offsets: tensor<3xi32>, %w: tensor<2x256x256xf8E4M3FN>, %ws: tensor<2x256x1xf32>) -> tensor<?x256xf16> {
  // CHECK: tile.for_tiles %{{.*}} -> %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[LIVE:.*]] {
  // CHECK: scf.for
  // CHECK: tile.dot
  // CHECK-NOT: rows
  // CHECK-NOT: exact
  // CHECK: }
  // CHECK: scf.if %[[LIVE]] {
  // CHECK: %[[SA:.*]] = tile.load {{.*}} : <?xf32> -> <64xf32>
  // CHECK: %[[SB:.*]] = tile.load {{.*}} : <2x256xf32> -> <1x256xf32>
  // CHECK: tile.scale %{{.*}} rows %[[SA]] per 1 : !tile.block<64xf32> columns %[[SB]] per 1 : !tile.block<1x256xf32>
  // CHECK: }
  // CHECK: tile.store
  %0 = moe.scaled(%x, %xs) : tensor<?x256xf8E4M3FN>, tensor<?x1xf32> -> tensor<?x256xf8E4M3FN, #x>
  %1 = moe.scaled(%w, %ws) : tensor<2x256x256xf8E4M3FN>, tensor<2x256x1xf32> -> tensor<2x256x256xf8E4M3FN, #w>
  %y = moe.gemm grouped(%0, %offsets, %1) {accumulate = fast} : tensor<?x256xf8E4M3FN, #x>, tensor<3xi32>, tensor<2x256x256xf8E4M3FN, #w> -> tensor<?x256xf16>
  moe.return %y : tensor<?x256xf16>
}

// -----

// One expert at a time: no offsets, and nothing of the rows is anybody else's.
// CHECK-LABEL: tile.kernel @eager
// CHECK-NOT: offsets
#x = #moe.scales<granule = [*, *]>
#w = #moe.scales<granule = [*, *]>
moe.kernel @eager(%x: tensor<?x256xf8E4M3FN>, %xs: tensor<1x1xf32>, %w: tensor<128x256xf8E4M3FN>, %ws: tensor<1x1xf32>) -> tensor<?x128xf32> {
  // CHECK: tile.scheduler tile[64, 256] columns 128 experts 1 order {{ *}}static raster 1{{$}}
  // CHECK: tile.scale %{{.*}} rows %{{.*}} per 64 : !tile.block<1xf32> columns %{{.*}} per 256 : !tile.block<1xf32>
  %0 = moe.scaled(%x, %xs) : tensor<?x256xf8E4M3FN>, tensor<1x1xf32> -> tensor<?x256xf8E4M3FN, #x>
  %1 = moe.scaled(%w, %ws) : tensor<128x256xf8E4M3FN>, tensor<1x1xf32> -> tensor<128x256xf8E4M3FN, #w>
  %y = moe.gemm eager(%0, %1) : tensor<?x256xf8E4M3FN, #x>, tensor<128x256xf8E4M3FN, #w> -> tensor<?x128xf32>
  moe.return %y : tensor<?x128xf32>
}

// -----

// Tile kernels that are there already stay as they are.
// CHECK-LABEL: tile.kernel @other
tile.kernel @other() warpgroups 1 {
  // CHECK-NEXT: tile.sync
  // CHECK-NEXT: }
  tile.sync
}

// -----

// A block of weights and a tile must divide one another.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 96, 128]>
// expected-error@+1 {{'moe.kernel' op has weight scales for 96 columns, which do not divide a tile of 256}}
moe.kernel @blockOf96(%x: tensor<?x256xf8E4M3FN>, %xs: tensor<?x2xf32>, %offsets: tensor<3xi32>, %w: tensor<2x192x256xf8E4M3FN>, %ws: tensor<2x2x2xf32>) -> tensor<?x192xbf16> {
  %0 = moe.scaled(%x, %xs) : tensor<?x256xf8E4M3FN>, tensor<?x2xf32> -> tensor<?x256xf8E4M3FN, #x>
  %1 = moe.scaled(%w, %ws) : tensor<2x192x256xf8E4M3FN>, tensor<2x2x2xf32> -> tensor<2x192x256xf8E4M3FN, #w>
  %y = moe.gemm grouped(%0, %offsets, %1) : tensor<?x256xf8E4M3FN, #x>, tensor<3xi32>, tensor<2x192x256xf8E4M3FN, #w> -> tensor<?x192xbf16>
  moe.return %y : tensor<?x192xbf16>
}

// -----

// No scale covers nothing.
#x = #moe.scales<granule = [0, *], source = dynamic>
#w = #moe.scales<granule = [1, 1, *]>
// expected-error@+1 {{'moe.kernel' op kernel @noRows has the granule [0, *], expected extents of 1 or more}}
moe.kernel @noRows(%x: tensor<?x256xf8E4M3FN>, %xs: tensor<?x1xf32>, %offsets: tensor<3xi32>, %w: tensor<2x256x256xf8E4M3FN>, %ws: tensor<2x256x1xf32>) -> tensor<?x256xf16> {
  %0 = moe.scaled(%x, %xs) : tensor<?x256xf8E4M3FN>, tensor<?x1xf32> -> tensor<?x256xf8E4M3FN, #x>
  %1 = moe.scaled(%w, %ws) : tensor<2x256x256xf8E4M3FN>, tensor<2x256x1xf32> -> tensor<2x256x256xf8E4M3FN, #w>
  %y = moe.gemm grouped(%0, %offsets, %1) : tensor<?x256xf8E4M3FN, #x>, tensor<3xi32>, tensor<2x256x256xf8E4M3FN, #w> -> tensor<?x256xf16>
  moe.return %y : tensor<?x256xf16>
}
