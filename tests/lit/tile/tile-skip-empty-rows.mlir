// Batches whose rows lie past those of the tile's expert are left out at run time.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-skip-empty-rows))' -split-input-file | FileCheck %s

// A tile has at least one row, so batch 0 always runs; batch 1 begins at row 64.
// CHECK-LABEL: tile.kernel @columns
tile.kernel @columns("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<256x128xf8E4M3FN>, "y" %y: !tile.view<?x256xbf16>) warpgroups 2 {
  %q = tile.scheduler tile [128, 256] columns 256 experts 1 order static raster 1
  // CHECK: tile.for_tiles %{{.*}} -> %{{.*}}, %{{.*}}, %{{.*}}, %[[ROWS:.*]], %{{.*}} {
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %c0 = arith.constant 0 : i32
    %acc = tile.acc : !tile.acc<128x256, columns, n = 128>
    %t = tile.acc : !tile.fragment<n = 128>
    tile.fill %acc : !tile.acc<128x256, columns, n = 128>
    %a = tile.load %x[%m, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
    %b = tile.load %w[%n, %c0] : !tile.view<256x128xf8E4M3FN> -> !tile.block<256x128xf8E4M3FN>
    // CHECK-NOT: scf.if
    // CHECK: tile.dot {{.*}} batch 0
    tile.dot %t, %a, %b batch 0 of !tile.acc<128x256, columns, n = 128> fresh : !tile.fragment<n = 128>, !tile.block<128x128xf8E4M3FN>, !tile.block<256x128xf8E4M3FN>
    tile.wait %t : !tile.fragment<n = 128>
    // CHECK: tile.promote {{.*}} batch 0
    tile.promote %acc, %t batch 0 : !tile.acc<128x256, columns, n = 128>, !tile.fragment<n = 128>
    // CHECK-NEXT: %[[FIRST:.*]] = arith.constant 64 : i32
    // CHECK-NEXT: %[[NEEDED:.*]] = arith.cmpi sgt, %[[ROWS]], %[[FIRST]] : i32
    // CHECK-NEXT: scf.if %[[NEEDED]] {
    // CHECK-NEXT: tile.dot {{.*}} batch 1
    // CHECK-NEXT: tile.wait
    // CHECK-NEXT: tile.promote {{.*}} batch 1
    // CHECK-NEXT: }
    // CHECK-NEXT: tile.store
    tile.dot %t, %a, %b batch 1 of !tile.acc<128x256, columns, n = 128> fresh : !tile.fragment<n = 128>, !tile.block<128x128xf8E4M3FN>, !tile.block<256x128xf8E4M3FN>
    tile.wait %t : !tile.fragment<n = 128>
    tile.promote %acc, %t batch 1 : !tile.acc<128x256, columns, n = 128>, !tile.fragment<n = 128>
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<128x256, columns, n = 128>, !tile.view<?x256xbf16>
  }
}

// -----

// Where warpgroups divide the rows, the share of the second one may be empty as a whole.
// CHECK-LABEL: tile.kernel @rows
tile.kernel @rows("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<128x128xf8E4M3FN>, "y" %y: !tile.view<?x128xbf16>) warpgroups 2 {
  %q = tile.scheduler tile [128, 128] columns 128 experts 1 order static raster 1
  // CHECK: tile.for_tiles %{{.*}} -> %{{.*}}, %{{.*}}, %{{.*}}, %[[ROWS:.*]], %{{.*}} {
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %c0 = arith.constant 0 : i32
    %acc = tile.acc : !tile.acc<128x128, rows, n = 128>
    %t = tile.acc : !tile.fragment<n = 128>
    tile.fill %acc : !tile.acc<128x128, rows, n = 128>
    %a = tile.load %x[%m, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
    %b = tile.load %w[%n, %c0] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
    // CHECK-DAG: %[[SHARE:.*]] = arith.constant 64 : i32
    // CHECK-DAG: %[[GROUP:.*]] = tile.warpgroup
    // CHECK: %[[BEGIN:.*]] = arith.muli %[[GROUP]], %[[SHARE]] : i32
    // CHECK: %[[FIRST:.*]] = arith.addi %[[BEGIN]], %{{.*}} : i32
    // CHECK: %[[NEEDED:.*]] = arith.cmpi sgt, %[[ROWS]], %[[FIRST]] : i32
    // CHECK: scf.if %[[NEEDED]] {
    // CHECK-NEXT: tile.dot {{.*}} batch 0
    tile.dot %t, %a, %b batch 0 of !tile.acc<128x128, rows, n = 128> fresh : !tile.fragment<n = 128>, !tile.block<128x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
    tile.wait %t : !tile.fragment<n = 128>
    tile.promote %acc, %t batch 0 : !tile.acc<128x128, rows, n = 128>, !tile.fragment<n = 128>
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<128x128, rows, n = 128>, !tile.view<?x128xbf16>
  }
}

// -----

