// Integer arithmetic reads as C++ with no more parentheses than needed, and means what arith says.
// RUN: ptx-emit --ptx-to-cuda --split-input-file %s | FileCheck %s
// RUN: ptx-emit --ptx-to-binary --split-input-file %s | FileCheck %s --check-prefix=BINARY
// BINARY-COUNT-6: // cubin made

// Precedence on i32.
// CHECK-LABEL: moejit_kernel(int a, int b, int c, void *out)
ptx.kernel @precedence(%a: i32 {ptx.name = "a"}, %b: i32 {ptx.name = "b"}, %c: i32 {ptx.name = "c"},
                       %out: !ptx.ptr {ptx.name = "out"}) attributes {threads = 32 : i32} {
  %l0 = arith.constant 0 : i64
  %c2 = arith.constant 2 : i32
  %m3 = arith.constant -3 : i32
  %least = arith.constant -2147483648 : i32
  // CHECK: st_global_b32(out, 0ll, (a + b) * c);
  %0 = arith.addi %a, %b : i32
  %1 = arith.muli %0, %c : i32
  ptx.st_global_b32 %out, %l0, %1
  // CHECK: st_global_b32(out, 0ll, a - (b - c));
  %2 = arith.subi %b, %c : i32
  %3 = arith.subi %a, %2 : i32
  ptx.st_global_b32 %out, %l0, %3
  // CHECK: st_global_b32(out, 0ll, a - b - c);
  %4 = arith.subi %a, %b : i32
  %5 = arith.subi %4, %c : i32
  ptx.st_global_b32 %out, %l0, %5
  // CHECK: st_global_b32(out, 0ll, a / (b * c) % 2);
  %6 = arith.muli %b, %c : i32
  %7 = arith.divsi %a, %6 : i32
  %8 = arith.remsi %7, %c2 : i32
  ptx.st_global_b32 %out, %l0, %8
  // CHECK: st_global_b32(out, 0ll, a - 3);
  %9 = arith.addi %a, %m3 : i32
  ptx.st_global_b32 %out, %l0, %9
  // CHECK: st_global_b32(out, 0ll, a * -3);
  %10 = arith.muli %a, %m3 : i32
  ptx.st_global_b32 %out, %l0, %10
  // CHECK: st_global_b32(out, 0ll, a - (-2147483647 - 1));
  %11 = arith.subi %a, %least : i32
  ptx.st_global_b32 %out, %l0, %11
  // CHECK: st_global_b32(out, 0ll, a + (-2147483647 - 1));
  %12 = arith.addi %a, %least : i32
  ptx.st_global_b32 %out, %l0, %12
  // CHECK: st_global_b32(out, 0ll, ((a + b) >> 2) | (c & 2 & b));
  %13 = arith.addi %a, %b : i32
  %14 = arith.shrsi %13, %c2 : i32
  %15 = arith.andi %c, %c2 : i32
  %16 = arith.andi %15, %b : i32
  %17 = arith.ori %14, %16 : i32
  ptx.st_global_b32 %out, %l0, %17
  // CHECK: st_global_b32(out, 0ll, (a ^ b) + (c << 2));
  %18 = arith.xori %a, %b : i32
  %19 = arith.shli %c, %c2 : i32
  %20 = arith.addi %18, %19 : i32
  ptx.st_global_b32 %out, %l0, %20
}

// -----

// Unsigned operations are casts around C++'s; a constant is an unsigned literal.
// CHECK-LABEL: moejit_kernel(int a, int b, long long d, void *out)
ptx.kernel @unsigned(%a: i32 {ptx.name = "a"}, %b: i32 {ptx.name = "b"}, %d: i64 {ptx.name = "d"},
                     %out: !ptx.ptr {ptx.name = "out"}) attributes {threads = 32 : i32} {
  %l0 = arith.constant 0 : i64
  %l9 = arith.constant -9 : i64
  %c7 = arith.constant 7 : i32
  // CHECK: st_global_b32(out, 0ll, (int)((unsigned)a / 7u));
  %0 = arith.divui %a, %c7 : i32
  ptx.st_global_b32 %out, %l0, %0
  // CHECK: st_global_b32(out, 0ll, (int)((unsigned)(a + b) % (unsigned)b));
  %1 = arith.addi %a, %b : i32
  %2 = arith.remui %1, %b : i32
  ptx.st_global_b32 %out, %l0, %2
  // CHECK: st_global_b32(out, 0ll, (int)((unsigned)a >> 7));
  %3 = arith.shrui %a, %c7 : i32
  ptx.st_global_b32 %out, %l0, %3
  // CHECK: if ((unsigned)a < (unsigned)b) {
  %4 = arith.cmpi ult, %a, %b : i32
  scf.if %4 {
    ptx.syncwarp
  }
  // CHECK: if ((unsigned long long)d >= 18446744073709551607ull) {
  %5 = arith.cmpi uge, %d, %l9 : i64
  scf.if %5 {
    ptx.syncwarp
  }
}

