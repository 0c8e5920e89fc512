// The last few rows of an expert are multiplied as columns, beside the rows of its last tile.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-tail-rows{rows=16}))' -split-input-file | FileCheck %s

// Fields of x and its scales hold 16 rows more. Where a tile has such rows their dots are under way while the last batch of a
// step is promoted. The scales of the tile's columns are those of their rows.
// CHECK-LABEL: tile.kernel @columns
tile.kernel @columns("x" %x: !tile.view<?x512xf8E4M3FN>, "x_scales" %xs: !tile.view<4x?xf32>, "w" %w: !tile.view<256x512xf8E4M3FN>, "w_scales" %ws: !tile.view<2x4xf32>, "y" %y: !tile.view<?x256xbf16>) warpgroups 2 {
  // CHECK: tile.scheduler tile[128, 256] tail 16 columns 256
  %q = tile.scheduler tile [128, 256] columns 256 experts 1 order static raster 1
  // CHECK: tile.ring stages 1 [!tile.block<144x128xf8E4M3FN>, !tile.block<256x128xf8E4M3FN>, !tile.block<1x144xf32>, !tile.block<2x1xf32>]
  %ring = tile.ring stages 1 [!tile.block<128x128xf8E4M3FN>, !tile.block<256x128xf8E4M3FN>, !tile.block<1x128xf32>, !tile.block<2x1xf32>]
  // CHECK: tile.for_tiles %{{.*}} -> %{{.*}}, %[[M:.*]], %[[N:.*]], %[[ROWS:.*]], %{{.*}} {
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    // CHECK: %[[SUMS:.*]] = tile.acc : !tile.acc<256x16, rows, n = 16>
    // CHECK: %[[FEW0:.*]] = tile.acc : !tile.fragment<n = 16>
    // CHECK: %[[FEW1:.*]] = tile.acc : !tile.fragment<n = 16>
    %acc = tile.acc : !tile.acc<128x256, columns, n = 128>
    %t = tile.acc : !tile.fragment<n = 128>
    // CHECK: tile.fill %{{.*}} : <128x256, columns, n = 128>
    // CHECK-NEXT: tile.fill %[[SUMS]]
    tile.fill %acc : !tile.acc<128x256, columns, n = 128>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    scf.for %i = %c0 to %c4 step %c1 : i32 {
      %c128 = arith.constant 128 : i32
      %k = arith.muli %i, %c128 : i32
      tile.once {
        %s = tile.acquire %ring
        tile.copy %x[%m, %k] -> %s[0] : !tile.view<?x512xf8E4M3FN>
        tile.copy %w[%n, %k] -> %s[1] : !tile.view<256x512xf8E4M3FN>
        tile.copy %xs[%i, %m] -> %s[2] : !tile.view<4x?xf32>
        tile.copy %ws[%c0, %i] -> %s[3] : !tile.view<2x4xf32>
        tile.publish %s
      }
      // CHECK: %[[SLOT:.*]] = tile.await
      %f = tile.await %ring
      %a = tile.field %f[0] = %x[%m, %k] : !tile.view<?x512xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
      // CHECK: %[[W:.*]] = tile.field %[[SLOT]][1]
      %b = tile.field %f[1] = %w[%n, %k] : !tile.view<256x512xf8E4M3FN> -> !tile.block<256x128xf8E4M3FN>
      %as = tile.field %f[2] = %xs[%i, %m] : !tile.view<4x?xf32> -> !tile.block<1x128xf32>
      // CHECK: %[[WS:.*]] = tile.field %[[SLOT]][3]
      %bs = tile.field %f[3] = %ws[%c0, %i] : !tile.view<2x4xf32> -> !tile.block<2x1xf32>
      // CHECK: tile.promote {{.*}} batch 0
      tile.dot %t, %a, %b batch 0 of !tile.acc<128x256, columns, n = 128> fresh : !tile.fragment<n = 128>, !tile.block<128x128xf8E4M3FN>, !tile.block<256x128xf8E4M3FN>
      tile.wait %t : !tile.fragment<n = 128>
      tile.promote %acc, %t rows %as per 1 : !tile.block<1x128xf32> columns %bs per 128 : !tile.block<2x1xf32> batch 0 : !tile.acc<128x256, columns, n = 128>, !tile.fragment<n = 128>
      // CHECK-NOT: scf.if
      // CHECK: tile.dot {{.*}} batch 1
      tile.dot %t, %a, %b batch 1 of !tile.acc<128x256, columns, n = 128> fresh : !tile.fragment<n = 128>, !tile.block<128x128xf8E4M3FN>, !tile.block<256x128xf8E4M3FN>
      tile.wait %t : !tile.fragment<n = 128>
      tile.promote %acc, %t rows %as per 1 : !tile.block<1x128xf32> columns %bs per 128 : !tile.block<2x1xf32> batch 1 : !tile.acc<128x256, columns, n = 128>, !tile.fragment<n = 128>
      // CHECK-NEXT: %[[X:.*]] = tile.field %[[SLOT]][0] from 128 = {{.*}} -> <16x128xf8E4M3FN>
      // CHECK-NEXT: %[[XS:.*]] = tile.field %[[SLOT]][2] from 128 = {{.*}} -> <1x16xf32>
      // CHECK-NEXT: %[[TILE:.*]] = arith.constant 128 : i32
      // CHECK-NEXT: %[[HAS:.*]] = arith.cmpi sgt, %[[ROWS]], %[[TILE]] : i32
      // CHECK-NEXT: scf.if %[[HAS]] {
      // CHECK-NEXT: tile.dot %[[FEW0]], %[[W]], %[[X]] batch 0 of !tile.acc<256x16, rows, n = 16> fresh
      // CHECK-NEXT: tile.dot %[[FEW1]], %[[W]], %[[X]] batch 1 of !tile.acc<256x16, rows, n = 16> fresh
      // CHECK-NEXT: }
      // CHECK-NEXT: scf.if %[[HAS]] {
      // CHECK-NEXT: tile.wait %[[T:.*]] pending 2
      // CHECK-NEXT: } else {
      // CHECK-NEXT: tile.wait %[[T]] :
      // CHECK-NEXT: }
      // CHECK-NEXT: tile.promote %{{.*}}, %[[T]] {{.*}} batch 1
      // CHECK-NEXT: scf.if %[[HAS]] {
      // CHECK-NEXT: tile.wait %[[FEW0]] pending 1
      // CHECK-NEXT: tile.promote %[[SUMS]], %[[FEW0]] rows %[[WS]] per 128 : !tile.block<2x1xf32> columns %[[XS]] per 1 : !tile.block<1x16xf32> batch 0
      // CHECK-NEXT: tile.wait %[[FEW1]] :
      // CHECK-NEXT: tile.promote %[[SUMS]], %[[FEW1]] {{.*}} batch 1
      // CHECK-NEXT: }
      // CHECK-NEXT: tile.release
      tile.release %f
    }
    // CHECK: tile.store %{{.*}} -> %{{.*}}[%[[M]], %[[N]]] rows %[[ROWS]] :
    // CHECK: %[[FIRST:.*]] = arith.addi %[[M]], %{{.*}} : i32
    // CHECK: %[[LEFT:.*]] = arith.subi %[[ROWS]], %{{.*}} : i32
    // CHECK: tile.store %[[SUMS]] -> %{{.*}}[%[[FIRST]], %[[N]]] rows %[[LEFT]] transposed
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<128x256, columns, n = 128>, !tile.view<?x256xbf16>
  }
}

