// The columns of accumulators are divided among the warpgroups where they can be.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-split-columns))' -split-input-file | FileCheck %s
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-split-columns{n=64}))' -split-input-file | FileCheck %s --check-prefix=N64

// A plain dense GEMM: two warpgroups take 128 of 256 columns each, and the widest fragment leaves registers for a second. `n` asks
// for narrower ones.
// CHECK-LABEL: tile.kernel @dense
// N64-LABEL: tile.kernel @dense
tile.kernel @dense("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<256x128xf8E4M3FN>, "y" %y: !tile.view<?x256xbf16>) warpgroups 2 {
  %q = tile.scheduler tile [128, 256] columns 256 experts 1 order static raster 1
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %c0 = arith.constant 0 : i32
    // CHECK: %[[ACC:.*]] = tile.acc : !tile.acc<128x256, columns, n = 128>
    // N64: tile.acc : !tile.acc<128x256, columns, n = 64>
    %acc = tile.acc : !tile.acc<128x256>
    %a = tile.load %x[%m, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
    %b = tile.load %w[%n, %c0] : !tile.view<256x128xf8E4M3FN> -> !tile.block<256x128xf8E4M3FN>
    // CHECK: tile.dot %[[ACC]], %{{.*}} fresh : !tile.acc<128x256, columns, n = 128>
    tile.dot %acc, %a, %b fresh : !tile.acc<128x256>, !tile.block<128x128xf8E4M3FN>, !tile.block<256x128xf8E4M3FN>
    tile.wait %acc : !tile.acc<128x256>
    // CHECK: tile.store %[[ACC]] -> {{.*}} : <128x256, columns, n = 128>
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<128x256>, !tile.view<?x256xbf16>
  }
}

// -----

// A temporary is divided as the accumulator it is promoted into.
// CHECK-LABEL: tile.kernel @temporary
tile.kernel @temporary() warpgroups 2 {
  // CHECK: tile.acc : !tile.acc<64x192, columns, n = 96>
  %acc = tile.acc : !tile.acc<64x192>
  // CHECK: tile.acc : !tile.acc<64x192, columns, n = 96>
  %t = tile.acc : !tile.acc<64x192>
  // CHECK: tile.promote {{.*}} : <64x192, columns, n = 96>, !tile.acc<64x192, columns, n = 96>
  tile.promote %acc, %t : !tile.acc<64x192>, !tile.acc<64x192>
}

// -----

// A division that is given stays, and so do columns that three warpgroups cannot share.
// CHECK-LABEL: tile.kernel @given
tile.kernel @given() warpgroups 3 {
  // CHECK: tile.acc : !tile.acc<192x96, rows, n = 96>
  %acc = tile.acc : !tile.acc<192x96, rows, n = 96>
  // CHECK: tile.acc : !tile.acc<192x64>
  %odd = tile.acc : !tile.acc<192x64>
  // CHECK: tile.acc : !tile.fragment<n = 96>
  %t = tile.acc : !tile.fragment<n = 96>
}

// -----

// Batches are numbered by the division they were made for: it must not change under them.
// CHECK-LABEL: tile.kernel @batched
tile.kernel @batched("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<256x128xf8E4M3FN>) warpgroups 2 {
  %c0 = arith.constant 0 : i32
  // CHECK: tile.acc : !tile.acc<128x256>
  %acc = tile.acc : !tile.acc<128x256>
  %t = tile.acc : !tile.fragment<n = 128>
  %a = tile.load %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  %b = tile.load %w[%c0, %c0] : !tile.view<256x128xf8E4M3FN> -> !tile.block<256x128xf8E4M3FN>
  // CHECK: tile.dot {{.*}} batch 1 of !tile.acc<128x256> fresh
  tile.dot %t, %a, %b batch 1 of !tile.acc<128x256> fresh : !tile.fragment<n = 128>, !tile.block<128x128xf8E4M3FN>, !tile.block<256x128xf8E4M3FN>
  tile.wait %t : !tile.fragment<n = 128>
  // CHECK: tile.promote {{.*}} batch 1 : <128x256>, !tile.fragment<n = 128>
  tile.promote %acc, %t batch 1 : !tile.acc<128x256>, !tile.fragment<n = 128>
}
