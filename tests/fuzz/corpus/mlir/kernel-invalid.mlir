// moe.kernel and moe.return: structure that is refused.
// RUN: moejit-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{empty block: expect at least a terminator}}
moe.kernel @no_end(%y: tensor<?x64xbf16>) {
}

// -----

moe.kernel @count(%y: tensor<?x64xbf16>) -> tensor<?x64xbf16> {
  // expected-error@+1 {{'moe.return' op has 0 operands, expected 1, the results of @count}}
  moe.return
}

// -----

moe.kernel @type(%y: tensor<?x64xbf16>) -> tensor<?x64xf16> {
  // expected-error@+1 {{'moe.return' op operand 0 has type 'tensor<?x64xbf16>', expected 'tensor<?x64xf16>'}}
  moe.return %y : tensor<?x64xbf16>
}

// -----

// expected-error@+1 {{'moe.return' op expects parent op 'moe.kernel'}}
moe.return
