// Dots become wgmma instructions between a fence and a commit; waits become wgmma waits.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-lower-dots))' -split-input-file -verify-diagnostics | FileCheck %s

// A dense dot: four instructions of 32 along K, descriptors two units of 16 bytes on; the sum goes on from what the registers hold.
// The registers are pinned around them, so that no compiler moves their readers.
// CHECK-LABEL: tile.kernel @dense
tile.kernel @dense("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<128x128xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>] {barrier_offset = 24576 : i64, field_offsets = array<i64: 0, 8192>, shared_offset = 0 : i64, stride = 25600 : i64}
  %acc = tile.acc : !tile.acc<64x128>
  %f = tile.await %ring
  %a = tile.field %f[0] = %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b = tile.field %f[1] = %w[%c0, %c0] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  // CHECK: %[[W:.*]] = arith.constant 8192 : i32
  // CHECK: %[[BASEB:.*]] = arith.addi %{{.*}}, %[[W]] : i32
  // CHECK: %[[REGS:.*]] = builtin.unrealized_conversion_cast %{{.*}} : !tile.acc<64x128> to !ptx.regs<1x64xf32>
  // CHECK: ptx.regs_pin %[[REGS]][0]
  // CHECK-NEXT: ptx.wgmma_fence
  // CHECK: %[[A:.*]] = arith.ori %{{.*}}, %{{.*}} {ptx.name = "descA"} : i32
  // CHECK: %[[UNITS:.*]] = arith.shrsi %[[BASEB]]
  // CHECK: %[[B:.*]] = arith.ori %[[UNITS]], %{{.*}} {ptx.name = "descB"} : i32
  // CHECK: %[[ON:.*]] = arith.constant 1 : i32
  // CHECK: ptx.wgmma %[[REGS]][0], %[[A]], %[[B]], %[[ON]] {a = "e4m3", b = "e4m3", n = 128 : i32}
  // CHECK-COUNT-3: ptx.wgmma %[[REGS]][0], %{{.*}}, %{{.*}}, %{{.*}} {a = "e4m3", b = "e4m3", n = 128 : i32}
  // CHECK-NEXT: ptx.wgmma_commit
  tile.dot %acc, %a, %b : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
  // CHECK-NEXT: ptx.wgmma_wait 1
  // CHECK: ptx.regs_pin
  tile.wait %acc pending 1 : !tile.acc<64x128>
}

// -----

// Afresh, the first instruction forgets. Two fragments of rows, each with its own registers; f8E5M2 weights.
// CHECK-LABEL: tile.kernel @fresh
tile.kernel @fresh("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<64x128xf8E5M2>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %ring = tile.ring stages 1 [!tile.block<128x128xf8E4M3FN>, !tile.block<64x128xf8E5M2>] {barrier_offset = 24576 : i64, field_offsets = array<i64: 0, 16384>, shared_offset = 0 : i64, stride = 25600 : i64}
  %acc = tile.acc : !tile.acc<128x64>
  %f = tile.await %ring
  %a = tile.field %f[0] = %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  %b = tile.field %f[1] = %w[%c0, %c0] : !tile.view<64x128xf8E5M2> -> !tile.block<64x128xf8E5M2>
  // CHECK: ptx.wgmma_fence
  // CHECK: %[[OFF:.*]] = arith.constant 0 : i32
  // CHECK: ptx.wgmma %[[REGS:.*]][0], %{{.*}}, %{{.*}}, %{{.*}} {a = "e4m3", b = "e5m2", n = 64 : i32}
  // CHECK-COUNT-3: ptx.wgmma %[[REGS]][0]
  // CHECK-COUNT-4: ptx.wgmma %[[REGS]][1]
  // CHECK: ptx.wgmma_commit
  tile.dot %acc, %a, %b fresh : !tile.acc<128x64>, !tile.block<128x128xf8E4M3FN>, !tile.block<64x128xf8E5M2>
}

// -----

