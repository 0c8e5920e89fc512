// Loops and branches become C++ loops and branches; what they carry becomes mutable variables.
// RUN: ptx-emit --ptx-to-cuda --split-input-file %s | FileCheck %s
// RUN: ptx-emit --ptx-to-binary --split-input-file %s | FileCheck %s --check-prefix=BINARY
// BINARY-COUNT-9: // cubin made

// A for loop: parallel assignment needs no help where the order of assignments can be chosen.
// CHECK-LABEL: moejit_kernel(void *out, int rows) {
// CHECK-NEXT:    int stage = 0;
// CHECK-NEXT:    int previous = 7;
// CHECK-NEXT:    for (int k = 0; k < rows; ++k) {
// CHECK-NEXT:      st_global_b32(out, (long long)k, previous);
// CHECK-NEXT:      previous = stage;
// CHECK-NEXT:      stage = stage + k;
// CHECK-NEXT:    }
// CHECK-NEXT:    st_global_b32(out, 0ll, stage);
// CHECK-NEXT:    st_global_b32(out, 8ll, previous);
// CHECK-NEXT:  }
ptx.kernel @for(%out: !ptx.ptr {ptx.name = "out"}, %rows: i32 {ptx.name = "rows"}) attributes {threads = 32 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c7 = arith.constant 7 : i32
  %l0 = arith.constant 0 : i64
  %l8 = arith.constant 8 : i64
  %r:2 = scf.for %k = %c0 to %rows step %c1 iter_args(%s = %c0, %p = %c7) -> (i32, i32) : i32 {
    %w = arith.extsi %k : i32 to i64
    ptx.st_global_b32 %out, %w, %p
    %n = arith.addi %s, %k : i32
    scf.yield %n, %s : i32, i32
  } {ptx.name = "k", ptx.names = ["stage", "previous"]}
  ptx.st_global_b32 %out, %l0, %r#0
  ptx.st_global_b32 %out, %l8, %r#1
}

// -----

// A swap is a cycle: one value waits in a variable of its own.
// CHECK-LABEL: moejit_kernel(void *out) {
// CHECK:       for (long long v{{.}} = 0ll; v{{.}} < 4ll; v{{.}} += 2ll) {
// CHECK-NEXT:    const int next = b;
// CHECK-NEXT:    b = a;
// CHECK-NEXT:    a = next;
// CHECK-NEXT:  }
ptx.kernel @swap(%out: !ptx.ptr {ptx.name = "out"}) attributes {threads = 32 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %l0 = arith.constant 0 : i64
  %l2 = arith.constant 2 : i64
  %l4 = arith.constant 4 : i64
  %r:2 = scf.for %k = %l0 to %l4 step %l2 iter_args(%a = %c0, %b = %c1) -> (i32, i32) : i64 {
    scf.yield %b, %a : i32, i32
  } {ptx.names = ["a", "b"]}
  ptx.st_global_b32 %out, %l0, %r#0
  ptx.st_global_b32 %out, %l4, %r#1
}

// -----

// A while loop whose condition is one expression, and whose values are forwarded as they are.
// CHECK-LABEL: moejit_kernel(void *out, int rows) {
// CHECK-NEXT:    int tile = 0;
// CHECK-NEXT:    while (tile < rows) {
// CHECK-NEXT:      st_global_b32(out, (long long)tile, 1);
// CHECK-NEXT:      tile = tile + 2;
// CHECK-NEXT:    }
// CHECK-NEXT:    st_global_b32(out, 0ll, tile);
ptx.kernel @while(%out: !ptx.ptr {ptx.name = "out"}, %rows: i32 {ptx.name = "rows"}) attributes {threads = 32 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %l0 = arith.constant 0 : i64
  %r = scf.while (%t = %c0) : (i32) -> i32 {
    %more = arith.cmpi slt, %t, %rows : i32
    scf.condition(%more) %t : i32
  } do {
  ^bb0(%t: i32):
    %w = arith.extsi %t : i32 to i64
    ptx.st_global_b32 %out, %w, %c1
    %n = arith.addi %t, %c2 : i32
    scf.yield %n : i32
  } attributes {ptx.name = "tile"}
  ptx.st_global_b32 %out, %l0, %r
}

// -----

