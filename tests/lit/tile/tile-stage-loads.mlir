// What dots read gets a ring of one slot; what bulk copies cannot bring stays a load.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-stage-loads))' -split-input-file -verify-diagnostics | FileCheck %s

// A plain dense GEMM: one thread fills the slot, everyone awaits it, the dot reads its fields, the last op of the step releases it.
// CHECK-LABEL: tile.kernel @dense
// CHECK-SAME: ("x" %[[X:.*]]: !tile.view<?x512xf8E4M3FN>, "w" %[[W:.*]]: !tile.view<256x512xf8E4M3FN>
tile.kernel @dense("x" %x: !tile.view<?x512xf8E4M3FN>, "w" %w: !tile.view<256x512xf8E4M3FN>, "y" %y: !tile.view<?x256xf32>) warpgroups 2 {
  // CHECK: %[[RING:.*]] = tile.ring stages 1 [!tile.block<128x128xf8E4M3FN>, !tile.block<256x128xf8E4M3FN>]
  // CHECK: tile.for_tiles %{{.*}} -> %{{.*}}, %[[M:.*]], %[[N:.*]], %{{.*}}, %{{.*}} {
  %q = tile.scheduler tile [128, 256] columns 256 experts 1 order static raster 1
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %c128 = arith.constant 128 : i32
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<128x256>
    tile.fill %acc : !tile.acc<128x256>
    scf.for %step = %c0 to %c4 step %c1 : i32 {
      // CHECK: %[[K:.*]] = arith.muli
      %k = arith.muli %step, %c128 : i32
      %a = tile.load %x[%m, %k] : !tile.view<?x512xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
      %b = tile.load %w[%n, %k] : !tile.view<256x512xf8E4M3FN> -> !tile.block<256x128xf8E4M3FN>
      // CHECK-NOT: tile.load
      // CHECK: tile.once {
      // CHECK-NEXT: %[[S:.*]] = tile.acquire %[[RING]]
      // CHECK-NEXT: tile.copy %[[X]][%[[M]], %[[K]]] -> %[[S]][0] : <?x512xf8E4M3FN>
      // CHECK-NEXT: tile.copy %[[W]][%[[N]], %[[K]]] -> %[[S]][1] : <256x512xf8E4M3FN>
      // CHECK-NEXT: tile.publish %[[S]]
      // CHECK-NEXT: }
      // CHECK-NEXT: %[[F:.*]] = tile.await %[[RING]]
      // CHECK-NEXT: %[[A:.*]] = tile.field %[[F]][0] = %[[X]][%[[M]], %[[K]]]
      // CHECK-NEXT: %[[B:.*]] = tile.field %[[F]][1] = %[[W]][%[[N]], %[[K]]]
      // CHECK-NEXT: tile.dot %{{.*}}, %[[A]], %[[B]] :
      // CHECK-NEXT: tile.wait
      // CHECK-NEXT: tile.release %[[F]]
      // CHECK-NEXT: }
      tile.dot %acc, %a, %b : !tile.acc<128x256>, !tile.block<128x128xf8E4M3FN>, !tile.block<256x128xf8E4M3FN>
      tile.wait %acc : !tile.acc<128x256>
    }
    // CHECK: tile.store
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<128x256>, !tile.view<?x256xf32>
  }
}

// -----

// Scales of a step ride along when a bulk copy can bring them: rows 16 bytes apart, or single ones of a packed view.
// CHECK-LABEL: tile.kernel @bulkScales
tile.kernel @bulkScales("x" %x: !tile.view<?x128xf8E4M3FN>, "x_scales" %xs: !tile.view<1x?xf32>, "w" %w: !tile.view<256x128xf8E4M3FN>,
                        "w_scales" %ws: !tile.view<2x1xf32>) warpgroups 1 {
  // CHECK: tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>, !tile.block<256x128xf8E4M3FN>, !tile.block<1x64xf32>, !tile.block<2x1xf32>]
  %c0 = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x256>
  %t = tile.acc : !tile.acc<64x256>
  %a = tile.load %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b = tile.load %w[%c0, %c0] : !tile.view<256x128xf8E4M3FN> -> !tile.block<256x128xf8E4M3FN>
  %sa = tile.load %xs[%c0, %c0] bulk : !tile.view<1x?xf32> -> !tile.block<1x64xf32>
  %sb = tile.load %ws[%c0, %c0] : !tile.view<2x1xf32> -> !tile.block<2x1xf32>
  // CHECK: %[[SA:.*]] = tile.field %{{.*}}[2] =
  // CHECK: %[[SB:.*]] = tile.field %{{.*}}[3] =
  tile.dot %t, %a, %b fresh : !tile.acc<64x256>, !tile.block<64x128xf8E4M3FN>, !tile.block<256x128xf8E4M3FN>
  tile.wait %t : !tile.acc<64x256>
  // CHECK: tile.promote %{{.*}}, %{{.*}} rows %[[SA]] per 1 : !tile.block<1x64xf32> columns %[[SB]] per 128
  tile.promote %acc, %t rows %sa per 1 : !tile.block<1x64xf32> columns %sb per 128 : !tile.block<2x1xf32> : !tile.acc<64x256>, !tile.acc<64x256>
  // CHECK-NEXT: tile.release
}

