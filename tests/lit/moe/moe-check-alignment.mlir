// moe-check: MJ111, rows of scales that an alignment would pad.
// RUN: moejit-opt %s --moe-check -split-input-file -verify-diagnostics

// MJ111 trips: rows of 6 weight scales.
#x = #moe.scales<granule = [1, 128], source = dynamic, order = mn_major, align = 16>
#w = #moe.scales<granule = [1, 128, 128], align = 16>
// expected-note@+1 {{w is declared here}}
moe.kernel @trips(%x: tensor<?x768xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x768xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+2 {{'moe.gemm' op align = 16 of the scales of w pads their rows of 24 bytes, which is not supported by this version [MJ111]}}
  // expected-note@+1 {{store the scales packed, and leave align away}}
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x768xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x768xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ111 passes: rows of 4 weight scales are 16 bytes, and groups of activations may have gaps.
#x = #moe.scales<granule = [1, 128], source = dynamic, align = 64>
#w = #moe.scales<granule = [1, 128, 128], align = 16>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}
