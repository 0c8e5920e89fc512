// GLM-4.5, down: y[S, 5120] = x[S, 1536] · w[e, 5120, 1536]^T for 160 experts.
// Numbers: n_routed_experts 160, hidden_size 5120, moe_intermediate_size 1536 in config.json of zai-org/GLM-4.5-FP8.
// Scales: compressed-tensors, weights by channel, activations by token, dynamic.

#x = #moe.scales<granule = [1, *], source = dynamic>
#w = #moe.scales<granule = [1, 1, *]>

moe.kernel @down(%x: tensor<?x1536xf8E4M3FN, #x>, %offsets: tensor<161xi32>,
                 %w: tensor<160x5120x1536xf8E4M3FN, #w>) -> tensor<?x5120xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x1536xf8E4M3FN, #x>, tensor<161xi32>, tensor<160x5120x1536xf8E4M3FN, #w> -> tensor<?x5120xbf16>
  moe.return %y : tensor<?x5120xbf16>
}