// -----

// Sums of wgmma's own, which no promotion takes, and accumulators that are swapped: nothing changes.
// CHECK-LABEL: tile.kernel @inPlace
// CHECK-NOT: tail
tile.kernel @inPlace("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<128x128xf8E4M3FN>, "y" %y: !tile.view<?x128xbf16>) warpgroups 1 {
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>]
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %c0 = arith.constant 0 : i32
    %acc = tile.acc : !tile.acc<64x128>
    tile.fill %acc : !tile.acc<64x128>
    %f = tile.await %ring
    %a = tile.field %f[0] = %x[%m, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
    %b = tile.field %f[1] = %w[%n, %c0] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
    tile.dot %acc, %a, %b : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
    tile.wait %acc : !tile.acc<64x128>
    tile.release %f
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<64x128>, !tile.view<?x128xbf16>
  }
}
// CHECK-LABEL: tile.kernel @swapped
// CHECK-NOT: tail
tile.kernel @swapped("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<128x128xf8E4M3FN>, "y" %y: !tile.view<?x128xbf16>) warpgroups 1 {
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>]
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %c0 = arith.constant 0 : i32
    %acc = tile.acc : !tile.acc<128x64>
    %t = tile.acc : !tile.acc<128x64>
    tile.fill %acc : !tile.acc<128x64>
    %f = tile.await %ring
    %a = tile.field %f[0] = %x[%m, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
    %b = tile.field %f[1] = %w[%n, %c0] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
    tile.dot %t, %b, %a fresh : !tile.acc<128x64>, !tile.block<128x128xf8E4M3FN>, !tile.block<64x128xf8E4M3FN>
    tile.wait %t : !tile.acc<128x64>
    tile.promote %acc, %t : !tile.acc<128x64>, !tile.acc<128x64>
    tile.release %f
    tile.store %acc -> %y[%m, %n] rows %rows transposed : !tile.acc<128x64>, !tile.view<?x128xbf16>
  }
}

