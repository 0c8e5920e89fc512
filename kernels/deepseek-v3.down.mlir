// DeepSeek-V3, down: y[S, 7168] = x[S, 2048] · w[e, 7168, 2048]^T for 256 experts.
// Numbers: n_routed_experts 256, hidden_size 7168, moe_intermediate_size 2048 in config.json of deepseek-ai/DeepSeek-V3.
// Scales: quant_method fp8, weight_block_size [128, 128], dynamic.

#x = #moe.scales<granule = [1, 128], source = dynamic, order = mn_major, align = 16>
#w = #moe.scales<granule = [1, 128, 128]>

moe.kernel @down(%x: tensor<?x2048xf8E4M3FN, #x>, %offsets: tensor<257xi32>,
                 %w: tensor<256x7168x2048xf8E4M3FN, #w>) -> tensor<?x7168xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x2048xf8E4M3FN, #x>, tensor<257xi32>, tensor<256x7168x2048xf8E4M3FN, #w> -> tensor<?x7168xbf16>
  moe.return %y : tensor<?x7168xbf16>
}
