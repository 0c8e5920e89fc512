// Qwen3-235B-A22B, gate and up stacked: y[S, 3072] = x[S, 4096] · w[e, 3072, 4096]^T for 128 experts.
// Numbers: num_experts 128, hidden_size 4096, moe_intermediate_size 1536 in config.json of Qwen/Qwen3-235B-A22B-FP8.
// Scales: quant_method fp8, weight_block_size [128, 128], dynamic.

#x = #moe.scales<granule = [1, 128], source = dynamic, order = mn_major, align = 16>
#w = #moe.scales<granule = [1, 128, 128]>

moe.kernel @gate_up(%x: tensor<?x4096xf8E4M3FN, #x>, %offsets: tensor<129xi32>,
                    %w: tensor<128x3072x4096xf8E4M3FN, #w>) -> tensor<?x3072xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x4096xf8E4M3FN, #x>, tensor<129xi32>, tensor<128x3072x4096xf8E4M3FN, #w> -> tensor<?x3072xbf16>
  moe.return %y : tensor<?x3072xbf16>
}
