// Sorted rows: every block sorts the rows by expert, and what names the scheduler finds them where they lie.
// RUN: moejit-opt %s --moejit-lower | FileCheck %s

tile.kernel @batched("x" %x: !tile.view<?x128xf8E4M3FN>, "x_scales" %xs: !tile.view<?xf32>, "expert_ids" %ids: !tile.view<?xi32>, "w" %w: !tile.view<4x128x128xf8E4M3FN>, "y" %y: !tile.view<?x128xbf16>) warpgroups 1 {
  %q = tile.scheduler batched(%ids : !tile.view<?xi32>) tile [64, 128] columns 128 experts 4 order static raster 1 zeroed
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>, !tile.block<1x128x128xf8E4M3FN>]
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %c0 = arith.constant 0 : i32
    %acc = tile.acc : !tile.acc<64x128>
    tile.fill %acc : !tile.acc<64x128>
    tile.once {
      %s = tile.acquire %ring
      tile.copy %x[%m, %c0] rows_by %q -> %s[0] : !tile.view<?x128xf8E4M3FN>
      tile.copy %w[%e, %n, %c0] -> %s[1] : !tile.view<4x128x128xf8E4M3FN>
      tile.publish %s
    }
    %f = tile.await %ring
    %a = tile.field %f[0] = %x[%m, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
    %b = tile.field %f[1] = %w[%e, %n, %c0] : !tile.view<4x128x128xf8E4M3FN> -> !tile.block<1x128x128xf8E4M3FN>
    tile.dot %acc, %a, %b : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<1x128x128xf8E4M3FN>
    tile.wait %acc : !tile.acc<64x128>
    tile.release %f
    %sa = tile.load %xs[%m] rows_by %q : !tile.view<?xf32> -> !tile.block<64xf32>
    tile.scale %acc rows %sa per 1 : !tile.block<64xf32> : !tile.acc<64x128>
    tile.store %acc -> %y[%m, %n] rows %rows rows_by %q : !tile.acc<64x128>, !tile.view<?x128xbf16>
  }
}

// Counting may come in any order, placing may not: a thread takes the rows of a bucket in theirs.
// CHECK-LABEL: ptx.kernel @batched
// CHECK: ptx.atom_add_shared_i32
// CHECK: ptx.bar_sync
// CHECK: ptx.shfl_idx
// CHECK: ptx.bar_sync
// CHECK-NOT: ptx.atom_add_shared_i32
// Rows come one box each, from where the sorted list says.
// CHECK: ptx.mbarrier_expect_tx
// CHECK: scf.for
// CHECK: %[[FROM:.*]] = ptx.ld_shared_i32
// CHECK: ptx.tma_load %{{.*}}, %{{.*}}[%{{.*}}, %[[FROM]]]
// Their scales and results too.
// CHECK: ptx.ld_shared_i32
// CHECK: ptx.ld_global_f32
// CHECK: ptx.ld_shared_i32
// CHECK: ptx.st_global_b32

// With a map ids are global: one outside the map, or mapped to no expert, is nobody's.
// CHECK-LABEL: ptx.kernel @mapped
// CHECK-SAME: %expertIds: !ptx.ptr {{.*}}, %expertMap: !ptx.ptr
// CHECK: %[[ID:.*]] = ptx.ld_global_i32 %expertIds
// CHECK: %[[BELOW:.*]] = arith.cmpi slt, %[[ID]], %c9_i32
// CHECK: %[[INSIDE:.*]] = arith.andi %{{.*}}, %[[BELOW]]
// CHECK: scf.if %[[INSIDE]] -> (i32)
// CHECK: ptx.ld_global_i32 %expertMap
// CHECK: } else {
// CHECK: scf.yield %c-1_i32
tile.kernel @mapped("x" %x: !tile.view<?x128xf8E4M3FN>, "expert_ids" %ids: !tile.view<?xi32>, "expert_map" %map: !tile.view<9xi32>, "y" %y: !tile.view<?x128xbf16>) warpgroups 1 {
  %q = tile.scheduler batched(%ids : !tile.view<?xi32>) map(%map : !tile.view<9xi32>) tile [64, 128] columns 128 experts 4 order static raster 1 zeroed
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<64x128>
    tile.fill %acc : !tile.acc<64x128>
    tile.store %acc -> %y[%m, %n] rows %rows rows_by %q : !tile.acc<64x128>, !tile.view<?x128xbf16>
  }
}
