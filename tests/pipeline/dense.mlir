// Plain dense GEMMs, y = x · w^T, written by hand: no scales, no experts, no offsets. DenseTest takes each through the
// schedule and the lowering to values.

// One warpgroup; three steps along K, the last one half past its end; columns that end inside a fragment.
tile.kernel @ragged("x" %x: !tile.view<?x320xf8E4M3FN>, "w" %w: !tile.view<200x320xf8E4M3FN>, "y" %y: !tile.view<?x200xf32>) warpgroups 1 {
  %tiles = tile.scheduler tile [64, 128] columns 200 experts 1 order static raster 1
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %c128 = arith.constant 128 : i32
  tile.for_tiles %tiles -> %expert, %row, %column, %rows, %live {
    %acc = tile.acc : !tile.acc<64x128>
    tile.fill %acc : !tile.acc<64x128>
    scf.for %step = %c0 to %c3 step %c1 : i32 {
      %k = arith.muli %step, %c128 : i32
      %a = tile.load %x[%row, %k] : !tile.view<?x320xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
      %b = tile.load %w[%column, %k] : !tile.view<200x320xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
      tile.dot %acc, %a, %b : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
      tile.wait %acc : !tile.acc<64x128>
    }
    tile.store %acc -> %y[%row, %column] rows %rows : !tile.acc<64x128>, !tile.view<?x200xf32>
  }
}

// Two warpgroups and the widest tile; the weights have a leading extent of one.
tile.kernel @wide("x" %x: !tile.view<?x256xf8E4M3FN>, "w" %w: !tile.view<1x256x256xf8E4M3FN>, "y" %y: !tile.view<?x256xbf16>) warpgroups 2 {
  %tiles = tile.scheduler tile [128, 256] columns 256 experts 1 order static raster 1
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %c256 = arith.constant 256 : i32
  tile.for_tiles %tiles -> %expert, %row, %column, %rows, %live {
    %acc = tile.acc : !tile.acc<128x256>
    tile.fill %acc : !tile.acc<128x256>
    scf.for %k = %c0 to %c256 step %c128 : i32 {
      %a = tile.load %x[%row, %k] : !tile.view<?x256xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
      %b = tile.load %w[%c0, %column, %k] : !tile.view<1x256x256xf8E4M3FN> -> !tile.block<1x256x128xf8E4M3FN>
      tile.dot %acc, %a, %b : !tile.acc<128x256>, !tile.block<128x128xf8E4M3FN>, !tile.block<1x256x128xf8E4M3FN>
      tile.wait %acc : !tile.acc<128x256>
    }
    tile.store %acc -> %y[%row, %column] rows %rows : !tile.acc<128x256>, !tile.view<?x256xbf16>
  }
}

// No loop along K: the dot forgets what the accumulator held.
tile.kernel @oneStep("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<192x128xf8E4M3FN>, "y" %y: !tile.view<?x192xf16>) warpgroups 1 {
  %tiles = tile.scheduler tile [128, 64] columns 192 experts 1 order static raster 2
  tile.for_tiles %tiles -> %expert, %row, %column, %rows, %live {
    %c0 = arith.constant 0 : i32
    %acc = tile.acc : !tile.acc<128x64>
    %a = tile.load %x[%row, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
    %b = tile.load %w[%column, %c0] : !tile.view<192x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
    tile.dot %acc, %a, %b fresh : !tile.acc<128x64>, !tile.block<128x128xf8E4M3FN>, !tile.block<64x128xf8E4M3FN>
    tile.wait %acc : !tile.acc<128x64>
    tile.store %acc -> %y[%row, %column] rows %rows : !tile.acc<128x64>, !tile.view<?x192xf16>
  }
}

// Two dots a step from one slot, the coordinates of the second computed after the first; one wait for both.
tile.kernel @unrolled("x" %x: !tile.view<?x512xf8E4M3FN>, "w" %w: !tile.view<128x512xf8E4M3FN>, "y" %y: !tile.view<?x128xf32>) warpgroups 2 {
  %tiles = tile.scheduler tile [128, 64] columns 128 experts 1 order static raster 1
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %c256 = arith.constant 256 : i32
  %c512 = arith.constant 512 : i32
  tile.for_tiles %tiles -> %expert, %row, %column, %rows, %live {
    %acc = tile.acc : !tile.acc<128x64>
    tile.fill %acc : !tile.acc<128x64>
    scf.for %k = %c0 to %c512 step %c256 : i32 {
      %a0 = tile.load %x[%row, %k] : !tile.view<?x512xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
      %b0 = tile.load %w[%column, %k] : !tile.view<128x512xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
      tile.dot %acc, %a0, %b0 : !tile.acc<128x64>, !tile.block<128x128xf8E4M3FN>, !tile.block<64x128xf8E4M3FN>
      %next = arith.addi %k, %c128 : i32
      %a1 = tile.load %x[%row, %next] : !tile.view<?x512xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
      %b1 = tile.load %w[%column, %next] : !tile.view<128x512xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
      tile.dot %acc, %a1, %b1 : !tile.acc<128x64>, !tile.block<128x128xf8E4M3FN>, !tile.block<64x128xf8E4M3FN>
      tile.wait %acc : !tile.acc<128x64>
    }
    tile.store %acc -> %y[%row, %column] rows %rows : !tile.acc<128x64>, !tile.view<?x128xf32>
  }
}

// One dot a step sums in place, the other is exact: the promotion must not overtake the sum beside it.
tile.kernel @mixed("x" %x: !tile.view<?x256xf8E4M3FN>, "w" %w: !tile.view<128x256xf8E4M3FN>, "y" %y: !tile.view<?x128xf32>) warpgroups 1 {
  %tiles = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  tile.for_tiles %tiles -> %expert, %row, %column, %rows, %live {
    %acc = tile.acc : !tile.acc<64x128>
    %a0 = tile.load %x[%row, %c0] : !tile.view<?x256xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
    %b0 = tile.load %w[%column, %c0] : !tile.view<128x256xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
    %a1 = tile.load %x[%row, %c128] : !tile.view<?x256xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
    %b1 = tile.load %w[%column, %c128] : !tile.view<128x256xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
    tile.dot %acc, %a0, %b0 fresh : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
    tile.dot %acc, %a1, %b1 exact : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
    tile.wait %acc : !tile.acc<64x128>
    tile.store %acc -> %y[%row, %column] rows %rows : !tile.acc<64x128>, !tile.view<?x128xf32>
  }
}
