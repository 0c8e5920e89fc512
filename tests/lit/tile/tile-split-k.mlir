// Blocks of a cluster take one tile, each a part of its steps along K, and the first adds up and stores.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-split-k))' -split-input-file | FileCheck %s
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-split-k{blocks=4}))' -split-input-file | FileCheck %s --check-prefix=FOUR
// RUN: not moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-split-k{blocks=3}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=THREE
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-split-k{blocks=4},tile-swap-operands,tile-specialize-warps))' -split-input-file | FileCheck %s --check-prefix=ROLES
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-split-k),tile.kernel(tile-multicast))' -split-input-file | FileCheck %s --check-prefix=ONCE
// THREE: error: 'tile.kernel' op is to have tiles shared by 3 blocks, expected 2, 4 or 8

// A plain dense GEMM, whose steps are counted in elements of K: five steps are two and three. Dots are waited for before the sums meet.
// CHECK-LABEL: tile.kernel @dense
// CHECK-SAME: attributes {cluster = 2 : i64}
// CHECK: tile.scheduler {{.*}} raster 1 cluster {{ *}}k
// CHECK: %[[STEPS:.*]] = arith.constant 5 : i32
// CHECK: %[[RANK:.*]] = tile.cluster_rank
// CHECK: %[[BEFORE:.*]] = arith.muli %[[RANK]], %[[STEPS]] : i32
// CHECK: %[[FIRST:.*]] = arith.shrsi %[[BEFORE]], %{{.*}} {ptx.name = "firstStep"} : i32
// CHECK: %[[BEGIN:.*]] = arith.muli %[[FIRST]], %{{.*}} : i32
// CHECK: %[[NEXT:.*]] = arith.addi %[[RANK]], %{{.*}} : i32
// CHECK: %[[UPTO:.*]] = arith.muli %[[NEXT]], %[[STEPS]] : i32
// CHECK: %[[LAST:.*]] = arith.shrsi %[[UPTO]], %{{.*}} {ptx.name = "stepsEnd"} : i32
// CHECK: %[[END:.*]] = arith.muli %[[LAST]], %{{.*}} : i32
// CHECK: scf.for %{{.*}} = %[[BEGIN]] to %[[END]] step %{{.*}} : i32
// CHECK: tile.wait %[[ACC:.*]] : !tile.acc<64x64>
// CHECK: tile.reduce %[[ACC]] rows %{{.*}} : <64x64>
// CHECK: tile.store %[[ACC]] -> {{.*}} by_first
// FOUR-LABEL: tile.kernel @dense
// FOUR-SAME: attributes {cluster = 4 : i64}
// Both roles take the part of their block; only the consumers add up, and rows of a result may be columns of an accumulator.
// ROLES-LABEL: tile.kernel @dense
// ROLES: tile.role producer
// ROLES: tile.cluster_rank
// ROLES: scf.for
// ROLES-NOT: tile.reduce
// ROLES: tile.role consumer
// ROLES: tile.cluster_rank
// ROLES: scf.for
// ROLES: tile.reduce %{{.*}} rows %{{.*}} transposed
// ROLES: tile.store %{{.*}} transposed by_first
// What blocks share already they share no more.
// ONCE-LABEL: tile.kernel @dense
// ONCE-NOT: multicast
tile.kernel @dense("x" %x: !tile.view<?x640xf8E4M3FN>, "w" %w: !tile.view<64x640xf8E4M3FN>, "y" %y: !tile.view<?x64xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %c640 = arith.constant 640 : i32
  %q = tile.scheduler tile [64, 64] columns 64 experts 1 order static raster 1
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>, !tile.block<64x128xf8E4M3FN>]
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<64x64>
    tile.fill %acc : !tile.acc<64x64>
    scf.for %k = %c0 to %c640 step %c128 : i32 {
      tile.once {
        %s = tile.acquire %ring
        tile.copy %x[%m, %k] -> %s[0] : !tile.view<?x640xf8E4M3FN>
        tile.copy %w[%n, %k] -> %s[1] : !tile.view<64x640xf8E4M3FN>
        tile.publish %s
      }
      %f = tile.await %ring
      %a = tile.field %f[0] = %x[%m, %k] : !tile.view<?x640xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
      %b = tile.field %f[1] = %w[%n, %k] : !tile.view<64x640xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
      tile.dot %acc, %a, %b : !tile.acc<64x64>, !tile.block<64x128xf8E4M3FN>, !tile.block<64x128xf8E4M3FN>
      tile.wait %acc : !tile.acc<64x64>
      tile.release %f
    }
    tile.wait %acc : !tile.acc<64x64>
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<64x64>, !tile.view<?x64xf32>
  }
}

