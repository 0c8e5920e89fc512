// What the dialect refuses, each with what was found and what fits.
// RUN: moejit-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{'tile.kernel' op takes 1 to 8 warpgroups, a producer's among them, got 9}}
tile.kernel @warpgroups() warpgroups 9 {
}

// -----

// expected-error@+1 {{'tile.kernel' op names 0 operands, its body has 1 arguments}}
"tile.kernel"() <{sym_name = "names", operand_names = [], warpgroups = 1 : i64}> ({
^bb0(%x: !tile.view<4xf32>):
}) : () -> ()

// -----

tile.kernel @tiles() warpgroups 1 {
  // expected-error@+1 {{'tile.scheduler' op tile, columns and raster must be positive}}
  %q = tile.scheduler tile [64, 0] columns 128 experts 1 order static raster 1
}

// -----

tile.kernel @offsets("offsets" %o: !tile.view<4xi32>) warpgroups 1 {
  // expected-error@+1 {{'tile.scheduler' op of 4 experts reads 5 offsets, got '!tile.view<4xi32>'}}
  %q = tile.scheduler grouped(%o) tile [64, 128] columns 128 experts 4 order static raster 1 : !tile.view<4xi32>
}

// -----

tile.kernel @experts() warpgroups 1 {
  // expected-error@+1 {{has one expert, got 4}}
  %q = tile.scheduler tile [64, 128] columns 128 experts 4 order static raster 1
}

// -----

tile.kernel @queue() warpgroups 1 {
  // expected-error@+1 {{'tile.scheduler' op takes a counter exactly when its order is queue}}
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order queue raster 1
}

// -----

tile.kernel @names() warpgroups 1 {
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  // expected-error@+1 {{expected expert, row, column, rows and live, got 3 names}}
  tile.for_tiles %q -> %e, %m, %n {
  }
}

// -----

tile.kernel @twice() warpgroups 1 {
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  // expected-error@+1 {{'tile.for_tiles' op draws its next tile more than once}}
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    tile.next_tile
    tile.next_tile
  }
}

// -----

tile.kernel @nextTile() warpgroups 1 {
  // expected-error@+1 {{'tile.next_tile' op expects parent op 'tile.for_tiles'}}
  tile.next_tile
}

// -----

tile.kernel @role() warpgroups 1 {
  tile.once {
    // expected-error@+1 {{'tile.role' op expects parent op 'tile.kernel'}}
    tile.role producer registers 40 {
    }
  }
}

// -----

tile.kernel @coordinates("x" %x: !tile.view<?x128xf8E4M3FN>) warpgroups 1 {
  %c = arith.constant 0 : i32
  // expected-error@+1 {{'tile.load' op wants one coordinate and one block extent for each of the view's 2 dimensions, got 1 and 2}}
  %a = tile.load %x[%c] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
}

// -----

tile.kernel @element("x" %x: !tile.view<?x128xf8E4M3FN>) warpgroups 1 {
  %c = arith.constant 0 : i32
  // expected-error@+1 {{'tile.load' op loads 'f32' from a view of 'f8E4M3FN'}}
  %a = tile.load %x[%c, %c] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf32>
}

// -----

tile.kernel @stages() warpgroups 1 {
  // expected-error@+1 {{'tile.ring' op has at least one stage, got 0}}
  %ring = tile.ring stages 0 [!tile.block<64x128xf8E4M3FN>]
}

// -----

tile.kernel @rowOf64() warpgroups 1 {
  // expected-error@+1 {{'tile.ring' op cannot hold a field !tile.block<64x64xf8E4M3FN>; it takes f8 rows of 128 elements, or a few scales}}
  %ring = tile.ring stages 1 [!tile.block<64x64xf8E4M3FN>]
}

// -----

tile.kernel @tall() warpgroups 1 {
  // expected-error@+1 {{'tile.ring' op cannot hold a field !tile.block<264x128xf8E4M3FN>}}
  %ring = tile.ring stages 1 [!tile.block<264x128xf8E4M3FN>]
}

// -----

