// The syntax of the dialect survives printing and parsing.
// RUN: ptx-emit --ptx-to-ptx-ir %s | FileCheck %s
// RUN: ptx-emit --ptx-to-ptx-ir %s > %t && ptx-emit --ptx-to-ptx-ir %t | diff %t -

// A kernel keeps parameter names and launch bounds; those not given have defaults.
// CHECK-LABEL: ptx.kernel @kernel(%map: !ptx.tmap {ptx.name = "map"}, %{{.*}}: !ptx.ptr, %rows: i32 {ptx.name = "rows"})
// CHECK-SAME: cluster = 1 : i32, min_blocks = 1 : i32, shared_bytes = 0 : i32, threads = 256 : i32
ptx.kernel @kernel(%map: !ptx.tmap {ptx.name = "map"}, %p: !ptx.ptr, %rows: i32 {ptx.name = "rows"})
    attributes {threads = 256 : i32} {
  // CHECK: %[[ACC:.*]] = ptx.regs {ptx.name = "acc"} : !ptx.regs<2x64xf32>
  %acc = ptx.regs {ptx.name = "acc"} : !ptx.regs<2x64xf32>
  // CHECK: %[[WORDS:.*]] = ptx.regs : !ptx.regs<4xi32>
  %words = ptx.regs : !ptx.regs<4xi32>
  %one = arith.constant 1 : i32
  %zero = ptx.constant_f32 0.0
  // CHECK: ptx.unroll %i = 0 to 64 step 4 {
  ptx.unroll %i = 0 to 64 step 4 {
    // CHECK: %[[V:.*]] = ptx.regs_get %[[ACC]][0, %i] : !ptx.regs<2x64xf32>
    %v = ptx.regs_get %acc[0, %i] : !ptx.regs<2x64xf32>
    // CHECK: ptx.regs_set %[[V]], %[[ACC]][1, %i] : !ptx.regs<2x64xf32>
    ptx.regs_set %v, %acc[1, %i] : !ptx.regs<2x64xf32>
  } {ptx.name = "i"}
  // CHECK: ptx.unroll %{{.*}} = -1 to 1 {
  ptx.unroll %u = -1 to 1 {
  }
  // CHECK: ptx.wgmma %[[ACC]][1], %{{.*}}, %{{.*}}, %{{.*}} {a = "e4m3", b = "e5m2", n = 128 : i32} : !ptx.regs<2x64xf32>
  ptx.wgmma %acc[1], %one, %one, %one {n = 128 : i32, a = "e4m3", b = "e5m2"} : !ptx.regs<2x64xf32>
  // CHECK: ptx.regs_pin %[[WORDS]] : !ptx.regs<4xi32>
  ptx.regs_pin %words : !ptx.regs<4xi32>
  // CHECK: ptx.tma_load %{{.*}}, %map[%{{.*}}, %rows], %{{.*}}{{$}}
  ptx.tma_load %one, %map[%one, %rows], %one
  %policy = ptx.createpolicy_evict_first
  // CHECK: ptx.tma_load %{{.*}}, %map[%{{.*}}], %{{.*}} policy %{{.*}}
  ptx.tma_load %one, %map[%one], %one policy %policy
  // CHECK: ptx.tma_load %{{.*}}, %map[%{{.*}}, %{{.*}}, %{{.*}}], %{{.*}} multicast %{{.*}}
  ptx.tma_load %one, %map[%one, %one, %one], %one multicast %one
  // CHECK: ptx.tma_load %{{.*}}, %map[%{{.*}}], %{{.*}} policy %{{.*}} multicast %{{.*}}
  ptx.tma_load %one, %map[%one], %one policy %policy multicast %one
  // CHECK: ptx.bar_sync 3, 128
  ptx.bar_sync 3, 128
  // CHECK: ptx.ld_shared_v4 %{{.*}}, %[[WORDS]] : !ptx.regs<4xi32>
  ptx.ld_shared_v4 %one, %words : !ptx.regs<4xi32>
  // CHECK: ptx.tma_store %map[%{{.*}}, %rows], %{{.*}}{{$}}
  ptx.tma_store %map[%one, %rows], %one
  // CHECK: ptx.bulk_wait_read 2
  ptx.bulk_wait_read 2
  %offset = arith.constant 16 : i64
  // CHECK: ptx.cp_async %{{.*}}, %{{.*}}, %{{.*}} {bytes = 16 : i32, cache = "cg"}
  ptx.cp_async %one, %p, %offset {bytes = 16 : i32, cache = "cg"}
  // CHECK: ptx.cp_async %{{.*}}, %{{.*}}, %{{.*}} size %rows {bytes = 4 : i32, cache = "ca"}
  ptx.cp_async %one, %p, %offset size %rows {bytes = 4 : i32, cache = "ca"}
  %pairs = ptx.regs : !ptx.regs<3x2xi32>
  %small = ptx.regs : !ptx.regs<2x4xf32>
  // CHECK: ptx.ldmatrix %{{.*}}, %[[PAIRS:.*]][2] {trans} : !ptx.regs<3x2xi32>
  ptx.ldmatrix %one, %pairs[2] {trans} : !ptx.regs<3x2xi32>
  ptx.unroll %i = 0 to 2 {
    // CHECK: ptx.mma %{{.*}}[%i], %[[WORDS]], %[[PAIRS]][2] {a_type = "e5m2", b_type = "e4m3"} : !ptx.regs<2x4xf32>, !ptx.regs<4xi32>, !ptx.regs<3x2xi32>
    ptx.mma %small[%i], %words, %pairs[2] {a_type = "e5m2", b_type = "e4m3"}
        : !ptx.regs<2x4xf32>, !ptx.regs<4xi32>, !ptx.regs<3x2xi32>
  } {ptx.name = "i"}
}

// CHECK-LABEL: ptx.kernel @empty()
ptx.kernel @empty() attributes {threads = 32 : i32} {
}
