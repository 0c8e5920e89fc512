// Rings get the slots that are asked for.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-deepen-ring))' -split-input-file | FileCheck %s
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-deepen-ring{stages=2}))' -split-input-file | FileCheck %s --check-prefix=TWO
// RUN: not moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-deepen-ring{stages=0}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=NONE

// Every ring of the kernel; its fields stay. Without slots there is no ring.
// CHECK-LABEL: tile.kernel @rings
// TWO-LABEL: tile.kernel @rings
// NONE: 'tile.ring' op has at least one stage, got 0
tile.kernel @rings() warpgroups 1 {
  // CHECK: tile.ring stages 4 [!tile.block<64x128xf8E4M3FN>]
  // TWO: tile.ring stages 2 [!tile.block<64x128xf8E4M3FN>]
  %a = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>]
  // CHECK: tile.ring stages 4 [!tile.block<1x64xf32>]
  // TWO: tile.ring stages 2 [!tile.block<1x64xf32>]
  %b = tile.ring stages 3 [!tile.block<1x64xf32>]
}

// -----

// A kernel without rings stays as it is.
// CHECK-LABEL: tile.kernel @none
tile.kernel @none() warpgroups 1 {
  // CHECK-NEXT: tile.sync
  // CHECK-NEXT: }
  tile.sync
}
