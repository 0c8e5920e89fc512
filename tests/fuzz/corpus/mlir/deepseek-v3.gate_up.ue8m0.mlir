// DeepSeek-V3, gate and up stacked, with the scales as DeepGEMM packs them: y[S, 4096] = x[S, 7168] · w[e, 4096, 7168]^T for
// 256 experts.
// Numbers: as deepseek-v3.gate_up.mlir.
// Scales: powers of two, four along K in an i32, rows contiguous; those of w are repeated for each of a block's 128 rows.

#x = #moe.scales<granule = [1, 128], type = f8E8M0FNU, source = dynamic, order = mn_major, align = 16, packing = 4>
#w = #moe.scales<granule = [1, 1, 128], type = f8E8M0FNU, order = mn_major, packing = 4>

moe.kernel @gate_up(%x: tensor<?x7168xf8E4M3FN, #x>, %offsets: tensor<257xi32>,
                    %w: tensor<256x4096x7168xf8E4M3FN, #w>) -> tensor<?x4096xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x7168xf8E4M3FN, #x>, tensor<257xi32>, tensor<256x4096x7168xf8E4M3FN, #w> -> tensor<?x4096xbf16>
  moe.return %y : tensor<?x4096xbf16>
}
