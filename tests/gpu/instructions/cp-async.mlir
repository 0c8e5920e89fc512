// 64 threads copy x to shared memory by every form of cp.async, in three groups, and write the image of it to y.
// x: 1024 bytes by 16, 256 by 4, 512 by 8, then at 2048 how many bytes each thread copies, at 4096 what.
// y: a word of each thread's own first group, then 3072 bytes of shared memory.
ptx.kernel @cpAsync(%x: !ptx.ptr {ptx.name = "x"}, %y: !ptx.ptr {ptx.name = "y"})
    attributes {threads = 64 : i32, shared_bytes = 3072 : i32} {
  %c3 = arith.constant 3 : i32
  %c4 = arith.constant 4 : i32
  %c5 = arith.constant 5 : i32
  %c8 = arith.constant 8 : i32
  %c16 = arith.constant 16 : i32
  %c63 = arith.constant 63 : i32
  %c256 = arith.constant 256 : i32
  %c1024 = arith.constant 1024 : i32
  %c1280 = arith.constant 1280 : i32
  %c1792 = arith.constant 1792 : i32
  %c2048 = arith.constant 2048 : i32
  %c2816 = arith.constant 2816 : i32
  %c4096 = arith.constant 4096 : i32
  %shared = ptx.shared_base {ptx.name = "shared"}
  %thread = ptx.thread_index {ptx.name = "thread"}
  %by4 = arith.muli %thread, %c4 {ptx.name = "by4"} : i32
  %by8 = arith.muli %thread, %c8 : i32
  %by16 = arith.muli %thread, %c16 {ptx.name = "by16"} : i32

  %dst16 = arith.addi %shared, %by16 {ptx.name = "first"} : i32
  %src16 = arith.extsi %by16 : i32 to i64
  ptx.cp_async %dst16, %x, %src16 {bytes = 16 : i32, cache = "cg"}
  ptx.cp_async_commit

  %mixed5 = arith.muli %thread, %c5 : i32
  %from5 = arith.andi %mixed5, %c63 : i32
  %word = arith.muli %from5, %c4 : i32
  %at4 = arith.addi %word, %c1024 : i32
  %src4 = arith.extsi %at4 : i32 to i64
  %place4 = arith.addi %by4, %c1024 : i32
  %dst4 = arith.addi %shared, %place4 : i32
  ptx.cp_async %dst4, %x, %src4 {bytes = 4 : i32, cache = "ca"}
  %mixed3 = arith.muli %thread, %c3 : i32
  %from3 = arith.andi %mixed3, %c63 : i32
  %pair = arith.muli %from3, %c8 : i32
  %at8 = arith.addi %pair, %c1280 : i32
  %src8 = arith.extsi %at8 : i32 to i64
  %place8 = arith.addi %by8, %c1280 : i32
  %dst8 = arith.addi %shared, %place8 : i32
  ptx.cp_async %dst8, %x, %src8 {bytes = 8 : i32, cache = "ca"}
  ptx.cp_async_commit

  %sizeAt = arith.addi %by4, %c2048 : i32
  %sizeFrom = arith.extsi %sizeAt : i32 to i64
  %size = ptx.ld_global_i32 %x, %sizeFrom {ptx.name = "size"}
  %small = arith.andi %size, %c3 : i32
  %sizedAt = arith.addi %by16, %c4096 : i32
  %sizedFrom = arith.extsi %sizedAt : i32 to i64
  %sizedPlace = arith.addi %by16, %c1792 : i32
  %sizedDst = arith.addi %shared, %sizedPlace : i32
  ptx.cp_async %sizedDst, %x, %sizedFrom size %size {bytes = 16 : i32, cache = "ca"}
  %smallPlace = arith.addi %by4, %c2816 : i32
  %smallDst = arith.addi %shared, %smallPlace : i32
  ptx.cp_async %smallDst, %x, %sizedFrom size %small {bytes = 4 : i32, cache = "ca"}
  // Not committed: the last wait is for all.

  ptx.cp_async_wait 1
  %own = arith.addi %dst16, %c4 : i32
  %ownWord = ptx.ld_shared_i32 %own {ptx.name = "ownWord"}
  %yAt = arith.extsi %by4 {ptx.name = "yAt"} : i32 to i64
  ptx.st_global_b32 %y, %yAt, %ownWord
  ptx.cp_async_wait_all
  ptx.bar_sync 0, 64
  ptx.unroll %i = 0 to 12 {
    %step = arith.muli %i, %c256 : i32
    %place = arith.addi %step, %by4 : i32
    %address = arith.addi %shared, %place : i32
    %image = ptx.ld_shared_i32 %address {ptx.name = "image"}
    %behind = arith.addi %place, %c256 : i32
    %to = arith.extsi %behind : i32 to i64
    ptx.st_global_b32 %y, %to, %image
  } {ptx.name = "i"}
}
