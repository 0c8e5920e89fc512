// Schedulers get the raster that is asked for; nothing else changes.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-raster))' -split-input-file | FileCheck %s
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-raster{rows=3}))' -split-input-file | FileCheck %s --check-prefix=THREE
// RUN: not moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-raster{rows=0}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=NONE

// A sweep has at least one row of tiles.
// CHECK-LABEL: tile.kernel @raster
// NONE: 'tile.scheduler' op tile, columns and raster must be positive
tile.kernel @raster("offsets" %o: !tile.view<5xi32>) warpgroups 1 {
  // CHECK: tile.scheduler grouped(%{{.*}}) tile[64, 128] columns 512 experts 4 order {{ *}}static raster 16 zeroed
  // THREE: tile.scheduler grouped(%{{.*}}) tile[64, 128] columns 512 experts 4 order {{ *}}static raster 3 zeroed
  %q = tile.scheduler grouped(%o) tile [64, 128] columns 512 experts 4 order static raster 1 zeroed : !tile.view<5xi32>
}

// -----

// No scheduler, no raster.
// CHECK-LABEL: tile.kernel @none
tile.kernel @none() warpgroups 1 {
  // CHECK-NEXT: tile.sync
  // CHECK-NEXT: }
  tile.sync
}