tile.kernel @copyCoordinates("x" %x: !tile.view<?x128xf8E4M3FN>) warpgroups 1 {
  %c = arith.constant 0 : i32
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>]
  %s = tile.acquire %ring
  // expected-error@+1 {{'tile.copy' op wants 2 coordinates, got 1}}
  tile.copy %x[%c] -> %s[0] : !tile.view<?x128xf8E4M3FN>
}

// -----

tile.kernel @accumulator() warpgroups 2 {
  // expected-error@+1 {{'tile.acc' op cannot divide '!tile.acc<96x128>' over 2 warpgroups}}
  %acc = tile.acc : !tile.acc<96x128>
}

// -----

tile.kernel @split() warpgroups 1 {
  // expected-error@+1 {{expected 'rows' or 'columns', got 'diagonals'}}
  %acc = tile.acc : !tile.acc<64x128, diagonals, n = 64>
}

// -----

tile.kernel @extents() warpgroups 1 {
  // expected-error@+1 {{an accumulator has two extents, got 3}}
  %acc = tile.acc : !tile.acc<64x128x2>
}

// -----

tile.kernel @inner("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<128x64xf8E4M3FN>) warpgroups 1 {
  %c = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x128>
  %a = tile.load %x[%c, %c] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b = tile.load %w[%c, %c] : !tile.view<128x64xf8E4M3FN> -> !tile.block<128x64xf8E4M3FN>
  // expected-error@+1 {{'tile.dot' op multiplies [m, k] by [n, k], got '!tile.block<64x128xf8E4M3FN>' and '!tile.block<128x64xf8E4M3FN>'}}
  tile.dot %acc, %a, %b : !tile.acc<64x128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x64xf8E4M3FN>
}

// -----

tile.kernel @shape("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<128x128xf8E4M3FN>) warpgroups 1 {
  %c = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x256>
  %a = tile.load %x[%c, %c] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b = tile.load %w[%c, %c] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  // expected-error@+1 {{'tile.dot' op gives 64x128 into '!tile.acc<64x256>'}}
  tile.dot %acc, %a, %b : !tile.acc<64x256>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
}

// -----

tile.kernel @instructionK("x" %x: !tile.view<?x48xf8E4M3FN>, "w" %w: !tile.view<128x48xf8E4M3FN>) warpgroups 1 {
  %c = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x128>
  %a = tile.load %x[%c, %c] : !tile.view<?x48xf8E4M3FN> -> !tile.block<64x48xf8E4M3FN>
  %b = tile.load %w[%c, %c] : !tile.view<128x48xf8E4M3FN> -> !tile.block<128x48xf8E4M3FN>
  // expected-error@+1 {{'tile.dot' op multiplies 48 of K from 0 on, expected multiples of 32 inside 48}}
  tile.dot %acc, %a, %b : !tile.acc<64x128>, !tile.block<64x48xf8E4M3FN>, !tile.block<128x48xf8E4M3FN>
}

// -----

tile.kernel @noBatch("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<128x128xf8E4M3FN>) warpgroups 1 {
  %c = arith.constant 0 : i32
  %t = tile.acc : !tile.fragment<n = 128>
  %a = tile.load %x[%c, %c] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b = tile.load %w[%c, %c] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  // expected-error@+1 {{'tile.dot' op names a batch exactly when its accumulator is a fragment}}
  tile.dot %t, %a, %b : !tile.fragment<n = 128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
}

// -----

tile.kernel @batch("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<128x128xf8E4M3FN>) warpgroups 1 {
  %c = arith.constant 0 : i32
  %t = tile.acc : !tile.fragment<n = 128>
  %a = tile.load %x[%c, %c] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
  %b = tile.load %w[%c, %c] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
  // expected-error@+1 {{'tile.dot' op batch 1 of an accumulator with 1 fragments}}
  tile.dot %t, %a, %b batch 1 of !tile.acc<64x128> : !tile.fragment<n = 128>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
}

// -----

tile.kernel @fragment() warpgroups 1 {
  %acc = tile.acc : !tile.acc<64x64>
  %t = tile.acc : !tile.fragment<n = 128>
  // expected-error@+1 {{'tile.promote' op fragment has 128 columns, those of '!tile.acc<64x64>' have 64; a narrower one has a multiple of 8}}
  tile.promote %acc, %t batch 0 : !tile.acc<64x64>, !tile.fragment<n = 128>
}

