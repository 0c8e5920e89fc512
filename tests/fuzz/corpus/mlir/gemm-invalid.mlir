// moe.gemm: structure that is refused.
// RUN: moejit-opt %s -split-input-file -verify-diagnostics

// An unknown form.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @k(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<9xi32>, %w: tensor<8x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+1 {{custom op 'moe.gemm' expected eager, batched, grouped or masked, got 'sorted'}}
  %y = moe.gemm sorted(%x, %offsets, %w) : tensor<?x512xf8E4M3FN, #x>, tensor<9xi32>, tensor<8x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// Too few operands.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @k(%x: tensor<?x512xf8E4M3FN, #x>, %w: tensor<8x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+1 {{custom op 'moe.gemm' grouped takes 3 operands, got 2}}
  %y = moe.gemm grouped(%x, %w) : tensor<?x512xf8E4M3FN, #x>, tensor<8x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// A map where there are no ids.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @k(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<9xi32>, %w: tensor<8x256x512xf8E4M3FN, #w>, %map: tensor<8xi32>) -> tensor<?x256xbf16> {
  // expected-error@+1 {{custom op 'moe.gemm' grouped takes 3 operands, got 4}}
  %y = moe.gemm grouped(%x, %offsets, %w, %map) : tensor<?x512xf8E4M3FN, #x>, tensor<9xi32>, tensor<8x256x512xf8E4M3FN, #w>, tensor<8xi32> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// An unknown accumulation.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @k(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<9xi32>, %w: tensor<8x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+1 {{custom op 'moe.gemm' expected exact or fast}}
  %y = moe.gemm grouped(%x, %offsets, %w) {accumulate = slow} : tensor<?x512xf8E4M3FN, #x>, tensor<9xi32>, tensor<8x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// An unknown treatment of skipped rows.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @k(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<9xi32>, %w: tensor<8x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+1 {{custom op 'moe.gemm' expected zeroed or untouched}}
  %y = moe.gemm grouped(%x, %offsets, %w) {skipped = kept} : tensor<?x512xf8E4M3FN, #x>, tensor<9xi32>, tensor<8x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// The rank of x.
#x = #moe.scales<granule = [1, 1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @k(%x: tensor<1x?x512xf8E4M3FN, #x>, %offsets: tensor<9xi32>, %w: tensor<8x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+1 {{'moe.gemm' op x has rank 3, expected 2: grouped takes [rows, K]}}
  %y = moe.gemm grouped(%x, %offsets, %w) : tensor<1x?x512xf8E4M3FN, #x>, tensor<9xi32>, tensor<8x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// The rank of w.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [128, 128]>
moe.kernel @k(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<9xi32>, %w: tensor<256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+1 {{'moe.gemm' op w has rank 2, expected 3: grouped takes [E, N, K]}}
  %y = moe.gemm grouped(%x, %offsets, %w) : tensor<?x512xf8E4M3FN, #x>, tensor<9xi32>, tensor<256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// The rank of y.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @k(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<9xi32>, %w: tensor<8x256x512xf8E4M3FN, #w>) -> tensor<1x?x256xbf16> {
  // expected-error@+1 {{'moe.gemm' op y has rank 3, expected 2: grouped takes [rows, N]}}
  %y = moe.gemm grouped(%x, %offsets, %w) : tensor<?x512xf8E4M3FN, #x>, tensor<9xi32>, tensor<8x256x512xf8E4M3FN, #w> -> tensor<1x?x256xbf16>
  moe.return %y : tensor<1x?x256xbf16>
}

// -----