// A batch is one fragment; where warpgroups divide the columns, its weights start at the warpgroup's share.
// CHECK-LABEL: tile.kernel @batch
tile.kernel @batch("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<256x128xf8E4M3FN>) warpgroups 2 {
  %c0 = arith.constant 0 : i32
  %ring = tile.ring stages 1 [!tile.block<128x128xf8E4M3FN>, !tile.block<256x128xf8E4M3FN>] {barrier_offset = 49152 : i64, field_offsets = array<i64: 0, 16384>, shared_offset = 0 : i64, stride = 50176 : i64}
  %t = tile.acc : !tile.fragment<n = 128>
  %f = tile.await %ring
  %a = tile.field %f[0] = %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  %b = tile.field %f[1] = %w[%c0, %c0] : !tile.view<256x128xf8E4M3FN> -> !tile.block<256x128xf8E4M3FN>
  // CHECK: {ptx.name = "warpgroup"
  // CHECK: builtin.unrealized_conversion_cast %{{.*}} : !tile.fragment<n = 128> to !ptx.regs<64xf32>
  // CHECK: ptx.wgmma %{{[^,\[]*}}, %{{.*}}, %{{.*}}, %{{.*}} {a = "e4m3", b = "e4m3", n = 128 : i32} : !ptx.regs<64xf32>
  tile.dot %t, %a, %b batch 1 of !tile.acc<128x256, columns, n = 128> fresh : !tile.fragment<n = 128>, !tile.block<128x128xf8E4M3FN>, !tile.block<256x128xf8E4M3FN>
}

// -----

// No instruction scales a product.
tile.kernel @exact("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<128x128xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x128>
  %a = tile.load %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b = tile.load %w[%c0, %c0] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  // expected-error@+1 {{'tile.dot' op is scaled or exact; run tile-promote-dots first}}
  tile.dot %acc, %a, %b exact : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
}

// -----

// wgmma reads shared memory.
tile.kernel @unstaged("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<128x128xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x128>
  %a = tile.load %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b = tile.load %w[%c0, %c0] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  // expected-error@+1 {{'tile.dot' op reads operands outside shared memory; run tile-stage-loads first}}
  tile.dot %acc, %a, %b : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
}

// -----

// A ring without a layout has no addresses.
tile.kernel @noLayout("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<128x128xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>]
  %acc = tile.acc : !tile.acc<64x128>
  %f = tile.await %ring
  %a = tile.field %f[0] = %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b = tile.field %f[1] = %w[%c0, %c0] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  // expected-error@+1 {{'tile.dot' op reads a ring without layout; run tile-allocate-shared first}}
  tile.dot %acc, %a, %b : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
}

// -----

// A field that the ring does not have.
tile.kernel @field("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<128x128xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>] {barrier_offset = 8192 : i64, field_offsets = array<i64: 0>, shared_offset = 0 : i64, stride = 9216 : i64}
  %acc = tile.acc : !tile.acc<64x128>
  %f = tile.await %ring
  %a = tile.field %f[0] = %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b = tile.field %f[1] = %w[%c0, %c0] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  // expected-error@+1 {{'tile.dot' op names field 1 of a ring with 1}}
  tile.dot %acc, %a, %b : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
}

// -----

// Fragments are numbered by how their accumulator is divided: dot and promotion must mean the same one.
tile.kernel @divided("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<256x128xf8E4M3FN>) warpgroups 2 {
  %c0 = arith.constant 0 : i32
  %ring = tile.ring stages 1 [!tile.block<128x128xf8E4M3FN>, !tile.block<256x128xf8E4M3FN>] {barrier_offset = 49152 : i64, field_offsets = array<i64: 0, 16384>, shared_offset = 0 : i64, stride = 50176 : i64}
  %acc = tile.acc : !tile.acc<128x256, columns, n = 128>
  %t = tile.acc : !tile.fragment<n = 128>
  %f = tile.await %ring
  %a = tile.field %f[0] = %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  %b = tile.field %f[1] = %w[%c0, %c0] : !tile.view<256x128xf8E4M3FN> -> !tile.block<256x128xf8E4M3FN>
  // expected-error@+1 {{'tile.dot' op computes a batch of '!tile.acc<128x256, rows, n = 128>' that is promoted into '!tile.acc<128x256, columns, n = 128>'}}
  tile.dot %t, %a, %b batch 1 of !tile.acc<128x256, rows, n = 128> fresh : !tile.fragment<n = 128>, !tile.block<128x128xf8E4M3FN>, !tile.block<256x128xf8E4M3FN>
  tile.wait %t : !tile.fragment<n = 128>
  // expected-note@+1 {{promoted here}}
  tile.promote %acc, %t batch 1 : !tile.acc<128x256, columns, n = 128>, !tile.fragment<n = 128>
}
