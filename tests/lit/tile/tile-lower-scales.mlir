// Scales reach registers, from shared or from global memory; promotions and scalings become register arithmetic.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-lower-scales))' -split-input-file -verify-diagnostics | FileCheck %s

// A vector in a slot starts up to three scales before the row asked for; a thread reads those of its two rows. One fused
// multiply-add an element, with the product of the two scales, which is rounded.
// CHECK-LABEL: tile.kernel @slot
tile.kernel @slot("x_scales" %xs: !tile.view<4x?xf32>, "w_scales" %ws: !tile.view<2x4xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %k = arith.constant 1 : i32
  %m = tile.rows
  %ring = tile.ring stages 1 [!tile.block<1x64xf32>, !tile.block<1x1xf32>] {barrier_offset = 512 : i64, field_offsets = array<i64: 0, 384>, shared_offset = 0 : i64, stride = 1024 : i64}
  %acc = tile.acc : !tile.acc<64x128>
  %t = tile.acc : !tile.acc<64x128>
  %f = tile.await %ring
  %sa = tile.field %f[0] = %xs[%k, %m] : !tile.view<4x?xf32> -> !tile.block<1x64xf32>
  %sb = tile.field %f[1] = %ws[%c0, %k] : !tile.view<2x4xf32> -> !tile.block<1x1xf32>
  // CHECK: %[[M:.*]] = tile.rows
  // CHECK: %[[SLACK:.*]] = arith.andi %[[M]], %{{.*}} : i32
  // CHECK: arith.addi %{{.*}}, %[[SLACK]] : i32
  // CHECK: %[[R0:.*]] = ptx.ld_shared_f32 %{{.*}} {ptx.name = "rowScale"}
  // CHECK: %[[R1:.*]] = ptx.ld_shared_f32 %{{.*}} {ptx.name = "rowScaleBelow"}
  // CHECK: %[[C:.*]] = ptx.ld_shared_f32 %{{.*}} {ptx.name = "columnScale"}
  // CHECK: %[[S0:.*]] = ptx.mul_f32 %[[R0]], %[[C]]
  // CHECK: %[[S1:.*]] = ptx.mul_f32 %[[R1]], %[[C]]
  // CHECK: ptx.unroll %{{.*}} = 0 to 64 step 4 {
  // CHECK-COUNT-2: ptx.fma_f32 %{{.*}}, %[[S0]], %{{.*}}
  // CHECK-COUNT-2: ptx.fma_f32 %{{.*}}, %[[S1]], %{{.*}}
  tile.promote %acc, %t rows %sa per 1 : !tile.block<1x64xf32> columns %sb per 128 : !tile.block<1x1xf32> : !tile.acc<64x128>, !tile.acc<64x128>
}

// -----

// From global memory, nothing past the last row or channel is read. Every column has a scale of its own here, so they are read pair by pair.
// CHECK-LABEL: tile.kernel @global
tile.kernel @global("x_scales" %xs: !tile.view<?xf32>, "w_scales" %ws: !tile.view<4x200xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x128>
  // CHECK-NOT: tile.load
  %sa = tile.load %xs[%c0] : !tile.view<?xf32> -> !tile.block<64xf32>
  %sb = tile.load %ws[%c0, %c0] : !tile.view<4x200xf32> -> !tile.block<1x128xf32>
  // CHECK: %[[S:.*]] = tile.rows
  // CHECK: %[[IN:.*]] = arith.cmpi slt, %{{.*}}, %[[S]] : i32
  // CHECK: scf.if %[[IN]] -> (f32) {
  // CHECK: %[[V:.*]] = ptx.ld_global_f32
  // CHECK: scf.yield %[[V]] : f32
  // CHECK: } else {
  // CHECK: %[[Z:.*]] = ptx.constant_f32 0.0
  // CHECK: scf.yield %[[Z]] : f32
  // CHECK: ptx.unroll
  // CHECK: %[[N:.*]] = arith.constant 200 : i32
  // CHECK: arith.cmpi slt, %{{.*}}, %[[N]] : i32
  // CHECK: ptx.ld_global_f32
  // CHECK: ptx.mul_f32
  tile.scale %acc rows %sa per 1 : !tile.block<64xf32> columns %sb per 1 : !tile.block<1x128xf32> : !tile.acc<64x128>
}

