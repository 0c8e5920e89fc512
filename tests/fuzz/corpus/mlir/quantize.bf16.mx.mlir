// Activations in bf16 to MXFP8, as the experts of llama-4-scout.gate_up.mx.mlir take them: a power of two for every 32 of K
// (OCP Microscaling Formats 1.0), rounded up; four in an i32, rows contiguous.
#x = #moe.scales<granule = [1, 32], type = f8E8M0FNU, source = dynamic, order = mn_major, align = 16, packing = 4>

moe.kernel @quantize(%x: tensor<?x5120xbf16>) -> tensor<?x5120xf8E4M3FN, #x> {
  %q = moe.quantize(%x) : tensor<?x5120xbf16> -> tensor<?x5120xf8E4M3FN, #x>
  moe.return %q : tensor<?x5120xf8E4M3FN, #x>
}
