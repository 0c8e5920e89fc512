// Activations in bf16 to fp8 with one scale a token, as the experts of GLM-4.5 take them (hidden_size 5120).
#x = #moe.scales<granule = [1, *], source = dynamic>

moe.kernel @quantize(%x: tensor<?x5120xbf16>) -> tensor<?x5120xf8E4M3FN, #x> {
  %q = moe.quantize(%x) : tensor<?x5120xbf16> -> tensor<?x5120xf8E4M3FN, #x>
  moe.return %q : tensor<?x5120xf8E4M3FN, #x>
}
