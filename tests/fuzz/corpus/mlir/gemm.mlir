// moe.gemm: each form round-trips; defaults do not print.
// RUN: moejit-opt %s | FileCheck %s
// RUN: moejit-opt %s | moejit-opt | FileCheck %s
// RUN: moejit-opt %s --mlir-print-op-generic | moejit-opt | FileCheck %s
// RUN: moejit-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC

#x = #moe.scales<granule = [1, 128], type = f32, source = dynamic, order = mn_major, align = 16>
#xm = #moe.scales<granule = [1, 1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128], type = f32>                       // [E, N, K] in 128x128 blocks
#we = #moe.scales<granule = [128, 128]>

// The example of the design, to the letter.
// CHECK-LABEL: moe.kernel @grouped(
// CHECK-SAME: %x: tensor<?x7168xf8E4M3FN, #[[X:[a-z0-9]+]]>, %offsets: tensor<33xi32>, %w: tensor<32x4096x7168xf8E4M3FN, #[[W:[a-z0-9]+]]>) -> tensor<?x4096xbf16>
moe.kernel @grouped(%x: tensor<?x7168xf8E4M3FN, #x>, %offsets: tensor<33xi32>,
                    %w: tensor<32x4096x7168xf8E4M3FN, #w>) -> tensor<?x4096xbf16> {
  // CHECK: %y = moe.gemm grouped(%x, %offsets, %w) : tensor<?x7168xf8E4M3FN, #[[X]]>, tensor<33xi32>, tensor<32x4096x7168xf8E4M3FN, #[[W]]> -> tensor<?x4096xbf16>
  // GENERIC: "moe.gemm"(%{{.*}}, %{{.*}}, %{{.*}}) <{accumulate = #moe.accumulate<exact>, dispatch = #moe.dispatch<grouped>, operandSegmentSizes = array<i32: 1, 1, 1, 0>, skipped = #moe.skipped<zeroed>}>
  %y = moe.gemm grouped(%x, %offsets, %w) : tensor<?x7168xf8E4M3FN, #x>, tensor<33xi32>,
                                            tensor<32x4096x7168xf8E4M3FN, #w> -> tensor<?x4096xbf16>
  // CHECK: moe.return %y : tensor<?x4096xbf16>
  moe.return %y : tensor<?x4096xbf16>
}

// Entries other than the defaults print, and discardable attributes stay.
// CHECK-LABEL: moe.kernel @options
moe.kernel @options(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<9xi32>, %w: tensor<8x256x512xf8E4M3FN, #w>)
    -> (tensor<?x256xbf16>, tensor<?x256xf16>) {
  // CHECK: moe.gemm grouped(%x, %offsets, %w) {accumulate = fast, skipped = untouched, tuned.by = "hand"} :
  %y = moe.gemm grouped(%x, %offsets, %w) {skipped = untouched, tuned.by = "hand", accumulate = fast}
     : tensor<?x512xf8E4M3FN, #x>, tensor<9xi32>, tensor<8x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  // CHECK: moe.gemm grouped(%x, %offsets, %w) :
  %z = moe.gemm grouped(%x, %offsets, %w) {accumulate = exact, skipped = zeroed}
     : tensor<?x512xf8E4M3FN, #x>, tensor<9xi32>, tensor<8x256x512xf8E4M3FN, #w> -> tensor<?x256xf16>
  moe.return %y, %z : tensor<?x256xbf16>, tensor<?x256xf16>
}

// CHECK-LABEL: moe.kernel @eager(%x:
moe.kernel @eager(%x: tensor<?x512xf8E4M3FN, #x>, %w: tensor<256x512xf8E4M3FN, #we>) -> tensor<?x256xbf16> {
  // CHECK: moe.gemm eager(%x, %w) : tensor<
  %y = moe.gemm eager(%x, %w) : tensor<?x512xf8E4M3FN, #x>, tensor<256x512xf8E4M3FN, #we> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// CHECK-LABEL: moe.kernel @batched
moe.kernel @batched(%x: tensor<?x512xf8E4M3FN, #x>, %ids: tensor<?xi32>, %w: tensor<8x256x512xf8E4M3FN, #w>)
    -> tensor<?x256xbf16> {
  // CHECK: moe.gemm batched(%x, %ids, %w) :
  %y = moe.gemm batched(%x, %ids, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<?xi32>, tensor<8x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// CHECK-LABEL: moe.kernel @batched_map
moe.kernel @batched_map(%x: tensor<?x512xf8E4M3FN, #x>, %ids: tensor<?xi32>, %w: tensor<8x256x512xf8E4M3FN, #w>,
                        %map: tensor<64xi32>) -> tensor<?x256xbf16> {
  // CHECK: moe.gemm batched(%x, %ids, %w, %expertMap) :
  %y = moe.gemm batched(%x, %ids, %w, %map)
     : tensor<?x512xf8E4M3FN, #x>, tensor<?xi32>, tensor<8x256x512xf8E4M3FN, #w>, tensor<64xi32> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// CHECK-LABEL: moe.kernel @masked
moe.kernel @masked(%x: tensor<8x192x512xf8E4M3FN, #xm>, %counts: tensor<8xi32>, %w: tensor<8x256x512xf8E4M3FN, #w>)
    -> tensor<8x192x256xbf16> {
  // CHECK: moe.gemm masked(%x, %counts, %w) :
  %y = moe.gemm masked(%x, %counts, %w)
     : tensor<8x192x512xf8E4M3FN, #xm>, tensor<8xi32>, tensor<8x256x512xf8E4M3FN, #w> -> tensor<8x192x256xbf16>
  moe.return %y : tensor<8x192x256xbf16>
}
