// Each limit of this version: a kernel that trips it, and a near one that passes every rule. The rules that only a
// Spec can break are tested in tests/unit/RulesTest.cpp.
// RUN: moejit-opt %s --moe-check -split-input-file -verify-diagnostics

// MJ103 trips: f8E8M0FNU scales.
#x = #moe.scales<granule = [1, 128], source = dynamic, type = f8E8M0FNU>
#w = #moe.scales<granule = [1, 128, 128]>
// expected-note@+1 {{x is declared here}}
moe.kernel @trips(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+2 {{'moe.gemm' op f8E8M0FNU scales of x are not supported by this version [MJ103]}}
  // expected-note@+1 {{f32 scales are; every f8E8M0FNU scale is a power of two and widens to f32 exactly}}
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ103 passes.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ104 trips: one dynamic scale an expert.
#x = #moe.scales<granule = [expert, *], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
// expected-note@+1 {{x is declared here}}
moe.kernel @trips(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+6 {{'moe.gemm' op activation scales with granule = [expert, *], source = dynamic are not supported by this version [MJ104]}}
  // expected-note@+5 {{supported: static per tensor, granule = [*, *], source = static}}
  // expected-note@+4 {{supported: static per expert, granule = [expert, *], source = static}}
  // expected-note@+3 {{supported: dynamic per tensor, granule = [*, *], source = dynamic}}
  // expected-note@+2 {{supported: dynamic per token, granule = [1, *], source = dynamic}}
  // expected-note@+1 {{supported: dynamic 1x128 groups, granule = [1, 128], source = dynamic}}
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ104 passes: 1x32 groups.
#x = #moe.scales<granule = [1, 32], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ105 trips: 96x128 blocks.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 96, 128]>
// expected-note@+1 {{w is declared here}}
moe.kernel @trips(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+5 {{'moe.gemm' op weight scales with granule = [1, 96, 128], source = static are not supported by this version [MJ105]}}
  // expected-note@+4 {{supported: per tensor, granule = [*, *, *], source = static}}
  // expected-note@+3 {{supported: per expert, granule = [1, *, *], source = static}}
  // expected-note@+2 {{supported: per channel, granule = [1, 1, *], source = static}}
  // expected-note@+1 {{supported: 128x128 blocks, granule = [1, 128, 128], source = static}}
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ105 passes: 64x128 blocks.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 64, 128]>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ106 trips: mn_major scales of w.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128], order = mn_major>
// expected-note@+1 {{w is declared here}}
moe.kernel @trips(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+2 {{'moe.gemm' op mn_major order of scales [1, 128, 128] of w is not supported by this version [MJ106]}}
  // expected-note@+1 {{store the scales of w in row_major order}}
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ106 passes: of x.
#x = #moe.scales<granule = [1, 128], source = dynamic, order = mn_major>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ107 trips: a shard that starts inside a block.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128], phase = [0, 64, 0]>
// expected-note@+1 {{w is declared here}}
moe.kernel @trips(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+2 {{'moe.gemm' op a phase of w is not supported by this version [MJ107]}}
  // expected-note@+1 {{shard at multiples of the granule, or by expert instead of by tensor}}
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ107 passes.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ108 trips: parts of 192 rows.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128], parts = 2>
// expected-note@+1 {{w is declared here}}
moe.kernel @trips(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x384x512xf8E4M3FN, #w>) -> tensor<?x384xbf16> {
  // expected-error@+2 {{'moe.gemm' op 2 parts of 192 rows each are not supported by this version: a part must be a multiple of the granule 128 [MJ108]}}
  // expected-note@+1 {{pad each part with zero rows to 256}}
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x384x512xf8E4M3FN, #w> -> tensor<?x384xbf16>
  moe.return %y : tensor<?x384xbf16>
}

// -----

// MJ108 passes: parts of 256 rows.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128], parts = 2>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x512x512xf8E4M3FN, #w>) -> tensor<?x512xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x512x512xf8E4M3FN, #w> -> tensor<?x512xbf16>
  moe.return %y : tensor<?x512xbf16>
}
