// Llama-4 Scout, gate and up stacked, in MXFP8: y[S, 16384] = x[S, 5120] · w[e, 16384, 5120]^T for 16 experts.
// Numbers: as llama-4-scout.gate_up.mlir.
// Scales: OCP Microscaling Formats 1.0, a power of two for every 32 of K on both sides; four in an i32, rows contiguous.

#x = #moe.scales<granule = [1, 32], type = f8E8M0FNU, source = dynamic, order = mn_major, align = 16, packing = 4>
#w = #moe.scales<granule = [1, 1, 32], type = f8E8M0FNU, order = mn_major, packing = 4>

moe.kernel @gate_up(%x: tensor<?x5120xf8E4M3FN, #x>, %offsets: tensor<17xi32>,
                    %w: tensor<16x16384x5120xf8E4M3FN, #w>) -> tensor<?x16384xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x5120xf8E4M3FN, #x>, tensor<17xi32>, tensor<16x16384x5120xf8E4M3FN, #w> -> tensor<?x16384xbf16>
  moe.return %y : tensor<?x16384xbf16>
}