// -----

// Promoted twice, it counts twice.
// CHECK-LABEL: tile.kernel @twice
// CHECK-NOT: tail
tile.kernel @twice("x" %x: !tile.view<?x512xf8E4M3FN>, "x_scales" %xs: !tile.view<4x?xf32>, "w" %w: !tile.view<128x512xf8E4M3FN>, "y" %y: !tile.view<?x128xbf16>) warpgroups 1 {
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>, !tile.block<1x64xf32>]
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<64x128>
    %t = tile.acc : !tile.fragment<n = 128>
    tile.fill %acc : !tile.acc<64x128>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %c128 = arith.constant 128 : i32
    scf.for %i = %c0 to %c4 step %c1 : i32 {
      %kk = arith.muli %i, %c128 : i32
      tile.once {
        %s = tile.acquire %ring
        tile.copy %x[%m, %kk] -> %s[0] : !tile.view<?x512xf8E4M3FN>
        tile.copy %w[%n, %kk] -> %s[1] : !tile.view<128x512xf8E4M3FN>
        tile.copy %xs[%i, %m] -> %s[2] : !tile.view<4x?xf32>
        tile.publish %s
      }
      %f = tile.await %ring
      %a = tile.field %f[0] = %x[%m, %kk] : !tile.view<?x512xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
      %b = tile.field %f[1] = %w[%n, %kk] : !tile.view<128x512xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
      %as = tile.field %f[2] = %xs[%i, %m] : !tile.view<4x?xf32> -> !tile.block<1x64xf32>
      tile.dot %t, %a, %b batch 0 of !tile.acc<64x128> fresh : !tile.fragment<n = 128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
      tile.wait %t : !tile.fragment<n = 128>
      tile.promote %acc, %t rows %as per 1 : !tile.block<1x64xf32> batch 0 : !tile.acc<64x128>, !tile.fragment<n = 128>
      tile.dot %t, %a, %b batch 0 of !tile.acc<64x128> fresh : !tile.fragment<n = 128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
      tile.wait %t : !tile.fragment<n = 128>
      tile.promote %acc, %t rows %as per 1 : !tile.block<1x64xf32> batch 0 : !tile.acc<64x128>, !tile.fragment<n = 128>

      tile.release %f
    }
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<64x128>, !tile.view<?x128xbf16>
  }
}

// -----