// -----

// Rows of a launch's own scales lie as far apart as the launch says.
// CHECK-LABEL: tile.kernel @strided
tile.kernel @strided("x_scales" %xs: !tile.view<?x4xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %s = tile.load %xs[%c0, %c0] : !tile.view<?x4xf32> -> !tile.block<64x1xf32>
  // CHECK: %[[STRIDE:.*]] = tile.stride
  // CHECK: arith.muli %{{.*}}, %[[STRIDE]] : i64
  // CHECK: ptx.ld_global_f32
  %a, %b = tile.read %s rows per 1 batch 0 of !tile.acc<64x128> : !tile.block<64x1xf32> -> f32, f32
}

// -----

// Items find their scales: this one's part, then its granule inside the part. Two neighbours have one scale here, so it is read once.
// CHECK-LABEL: tile.kernel @items
tile.kernel @items("w_scales" %ws: !tile.view<2x16xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %n = arith.constant 256 : i32
  %acc = tile.acc : !tile.acc<64x128>
  %s = tile.load %ws[%c0, %n] items <granule = 24, extent = 160, phase = 8, parts = 2> : !tile.view<2x16xf32> -> !tile.block<1x128xf32>
  // CHECK: ptx.unroll
  // CHECK: %[[ALL:.*]] = arith.constant 320 : i32
  // CHECK: %[[IN:.*]] = arith.cmpi slt, %[[ITEM:.*]], %[[ALL]] : i32
  // CHECK: scf.if %[[IN]]
  // CHECK: %[[E:.*]] = arith.constant 160 : i32
  // CHECK: %[[PART:.*]] = arith.divsi %[[ITEM]], %[[E]] : i32
  // CHECK: arith.subi %[[ITEM]]
  // CHECK: %[[G:.*]] = arith.constant 24 : i32
  // CHECK: %[[LOCAL:.*]] = arith.divsi %{{.*}}, %[[G]] : i32
  // CHECK: arith.addi %{{.*}}, %[[LOCAL]] : i32
  // CHECK: ptx.ld_global_f32
  // CHECK-NOT: ptx.ld_global_f32
  tile.scale %acc columns %s per 1 : !tile.block<1x128xf32> : !tile.acc<64x128>
}

// -----

// A fragment whose columns have few scales reads them run by run, and every column compares where it lies. From a multiple of the
// fragment's width on, 128 columns in blocks of 128 that begin 32 before the first have two runs.
// CHECK-LABEL: tile.kernel @runs
tile.kernel @runs("w_scales" %ws: !tile.view<3xf32>) warpgroups 1 {
  %tiles = tile.scheduler tile [64, 128] columns 256 experts 1 order static raster 1
  // CHECK: tile.for_tiles %{{.*}} -> %{{.*}}, %{{.*}}, %[[N:.*]], %{{.*}}, %{{.*}} {
  tile.for_tiles %tiles -> %e, %m, %n, %rows, %live {
    %acc = tile.acc : !tile.acc<64x128>
    %s = tile.load %ws[%n] items <granule = 128, extent = 256, phase = 32> : !tile.view<3xf32> -> !tile.block<128xf32>
    // CHECK: %[[END:.*]] = arith.subi %{{.*}}, %[[N]] : i32
    // CHECK: %[[FIRST:.*]] = scf.if {{.*}} {
    // CHECK: ptx.ld_global_f32
    // CHECK: } {ptx.name = "columnScale"}
    // CHECK: %[[SECOND:.*]] = scf.if {{.*}} {
    // CHECK: ptx.ld_global_f32
    // CHECK: } {ptx.name = "columnScale"}
    // CHECK: ptx.unroll
    // CHECK-NOT: ptx.ld_global_f32
    // CHECK: %[[BEFORE:.*]] = arith.cmpi slt, %{{.*}}, %[[END]] : i32
    // CHECK: arith.select %[[BEFORE]], %[[FIRST]], %[[SECOND]] : f32
    tile.scale %acc columns %s per 1 : !tile.block<128xf32> : !tile.acc<64x128>
  }
}

