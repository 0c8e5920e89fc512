// A branch around a dot that does not change along K moves out of the loop.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-unswitch-rows))' -split-input-file | FileCheck %s

// The condition, computed in the loop, moves out too; each way through has a loop of its own.
// CHECK-LABEL: tile.kernel @once
tile.kernel @once("x" %x: !tile.view<?x512xf8E4M3FN>, "w" %w: !tile.view<128x512xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %c512 = arith.constant 512 : i32
  %acc = tile.acc : !tile.acc<128x128>
  %t = tile.acc : !tile.fragment<n = 128>
  %rows = tile.rows
  // CHECK: %[[NEEDED:.*]] = arith.cmpi sgt
  // CHECK: scf.if %[[NEEDED]] {
  // CHECK-NEXT: scf.for
  // CHECK: tile.dot {{.*}} batch 0
  // CHECK: tile.promote {{.*}} batch 0
  // CHECK-NOT: scf.if
  // CHECK: tile.dot {{.*}} batch 1
  // CHECK: tile.promote {{.*}} batch 1
  // CHECK: } else {
  // CHECK-NEXT: scf.for
  // CHECK: tile.dot {{.*}} batch 0
  // CHECK: tile.promote {{.*}} batch 0
  // CHECK-NOT: batch 1
  scf.for %k = %c0 to %c512 step %c128 : i32 {
    %a = tile.load %x[%c0, %k] : !tile.view<?x512xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
    %b = tile.load %w[%c0, %k] : !tile.view<128x512xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
    tile.dot %t, %a, %b batch 0 of !tile.acc<128x128> fresh : !tile.fragment<n = 128>, !tile.block<128x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
    tile.wait %t : !tile.fragment<n = 128>
    tile.promote %acc, %t batch 0 : !tile.acc<128x128>, !tile.fragment<n = 128>
    %c64 = arith.constant 64 : i32
    %isNeeded = arith.cmpi sgt, %rows, %c64 : i32
    scf.if %isNeeded {
      tile.dot %t, %a, %b batch 1 of !tile.acc<128x128> fresh : !tile.fragment<n = 128>, !tile.block<128x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
      tile.wait %t : !tile.fragment<n = 128>
      tile.promote %acc, %t batch 1 : !tile.acc<128x128>, !tile.fragment<n = 128>
    }
  }
}

// -----

// A loop inside the one that is doubled is doubled with it, and knows what its own branch asks again.
// CHECK-LABEL: tile.kernel @nested
tile.kernel @nested("x" %x: !tile.view<?x512xf8E4M3FN>, "w" %w: !tile.view<128x512xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %c512 = arith.constant 512 : i32
  %acc = tile.acc : !tile.acc<64x128>
  %rows = tile.rows
  %isNeeded = arith.cmpi sgt, %rows, %c128 : i32
  // CHECK: %[[NEEDED:.*]] = arith.cmpi sgt
  // CHECK: scf.if %[[NEEDED]] {
  // CHECK-NEXT: scf.for
  // CHECK-NEXT: scf.for
  // CHECK-NOT: scf.if
  // CHECK: tile.dot
  // CHECK-NOT: scf.if
  // CHECK: tile.dot
  // CHECK: } else {
  // CHECK-NEXT: scf.for
  // CHECK-NEXT: scf.for
  // CHECK-NOT: tile.dot
  scf.for %outer = %c0 to %c512 step %c512 : i32 {
    scf.for %k = %c0 to %c512 step %c128 : i32 {
      %a = tile.load %x[%c0, %k] : !tile.view<?x512xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
      %b = tile.load %w[%c0, %k] : !tile.view<128x512xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
      scf.if %isNeeded {
        tile.dot %acc, %a, %b : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
        tile.wait %acc : !tile.acc<64x128>
      }
    }
    %a = tile.load %x[%c0, %outer] : !tile.view<?x512xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
    %b = tile.load %w[%c0, %outer] : !tile.view<128x512xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
    scf.if %isNeeded {
      tile.dot %acc, %a, %b : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
      tile.wait %acc : !tile.acc<64x128>
    }
  }
}

// -----