// A while loop that computes before it decides, and whose result is computed in it: the result needs a variable outside.
// CHECK-LABEL: moejit_kernel(void *out, int rows) {
// CHECK-NEXT:    int next = 0;
// CHECK-NEXT:    int next_1;
// CHECK-NEXT:    while (true) {
// CHECK-NEXT:      const int drawn = atom_add_global_i32(out, 0ll, next);
// CHECK-NEXT:      next_1 = drawn;
// CHECK-NEXT:      if (drawn >= rows)
// CHECK-NEXT:        break;
// CHECK-NEXT:      st_global_b32(out, 8ll, drawn);
// CHECK-NEXT:      next = drawn + next;
// CHECK-NEXT:    }
// CHECK-NEXT:    st_global_b32(out, 16ll, next_1);
ptx.kernel @draw(%out: !ptx.ptr {ptx.name = "out"}, %rows: i32 {ptx.name = "rows"}) attributes {threads = 32 : i32} {
  %c0 = arith.constant 0 : i32
  %l0 = arith.constant 0 : i64
  %l8 = arith.constant 8 : i64
  %l16 = arith.constant 16 : i64
  %r:2 = scf.while (%t = %c0) : (i32) -> (i32, i32) {
    %drawn = ptx.atom_add_global_i32 %out, %l0, %t {ptx.name = "drawn"}
    %more = arith.cmpi slt, %drawn, %rows : i32
    scf.condition(%more) %drawn, %t : i32, i32
  } do {
  ^bb0(%d: i32, %t: i32):
    ptx.st_global_b32 %out, %l8, %d
    %n = arith.addi %d, %t : i32
    scf.yield %n : i32
  } attributes {ptx.names = ["next", "unused"]}
  ptx.st_global_b32 %out, %l16, %r#0
}

// -----

// A forwarded value is named even if only one use is left: the body reads it where the condition wrote it.
// CHECK-LABEL: moejit_kernel(void *out, int rows) {
// CHECK:         while (true) {
// CHECK-NEXT:      const int twice = tile * 2;
// CHECK-NEXT:      st_global_b32(out, 0ll, twice);
// CHECK-NEXT:      if (tile >= rows)
// CHECK-NEXT:        break;
// CHECK-NEXT:      tile = twice;
ptx.kernel @forward(%out: !ptx.ptr {ptx.name = "out"}, %rows: i32 {ptx.name = "rows"}) attributes {threads = 32 : i32} {
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %l0 = arith.constant 0 : i64
  %r = scf.while (%t = %c1) : (i32) -> i32 {
    %twice = arith.muli %t, %c2 {ptx.name = "twice"} : i32
    %more = arith.cmpi slt, %t, %rows : i32
    ptx.st_global_b32 %out, %l0, %twice
    scf.condition(%more) %twice : i32
  } do {
  ^bb0(%t: i32):
    scf.yield %t : i32
  } attributes {ptx.names = ["tile"]}
}

// -----

// Branches with results, and a chain of branches without.
// CHECK-LABEL: moejit_kernel(void *out, int rows) {
// CHECK-NEXT:    int size;
// CHECK-NEXT:    bool isSmall;
// CHECK-NEXT:    if (rows < 8) {
// CHECK-NEXT:      size = rows;
// CHECK-NEXT:      isSmall = true;
// CHECK-NEXT:    } else {
// CHECK-NEXT:      size = 8;
// CHECK-NEXT:      isSmall = rows == 8;
// CHECK-NEXT:    }
// CHECK-NEXT:    if (isSmall) {
// CHECK-NEXT:      st_global_b32(out, 0ll, size);
// CHECK-NEXT:    } else if (size == 7) {
// CHECK-NEXT:      st_global_b32(out, 0ll, 7);
// CHECK-NEXT:    } else {
// CHECK-NEXT:      st_global_b32(out, 0ll, 8);
// CHECK-NEXT:    }
ptx.kernel @if(%out: !ptx.ptr {ptx.name = "out"}, %rows: i32 {ptx.name = "rows"}) attributes {threads = 32 : i32} {
  %c7 = arith.constant 7 : i32
  %c8 = arith.constant 8 : i32
  %l0 = arith.constant 0 : i64
  %small = arith.cmpi slt, %rows, %c8 : i32
  %r:2 = scf.if %small -> (i32, i1) {
    %true = arith.constant true
    scf.yield %rows, %true : i32, i1
  } else {
    %is8 = arith.cmpi eq, %rows, %c8 : i32
    scf.yield %c8, %is8 : i32, i1
  } {ptx.names = ["size", "isSmall"]}
  scf.if %r#1 {
    ptx.st_global_b32 %out, %l0, %r#0
  } else {
    %is7 = arith.cmpi eq, %r#0, %c7 : i32
    scf.if %is7 {
      ptx.st_global_b32 %out, %l0, %c7
    } else {
      ptx.st_global_b32 %out, %l0, %c8
    }
  }
}

