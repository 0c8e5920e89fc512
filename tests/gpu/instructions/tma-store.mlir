// 64 threads put 8192 bytes of x into shared memory; one stores them by three tensor maps, and when it has waited, all
// read what the second has written. z: the words of y2 that thread t reads, every 256 bytes.
ptx.kernel @tmaStore(%map1: !ptx.tmap {ptx.name = "map1"}, %map2: !ptx.tmap {ptx.name = "map2"},
                     %map3: !ptx.tmap {ptx.name = "map3"}, %x: !ptx.ptr {ptx.name = "x"}, %y2: !ptx.ptr {ptx.name = "y2"},
                     %z: !ptx.ptr {ptx.name = "z"}, %column: i32 {ptx.name = "column"}, %row: i32 {ptx.name = "row"},
                     %plane: i32 {ptx.name = "plane"})
    attributes {threads = 64 : i32, shared_bytes = 8192 : i32} {
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  %c16 = arith.constant 16 : i32
  %c256 = arith.constant 256 : i32
  %c1024 = arith.constant 1024 : i32
  %c2048 = arith.constant 2048 : i32
  %c4096 = arith.constant 4096 : i32
  %shared = ptx.shared_base {ptx.name = "shared"}
  %thread = ptx.thread_index {ptx.name = "thread"}
  %by16 = arith.muli %thread, %c16 : i32
  %words = ptx.regs {ptx.name = "words"} : !ptx.regs<4xi32>
  ptx.unroll %i = 0 to 8 {
    %step = arith.muli %i, %c1024 : i32
    %place = arith.addi %step, %by16 : i32
    %at = arith.extsi %place : i32 to i64
    ptx.ld_global_v4 %x, %at, %words : !ptx.regs<4xi32>
    %dst = arith.addi %shared, %place : i32
    ptx.st_shared_v4 %dst, %words : !ptx.regs<4xi32>
  } {ptx.name = "i"}
  ptx.fence_proxy_async
  ptx.bar_sync 0, 64
  %isFirst = arith.cmpi eq, %thread, %c0 : i32
  scf.if %isFirst {
    ptx.tma_store %map1[%column], %shared
    ptx.bulk_commit
    %second = arith.addi %shared, %c4096 : i32
    ptx.tma_store %map2[%column, %row], %second
    ptx.bulk_commit
    %third = arith.addi %shared, %c2048 : i32
    ptx.tma_store %map3[%column, %row, %plane], %third
    ptx.bulk_commit
    ptx.bulk_wait_read 0
    ptx.bulk_wait 1
  }
  ptx.bar_sync 0, 64
  %by4 = arith.muli %thread, %c4 : i32
  ptx.unroll %i = 0 to 16 {
    %step = arith.muli %i, %c256 : i32
    %place = arith.addi %step, %by4 : i32
    %at = arith.extsi %place : i32 to i64
    %word = ptx.ld_global_i32 %y2, %at {ptx.name = "word"}
    ptx.st_global_b32 %z, %at, %word
  } {ptx.name = "i"}
}
