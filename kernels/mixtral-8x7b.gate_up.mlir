// Mixtral-8x7B, gate and up stacked: y[S, 28672] = x[S, 4096] · w[e, 28672, 4096]^T for 8 experts.
// Numbers: num_local_experts 8, hidden_size 4096, intermediate_size 14336 in config.json of mistralai/Mixtral-8x7B-v0.1.
// Scales: quant_method fp8, activation_scheme static, as in FP8 checkpoints of it.
// Such a checkpoint holds an activation scale per expert, and scales of gate and up apart: this kernel is for weights
// requantized to one scale per expert, and activations quantized with one scale. Use [expert, *] to keep one each.

#x = #moe.scales<granule = [*, *], source = static>
#w = #moe.scales<granule = [1, *, *]>

moe.kernel @gate_up(%x: tensor<?x4096xf8E4M3FN, #x>, %offsets: tensor<9xi32>,
                    %w: tensor<8x28672x4096xf8E4M3FN, #w>) -> tensor<?x28672xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x4096xf8E4M3FN, #x>, tensor<9xi32>, tensor<8x28672x4096xf8E4M3FN, #w> -> tensor<?x28672xbf16>
  moe.return %y : tensor<?x28672xbf16>
}
