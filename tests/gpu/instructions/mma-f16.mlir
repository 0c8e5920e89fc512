// Eight warps multiply fragments of f16.
// x: of each of 256 threads four registers of A, then two of B in 32 bytes, then its accumulators in 16 bytes.
// y: the accumulators of each form, 16 bytes a thread.
ptx.kernel @mmaF16(%x: !ptx.ptr {ptx.name = "x"}, %y: !ptx.ptr {ptx.name = "y"})
    attributes {threads = 256 : i32} {
  %c4 = arith.constant 4 : i32
  %c16 = arith.constant 16 : i32
  %c48 = arith.constant 48 : i32
  %c16x = arith.constant 16 : i32
  %thread = ptx.thread_index {ptx.name = "thread"}
  %by48 = arith.muli %thread, %c48 : i32
  %from = arith.extsi %by48 {ptx.name = "from"} : i32 to i64
  %a = ptx.regs {ptx.name = "a"} : !ptx.regs<4xi32>
  %b4 = ptx.regs {ptx.name = "bWords"} : !ptx.regs<4xi32>
  %b = ptx.regs {ptx.name = "b"} : !ptx.regs<2xi32>
  %start = ptx.regs {ptx.name = "start"} : !ptx.regs<4xi32>
  %acc = ptx.regs {ptx.name = "acc"} : !ptx.regs<1x4xf32>
  %l16 = arith.constant 16 : i64
  %l32 = arith.constant 32 : i64
  %fromB = arith.addi %from, %l16 : i64
  %fromD = arith.addi %from, %l32 : i64
  ptx.ld_global_v4 %x, %from, %a : !ptx.regs<4xi32>
  ptx.ld_global_v4 %x, %fromB, %b4 : !ptx.regs<4xi32>
  ptx.ld_global_v4 %x, %fromD, %start : !ptx.regs<4xi32>
  ptx.unroll %i = 0 to 2 {
    %word = ptx.regs_get %b4[%i] : !ptx.regs<4xi32>
    ptx.regs_set %word, %b[%i] : !ptx.regs<2xi32>
  } {ptx.name = "i"}
  ptx.unroll %i = 0 to 4 {
    %bits = ptx.regs_get %start[%i] : !ptx.regs<4xi32>
    %value = ptx.float_bits %bits {ptx.name = "value"}
    ptx.unroll %form = 0 to 1 {
      ptx.regs_set %value, %acc[%form, %i] : !ptx.regs<1x4xf32>
    } {ptx.name = "form"}
  } {ptx.name = "i"}
  ptx.mma %acc[0], %a, %b {a_type = "f16", b_type = "f16"}
      : !ptx.regs<1x4xf32>, !ptx.regs<4xi32>, !ptx.regs<2xi32>
  %byForms = arith.muli %thread, %c16x : i32
  %base = arith.extsi %byForms {ptx.name = "base"} : i32 to i64
  ptx.unroll %form = 0 to 1 {
    ptx.unroll %i = 0 to 4 {
      %inForm = arith.muli %i, %c4 : i32
      %before = arith.muli %form, %c16 : i32
      %offset = arith.addi %before, %inForm : i32
      %wide = arith.extsi %offset : i32 to i64
      %to = arith.addi %base, %wide : i64
      %value = ptx.regs_get %acc[%form, %i] : !ptx.regs<1x4xf32>
      ptx.st_global_f32 %y, %to, %value
    } {ptx.name = "i"}
  } {ptx.name = "form"}
}
