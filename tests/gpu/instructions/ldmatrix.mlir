// 64 threads put 1024 bytes of x into shared memory and load matrices of it in every form, rows in a mixed order.
// y: 16 words a thread, of which 14 are written.
ptx.kernel @ldmatrix(%x: !ptx.ptr {ptx.name = "x"}, %y: !ptx.ptr {ptx.name = "y"})
    attributes {threads = 64 : i32, shared_bytes = 1024 : i32} {
  %c4 = arith.constant 4 : i32
  %c7 = arith.constant 7 : i32
  %c16 = arith.constant 16 : i32
  %c63 = arith.constant 63 : i32
  %c64 = arith.constant 64 : i32
  %shared = ptx.shared_base {ptx.name = "shared"}
  %thread = ptx.thread_index {ptx.name = "thread"}
  %by16 = arith.muli %thread, %c16 : i32
  %at = arith.extsi %by16 : i32 to i64
  %words = ptx.regs {ptx.name = "words"} : !ptx.regs<4xi32>
  ptx.ld_global_v4 %x, %at, %words : !ptx.regs<4xi32>
  %dst = arith.addi %shared, %by16 : i32
  ptx.st_shared_v4 %dst, %words : !ptx.regs<4xi32>
  ptx.bar_sync 0, 64
  %times7 = arith.muli %thread, %c7 : i32
  %mixed = arith.andi %times7, %c63 : i32
  %row = arith.muli %mixed, %c16 : i32
  %address = arith.addi %shared, %row {ptx.name = "address"} : i32
  %singles = ptx.regs {ptx.name = "singles"} : !ptx.regs<2x1xi32>
  %pairs = ptx.regs {ptx.name = "pairs"} : !ptx.regs<2x2xi32>
  %fours = ptx.regs {ptx.name = "fours"} : !ptx.regs<2x4xi32>
  ptx.ldmatrix %address, %singles[0] : !ptx.regs<2x1xi32>
  ptx.ldmatrix %address, %singles[1] {trans} : !ptx.regs<2x1xi32>
  ptx.ldmatrix %address, %pairs[0] : !ptx.regs<2x2xi32>
  ptx.ldmatrix %address, %pairs[1] {trans} : !ptx.regs<2x2xi32>
  ptx.ldmatrix %address, %fours[0] : !ptx.regs<2x4xi32>
  ptx.ldmatrix %address, %fours[1] {trans} : !ptx.regs<2x4xi32>
  %by64 = arith.muli %thread, %c64 : i32
  %base = arith.extsi %by64 {ptx.name = "base"} : i32 to i64
  ptx.unroll %form = 0 to 2 {
    %four = arith.muli %form, %c4 : i32
    ptx.unroll %i = 0 to 4 {
      %which = arith.addi %four, %i : i32
      %offset = arith.muli %which, %c4 : i32
      %wide = arith.extsi %offset : i32 to i64
      %to = arith.addi %base, %wide : i64
      %word = ptx.regs_get %fours[%form, %i] : !ptx.regs<2x4xi32>
      ptx.st_global_b32 %y, %to, %word
    } {ptx.name = "i"}
    %c32 = arith.constant 32 : i32
    %c48 = arith.constant 48 : i32
    %c8 = arith.constant 8 : i32
    ptx.unroll %i = 0 to 2 {
      %eights = arith.muli %form, %c8 : i32
      %inside = arith.muli %i, %c4 : i32
      %offset = arith.addi %eights, %inside : i32
      %behind = arith.addi %offset, %c32 : i32
      %wide = arith.extsi %behind : i32 to i64
      %to = arith.addi %base, %wide : i64
      %word = ptx.regs_get %pairs[%form, %i] : !ptx.regs<2x2xi32>
      ptx.st_global_b32 %y, %to, %word
    } {ptx.name = "i"}
    %inside = arith.muli %form, %c4 : i32
    %behind = arith.addi %inside, %c48 : i32
    %wide = arith.extsi %behind : i32 to i64
    %to = arith.addi %base, %wide : i64
    %word = ptx.regs_get %singles[%form, 0] : !ptx.regs<2x1xi32>
    ptx.st_global_b32 %y, %to, %word
  } {ptx.name = "form"}
}
