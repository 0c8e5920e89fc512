// The sums of a cluster's blocks meet in the first: a warp of each other block sends to the same warp there.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-allocate-shared,tile-lower-reduce))' -split-input-file | FileCheck %s
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-allocate-shared))' -split-input-file | FileCheck %s --check-prefix=SHARED
// RUN: not moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-lower-reduce))' -split-input-file 2>&1 | FileCheck %s --check-prefix=BARE
// BARE: error: 'tile.reduce' op has no buffers; run tile-allocate-shared first

// 32 registers a thread are eight vectors of 16 bytes: of three senders they take all of 48 KiB.
// SHARED-LABEL: tile.kernel @sum
// SHARED: tile.reduce %{{.*}} rows %{{.*}} {shared_offset = 0 : i64, vectors = 8 : i64} : <64x64>
// Each warp has a barrier for one arrival, of its own lane or of the first block's.
// CHECK-LABEL: tile.kernel @sum
// CHECK: ptx.unroll %{{.*}} = 0 to 4 {
// CHECK: ptx.mbarrier_init
// CHECK: ptx.fence_mbarrier_init
// The receiver waits for as many vectors of 512 bytes from each of three blocks as the rows of the warp have, adds block by block, and lets
// the senders go on.
// CHECK: scf.if
// CHECK: ptx.mbarrier_expect_tx
// CHECK: ptx.mbarrier_wait_cluster
// CHECK: ptx.unroll %{{.*}} = 1 to 4 {
// CHECK: ptx.ld_shared_v4
// CHECK-COUNT-4: ptx.add_f32
// CHECK: ptx.syncwarp
// CHECK: ptx.mbarrier_arrive_cluster
// CHECK: } else {
// CHECK: ptx.mbarrier_wait_cluster
// CHECK: ptx.st_async_v4_f32
// CHECK-NOT: tile.reduce
tile.kernel @sum() warpgroups 1 attributes {cluster = 4 : i64} {
  %q = tile.scheduler tile [64, 64] columns 64 experts 1 order static raster 1 cluster k
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<64x64>
    tile.reduce %acc rows %rows : !tile.acc<64x64>
  }
}

// -----

// Of a large accumulator and seven senders one vector comes at a time; two sums share barriers and buffers.
// SHARED-LABEL: tile.kernel @pieces
// SHARED: tile.reduce %{{.*}} rows %{{.*}} {shared_offset = [[AT:.*]] : i64, vectors = 1 : i64} : <128x256>
// SHARED: tile.reduce %{{.*}} rows %{{.*}} transposed {shared_offset = [[AT]] : i64, vectors = 1 : i64} : <64x64, columns, n = 32>
// CHECK-LABEL: tile.kernel @pieces
// CHECK-COUNT-36: ptx.st_async_v4_f32
// CHECK-NOT: ptx.st_async_v4_f32
tile.kernel @pieces() warpgroups 2 attributes {cluster = 8 : i64} {
  %q = tile.scheduler tile [128, 256] columns 256 experts 1 order static raster 1 cluster k
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<128x256>
    %other = tile.acc : !tile.acc<64x64, columns, n = 32>
    tile.reduce %acc rows %rows : !tile.acc<128x256>
    tile.reduce %other rows %rows transposed : !tile.acc<64x64, columns, n = 32>
  }
}
