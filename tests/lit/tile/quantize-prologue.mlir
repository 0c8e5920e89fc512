// A GEMM whose x the launch quantizes: a step of all blocks comes before the tiles.
// RUN: moejit-opt %s --moejit-tile -split-input-file | FileCheck %s
// RUN: moejit-opt %s --moejit-tile --moejit-schedule -split-input-file | FileCheck %s --check-prefix=ROLES

// Boxes of a few rows, shared out over the grid, go to the workspace; tiles read what lies there. Its scales are row-major,
// whatever the type of x says.
// CHECK-LABEL: tile.kernel @decode
// CHECK-SAME: "x" %[[X:.*]]: !tile.view<?x512xbf16>, "x_quantized" %[[Q:.*]]: !tile.view<?x512xf8E4M3FN>, "x_quantized_scales" %[[S:.*]]: !tile.view<?x4xf32>, "counters" %[[C:.*]]: !tile.view<2xi32>
// CHECK: tile.scheduler
// CHECK: tile.grid_for %[[C]] at 0 extent %{{.*}} -> %{{.*}} : !tile.view<2xi32>
// CHECK:   tile.quantize %[[X]][{{.*}}] rows %{{.*}} columns 1024 -> %[[Q]], %[[S]] per 128
// CHECK: tile.for_tiles
// CHECK: tile.copy %[[Q]]
// CHECK-NOT: tile.quantize
// Every warp takes part, the producer's too: the step stands before the roles.
// ROLES-LABEL: tile.kernel @decode
// ROLES: tile.grid_for
// ROLES: tile.role producer
// ROLES-NOT: tile.grid_for
#x = #moe.scales<granule = [1, 128], source = dynamic, order = mn_major, align = 16>
#w = #moe.scales<granule = [1, 128, 128]>
moe.kernel @decode(%x: tensor<?x512xbf16>, %ids: tensor<?xi32>, %w: tensor<4x256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %q = moe.quantize(%x) : tensor<?x512xbf16> -> tensor<?x512xf8E4M3FN, #x>
  %y = moe.gemm batched(%q, %ids, %w)
     : tensor<?x512xf8E4M3FN, #x>, tensor<?xi32>, tensor<4x256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}

// -----

// One scale for all is known when every row has been looked at: two steps, with counters of their own.
// CHECK-LABEL: tile.kernel @one_scale
// CHECK-SAME: "counters" %[[C:.*]]: !tile.view<5xi32>
// CHECK: tile.grid_for %[[C]] at 0
// CHECK:   tile.amax %{{.*}} -> %[[C]] at 4
// CHECK: tile.grid_for %[[C]] at 2
// CHECK:   tile.quantize %{{.*}} amax %[[C]] : !tile.view<5xi32> at 4
// ROLES-LABEL: tile.kernel @one_scale
#x = #moe.scales<granule = [*, *], source = dynamic>
#w = #moe.scales<granule = [128, 128]>
moe.kernel @one_scale(%x: tensor<?x512xf16>, %w: tensor<256x512xf8E4M3FN, #w>) -> tensor<?x256xbf16> {
  %q = moe.quantize(%x) : tensor<?x512xf16> -> tensor<?x512xf8E4M3FN, #x>
  %y = moe.gemm eager(%q, %w) : tensor<?x512xf8E4M3FN, #x>, tensor<256x512xf8E4M3FN, #w> -> tensor<?x256xbf16>
  moe.return %y : tensor<?x256xbf16>
}
