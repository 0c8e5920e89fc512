// Scales of a batch come to registers while its dot is under way.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-read-scales))' -split-input-file | FileCheck %s

// Two values for the thread's rows, one for the fragment's columns, all before the wait.
// CHECK-LABEL: tile.kernel @both
tile.kernel @both("x" %x: !tile.view<?x128xf8E4M3FN>, "x_scales" %xs: !tile.view<?xf32>, "w" %w: !tile.view<128x128xf8E4M3FN>,
                  "w_scales" %ws: !tile.view<1xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x128>
  %t = tile.acc : !tile.fragment<n = 128>
  %a = tile.load %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b = tile.load %w[%c0, %c0] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  // CHECK: %[[SA:.*]] = tile.load {{.*}} -> <64xf32>
  %sa = tile.load %xs[%c0] : !tile.view<?xf32> -> !tile.block<64xf32>
  // CHECK: %[[SB:.*]] = tile.load {{.*}} -> <1xf32>
  %sb = tile.load %ws[%c0] : !tile.view<1xf32> -> !tile.block<1xf32>
  // CHECK: tile.dot
  tile.dot %t, %a, %b batch 0 of !tile.acc<64x128> fresh : !tile.fragment<n = 128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
  // CHECK-NEXT: %[[R:.*]]:2 = tile.read %[[SA]] rows per 1 batch 0 of !tile.acc<64x128> : <64xf32> -> f32, f32
  // CHECK-NEXT: %[[C:.*]] = tile.read %[[SB]] columns per 128 batch 0 of !tile.acc<64x128> : <1xf32> -> f32
  // CHECK-NEXT: tile.wait
  tile.wait %t : !tile.fragment<n = 128>
  // CHECK-NEXT: tile.promote %{{.*}}, %{{.*}} row_values(%[[R]]#0, %[[R]]#1 : f32, f32) column_values(%[[C]] : f32) batch 0
  tile.promote %acc, %t rows %sa per 1 : !tile.block<64xf32> columns %sb per 128 : !tile.block<1xf32> batch 0 : !tile.acc<64x128>, !tile.fragment<n = 128>
}

// -----

// Channels have a scale for every column: no register stands for them all. A promotion of all fragments stays too.
// CHECK-LABEL: tile.kernel @channels
tile.kernel @channels("x" %x: !tile.view<?x128xf8E4M3FN>, "x_scales" %xs: !tile.view<?xf32>, "w" %w: !tile.view<128x128xf8E4M3FN>,
                      "w_scales" %ws: !tile.view<128xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x128>
  %t = tile.acc : !tile.fragment<n = 128>
  %u = tile.acc : !tile.acc<64x128>
  %a = tile.load %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b = tile.load %w[%c0, %c0] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  %sa = tile.load %xs[%c0] : !tile.view<?xf32> -> !tile.block<64xf32>
  %sb = tile.load %ws[%c0] : !tile.view<128xf32> -> !tile.block<128xf32>
  tile.dot %t, %a, %b batch 0 of !tile.acc<64x128> fresh : !tile.fragment<n = 128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
  // CHECK-NOT: tile.read
  tile.wait %t : !tile.fragment<n = 128>
  tile.promote %acc, %t columns %sb per 1 : !tile.block<128xf32> batch 0 : !tile.acc<64x128>, !tile.fragment<n = 128>
  tile.dot %u, %a, %b fresh : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
  tile.wait %u : !tile.acc<64x128>
  // CHECK: tile.promote {{.*}} rows %{{.*}} per 1 : !tile.block<64xf32> : <64x128>, !tile.acc<64x128>
  tile.promote %acc, %u rows %sa per 1 : !tile.block<64xf32> : !tile.acc<64x128>, !tile.acc<64x128>
}

// -----

// In a fragment of 64 columns a thread takes the scales of its 16 columns, also out of packed words; its rows' come first.
// CHECK-LABEL: tile.kernel @columns
tile.kernel @columns("x" %x: !tile.view<?x128xf8E4M3FN>, "x_scales" %xs: !tile.view<?xf32>, "w" %w: !tile.view<64x128xf8E4M3FN>,
                     "w_scales" %ws: !tile.view<64xi32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x64>
  %t = tile.acc : !tile.fragment<n = 64>
  %a = tile.load %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b = tile.load %w[%c0, %c0] : !tile.view<64x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %sa = tile.load %xs[%c0] : !tile.view<?xf32> -> !tile.block<64xf32>
  %words = tile.load %ws[%c0] : !tile.view<64xi32> -> !tile.block<64xi32>
  // CHECK: %[[SB:.*]] = tile.unpack
  %sb = tile.unpack %words[%c0] : !tile.block<64xi32> -> !tile.block<64xf8E8M0FNU>
  tile.dot %t, %a, %b batch 0 of !tile.acc<64x64> fresh : !tile.fragment<n = 64>, !tile.block<64x128xf8E4M3FN>, !tile.block<64x128xf8E4M3FN>
  // CHECK: %[[R:.*]]:2 = tile.read %{{.*}} rows per 1 batch 0
  // CHECK-NEXT: %[[C:.*]]:16 = tile.read %[[SB]] columns per 1 batch 0
  // CHECK-NEXT: tile.wait
  tile.wait %t : !tile.fragment<n = 64>
  // CHECK-NEXT: tile.promote %{{.*}}, %{{.*}} row_values(%[[R]]#0, %[[R]]#1 : f32, f32) column_values(%[[C]]#0, %[[C]]#1,
  tile.promote %acc, %t rows %sa per 1 : !tile.block<64xf32> columns %sb per 1 : !tile.block<64xf8E8M0FNU> batch 0 : !tile.acc<64x64>, !tile.fragment<n = 64>
}