// -----

tile.kernel @both("x_scales" %xs: !tile.view<?xf32>) warpgroups 1 {
  %c = arith.constant 0 : i32
  %f = ptx.constant_f32 1.0
  %acc = tile.acc : !tile.acc<64x128>
  %t = tile.acc : !tile.fragment<n = 128>
  %s = tile.load %xs[%c] : !tile.view<?xf32> -> !tile.block<64xf32>
  // expected-error@+1 {{'tile.promote' op takes the scales of one side as a block or as values, not both}}
  tile.promote %acc, %t rows %s per 1 : !tile.block<64xf32> row_values(%f, %f : f32, f32) batch 0 : !tile.acc<64x128>, !tile.fragment<n = 128>
}

// -----

tile.kernel @oneRowValue() warpgroups 1 {
  %f = ptx.constant_f32 1.0
  %acc = tile.acc : !tile.acc<64x128>
  %t = tile.acc : !tile.fragment<n = 128>
  // expected-error@+1 {{'tile.promote' op takes two row values, got 1}}
  tile.promote %acc, %t row_values(%f : f32) batch 0 : !tile.acc<64x128>, !tile.fragment<n = 128>
}

// -----

tile.kernel @twoColumnValues() warpgroups 1 {
  %f = ptx.constant_f32 1.0
  %acc = tile.acc : !tile.acc<64x128>
  %t = tile.acc : !tile.fragment<n = 128>
  // expected-error@+1 {{'tile.promote' op takes one column value, or one for each of a thread's columns, got 2}}
  tile.promote %acc, %t column_values(%f, %f : f32, f32) batch 0 : !tile.acc<64x128>, !tile.fragment<n = 128>
}

// -----

tile.kernel @valuesOfAll() warpgroups 1 {
  %f = ptx.constant_f32 1.0
  %acc = tile.acc : !tile.acc<64x128>
  %t = tile.acc : !tile.acc<64x128>
  // expected-error@+1 {{'tile.promote' op takes scale values for one batch only}}
  tile.promote %acc, %t column_values(%f : f32) : !tile.acc<64x128>, !tile.acc<64x128>
}

// -----

// expected-error@+1 {{an element is an integer or a float, got 'index'}}
tile.kernel @viewOfIndices("workspace" %c: !tile.view<1xindex>) warpgroups 1 {
}

// -----

tile.kernel @ringOfNothing() warpgroups 1 {
  // expected-error@+1 {{'tile.ring' op cannot hold a field !tile.block<f32>}}
  %ring = tile.ring stages 1 [!tile.block<f32>]
}

// -----

tile.kernel @ringOfNoRows() warpgroups 1 {
  // expected-error@+1 {{'tile.ring' op cannot hold a field !tile.block<0x128xf8E4M3FN>}}
  %ring = tile.ring stages 1 [!tile.block<0x128xf8E4M3FN>]
}

// -----

tile.kernel @ringTooLarge() warpgroups 1 {
  // expected-error@+1 {{'tile.ring' op cannot hold a field !tile.block<9223372036854775807x9223372036854775807x128xf8E4M3FN>}}
  %ring = tile.ring stages 1 [!tile.block<9223372036854775807x9223372036854775807x128xf8E4M3FN>]
}

// -----

tile.kernel @read("x_scales" %xs: !tile.view<?xf32>) warpgroups 1 {
  %c = arith.constant 0 : i32
  %s = tile.load %xs[%c] : !tile.view<?xf32> -> !tile.block<64xf32>
  // expected-error@+1 {{'tile.read' op gives 2 values a thread, got 1}}
  %v = tile.read %s rows per 1 batch 0 of !tile.acc<64x128> : !tile.block<64xf32> -> f32
}

// -----

tile.kernel @storeType("y" %y: !tile.view<?x128xi32>) warpgroups 1 {
  %c = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x128>
  // expected-error@+1 {{'tile.store' op writes a matrix of bf16, f16 or f32, got '!tile.view<?x128xi32>'}}
  tile.store %acc -> %y[%c, %c] rows %c : !tile.acc<64x128>, !tile.view<?x128xi32>
}

// -----

