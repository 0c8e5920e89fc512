#scales = #moe.scales<granule = [1, 128], source = dynamic, order = mn_major, align = 16>
#scales1 = #moe.scales<granule = [1, 128, 128]>
module {
  moe.kernel @moejit_kernel(%x: tensor<?x7168xf8E4M3FN, #scales>, %offsets: tensor<257xi32>, %w: tensor<256x4096x7168xf8E4M3FN, #scales1>) -> tensor<?x4096xbf16> {
    %y = moe.gemm grouped(%x, %offsets, %w) : tensor<?x7168xf8E4M3FN, #scales>, tensor<257xi32>, tensor<256x4096x7168xf8E4M3FN, #scales1> -> tensor<?x4096xbf16>
    moe.return %y : tensor<?x4096xbf16>
  }
}