// A branch adds to the product before it is promoted.
// CHECK-LABEL: tile.kernel @cond
// CHECK-NOT: tail
tile.kernel @cond("x" %x: !tile.view<?x512xf8E4M3FN>, "x_scales" %xs: !tile.view<4x?xf32>, "w" %w: !tile.view<128x512xf8E4M3FN>, "y" %y: !tile.view<?x128xbf16>) warpgroups 1 {
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>, !tile.block<1x64xf32>]
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<64x128>
    %t = tile.acc : !tile.fragment<n = 128>
    tile.fill %acc : !tile.acc<64x128>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %c128 = arith.constant 128 : i32
    scf.for %i = %c0 to %c4 step %c1 : i32 {
      %kk = arith.muli %i, %c128 : i32
      tile.once {
        %s = tile.acquire %ring
        tile.copy %x[%m, %kk] -> %s[0] : !tile.view<?x512xf8E4M3FN>
        tile.copy %w[%n, %kk] -> %s[1] : !tile.view<128x512xf8E4M3FN>
        tile.copy %xs[%i, %m] -> %s[2] : !tile.view<4x?xf32>
        tile.publish %s
      }
      %f = tile.await %ring
      %a = tile.field %f[0] = %x[%m, %kk] : !tile.view<?x512xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
      %b = tile.field %f[1] = %w[%n, %kk] : !tile.view<128x512xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
      %as = tile.field %f[2] = %xs[%i, %m] : !tile.view<4x?xf32> -> !tile.block<1x64xf32>
      tile.dot %t, %a, %b batch 0 of !tile.acc<64x128> fresh : !tile.fragment<n = 128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
      %odd = arith.cmpi sgt, %i, %c1 : i32
      scf.if %odd {
      tile.dot %t, %a, %b batch 0 of !tile.acc<64x128> : !tile.fragment<n = 128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
      }
      tile.wait %t : !tile.fragment<n = 128>
      tile.promote %acc, %t rows %as per 1 : !tile.block<1x64xf32> batch 0 : !tile.acc<64x128>, !tile.fragment<n = 128>

      tile.release %f
    }
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<64x128>, !tile.view<?x128xbf16>
  }
}

// -----

// One scale for 64 rows of the tile is not that of the rows past them.
// CHECK-LABEL: tile.kernel @granule
// CHECK-NOT: tail
tile.kernel @granule("x" %x: !tile.view<?x512xf8E4M3FN>, "x_scales" %xs: !tile.view<4x?xf32>, "w" %w: !tile.view<128x512xf8E4M3FN>, "y" %y: !tile.view<?x128xbf16>) warpgroups 1 {
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>]
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<64x128>
    %t = tile.acc : !tile.fragment<n = 128>
    tile.fill %acc : !tile.acc<64x128>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %c128 = arith.constant 128 : i32
    scf.for %i = %c0 to %c4 step %c1 : i32 {
      %kk = arith.muli %i, %c128 : i32
      tile.once {
        %s = tile.acquire %ring
        tile.copy %x[%m, %kk] -> %s[0] : !tile.view<?x512xf8E4M3FN>
        tile.copy %w[%n, %kk] -> %s[1] : !tile.view<128x512xf8E4M3FN>
        tile.publish %s
      }
      %f = tile.await %ring
      %a = tile.field %f[0] = %x[%m, %kk] : !tile.view<?x512xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
      %b = tile.field %f[1] = %w[%n, %kk] : !tile.view<128x512xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
      %c64 = arith.constant 64 : i32
      %mb = arith.divsi %m, %c64 : i32
      %as = tile.load %xs[%i, %mb] : !tile.view<4x?xf32> -> !tile.block<1x1xf32>
      tile.dot %t, %a, %b batch 0 of !tile.acc<64x128> fresh : !tile.fragment<n = 128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
      tile.wait %t : !tile.fragment<n = 128>
      tile.promote %acc, %t rows %as per 64 : !tile.block<1x1xf32> batch 0 : !tile.acc<64x128>, !tile.fragment<n = 128>

      tile.release %f
    }
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<64x128>, !tile.view<?x128xbf16>
  }
}

// -----