// One that stands inside another branch is answered too, as its condition is computed again; a branch that asks
// something else is not.
// CHECK-LABEL: tile.kernel @inside
tile.kernel @inside("x" %x: !tile.view<?x512xf8E4M3FN>, "w" %w: !tile.view<128x512xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %c512 = arith.constant 512 : i32
  %acc = tile.acc : !tile.acc<64x128>
  %rows = tile.rows
  // CHECK: scf.if %{{.*}} {
  // CHECK-NEXT: scf.for
  // CHECK: tile.dot
  // CHECK: scf.if %{{.*}} {
  // CHECK-NOT: scf.if
  // CHECK: tile.dot
  // CHECK: } else {
  // CHECK-NEXT: scf.for
  // CHECK-NOT: tile.dot
  // CHECK: scf.if %{{.*}} {
  // CHECK-NEXT: tile.sync
  // CHECK-NOT: tile.dot
  // CHECK: scf.if %{{.*}} {
  // CHECK-NEXT: tile.dot
  // CHECK-NOT: tile.dot
  scf.for %k = %c0 to %c512 step %c128 : i32 {
    %a = tile.load %x[%c0, %k] : !tile.view<?x512xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
    %b = tile.load %w[%c0, %k] : !tile.view<128x512xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
    %c64 = arith.constant 64 : i32
    %isNeeded = arith.cmpi sgt, %rows, %c64 : i32
    scf.if %isNeeded {
      tile.dot %acc, %a, %b : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
      tile.wait %acc : !tile.acc<64x128>
    }
    %isLater = arith.cmpi sgt, %k, %c0 : i32
    scf.if %isLater {
      tile.sync
      %again = arith.constant 64 : i32
      %isStillNeeded = arith.cmpi sgt, %rows, %again : i32
      scf.if %isStillNeeded {
        tile.dot %acc, %a, %b : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
        tile.wait %acc : !tile.acc<64x128>
      }
      %isOther = arith.cmpi sgt, %rows, %c0 : i32
      scf.if %isOther {
        tile.dot %acc, %a, %b : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
        tile.wait %acc : !tile.acc<64x128>
      }
    }
  }
}

// -----

// A condition that changes along K stays in the loop, and so does a branch without dots.
// CHECK-LABEL: tile.kernel @alone
tile.kernel @alone("x" %x: !tile.view<?x512xf8E4M3FN>, "w" %w: !tile.view<128x512xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %c512 = arith.constant 512 : i32
  %acc = tile.acc : !tile.acc<64x128>
  %rows = tile.rows
  %hasRows = arith.cmpi sgt, %rows, %c0 : i32
  // CHECK-NOT: scf.if
  // CHECK: scf.for
  // CHECK: scf.if
  // CHECK: scf.if
  // CHECK-NOT: scf.for
  scf.for %k = %c0 to %c512 step %c128 : i32 {
    %isLater = arith.cmpi sgt, %k, %c0 : i32
    scf.if %isLater {
      %a = tile.load %x[%c0, %k] : !tile.view<?x512xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
      %b = tile.load %w[%c0, %k] : !tile.view<128x512xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
      tile.dot %acc, %a, %b : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
      tile.wait %acc : !tile.acc<64x128>
    }
    scf.if %hasRows {
      tile.sync
    }
  }
}

// -----

// Rows that are more than 128 are more than 64, and those that are not more than 64 are not more than 128: three loops, not four.
// CHECK-LABEL: tile.kernel @follows
tile.kernel @follows("x" %x: !tile.view<?x512xf8E4M3FN>, "w" %w: !tile.view<128x512xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %c512 = arith.constant 512 : i32
  %acc = tile.acc : !tile.acc<64x128>
  %rows = tile.rows
  // CHECK: scf.if
  // CHECK: scf.if
  // CHECK-NEXT: scf.for
  // CHECK-NOT: scf.if
  // CHECK: tile.dot
  // CHECK-NOT: scf.if
  // CHECK: tile.dot
  // CHECK: } else {
  // CHECK-NEXT: scf.for
  // CHECK-NOT: scf.if
  // CHECK: tile.dot
  // CHECK-NOT: tile.dot
  // CHECK: } else {
  // CHECK-NEXT: scf.for
  // CHECK-NOT: scf.if
  // CHECK-NOT: tile.dot
  scf.for %k = %c0 to %c512 step %c128 : i32 {
    %a = tile.load %x[%c0, %k] : !tile.view<?x512xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
    %b = tile.load %w[%c0, %k] : !tile.view<128x512xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
    %c64 = arith.constant 64 : i32
    %isNeeded = arith.cmpi sgt, %rows, %c64 : i32
    scf.if %isNeeded {
      tile.dot %acc, %a, %b : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
      tile.wait %acc : !tile.acc<64x128>
    }
    %hasTail = arith.cmpi sgt, %rows, %c128 : i32
    scf.if %hasTail {
      tile.dot %acc, %a, %b : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
      tile.wait %acc : !tile.acc<64x128>
    }
  }
}