// K differs.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @k(%x: tensor<?x640xf8E4M3FN, #x>, %offsets: tensor<9xi32>, %w: tensor<8x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+1 {{'moe.gemm' op K of x is 640, expected 512, the K of w}}
  %y = moe.gemm grouped(%x, %offsets, %w) : tensor<?x640xf8E4M3FN, #x>, tensor<9xi32>, tensor<8x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// N differs.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @k(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<9xi32>, %w: tensor<8x256x512xf8E4M3FN, #w>) -> tensor<?x512xbf16> {
  // expected-error@+1 {{'moe.gemm' op N of y is 512, expected 256, the N of w}}
  %y = moe.gemm grouped(%x, %offsets, %w) : tensor<?x512xf8E4M3FN, #x>, tensor<9xi32>, tensor<8x256x512xf8E4M3FN, #w> -> tensor<?x512xbf16>
  moe.return %y : tensor<?x512xbf16>
}

// -----

// Row counts differ.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @k(%x: tensor<4x512xf8E4M3FN, #x>, %offsets: tensor<9xi32>, %w: tensor<8x256x512xf8E4M3FN, #w>) -> tensor<5x256xbf16> {
  // expected-error@+1 {{'moe.gemm' op row count of y is 5, expected 4, the row count of x}}
  %y = moe.gemm grouped(%x, %offsets, %w) : tensor<4x512xf8E4M3FN, #x>, tensor<9xi32>, tensor<8x256x512xf8E4M3FN, #w> -> tensor<5x256xbf16>
  moe.return %y : tensor<5x256xbf16>
}

// -----

// K is not static.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @k(%x: tensor<?x?xf8E4M3FN, #x>, %offsets: tensor<9xi32>, %w: tensor<8x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+1 {{'moe.gemm' op K of x is not static: only row counts may be '?'}}
  %y = moe.gemm grouped(%x, %offsets, %w) : tensor<?x?xf8E4M3FN, #x>, tensor<9xi32>, tensor<8x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// E is not static.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @k(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<9xi32>, %w: tensor<?x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+1 {{'moe.gemm' op E of w is not static: only row counts may be '?'}}
  %y = moe.gemm grouped(%x, %offsets, %w) : tensor<?x512xf8E4M3FN, #x>, tensor<9xi32>, tensor<?x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// Offsets are one too few: they are boundaries.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @k(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<8xi32>, %w: tensor<8x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+1 {{'moe.gemm' op offsets has 8 entries, expected 9: one more than experts}}
  %y = moe.gemm grouped(%x, %offsets, %w) : tensor<?x512xf8E4M3FN, #x>, tensor<8xi32>, tensor<8x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// Offsets of the wrong type.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @k(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<9xi64>, %w: tensor<8x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+1 {{'moe.gemm' op offsets has type 'tensor<9xi64>', expected a one-dimensional tensor of i32}}
  %y = moe.gemm grouped(%x, %offsets, %w) : tensor<?x512xf8E4M3FN, #x>, tensor<9xi64>, tensor<8x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// Ids for other rows.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @k(%x: tensor<4x512xf8E4M3FN, #x>, %ids: tensor<5xi32>, %w: tensor<8x256x512xf8E4M3FN, #w>) -> tensor<4x256xbf16> {
  // expected-error@+1 {{'moe.gemm' op ids has 5 entries, expected 4: one for each row of x}}
  %y = moe.gemm batched(%x, %ids, %w) : tensor<4x512xf8E4M3FN, #x>, tensor<5xi32>, tensor<8x256x512xf8E4M3FN, #w> -> tensor<4x256xbf16>
  moe.return %y : tensor<4x256xbf16>
}

// -----

// Counts for other experts.
#xm = #moe.scales<granule = [1, 1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @k(%x: tensor<8x192x512xf8E4M3FN, #xm>, %counts: tensor<9xi32>, %w: tensor<8x256x512xf8E4M3FN, #w>) -> tensor<8x192x256xbf16> {
  // expected-error@+1 {{'moe.gemm' op counts has 9 entries, expected 8: one for each expert}}
  %y = moe.gemm masked(%x, %counts, %w) : tensor<8x192x512xf8E4M3FN, #xm>, tensor<9xi32>, tensor<8x256x512xf8E4M3FN, #w> -> tensor<8x192x256xbf16>
  moe.return %y : tensor<8x192x256xbf16>
}

