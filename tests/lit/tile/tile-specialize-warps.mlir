// One loop over the tiles becomes two: a producer's with the loads, the consumers' with the rest.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-specialize-warps))' -split-input-file -verify-diagnostics | FileCheck %s

// A plain dense GEMM. Both loops draw the same tiles; what neither needs is gone.
// CHECK-LABEL: tile.kernel @dense
tile.kernel @dense("x" %x: !tile.view<?x512xf8E4M3FN>, "w" %w: !tile.view<256x512xf8E4M3FN>, "y" %y: !tile.view<?x256xf32>) warpgroups 2 {
  // CHECK: %[[Q:.*]] = tile.scheduler
  %q = tile.scheduler tile [128, 256] columns 256 experts 1 order static raster 1
  %ring = tile.ring stages 1 [!tile.block<128x128xf8E4M3FN>, !tile.block<256x128xf8E4M3FN>]
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %c128 = arith.constant 128 : i32
  // CHECK: tile.role {{ *}}producer registers 40 {
  // CHECK-NEXT: tile.for_tiles %[[Q]] -> %{{.*}}, %[[M:.*]], %[[N:.*]], %{{.*}}, %{{.*}} {
  // CHECK-NEXT: scf.for
  // CHECK-NEXT: %[[K:.*]] = arith.muli
  // CHECK-NEXT: %[[S:.*]] = tile.acquire
  // CHECK-NEXT: tile.copy %{{.*}}[%[[M]], %[[K]]] -> %[[S]][0]
  // CHECK-NEXT: tile.copy %{{.*}}[%[[N]], %[[K]]] -> %[[S]][1]
  // CHECK-NEXT: tile.publish %[[S]]
  // CHECK-NEXT: }
  // CHECK-NEXT: }
  // CHECK-NEXT: }
  // CHECK-NEXT: tile.role {{ *}}consumer registers 232 {
  // CHECK-NEXT: tile.for_tiles %[[Q]]
  // CHECK-NEXT: tile.acc
  // CHECK-NEXT: tile.fill
  // CHECK-NEXT: scf.for
  // CHECK-NOT: tile.once
  // CHECK: tile.await
  // CHECK: tile.dot
  // CHECK-NEXT: tile.wait
  // CHECK-NEXT: tile.release
  // CHECK: tile.store
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<128x256>
    tile.fill %acc : !tile.acc<128x256>
    scf.for %step = %c0 to %c4 step %c1 : i32 {
      %k = arith.muli %step, %c128 : i32
      tile.once {
        %s = tile.acquire %ring
        tile.copy %x[%m, %k] -> %s[0] : !tile.view<?x512xf8E4M3FN>
        tile.copy %w[%n, %k] -> %s[1] : !tile.view<256x512xf8E4M3FN>
        tile.publish %s
      }
      %f = tile.await %ring
      %a = tile.field %f[0] = %x[%m, %k] : !tile.view<?x512xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
      %b = tile.field %f[1] = %w[%n, %k] : !tile.view<256x512xf8E4M3FN> -> !tile.block<256x128xf8E4M3FN>
      tile.dot %acc, %a, %b : !tile.acc<128x256>, !tile.block<128x128xf8E4M3FN>, !tile.block<256x128xf8E4M3FN>
      tile.wait %acc : !tile.acc<128x256>
      tile.release %f
    }
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<128x256>, !tile.view<?x256xf32>
  }
}

// -----

// One consumer warpgroup has all the registers a thread can address: none are moved. Both roles draw early where the loop does.
// CHECK-LABEL: tile.kernel @oneWarpgroup
tile.kernel @oneWarpgroup("x" %x: !tile.view<?x128xf8E4M3FN>) warpgroups 1 {
  // CHECK: tile.role {{ *}}producer registers 0 {
  // CHECK: tile.next_tile
  // CHECK: tile.role {{ *}}consumer registers 0 {
  // CHECK: tile.next_tile
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>]
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %c0 = arith.constant 0 : i32
    tile.once {
      %s = tile.acquire %ring
      tile.copy %x[%m, %c0] -> %s[0] : !tile.view<?x128xf8E4M3FN>
      tile.publish %s
    }
    tile.next_tile
    %f = tile.await %ring
    tile.release %f
  }
}

// -----

