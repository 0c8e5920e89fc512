// Each rule of the contract that IR can break: a kernel that trips it, and a near one that passes every rule. The rules that only a
// Spec can break are tested in tests/unit/RulesTest.cpp.
// RUN: moejit-opt %s --moe-check -split-input-file -verify-diagnostics

// MJ001 trips: a static scheme.
#x = #moe.scales<granule = [*, *]>
#w = #moe.scales<granule = [1, 128, 128]>
// expected-note@+1 {{x is declared here}}
moe.kernel @trips(%x: tensor<?x512xf8E4M3FN, #x>, %ids: tensor<?xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+4 {{'moe.gemm' op batched takes dynamic activation scales, got static [MJ001]}}
  // expected-note@+3 {{'eager' consumes static scales, one expert at a time}}
  // expected-note@+2 {{'grouped' takes one static scale per tensor (granule = [*, *]) or per expert (granule = [expert, *])}}
  // expected-note@+1 {{or use a dynamic scheme: source = dynamic, scales computed from the live activations}}
  %y = moe.gemm batched(%x, %ids, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<?xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ001 passes: grouped takes it.
#x = #moe.scales<granule = [*, *]>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ002 trips: a static scale per token.
#x = #moe.scales<granule = [1, *]>
#w = #moe.scales<granule = [1, 128, 128]>
// expected-note@+1 {{x is declared here}}
moe.kernel @trips(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+4 {{'moe.gemm' op a static activation scale is per tensor or per expert, got granule = [1, *] [MJ002]}}
  // expected-note@+3 {{one static scale per tensor: granule = [*, *]}}
  // expected-note@+2 {{one static scale per expert: granule = [expert, *]}}
  // expected-note@+1 {{this granule with scales computed from the live activations: source = dynamic}}
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ002 passes: one per expert.
#x = #moe.scales<granule = [expert, *]>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ003 trips: granules 48 and 128 along K.
#x = #moe.scales<granule = [1, 48], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @trips(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+2 {{'moe.gemm' op the step along K is 16, expected a multiple of 32: it is the greatest common divisor of the K granules 48 of x and 128 of w and the phase difference 0 [MJ003]}}
  // expected-note@+1 {{granules along K that are multiples of 32 work, such as 32 or 128}}
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ003 passes: per token, where only w counts.
#x = #moe.scales<granule = [1, *], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ004 trips: bf16 activations.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
// expected-note@+1 {{x is declared here}}
moe.kernel @trips(%x: tensor<?x512xbf16, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+2 {{'moe.gemm' op x has element type bf16, expected f8E4M3FN or f8E5M2 [MJ004]}}
  // expected-note@+1 {{quantize x to f8E4M3FN first}}
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xbf16, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ004 passes.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ005 trips: fp8 results.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @trips(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xf8E4M3FN> {
  // expected-error@+2 {{'moe.gemm' op y has element type f8E4M3FN, expected bf16, f16 or f32 [MJ005]}}
  // expected-note@+1 {{write bf16 and quantize in a step of its own}}
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xf8E4M3FN>
  moe.return %y : tensor<?x256xf8E4M3FN>
}

// -----

// MJ005 passes: f16 results.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xf16>
  moe.return %y : tensor<?x256xf16>
}

// -----

// MJ006 trips: bf16 scales.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128], type = bf16>
// expected-note@+1 {{w is declared here}}
moe.kernel @trips(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+2 {{'moe.gemm' op scales of w have type bf16, expected f32 or f8E8M0FNU [MJ006]}}
  // expected-note@+1 {{widen them to f32: every bf16 and f16 value is one}}
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ006 passes.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128], type = f32>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ007 trips: K = 520.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @trips(%x: tensor<?x520xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x520xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+2 {{'moe.gemm' op K is 520, expected a positive multiple of 16 [MJ007]}}
  // expected-note@+1 {{the next legal value is 528: pad K with zeros}}
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x520xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x520xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ007 passes: K = 528.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @passes(%x: tensor<?x528xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x528xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x528xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x528xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ008 trips: N = 252.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
// expected-note@+1 {{w is declared here}}
moe.kernel @trips(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x252x512xf8E4M3FN, #w>) -> tensor<?x252xbf16> {
  // expected-error@+2 {{'moe.gemm' op N is 252, expected a positive multiple of 8 [MJ008]}}
  // expected-note@+1 {{the next legal value is 256: pad N with zeros}}
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x252x512xf8E4M3FN, #w> -> tensor<?x252xbf16>
  moe.return %y : tensor<?x252xbf16>
}

// -----

// MJ008 passes: N = 264.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x264x512xf8E4M3FN, #w>) -> tensor<?x264xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x264x512xf8E4M3FN, #w> -> tensor<?x264xbf16>
  moe.return %y : tensor<?x264xbf16>
}

// -----

// MJ010 trips: an extent of 0.
#x = #moe.scales<granule = [0, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
// expected-note@+1 {{x is declared here}}
moe.kernel @trips(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+2 {{'moe.gemm' op granule = [0, 128] of x has the extent 0, expected 1 or more [MJ010]}}
  // expected-note@+1 {{write '*' for a scale that covers the whole dimension}}
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ010 passes: an extent of 1.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ011 trips: expert as a dimension of w.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [expert, *, *]>
// expected-note@+1 {{w is declared here}}
moe.kernel @trips(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+2 {{'moe.gemm' op granule = [expert, *, *] of w has 'expert' at dimension 0, expected only on the rows of a two-dimensional x [MJ011]}}
  // expected-note@+1 {{one scale per expert is granule = [1, *, *] here}}
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ011 passes: 1 there.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, *, *]>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ012 trips: 1025 experts.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
// expected-note@+1 {{w is declared here}}
moe.kernel @trips(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<1026xi32>, %w: tensor<1025x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+2 {{'moe.gemm' op E is 1025, expected 1 to 1024 local experts [MJ012]}}
  // expected-note@+1 {{split the experts over several launches or ranks}}
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<1026xi32>, tensor<1025x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ012 passes: 1024 experts.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<1025xi32>, %w: tensor<1024x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<1025xi32>, tensor<1024x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ013 trips: a scale for two experts.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [2, *, *]>
// expected-note@+1 {{w is declared here}}
moe.kernel @trips(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+2 {{'moe.gemm' op one scale of w covers 2 experts, expected 1 or '*' [MJ013]}}
  // expected-note@+1 {{repeat the scale for each expert: granule 1 on the first dimension}}
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ013 passes: a scale for all.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [*, *, *]>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ014 trips: dynamic scales of w.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128], source = dynamic>
// expected-note@+1 {{w is declared here}}
moe.kernel @trips(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+2 {{'moe.gemm' op scales of w are dynamic, expected static [MJ014]}}
  // expected-note@+1 {{quantize the weights ahead, and pass the scales that were computed with them}}
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ014 passes: static ones, spelled out.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128], source = static>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ015 trips: four f32 in a word.
#x = #moe.scales<granule = [1, 128], source = dynamic, packing = 4>
#w = #moe.scales<granule = [1, 128, 128]>
// expected-note@+1 {{x is declared here}}
moe.kernel @trips(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+2 {{'moe.gemm' op scales of x pack 4 f32 in a word, expected 1, or 4 of f8E8M0FNU [MJ015]}}
  // expected-note@+1 {{leave packing away}}
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ015 passes: one.
#x = #moe.scales<granule = [1, 128], source = dynamic, packing = 1>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ016 trips: 24 bytes.
#x = #moe.scales<granule = [1, 128], source = dynamic, align = 24>
#w = #moe.scales<granule = [1, 128, 128]>
// expected-note@+1 {{x is declared here}}
moe.kernel @trips(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+2 {{'moe.gemm' op scales of x have align = 24, expected 0 or a power of two from 4 to 128 bytes [MJ016]}}
  // expected-note@+1 {{align = 16 is what bulk copies need}}
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ016 passes: 16 bytes.
#x = #moe.scales<granule = [1, 128], source = dynamic, align = 16>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ017 trips: a phase of a whole granule.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128], phase = [0, 128, 0]>
// expected-note@+1 {{w is declared here}}
moe.kernel @trips(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+2 {{'moe.gemm' op phase 128 of w at dimension 1, expected 0 to 127: inside the first granule [MJ017]}}
  // expected-note@+1 {{drop the 1 whole granules in front: phase 0}}
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ017 passes: none.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128], phase = [0, 0, 0]>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ018 trips: 3 parts of 256 rows.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128], parts = 3>
// expected-note@+1 {{w is declared here}}
moe.kernel @trips(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+2 {{'moe.gemm' op N is 256, expected a multiple of the 3 parts of w [MJ018]}}
  // expected-note@+1 {{the next legal value is 264}}
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ018 passes: 2 parts.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128], parts = 2>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ019 trips: no rows for an expert.
#x = #moe.scales<granule = [1, 1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
// expected-note@+1 {{x is declared here}}
moe.kernel @trips(%x: tensor<32x0x512xf8E4M3FN, #x>, %counts: tensor<32xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<32x0x256xbf16> {
  // expected-error@+2 {{'moe.gemm' op masked has Mmax = 0, expected 1 to 1048576 rows for each expert [MJ019]}}
  // expected-note@+1 {{give x a static shape [E, Mmax, K]}}
  %y = moe.gemm masked(%x, %counts, %w)
     : tensor<32x0x512xf8E4M3FN, #x>, tensor<32xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<32x0x256xbf16>
  moe.return %y : tensor<32x0x256xbf16>
}

// -----

// MJ022 trips: K = 1048592.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @trips(%x: tensor<?x1048592xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x1048592xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+2 {{'moe.gemm' op K is 1048592, expected at most 1048576 [MJ022]}}
  // expected-note@+1 {{split K over several launches}}
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x1048592xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x1048592xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ022 passes: K = 1048576.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @passes(%x: tensor<?x1048576xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x1048576xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x1048576xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x1048576xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ022 trips: a granule that 32 bits do not hold.
#x = #moe.scales<granule = [1, 4294967328], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
// expected-note@+1 {{x is declared here}}
moe.kernel @trips(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+2 {{'moe.gemm' op granule = [1, 4294967328] of x has the extent 4294967328, expected at most 1048576 [MJ022]}}
  // expected-note@+1 {{write '*' for a scale that covers the whole dimension}}
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ022 passes: the largest granule.
#x = #moe.scales<granule = [1, 1048576], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @passes(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<33xi32>, %w: tensor<32x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<33xi32>, tensor<32x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}
