// moe-expand-scales: boundaries it cannot draw.
// RUN: moejit-opt %s --moe-expand-scales -split-input-file -verify-diagnostics

#x = #moe.scales<granule = [1, 128], source = dynamic>
// expected-error@+1 {{'moe.kernel' op returns a scaled tensor, expected plain ones or the result of a moe.quantize}}
moe.kernel @result(%x: tensor<?x512xf8E4M3FN, #x>) -> tensor<?x512xf8E4M3FN, #x> {
  moe.return %x : tensor<?x512xf8E4M3FN, #x>
}

// -----

#x = #moe.scales<granule = [expert, *]>
// expected-error@+1 {{'moe.kernel' op argument 0 has one scale per expert, but no moe.gemm says how many experts there are}}
moe.kernel @count(%x: tensor<?x512xf8E4M3FN, #x>) {
  moe.return
}
