// The dialect prints what it parses, and nothing is lost on the way.
// RUN: moejit-opt %s | moejit-opt | FileCheck %s
// RUN: moejit-opt --mlir-print-op-generic %s | moejit-opt | FileCheck %s

// Everything a kernel of values is made of.
// CHECK-LABEL: tile.kernel @values
// CHECK-SAME: ("x" %[[X:.*]]: !tile.view<?x256xf8E4M3FN>, "x_scales" %[[XS:.*]]: !tile.view<2x?xf32>,
// CHECK-SAME: "offsets" %[[O:.*]]: !tile.view<5xi32>
// CHECK-SAME: warpgroups 2
tile.kernel @values("x" %x: !tile.view<?x256xf8E4M3FN>, "x_scales" %xs: !tile.view<2x?xf32>, "offsets" %o: !tile.view<5xi32>,
                    "w" %w: !tile.view<4x512x256xf8E4M3FN>, "w_scales" %ws: !tile.view<4x4x2xf32>, "y" %y: !tile.view<?x512xbf16>) warpgroups 2 {
  // CHECK: %[[Q:.*]] = tile.scheduler grouped(%[[O]]) tile[128, 256] columns 512 experts 4 order {{ *}}static raster 8 zeroed : !tile.view<5xi32>
  %q = tile.scheduler grouped(%o) tile [128, 256] columns 512 experts 4 order static raster 8 zeroed : !tile.view<5xi32>
  // CHECK: tile.for_tiles %[[Q]] -> %[[E:.*]], %[[M:.*]], %[[N:.*]], %[[ROWS:.*]], %{{.*}} {
  tile.for_tiles %q -> %e, %m, %n, %rows, %live {
    // CHECK: %[[ACC:.*]] = tile.acc : !tile.acc<128x256>
    %acc = tile.acc : !tile.acc<128x256>
    // CHECK: tile.fill %[[ACC]]
    tile.fill %acc : !tile.acc<128x256>
    %k = arith.constant 0 : i32
    // CHECK: %[[A:.*]] = tile.load %[[X]][%[[M]], %[[K:.*]]] : <?x256xf8E4M3FN> -> <128x128xf8E4M3FN>
    %a = tile.load %x[%m, %k] : !tile.view<?x256xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
    %b = tile.load %w[%e, %n, %k] : !tile.view<4x512x256xf8E4M3FN> -> !tile.block<1x256x128xf8E4M3FN>
    // CHECK: %[[SA:.*]] = tile.load %[[XS]][%[[K]], %[[M]]] bulk : <2x?xf32> -> <1x128xf32>
    %sa = tile.load %xs[%k, %m] bulk : !tile.view<2x?xf32> -> !tile.block<1x128xf32>
    // CHECK: %[[SB:.*]] = tile.load
    %sb = tile.load %ws[%e, %n, %k] : !tile.view<4x4x2xf32> -> !tile.block<1x2x1xf32>
    // CHECK: tile.dot %[[ACC]], %[[A]], %{{.*}} rows %[[SA]] per 1 : !tile.block<1x128xf32> columns %[[SB]] per 128 : !tile.block<1x2x1xf32> exact : !tile.acc<128x256>
    tile.dot %acc, %a, %b rows %sa per 1 : !tile.block<1x128xf32> columns %sb per 128 : !tile.block<1x2x1xf32> exact
      : !tile.acc<128x256>, !tile.block<128x128xf8E4M3FN>, !tile.block<1x256x128xf8E4M3FN>
    // CHECK: tile.wait %[[ACC]] pending 1 : !tile.acc<128x256>
    tile.wait %acc pending 1 : !tile.acc<128x256>
    // CHECK: tile.scale %[[ACC]] rows %[[SA]] per 1 : !tile.block<1x128xf32> : <128x256>
    tile.scale %acc rows %sa per 1 : !tile.block<1x128xf32> : !tile.acc<128x256>
    // CHECK: tile.next_tile
    tile.next_tile
    // CHECK: tile.store %[[ACC]] -> %{{.*}}[%[[M]], %[[N]]] rows %[[ROWS]] staged : <128x256>, <?x512xbf16>
    tile.store %acc -> %y[%m, %n] rows %rows staged : !tile.acc<128x256>, !tile.view<?x512xbf16>
  }
}

