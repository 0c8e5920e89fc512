// The first of two grids: lets the second start at once, then takes its time by following x 96 times, and writes h.
ptx.kernel @gridFirst(%x: !ptx.ptr {ptx.name = "x"}, %h: !ptx.ptr {ptx.name = "h"})
    attributes {threads = 64 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %c64 = arith.constant 64 : i32
  %c96 = arith.constant 96 : i32
  %c4095 = arith.constant 4095 : i32
  ptx.griddepcontrol_launch_dependents
  %thread = ptx.thread_index {ptx.name = "thread"}
  %block = ptx.block_index {ptx.name = "block"}
  %before = arith.muli %block, %c64 : i32
  %index = arith.addi %before, %thread {ptx.name = "index"} : i32
  %last = scf.for %i = %c0 to %c96 step %c1 iter_args(%seen = %index) -> (i32) : i32 {
    %inside = arith.andi %seen, %c4095 : i32
    %place = arith.muli %inside, %c4 : i32
    %at = arith.extsi %place : i32 to i64
    %next = ptx.ld_global_i32 %x, %at {ptx.name = "next"}
    scf.yield %next : i32
  } {ptx.name = "i", ptx.names = ["seen"]}
  %bytes = arith.muli %index, %c4 : i32
  %to = arith.extsi %bytes : i32 to i64
  ptx.st_global_b32 %h, %to, %last
}
