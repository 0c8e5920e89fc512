// Roles become branches on the thread index.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-lower-roles))' -split-input-file -verify-diagnostics | FileCheck %s

// One if/else on the warp: the first four are the producer's, of which thread 0 runs; setmaxnreg stands first in both. All 384 threads meet.
// CHECK-LABEL: tile.kernel @roles
// CHECK-SAME: tile.threads = 384 : i64
tile.kernel @roles() warpgroups 2 {
  // CHECK: %[[THREAD:.*]] = ptx.thread_index
  // CHECK: ptx.bar_sync 0, 384
  tile.sync
  // CHECK: %[[FOUR:.*]] = arith.constant 4 : i32
  // CHECK: %[[P:.*]] = arith.cmpi slt, %{{.*}}, %[[FOUR]] : i32
  // CHECK: scf.if %[[P]] {
  // CHECK-NEXT: ptx.setmaxnreg_dec 40
  // CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[THREAD]], %{{.*}} : i32
  // CHECK: scf.if %[[FIRST]] {
  // CHECK-NEXT: tile.rows
  // CHECK: } else {
  // CHECK-NEXT: ptx.setmaxnreg_inc 232
  // CHECK-NEXT: tile.rows
  // CHECK-NEXT: }
  tile.role producer registers 40 {
    %r = tile.rows
  }
  tile.role consumer registers 232 {
    %r = tile.rows
  }
}

// -----

// Roles that keep the registers they were launched with have no setmaxnreg. Consumers count their warpgroups from behind the producer's.
// CHECK-LABEL: tile.kernel @sameRegisters
tile.kernel @sameRegisters() warpgroups 1 {
  // CHECK: %[[BEHIND:.*]] = arith.constant -1 : i32
  // CHECK: %[[GROUP:.*]] = arith.addi %{{.*}}, %[[BEHIND]] {ptx.name = "warpgroup"
  // CHECK-NOT: ptx.setmaxnreg
  // CHECK: arith.muli %[[GROUP]], %[[GROUP]]
  tile.role producer registers 0 {
    %r = tile.rows
  }
  tile.role consumer registers 0 {
    %g = tile.warpgroup
    %h = arith.muli %g, %g : i32
  }
}

// -----

// Without roles, what runs once runs in thread 0, and its warp waits for it.
// CHECK-LABEL: tile.kernel @once
// CHECK-SAME: tile.threads = 128 : i64
tile.kernel @once() warpgroups 1 {
  // CHECK: scf.if
  // CHECK-NEXT: tile.rows
  // CHECK-NEXT: }
  // CHECK-NEXT: ptx.syncwarp
  tile.once {
    %r = tile.rows
  }
}

// -----

// setmaxnreg takes whole warpgroups: one producer, then the consumers.
tile.kernel @order() warpgroups 1 {
  // expected-error@+1 {{'tile.role' op must be a producer, followed by a consumer and nothing else}}
  tile.role consumer registers 232 {
  }
  tile.role producer registers 40 {
  }
}