tile.kernel @storeStaged("y" %y: !tile.view<?x128xf32>) warpgroups 1 {
  %c = arith.constant 0 : i32
  %acc = tile.acc : !tile.acc<64x128>
  // expected-error@+1 {{'tile.store' op stages 16-bit results only; store f32 directly}}
  tile.store %acc -> %y[%c, %c] rows %c staged : !tile.acc<64x128>, !tile.view<?x128xf32>
}

// -----

tile.kernel @offsetsOfNoField() warpgroups 1 {
  // expected-error@+1 {{'tile.ring' op has 1 fields but 2 offsets}}
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>] {barrier_offset = 8192 : i64, field_offsets = array<i64: 0, 0>, shared_offset = 0 : i64, stride = 9216 : i64}
}

// -----

// Scales are read for a fragment that the accumulator has.
tile.kernel @noSuchFragment("x_scales" %xs: !tile.view<1x?xf32>) warpgroups 3 {
  %c0 = arith.constant 0 : i32
  %sa = tile.load %xs[%c0, %c0] : !tile.view<1x?xf32> -> !tile.block<1x64xf32>
  // expected-error@+1 {{'tile.read' op reads for batch 0 of '!tile.acc<64x128>', which has no such fragment}}
  %ra, %rb = tile.read %sa rows per 1 batch 0 of !tile.acc<64x128> : !tile.block<1x64xf32> -> f32, f32
}

// -----

tile.kernel @itemsInTwoDimensions("w_scales" %ws: !tile.view<4x4xf32>) warpgroups 1 {
  %c = arith.constant 0 : i32
  // expected-error@+1 {{'tile.load' op of items has one dimension of more than one entry, got '!tile.block<2x64xf32>'}}
  %a = tile.load %ws[%c, %c] items <granule = 4, extent = 100> : !tile.view<4x4xf32> -> !tile.block<2x64xf32>
}

// -----

tile.kernel @phaseOutside("w_scales" %ws: !tile.view<4xf32>) warpgroups 1 {
  %c = arith.constant 0 : i32
  // expected-error@+1 {{items have a granule and an extent of 0 or more, a phase inside the granule and parts of 1 or more}}
  %a = tile.load %ws[%c] items <granule = 4, extent = 100, phase = 4> : !tile.view<4xf32> -> !tile.block<64xf32>
}

// -----

tile.kernel @partsOfRows("x_scales" %xs: !tile.view<?xf32>) warpgroups 1 {
  %c = arith.constant 0 : i32
  // expected-error@+1 {{the rows of a launch are one part, got 2}}
  %a = tile.load %xs[%c] items <granule = 4, extent = 0, parts = 2> : !tile.view<?xf32> -> !tile.block<64xf32>
}

// -----

tile.kernel @alone("x_scales" %xs: !tile.view<?xf32>) warpgroups 1 {
  %c = arith.constant 0 : i32
  // expected-error@+1 {{one part does not alternate with others}}
  %a = tile.load %xs[%c] items <granule = 4, extent = 8, interleaved = true> : !tile.view<?xf32> -> !tile.block<64xf32>
}

// -----

tile.kernel @floatsAreNotPacked("x_scales" %xs: !tile.view<?xf32>) warpgroups 1 {
  %c = arith.constant 0 : i32
  %a = tile.load %xs[%c] : !tile.view<?xf32> -> !tile.block<64xf32>
  // expected-error@+1 {{'tile.unpack' op takes bytes from a block of i32 to a block of f8E8M0FNU of the same shape, got '!tile.block<64xf32>' and '!tile.block<64xf8E8M0FNU>'}}
  %b = tile.unpack %a[%c] : !tile.block<64xf32> -> !tile.block<64xf8E8M0FNU>
}

// -----

tile.kernel @amax_word("x" %x: !tile.view<?x64xbf16>, "counters" %c: !tile.view<3xi32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  // expected-error@+1 {{'tile.amax' op takes entry 3 of '!tile.view<3xi32>', expected one of a vector of i32}}
  tile.amax %x[%c0, %c0] rows %c0 columns 64 -> %c at 3 : !tile.view<?x64xbf16>, !tile.view<3xi32>
}

// -----

