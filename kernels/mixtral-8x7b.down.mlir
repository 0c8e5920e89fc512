// Mixtral-8x7B, down: y[S, 4096] = x[S, 14336] · w[e, 4096, 14336]^T for 8 experts.
// Numbers: num_local_experts 8, hidden_size 4096, intermediate_size 14336 in config.json of mistralai/Mixtral-8x7B-v0.1.
// Scales: quant_method fp8, activation_scheme static, as in FP8 checkpoints of it.
// Such a checkpoint holds an activation scale per expert, and scales of gate and up apart: this kernel is for weights
// requantized to one scale per expert, and activations quantized with one scale. Use [expert, *] to keep one each.

#x = #moe.scales<granule = [*, *], source = static>
#w = #moe.scales<granule = [1, *, *]>

moe.kernel @down(%x: tensor<?x14336xf8E4M3FN, #x>, %offsets: tensor<9xi32>,
                 %w: tensor<8x4096x14336xf8E4M3FN, #w>) -> tensor<?x4096xbf16> {
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x14336xf8E4M3FN, #x>, tensor<9xi32>, tensor<8x4096x14336xf8E4M3FN, #w> -> tensor<?x4096xbf16>
  moe.return %y : tensor<?x4096xbf16>
}
