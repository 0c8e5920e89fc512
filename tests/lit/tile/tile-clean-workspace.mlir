// Kernels leave the words zero that were zero when they began.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-clean-workspace))' -split-input-file | FileCheck %s

// The producer draws, and asks no more behind its tiles: it counts in a word of its own.
// CHECK-LABEL: tile.kernel @roles
// CHECK-SAME: "workspace" %[[C:.*]]: !tile.view<2xi32>) warpgroups 1
// CHECK: tile.role {{ *}}producer
// CHECK:   tile.for_tiles
// CHECK:   }
// CHECK-NEXT: tile.clean %[[C]] counted in %[[C]] at 1 : !tile.view<2xi32>
// CHECK: tile.role {{ *}}consumer
// CHECK-NOT: tile.clean
tile.kernel @roles("workspace" %c: !tile.view<1xi32>) warpgroups 1 {
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order queue counter (%c : !tile.view<1xi32>) raster 1
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

// Warps alike: the thread that draws, without a meeting. All words there are, counted in the first.
// CHECK-LABEL: tile.kernel @alike
// CHECK-SAME: "counters" %[[B:.*]]: !tile.view<3xi32>, "workspace" %[[C:.*]]: !tile.view<1xi32>)
// CHECK: tile.for_tiles
// CHECK-NOT: tile.sync
// CHECK: tile.once {
// CHECK-NEXT: tile.clean %[[B]], %[[C]] counted in %[[B]] at 2
tile.kernel @alike("counters" %b: !tile.view<2xi32>, "workspace" %c: !tile.view<1xi32>) warpgroups 1 {
  %boxes = arith.constant 9 : i32
  tile.grid_for %b at 0 extent %boxes -> %i : !tile.view<2xi32> {
  }
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order queue counter (%c : !tile.view<1xi32>) raster 1
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
  }
}

// -----

// Every thread reads the word that a scale is computed from, in every tile: all are done with it first.
// CHECK-LABEL: tile.kernel @quantize
// CHECK: tile.for_tiles
// CHECK:   tile.quantize
// CHECK: tile.sync
// CHECK-NEXT: tile.once {
// CHECK-NEXT: tile.clean
tile.kernel @quantize("counters" %c: !tile.view<3xi32>, "x" %x: !tile.view<?x512xbf16>, "y" %y: !tile.view<?x512xf8E4M3FN>,
                      "x_scales" %s: !tile.view<1xf32>) warpgroups 1 {
  %q = tile.scheduler tile [32, 512] columns 512 experts 1 order static raster 1
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    tile.quantize %x[%m, %n] rows %rows columns 512 -> %y, %s amax %c : !tile.view<3xi32> at 2
        : !tile.view<?x512xbf16> -> !tile.view<?x512xf8E4M3FN>, !tile.view<1xf32>
  }
}

// -----

// Consumers that read a word may do so when the producer is done: the kernel stays as it is.
// CHECK-LABEL: tile.kernel @reading
// CHECK-SAME: !tile.view<1xi32>
// CHECK-NOT: tile.clean
tile.kernel @reading("workspace" %c: !tile.view<1xi32>) warpgroups 1 {
  tile.role producer registers 0 {
  }
  tile.role consumer registers 0 {
    %p = builtin.unrealized_conversion_cast %c : !tile.view<1xi32> to !ptx.ptr
  }
}

// -----

// Nothing to clean.
// CHECK-LABEL: tile.kernel @static
// CHECK-NOT: tile.clean
tile.kernel @static("y" %y: !tile.view<?x128xf32>) warpgroups 1 {
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order static raster 1
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
  }
}

// -----

// What cleans already stays.
// CHECK-LABEL: tile.kernel @twice
// CHECK-SAME: !tile.view<2xi32>
// CHECK: tile.clean
// CHECK-NOT: tile.clean
tile.kernel @twice("workspace" %c: !tile.view<2xi32>) warpgroups 1 {
  tile.once {
    tile.clean %c counted in %c at 1 : !tile.view<2xi32> in !tile.view<2xi32>
  }
}