// A slot must be released whether its rows are empty or not, so a batch with a release in it stays whole.
// CHECK-LABEL: tile.kernel @released
tile.kernel @released("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<128x128xf8E4M3FN>, "y" %y: !tile.view<?x128xbf16>) warpgroups 1 {
  %q = tile.scheduler tile [128, 128] columns 128 experts 1 order static raster 1
  %ring = tile.ring stages 2 [!tile.block<128x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>]
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %c0 = arith.constant 0 : i32
    %acc = tile.acc : !tile.acc<128x128>
    %t = tile.acc : !tile.fragment<n = 128>
    tile.fill %acc : !tile.acc<128x128>
    %f = tile.await %ring
    %a = tile.field %f[0] = %x[%m, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
    %b = tile.field %f[1] = %w[%n, %c0] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
    // CHECK-NOT: scf.if
    // CHECK: tile.release
    // CHECK-NOT: scf.if
    // CHECK: tile.store
    tile.dot %t, %a, %b batch 1 of !tile.acc<128x128> fresh : !tile.fragment<n = 128>, !tile.block<128x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
    tile.wait %t : !tile.fragment<n = 128>
    tile.release %f
    tile.promote %acc, %t batch 1 : !tile.acc<128x128>, !tile.fragment<n = 128>
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<128x128>, !tile.view<?x128xbf16>
  }
}

// -----

// A store of all 128 rows looks at every batch.
// CHECK-LABEL: tile.kernel @allRows
tile.kernel @allRows("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<128x128xf8E4M3FN>, "y" %y: !tile.view<?x128xbf16>) warpgroups 1 {
  %q = tile.scheduler tile [128, 128] columns 128 experts 1 order static raster 1
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %c0 = arith.constant 0 : i32
    %c128 = arith.constant 128 : i32
    %acc = tile.acc : !tile.acc<128x128>
    %t = tile.acc : !tile.fragment<n = 128>
    tile.fill %acc : !tile.acc<128x128>
    %a = tile.load %x[%m, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
    %b = tile.load %w[%n, %c0] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
    // CHECK-NOT: scf.if
    // CHECK: tile.store
    tile.dot %t, %a, %b batch 1 of !tile.acc<128x128> fresh : !tile.fragment<n = 128>, !tile.block<128x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
    tile.wait %t : !tile.fragment<n = 128>
    tile.promote %acc, %t batch 1 : !tile.acc<128x128>, !tile.fragment<n = 128>
    tile.store %acc -> %y[%m, %n] rows %c128 : !tile.acc<128x128>, !tile.view<?x128xbf16>
  }
}

// -----

// Of a result that is stored transposed, columns of the accumulator are rows: fragments of columns past the last are left out.
// CHECK-LABEL: tile.kernel @transposed
tile.kernel @transposed("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<64x128xf8E4M3FN>, "y" %y: !tile.view<?x64xbf16>) warpgroups 1 {
  %q = tile.scheduler tile [192, 64] columns 64 experts 1 order static raster 1
  // CHECK: tile.for_tiles %{{.*}} -> %{{.*}}, %{{.*}}, %{{.*}}, %[[ROWS:.*]], %{{.*}} {
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %c0 = arith.constant 0 : i32
    %acc = tile.acc : !tile.acc<64x192>
    %t = tile.acc : !tile.fragment<n = 96>
    tile.fill %acc : !tile.acc<64x192>
    %a = tile.load %w[%n, %c0] : !tile.view<64x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
    %b = tile.load %x[%m, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<192x128xf8E4M3FN>
    // CHECK-NOT: scf.if
    // CHECK: tile.dot {{.*}} batch 0
    tile.dot %t, %a, %b batch 0 of !tile.acc<64x192> fresh : !tile.fragment<n = 96>, !tile.block<64x128xf8E4M3FN>, !tile.block<192x128xf8E4M3FN>
    tile.wait %t : !tile.fragment<n = 96>
    // CHECK: tile.promote {{.*}} batch 0
    tile.promote %acc, %t batch 0 : !tile.acc<64x192>, !tile.fragment<n = 96>
    // CHECK-NEXT: %[[FIRST:.*]] = arith.constant 96 : i32
    // CHECK-NEXT: %[[NEEDED:.*]] = arith.cmpi sgt, %[[ROWS]], %[[FIRST]] : i32
    // CHECK-NEXT: scf.if %[[NEEDED]] {
    // CHECK-NEXT: tile.dot {{.*}} batch 1
    tile.dot %t, %a, %b batch 1 of !tile.acc<64x192> fresh : !tile.fragment<n = 96>, !tile.block<64x128xf8E4M3FN>, !tile.block<192x128xf8E4M3FN>
    tile.wait %t : !tile.fragment<n = 96>
    tile.promote %acc, %t batch 1 : !tile.acc<64x192>, !tile.fragment<n = 96>
    tile.store %acc -> %y[%m, %n] rows %rows transposed : !tile.acc<64x192>, !tile.view<?x64xbf16>
  }
}