// -----

// Widths: literals of i64 carry theirs, conversions are casts.
// CHECK-LABEL: moejit_kernel(int a, long long d, void *out)
ptx.kernel @widths(%a: i32 {ptx.name = "a"}, %d: i64 {ptx.name = "d"}, %out: !ptx.ptr {ptx.name = "out"})
    attributes {threads = 32 : i32} {
  %l0 = arith.constant 0 : i64
  %l2 = arith.constant 2 : i64
  %l65536 = arith.constant 65536 : i64
  %least = arith.constant -9223372036854775808 : i64
  %c0 = arith.constant 0 : i32
  // CHECK: st_global_b32(out, (long long)a * d + 65536ll * 65536ll, 0);
  %0 = arith.extsi %a : i32 to i64
  %1 = arith.muli %0, %d : i64
  %2 = arith.muli %l65536, %l65536 : i64
  %3 = arith.addi %1, %2 : i64
  ptx.st_global_b32 %out, %3, %c0
  // CHECK: st_global_b32(out, (long long)(unsigned)a, (int)(d - 2ll));
  %4 = arith.extui %a : i32 to i64
  %5 = arith.subi %d, %l2 : i64
  %6 = arith.trunci %5 : i64 to i32
  ptx.st_global_b32 %out, %4, %6
  // CHECK: if (d != -9223372036854775807ll - 1) {
  %7 = arith.cmpi ne, %d, %least : i64
  scf.if %7 {
    ptx.syncwarp
  }
}

// -----

// Logic on i1.
// CHECK-LABEL: moejit_kernel(int a, int b, void *out)
ptx.kernel @logic(%a: i32 {ptx.name = "a"}, %b: i32 {ptx.name = "b"}, %out: !ptx.ptr {ptx.name = "out"})
    attributes {threads = 32 : i32} {
  %l0 = arith.constant 0 : i64
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %true = arith.constant true
  // CHECK: const bool positive = a > 0;
  %p = arith.cmpi sgt, %a, %c0 {ptx.name = "positive"} : i32
  %q = arith.cmpi sgt, %b, %c0 {ptx.name = "other"} : i32
  // CHECK: if (positive && (other || a < b)) {
  %0 = arith.cmpi slt, %a, %b : i32
  %1 = arith.ori %q, %0 : i1
  %2 = arith.andi %p, %1 : i1
  scf.if %2 {
    ptx.syncwarp
  }
  // CHECK: if (!positive || positive != other) {
  %3 = arith.xori %p, %true : i1
  %4 = arith.xori %p, %q : i1
  %5 = arith.ori %3, %4 : i1
  scf.if %5 {
    ptx.syncwarp
  }
  // CHECK: st_global_b32(out, 0ll, (int)positive + -(int)other);
  %6 = arith.extui %p : i1 to i32
  %7 = arith.extsi %q : i1 to i32
  %8 = arith.addi %6, %7 : i32
  ptx.st_global_b32 %out, %l0, %8
  // CHECK: if ((a & 1) != 0 && positive == other) {
  %9 = arith.trunci %a : i32 to i1
  %10 = arith.cmpi eq, %p, %q : i1
  %11 = arith.andi %9, %10 : i1
  scf.if %11 {
    ptx.syncwarp
  }
  // CHECK: st_global_b32(out, 0ll, positive ? a : (other ? b : 1));
  %12 = arith.select %q, %b, %c1 : i32
  %13 = arith.select %p, %a, %12 : i32
  ptx.st_global_b32 %out, %l0, %13
}

// -----

