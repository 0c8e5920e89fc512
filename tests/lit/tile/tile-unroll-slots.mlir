// Loops whose rounds are whole turns of their ring know the slot of each round.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-unroll-slots))' -split-input-file | FileCheck %s

// Twelve rounds, or none, are whole turns of four slots.
// CHECK-LABEL: tile.kernel @turns
tile.kernel @turns("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<128x128xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c12 = arith.constant 12 : i32
  %ring = tile.ring stages 4 [!tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>]
  %tiles = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  tile.for_tiles %tiles -> %expert, %row, %column, %rows, %live {
    %acc = tile.acc : !tile.acc<64x128>
    // CHECK: %[[STEPS:.*]] = arith.select
    // CHECK: %[[FOUR:.*]] = arith.constant 4 : i32
    // CHECK: scf.for %[[TURN:.*]] = %{{.*}} to %[[STEPS]] step %[[FOUR]]
    // CHECK: ptx.unroll %[[SLOT:.*]] = 0 to 4
    // CHECK: %[[ROUND:.*]] = arith.addi %[[TURN]], %[[SLOT]]
    // CHECK: tile.await %{{.*}} slot %[[SLOT]]
    // CHECK: tile.field %{{.*}}[0] = %{{.*}}[%[[ROUND]], %{{.*}}]
    // CHECK: tile.release
    %steps = arith.select %live, %c12, %c0 : i32
    scf.for %k = %c0 to %steps step %c1 : i32 {
      %f = tile.await %ring
      %a = tile.field %f[0] = %x[%k, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
      %b = tile.field %f[1] = %w[%c0, %c0] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
      tile.dot %acc, %a, %b : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
      tile.wait %acc : !tile.acc<64x128>
      tile.release %f
    }
  }
}

// -----

// Ten rounds end inside a turn: the next tile would start at another slot.
// CHECK-LABEL: tile.kernel @rest
// CHECK-NOT: ptx.unroll
// CHECK: tile.await %{{.*}}{{$}}
tile.kernel @rest("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<128x128xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c10 = arith.constant 10 : i32
  %ring = tile.ring stages 4 [!tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>]
  %acc = tile.acc : !tile.acc<64x128>
  scf.for %k = %c0 to %c10 step %c1 : i32 {
    %f = tile.await %ring
    %a = tile.field %f[0] = %x[%k, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
    %b = tile.field %f[1] = %w[%c0, %c0] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
    tile.dot %acc, %a, %b : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
    tile.wait %acc : !tile.acc<64x128>
    tile.release %f
  }
}

// -----

// A slot that is awaited outside the loop moves where the loop starts.
// CHECK-LABEL: tile.kernel @before
// CHECK-NOT: ptx.unroll
// CHECK: tile.release
tile.kernel @before("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<128x128xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %ring = tile.ring stages 4 [!tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>]
  %first = tile.await %ring
  tile.release %first
  scf.for %k = %c0 to %c8 step %c1 : i32 {
    %f = tile.await %ring
    tile.release %f
  }
}

// -----

// A loop that sums in two accumulators keeps its registers for them; the other way through is unrolled.
// CHECK-LABEL: tile.kernel @twice
tile.kernel @twice("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<128x128xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c12 = arith.constant 12 : i32
  %ring = tile.ring stages 4 [!tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>]
  %tiles = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  tile.for_tiles %tiles -> %expert, %row, %column, %rows, %live {
    %acc = tile.acc : !tile.acc<64x128>
    %sums = tile.acc : !tile.acc<128x64>
    %t = tile.acc : !tile.acc<64x128>
    %u = tile.acc : !tile.acc<128x64>
    // CHECK: scf.if
    // CHECK-NOT: ptx.unroll
    // CHECK: } else {
    // CHECK: ptx.unroll
    scf.if %live {
      scf.for %k = %c0 to %c12 step %c1 : i32 {
        %f = tile.await %ring
        %a = tile.field %f[0] = %x[%k, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
        %b = tile.field %f[1] = %w[%c0, %c0] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
        tile.dot %t, %a, %b fresh : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
        tile.dot %u, %b, %a fresh : !tile.acc<128x64>, !tile.block<128x128xf8E4M3FN>, !tile.block<64x128xf8E4M3FN>
        tile.wait %u : !tile.acc<128x64>
        tile.promote %acc, %t : !tile.acc<64x128>, !tile.acc<64x128>
        tile.promote %sums, %u : !tile.acc<128x64>, !tile.acc<128x64>
        tile.release %f
      }
    } else {
      scf.for %k = %c0 to %c12 step %c1 : i32 {
        %f = tile.await %ring
        %a = tile.field %f[0] = %x[%k, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
        %b = tile.field %f[1] = %w[%c0, %c0] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
        tile.dot %t, %a, %b fresh : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
        tile.wait %t : !tile.acc<64x128>
        tile.promote %acc, %t : !tile.acc<64x128>, !tile.acc<64x128>
        tile.release %f
      }
    }
  }
}
