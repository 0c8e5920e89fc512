// What the printer does not take is refused by name, at the operation, and nothing is printed.
// RUN: ptx-emit --ptx-to-cuda --split-input-file --verify-diagnostics %s | FileCheck %s --allow-empty
// CHECK-NOT: moejit_kernel

ptx.kernel @arith(%a: i32) attributes {threads = 32 : i32} {
  // expected-error @+2 {{'arith.floordivsi' op cannot be printed as CUDA C++: it is not on the printer's list}}
  // expected-note @+1 {{the printer takes ptx operations, scf.for, scf.while, scf.if, and arith constants and arithmetic on i1, i32 and i64}}
  %0 = arith.floordivsi %a, %a : i32
}

// -----

ptx.kernel @float() attributes {threads = 32 : i32} {
  %0 = ptx.constant_f32 1.0
  // expected-error @+2 {{'arith.addf' op cannot be printed as CUDA C++: it is not on the printer's list}}
  // expected-note @+1 {{the printer takes}}
  %1 = arith.addf %0, %0 : f32
}

// -----

ptx.kernel @index(%a: i32) attributes {threads = 32 : i32} {
  // expected-error @+2 {{'arith.constant' op cannot be printed as CUDA C++}}
  // expected-note @+1 {{the printer takes}}
  %0 = arith.constant 1 : index
}

// -----

ptx.kernel @width(%a: i32) attributes {threads = 32 : i32} {
  // expected-error @+2 {{'arith.trunci' op cannot be printed as CUDA C++: it computes on i16, which is none of i1, i32, i64}}
  // expected-note @+1 {{the printer takes}}
  %0 = arith.trunci %a : i32 to i16
}

// -----

ptx.kernel @bool(%a: i32) attributes {threads = 32 : i32} {
  %0 = arith.cmpi eq, %a, %a : i32
  // expected-error @+2 {{'arith.addi' op cannot be printed as CUDA C++: it computes on i1; logic, eq, ne, select, extsi and extui do}}
  // expected-note @+1 {{the printer takes}}
  %1 = arith.addi %0, %0 : i1
}

// -----

ptx.kernel @boolCompare(%a: i32) attributes {threads = 32 : i32} {
  %0 = arith.cmpi eq, %a, %a : i32
  // expected-error @+2 {{'arith.cmpi' op cannot be printed as CUDA C++: it computes on i1}}
  // expected-note @+1 {{the printer takes}}
  %1 = arith.cmpi slt, %0, %0 : i1
}

// -----

ptx.kernel @control(%a: i32) attributes {threads = 32 : i32} {
  // expected-error @+2 {{'scf.execute_region' op cannot be printed as CUDA C++}}
  // expected-note @+1 {{the printer takes}}
  scf.execute_region {
    scf.yield
  }
}

// -----

ptx.kernel @call() attributes {threads = 32 : i32} {
  // expected-error @+2 {{'func.call' op cannot be printed as CUDA C++}}
  // expected-note @+1 {{the printer takes}}
  func.call @f() : () -> ()
}
func.func private @f()

// -----

ptx.kernel @unsignedLoop(%a: i32) attributes {threads = 32 : i32} {
  // expected-error @+1 {{'scf.for' op counts unsigned, which the CUDA printer does not take}}
  scf.for unsigned %i = %a to %a step %a : i32 {
  }
}

// -----

ptx.kernel @carried(%p: !ptx.ptr, %a: i32) attributes {threads = 32 : i32} {
  // expected-error @+1 {{'scf.for' op carries a value of type '!ptx.ptr'; the CUDA printer takes i1, i32, i64 and f32}}
  %0 = scf.for %i = %a to %a step %a iter_args(%q = %p) -> !ptx.ptr : i32 {
    scf.yield %q : !ptx.ptr
  }
}

// -----

ptx.kernel @nan() attributes {threads = 32 : i32} {
  // expected-error @+1 {{'ptx.constant_f32' op is not finite, and C++ has no literal for it; use ptx.float_bits}}
  %0 = ptx.constant_f32 0x7FC00000
}

// -----

// An index must be a constant once loops are unrolled: a loop of scf is not unrolled.
ptx.kernel @index(%a: i32) attributes {threads = 32 : i32} {
  %words = ptx.regs : !ptx.regs<4xi32>
  %one = arith.constant 1 : i32
  // expected-note @+1 {{the index is defined here}}
  scf.for %i = %one to %a step %one : i32 {
    // expected-error @+2 {{'ptx.regs_get' op indexes a register array by a value that is no constant after unrolling; the array would go to local memory}}
    // expected-note @+1 {{use constants and induction variables of ptx.unroll}}
    %0 = ptx.regs_get %words[%i] : !ptx.regs<4xi32>
  }
}
