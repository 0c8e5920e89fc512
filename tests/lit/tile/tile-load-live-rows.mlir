// A tile whose expert owns few rows loads no others.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-load-live-rows))' -split-input-file | FileCheck %s
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-load-live-rows{together=16}))' -split-input-file | FileCheck %s --check-prefix=TOGETHER
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-load-live-rows{together=16},tile-allocate-shared,tile-lower-copies,tile-lower-ring))' -split-input-file | FileCheck %s --check-prefix=BOXES
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-load-live-rows,tile-allocate-shared,tile-lower-copies,tile-lower-ring))' -split-input-file | FileCheck %s --check-prefix=LOWER

// The slot then waits for the bytes of those rows, and of all columns.
// CHECK-LABEL: tile.kernel @gathers
// CHECK: tile.for_tiles %{{.*}} -> %{{.*}}, %{{.*}}, %{{.*}}, %[[ROWS:.*]], %{{.*}} {
// CHECK: tile.copy %{{.*}} rows_by %{{.*}} first %[[ROWS]] -> %{{.*}}[0]
// CHECK: tile.copy
// CHECK-NOT: first
// LOWER-LABEL: tile.kernel @gathers
// LOWER: tile.for_tiles %{{.*}} -> %{{.*}}, %{{.*}}, %{{.*}}, %[[ROWS:.*]], %{{.*}} {
// LOWER: %[[LIVE:.*]] = arith.minsi %[[ROWS]], %c64_i32
// LOWER: %[[REST:.*]] = arith.subi %c64_i32{{.*}}, %[[LIVE]]
// LOWER: %[[LEFT:.*]] = arith.muli %[[REST]], %c128_i32{{.*}}
// LOWER: %[[BYTES:.*]] = arith.subi %c24576_i32{{.*}}, %[[LEFT]]
// LOWER: ptx.mbarrier_expect_tx %{{.*}}, %[[BYTES]]
// LOWER: %[[END:.*]] = arith.minsi %[[ROWS]], %c64_i32{{.*}}
// LOWER: scf.for %{{.*}} = %{{.*}} to %[[END]]
tile.kernel @gathers("x" %x: !tile.view<?x128xf8E4M3FN>, "expert_ids" %ids: !tile.view<?xi32>, "w" %w: !tile.view<4x128x128xf8E4M3FN>, "y" %y: !tile.view<?x128xbf16>) warpgroups 1 {
  %q = tile.scheduler batched(%ids : !tile.view<?xi32>) tile [64, 128] columns 128 experts 4 order static raster 1
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>, !tile.block<1x128x128xf8E4M3FN>]
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %c0 = arith.constant 0 : i32
    %acc = tile.acc : !tile.acc<64x128>
    tile.once {
      %s = tile.acquire %ring
      tile.copy %x[%m, %c0] rows_by %q -> %s[0] : !tile.view<?x128xf8E4M3FN>
      tile.copy %w[%e, %n, %c0] -> %s[1] : !tile.view<4x128x128xf8E4M3FN>
      tile.publish %s
    }
    tile.store %acc -> %y[%m, %n] rows %rows rows_by %q : !tile.acc<64x128>, !tile.view<?x128xbf16>
  }
}

// -----

// Who stores all 64 rows of a tile needs them all.
// CHECK-LABEL: tile.kernel @stores_more
// CHECK-NOT: first
tile.kernel @stores_more("x" %x: !tile.view<?x128xf8E4M3FN>, "expert_ids" %ids: !tile.view<?xi32>, "y" %y: !tile.view<?x128xbf16>) warpgroups 1 {
  %q = tile.scheduler batched(%ids : !tile.view<?xi32>) tile [64, 128] columns 128 experts 4 order static raster 1
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>]
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %acc = tile.acc : !tile.acc<64x128>
    tile.once {
      %s = tile.acquire %ring
      tile.copy %x[%m, %c0] rows_by %q -> %s[0] : !tile.view<?x128xf8E4M3FN>
      tile.publish %s
    }
    tile.store %acc -> %y[%m, %n] rows %c64 rows_by %q : !tile.acc<64x128>, !tile.view<?x128xbf16>
  }
}

// -----

// Rows that lie together come as one box, however many there are, unless boxes are asked to be smaller.
// CHECK-LABEL: tile.kernel @together
// CHECK-NOT: first
// TOGETHER-LABEL: tile.kernel @together
// TOGETHER: tile.for_tiles %{{.*}} -> %{{.*}}, %{{.*}}, %{{.*}}, %[[ROWS:.*]], %{{.*}} {
// TOGETHER: tile.copy %{{.*}} first %[[ROWS]] per 16 -> %{{.*}}[0]
// BOXES-LABEL: tile.kernel @together
// BOXES-SAME: box = array<i64: 128, 16>
// BOXES: %[[LIVE:.*]] = arith.minsi %[[ROWS:.*]], %c64_i32
// BOXES: %[[MORE:.*]] = arith.addi %[[LIVE]], %c15_i32
// BOXES: %[[BOXES:.*]] = arith.shrsi %[[MORE]], %c4_i32
// BOXES: %[[COPIED:.*]] = arith.muli %[[BOXES]], %c16_i32
// BOXES: arith.subi %c64_i32{{.*}}, %[[COPIED]]
// BOXES: ptx.mbarrier_expect_tx
// BOXES: scf.for %[[AT:.*]] = %c0{{.*}} to %{{.*}} step %c16
// BOXES: ptx.tma_load
tile.kernel @together("x" %x: !tile.view<?x128xf8E4M3FN>, "y" %y: !tile.view<?x128xbf16>) warpgroups 1 {
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>]
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %c0 = arith.constant 0 : i32
    %acc = tile.acc : !tile.acc<64x128>
    tile.once {
      %s = tile.acquire %ring
      tile.copy %x[%m, %c0] -> %s[0] : !tile.view<?x128xf8E4M3FN>
      tile.publish %s
    }
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<64x128>, !tile.view<?x128xbf16>
  }
}