// -----

// A branch that ends in a computation is no chain: its statement stands in a block.
// CHECK-LABEL: moejit_kernel(void *out, int rows) {
// CHECK-NEXT:    if (rows != 0) {
// CHECK-NEXT:    } else {
// CHECK-NEXT:      const int again = ld_global_i32(out, 0ll);
// CHECK-NEXT:      if (again == 0) {
ptx.kernel @noChain(%out: !ptx.ptr {ptx.name = "out"}, %rows: i32 {ptx.name = "rows"}) attributes {threads = 32 : i32} {
  %c0 = arith.constant 0 : i32
  %l0 = arith.constant 0 : i64
  %some = arith.cmpi ne, %rows, %c0 : i32
  scf.if %some {
  } else {
    %again = ptx.ld_global_i32 %out, %l0 {ptx.name = "again"}
    %none = arith.cmpi eq, %again, %c0 : i32
    scf.if %none {
      ptx.st_global_b32 %out, %l0, %c0
    }
  }
}

// -----

// Variables of outer loops are read at the right time: the inner loop starts from a copy.
// CHECK-LABEL: moejit_kernel(void *out, int rows) {
// CHECK-NEXT:    int sum = 0;
// CHECK-NEXT:    for (int i = 0; i < rows; ++i) {
// CHECK-NEXT:      int sum_1 = sum;
// CHECK-NEXT:      for (int j = i; j < sum + rows; ++j) {
// CHECK-NEXT:        sum_1 = sum_1 + j;
// CHECK-NEXT:      }
// CHECK-NEXT:      sum = sum_1 + sum;
// CHECK-NEXT:    }
ptx.kernel @nested(%out: !ptx.ptr {ptx.name = "out"}, %rows: i32 {ptx.name = "rows"}) attributes {threads = 32 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %l0 = arith.constant 0 : i64
  %r = scf.for %i = %c0 to %rows step %c1 iter_args(%s = %c0) -> i32 : i32 {
    %end = arith.addi %s, %rows : i32
    %q = scf.for %j = %i to %end step %c1 iter_args(%t = %s) -> i32 : i32 {
      %n = arith.addi %t, %j : i32
      scf.yield %n : i32
    } {ptx.name = "j", ptx.names = ["sum"]}
    %m = arith.addi %q, %s : i32
    scf.yield %m : i32
  } {ptx.name = "i", ptx.names = ["sum"]}
  ptx.st_global_b32 %out, %l0, %r
}

// -----

// A float may be carried; a register array is declared where the IR declares it.
// CHECK-LABEL: moejit_kernel(const void *in, int rows) {
// CHECK-NEXT:    float total = 0.0f;
// CHECK-NEXT:    for (int i = 0; i < rows; ++i) {
// CHECK-NEXT:      total = add_f32(total, 0.25f);
// CHECK-NEXT:    }
// CHECK-NEXT:    float pair[2];
// CHECK-NEXT:    pair[1] = total;
ptx.kernel @carriedFloat(%in: !ptx.ptr {ptx.name = "in"}, %rows: i32 {ptx.name = "rows"}) attributes {threads = 32 : i32} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = ptx.constant_f32 0.0
  %quarter = ptx.constant_f32 0.25
  %r = scf.for %i = %c0 to %rows step %c1 iter_args(%s = %zero) -> f32 : i32 {
    %n = ptx.add_f32 %s, %quarter
    scf.yield %n : f32
  } {ptx.name = "i", ptx.names = ["total"]}
  %pair = ptx.regs {ptx.name = "pair"} : !ptx.regs<2xf32>
  ptx.regs_set %r, %pair[1] : !ptx.regs<2xf32>
}
