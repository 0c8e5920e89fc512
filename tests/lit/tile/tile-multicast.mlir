// Blocks of a cluster take neighbouring tiles, and load what these share once.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-multicast))' -split-input-file | FileCheck %s
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-multicast{side=rows}))' -split-input-file | FileCheck %s --check-prefix=ROWS
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-multicast{blocks=4}))' -split-input-file | FileCheck %s --check-prefix=FOUR
// RUN: not moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-multicast{blocks=3}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=THREE
// RUN: not moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-multicast{side=diagonal}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=SIDE
// THREE: error: 'tile.kernel' op is to run in clusters of 3 along 'columns', expected 2, 4 or 8 along rows or columns
// SIDE: error: 'tile.kernel' op is to run in clusters of 2 along 'diagonal', expected 2, 4 or 8 along rows or columns

// A plain dense GEMM: tiles side by side share rows of x, tiles one above the other share columns of w.
// CHECK-LABEL: tile.kernel @dense
// CHECK-SAME: attributes {cluster = 2 : i64}
// CHECK: tile.scheduler {{.*}} raster 1 cluster {{ *}}columns
// CHECK: tile.ring stages 1 [{{.*}}] multicast
// CHECK: tile.copy {{.*}} -> %{{.*}}[0] multicast : <?x256xf8E4M3FN>
// CHECK: tile.copy {{.*}} -> %{{.*}}[1] : <256x256xf8E4M3FN>
// ROWS-LABEL: tile.kernel @dense
// ROWS: tile.scheduler {{.*}} raster 1 cluster {{ *}}rows
// ROWS: tile.copy {{.*}} -> %{{.*}}[0] : <?x256xf8E4M3FN>
// ROWS: tile.copy {{.*}} -> %{{.*}}[1] multicast : <256x256xf8E4M3FN>
// FOUR-LABEL: tile.kernel @dense
// FOUR-SAME: attributes {cluster = 4 : i64}
// FOUR: -> %{{.*}}[0] multicast
tile.kernel @dense("x" %x: !tile.view<?x256xf8E4M3FN>, "w" %w: !tile.view<256x256xf8E4M3FN>, "y" %y: !tile.view<?x256xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c128 = arith.constant 128 : i32
  %q = tile.scheduler tile [64, 64] columns 256 experts 1 order static raster 1
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>, !tile.block<64x128xf8E4M3FN>]
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<64x64>
    scf.for %i = %c0 to %c2 step %c1 : i32 {
      %k = arith.muli %i, %c128 : i32
      tile.once {
        %s = tile.acquire %ring
        tile.copy %x[%m, %k] -> %s[0] : !tile.view<?x256xf8E4M3FN>
        tile.copy %w[%n, %k] -> %s[1] : !tile.view<256x256xf8E4M3FN>
        tile.publish %s
      }
      %f = tile.await %ring
      tile.release %f
    }
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<64x64>, !tile.view<?x256xf32>
  }
}

// -----

// Steps that only tiles of an expert have are alike; those that depend on the column are not, nor are those that depend on how
// many rows a tile has where one of the blocks may have none.
// CHECK-LABEL: tile.kernel @steps
// CHECK: tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>] multicast
// CHECK: tile.ring stages 2 [!tile.block<64x128xf8E4M3FN>]{{$}}
// CHECK: tile.ring stages 3 [!tile.block<64x128xf8E4M3FN>]{{$}}
tile.kernel @steps("x" %x: !tile.view<?x256xf8E4M3FN>, "offsets" %o: !tile.view<3xi32>, "y" %y: !tile.view<?x192xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %q = tile.scheduler grouped (%o) tile [64, 64] columns 192 experts 2 order static raster 1 zeroed : !tile.view<3xi32>
  %one = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>]
  %two = tile.ring stages 2 [!tile.block<64x128xf8E4M3FN>]
  %three = tile.ring stages 3 [!tile.block<64x128xf8E4M3FN>]
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %steps = arith.select %live, %c2, %c0 : i32
    scf.for %i = %c0 to %steps step %c1 : i32 {
      %s = tile.acquire %one
      tile.copy %x[%m, %c0] -> %s[0] : !tile.view<?x256xf8E4M3FN>
    }
    scf.for %i = %c0 to %n step %c1 : i32 {
      %s = tile.acquire %two
      tile.copy %x[%m, %c0] -> %s[0] : !tile.view<?x256xf8E4M3FN>
    }
    %has = arith.cmpi sgt, %rows, %c1 : i32
    scf.if %has {
      %s = tile.acquire %three
      tile.copy %x[%m, %c0] -> %s[0] : !tile.view<?x256xf8E4M3FN>
    }
  }
}

// -----

// One tile of columns has no neighbour; rows have.
// CHECK-LABEL: tile.kernel @narrow
// CHECK-NOT: cluster
// CHECK-NOT: multicast
// ROWS-LABEL: tile.kernel @narrow
// ROWS-SAME: cluster = 2
tile.kernel @narrow("w" %w: !tile.view<64x128xf8E4M3FN>, "y" %y: !tile.view<?x64xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %q = tile.scheduler tile [64, 64] columns 64 experts 1 order static raster 1
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>]
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %s = tile.acquire %ring
    tile.copy %w[%n, %c0] -> %s[0] : !tile.view<64x128xf8E4M3FN>
  }
}

// -----

// Rows that are gathered, or a few of the first, are each block's own.
// CHECK-LABEL: tile.kernel @gathered
// CHECK-NOT: cluster
// CHECK-NOT: multicast
tile.kernel @gathered("x" %x: !tile.view<?x128xf8E4M3FN>, "expert_ids" %ids: !tile.view<?xi32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %q = tile.scheduler batched (%ids : !tile.view<?xi32>) tile [64, 64] columns 256 experts 2 order static raster 1
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>]
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %s = tile.acquire %ring
    tile.copy %x[%m, %c0] rows_by %q -> %s[0] : !tile.view<?x128xf8E4M3FN>
  }
}

// -----

// The store of more rows than the tile has would come from both blocks where they take one tile.
// CHECK-LABEL: tile.kernel @whole
// CHECK-NOT: cluster
// CHECK-NOT: multicast
tile.kernel @whole("x" %x: !tile.view<?x128xf8E4M3FN>, "y" %y: !tile.view<?x192xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %q = tile.scheduler tile [64, 64] columns 192 experts 1 order static raster 1
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>]
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<64x64>
    %s = tile.acquire %ring
    tile.copy %x[%m, %c0] -> %s[0] : !tile.view<?x128xf8E4M3FN>
    tile.store %acc -> %y[%m, %n] rows %c64 : !tile.acc<64x64>, !tile.view<?x192xf32>
  }
}