tile.kernel @amax_columns("x" %x: !tile.view<?x64xbf16>, "counters" %c: !tile.view<3xi32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  // expected-error@+1 {{'tile.amax' op takes a multiple of 8 columns, got 60}}
  tile.amax %x[%c0, %c0] rows %c0 columns 60 -> %c : !tile.view<?x64xbf16>, !tile.view<3xi32>
}

// -----

tile.kernel @quantize_from("x" %x: !tile.view<?x60xbf16>, "x_scales" %s: !tile.view<?x1xf32>, "y" %y: !tile.view<?x60xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  // expected-error@+1 {{'tile.quantize' op reads a matrix of bf16, f16 or f32 with a multiple of 8 columns, got '!tile.view<?x60xbf16>'}}
  tile.quantize %x[%c0, %c0] rows %c0 columns 64 -> %y, %s per 64 : !tile.view<?x60xbf16> -> !tile.view<?x60xf8E4M3FN>, !tile.view<?x1xf32>
}

// -----

tile.kernel @quantize_into("x" %x: !tile.view<?x64xbf16>, "x_scales" %s: !tile.view<?x1xf32>, "y" %y: !tile.view<?x64xbf16>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  // expected-error@+1 {{'tile.quantize' op writes f8E4M3FN or f8E5M2 of as many columns as it reads, got '!tile.view<?x64xbf16>'}}
  tile.quantize %x[%c0, %c0] rows %c0 columns 64 -> %y, %s per 64 : !tile.view<?x64xbf16> -> !tile.view<?x64xbf16>, !tile.view<?x1xf32>
}

// -----

tile.kernel @quantize_scales("x" %x: !tile.view<?x64xbf16>, "x_scales" %s: !tile.view<?x1xf16>, "y" %y: !tile.view<?x64xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  // expected-error@+1 {{'tile.quantize' op has scales of f32, f8E8M0FNU, or four of them in an i32, got '!tile.view<?x1xf16>'}}
  tile.quantize %x[%c0, %c0] rows %c0 columns 64 -> %y, %s per 64 : !tile.view<?x64xbf16> -> !tile.view<?x64xf8E4M3FN>, !tile.view<?x1xf16>
}

// -----

tile.kernel @quantize_granule("x" %x: !tile.view<?x64xbf16>, "x_scales" %s: !tile.view<?x2xf32>, "y" %y: !tile.view<?x64xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  // expected-error@+1 {{'tile.quantize' op has granules of 48 columns, expected a multiple of 8 that divides the 64 of the box}}
  tile.quantize %x[%c0, %c0] rows %c0 columns 64 -> %y, %s per 48 : !tile.view<?x64xbf16> -> !tile.view<?x64xf8E4M3FN>, !tile.view<?x2xf32>
}

// -----

tile.kernel @quantize_vector("x" %x: !tile.view<?x64xbf16>, "x_scales" %s: !tile.view<?xf32>, "y" %y: !tile.view<?x64xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  // expected-error@+1 {{'tile.quantize' op has several scales a row, expected a matrix of them, got '!tile.view<?xf32>'}}
  tile.quantize %x[%c0, %c0] rows %c0 columns 64 -> %y, %s per 32 : !tile.view<?x64xbf16> -> !tile.view<?x64xf8E4M3FN>, !tile.view<?xf32>
}

// -----

tile.kernel @quantize_warps("x" %x: !tile.view<?x64xbf16>, "x_scales" %s: !tile.view<?x1xf32>, "y" %y: !tile.view<?x64xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  // expected-error@+1 {{'tile.quantize' op shares a granule among 1 to 32 warps, a power of two, got 3}}
  tile.quantize %x[%c0, %c0] rows %c0 columns 64 -> %y, %s per 64 warps 3 : !tile.view<?x64xbf16> -> !tile.view<?x64xf8E4M3FN>, !tile.view<?x1xf32>
}

// -----

tile.kernel @quantize_both("x" %x: !tile.view<?x64xbf16>, "x_scales" %s: !tile.view<?x1xf32>, "y" %y: !tile.view<?x64xf8E4M3FN>, "counters" %c: !tile.view<3xi32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  // expected-error@+1 {{'tile.quantize' op computes its scales from granules or from a word, not both}}
  tile.quantize %x[%c0, %c0] rows %c0 columns 64 -> %y, %s per 64 amax %c : !tile.view<3xi32> : !tile.view<?x64xbf16> -> !tile.view<?x64xf8E4M3FN>, !tile.view<?x1xf32>
}

