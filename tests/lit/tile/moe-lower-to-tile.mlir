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

// Blocks that do not divide a tile, and parts whose last block is ragged: every column is an item that finds its scale by itself.
// CHECK-LABEL: tile.kernel @ragged
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 96, 128], parts = 2, phase = [0, 32, 0]>
moe.kernel @ragged(%x: tensor<?x256xf8E4M3FN>, %xs: tensor<?x2xf32>, %offsets: tensor<3xi32>, %w: tensor<2x320x256xf8E4M3FN>, %ws: tensor<2x4x2xf32>) -> tensor<?x320xbf16> {
  // CHECK: tile.for_tiles %{{.*}} -> %[[E:.*]], %{{.*}}, %[[N:.*]], %{{.*}}, %{{.*}} {
  // CHECK: %[[SB:.*]] = tile.load %{{.*}}[%[[E]], %[[N]], %{{.*}}] items <granule = 96, extent = 160, phase = 32, parts = 2> : <2x4x2xf32> -> <1x256x1xf32>
  // CHECK: tile.dot {{.*}} columns %[[SB]] per 1 :
  %0 = moe.scaled(%x, %xs) : tensor<?x256xf8E4M3FN>, tensor<?x2xf32> -> tensor<?x256xf8E4M3FN, #x>
  %1 = moe.scaled(%w, %ws) : tensor<2x320x256xf8E4M3FN>, tensor<2x4x2xf32> -> tensor<2x320x256xf8E4M3FN, #w>
  %y = moe.gemm grouped(%0, %offsets, %1) : tensor<?x256xf8E4M3FN, #x>, tensor<3xi32>, tensor<2x320x256xf8E4M3FN, #w> -> tensor<?x320xbf16>
  moe.return %y : tensor<?x320xbf16>
}

// -----

// Four powers of two in a word: the words of a step are loaded once, and each part takes its byte.
// CHECK-LABEL: tile.kernel @mx
// CHECK-SAME: "x_scales" %{{.*}}: !tile.view<2x?xi32>, {{.*}} "w_scales" %{{.*}}: !tile.view<2x2x320xi32>
#x = #moe.scales<granule = [1, 32], type = f8E8M0FNU, source = dynamic, order = mn_major, align = 16, packing = 4>
#w = #moe.scales<granule = [1, 1, 32], type = f8E8M0FNU, order = mn_major, packing = 4>
moe.kernel @mx(%x: tensor<?x256xf8E4M3FN>, %xs: tensor<2x?xi32>, %offsets: tensor<3xi32>, %w: tensor<2x320x256xf8E4M3FN>, %ws: tensor<2x2x320xi32>) -> tensor<?x320xbf16> {
  // CHECK: %[[XS:.*]] = tile.load %{{.*}} bulk : <2x?xi32> -> <1x64xi32>
  // CHECK: %[[X0:.*]] = tile.unpack %[[XS]][%{{.*}}] : <1x64xi32> -> <1x64xf8E8M0FNU>
  // CHECK: %[[WS:.*]] = tile.load %{{.*}} bulk : <2x2x320xi32> -> <1x1x256xi32>
  // CHECK: %[[W0:.*]] = tile.unpack %[[WS]]
  // CHECK: tile.dot {{.*}} rows %[[X0]] per 1 : {{.*}} columns %[[W0]] per 1 : {{.*}} k[0, 32]
  // CHECK-NOT: tile.load
  // CHECK: %[[X1:.*]] = tile.unpack %[[XS]]
  // CHECK: tile.dot {{.*}} rows %[[X1]] {{.*}} k[32, 32]
  // CHECK-NOT: tile.load
  // CHECK: tile.store
  %0 = moe.scaled(%x, %xs) : tensor<?x256xf8E4M3FN>, tensor<2x?xi32> -> tensor<?x256xf8E4M3FN, #x>
  %1 = moe.scaled(%w, %ws) : tensor<2x320x256xf8E4M3FN>, tensor<2x2x320xi32> -> tensor<2x320x256xf8E4M3FN, #w>
  %y = moe.gemm grouped(%0, %offsets, %1) : tensor<?x256xf8E4M3FN, #x>, tensor<3xi32>, tensor<2x320x256xf8E4M3FN, #w> -> tensor<?x320xbf16>
  moe.return %y : tensor<?x320xbf16>
}

// -----

