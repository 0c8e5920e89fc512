// What the dialect refuses, each with the value and the limit.
// RUN: ptx-emit --ptx-to-ptx-ir --split-input-file --verify-diagnostics %s

// expected-error @+1 {{'ptx.kernel' op takes 32 to 1024 threads, a multiple of 32, got 100}}
ptx.kernel @threads() attributes {threads = 100 : i32} {
}

// -----

// expected-error @+1 {{'ptx.kernel' op takes 1 to 16 blocks in a cluster, got 32}}
ptx.kernel @cluster() attributes {threads = 128 : i32, cluster = 32 : i32} {
}

// -----

// expected-error @+1 {{'ptx.kernel' op takes at most 232448 bytes of shared memory, got 232449}}
ptx.kernel @shared() attributes {threads = 128 : i32, shared_bytes = 232449 : i32} {
}

// -----

// expected-error @+1 {{'ptx.kernel' op parameter 0 is one of !ptx.tmap, !ptx.ptr, i32 and i64, got 'index'}}
ptx.kernel @parameter(%a: index) attributes {threads = 128 : i32} {
}

// -----

// expected-error @+1 {{'ptx.kernel' op parameter 0 'ptx.name' takes an identifier}}
ptx.kernel @parameterName(%a: i32 {ptx.name = "a; evil()"}) attributes {threads = 128 : i32} {
}

// -----

ptx.kernel @keyword() attributes {threads = 128 : i32} {
  // expected-error @+1 {{'ptx.thread_index' op 'ptx.name' takes an identifier ([a-zA-Z][a-zA-Z0-9_]*, no keyword, no '__', at most 64 characters), got "while"}}
  %0 = ptx.thread_index {ptx.name = "while"}
}

// -----

ptx.kernel @reserved() attributes {threads = 128 : i32} {
  // expected-error @+1 {{'ptx.name' takes an identifier}}
  %0 = ptx.thread_index {ptx.name = "a__b"}
}

// -----

ptx.kernel @nameType() attributes {threads = 128 : i32} {
  // expected-error @+1 {{'ptx.name' takes a string, got 1 : i32}}
  %0 = ptx.thread_index {ptx.name = 1 : i32}
}

// -----

ptx.kernel @names() attributes {threads = 128 : i32} {
  %true = arith.constant true
  // expected-error @+1 {{'ptx.names' takes an array of 0 strings, one for each result}}
  scf.if %true {
  } {ptx.names = ["a"]}
}

// -----

ptx.kernel @attribute() attributes {threads = 128 : i32} {
  // expected-error @+1 {{has no attribute 'ptx.nam' in dialect ptx; there are 'ptx.name' and 'ptx.names'}}
  %0 = ptx.thread_index {ptx.nam = "a"}
}

// -----

// expected-error @+1 {{register arrays have rank 1 or 2, got rank 3}}
func.func private @rank(!ptx.regs<2x2x2xf32>)

// -----

// expected-error @+1 {{registers are f32 or i32, got 'f64'}}
func.func private @element(!ptx.regs<2xf64>)

// -----

// expected-error @+1 {{extents of register arrays are 1 to 1024, got 0}}
func.func private @extent(!ptx.regs<0xf32>)

// -----

ptx.kernel @index() attributes {threads = 128 : i32} {
  %acc = ptx.regs : !ptx.regs<2x64xf32>
  // expected-error @+1 {{takes 2 indices to pick a register of '!ptx.regs<2x64xf32>', got 1}}
  %0 = ptx.regs_get %acc[0] : !ptx.regs<2x64xf32>
}

// -----

ptx.kernel @range() attributes {threads = 128 : i32} {
  %acc = ptx.regs : !ptx.regs<2x64xf32>
  // expected-error @+1 {{index 2 is outside of '!ptx.regs<2x64xf32>', whose extent there is 2}}
  %0 = ptx.regs_get %acc[2, 0] : !ptx.regs<2x64xf32>
}

// -----

ptx.kernel @wgmmaN() attributes {threads = 128 : i32} {
  %acc = ptx.regs : !ptx.regs<64xf32>
  %c = arith.constant 0 : i32
  // expected-error @+1 {{'ptx.wgmma' op takes n from 8 to 256, a multiple of 8, got 12}}
  ptx.wgmma %acc, %c, %c, %c {n = 12 : i32, a = "e4m3", b = "e4m3"} : !ptx.regs<64xf32>
}

// -----

