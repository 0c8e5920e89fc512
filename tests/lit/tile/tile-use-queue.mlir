// Tiles are drawn from a counter in the workspace.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-use-queue))' -split-input-file | FileCheck %s

// The workspace becomes an operand of the launch. The loops of two roles walk the same queue.
// CHECK-LABEL: tile.kernel @roles
// CHECK-SAME: "workspace" %[[COUNTER:.*]]: !tile.view<1xi32>) warpgroups 1
tile.kernel @roles("y" %y: !tile.view<?x128xf32>) warpgroups 1 {
  // CHECK: tile.scheduler tile[64, 128] columns 128 experts 1 order {{ *}}queue counter(%[[COUNTER]] : !tile.view<1xi32>) raster 1
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  tile.role producer registers 0 {
    tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    }
  }
  tile.role consumer registers 0 {
    tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    }
  }
}

// -----

// A second walk by the same warps would find the counter used up: both stay static.
// CHECK-LABEL: tile.kernel @twice
tile.kernel @twice("y" %y: !tile.view<?x128xf32>) warpgroups 1 {
  // CHECK: order {{ *}}static
  // CHECK-NOT: queue
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
  }
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
  }
}

// -----

// Two schedulers would share one counter: both stay static.
// CHECK-LABEL: tile.kernel @two
tile.kernel @two("y" %y: !tile.view<?x128xf32>) warpgroups 1 {
  // CHECK-NOT: queue
  %p = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  tile.for_tiles %p -> %e, %m, %n, %rows, %live {
  }
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
  }
}

// -----

// A queue that is there stays the only one.
// CHECK-LABEL: tile.kernel @queue
// CHECK-SAME: ("workspace" %{{.*}}: !tile.view<1xi32>) warpgroups 1
tile.kernel @queue("workspace" %c: !tile.view<1xi32>) warpgroups 1 {
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order queue counter (%c : !tile.view<1xi32>) raster 1
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
  }
}
