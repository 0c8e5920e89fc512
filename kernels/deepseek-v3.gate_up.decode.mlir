// DeepSeek-V3, gate and up stacked, as one of eight ranks decodes: y[S, 4096] = x[S, 7168] · w[e, 4096, 7168]^T for the 32
// of 256 experts that live here.
// Numbers: as deepseek-v3.gate_up.mlir.
// Rows in any order, with global expert ids; x comes in bf16 and is quantized by the launch.

#x = #moe.scales<granule = [1, 128], source = dynamic>
#w = #moe.scales<granule = [1, 128, 128]>

moe.kernel @gate_up(%x: tensor<?x7168xbf16>, %ids: tensor<?xi32>, %w: tensor<32x4096x7168xf8E4M3FN, #w>,
                    %map: tensor<256xi32>) -> tensor<?x4096xbf16> {
  %q = moe.quantize(%x) : tensor<?x7168xbf16> -> tensor<?x7168xf8E4M3FN, #x>
  %y = moe.gemm batched(%q, %ids, %w, %map)
     : tensor<?x7168xf8E4M3FN, #x>, tensor<?xi32>, tensor<32x4096x7168xf8E4M3FN, #w>, tensor<256xi32> -> tensor<?x4096xbf16>
  moe.return %y : tensor<?x4096xbf16>
}