// -----

// Steps that only tiles of an expert have; what lives for one step is nobody else's. Sums meet before they are scaled, and not at
// all where there are no steps.
// CHECK-LABEL: tile.kernel @promoted
// CHECK-SAME: attributes {cluster = 2 : i64}
// CHECK: %[[STEPS:.*]] = arith.select %{{.*}}, %c4{{.*}}, %c0{{.*}} : i32
// CHECK: scf.for
// CHECK: tile.promote %[[ACC:[^,]*]], %{{.*}} : <64x64>, !tile.acc<64x64>
// CHECK: %[[HAS:.*]] = arith.cmpi sgt, %[[STEPS]], %{{.*}} : i32
// CHECK: %[[ROWS:.*]] = arith.select %[[HAS]], %{{.*}}, %{{.*}} {ptx.name = "rowsToSum"} : i32
// CHECK-NEXT: tile.reduce %[[ACC]] rows %[[ROWS]] : <64x64>
// CHECK-NEXT: scf.if
// CHECK: tile.scale %[[ACC]]
tile.kernel @promoted("x" %x: !tile.view<?x512xf8E4M3FN>, "x_scales" %xs: !tile.view<?xf32>, "w" %w: !tile.view<2x64x512xf8E4M3FN>, "offsets" %o: !tile.view<3xi32>, "y" %y: !tile.view<?x64xbf16>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %c128 = arith.constant 128 : i32
  %q = tile.scheduler grouped (%o) tile [64, 64] columns 64 experts 2 order static raster 1 zeroed : !tile.view<3xi32>
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<64x64>
    %part = tile.acc : !tile.acc<64x64>
    tile.fill %acc : !tile.acc<64x64>
    %steps = arith.select %live, %c4, %c0 : i32
    scf.for %i = %c0 to %steps step %c1 : i32 {
      %k = arith.muli %i, %c128 : i32
      %a = tile.load %x[%m, %k] : !tile.view<?x512xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
      %b = tile.load %w[%e, %n, %k] : !tile.view<2x64x512xf8E4M3FN> -> !tile.block<1x64x128xf8E4M3FN>
      tile.dot %part, %a, %b fresh : !tile.acc<64x64>, !tile.block<64x128xf8E4M3FN>, !tile.block<1x64x128xf8E4M3FN>
      tile.wait %part : !tile.acc<64x64>
      tile.promote %acc, %part : !tile.acc<64x64>, !tile.acc<64x64>
    }
    scf.if %live {
      %s = tile.load %xs[%m] : !tile.view<?xf32> -> !tile.block<64xf32>
      tile.scale %acc rows %s per 1 : !tile.block<64xf32> : !tile.acc<64x64>
    }
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<64x64>, !tile.view<?x64xbf16>
  }
}

// -----

// An accumulator that is not zero before the loop would be added once for each block.
// CHECK-LABEL: tile.kernel @bias
// CHECK-NOT: cluster
tile.kernel @bias("x" %x: !tile.view<?x256xf8E4M3FN>, "w" %w: !tile.view<64x256xf8E4M3FN>, "y" %y: !tile.view<?x64xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %q = tile.scheduler tile [64, 64] columns 64 experts 1 order static raster 1
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<64x64>
    scf.for %i = %c0 to %c2 step %c1 : i32 {
      %a = tile.load %x[%m, %i] : !tile.view<?x256xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
      %b = tile.load %w[%n, %i] : !tile.view<64x256xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
      tile.dot %acc, %a, %b : !tile.acc<64x64>, !tile.block<64x128xf8E4M3FN>, !tile.block<64x128xf8E4M3FN>
      tile.wait %acc : !tile.acc<64x64>
    }
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<64x64>, !tile.view<?x64xf32>
  }
}

// -----

