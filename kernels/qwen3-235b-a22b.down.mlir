// Qwen3-235B-A22B, down: y[S, 4096] = x[S, 1536] · w[e, 4096, 1536]^T for 128 experts.
// Numbers: num_experts 128, hidden_size 4096, moe_intermediate_size 1536 in config.json of Qwen/Qwen3-235B-A22B-FP8.
// Scales: quant_method fp8, weight_block_size [128, 128], dynamic.

#x = #moe.scales<granule = [1, 128], source = dynamic, order = mn_major, align = 16>
#w = #moe.scales<granule = [1, 128, 128]>

moe.kernel @down(%x: tensor<?x1536xf8E4M3FN, #x>, %offsets: tensor<129xi32>,
                 %w: tensor<128x4096x1536xf8E4M3FN, #w>) -> tensor<?x4096xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x1536xf8E4M3FN, #x>, tensor<129xi32>, tensor<128x4096x1536xf8E4M3FN, #w> -> tensor<?x4096xbf16>
  moe.return %y : tensor<?x4096xbf16>
}