// -----

// Blocks that divide a fragment are runs, too: two of 64 columns, read from the slot once.
// CHECK-LABEL: tile.kernel @halves
tile.kernel @halves("w_scales" %ws: !tile.view<2x4xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %ring = tile.ring stages 1 [!tile.block<2x1xf32>] {barrier_offset = 512 : i64, field_offsets = array<i64: 0>, shared_offset = 0 : i64, stride = 1024 : i64}
  %acc = tile.acc : !tile.acc<64x128>
  %t = tile.acc : !tile.acc<64x128>
  %f = tile.await %ring
  %s = tile.field %f[0] = %ws[%c0, %c0] : !tile.view<2x4xf32> -> !tile.block<2x1xf32>
  // CHECK-COUNT-2: ptx.ld_shared_f32 %{{.*}} {ptx.name = "columnScale"}
  // CHECK: ptx.unroll
  // CHECK-NOT: ptx.ld_shared_f32
  // CHECK: arith.select
  tile.promote %acc, %t columns %s per 64 : !tile.block<2x1xf32> : !tile.acc<64x128>, !tile.acc<64x128>
}

// -----

// What a thread read for its columns stays in one array of registers, which the promotion takes from.
// CHECK-LABEL: tile.kernel @columns
tile.kernel @columns("w_scales" %ws: !tile.view<32xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x32>
  %t = tile.acc : !tile.fragment<n = 32>
  %s = tile.load %ws[%c0] : !tile.view<32xf32> -> !tile.block<32xf32>
  // CHECK: %[[C:.*]] = ptx.regs {ptx.name = "columnScales"} : !ptx.regs<8xf32>
  // CHECK: ptx.unroll %{{.*}} = 0 to 8 step 2
  // CHECK-COUNT-2: ptx.regs_set %{{.*}}, %[[C]]
  %v:8 = tile.read %s columns per 1 batch 0 of !tile.acc<64x32> : !tile.block<32xf32> -> f32, f32, f32, f32, f32, f32, f32, f32
  // CHECK-NOT: ptx.regs {{.*}} : !ptx.regs<8xf32>
  // CHECK: ptx.unroll %{{.*}} = 0 to 16 step 4
  // CHECK: ptx.regs_get %[[C]]
  // CHECK: ptx.fma_f32
  tile.promote %acc, %t column_values(%v#0, %v#1, %v#2, %v#3, %v#4, %v#5, %v#6, %v#7 : f32, f32, f32, f32, f32, f32, f32, f32) batch 0 : !tile.acc<64x32>, !tile.fragment<n = 32>
  // Values from elsewhere, or in another order, are put into an array of their own.
  // CHECK: ptx.regs {{.*}} : !ptx.regs<8xf32>
  // CHECK-COUNT-8: ptx.regs_set
  tile.promote %acc, %t column_values(%v#1, %v#0, %v#2, %v#3, %v#4, %v#5, %v#6, %v#7 : f32, f32, f32, f32, f32, f32, f32, f32) batch 0 : !tile.acc<64x32>, !tile.fragment<n = 32>
}

// -----

// Parts that alternate are told apart by remainders, and so are their scales. Neighbours differ.
// CHECK-LABEL: tile.kernel @alternating
tile.kernel @alternating("w_scales" %ws: !tile.view<6xf32>) warpgroups 1 {
  %n = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x128>
  %s = tile.load %ws[%n] items <granule = 64, extent = 160, parts = 2, interleaved = true> : !tile.view<6xf32> -> !tile.block<128xf32>
  // CHECK: scf.if
  // CHECK: %[[PART:.*]] = arith.andi
  // CHECK: arith.shrsi
  // CHECK: %[[LOCAL:.*]] = arith.shrsi
  // CHECK: %[[FIRST:.*]] = arith.muli %[[LOCAL]]
  // CHECK: arith.addi %[[FIRST]], %[[PART]] : i32
  // CHECK-COUNT-2: ptx.ld_global_f32
  tile.scale %acc columns %s per 1 : !tile.block<128xf32> : !tile.acc<64x128>
}

// -----

// Powers of two: a byte becomes the exponent of a float; the bytes 0 and 255 are the subnormal 2^-127 and NaN.
// CHECK-LABEL: tile.kernel @bytes
tile.kernel @bytes("x_scales" %xs: !tile.view<?xf8E8M0FNU>, "w_scales" %ws: !tile.view<2x4xf8E8M0FNU>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %k = arith.constant 1 : i32
  %ring = tile.ring stages 1 [!tile.block<1x1xf8E8M0FNU>] {barrier_offset = 512 : i64, field_offsets = array<i64: 0>, shared_offset = 0 : i64, stride = 1024 : i64}
  %f = tile.await %ring
  %x = tile.load %xs[%c0] : !tile.view<?xf8E8M0FNU> -> !tile.block<64xf8E8M0FNU>
  %w = tile.field %f[0] = %ws[%c0, %k] : !tile.view<2x4xf8E8M0FNU> -> !tile.block<1x1xf8E8M0FNU>
  // CHECK: scf.if %{{.*}} -> (i32) {
  // CHECK: %[[B:.*]] = ptx.ld_global_u8
  // CHECK: scf.yield %[[B]] : i32
  // CHECK: %[[E:.*]] = arith.shli
  // CHECK: %[[ISNAN:.*]] = arith.cmpi eq
  // CHECK: %[[NAN:.*]] = arith.select %[[ISNAN]]
  // CHECK: %[[N:.*]] = arith.maxsi %[[E]], %{{.*}} : i32
  // CHECK: %[[BITS:.*]] = arith.addi %[[N]], %[[NAN]] : i32
  // CHECK: ptx.float_bits %[[BITS]]
  %a, %b = tile.read %x rows per 1 batch 0 of !tile.acc<64x128> : !tile.block<64xf8E8M0FNU> -> f32, f32
  // CHECK: ptx.ld_shared_u8
  // CHECK: ptx.float_bits
  %c = tile.read %w columns per 128 batch 0 of !tile.acc<64x128> : !tile.block<1x1xf8E8M0FNU> -> f32
}

// -----

// Four in a word: the byte asked for is shifted down.
// CHECK-LABEL: tile.kernel @words
tile.kernel @words("x_scales" %xs: !tile.view<2x?xi32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %group = tile.rows
  %s = tile.load %xs[%c0, %c0] : !tile.view<2x?xi32> -> !tile.block<1x64xi32>
  // CHECK: %[[GROUP:.*]] = tile.rows
  // CHECK-NOT: tile.unpack
  %b = tile.unpack %s[%group] : !tile.block<1x64xi32> -> !tile.block<1x64xf8E8M0FNU>
  // CHECK: ptx.ld_global_i32
  // CHECK: %[[SHIFT:.*]] = arith.muli %[[GROUP]]
  // CHECK: %[[DOWN:.*]] = arith.shrsi %{{.*}}, %[[SHIFT]]
  // CHECK: arith.andi %[[DOWN]]
  // CHECK: ptx.float_bits
  %r, %t = tile.read %b rows per 1 batch 0 of !tile.acc<64x128> : !tile.block<1x64xf8E8M0FNU> -> f32, f32
}

// -----

// A word is no scale.
tile.kernel @packed("x_scales" %xs: !tile.view<2x?xi32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %s = tile.load %xs[%c0, %c0] : !tile.view<2x?xi32> -> !tile.block<1x64xi32>
  // expected-error@+1 {{'tile.read' op takes packed scales; unpack them first}}
  %r, %t = tile.read %s rows per 1 batch 0 of !tile.acc<64x128> : !tile.block<1x64xi32> -> f32, f32
}

// -----

// Matrices that are stacked have rows one stride apart, too.
// CHECK-LABEL: tile.kernel @stacked
tile.kernel @stacked("w_scales" %ws: !tile.view<2x25x3xf32, strided>) warpgroups 1 {
  %c1 = arith.constant 1 : i32
  %e = tile.rows
  %s = tile.load %ws[%e, %c1, %c1] : !tile.view<2x25x3xf32, strided> -> !tile.block<1x1x1xf32>
  // CHECK: arith.constant 25 : i64
  // CHECK: %[[ROW:.*]] = arith.addi %{{.*}} : i64
  // CHECK: %[[STRIDE:.*]] = tile.stride
  // CHECK: arith.muli %{{.*}}, %[[STRIDE]] : i64
  // CHECK: ptx.ld_global_f32
  %c = tile.read %s columns per 128 batch 0 of !tile.acc<64x128> : !tile.block<1x1x1xf32> -> f32
}

// -----

// Scales already in registers; without any, a promotion adds.
// CHECK-LABEL: tile.kernel @values
tile.kernel @values() warpgroups 1 {
  // CHECK: %[[S:.*]] = ptx.constant_f32 2.0
  %f = ptx.constant_f32 2.0
  %acc = tile.acc : !tile.acc<64x128>
  %t = tile.acc : !tile.fragment<n = 128>
  // CHECK: ptx.unroll
  // CHECK-COUNT-4: ptx.fma_f32 %{{.*}}, %[[S]], %{{.*}}
  tile.promote %acc, %t column_values(%f : f32) batch 0 : !tile.acc<64x128>, !tile.fragment<n = 128>
  // CHECK: ptx.unroll
  // CHECK-NOT: ptx.fma_f32
  // CHECK-COUNT-4: ptx.add_f32
  tile.promote %acc, %t batch 0 : !tile.acc<64x128>, !tile.fragment<n = 128>
}

// -----

// A plain dense GEMM has nothing to scale; the operands that are loaded for its dot stay.
// CHECK-LABEL: tile.kernel @dense
tile.kernel @dense("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<128x128xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x128>
  // CHECK-COUNT-2: tile.load
  // CHECK: tile.dot
  // CHECK-NEXT: }
  %a = tile.load %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b = tile.load %w[%c0, %c0] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  tile.dot %acc, %a, %b : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
}

// -----

// A slot has addresses once its ring has a layout.
tile.kernel @noLayout("x_scales" %xs: !tile.view<1x?xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %ring = tile.ring stages 1 [!tile.block<1x64xf32>]
  %acc = tile.acc : !tile.acc<64x128>
  %f = tile.await %ring
  %s = tile.field %f[0] = %xs[%c0, %c0] : !tile.view<1x?xf32> -> !tile.block<1x64xf32>
  // expected-error@+1 {{'tile.scale' op reads a ring without layout; run tile-allocate-shared first}}
  tile.scale %acc rows %s per 1 : !tile.block<1x64xf32> : !tile.acc<64x128>
}

// -----

// A choice between two blocks has no one address.
tile.kernel @choice("x_scales" %xs: !tile.view<?xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %true = arith.constant true
  %acc = tile.acc : !tile.acc<64x128>
  %s = tile.load %xs[%c0] : !tile.view<?xf32> -> !tile.block<64xf32>
  %t = tile.load %xs[%c0] : !tile.view<?xf32> -> !tile.block<64xf32>
  %u = scf.if %true -> !tile.block<64xf32> {
    scf.yield %s : !tile.block<64xf32>
  } else {
    scf.yield %t : !tile.block<64xf32>
  }
  // expected-error@+1 {{'tile.scale' op takes scales from a field or a load}}
  tile.scale %acc rows %u per 1 : !tile.block<64xf32> : !tile.acc<64x128>
}

// -----

// Two accumulators that are divided differently hold different elements in the same registers.
tile.kernel @divided() warpgroups 2 {
  %acc = tile.acc : !tile.acc<128x256, rows, n = 128>
  %t = tile.acc : !tile.acc<128x256, columns, n = 128>
  // expected-error@+1 {{'tile.promote' op promotes '!tile.acc<128x256, columns, n = 128>' into '!tile.acc<128x256, rows, n = 128>', whose registers hold other elements}}
  tile.promote %acc, %t : !tile.acc<128x256, rows, n = 128>, !tile.acc<128x256, columns, n = 128>
}