// -----

// Scales that promise no alignment, and columns of a tall matrix, are read where they are used.
// CHECK-LABEL: tile.kernel @otherScales
tile.kernel @otherScales("x" %x: !tile.view<?x128xf8E4M3FN>, "x_scales" %xs: !tile.view<1x?xf32>, "w" %w: !tile.view<128x128xf8E4M3FN>,
                         "w_scales" %ws: !tile.view<128xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x128>
  %t = tile.acc : !tile.acc<64x128>
  %a = tile.load %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b = tile.load %w[%c0, %c0] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  // CHECK: %[[SA:.*]] = tile.load %{{.*}} : <1x?xf32> -> <1x64xf32>
  %sa = tile.load %xs[%c0, %c0] : !tile.view<1x?xf32> -> !tile.block<1x64xf32>
  // CHECK: %[[SB:.*]] = tile.load %{{.*}} : <128xf32> -> <128xf32>
  %sb = tile.load %ws[%c0] : !tile.view<128xf32> -> !tile.block<128xf32>
  tile.dot %t, %a, %b fresh : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
  tile.wait %t : !tile.acc<64x128>
  // CHECK: tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>]
  // CHECK: tile.promote %{{.*}}, %{{.*}} rows %[[SA]] per 1 : !tile.block<1x64xf32> columns %[[SB]] per 1
  tile.promote %acc, %t rows %sa per 1 : !tile.block<1x64xf32> columns %sb per 1 : !tile.block<128xf32> : !tile.acc<64x128>, !tile.acc<64x128>
}

// -----

// Packed scales are words to a copy; what takes their bytes follows the field. Columns that find their scales item by item stay.
// CHECK-LABEL: tile.kernel @packed
tile.kernel @packed("x" %x: !tile.view<?x128xf8E4M3FN>, "x_scales" %xs: !tile.view<1x?xi32>, "w" %w: !tile.view<128x128xf8E4M3FN>,
                    "w_scales" %ws: !tile.view<2x1xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x128>
  %t = tile.acc : !tile.acc<64x128>
  %a = tile.load %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b = tile.load %w[%c0, %c0] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  %words = tile.load %xs[%c0, %c0] bulk : !tile.view<1x?xi32> -> !tile.block<1x64xi32>
  %sa = tile.unpack %words[%c0] : !tile.block<1x64xi32> -> !tile.block<1x64xf8E8M0FNU>
  // CHECK: %[[SB:.*]] = tile.load %{{.*}} items
  %sb = tile.load %ws[%c0, %c0] items <granule = 96, extent = 128> : !tile.view<2x1xf32> -> !tile.block<128x1xf32>
  // CHECK: tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>, !tile.block<1x64xi32>]
  // CHECK: %[[WORDS:.*]] = tile.field %{{.*}}[2] =
  // CHECK-NEXT: %[[SA:.*]] = tile.unpack %[[WORDS]]
  // CHECK-NEXT: tile.dot
  tile.dot %t, %a, %b fresh : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
  tile.wait %t : !tile.acc<64x128>
  // CHECK: tile.promote %{{.*}}, %{{.*}} rows %[[SA]] per 1 : {{.*}} columns %[[SB]] per 1
  tile.promote %acc, %t rows %sa per 1 : !tile.block<1x64xf8E8M0FNU> columns %sb per 1 : !tile.block<128x1xf32> : !tile.acc<64x128>, !tile.acc<64x128>
  // CHECK-NEXT: tile.release
}

// -----

// Two dots in one step share a slot, and the coordinates of the second one's operands move up with its copies.
// CHECK-LABEL: tile.kernel @twoDots
tile.kernel @twoDots("x" %x: !tile.view<?x256xf8E4M3FN>, "w" %w: !tile.view<128x256xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %acc = tile.acc : !tile.acc<64x128>
  tile.fill %acc : !tile.acc<64x128>
  // CHECK: %[[K:.*]] = arith.addi
  // CHECK: tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>]
  // CHECK: tile.once
  // CHECK: tile.copy %{{.*}}[%{{.*}}, %[[K]]] -> %{{.*}}[2]
  %a0 = tile.load %x[%c0, %c0] : !tile.view<?x256xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b0 = tile.load %w[%c0, %c0] : !tile.view<128x256xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  // CHECK: tile.dot
  tile.dot %acc, %a0, %b0 : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
  %k = arith.addi %c0, %c128 : i32
  %a1 = tile.load %x[%c0, %k] : !tile.view<?x256xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b1 = tile.load %w[%c0, %k] : !tile.view<128x256xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  // CHECK-NEXT: tile.dot
  tile.dot %acc, %a1, %b1 : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
  // CHECK-NEXT: tile.wait
  tile.wait %acc : !tile.acc<64x128>
  // CHECK-NEXT: tile.release
}

