// What this version does not lower: a kernel that trips each such rule, and near ones that pass every rule. The rules that only a
// Spec can break are tested in tests/unit/RulesTest.cpp. Every layout of scales that the contract allows is lowered.
// RUN: moejit-opt %s --moe-check -split-input-file -verify-diagnostics

// Powers of two, a byte each.
#x = #moe.scales<granule = [1, 128], source = dynamic, type = f8E8M0FNU>
#w = #moe.scales<granule = [1, 128, 128], type = f8E8M0FNU>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MX: four powers of two in a word, rows and columns contiguous.
#x = #moe.scales<granule = [1, 32], source = dynamic, type = f8E8M0FNU, order = mn_major, align = 16, packing = 4>
#w = #moe.scales<granule = [1, 1, 32], type = f8E8M0FNU, order = mn_major, packing = 4>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// One dynamic scale an expert; blocks that divide no tile.
#x = #moe.scales<granule = [expert, *], source = dynamic>
#w = #moe.scales<granule = [1, 96, 128]>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// Groups of several rows; blocks that all experts share.
#x = #moe.scales<granule = [4, 128], source = dynamic>
#w = #moe.scales<granule = [*, 320, 128]>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// Columns contiguous in the scales of w.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128], order = mn_major>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// A shard that starts inside a block, along N and K.
#x = #moe.scales<granule = [1, 128], source = dynamic, phase = [0, 96]>
#w = #moe.scales<granule = [1, 128, 128], phase = [0, 64, 32]>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// Parts of 192 rows, the last block of each ragged.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128], parts = 2>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x384x512xf8E4M3FN, #w>) -> tensor<?x384xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x384x512xf8E4M3FN, #w> -> tensor<?x384xbf16>
  moe.return %y : tensor<?x384xbf16>
}

// -----

// One scale a part.
#x = #moe.scales<granule = [*, *]>
#w = #moe.scales<granule = [1, *, *], parts = 2>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// Parts that alternate row by row.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128], parts = 2, interleaved>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x384x512xf8E4M3FN, #w>) -> tensor<?x384xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x384x512xf8E4M3FN, #w> -> tensor<?x384xbf16>
  moe.return %y : tensor<?x384xbf16>
}

// -----

// Rows of scales that an alignment pads.
#x = #moe.scales<granule = [1, *], source = dynamic, align = 16>
#w = #moe.scales<granule = [1, 128, 512], align = 16>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// A map from global to local experts; activations in bf16, quantized by the launch.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @passes(%x: tensor<?x512xbf16>, %ids: tensor<?xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>, %map: tensor<256xi32>) -> tensor<?x256xbf16> {
  %q = moe.quantize(%x) : tensor<?x512xbf16> -> tensor<?x512xf8E4M3FN, #x>
  %y = moe.gemm batched(%q, %ids, %w, %map)
     : tensor<?x512xf8E4M3FN, #x>, tensor<?xi32>, tensor<32x256x512xf8E4M3FN, #w>, tensor<256xi32> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ113 trips: one scale of all rows, among them those of nobody.
#x = #moe.scales<granule = [*, *], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @trips(%x: tensor<?x512xbf16>, %ids: tensor<?xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-note@+1 {{x is declared here}}
  %q = moe.quantize(%x) : tensor<?x512xbf16> -> tensor<?x512xf8E4M3FN, #x>
  // expected-error@+3 {{'moe.gemm' op quantizing x by one scale in the launch of a batched GEMM is not supported by this version: rows that no expert owns would take part in it [MJ113]}}
  // expected-note@+2 {{one scale per token: granule = [1, *]}}
  // expected-note@+1 {{quantize x in a launch of its own: moe.quantize alone}}
  %y = moe.gemm batched(%q, %ids, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<?xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ113 trips: rows of all experts' buffers share a scale.
#x = #moe.scales<granule = [*, 1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @trips(%x: tensor<4x64x512xbf16>, %counts: tensor<4xi32>, %w: tensor<4x256x512xf8E4M3FN, #w>) -> tensor<4x64x256xbf16> {
  // expected-note@+1 {{x is declared here}}
  %q = moe.quantize(%x) : tensor<4x64x512xbf16> -> tensor<4x64x512xf8E4M3FN, #x>
  // expected-error@+4 {{'moe.gemm' op quantizing by granule = [*, 1, 128], source = dynamic is not supported by this version [MJ113]}}
  // expected-note@+3 {{supported: one scale per tensor, granule = [*, *]}}
  // expected-note@+2 {{supported: one scale per token, granule = [1, *], source = dynamic}}
  // expected-note@+1 {{supported: one scale for a multiple of 32 of K, such as granule = [1, 128], source = dynamic}}
  %y = moe.gemm masked(%q, %counts, %w)
     : tensor<4x64x512xf8E4M3FN, #x>, tensor<4xi32>, tensor<4x256x512xf8E4M3FN, #w> -> tensor<4x64x256xbf16>
  moe.return %y : tensor<4x64x256xbf16>
}

// -----

// MJ113 passes: every row of every buffer has its own.
#x = #moe.scales<granule = [1, 1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @passes(%x: tensor<4x64x512xbf16>, %counts: tensor<4xi32>, %w: tensor<4x256x512xf8E4M3FN, #w>) -> tensor<4x64x256xbf16> {
  %q = moe.quantize(%x) : tensor<4x64x512xbf16> -> tensor<4x64x512xf8E4M3FN, #x>
  %y = moe.gemm masked(%q, %counts, %w)
     : tensor<4x64x512xf8E4M3FN, #x>, tensor<4xi32>, tensor<4x256x512xf8E4M3FN, #w> -> tensor<4x64x256xbf16>
  moe.return %y : tensor<4x64x256xbf16>
}

// -----

// A quantization of its own: blocks of several rows are not lowered, groups of one row are.
#x = #moe.scales<granule = [128, 128], source = dynamic>
// expected-note@+1 {{x is declared here}}
moe.kernel @blocks(%x: tensor<?x512xbf16>) -> tensor<?x512xf8E4M3FN, #x> {
  // expected-error@+4 {{'moe.quantize' op quantizing by granule = [128, 128], source = dynamic is not supported by this version [MJ113]}}
  // expected-note@+3 {{supported: one scale per tensor, granule = [*, *]}}
  // expected-note@+2 {{supported: one scale per token, granule = [1, *], source = dynamic}}
  // expected-note@+1 {{supported: one scale for a multiple of 32 of K, such as granule = [1, 128], source = dynamic}}
  %q = moe.quantize(%x) : tensor<?x512xbf16> -> tensor<?x512xf8E4M3FN, #x>
  moe.return %q : tensor<?x512xf8E4M3FN, #x>
}

// -----

#x = #moe.scales<granule = [1, 96], source = dynamic, type = f8E8M0FNU, order = mn_major>
moe.kernel @groups(%x: tensor<?x512xbf16>) -> tensor<?x512xf8E5M2, #x> {
  %q = moe.quantize(%x) : tensor<?x512xbf16> -> tensor<?x512xf8E5M2, #x>
  moe.return %q : tensor<?x512xf8E5M2, #x>
}
