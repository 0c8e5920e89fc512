// GLM-4.5, gate and up stacked: y[S, 3072] = x[S, 5120] · w[e, 3072, 5120]^T for 160 experts.
// Numbers: n_routed_experts 160, hidden_size 5120, moe_intermediate_size 1536 in config.json of zai-org/GLM-4.5-FP8.
// Scales: compressed-tensors, weights by channel, activations by token, dynamic.

#x = #moe.scales<granule = [1, *], source = dynamic>
#w = #moe.scales<granule = [1, 1, *]>

moe.kernel @gate_up(%x: tensor<?x5120xf8E4M3FN, #x>, %offsets: tensor<161xi32>,
                    %w: tensor<160x3072x5120xf8E4M3FN, #w>) -> tensor<?x3072xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x5120xf8E4M3FN, #x>, tensor<161xi32>, tensor<160x3072x5120xf8E4M3FN, #w> -> tensor<?x3072xbf16>
  moe.return %y : tensor<?x3072xbf16>
}
