// moe-check: changes nothing that is legal, asks for the architecture it is given, and knows how many experts there are.
// RUN: moejit-opt %s --moe-check | FileCheck %s
// RUN: not moejit-opt %s --moe-check=arch=sm_100a 2>&1 | FileCheck %s --check-prefix=OTHERARCH
// RUN: not moejit-opt %s --moe-check=arch=sm_90 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not moejit-opt %cases/batched-static.mlir --moe-check 2>&1 | FileCheck %s --check-prefix=BATCHED

// OTHERARCH: error: 'moe.gemm' op sm_100a is not supported by this version [MJ109]
// OTHERARCH: note: supported: sm_90a
// UNKNOWN: error: 'moe.gemm' op unknown architecture 'sm_90', expected one of {{.*}} [MJ021]
// UNKNOWN: note: sm_90a has the instructions moejit needs, sm_90 has not

// The case the rules begin with: the error at the op, a note at the argument, three ways out.
// BATCHED: batched-static.mlir:8:8: error: 'moe.gemm' op batched takes dynamic activation scales, got static [MJ001]
// BATCHED: batched-static.mlir:6:21: note: x is declared here
// BATCHED: note: 'eager' consumes static scales
// BATCHED: note: 'grouped' takes one static scale per tensor
// BATCHED: note: or use a dynamic scheme
// BATCHED-NOT: error:

#x = #moe.scales<granule = [expert, *]>
#w = #moe.scales<granule = [1, 128, 128]>

// CHECK-LABEL: moe.kernel @legal
moe.kernel @legal(%data: tensor<?x512xf8E4M3FN>, %scales: tensor<8x1xf32>, %offsets: tensor<9xi32>,
                  %w: tensor<8x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // CHECK-NEXT: moe.scaled(
  // CHECK-NEXT: moe.gemm grouped(
  // CHECK-NEXT: moe.return
  %x = moe.scaled(%data, %scales) : tensor<?x512xf8E4M3FN>, tensor<8x1xf32> -> tensor<?x512xf8E4M3FN, #x>
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<9xi32>, tensor<8x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}