// -----

tile.kernel @map_without_ids("expert_map" %map: !tile.view<9xi32>) warpgroups 1 {
  // expected-error@+1 {{'tile.scheduler' op maps expert ids, but is given none}}
  %q = tile.scheduler map(%map : !tile.view<9xi32>) tile [64, 128] columns 128 experts 1 order static raster 1
}

// -----

tile.kernel @map_of_any_length("expert_ids" %ids: !tile.view<?xi32>, "expert_map" %map: !tile.view<?xi32>) warpgroups 1 {
  // expected-error@+1 {{'tile.scheduler' op maps by a vector of known length, got '!tile.view<?xi32>'}}
  %q = tile.scheduler batched(%ids : !tile.view<?xi32>) map(%map : !tile.view<?xi32>) tile [64, 128] columns 128 experts 4 order static raster 1
}

// -----

tile.kernel @crowd() warpgroups 1 attributes {cluster = 9 : i64} {
  // expected-error@-1 {{'tile.kernel' op takes 1 to 8 blocks in a cluster, got 9}}
}

// -----

tile.kernel @pairs_without_cluster() warpgroups 1 {
  // expected-error@+1 {{'tile.scheduler' op works with other blocks of its cluster, but the kernel has none}}
  %q = tile.scheduler tile [64, 128] columns 256 experts 1 order static raster 1 cluster columns
}

// -----

tile.kernel @multicast_without_cluster() warpgroups 1 {
  // expected-error@+1 {{'tile.ring' op works with other blocks of its cluster, but the kernel has none}}
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>] multicast
}

// -----

tile.kernel @multicast_of_gathered_rows("x" %x: !tile.view<?x128xf8E4M3FN>, "expert_ids" %ids: !tile.view<?xi32>) warpgroups 1 attributes {cluster = 2 : i64} {
  %c0 = arith.constant 0 : i32
  %q = tile.scheduler batched(%ids : !tile.view<?xi32>) tile [64, 128] columns 256 experts 4 order static raster 1
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>] multicast
  %s = tile.acquire %ring
  // expected-error@+1 {{'tile.copy' op sends all rows of a box to other blocks, or gathers them or copies the first only; not both}}
  tile.copy %x[%c0, %c0] rows_by %q -> %s[0] multicast : !tile.view<?x128xf8E4M3FN>
}

// -----

tile.kernel @tail("y" %y: !tile.view<?x128xf32>) warpgroups 1 {
  // expected-error@+1 {{'tile.scheduler' op has tails of a multiple of 8 rows, fewer than its tile's 64, got 64}}
  %q = tile.scheduler tile [64, 128] tail 64 columns 128 experts 1 order static raster 1
}

// -----

tile.kernel @tailOfRows("y" %y: !tile.view<?x128xf32>) warpgroups 1 attributes {cluster = 2 : i64} {
  // expected-error@+1 {{'tile.scheduler' op has tails, or clusters along rows; not both}}
  %q = tile.scheduler tile [64, 128] tail 8 columns 128 experts 1 order static raster 1 cluster rows
}

// -----

tile.kernel @part("x" %x: !tile.view<?x128xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %ring = tile.ring stages 1 [!tile.block<72x128xf8E4M3FN>]
  %s = tile.await %ring
  // expected-error@+1 {{'tile.field' op takes '!tile.block<16x128xf8E4M3FN>' from row 64 on of a field '!tile.block<72x128xf8E4M3FN>'}}
  %f = tile.field %s[0] from 64 = %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<16x128xf8E4M3FN>
}

// -----

tile.kernel @wholeFromBelow("x" %x: !tile.view<?x128xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>]
  %s = tile.await %ring
  // expected-error@+1 {{'tile.field' op takes '!tile.block<64x128xf8E4M3FN>' from row 64 on of a field '!tile.block<64x128xf8E4M3FN>'}}
  %f = tile.field %s[0] from 64 = %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
}

// -----

