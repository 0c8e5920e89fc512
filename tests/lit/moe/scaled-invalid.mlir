// moe.scaled: data and scales that do not fit.
// RUN: moejit-opt %s -split-input-file -verify-diagnostics

// MJ023: transposed scales have as many elements, and are refused all the same.
moe.kernel @transposed(%data: tensor<?x7168xf8E4M3FN>, %scales: tensor<56x64xf32>) {
  // expected-error@+3 {{'moe.scaled' op scales have shape [56, 64], expected [?, 56] [MJ023]}}
  // expected-note@+2 {{this is the transposed shape, which is order = mn_major}}
  // expected-note@+1 {{data [?, 7168] with granule = [1, 128], 1 part}}
  %x = moe.scaled(%data, %scales) : tensor<?x7168xf8E4M3FN>, tensor<56x64xf32>
    -> tensor<?x7168xf8E4M3FN, #moe.scales<granule = [1, 128]>>
  moe.return
}

// -----

// MJ023: one row of scales across the seam of gate and up.
moe.kernel @seam(%data: tensor<8x384x512xf8E4M3FN>, %scales: tensor<8x3x4xf32>) {
  // expected-error@+2 {{'moe.scaled' op scales have shape [8, 3, 4], expected [8, 4, 4] [MJ023]}}
  // expected-note@+1 {{data [8, 384, 512] with granule = [1, 128, 128], 2 parts}}
  %w = moe.scaled(%data, %scales) : tensor<8x384x512xf8E4M3FN>, tensor<8x3x4xf32>
    -> tensor<8x384x512xf8E4M3FN, #moe.scales<granule = [1, 128, 128], parts = 2>>
  moe.return
}

// -----

// MJ024: one scale for each expert where one for all is declared.
moe.kernel @merged(%data: tensor<?x4096xf8E4M3FN>, %scales: tensor<8x1xf32>) {
  // expected-error@+3 {{'moe.scaled' op one scale per tensor is declared, got 8 scales [8, 1] [MJ024]}}
  // expected-note@+2 {{one scale per expert: granule = [expert, *]}}
  // expected-note@+1 {{or reduce the scales to one in a step of its own, and requantize the data with it}}
  %x = moe.scaled(%data, %scales) : tensor<?x4096xf8E4M3FN>, tensor<8x1xf32>
    -> tensor<?x4096xf8E4M3FN, #moe.scales<granule = [*, *]>>
  moe.return
}

// -----

moe.kernel @type(%data: tensor<?x4096xf8E4M3FN>, %scales: tensor<1x1xf16>) {
  // expected-error@+1 {{'moe.scaled' op scales have element type 'f16', expected 'f32'}}
  %x = moe.scaled(%data, %scales) : tensor<?x4096xf8E4M3FN>, tensor<1x1xf16>
    -> tensor<?x4096xf8E4M3FN, #moe.scales<granule = [*, *]>>
  moe.return
}

// -----

moe.kernel @plain(%data: tensor<?x4096xf8E4M3FN>, %scales: tensor<1x1xf32>) {
  // expected-error@+1 {{'moe.scaled' op result has no scale layout, expected a type such as tensor<…, #moe.scales<…>>}}
  %x = moe.scaled(%data, %scales) : tensor<?x4096xf8E4M3FN>, tensor<1x1xf32> -> tensor<?x4096xf8E4M3FN>
  moe.return
}

// -----

moe.kernel @data(%data: tensor<?x4096xf8E5M2>, %scales: tensor<1x1xf32>) {
  // expected-error@+1 {{'moe.scaled' op data has type 'tensor<?x4096xf8E5M2>', expected 'tensor<?x4096xf8E4M3FN>', the data of the result}}
  %x = moe.scaled(%data, %scales) : tensor<?x4096xf8E5M2>, tensor<1x1xf32>
    -> tensor<?x4096xf8E4M3FN, #moe.scales<granule = [*, *]>>
  moe.return
}

// -----

#x = #moe.scales<granule = [*, *]>
moe.kernel @twice(%data: tensor<?x4096xf8E4M3FN, #x>, %scales: tensor<1x1xf32>) {
  // expected-error@+1 {{'moe.scaled' op takes plain tensors, got 'tensor<?x4096xf8E4M3FN, #moe.scales<granule = [*, *]>>'}}
  %x = moe.scaled(%data, %scales) : tensor<?x4096xf8E4M3FN, #x>, tensor<1x1xf32> -> tensor<?x4096xf8E4M3FN, #x>
  moe.return
}
