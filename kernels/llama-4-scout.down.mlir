// Llama-4-Scout-17B-16E, down: y[S, 5120] = x[S, 8192] · w[e, 5120, 8192]^T for 16 experts.
// Numbers: num_local_experts 16, hidden_size 5120, intermediate_size 8192 in config.json of RedHatAI/Llama-4-Scout-17B-16E-Instruct-FP8-dynamic.
// Scales: compressed-tensors, weights by channel, activations by token, dynamic.

#x = #moe.scales<granule = [1, *], source = dynamic>
#w = #moe.scales<granule = [1, 1, *]>

moe.kernel @down(%x: tensor<?x8192xf8E4M3FN, #x>, %offsets: tensor<17xi32>,
                 %w: tensor<16x5120x8192xf8E4M3FN, #w>) -> tensor<?x5120xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x8192xf8E4M3FN, #x>, tensor<17xi32>, tensor<16x5120x8192xf8E4M3FN, #w> -> tensor<?x5120xbf16>
  moe.return %y : tensor<?x5120xbf16>
}