// A shard that starts inside a group of K: steps start with the group, before the first element, where operands are zero; scales of w,
// whose block began later, are clamped to the first.
// CHECK-LABEL: tile.kernel @phase
#x = #moe.scales<granule = [1, 128], source = dynamic, phase = [0, 96]>
#w = #moe.scales<granule = [1, *, 128], phase = [0, 0, 32]>
moe.kernel @phase(%x: tensor<?x160xf8E4M3FN>, %xs: tensor<?x2xf32>, %offsets: tensor<3xi32>, %w: tensor<2x64x160xf8E4M3FN>, %ws: tensor<2x1x2xf32>) -> tensor<?x64xbf16> {
  // CHECK: %[[STEPS:.*]] = arith.constant 2 : i32
  // CHECK: %[[K:.*]] = arith.subi %{{.*}}, %{{.*}} {ptx.name = "k"} : i32
  // CHECK: tile.load %{{.*}}[%{{.*}}, %[[K]]] : <?x160xf8E4M3FN>
  // CHECK: %[[X:.*]] = arith.addi %[[K]], %{{.*}} : i32
  // CHECK: arith.shrsi %[[X]]
  // CHECK: %[[INSIDE:.*]] = arith.maxsi
  // CHECK: arith.shrsi %[[INSIDE]]
  // CHECK: tile.load %{{.*}} : <2x2xf32> -> <1x1xf32>
  // CHECK: tile.dot {{.*}} k[0, 64]
  // CHECK: tile.dot {{.*}} k[64, 64]
  %0 = moe.scaled(%x, %xs) : tensor<?x160xf8E4M3FN>, tensor<?x2xf32> -> tensor<?x160xf8E4M3FN, #x>
  %1 = moe.scaled(%w, %ws) : tensor<2x64x160xf8E4M3FN>, tensor<2x1x2xf32> -> tensor<2x64x160xf8E4M3FN, #w>
  %y = moe.gemm grouped(%0, %offsets, %1) : tensor<?x160xf8E4M3FN, #x>, tensor<3xi32>, tensor<2x64x160xf8E4M3FN, #w> -> tensor<?x64xbf16>
  moe.return %y : tensor<?x64xbf16>
}

// -----

// Groups of several rows, in buffers: a buffer's scales are a matrix of their own.
// CHECK-LABEL: tile.kernel @buffers
// CHECK-SAME: "x_scales" %{{.*}}: !tile.view<2x25x2xf32, strided>
#x = #moe.scales<granule = [1, 4, 128], source = dynamic>
#w = #moe.scales<granule = [1, 1, *], align = 16>
moe.kernel @buffers(%x: tensor<2x100x256xf8E4M3FN>, %xs: tensor<2x25x2xf32>, %counts: tensor<2xi32>, %w: tensor<2x64x256xf8E4M3FN>, %ws: tensor<2x64x1xf32>) -> tensor<2x100x64xbf16> {
  // CHECK: tile.load %{{.*}} items <granule = 4, extent = 100> : <2x25x2xf32, strided> -> <1x64x1xf32>
  // CHECK: tile.load %{{.*}} : <2x64x1xf32, strided> -> <1x256x1xf32>
  %0 = moe.scaled(%x, %xs) : tensor<2x100x256xf8E4M3FN>, tensor<2x25x2xf32> -> tensor<2x100x256xf8E4M3FN, #x>
  %1 = moe.scaled(%w, %ws) : tensor<2x64x256xf8E4M3FN>, tensor<2x64x1xf32> -> tensor<2x64x256xf8E4M3FN, #w>
  %y = moe.gemm masked(%0, %counts, %1) : tensor<2x100x256xf8E4M3FN, #x>, tensor<2xi32>, tensor<2x64x256xf8E4M3FN, #w> -> tensor<2x100x64xbf16>
  moe.return %y : tensor<2x100x64xbf16>
}

// -----

// One instruction sums 32 of K.
#x = #moe.scales<granule = [1, 48], source = dynamic>
#w = #moe.scales<granule = [1, *, *]>
// expected-error@+1 {{'moe.kernel' op changes scales every 16 of K, not a multiple of the 32 one instruction sums}}
moe.kernel @groupsOf48(%x: tensor<?x256xf8E4M3FN>, %xs: tensor<?x6xf32>, %offsets: tensor<3xi32>, %w: tensor<2x192x256xf8E4M3FN>, %ws: tensor<2x1x1xf32>) -> tensor<?x192xbf16> {
  %0 = moe.scaled(%x, %xs) : tensor<?x256xf8E4M3FN>, tensor<?x6xf32> -> tensor<?x256xf8E4M3FN, #x>
  %1 = moe.scaled(%w, %ws) : tensor<2x192x256xf8E4M3FN>, tensor<2x1x1xf32> -> tensor<2x192x256xf8E4M3FN, #w>
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

// -----

// A quantization of its own is another pass's.
#groups = #moe.scales<granule = [1, 128], source = dynamic>
// CHECK-LABEL: moe.kernel @quantize
// CHECK: moe.quantize
moe.kernel @quantize(%x: tensor<?x512xbf16>) -> tensor<?x512xf8E4M3FN, #groups> {
  %q = moe.quantize(%x) : tensor<?x512xbf16> -> tensor<?x512xf8E4M3FN, #groups>
  moe.return %q : tensor<?x512xf8E4M3FN, #groups>
}
