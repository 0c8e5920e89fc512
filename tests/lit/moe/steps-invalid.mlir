// The steps around a GEMM: structure that is refused.
// RUN: moejit-opt %s -split-input-file -verify-diagnostics

moe.kernel @no_scales(%x: tensor<?x512xbf16>) {
  // expected-error@+1 {{'moe.quantize' op has a static scheme but no scales}}
  %q = moe.quantize(%x) : tensor<?x512xbf16> -> tensor<?x512xf8E4M3FN, #moe.scales<granule = [*, *]>>
  moe.return
}

// -----

moe.kernel @scales(%x: tensor<?x512xbf16>, %s: tensor<1x1xf32>) {
  // expected-error@+1 {{'moe.quantize' op has scales but a dynamic scheme}}
  %q = moe.quantize(%x, %s) : tensor<?x512xbf16>, tensor<1x1xf32>
    -> tensor<?x512xf8E4M3FN, #moe.scales<granule = [*, *], source = dynamic>>
  moe.return
}

// -----

moe.kernel @scale_shape(%x: tensor<?x512xbf16>, %s: tensor<4x1xf32>) {
  // expected-error@+1 {{'moe.quantize' op one scale per tensor is declared, got 4 scales [4, 1] [MJ024]}}
  %q = moe.quantize(%x, %s) : tensor<?x512xbf16>, tensor<4x1xf32>
    -> tensor<?x512xf8E4M3FN, #moe.scales<granule = [*, *]>>
  moe.return
}

// -----

moe.kernel @shape(%x: tensor<?x512xbf16>) {
  // expected-error@+1 {{'moe.quantize' op result has type 'tensor<?x256xf8E4M3FN>', expected the shape of 'tensor<?x512xbf16>'}}
  %q = moe.quantize(%x) : tensor<?x512xbf16>
    -> tensor<?x256xf8E4M3FN, #moe.scales<granule = [1, *], source = dynamic>>
  moe.return
}

// -----

moe.kernel @bias(%y: tensor<?x256xbf16>, %offsets: tensor<9xi32>, %bias: tensor<8x128xbf16>) {
  // expected-error@+1 {{'moe.bias' op N of the bias is 128, expected 256}}
  %z = moe.bias grouped(%y, %offsets, %bias)
     : tensor<?x256xbf16>, tensor<9xi32>, tensor<8x128xbf16> -> tensor<?x256xbf16>
  moe.return
}

// -----

moe.kernel @bias_operands(%y: tensor<?x256xbf16>, %bias: tensor<8x256xbf16>) {
  // expected-error@+1 {{'moe.bias' op grouped takes 3 operands, got 2}}
  %z = moe.bias grouped(%y, %bias) : tensor<?x256xbf16>, tensor<8x256xbf16> -> tensor<?x256xbf16>
  moe.return
}

// -----

moe.kernel @odd(%y: tensor<?x255xbf16>) {
  // expected-error@+1 {{'moe.silu_mul' op input has type 'tensor<?x255xbf16>', expected an even number of columns: gate and up}}
  %h = moe.silu_mul(%y) : tensor<?x255xbf16> -> tensor<?x127xbf16>
  moe.return
}

// -----

moe.kernel @half(%y: tensor<?x256xbf16>) {
  // expected-error@+1 {{'moe.silu_mul' op column count of the result is 256, expected 128}}
  %h = moe.silu_mul(%y) : tensor<?x256xbf16> -> tensor<?x256xbf16>
  moe.return
}

// -----

moe.kernel @weights(%y: tensor<4x256xbf16>, %weights: tensor<5xf32>) {
  // expected-error@+1 {{'moe.route_scale' op number of weights is 5, expected 4}}
  %z = moe.route_scale(%y, %weights) : tensor<4x256xbf16>, tensor<5xf32> -> tensor<4x256xbf16>
  moe.return
}

// -----

moe.kernel @combine(%y: tensor<?x256xbf16>, %rows: tensor<?x?xi32>) {
  // expected-error@+1 {{'moe.combine' op rows have type 'tensor<?x?xi32>', expected [tokens, k] of i32 with a static k}}
  %z = moe.combine(%y, %rows) : tensor<?x256xbf16>, tensor<?x?xi32> -> tensor<?x256xbf16>
  moe.return
}
