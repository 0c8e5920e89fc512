// Invalid on purpose: a batched GEMM with static activation scales breaks rule MJ001.

#x = #moe.scales<granule = [*, *], source = static>
#w = #moe.scales<granule = [1, *, *]>

moe.kernel @gate_up(%x: tensor<?x4096xf8E4M3FN, #x>, %ids: tensor<?xi32>,
                    %w: tensor<8x28672x4096xf8E4M3FN, #w>) -> tensor<?x28672xbf16> {
  %y = moe.gemm batched(%x, %ids, %w)
     : tensor<?x4096xf8E4M3FN, #x>, tensor<?xi32>, tensor<8x28672x4096xf8E4M3FN, #w> -> tensor<?x28672xbf16>
  moe.return %y : tensor<?x28672xbf16>
}
