// The steps around a GEMM round-trip: a whole expert MLP.
// RUN: moejit-opt %s | FileCheck %s
// RUN: moejit-opt %s | moejit-opt | FileCheck %s
// RUN: moejit-opt %s --mlir-print-op-generic | moejit-opt | FileCheck %s

#x = #moe.scales<granule = [1, 128], source = dynamic>
#s = #moe.scales<granule = [*, *]>
#w = #moe.scales<granule = [1, 128, 128]>

// CHECK-LABEL: moe.kernel @mlp
moe.kernel @mlp(%tokens: tensor<?x512xbf16>, %offsets: tensor<9xi32>, %gateUp: tensor<8x256x512xf8E4M3FN, #w>,
                %bias: tensor<8x256xbf16>, %down: tensor<8x512x128xf8E4M3FN, #w>, %weights: tensor<?xf32>,
                %rows: tensor<?x8xi32>) -> tensor<?x512xbf16> {
  // CHECK: moe.quantize(%{{.*}}) : tensor<?x512xbf16> -> tensor<?x512xf8E4M3FN, #{{.*}}>
  %x = moe.quantize(%tokens) : tensor<?x512xbf16> -> tensor<?x512xf8E4M3FN, #x>
  %y = moe.gemm grouped(%x, %offsets, %gateUp)
     : tensor<?x512xf8E4M3FN, #x>, tensor<9xi32>, tensor<8x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  // CHECK: moe.bias grouped(%{{.*}}, %{{.*}}, %{{.*}}) : tensor<?x256xbf16>, tensor<9xi32>, tensor<8x256xbf16> -> tensor<?x256xbf16>
  %z = moe.bias grouped(%y, %offsets, %bias)
     : tensor<?x256xbf16>, tensor<9xi32>, tensor<8x256xbf16> -> tensor<?x256xbf16>
  // CHECK: moe.silu_mul(%{{.*}}) : tensor<?x256xbf16> -> tensor<?x128xbf16>
  %h = moe.silu_mul(%z) : tensor<?x256xbf16> -> tensor<?x128xbf16>
  // CHECK: moe.silu_mul(%{{.*}}) interleaved : tensor<?x256xbf16> -> tensor<?x128xbf16>
  %unused = moe.silu_mul(%z) interleaved : tensor<?x256xbf16> -> tensor<?x128xbf16>
  %q = moe.quantize(%h) : tensor<?x128xbf16> -> tensor<?x128xf8E4M3FN, #x>
  %o = moe.gemm grouped(%q, %offsets, %down)
     : tensor<?x128xf8E4M3FN, #x>, tensor<9xi32>, tensor<8x512x128xf8E4M3FN, #w> -> tensor<?x512xbf16>
  // CHECK: moe.route_scale(%{{.*}}, %{{.*}}) : tensor<?x512xbf16>, tensor<?xf32> -> tensor<?x512xbf16>
  %r = moe.route_scale(%o, %weights) : tensor<?x512xbf16>, tensor<?xf32> -> tensor<?x512xbf16>
  // CHECK: moe.combine(%{{.*}}, %{{.*}}) : tensor<?x512xbf16>, tensor<?x8xi32> -> tensor<?x512xbf16>
  %c = moe.combine(%r, %rows) : tensor<?x512xbf16>, tensor<?x8xi32> -> tensor<?x512xbf16>
  moe.return %c : tensor<?x512xbf16>
}

// A static scheme is given its scales.
// CHECK-LABEL: moe.kernel @static
moe.kernel @static(%tokens: tensor<?x512xbf16>, %scales: tensor<1x1xf32>) {
  // CHECK: moe.quantize(%{{.*}}, %{{.*}}) : tensor<?x512xbf16>, tensor<1x1xf32> -> tensor<?x512xf8E4M3FN, #{{.*}}>
  %x = moe.quantize(%tokens, %scales) : tensor<?x512xbf16>, tensor<1x1xf32> -> tensor<?x512xf8E4M3FN, #s>
  moe.return
}
