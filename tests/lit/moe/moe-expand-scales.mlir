// moe-expand-scales: a scaled argument becomes two, data first; others stay where they are.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(moe.kernel(moe-expand-scales))' | FileCheck %s
// Once more changes nothing.
// RUN: moejit-opt %s --moe-expand-scales --moe-expand-scales | FileCheck %s

#x = #moe.scales<granule = [1, 128], source = dynamic, order = mn_major, align = 16>
#e = #moe.scales<granule = [expert, *]>
#t = #moe.scales<granule = [*, *]>
#p = #moe.scales<granule = [1, 128], type = f8E8M0FNU, source = dynamic, packing = 4>
#w = #moe.scales<granule = [1, 128, 128]>
#c = #moe.scales<granule = [1, 1, *], parts = 2>
#b = #moe.scales<granule = [128, 128]>

// Scales of x are stored with rows contiguous, so `?` is last.
// CHECK-LABEL: moe.kernel @groups(
// CHECK-SAME: %x: tensor<?x7168xf8E4M3FN>, %xScales: tensor<56x?xf32>, %offsets: tensor<33xi32>, %w: tensor<32x4104x7168xf8E4M3FN>, %wScales: tensor<32x33x56xf32>) -> tensor<?x4104xbf16>
moe.kernel @groups(%x: tensor<?x7168xf8E4M3FN, #x>, %offsets: tensor<33xi32>,
                   %w: tensor<32x4104x7168xf8E4M3FN, #w>) -> tensor<?x4104xbf16> {
  // CHECK: %[[X:.*]] = moe.scaled(%x, %xScales) : tensor<?x7168xf8E4M3FN>, tensor<56x?xf32> -> tensor<?x7168xf8E4M3FN, #{{.*}}>
  // CHECK: %[[W:.*]] = moe.scaled(%w, %wScales) : tensor<32x4104x7168xf8E4M3FN>, tensor<32x33x56xf32>
  // CHECK: moe.gemm grouped(%[[X]], %offsets, %[[W]])
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x7168xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x4104x7168xf8E4M3FN, #w> -> tensor<?x4104xbf16>
  moe.return %y : tensor<?x4104xbf16>
}

// How many scales `expert` means is taken from the GEMM; scales by channel keep N.
// CHECK-LABEL: moe.kernel @expert(
// CHECK-SAME: %xScales: tensor<8x1xf32>, %offsets: tensor<9xi32>, %w: tensor<8x256x512xf8E4M3FN>, %wScales: tensor<8x256x1xf32>)
moe.kernel @expert(%x: tensor<?x512xf8E4M3FN, #e>, %offsets: tensor<9xi32>, %w: tensor<8x256x512xf8E4M3FN, #c>)
    -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #e>, tensor<9xi32>, tensor<8x256x512xf8E4M3FN, #c> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// CHECK-LABEL: moe.kernel @eager(
// CHECK-SAME: %xScales: tensor<1x1xf32>, %w: tensor<256x512xf8E4M3FN>, %wScales: tensor<2x4xf32>)
moe.kernel @eager(%x: tensor<?x512xf8E4M3FN, #t>, %w: tensor<256x512xf8E4M3FN, #b>) -> tensor<?x256xbf16> {
  %y = moe.gemm eager(%x, %w) : tensor<?x512xf8E4M3FN, #t>, tensor<256x512xf8E4M3FN, #b> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// Four packed scales are one i32.
// CHECK-LABEL: moe.kernel @packed(
// CHECK-SAME: %xScales: tensor<?x1xi32>
moe.kernel @packed(%x: tensor<?x512xf8E4M3FN, #p>, %w: tensor<256x512xf8E4M3FN, #b>) -> tensor<?x256xbf16> {
  %y = moe.gemm eager(%x, %w) : tensor<?x512xf8E4M3FN, #p>, tensor<256x512xf8E4M3FN, #b> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// Nothing to expand.
// CHECK-LABEL: moe.kernel @plain(%{{[a-z0-9]+}}: tensor<?x64xbf16>) -> tensor<?x64xbf16>
// CHECK-NEXT: moe.return
moe.kernel @plain(%y: tensor<?x64xbf16>) -> tensor<?x64xbf16> {
  moe.return %y : tensor<?x64xbf16>
}