tile.kernel @negative("x" %x: !tile.view<?x128xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %ring = tile.ring stages 1 [!tile.block<72x128xf8E4M3FN>]
  %s = tile.await %ring
  // expected-error@+1 {{'tile.field' op starts at a multiple of 8 rows, got -8}}
  %f = tile.field %s[0] from -8 = %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
}

// -----

tile.kernel @oneEntry("xs" %x: !tile.view<4x?xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %ring = tile.ring stages 1 [!tile.block<1x72xf32>]
  %s = tile.await %ring
  // expected-error@+1 {{'tile.field' op takes '!tile.block<1x1xf32>' from row 64 on of a field '!tile.block<1x72xf32>'}}
  %f = tile.field %s[0] from 64 = %x[%c0, %c0] : !tile.view<4x?xf32> -> !tile.block<1x1xf32>
}

// -----

tile.kernel @unaligned("x" %x: !tile.view<?x128xf8E4M3FN>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %ring = tile.ring stages 1 [!tile.block<72x128xf8E4M3FN>]
  %s = tile.await %ring
  // expected-error@+1 {{'tile.field' op starts at a multiple of 8 rows, got 4}}
  %f = tile.field %s[0] from 4 = %x[%c0, %c0] : !tile.view<?x128xf8E4M3FN> -> !tile.block<8x128xf8E4M3FN>
}

// -----

// Blocks of 256 threads, and 2048 threads an SM.
module {
  // expected-error@+1 {{'tile.kernel' op takes 1 to 8 blocks of 256 threads on an SM, got 9}}
  tile.kernel @crowded() warpgroups 2 attributes {blocks_per_sm = 9 : i64} {
    tile.sync
  }
}

// -----

tile.kernel @cleanedByAll("workspace" %c: !tile.view<2xi32>) warpgroups 1 {
  // expected-error@+1 {{'tile.clean' op is for one thread of a block: in a tile.once, or a producer}}
  tile.clean %c counted in %c at 1 : !tile.view<2xi32> in !tile.view<2xi32>
}

// -----

tile.kernel @countedPastTheEnd("workspace" %c: !tile.view<2xi32>) warpgroups 1 {
  tile.once {
    // expected-error@+1 {{'tile.clean' op counts in entry 2 of '!tile.view<2xi32>'}}
    tile.clean %c counted in %c at 2 : !tile.view<2xi32> in !tile.view<2xi32>
  }
}

// -----

tile.kernel @countedElsewhere("workspace" %c: !tile.view<2xi32>, "counters" %d: !tile.view<2xi32>) warpgroups 1 {
  tile.once {
    // expected-error@+1 {{'tile.clean' op counts in a view that it does not clean}}
    tile.clean %c counted in %d at 1 : !tile.view<2xi32> in !tile.view<2xi32>
  }
}

// -----

tile.kernel @cleanedRows("workspace" %c: !tile.view<?xi32>) warpgroups 1 {
  tile.once {
    // expected-error@+1 {{'tile.clean' op cleans vectors of i32 of known length, got '!tile.view<?xi32>'}}
    tile.clean %c counted in %c at 1 : !tile.view<?xi32> in !tile.view<?xi32>
  }
}

// -----

tile.kernel @alone() warpgroups 1 {
  // expected-error@+1 {{'tile.cluster_rank' op works with other blocks of its cluster, but the kernel has none}}
  %rank = tile.cluster_rank
}

// -----

tile.kernel @nowhere() warpgroups 1 attributes {cluster = 2 : i64} {
  %rows = tile.rows
  %acc = tile.acc : !tile.acc<64x64>
  // expected-error@+1 {{'tile.reduce' op adds up what blocks have of a tile, expected inside tile.for_tiles}}
  tile.reduce %acc rows %rows : !tile.acc<64x64>
}

// -----

tile.kernel @first("y" %y: !tile.view<?x64xbf16>) warpgroups 1 {
  %rows = tile.rows
  %acc = tile.acc : !tile.acc<64x64>
  // expected-error@+1 {{'tile.store' op works with other blocks of its cluster, but the kernel has none}}
  tile.store %acc -> %y[%rows, %rows] rows %rows by_first : !tile.acc<64x64>, !tile.view<?x64xbf16>
}
