// Copies of one launch operand get the L2 policy evict_first.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-hint-weights))' -split-input-file | FileCheck %s
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-hint-weights{operand=x}))' -split-input-file | FileCheck %s --check-prefix=X
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-hint-weights{operand=y}))' -split-input-file | FileCheck %s --check-prefix=Y

// w by default, another on request; the operand that is not copied changes nothing.
// CHECK-LABEL: tile.kernel @copies
tile.kernel @copies("x" %x: !tile.view<?x128xf8E4M3FN>, "w" %w: !tile.view<128x128xf8E4M3FN>, "y" %y: !tile.view<?x128xf32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  %ring = tile.ring stages 2 [!tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>]
  %s = tile.acquire %ring
  // CHECK: tile.copy {{.*}} -> %{{.*}}[0] : <?x128xf8E4M3FN>
  // CHECK: tile.copy {{.*}} -> %{{.*}}[1] {evict_first} : <128x128xf8E4M3FN>
  // X: tile.copy {{.*}} -> %{{.*}}[0] {evict_first} : <?x128xf8E4M3FN>
  // X: tile.copy {{.*}} -> %{{.*}}[1] : <128x128xf8E4M3FN>
  // Y-NOT: evict_first
  tile.copy %x[%c0, %c0] -> %s[0] : !tile.view<?x128xf8E4M3FN>
  tile.copy %w[%c0, %c0] -> %s[1] : !tile.view<128x128xf8E4M3FN>
  tile.publish %s
}
