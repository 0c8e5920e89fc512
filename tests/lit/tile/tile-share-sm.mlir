// Blocks share an SM: the kernel says so, and its roles divide what registers are then there.
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-share-sm))' -split-input-file | FileCheck %s
// RUN: moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-share-sm{blocks=8}))' -split-input-file | FileCheck %s --check-prefix=EIGHT
// RUN: not moejit-opt %s --pass-pipeline='builtin.module(tile.kernel(tile-share-sm{blocks=9}))' -split-input-file 2>&1 | FileCheck %s --check-prefix=NINE

// NINE: error: 'tile.kernel' op is to run in 9 blocks an SM, expected 1 to 8: an SM has 2048 threads
// CHECK: tile.kernel @alone() warpgroups 1 attributes {blocks_per_sm = 2 : i64} {
// EIGHT: tile.kernel @alone() warpgroups 1 attributes {blocks_per_sm = 8 : i64} {
tile.kernel @alone() warpgroups 1 {
  tile.sync
}

// -----

// A kernel that has said so keeps what it said.
// CHECK: tile.kernel @said() warpgroups 1 attributes {blocks_per_sm = 3 : i64} {
// EIGHT: tile.kernel @said() warpgroups 1 attributes {blocks_per_sm = 3 : i64} {
tile.kernel @said() warpgroups 1 attributes {blocks_per_sm = 3 : i64} {
  tile.sync
}

// -----

// Roles have divided the registers of an SM: it is theirs.
// CHECK: tile.kernel @roles() warpgroups 1 {
// EIGHT: tile.kernel @roles() warpgroups 1 {
tile.kernel @roles() warpgroups 1 {
  tile.role producer registers 0 {
  }
  tile.role consumer registers 0 {
  }
}
