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
}

// CHECK-LABEL: ptx.kernel @empty()
ptx.kernel @empty() attributes {threads = 32 : i32} {
}