// A loop that loads nothing has nothing to hand over.
// CHECK-LABEL: tile.kernel @noLoads
tile.kernel @noLoads("y" %y: !tile.view<?x128xf32>) warpgroups 1 {
  // CHECK-NOT: tile.role
  // CHECK: tile.store
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<64x128>
    tile.fill %acc : !tile.acc<64x128>
    tile.store %acc -> %y[%m, %n] rows %rows : !tile.acc<64x128>, !tile.view<?x128xf32>
  }
}

// -----

// All threads meet in the loop: one producer thread cannot stand in for 128.
// CHECK-LABEL: tile.kernel @meeting
tile.kernel @meeting("x" %x: !tile.view<?x128xf8E4M3FN>) warpgroups 1 {
  // CHECK-NOT: tile.role
  // CHECK: tile.sync
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>]
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %c0 = arith.constant 0 : i32
    tile.once {
      %s = tile.acquire %ring
      tile.copy %x[%m, %c0] -> %s[0] : !tile.view<?x128xf8E4M3FN>
      tile.publish %s
    }
    %f = tile.await %ring
    tile.release %f
    tile.sync
  }
}

// -----

// Two loops, one after the other, keep their warps alike.
// CHECK-LABEL: tile.kernel @twoLoops
tile.kernel @twoLoops("x" %x: !tile.view<?x128xf8E4M3FN>) warpgroups 1 {
  // CHECK-NOT: tile.role
  // CHECK: tile.once
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>]
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %c0 = arith.constant 0 : i32
    tile.once {
      %s = tile.acquire %ring
      tile.copy %x[%m, %c0] -> %s[0] : !tile.view<?x128xf8E4M3FN>
      tile.publish %s
    }
  }
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %f = tile.await %ring
    tile.release %f
  }
}

// -----

// setmaxnreg waits forever for registers that the block was not launched with.
// expected-error@+1 {{'tile.kernel' op gives 232 registers to each of 384 consumer threads and 40 to each of 128 producer threads; 128 a thread are there, so a consumer may have 152}}
tile.kernel @threeWarpgroups("x" %x: !tile.view<?x128xf8E4M3FN>) warpgroups 3 {
  %q = tile.scheduler tile [192, 128] columns 128 experts 1 order static raster 1
  %ring = tile.ring stages 1 [!tile.block<192x128xf8E4M3FN>]
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %c0 = arith.constant 0 : i32
    tile.once {
      %s = tile.acquire %ring
      tile.copy %x[%m, %c0] -> %s[0] : !tile.view<?x128xf8E4M3FN>
      tile.publish %s
    }
    %f = tile.await %ring
    tile.release %f
  }
}

// -----

// What consumers compute never reaches the thread that loads.
tile.kernel @computeInsideOnce("x" %x: !tile.view<?x128xf8E4M3FN>) warpgroups 1 {
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>]
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %c0 = arith.constant 0 : i32
    // expected-error@+1 {{'tile.acc' op belongs to the consumers, but a load uses it}}
    %acc = tile.acc : !tile.acc<64x128>
    tile.once {
      %s = tile.acquire %ring
      tile.copy %x[%m, %c0] -> %s[0] : !tile.view<?x128xf8E4M3FN>
      tile.fill %acc : !tile.acc<64x128>
      tile.publish %s
    }
    %f = tile.await %ring
    tile.release %f
  }
}

// -----

// Loops that differ in what is computed are one to the producer.
// CHECK-LABEL: tile.kernel @alike
tile.kernel @alike("x" %x: !tile.view<?x128xf8E4M3FN>) warpgroups 1 {
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>]
  // CHECK: tile.role producer
  // CHECK-NOT: scf.if
  // CHECK: tile.acquire
  // CHECK-NOT: tile.acquire
  // CHECK: tile.role consumer
  // CHECK: scf.if
  // CHECK-COUNT-2: tile.await
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    %c0 = arith.constant 0 : i32
    %c32 = arith.constant 32 : i32
    %acc = tile.acc : !tile.acc<64x128>
    %few = arith.cmpi sle, %rows, %c32 : i32
    scf.if %few {
      tile.once {
        %s = tile.acquire %ring
        tile.copy %x[%m, %c0] -> %s[0] : !tile.view<?x128xf8E4M3FN>
        tile.publish %s
      }
      %f = tile.await %ring
      tile.release %f
    } else {
      tile.once {
        %s = tile.acquire %ring
        tile.copy %x[%m, %c0] -> %s[0] : !tile.view<?x128xf8E4M3FN>
        tile.publish %s
      }
      %f = tile.await %ring
      tile.fill %acc : !tile.acc<64x128>
      tile.release %f
    }
  }
}
