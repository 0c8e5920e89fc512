// 64 threads copy 16 bytes each, and an mbarrier tells that all have landed: y is x with the threads in reverse order.
ptx.kernel @cpAsyncBarrier(%x: !ptx.ptr {ptx.name = "x"}, %y: !ptx.ptr {ptx.name = "y"})
    attributes {threads = 64 : i32, shared_bytes = 2048 : i32} {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %c63 = arith.constant 63 : i32
  %c64 = arith.constant 64 : i32
  %c1024 = arith.constant 1024 : i32
  %shared = ptx.shared_base {ptx.name = "shared"}
  %thread = ptx.thread_index {ptx.name = "thread"}
  %barrier = arith.addi %shared, %c1024 {ptx.name = "barrier"} : i32
  %isFirst = arith.cmpi eq, %thread, %c0 : i32
  scf.if %isFirst {
    ptx.mbarrier_init %barrier, %c64
  }
  ptx.bar_sync 0, 64
  %by16 = arith.muli %thread, %c16 {ptx.name = "by16"} : i32
  %dst = arith.addi %shared, %by16 : i32
  %at = arith.extsi %by16 {ptx.name = "at"} : i32 to i64
  ptx.cp_async %dst, %x, %at {bytes = 16 : i32, cache = "cg"}
  ptx.cp_async_arrive %barrier
  ptx.mbarrier_wait %barrier, %c0
  %other = arith.xori %thread, %c63 : i32
  %otherBy16 = arith.muli %other, %c16 : i32
  %from = arith.addi %shared, %otherBy16 : i32
  %words = ptx.regs {ptx.name = "words"} : !ptx.regs<4xi32>
  ptx.ld_shared_v4 %from, %words : !ptx.regs<4xi32>
  ptx.st_global_v4 %y, %at, %words : !ptx.regs<4xi32>
}
