// Qwen3-30B-A3B, gate and up stacked: y[S, 1536] = x[S, 2048] · w[e, 1536, 2048]^T for 128 experts.
// Numbers: num_experts 128, hidden_size 2048, moe_intermediate_size 768 in config.json of Qwen/Qwen3-30B-A3B-FP8.
// Scales: quant_method fp8, weight_block_size [128, 128], dynamic.

#x = #moe.scales<granule = [1, 128], source = dynamic, order = mn_major, align = 16>
#w = #moe.scales<granule = [1, 128, 128]>

moe.kernel @gate_up(%x: tensor<?x2048xf8E4M3FN, #x>, %offsets: tensor<129xi32>,
                    %w: tensor<128x1536x2048xf8E4M3FN, #w>) -> tensor<?x1536xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x2048xf8E4M3FN, #x>, tensor<129xi32>, tensor<128x1536x2048xf8E4M3FN, #w> -> tensor<?x1536xbf16>
  moe.return %y : tensor<?x1536xbf16>
}