// Minimum, maximum and rounding up repeat their operands, which are variables then; rounding up is exact for any sign.
// CHECK-LABEL: moejit_kernel(int a, int b, void *out)
ptx.kernel @repeats(%a: i32 {ptx.name = "a"}, %b: i32 {ptx.name = "b"}, %out: !ptx.ptr {ptx.name = "out"})
    attributes {threads = 32 : i32} {
  %l0 = arith.constant 0 : i64
  %c128 = arith.constant 128 : i32
  // CHECK: const int v0 = a - b;
  // CHECK-NEXT: st_global_b32(out, 0ll, v0 < 128 ? v0 : 128);
  %0 = arith.subi %a, %b : i32
  %1 = arith.minsi %0, %c128 : i32
  ptx.st_global_b32 %out, %l0, %1
  // CHECK: st_global_b32(out, 0ll, (a > b ? a : b) + 128);
  %2 = arith.maxsi %a, %b : i32
  %3 = arith.addi %2, %c128 : i32
  ptx.st_global_b32 %out, %l0, %3
  // CHECK: st_global_b32(out, 0ll, a / 128 + (a % 128 > 0));
  %4 = arith.ceildivsi %a, %c128 : i32
  ptx.st_global_b32 %out, %l0, %4
  // CHECK: st_global_b32(out, 0ll, a / b + (a % b != 0 && (a % b > 0) == (b > 0)));
  %5 = arith.ceildivsi %a, %b : i32
  ptx.st_global_b32 %out, %l0, %5
}

// -----

// What is read late is read by name: a register is inlined only where nothing writes in between, and a value with two
// uses, a name or a use in another block is a variable.
// CHECK-LABEL: moejit_kernel(int a)
ptx.kernel @inlining(%a: i32 {ptx.name = "a"}) attributes {threads = 32 : i32} {
  %c1 = arith.constant 1 : i32
  // CHECK: int words[4];
  %words = ptx.regs {ptx.name = "words"} : !ptx.regs<4xi32>
  // CHECK-NEXT: words[0] = a;
  ptx.regs_set %a, %words[0] : !ptx.regs<4xi32>
  // CHECK-NEXT: const int v0 = words[0];
  // CHECK-NEXT: words[0] = 1;
  // CHECK-NEXT: words[1] = v0;
  %0 = ptx.regs_get %words[0] : !ptx.regs<4xi32>
  ptx.regs_set %c1, %words[0] : !ptx.regs<4xi32>
  ptx.regs_set %0, %words[1] : !ptx.regs<4xi32>
  // CHECK-NEXT: words[2] = words[1] + words[0];
  %1 = ptx.regs_get %words[1] : !ptx.regs<4xi32>
  %2 = ptx.regs_get %words[0] : !ptx.regs<4xi32>
  %3 = arith.addi %1, %2 : i32
  ptx.regs_set %3, %words[2] : !ptx.regs<4xi32>
  // CHECK-NEXT: const int v1 = words[2];
  // CHECK-NEXT: ld_shared_v4(a, words);
  // CHECK-NEXT: st_shared_i32(a, v1 + 1);
  %4 = ptx.regs_get %words[2] : !ptx.regs<4xi32>
  %5 = arith.addi %4, %c1 : i32
  ptx.ld_shared_v4 %a, %words : !ptx.regs<4xi32>
  ptx.st_shared_i32 %a, %5
  // CHECK-NEXT: const int twice = a + a;
  // CHECK-NEXT: st_shared_i32(a, twice);
  %6 = arith.addi %a, %a {ptx.name = "twice"} : i32
  ptx.st_shared_i32 %a, %6
  // CHECK-NEXT: const int v2 = a - 1;
  // CHECK-NEXT: if (a == 1) {
  // CHECK-NEXT: st_shared_i32(a, v2);
  %7 = arith.subi %a, %c1 : i32
  %8 = arith.cmpi eq, %a, %c1 : i32
  scf.if %8 {
    ptx.st_shared_i32 %a, %7
  }
  // A long expression is split.
  // CHECK: const int v3 = (((a + 1) * a + 1) * a + 1) * a;
  // CHECK-NEXT: st_shared_i32(a, (v3 + 1) * a + 1);
  %9 = arith.addi %a, %c1 : i32
  %10 = arith.muli %9, %a : i32
  %11 = arith.addi %10, %c1 : i32
  %12 = arith.muli %11, %a : i32
  %13 = arith.addi %12, %c1 : i32
  %14 = arith.muli %13, %a : i32
  %15 = arith.addi %14, %c1 : i32
  %16 = arith.muli %15, %a : i32
  %17 = arith.addi %16, %c1 : i32
  ptx.st_shared_i32 %a, %17
}
