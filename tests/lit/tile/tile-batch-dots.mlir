// A dot, its wait and its promotion become one of each for every fragment, with one fragment's temporary.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-batch-dots))' -split-input-file | FileCheck %s

// Two fragments of 64 rows share one temporary; each promotion keeps its scales.
// CHECK-LABEL: tile.kernel @promoted
tile.kernel @promoted("x" %x: !tile.view<?x128xf8E4M3FN>, "x_scales" %xs: !tile.view<?xf32>, "w" %w: !tile.view<256x128xf8E4M3FN>) warpgroups 2 {
  %c0 = arith.constant 0 : i32
  // CHECK: %[[ACC:.*]] = tile.acc : !tile.acc<128x256, columns, n = 128>
  %acc = tile.acc : !tile.acc<128x256, columns, n = 128>
  // CHECK-NEXT: %[[T:.*]] = tile.acc : !tile.fragment<n = 128>
  // CHECK-NOT: tile.acc :
  %t = tile.acc : !tile.acc<128x256, columns, n = 128>
  // CHECK: %[[A:.*]] = tile.load {{.*}} -> <128x128xf8E4M3FN>
  %a = tile.load %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  // CHECK: %[[B:.*]] = tile.load {{.*}} -> <256x128xf8E4M3FN>
  %b = tile.load %w[%c0, %c0] : !tile.view<256x128xf8E4M3FN> -> !tile.block<256x128xf8E4M3FN>
  // CHECK: %[[S:.*]] = tile.load {{.*}} -> <128xf32>
  %s = tile.load %xs[%c0] : !tile.view<?xf32> -> !tile.block<128xf32>
  // CHECK-NEXT: tile.dot %[[T]], %[[A]], %[[B]] batch 0 of !tile.acc<128x256, columns, n = 128> fresh : !tile.fragment<n = 128>
  // CHECK-NEXT: tile.wait %[[T]] : !tile.fragment<n = 128>
  // CHECK-NEXT: tile.promote %[[ACC]], %[[T]] rows %[[S]] per 1 : !tile.block<128xf32> batch 0
  // CHECK-NEXT: tile.dot %[[T]], %[[A]], %[[B]] batch 1 of !tile.acc<128x256, columns, n = 128> fresh : !tile.fragment<n = 128>
  // CHECK-NEXT: tile.wait %[[T]] : !tile.fragment<n = 128>
  // CHECK-NEXT: tile.promote %[[ACC]], %[[T]] rows %[[S]] per 1 : !tile.block<128xf32> batch 1
  // CHECK-NEXT: }
  tile.dot %t, %a, %b fresh : !tile.acc<128x256, columns, n = 128>, !tile.block<128x128xf8E4M3FN>, !tile.block<256x128xf8E4M3FN>
  tile.wait %t : !tile.acc<128x256, columns, n = 128>
  tile.promote %acc, %t rows %s per 1 : !tile.block<128xf32> : !tile.acc<128x256, columns, n = 128>, !tile.acc<128x256, columns, n = 128>
}

// -----

// A plain dense GEMM sums in its accumulator: there is nothing to batch.
// CHECK-LABEL: tile.kernel @dense
tile.kernel @dense("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<256x128xf8E4M3FN>, "y" %y: !tile.view<?x256xbf16>) warpgroups 2 {
  %c0 = arith.constant 0 : i32
  // CHECK: tile.acc : !tile.acc<128x256>
  %acc = tile.acc : !tile.acc<128x256>
  %a = tile.load %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  %b = tile.load %w[%c0, %c0] : !tile.view<256x128xf8E4M3FN> -> !tile.block<256x128xf8E4M3FN>
  // CHECK: tile.dot
  // CHECK-NOT: batch
  // CHECK: tile.store
  tile.dot %acc, %a, %b fresh : !tile.acc<128x256>, !tile.block<128x128xf8E4M3FN>, !tile.block<256x128xf8E4M3FN>
  tile.wait %acc : !tile.acc<128x256>
  tile.store %acc -> %y[%c0, %c0] rows %c0 : !tile.acc<128x256>, !tile.view<?x256xbf16>
}

// -----

// A temporary that is stored as well serves more than the promotion.
// CHECK-LABEL: tile.kernel @stored
tile.kernel @stored("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<256x128xf8E4M3FN>, "y" %y: !tile.view<?x256xbf16>) warpgroups 2 {
  %c0 = arith.constant 0 : i32
  // CHECK: tile.acc : !tile.acc<128x256>
  %acc = tile.acc : !tile.acc<128x256>
  // CHECK: %[[T:.*]] = tile.acc : !tile.acc<128x256>
  // CHECK: tile.dot %[[T]], %{{.*}}, %{{.*}} fresh : !tile.acc<128x256>
  %t = tile.acc : !tile.acc<128x256>
  %a = tile.load %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  %b = tile.load %w[%c0, %c0] : !tile.view<256x128xf8E4M3FN> -> !tile.block<256x128xf8E4M3FN>
  tile.dot %t, %a, %b fresh : !tile.acc<128x256>, !tile.block<128x128xf8E4M3FN>, !tile.block<256x128xf8E4M3FN>
  tile.wait %t : !tile.acc<128x256>
  tile.promote %acc, %t : !tile.acc<128x256>, !tile.acc<128x256>
  tile.store %t -> %y[%c0, %c0] rows %c0 : !tile.acc<128x256>, !tile.view<?x256xbf16>
}

// -----

// Batches run where the promotion stands; a dot whose slot is released before that stays where it is.
// CHECK-LABEL: tile.kernel @released
tile.kernel @released("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<256x128xf8E4M3FN>) warpgroups 2 {
  %c0 = arith.constant 0 : i32
  %ring = tile.ring stages 2 [!tile.block<128x128xf8E4M3FN>, !tile.block<256x128xf8E4M3FN>]
  %acc = tile.acc : !tile.acc<128x256>
  %t = tile.acc : !tile.acc<128x256>
  %f = tile.await %ring
  %a = tile.field %f[0] = %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  %b = tile.field %f[1] = %w[%c0, %c0] : !tile.view<256x128xf8E4M3FN> -> !tile.block<256x128xf8E4M3FN>
  // CHECK: tile.dot %[[T:.*]], %{{.*}}, %{{.*}} fresh : !tile.acc<128x256>
  // CHECK-NEXT: tile.wait %[[T]]
  // CHECK-NEXT: tile.release
  // CHECK-NEXT: tile.promote %{{.*}}, %[[T]] : <128x256>, !tile.acc<128x256>
  tile.dot %t, %a, %b fresh : !tile.acc<128x256>, !tile.block<128x128xf8E4M3FN>, !tile.block<256x128xf8E4M3FN>
  tile.wait %t : !tile.acc<128x256>
  tile.release %f
  tile.promote %acc, %t : !tile.acc<128x256>, !tile.acc<128x256>
}