ptx.kernel @wgmmaFragment() attributes {threads = 128 : i32} {
  %acc = ptx.regs : !ptx.regs<64xf32>
  %c = arith.constant 0 : i32
  // expected-error @+1 {{'ptx.wgmma' op takes a fragment of 128 registers, got 64 in '!ptx.regs<64xf32>'}}
  ptx.wgmma %acc, %c, %c, %c {n = 256 : i32, a = "e4m3", b = "e4m3"} : !ptx.regs<64xf32>
}

// -----

ptx.kernel @wgmmaType() attributes {threads = 128 : i32} {
  %acc = ptx.regs : !ptx.regs<64xf32>
  %c = arith.constant 0 : i32
  // expected-error @+1 {{'ptx.wgmma' op takes operands of type e4m3 or e5m2, got 'bf16'}}
  ptx.wgmma %acc, %c, %c, %c {n = 128 : i32, a = "bf16", b = "e4m3"} : !ptx.regs<64xf32>
}

// -----

ptx.kernel @wgmmaElement() attributes {threads = 128 : i32} {
  %acc = ptx.regs : !ptx.regs<64xi32>
  %c = arith.constant 0 : i32
  // expected-error @+1 {{'ptx.wgmma' op takes registers of 'f32', got '!ptx.regs<64xi32>'}}
  ptx.wgmma %acc, %c, %c, %c {n = 128 : i32, a = "e4m3", b = "e4m3"} : !ptx.regs<64xi32>
}

// -----

ptx.kernel @fragment() attributes {threads = 128 : i32} {
  %acc = ptx.regs : !ptx.regs<2x64xf32>
  // expected-error @+1 {{takes 1 indices to pick a fragment of '!ptx.regs<2x64xf32>', got 0}}
  ptx.regs_pin %acc : !ptx.regs<2x64xf32>
}

// -----

ptx.kernel @barrier() attributes {threads = 128 : i32} {
  // expected-error @+1 {{'ptx.bar_sync' op takes a barrier from 0 to 15, got 16}}
  ptx.bar_sync 16, 128
}

// -----

ptx.kernel @barrierThreads() attributes {threads = 128 : i32} {
  // expected-error @+1 {{'ptx.bar_arrive' op takes 32 to 1024 threads, a multiple of 32, got 33}}
  ptx.bar_arrive 1, 33
}

// -----

ptx.kernel @registers() attributes {threads = 128 : i32} {
  // expected-error @+1 {{'ptx.setmaxnreg_inc' op takes 24 to 256 registers, a multiple of 8, got 233}}
  ptx.setmaxnreg_inc 233
}

// -----

ptx.kernel @pending() attributes {threads = 128 : i32} {
  // expected-error @+1 {{'ptx.wgmma_wait' op takes 0 to 7 pending groups, got 8}}
  ptx.wgmma_wait 8
}

// -----

ptx.kernel @coordinates(%map: !ptx.tmap) attributes {threads = 128 : i32} {
  %c = arith.constant 0 : i32
  // expected-error @+1 {{'ptx.tma_load' op takes 1 to 3 coordinates, got 4}}
  ptx.tma_load %c, %map[%c, %c, %c, %c], %c
}

// -----

ptx.kernel @storeCoordinates(%map: !ptx.tmap) attributes {threads = 128 : i32} {
  %c = arith.constant 0 : i32
  // expected-error @+1 {{'ptx.tma_store' op takes 1 to 3 coordinates, got 4}}
  ptx.tma_store %map[%c, %c, %c, %c], %c
}

// -----

ptx.kernel @bulkPending() attributes {threads = 128 : i32} {
  // expected-error @+1 {{'ptx.bulk_wait_read' op takes a number of pending groups, got -1}}
  ptx.bulk_wait_read -1
}

// -----

ptx.kernel @copyPending() attributes {threads = 128 : i32} {
  // expected-error @+1 {{'ptx.cp_async_wait' op takes a number of pending groups, got -2}}
  ptx.cp_async_wait -2
}

// -----

ptx.kernel @copyCache(%p: !ptx.ptr, %at: i64) attributes {threads = 128 : i32} {
  %c = arith.constant 0 : i32
  // expected-error @+1 {{'ptx.cp_async' op takes the cache operator ca or cg, got 'cs'}}
  ptx.cp_async %c, %p, %at {bytes = 16 : i32, cache = "cs"}
}

// -----