// -----

// Experts of x and w differ.
#xm = #moe.scales<granule = [1, 1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @k(%x: tensor<4x192x512xf8E4M3FN, #xm>, %counts: tensor<8xi32>, %w: tensor<8x256x512xf8E4M3FN, #w>) -> tensor<4x192x256xbf16> {
  // expected-error@+1 {{'moe.gemm' op E of x is 4, expected 8, the E of w}}
  %y = moe.gemm masked(%x, %counts, %w) : tensor<4x192x512xf8E4M3FN, #xm>, tensor<8xi32>, tensor<8x256x512xf8E4M3FN, #w> -> tensor<4x192x256xbf16>
  moe.return %y : tensor<4x192x256xbf16>
}

// -----

// x without scales.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @k(%x: tensor<?x512xf8E4M3FN>, %offsets: tensor<9xi32>, %w: tensor<8x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+1 {{'moe.gemm' op x has no scale layout, expected a type such as tensor<…, #moe.scales<…>>}}
  %y = moe.gemm grouped(%x, %offsets, %w) : tensor<?x512xf8E4M3FN>, tensor<9xi32>, tensor<8x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// w without scales.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @k(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<9xi32>, %w: tensor<8x256x512xf8E4M3FN>) -> tensor<?x256xbf16> {
  // expected-error@+1 {{'moe.gemm' op w has no scale layout, expected a type such as tensor<…, #moe.scales<…>>}}
  %y = moe.gemm grouped(%x, %offsets, %w) : tensor<?x512xf8E4M3FN, #x>, tensor<9xi32>, tensor<8x256x512xf8E4M3FN> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// A result with scales.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @k(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<9xi32>, %w: tensor<8x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16, #x> {
  // expected-error@+1 {{'moe.gemm' op y has an encoding, expected a plain tensor: quantize it in a step of its own}}
  %y = moe.gemm grouped(%x, %offsets, %w) : tensor<?x512xf8E4M3FN, #x>, tensor<9xi32>, tensor<8x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16, #x>
  moe.return %y : tensor<?x256xbf16, #x>
}

// -----

// MJ004: a type that no tensor core takes.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @k(%x: tensor<?x512xi8, #x>, %offsets: tensor<9xi32>, %w: tensor<8x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-error@+1 {{'moe.gemm' op x has element type i8, expected f8E4M3FN or f8E5M2 [MJ004]}}
  %y = moe.gemm grouped(%x, %offsets, %w) : tensor<?x512xi8, #x>, tensor<9xi32>, tensor<8x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ004: the same bits, another meaning.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @k(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<9xi32>, %w: tensor<8x256x512xf8E4M3FNUZ, #w>) -> tensor<?x256xbf16> {
  // expected-error@+1 {{'moe.gemm' op w has element type f8E4M3FNUZ, expected f8E4M3FN or f8E5M2 [MJ004]}}
  %y = moe.gemm grouped(%x, %offsets, %w) : tensor<?x512xf8E4M3FN, #x>, tensor<9xi32>, tensor<8x256x512xf8E4M3FNUZ, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// MJ005: a result type without a conversion.
#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @k(%x: tensor<?x512xf8E4M3FN, #x>, %offsets: tensor<9xi32>, %w: tensor<8x256x512xf8E4M3FN, #w>) -> tensor<?x256xf64> {
  // expected-error@+1 {{'moe.gemm' op y has element type f64, expected bf16, f16 or f32 [MJ005]}}
  %y = moe.gemm grouped(%x, %offsets, %w) : tensor<?x512xf8E4M3FN, #x>, tensor<9xi32>, tensor<8x256x512xf8E4M3FN, #w> -> tensor<?x256xf64>
  moe.return %y : tensor<?x256xf64>
}
