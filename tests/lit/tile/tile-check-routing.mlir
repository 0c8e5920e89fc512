// A checked kernel looks at what its scheduler reads.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-check-routing))' -split-input-file -verify-diagnostics | FileCheck %s

// The error words become an operand of the launch.
// CHECK-LABEL: tile.kernel @boundaries
// CHECK-SAME: "offsets" %[[OFFSETS:.*]]: !tile.view<5xi32>, "errors" %[[ERRORS:.*]]: !tile.view<8xi64>) warpgroups 1
tile.kernel @boundaries("offsets" %o: !tile.view<5xi32>) warpgroups 1 {
  // CHECK: tile.check_routing grouped(%[[OFFSETS]] : !tile.view<5xi32>) experts 4 into %[[ERRORS]]
  // CHECK-NEXT: tile.scheduler
  %q = tile.scheduler grouped(%o) tile [64, 128] columns 128 experts 4 order static raster 1 : !tile.view<5xi32>
}

// -----

// CHECK-LABEL: tile.kernel @counts
tile.kernel @counts("counts" %c: !tile.view<4xi32>) warpgroups 1 {
  // CHECK: tile.check_routing masked(%{{.*}} : !tile.view<4xi32>) experts 4
  %q = tile.scheduler masked(%c : !tile.view<4xi32>) tile [64, 128] columns 128 experts 4 order static raster 1
}

// -----

// Without routing there is nothing to look at, and no operand.
// CHECK-LABEL: tile.kernel @dense
// CHECK-NOT: errors
tile.kernel @dense("y" %y: !tile.view<?x128xf32>) warpgroups 1 {
  // CHECK-NOT: tile.check_routing
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
}

// -----

tile.kernel @both("offsets" %o: !tile.view<5xi32>, "counts" %c: !tile.view<4xi32>, "errors" %e: !tile.view<8xi64>) warpgroups 1 {
  // expected-error@+1 {{'tile.check_routing' op takes one of offsets, counts and ids, got 2}}
  tile.check_routing grouped(%o : !tile.view<5xi32>) masked(%c : !tile.view<4xi32>) experts 4 into %e : !tile.view<8xi64>
}

// -----

tile.kernel @mapOfNothing("offsets" %o: !tile.view<5xi32>, "expert_map" %m: !tile.view<9xi32>, "errors" %e: !tile.view<8xi64>) warpgroups 1 {
  // expected-error@+1 {{'tile.check_routing' op takes a map of ids, and has none}}
  tile.check_routing grouped(%o : !tile.view<5xi32>) map(%m : !tile.view<9xi32>) experts 4 into %e : !tile.view<8xi64>
}

// -----

tile.kernel @narrowWords("offsets" %o: !tile.view<5xi32>, "errors" %e: !tile.view<8xi32>) warpgroups 1 {
  // expected-error@+1 {{'tile.check_routing' op reports into 8 words of i64, got '!tile.view<8xi32>'}}
  tile.check_routing grouped(%o : !tile.view<5xi32>) experts 4 into %e : !tile.view<8xi32>
}