// The scales come behind the wait, too late for dots that begin before it.
// CHECK-LABEL: tile.kernel @late
// CHECK-NOT: tail
tile.kernel @late("x" %x: !tile.view<?x512xf8E4M3FN>, "x_scales" %xs: !tile.view<4x?xf32>, "w" %w: !tile.view<128x512xf8E4M3FN>, "y" %y: !tile.view<?x128xbf16>) warpgroups 1 {
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>, !tile.block<1x64xf32>]
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<64x128>
    %t = tile.acc : !tile.fragment<n = 128>
    tile.fill %acc : !tile.acc<64x128>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %c128 = arith.constant 128 : i32
    scf.for %i = %c0 to %c4 step %c1 : i32 {
      %kk = arith.muli %i, %c128 : i32
      tile.once {
        %s = tile.acquire %ring
        tile.copy %x[%m, %kk] -> %s[0] : !tile.view<?x512xf8E4M3FN>
        tile.copy %w[%n, %kk] -> %s[1] : !tile.view<128x512xf8E4M3FN>
        tile.copy %xs[%i, %m] -> %s[2] : !tile.view<4x?xf32>
        tile.publish %s
      }
      %f = tile.await %ring
      %a = tile.field %f[0] = %x[%m, %kk] : !tile.view<?x512xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
      %b = tile.field %f[1] = %w[%n, %kk] : !tile.view<128x512xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
      tile.dot %t, %a, %b batch 0 of !tile.acc<64x128> fresh : !tile.fragment<n = 128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
      tile.wait %t : !tile.fragment<n = 128>
      %j = arith.addi %i, %c0 : i32
      %as = tile.field %f[2] = %xs[%j, %m] : !tile.view<4x?xf32> -> !tile.block<1x64xf32>
      tile.promote %acc, %t rows %as per 1 : !tile.block<1x64xf32> batch 0 : !tile.acc<64x128>, !tile.fragment<n = 128>

      tile.release %f
    }
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<64x128>, !tile.view<?x128xbf16>
  }
}

// -----

// Scales that are a vector of the view follow as well.
// CHECK-LABEL: tile.kernel @vector
// CHECK: tail 16
// CHECK: tile.field %{{.*}} from 64 = {{.*}} -> <16xf32>
tile.kernel @vector("x" %x: !tile.view<?x512xf8E4M3FN>, "x_scales" %xs: !tile.view<?xf32>, "w" %w: !tile.view<128x512xf8E4M3FN>, "y" %y: !tile.view<?x128xbf16>) warpgroups 1 {
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>, !tile.block<64xf32>]
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<64x128>
    %t = tile.acc : !tile.fragment<n = 128>
    tile.fill %acc : !tile.acc<64x128>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %c128 = arith.constant 128 : i32
    scf.for %i = %c0 to %c4 step %c1 : i32 {
      %kk = arith.muli %i, %c128 : i32
      tile.once {
        %s = tile.acquire %ring
        tile.copy %x[%m, %kk] -> %s[0] : !tile.view<?x512xf8E4M3FN>
        tile.copy %w[%n, %kk] -> %s[1] : !tile.view<128x512xf8E4M3FN>
        tile.copy %xs[%m] -> %s[2] : !tile.view<?xf32>
        tile.publish %s
      }
      %f = tile.await %ring
      %a = tile.field %f[0] = %x[%m, %kk] : !tile.view<?x512xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
      %b = tile.field %f[1] = %w[%n, %kk] : !tile.view<128x512xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
      %as = tile.field %f[2] = %xs[%m] : !tile.view<?xf32> -> !tile.block<64xf32>
      tile.dot %t, %a, %b batch 0 of !tile.acc<64x128> fresh : !tile.fragment<n = 128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
      tile.wait %t : !tile.fragment<n = 128>
      tile.promote %acc, %t rows %as per 1 : !tile.block<64xf32> batch 0 : !tile.acc<64x128>, !tile.fragment<n = 128>

      tile.release %f
    }
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<64x128>, !tile.view<?x128xbf16>
  }
}