// Everything a kernel of roles, rings and fragments is made of.
// CHECK-LABEL: tile.kernel @staged
tile.kernel @staged("x" %x: !tile.view<?x128xf8E4M3FN>, "x_scales" %xs: !tile.view<1x?xf32>, "w" %w: !tile.view<128x128xf8E4M3FN>,
                    "y" %y: !tile.view<?x128xf16>, "workspace" %next: !tile.view<1xi32>) warpgroups 1 {
  // CHECK: tile.scheduler tile[64, 128] columns 128 experts 1 order {{ *}}queue counter(%{{.*}} : !tile.view<1xi32>) raster 1{{$}}
  %q = tile.scheduler tile [64, 128] columns 128 experts 1 order queue counter (%next : !tile.view<1xi32>) raster 1
  // CHECK: %[[RING:.*]] = tile.ring stages 3 [!tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>, !tile.block<1x64xf32>]
  %ring = tile.ring stages 3 [!tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>, !tile.block<1x64xf32>]
  %zero = arith.constant 0 : i32
  // CHECK: tile.once {
  tile.once {
    // CHECK: %[[S:.*]] = tile.acquire %[[RING]]
    %s = tile.acquire %ring
    // CHECK: tile.copy %{{.*}}[%{{.*}}, %{{.*}}] -> %[[S]][0] {evict_first} : <?x128xf8E4M3FN>
    tile.copy %x[%zero, %zero] -> %s[0] {evict_first} : !tile.view<?x128xf8E4M3FN>
    // CHECK: tile.publish %[[S]]
    tile.publish %s
  }
  // CHECK: tile.sync
  tile.sync
  // CHECK: tile.role {{ *}}producer registers 40 {
  tile.role producer registers 40 {
    // CHECK: tile.rows
    %r = tile.rows
  }
  // CHECK: tile.role {{ *}}consumer registers 232 {
  tile.role consumer registers 232 {
    // CHECK: tile.warpgroup
    %g = tile.warpgroup
    // CHECK: tile.stride %{{.*}} : <?x128xf16>
    %stride = tile.stride %y : !tile.view<?x128xf16>
    %acc = tile.acc : !tile.acc<64x128, columns, n = 64>
    // CHECK: %[[T:.*]] = tile.acc : !tile.fragment<n = 64>
    %t = tile.acc : !tile.fragment<n = 64>
    // CHECK: %[[F:.*]] = tile.await %[[RING]]
    %f = tile.await %ring
    // CHECK: %[[A:.*]] = tile.field %[[F]][0] = %{{.*}}[%{{.*}}, %{{.*}}] : <?x128xf8E4M3FN> -> <64x128xf8E4M3FN>
    %a = tile.field %f[0] = %x[%zero, %zero] : !tile.view<?x128xf8E4M3FN> -> !tile.block<64x128xf8E4M3FN>
    %b = tile.field %f[1] = %w[%zero, %zero] : !tile.view<128x128xf8E4M3FN> -> !tile.block<128x128xf8E4M3FN>
    %sa = tile.field %f[2] = %xs[%zero, %zero] : !tile.view<1x?xf32> -> !tile.block<1x64xf32>
    // CHECK: tile.dot %[[T]], %[[A]], %{{.*}} batch 1 of !tile.acc<64x128, columns, n = 64> fresh : !tile.fragment<n = 64>
    tile.dot %t, %a, %b batch 1 of !tile.acc<64x128, columns, n = 64> fresh : !tile.fragment<n = 64>, !tile.block<64x128xf8E4M3FN>, !tile.block<128x128xf8E4M3FN>
    // CHECK: %[[R:.*]]:2 = tile.read %{{.*}} rows per 1 batch 1 of !tile.acc<64x128, columns, n = 64> : <1x64xf32> -> f32, f32
    %ra, %rb = tile.read %sa rows per 1 batch 1 of !tile.acc<64x128, columns, n = 64> : !tile.block<1x64xf32> -> f32, f32
    tile.wait %t : !tile.fragment<n = 64>
    // CHECK: tile.release %[[F]]
    tile.release %f
    // CHECK: tile.promote %{{.*}}, %[[T]] row_values(%[[R]]#0, %[[R]]#1 : f32, f32) batch 1 : <64x128, columns, n = 64>, !tile.fragment<n = 64>
    tile.promote %acc, %t row_values(%ra, %rb : f32, f32) batch 1 : !tile.acc<64x128, columns, n = 64>, !tile.fragment<n = 64>
  }
}

