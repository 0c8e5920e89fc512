// Identifiers come from `ptx.name`; a name that is taken gets a number, and comes again once its scope has ended.
// RUN: ptx-emit --ptx-to-cuda %s | FileCheck %s
// RUN: ptx-emit --ptx-to-cuda %s > %t && ptx-emit --ptx-to-cuda %s | diff %t -
// RUN: ptx-emit --ptx-to-binary %s | FileCheck %s --check-prefix=BINARY
// BINARY: // cubin made

// The name of a kernel never reaches the text; a pointer is const unless something writes through it.
// CHECK-NOT: evil
// CHECK: extern "C" __global__ void __launch_bounds__(64, 2)
// CHECK-NEXT: moejit_kernel(const __grid_constant__ TensorMap v0, const void *a, void *a_1, int v1) {
ptx.kernel @"evil() { }"(%map: !ptx.tmap, %in: !ptx.ptr {ptx.name = "a"}, %out: !ptx.ptr {ptx.name = "a"}, %rows: i32)
    attributes {threads = 64 : i32, min_blocks = 2 : i32} {
  %l0 = arith.constant 0 : i64
  // A wrapper's name stays the wrapper's.
  // CHECK-NEXT: const int thread_index_1 = thread_index();
  %t = ptx.thread_index {ptx.name = "thread_index"}
  // CHECK-NEXT: const int value_wgmma_m64 = block_index();
  %b = ptx.block_index {ptx.name = "wgmma_m64"}
  // CHECK-NEXT: #pragma unroll
  // CHECK-NEXT: for (int i = 0; i < 2; ++i) {
  ptx.unroll %i = 0 to 2 {
    // CHECK-NEXT: #pragma unroll
    // CHECK-NEXT: for (int i_1 = 0; i_1 < 2; ++i_1) {
    ptx.unroll %j = 0 to 2 {
      // CHECK-NEXT: st_global_b32(a_1, 0ll, i + i_1 + thread_index_1 + value_wgmma_m64 + v1);
      %0 = arith.addi %i, %j : i32
      %1 = arith.addi %0, %t : i32
      %2 = arith.addi %1, %b : i32
      %3 = arith.addi %2, %rows : i32
      ptx.st_global_b32 %out, %l0, %3
    } {ptx.name = "i"}
  } {ptx.name = "i"}
  // CHECK: for (int i = 0; i < 2; ++i) {
  // CHECK-NEXT: const int v2 = ld_global_i32(a, 0ll);
  // CHECK-NEXT: st_global_b32(a_1, 0ll, v2 + i);
  ptx.unroll %i = 0 to 2 {
    %0 = ptx.ld_global_i32 %in, %l0
    %1 = arith.addi %0, %i : i32
    ptx.st_global_b32 %out, %l0, %1
  } {ptx.name = "i"}
}
