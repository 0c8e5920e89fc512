// The second of two grids: mixes what the first has written for another block into y, which nobody else touches.
ptx.kernel @gridSecond(%h: !ptx.ptr {ptx.name = "h"}, %y: !ptx.ptr {ptx.name = "y"})
    attributes {threads = 64 : i32} {
  %c4 = arith.constant 4 : i32
  %c64 = arith.constant 64 : i32
  %c4095 = arith.constant 4095 : i32
  %thread = ptx.thread_index {ptx.name = "thread"}
  %block = ptx.block_index {ptx.name = "block"}
  %before = arith.muli %block, %c64 : i32
  %index = arith.addi %before, %thread {ptx.name = "index"} : i32
  %bytes = arith.muli %index, %c4 : i32
  %own = arith.extsi %bytes {ptx.name = "own"} : i32 to i64
  %old = ptx.ld_global_i32 %y, %own {ptx.name = "old"}
  ptx.griddepcontrol_wait
  %other = arith.xori %index, %c4095 : i32
  %otherBytes = arith.muli %other, %c4 : i32
  %at = arith.extsi %otherBytes : i32 to i64
  %word = ptx.ld_global_i32 %h, %at {ptx.name = "word"}
  %mixed = arith.xori %old, %word : i32
  ptx.st_global_b32 %y, %own, %mixed
}
