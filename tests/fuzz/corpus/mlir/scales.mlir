// #moe.scales: entries come in any order, print in one, and defaults do not print.
// RUN: moejit-opt %s | FileCheck %s
// RUN: moejit-opt %s | moejit-opt | FileCheck %s
// RUN: moejit-opt %s --mlir-print-op-generic | moejit-opt | FileCheck %s

// Aliases print in front of the module, in order of use.
// CHECK: #[[ALL:.*]] = #moe.scales<granule = [1, 128, 128], type = f8E8M0FNU, source = dynamic, order = mn_major, align = 16, packing = 4, parts = 2, interleaved, phase = [0, 64, 32]>
// CHECK: #[[TENSOR:.*]] = #moe.scales<granule = [*, *]>
// CHECK: #[[EXPERT:.*]] = #moe.scales<granule = [expert, *], parts = 2>

// CHECK-LABEL: moe.kernel @every_entry
// CHECK-SAME: tensor<8x256x512xf8E4M3FN, #[[ALL]]>
moe.kernel @every_entry(%w: tensor<8x256x512xf8E4M3FN, #moe.scales<phase = [0, 64, 32], interleaved, parts = 2,
    packing = 4, align = 16, order = mn_major, source = dynamic, type = f8E8M0FNU, granule = [1, 128, 128]>>) {
  moe.return
}

// CHECK-LABEL: moe.kernel @defaults
// CHECK-SAME: tensor<?x512xf8E4M3FN, #[[TENSOR]]>
moe.kernel @defaults(%x: tensor<?x512xf8E4M3FN, #moe.scales<granule = [*, *], type = f32, source = static,
    order = row_major, align = 0, packing = 1, parts = 1, phase = [0, 0]>>) {
  moe.return
}

// CHECK-LABEL: moe.kernel @expert
// CHECK-SAME: tensor<?x512xf8E4M3FN, #[[EXPERT]]>
moe.kernel @expert(%x: tensor<?x512xf8E4M3FN, #moe.scales<granule = [expert, *], parts = 2>>) {
  moe.return
}
