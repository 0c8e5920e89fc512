// moe-check compares joined scales with the number of experts, and reports every GEMM and every rule.
// RUN: moejit-opt %s --moe-check -split-input-file -verify-diagnostics

#x = #moe.scales<granule = [expert, *]>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @experts(%data: tensor<?x512xf8E4M3FN>, %scales: tensor<7x1xf32>, %offsets: tensor<9xi32>,
                    %w: tensor<8x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  // expected-note@+1 {{x is declared here}}
  %x = moe.scaled(%data, %scales) : tensor<?x512xf8E4M3FN>, tensor<7x1xf32> -> tensor<?x512xf8E4M3FN, #x>
  // expected-error@+2 {{'moe.gemm' op scales have shape [7, 1], expected [8, 1] [MJ023]}}
  // expected-note@+1 {{data [?, 512] with granule = [expert, *], 1 part}}
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<9xi32>, tensor<8x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [128, 128]>
moe.kernel @all(%x: tensor<?x520xf8E4M3FN, #x>,
                // expected-note@+1 {{w is declared here}}
                %w: tensor<252x520xf8E4M3FN, #w>) -> (tensor<?x252xbf16>, tensor<?x252xbf16>) {
  // expected-error@+4 {{K is 520, expected a positive multiple of 16 [MJ007]}}
  // expected-note@+3 {{the next legal value is 528: pad K with zeros}}
  // expected-error@+2 {{N is 252, expected a positive multiple of 8 [MJ008]}}
  // expected-note@+1 {{the next legal value is 256: pad N with zeros}}
  %y = moe.gemm eager(%x, %w) : tensor<?x520xf8E4M3FN, #x>, tensor<252x520xf8E4M3FN, #w> -> tensor<?x252xbf16>
  // expected-error@+4 {{K is 520, expected a positive multiple of 16 [MJ007]}}
  // expected-note@+3 {{the next legal value is 528: pad K with zeros}}
  // expected-error@+2 {{N is 252, expected a positive multiple of 8 [MJ008]}}
  // expected-note@+1 {{the next legal value is 256: pad N with zeros}}
  %z = moe.gemm eager(%x, %w) : tensor<?x520xf8E4M3FN, #x>, tensor<252x520xf8E4M3FN, #w> -> tensor<?x252xbf16>
  moe.return %y, %z : tensor<?x252xbf16>, tensor<?x252xbf16>
}