// -----

// Scales that are needed before the first dot of their block cannot wait for the slot: they stay.
// CHECK-LABEL: tile.kernel @early
tile.kernel @early("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<128x128xf8E4M3FN>, "w_scales" %ws: !tile.view<1xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x128>
  tile.fill %acc : !tile.acc<64x128>
  // CHECK: %[[S:.*]] = tile.load %{{.*}} : <1xf32> -> <1xf32>
  %s = tile.load %ws[%c0] : !tile.view<1xf32> -> !tile.block<1xf32>
  // CHECK: tile.scale %{{.*}} columns %[[S]]
  tile.scale %acc columns %s per 128 : !tile.block<1xf32> : !tile.acc<64x128>
  %a = tile.load %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b = tile.load %w[%c0, %c0] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  // CHECK: tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>]
  tile.dot %acc, %a, %b : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
}

// -----

// A kernel without dots needs no ring.
// CHECK-LABEL: tile.kernel @noDot
tile.kernel @noDot("y" %y: !tile.view<?x128xf32>) warpgroups 1 {
  // CHECK-NOT: tile.ring
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<64x128>
    tile.fill %acc : !tile.acc<64x128>
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<64x128>, !tile.view<?x128xf32>
  }
}

// -----

// An operand loaded once for many steps has a ring of its own, whose slot outlives the loop.
// CHECK-LABEL: tile.kernel @otherBlock
tile.kernel @otherBlock("x" %x: !tile.view<?x512xf8E4M3FN>, "w" %w: !tile.view<128x512xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %acc = tile.acc : !tile.acc<64x128>
  // CHECK: %[[OUTER:.*]] = tile.await
  // CHECK: scf.for
  // CHECK: %[[INNER:.*]] = tile.await
  // CHECK: tile.dot
  // CHECK: tile.release %[[INNER]]
  // CHECK: }
  // CHECK: tile.release %[[OUTER]]
  %a = tile.load %x[%c0, %c0] : !tile.view<?x512xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  scf.for %k = %c0 to %c1 step %c1 : i32 {
    %b = tile.load %w[%c0, %k] : !tile.view<128x512xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
    tile.dot %acc, %a, %b : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
  }
}

// -----

// Rows found by a scheduler are copied by it; a vector of their scales does not lie in one piece, so it stays a load.
// CHECK-LABEL: tile.kernel @rowsBy
tile.kernel @rowsBy("x" %x: !tile.view<?x128xf8E4M3FN>, "x_scales" %xs: !tile.view<1x?xf32>, "expert_ids" %ids: !tile.view<?xi32>, "w" %w: !tile.view<4x128x128xf8E4M3FN>) warpgroups 1 {
  // CHECK: %[[Q:.*]] = tile.scheduler batched(
  %q = tile.scheduler batched(%ids : !tile.view<?xi32>) tile [64, 128] columns 128 experts 4 order static raster 1
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %c0 = arith.constant 0 : i32
    %acc = tile.acc : !tile.acc<64x128>
    %t = tile.acc : !tile.acc<64x128>
    // CHECK: tile.copy %{{.*}}[%{{.*}}, %{{.*}}] rows_by %[[Q]] -> %{{.*}}[0]
    // CHECK: tile.copy %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] -> %{{.*}}[1]
    // CHECK-NOT: tile.copy
    // CHECK: tile.load %{{.*}} rows_by %[[Q]] bulk
    %a = tile.load %x[%m, %c0] rows_by %q : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
    %b = tile.load %w[%e, %n, %c0] : !tile.view<4x128x128xf8E4M3FN> -> !tile.block<1x128x128xf8E4M3FN>
    tile.dot %t, %a, %b fresh : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<1x128x128xf8E4M3FN>
    tile.wait %t : !tile.acc<64x128>
    %sa = tile.load %xs[%c0, %m] rows_by %q bulk : !tile.view<1x?xf32> -> !tile.block<1x64xf32>
    tile.promote %acc, %t rows %sa per 1 : !tile.block<1x64xf32> : !tile.acc<64x128>, !tile.acc<64x128>
  }
}