// A temporary that a step takes over from the one before is no sum of parts.
// CHECK-LABEL: tile.kernel @carried
// CHECK-NOT: cluster
tile.kernel @carried("x" %x: !tile.view<?x256xf8E4M3FN>, "w" %w: !tile.view<64x256xf8E4M3FN>, "y" %y: !tile.view<?x64xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %q = tile.scheduler tile [64, 64] columns 64 experts 1 order static raster 1
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<64x64>
    %part = tile.acc : !tile.acc<64x64>
    tile.fill %acc : !tile.acc<64x64>
    scf.for %i = %c0 to %c2 step %c1 : i32 {
      %a = tile.load %x[%m, %i] : !tile.view<?x256xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
      %b = tile.load %w[%n, %i] : !tile.view<64x256xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
      tile.dot %part, %a, %b : !tile.acc<64x64>, !tile.block<64x128xf8E4M3FN>, !tile.block<64x128xf8E4M3FN>
      tile.wait %part : !tile.acc<64x64>
      tile.promote %acc, %part : !tile.acc<64x64>, !tile.acc<64x64>
    }
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<64x64>, !tile.view<?x64xf32>
  }
}

// -----

// A sum that steps are scaled by, one that is stored in other rows than the tile's, and a loop whose length only the block knows.
// CHECK-LABEL: tile.kernel @scaled
// CHECK-NOT: cluster
tile.kernel @scaled("x" %x: !tile.view<?x256xf8E4M3FN>, "x_scales" %xs: !tile.view<?xf32>, "w" %w: !tile.view<64x256xf8E4M3FN>, "y" %y: !tile.view<?x64xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %q = tile.scheduler tile [64, 64] columns 64 experts 1 order static raster 1
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<64x64>
    tile.fill %acc : !tile.acc<64x64>
    scf.for %i = %c0 to %c2 step %c1 : i32 {
      %a = tile.load %x[%m, %i] : !tile.view<?x256xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
      %b = tile.load %w[%n, %i] : !tile.view<64x256xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
      tile.dot %acc, %a, %b : !tile.acc<64x64>, !tile.block<64x128xf8E4M3FN>, !tile.block<64x128xf8E4M3FN>
      tile.wait %acc : !tile.acc<64x64>
      %s = tile.load %xs[%m] : !tile.view<?xf32> -> !tile.block<64xf32>
      tile.scale %acc rows %s per 1 : !tile.block<64xf32> : !tile.acc<64x64>
    }
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<64x64>, !tile.view<?x64xf32>
  }
}

// -----

// CHECK-LABEL: tile.kernel @whole
// CHECK-NOT: cluster
tile.kernel @whole("x" %x: !tile.view<?x256xf8E4M3FN>, "w" %w: !tile.view<64x256xf8E4M3FN>, "y" %y: !tile.view<?x64xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c64 = arith.constant 64 : i32
  %q = tile.scheduler tile [64, 64] columns 64 experts 1 order static raster 1
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<64x64>
    tile.fill %acc : !tile.acc<64x64>
    scf.for %i = %c0 to %c2 step %c1 : i32 {
      %a = tile.load %x[%m, %i] : !tile.view<?x256xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
      %b = tile.load %w[%n, %i] : !tile.view<64x256xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
      tile.dot %acc, %a, %b : !tile.acc<64x64>, !tile.block<64x128xf8E4M3FN>, !tile.block<64x128xf8E4M3FN>
      tile.wait %acc : !tile.acc<64x64>
    }
    tile.store %acc -> %y[%m, %n] rows %c64 : !tile.acc<64x64>, !tile.view<?x64xf32>
  }
}

// -----

// CHECK-LABEL: tile.kernel @own
// CHECK-NOT: cluster
tile.kernel @own("x" %x: !tile.view<?x256xf8E4M3FN>, "w" %w: !tile.view<64x256xf8E4M3FN>, "y" %y: !tile.view<?x64xf32>) warpgroups 2 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %q = tile.scheduler tile [128, 64] columns 64 experts 1 order static raster 1
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<128x64>
    tile.fill %acc : !tile.acc<128x64>
    %steps = tile.warpgroup
    scf.for %i = %c0 to %steps step %c1 : i32 {
      %a = tile.load %x[%m, %i] : !tile.view<?x256xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
      %b = tile.load %w[%n, %i] : !tile.view<64x256xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
      tile.dot %acc, %a, %b : !tile.acc<128x64>, !tile.block<128x128xf8E4M3FN>, !tile.block<64x128xf8E4M3FN>
      tile.wait %acc : !tile.acc<128x64>
    }
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<128x64>, !tile.view<?x64xf32>
  }
}
