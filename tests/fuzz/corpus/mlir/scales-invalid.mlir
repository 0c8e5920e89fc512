// #moe.scales: text that is refused.
// RUN: moejit-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{expected an entry 'granule'}}
#x = #moe.scales<source = dynamic>

// -----

// expected-error@+1 {{expected an extent, '*' or 'expert'}}
#x = #moe.scales<granule = [1, token]>

// -----

// expected-error@+1 {{unknown entry 'stride', expected granule, type, source, order, align, packing, parts, interleaved or phase}}
#x = #moe.scales<granule = [1, 128], stride = 4>

// -----

// expected-error@+1 {{entry 'align' given twice}}
#x = #moe.scales<granule = [1, 128], align = 4, align = 16>

// -----

// expected-error@+1 {{expected static or dynamic, got 'live'}}
#x = #moe.scales<granule = [1, 128], source = live>

// -----

// expected-error@+1 {{expected row_major or mn_major, got 'k_major'}}
#x = #moe.scales<granule = [1, 128], order = k_major>

// -----

// expected-error@+1 {{scales have type 'f64', expected f32 or f8E8M0FNU [MJ006]}}
#x = #moe.scales<granule = [1, 128], type = f64>

// -----

// MJ009: the rank of the granule is that of the data, checked with the type.
// expected-error@+1 {{the granule [1, 128, 128] has 3 entries, expected 2: one for each dimension [MJ009]}}
moe.kernel @rank(%x: tensor<?x512xf8E4M3FN, #moe.scales<granule = [1, 128, 128]>>) {
  moe.return
}

// -----

// expected-error@+1 {{the phase has 1 entries, expected 2: one for each granule [MJ017]}}
moe.kernel @phase(%x: tensor<?x512xf8E4M3FN, #moe.scales<granule = [1, 128], phase = [64]>>) {
  moe.return
}