ptx.kernel @copyBytes(%p: !ptx.ptr, %at: i64) attributes {threads = 128 : i32} {
  %c = arith.constant 0 : i32
  // expected-error @+1 {{'ptx.cp_async' op copies 4, 8 or 16 bytes, got 12}}
  ptx.cp_async %c, %p, %at {bytes = 12 : i32, cache = "ca"}
}

// -----

ptx.kernel @copyCg(%p: !ptx.ptr, %at: i64) attributes {threads = 128 : i32} {
  %c = arith.constant 0 : i32
  // expected-error @+1 {{'ptx.cp_async' op copies 16 bytes with cg, got 8}}
  ptx.cp_async %c, %p, %at {bytes = 8 : i32, cache = "cg"}
}

// -----

ptx.kernel @matrices() attributes {threads = 128 : i32} {
  %words = ptx.regs : !ptx.regs<3xi32>
  %c = arith.constant 0 : i32
  // expected-error @+1 {{'ptx.ldmatrix' op takes a fragment of 1, 2 or 4 registers, got 3 in '!ptx.regs<3xi32>'}}
  ptx.ldmatrix %c, %words : !ptx.regs<3xi32>
}

// -----

ptx.kernel @mmaTypes() attributes {threads = 128 : i32} {
  %acc = ptx.regs : !ptx.regs<4xf32>
  %a = ptx.regs : !ptx.regs<4xi32>
  %b = ptx.regs : !ptx.regs<2xi32>
  // expected-error @+1 {{'ptx.mma' op takes operands of type e4m3 or e5m2, or both bf16, or both f16, got 'bf16' and 'f16'}}
  ptx.mma %acc, %a, %b {a_type = "bf16", b_type = "f16"} : !ptx.regs<4xf32>, !ptx.regs<4xi32>, !ptx.regs<2xi32>
}

// -----

ptx.kernel @mmaFragment() attributes {threads = 128 : i32} {
  %acc = ptx.regs : !ptx.regs<4xf32>
  %a = ptx.regs : !ptx.regs<4xi32>
  // expected-error @+1 {{'ptx.mma' op takes a fragment of 2 registers, got 4 in '!ptx.regs<4xi32>'}}
  ptx.mma %acc, %a, %a {a_type = "e4m3", b_type = "e4m3"} : !ptx.regs<4xf32>, !ptx.regs<4xi32>, !ptx.regs<4xi32>
}

// -----

ptx.kernel @mmaAccumulator() attributes {threads = 128 : i32} {
  %a = ptx.regs : !ptx.regs<4xi32>
  %b = ptx.regs : !ptx.regs<2xi32>
  // expected-error @+1 {{'ptx.mma' op takes registers of 'f32', got '!ptx.regs<4xi32>'}}
  ptx.mma %a, %a, %b {a_type = "f16", b_type = "f16"} : !ptx.regs<4xi32>, !ptx.regs<4xi32>, !ptx.regs<2xi32>
}

// -----

ptx.kernel @vector() attributes {threads = 128 : i32} {
  %words = ptx.regs : !ptx.regs<8xi32>
  %c = arith.constant 0 : i32
  // expected-error @+1 {{'ptx.ld_shared_v4' op takes a fragment of 4 registers, got 8 in '!ptx.regs<8xi32>'}}
  ptx.ld_shared_v4 %c, %words : !ptx.regs<8xi32>
}

// -----

ptx.kernel @step() attributes {threads = 128 : i32} {
  // expected-error @+1 {{'ptx.unroll' op counts up by a positive step, got 0 to 4 step 0}}
  ptx.unroll %i = 0 to 4 step 0 {
  }
}

// -----

ptx.kernel @tooLong() attributes {threads = 128 : i32} {
  // expected-error @+1 {{'ptx.unroll' op unrolls at most 1024 times, got 1025}}
  ptx.unroll %i = 0 to 2050 step 2 {
  }
}

// -----

ptx.kernel @type(%a: i32) attributes {threads = 128 : i32} {
  // expected-error @+1 {{'regs' must be mutable array of registers, of rank 1 or 2, but got 'i32'}}
  ptx.regs_set %a, %a[0] : i32
}

// -----

// expected-error @+1 {{'ptx.kernel' op returns nothing, got 1 results}}
ptx.kernel @result() -> i32 attributes {threads = 128 : i32} {
}

// -----

// expected-error @+1 {{'ptx.kernel' op requires attribute 'threads'}}
ptx.kernel @noThreads() {
}
