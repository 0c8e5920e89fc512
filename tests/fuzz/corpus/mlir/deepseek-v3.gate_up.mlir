// DeepSeek-V3, gate and up stacked: y[S, 4096] = x[S, 7168] · w[e, 4096, 7168]^T for 256 experts.
// Numbers: n_routed_experts 256, hidden_size 7168, moe_intermediate_size 2048 in config.json of deepseek-ai/DeepSeek-V3.
// Scales: quant_method fp8, weight_block_size [128, 128], dynamic.

#x = #moe.scales<granule = [1, 128], source = dynamic, order = mn_major, align = 16>
#w = #moe.scales<granule = [1, 128, 128]>

moe.kernel @gate_up(%x: tensor<?x7168xf8E4M3FN, #x>, %offsets: tensor<257xi32>,
                    %w: tensor<256x4096x7168xf8E4M3FN, #w>) -> tensor<?x4096xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x7168xf8E4M3FN, #x>, tensor<257xi32>, tensor<256x4096x7168xf8E4M3FN, #w> -> tensor<?x4096xbf16>
  moe.return %y : tensor<?x4096xbf16>
}
