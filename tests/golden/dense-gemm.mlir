// y[128, 128] = x[128, 7168] · w[128, 7168]^T for one block: a producer warp, a ring of four slots, two warpgroups.
// A slot is 16 KiB of x, then 16 KiB of w; behind the ring stand four full and four empty barriers.
ptx.kernel @denseGemm(%xMap: !ptx.tmap {ptx.name = "xMap"}, %wMap: !ptx.tmap {ptx.name = "wMap"},
                      %y: !ptx.ptr {ptx.name = "y"}, %yStride: i64 {ptx.name = "yStride"})
    attributes {threads = 384 : i32, shared_bytes = 131136 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %c4 = arith.constant 4 : i32
  %c8 = arith.constant 8 : i32
  %c16 = arith.constant 16 : i32
  %c31 = arith.constant 31 : i32
  %c32 = arith.constant 32 : i32
  %c56 = arith.constant 56 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %c256 = arith.constant 256 : i32
  %c8192 = arith.constant 8192 : i32
  %c16384 = arith.constant 16384 : i32
  %slotBytes = arith.constant 32768 : i32
  %ringBytes = arith.constant 131072 : i32
  %descriptorBits = arith.constant 65536 : i32
  %shared = ptx.shared_base {ptx.name = "shared"}
  %thread = ptx.thread_index {ptx.name = "thread"}
  %fullBarriers = arith.addi %shared, %ringBytes {ptx.name = "fullBarriers"} : i32
  %emptyBarriers = arith.addi %fullBarriers, %c32 {ptx.name = "emptyBarriers"} : i32
  %isFirst = arith.cmpi eq, %thread, %c0 : i32
  scf.if %isFirst {
    ptx.unroll %i = 0 to 4 {
      %o = arith.muli %i, %c8 : i32
      %f = arith.addi %fullBarriers, %o : i32
      ptx.mbarrier_init %f, %c1
      %e = arith.addi %emptyBarriers, %o : i32
      ptx.mbarrier_init %e, %c8
    } {ptx.name = "i"}
    ptx.fence_mbarrier_init
  }
  ptx.bar_sync 0, 384
  %group = arith.divsi %thread, %c128 : i32
  %warpgroup = ptx.shfl_idx %group, %c0 {ptx.name = "warpgroup"}
  %isProducer = arith.cmpi eq, %warpgroup, %c2 : i32
  scf.if %isProducer {
    ptx.setmaxnreg_dec 40
    %leader = arith.cmpi eq, %thread, %c256 : i32
    scf.if %leader {
      %r:2 = scf.for %k = %c0 to %c56 step %c1 iter_args(%stage = %c0, %phase = %c1) -> (i32, i32) : i32 {
        %o = arith.muli %stage, %c8 : i32
        %empty = arith.addi %emptyBarriers, %o : i32
        ptx.mbarrier_wait %empty, %phase
        %full = arith.addi %fullBarriers, %o {ptx.name = "full"} : i32
        ptx.mbarrier_expect_tx %full, %slotBytes
        %so = arith.muli %stage, %slotBytes : i32
        %slot = arith.addi %shared, %so {ptx.name = "slot"} : i32
        %column = arith.muli %k, %c128 {ptx.name = "column"} : i32
        ptx.tma_load %slot, %xMap[%column, %c0], %full
        %w = arith.addi %slot, %c16384 : i32
        ptx.tma_load %w, %wMap[%column, %c0], %full
        %next = arith.addi %stage, %c1 : i32
        %wraps = arith.cmpi eq, %next, %c4 {ptx.name = "wraps"} : i32
        %stage1 = arith.select %wraps, %c0, %next : i32
        %flipped = arith.xori %phase, %c1 : i32
        %phase1 = arith.select %wraps, %flipped, %phase : i32
        scf.yield %stage1, %phase1 : i32, i32
      } {ptx.name = "kBlock", ptx.names = ["stage", "phase"]}
    }
  } else {
    ptx.setmaxnreg_inc 232
    %lane = arith.andi %thread, %c31 {ptx.name = "lane"} : i32
    %inGroup = arith.remsi %thread, %c128 {ptx.name = "inGroup"} : i32
    %releases = arith.cmpi eq, %lane, %c0 {ptx.name = "releases"} : i32
    %sum = ptx.regs {ptx.name = "sum"} : !ptx.regs<64xf32>
    %acc = ptx.regs {ptx.name = "acc"} : !ptx.regs<64xf32>
    %zero = ptx.constant_f32 0.0
    ptx.unroll %i = 0 to 64 {
      ptx.regs_set %zero, %sum[%i] : !ptx.regs<64xf32>
    } {ptx.name = "i"}
    %rows = arith.muli %warpgroup, %c8192 {ptx.name = "rowsOffset"} : i32
    %r:2 = scf.for %k = %c0 to %c56 step %c1 iter_args(%stage = %c0, %phase = %c0) -> (i32, i32) : i32 {
      %o = arith.muli %stage, %c8 {ptx.name = "barrier"} : i32
      %full = arith.addi %fullBarriers, %o : i32
      ptx.mbarrier_wait %full, %phase
      %so = arith.muli %stage, %slotBytes : i32
      %slot = arith.addi %shared, %so {ptx.name = "slot"} : i32
      %x = arith.addi %slot, %rows : i32
      %xs = arith.shrsi %x, %c4 : i32
      %descX = arith.ori %xs, %descriptorBits {ptx.name = "descX"} : i32
      %w = arith.addi %slot, %c16384 : i32
      %ws = arith.shrsi %w, %c4 : i32
      %descW = arith.ori %ws, %descriptorBits {ptx.name = "descW"} : i32
      ptx.regs_pin %acc : !ptx.regs<64xf32>
      ptx.wgmma_fence
      ptx.unroll %i = 0 to 4 {
        %step = arith.muli %i, %c2 : i32
        %dx = arith.addi %descX, %step : i32
        %dw = arith.addi %descW, %step : i32
        %isLater = arith.cmpi sgt, %i, %c0 : i32
        %accumulate = arith.extui %isLater : i1 to i32
        ptx.wgmma %acc, %dx, %dw, %accumulate {n = 128 : i32, a = "e4m3", b = "e4m3"} : !ptx.regs<64xf32>
      } {ptx.name = "i"}
      ptx.wgmma_commit
      ptx.wgmma_wait 0
      ptx.regs_pin %acc : !ptx.regs<64xf32>
      scf.if %releases {
        %empty = arith.addi %emptyBarriers, %o : i32
        ptx.mbarrier_arrive %empty
      }
      ptx.unroll %i = 0 to 64 {
        %s = ptx.regs_get %sum[%i] : !ptx.regs<64xf32>
        %t = ptx.regs_get %acc[%i] : !ptx.regs<64xf32>
        %n = ptx.add_f32 %s, %t
        ptx.regs_set %n, %sum[%i] : !ptx.regs<64xf32>
      } {ptx.name = "i"}
      %next = arith.addi %stage, %c1 : i32
      %wraps = arith.cmpi eq, %next, %c4 {ptx.name = "wraps"} : i32
      %stage1 = arith.select %wraps, %c0, %next : i32
      %flipped = arith.xori %phase, %c1 : i32
      %phase1 = arith.select %wraps, %flipped, %phase : i32
      scf.yield %stage1, %phase1 : i32, i32
    } {ptx.name = "kBlock", ptx.names = ["stage", "phase"]}
    %warp = arith.divsi %inGroup, %c32 : i32
    %warpRow = arith.muli %warp, %c16 : i32
    %groupRow = arith.muli %warpgroup, %c64 : i32
    %quad = arith.divsi %lane, %c4 : i32
    %row0 = arith.addi %groupRow, %warpRow : i32
    %row = arith.addi %row0, %quad {ptx.name = "row"} : i32
    %inQuad = arith.remsi %lane, %c4 : i32
    %columnBytes = arith.muli %inQuad, %c4 {ptx.name = "columnBytes"} : i32
    %wideRow = arith.extsi %row : i32 to i64
    %rowOffset = arith.muli %wideRow, %yStride : i64
    %wideColumn = arith.extsi %columnBytes : i32 to i64
    %start = arith.addi %rowOffset, %wideColumn {ptx.name = "start"} : i64
    %l8 = arith.constant 8 : i64
    %eightRows = arith.muli %yStride, %l8 : i64
    %below = arith.addi %start, %eightRows {ptx.name = "below"} : i64
    ptx.unroll %j = 0 to 64 step 4 {
      %bytes = arith.muli %j, %c4 : i32
      %wideBytes = arith.extsi %bytes {ptx.name = "bytes"} : i32 to i64
      %j1 = arith.addi %j, %c1 : i32
      %j2 = arith.addi %j, %c2 : i32
      %j3 = arith.addi %j, %c3 : i32
      %v0 = ptx.regs_get %sum[%j] : !ptx.regs<64xf32>
      %v1 = ptx.regs_get %sum[%j1] : !ptx.regs<64xf32>
      %upper = ptx.cvt_bf16x2_f32 %v0, %v1
      %upperOffset = arith.addi %start, %wideBytes : i64
      ptx.st_global_b32 %y, %upperOffset, %upper
      %v2 = ptx.regs_get %sum[%j2] : !ptx.regs<64xf32>
      %v3 = ptx.regs_get %sum[%j3] : !ptx.regs<64xf32>
      %lower = ptx.cvt_bf16x2_f32 %v2, %v3
      %lowerOffset = arith.addi %below, %wideBytes : i64
      ptx.st_global_b32 %y, %lowerOffset, %lower
    } {ptx.name = "j"}
  }
}