// Scales that items find, and bytes of words.
// CHECK-LABEL: tile.kernel @scales
// CHECK-SAME: !tile.view<2x25x3xf32, strided>
tile.kernel @scales("w_scales" %ws: !tile.view<2x25x3xf32, strided>, "x_scales" %xs: !tile.view<?x2xi32>) warpgroups 1 {
  %c0 = arith.constant 0 : i32
  // CHECK: tile.load %{{.*}} items <granule = 0, extent = 100, parts = 2, interleaved = true> : <2x25x3xf32, strided> -> <1x64x1xf32>
  %a = tile.load %ws[%c0, %c0, %c0] items <granule = 0, extent = 100, parts = 2, interleaved = true> : !tile.view<2x25x3xf32, strided> -> !tile.block<1x64x1xf32>
  // CHECK: tile.load %{{.*}} items <granule = 4, extent = 0, phase = 1> : <?x2xi32> -> <64x1xi32>
  %b = tile.load %xs[%c0, %c0] items <granule = 4, extent = 0, phase = 1> : !tile.view<?x2xi32> -> !tile.block<64x1xi32>
  // CHECK: tile.unpack %{{.*}}[%{{.*}}] : <64x1xi32> -> <64x1xf8E8M0FNU>
  %c = tile.unpack %b[%c0] : !tile.block<64x1xi32> -> !tile.block<64x1xf8E8M0FNU>
}

// Work shared out over the grid; rows sorted by ids that pass through a map, of which a copy brings the first ones.
// CHECK-LABEL: tile.kernel @grid
tile.kernel @grid("x" %x: !tile.view<?x128xf8E4M3FN>, "expert_ids" %ids: !tile.view<?xi32>, "expert_map" %map: !tile.view<9xi32>, "counters" %c: !tile.view<4xi32>) warpgroups 1 {
  %n = arith.constant 9 : i32
  // CHECK: tile.grid_for %{{.*}} at 2 extent %{{.*}} -> %{{.*}} : !tile.view<4xi32> {
  tile.grid_for %c at 2 extent %n -> %i : !tile.view<4xi32> {
  }
  // CHECK: tile.scheduler batched(%{{.*}} : !tile.view<?xi32>) map(%{{.*}} : !tile.view<9xi32>) tile[64, 128]
  %q = tile.scheduler batched(%ids : !tile.view<?xi32>) map(%map : !tile.view<9xi32>) tile [64, 128] columns 128 experts 4 order static raster 1
  %ring = tile.ring stages 1 [!tile.block<64x128xf8E4M3FN>]
  tile.once {
    // CHECK: tile.acquire %{{.*}} bytes %{{.*}}
    %s = tile.acquire %ring bytes %n
    // CHECK: tile.copy %{{.*}}[%{{.*}}, %{{.*}}] rows_by %{{.*}} first %{{.*}} -> %{{.*}}[0]
    tile.copy %x[%n, %n] rows_by %q first %n -> %s[0] : !tile.view<?x128xf8E4M3FN>
    tile.publish %s
  }
}
