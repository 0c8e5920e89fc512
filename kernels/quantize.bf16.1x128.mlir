// Activations in bf16 to fp8 with one scale for every 128 of K, as DeepSeek-V3's experts take them: rows of the scale
// tensor lie as far apart as the launch says, and the kernel of the GEMM reads them by TMA.
#x = #moe.scales<granule = [1, 128], source = dynamic, order = mn_major, align = 16>

moe.kernel @quantize(%x: tensor<?x7168xbf16>) -> tensor<?x7168xf8E4M3FN, #x> {
  %q = moe.quantize(%x) : tensor<?x7168xbf16> -> tensor<?x7168xf8E4M3FN, #x>
  moe.return %q : tensor<?x7168xf8E4M3FN, #x>
}