// -----

// Columns whose scales stay where they are do not keep the rows' from coming early: 128 columns would take 32 registers, and blocks of 64
// make runs.
// CHECK-LABEL: tile.kernel @rowsAlone
tile.kernel @rowsAlone("x" %x: !tile.view<?x128xf8E4M3FN>, "x_scales" %xs: !tile.view<?xf32>, "w" %w: !tile.view<128x128xf8E4M3FN>,
                       "w_scales" %ws: !tile.view<128xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x128>
  %t = tile.acc : !tile.fragment<n = 128>
  %a = tile.load %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b = tile.load %w[%c0, %c0] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  %sa = tile.load %xs[%c0] : !tile.view<?xf32> -> !tile.block<64xf32>
  %sb = tile.load %ws[%c0] : !tile.view<128xf32> -> !tile.block<128xf32>
  tile.dot %t, %a, %b batch 0 of !tile.acc<64x128> fresh : !tile.fragment<n = 128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
  // CHECK: tile.read %{{.*}} rows
  // CHECK-NEXT: tile.wait
  tile.wait %t : !tile.fragment<n = 128>
  // CHECK: tile.promote %{{.*}}, %{{.*}} columns %{{.*}} per 1 : !tile.block<128xf32> row_values(
  tile.promote %acc, %t rows %sa per 1 : !tile.block<64xf32> columns %sb per 1 : !tile.block<128xf32> batch 0 : !tile.acc<64x128>, !tile.fragment<n = 128>
}

// -----

// Scales that are loaded after the wait cannot be read before it.
// CHECK-LABEL: tile.kernel @late
tile.kernel @late("x" %x: !tile.view<?x128xf8E4M3FN>, "x_scales" %xs: !tile.view<?xf32>, "w" %w: !tile.view<128x128xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x128>
  %t = tile.acc : !tile.fragment<n = 128>
  %a = tile.load %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b = tile.load %w[%c0, %c0] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  tile.dot %t, %a, %b batch 0 of !tile.acc<64x128> fresh : !tile.fragment<n = 128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
  // CHECK-NOT: tile.read
  // CHECK: tile.promote {{.*}} rows
  tile.wait %t : !tile.fragment<n = 128>
  %sa = tile.load %xs[%c0] : !tile.view<?xf32> -> !tile.block<64xf32>
  tile.promote %acc, %t rows %sa per 1 : !tile.block<64xf32> batch 0 : !tile.acc<64x128>, !tile.fragment<n = 128>
}

// -----

// How long the promotion waits may depend on a branch: scales are read before it.
// CHECK-LABEL: tile.kernel @branch
tile.kernel @branch("x" %x: !tile.view<?x128xf8E4M3FN>, "x_scales" %xs: !tile.view<?xf32>, "w" %w: !tile.view<128x128xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %rows = tile.rows
  %acc = tile.acc : !tile.acc<64x128>
  %t = tile.acc : !tile.fragment<n = 128>
  %a = tile.load %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b = tile.load %w[%c0, %c0] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  // CHECK: %[[SA:.*]] = tile.load {{.*}} -> <64xf32>
  %sa = tile.load %xs[%c0] : !tile.view<?xf32> -> !tile.block<64xf32>
  %hasTail = arith.cmpi sgt, %rows, %c0 : i32
  // CHECK: tile.dot
  tile.dot %t, %a, %b batch 0 of !tile.acc<64x128> fresh : !tile.fragment<n = 128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
  // CHECK-NEXT: %[[R:.*]]:2 = tile.read %[[SA]] rows per 1 batch 0
  // CHECK-NEXT: scf.if
  scf.if %hasTail {
    tile.wait %t pending 1 : !tile.fragment<n = 128>
  } else {
    tile.wait %t : !tile.fragment<n = 128>
  }
  // CHECK: tile.promote %{{.*}}, %{{.*}} row_values(%[[R]]#0, %[[R]]#1 : f32, f32) batch 0
  tile.promote %acc, %t rows %sa per 1 : !tile.block<64xf32> batch 0 : !tile.acc<64x128>, !tile.fragment<n = 128>
}
