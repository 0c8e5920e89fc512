// moe.scaled: round trip, with the stored shape of each published layout.
// RUN: moejit-opt %s | FileCheck %s
// RUN: moejit-opt %s | moejit-opt | FileCheck %s

#groups = #moe.scales<granule = [1, 128], source = dynamic>
#transposed = #moe.scales<granule = [1, 128], source = dynamic, order = mn_major, align = 16>
#packed = #moe.scales<granule = [1, 128], type = f8E8M0FNU, source = dynamic, order = mn_major, packing = 4>
#expert = #moe.scales<granule = [expert, *]>
#blocks = #moe.scales<granule = [1, 128, 128], parts = 2>

// CHECK-LABEL: moe.kernel @groups
moe.kernel @groups(%data: tensor<?x7168xf8E4M3FN>, %scales: tensor<?x56xf32>) {
  // CHECK: moe.scaled(%{{.*}}, %{{.*}}) : tensor<?x7168xf8E4M3FN>, tensor<?x56xf32> -> tensor<?x7168xf8E4M3FN, #{{.*}}>
  %x = moe.scaled(%data, %scales) : tensor<?x7168xf8E4M3FN>, tensor<?x56xf32> -> tensor<?x7168xf8E4M3FN, #groups>
  moe.return
}

// CHECK-LABEL: moe.kernel @transposed
moe.kernel @transposed(%data: tensor<?x7168xf8E4M3FN>, %scales: tensor<56x?xf32>) {
  // CHECK: moe.scaled
  %x = moe.scaled(%data, %scales) : tensor<?x7168xf8E4M3FN>, tensor<56x?xf32> -> tensor<?x7168xf8E4M3FN, #transposed>
  moe.return
}

// CHECK-LABEL: moe.kernel @packed
moe.kernel @packed(%data: tensor<?x7168xf8E4M3FN>, %scales: tensor<14x?xi32>) {
  // CHECK: moe.scaled
  %x = moe.scaled(%data, %scales) : tensor<?x7168xf8E4M3FN>, tensor<14x?xi32> -> tensor<?x7168xf8E4M3FN, #packed>
  moe.return
}

// How many experts there are is known only to the GEMM: any count is well formed.
// CHECK-LABEL: moe.kernel @expert
moe.kernel @expert(%data: tensor<?x7168xf8E4M3FN>, %scales: tensor<32x1xf32>) {
  // CHECK: moe.scaled
  %x = moe.scaled(%data, %scales) : tensor<?x7168xf8E4M3FN>, tensor<32x1xf32> -> tensor<?x7168xf8E4M3FN, #expert>
  moe.return
}

// Gate and up of 192 rows each have two rows of scales each, not three together.
// CHECK-LABEL: moe.kernel @parts
moe.kernel @parts(%data: tensor<8x384x512xf8E4M3FN>, %scales: tensor<8x4x4xf32>) {
  // CHECK: moe.scaled
  %w = moe.scaled(%data, %scales)
     : tensor<8x384x512xf8E4M3FN>, tensor<8x4x4xf32> -> tensor<8x384x512xf8E4M3FN, #blocks>
  moe.return
}
