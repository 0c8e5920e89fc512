// Rings become mbarriers: full ones that copies complete, empty ones that warps arrive at.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-lower-ring))' -split-input-file -verify-diagnostics | FileCheck %s

// Thread 0 sets up a pair of barriers for every slot: one arrival fills it, one of each of 8 warps empties it.
// CHECK-LABEL: tile.kernel @barriers
tile.kernel @barriers() warpgroups 2 {
  // CHECK: %[[SHARED:.*]] = ptx.shared_base
  // CHECK: %[[FIRST:.*]] = arith.addi %[[SHARED]], %{{.*}} : i32
  // CHECK: scf.if
  // CHECK: ptx.unroll %[[STAGE:.*]] = 0 to 3 {
  // CHECK: %[[FULL:.*]] = arith.addi %[[FIRST]], %{{.*}} {ptx.name = "full"} : i32
  // CHECK: %[[ONE:.*]] = arith.constant 1 : i32
  // CHECK: ptx.mbarrier_init %[[FULL]], %[[ONE]]
  // CHECK: %[[READERS:.*]] = arith.constant 8 : i32
  // CHECK: ptx.mbarrier_init %{{.*}}, %[[READERS]]
  // CHECK: ptx.fence_mbarrier_init
  %ring = tile.ring stages 3 [!tile.block<64x128xf8E4M3FN>] {barrier_offset = 8192 : i64, field_offsets = array<i64: 0>, shared_offset = 0 : i64, stride = 9216 : i64}
}

// -----

// Filling waits for an empty slot, in the other phase since fresh barriers count as emptied, and expects the slot's bytes. Draining waits for
// a full one. Each role walks with a cursor of its own, and a lane of each warp arrives when all have read.
// CHECK-LABEL: tile.kernel @walk
tile.kernel @walk("x" %x: !tile.view<?x128xf8E4M3FN>) warpgroups 1 {
  %ring = tile.ring stages 3 [!tile.block<64x128xf8E4M3FN>] {barrier_offset = 8192 : i64, field_offsets = array<i64: 0>, shared_offset = 0 : i64, stride = 9216 : i64}
  // CHECK: tile.role {{ *}}producer
  tile.role producer registers 0 {
    // CHECK: %[[FILL:.*]] = ptx.regs {ptx.name = "fill"} : !ptx.regs<2xi32>
    // CHECK: %[[SLOT:.*]] = ptx.regs_get %[[FILL]][0] {ptx.name = "slot"}
    // CHECK: %[[PHASE:.*]] = ptx.regs_get %[[FILL]][1] {ptx.name = "phase"}
    // CHECK: %[[OTHER:.*]] = arith.xori %[[PHASE]], %{{.*}} : i32
    // CHECK: ptx.mbarrier_wait %{{.*}}, %[[OTHER]]
    // CHECK: %[[BYTES:.*]] = arith.constant 8192 : i32
    // CHECK-NEXT: ptx.mbarrier_expect_tx %{{.*}}, %[[BYTES]]
    // CHECK: %[[WRAPS:.*]] = arith.cmpi eq
    // CHECK: %[[NEXT:.*]] = arith.select %[[WRAPS]]
    // CHECK: ptx.regs_set %[[NEXT]], %[[FILL]][0]
    %s = tile.acquire %ring
    tile.publish %s
  }
  // CHECK: tile.role {{ *}}consumer
  tile.role consumer registers 0 {
    // CHECK: %[[DRAIN:.*]] = ptx.regs {ptx.name = "drain"} : !ptx.regs<2xi32>
    // CHECK: %[[P:.*]] = ptx.regs_get %[[DRAIN]][1] {ptx.name = "phase"}
    // CHECK: ptx.mbarrier_wait %{{.*}}, %[[P]]
    %f = tile.await %ring
    // CHECK: ptx.syncwarp
    // CHECK: scf.if
    // CHECK-NEXT: ptx.mbarrier_arrive
    tile.release %f
  }
}

// -----

// A kernel without a ring stays as it is.
// CHECK-LABEL: tile.kernel @none
tile.kernel @none() warpgroups 1 {
  // CHECK-NEXT: tile.sync
  // CHECK-NEXT: }
  tile.sync
}

// -----

// A ring has barriers once it has a layout.
tile.kernel @noLayout() warpgroups 1 {
  // expected-error@+1 {{'tile.ring' op has no layout; run tile-allocate-shared first}}
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>]
}

// -----

// What reads a slot must be lowered while it still is one.
tile.kernel @field("x_scales" %xs: !tile.view<1x?xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %ring = tile.ring stages 1 [!tile.block<1x64xf32>] {barrier_offset = 384 : i64, field_offsets = array<i64: 0>, shared_offset = 0 : i64, stride = 1024 : i64}
  %acc = tile.acc : !tile.acc<64x128>
  %f = tile.await %ring
  // expected-error@+1 {{'tile.field' op is still read; lower dots and scales before the ring}}
  %s = tile.field %f[0] = %xs[%c0, %c0] : !tile.view<1x?xf32> -> !tile.block<1x64xf32>
  tile.scale %acc rows %s per 1 : !tile.block<1x64xf32> : !tile.acc<64x128>
}

// -----

// A choice between two slots names no ring.
tile.kernel @choice() warpgroups 1 {
  %true = arith.constant true
  %ring = tile.ring stages 2 [!tile.block<64x128xf8E4M3FN>] {barrier_offset = 8192 : i64, field_offsets = array<i64: 0>, shared_offset = 0 : i64, stride = 9216 : i64}
  %f = tile.await %ring
  %g = tile.await %ring
  %h = scf.if %true -> !tile.slot {
    scf.yield %f : !tile.slot
  } else {
    scf.yield %g : !tile.slot
  }
  // expected-error@+1 {{'tile.release' op does not say which ring it walks}}
  tile.release %h
}
