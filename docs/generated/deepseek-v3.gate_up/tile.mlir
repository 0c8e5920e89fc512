module {
  tile.kernel @moejit_kernel("x" %arg0: !tile.view<?x7168xf8E4M3FN>, "x_scales" %arg1: !tile.view<56x?xf32>, "offsets" %arg2: !tile.view<257xi32>, "w" %arg3: !tile.view<256x4096x7168xf8E4M3FN>, "w_scales" %arg4: !tile.view<256x32x56xf32>, "y" %arg5: !tile.view<?x4096xbf16>, "workspace" %arg6: !tile.view<2xi32>) warpgroups 2 attributes {cluster = 2 : i64} {
    %0 = tile.scheduler grouped(%arg2) tile[128, 256] columns 4096 experts 256 order  queue counter(%arg6 : !tile.view<2xi32>) raster 16 zeroed cluster  columns : !tile.view<257xi32>
    %1 = tile.ring stages 4 [!tile.block<128x128xf8E4M3FN>, !tile.block<1x256x128xf8E4M3FN>, !tile.block<1x128xf32>, !tile.block<1x2x1xf32>] multicast
    tile.role  producer registers 40 {
      tile.for_tiles %0 -> %arg7, %arg8, %arg9, %arg10, %arg11 {
        %c0_i32 = arith.constant 0 : i32
        %c56_i32 = arith.constant 56 : i32
        %2 = arith.select %arg11, %c56_i32, %c0_i32 : i32
        %c1_i32 = arith.constant 1 : i32
        %c0_i32_0 = arith.constant 0 : i32
        scf.for %arg12 = %c0_i32_0 to %2 step %c1_i32  : i32 {
          %c128_i32 = arith.constant 128 : i32
          %3 = arith.muli %arg12, %c128_i32 {ptx.name = "k"} : i32
          %c7_i32 = arith.constant 7 : i32
          %4 = arith.shrsi %3, %c7_i32 : i32
          %c7_i32_1 = arith.constant 7 : i32
          %5 = arith.shrsi %3, %c7_i32_1 : i32
          %c7_i32_2 = arith.constant 7 : i32
          %6 = arith.shrsi %arg9, %c7_i32_2 : i32
          %7 = tile.acquire %1
          tile.copy %arg0[%arg8, %3] -> %7[0] multicast : <?x7168xf8E4M3FN>
          tile.copy %arg3[%arg7, %arg9, %3] -> %7[1] : <256x4096x7168xf8E4M3FN>
          tile.copy %arg1[%4, %arg8] -> %7[2] : <56x?xf32>
          tile.copy %arg4[%arg7, %6, %5] -> %7[3] : <256x32x56xf32>
          tile.publish %7
        } {ptx.name = "kStep"}
        tile.next_tile
      }
      tile.clean %arg6 counted in %arg6 at 1 : !tile.view<2xi32> in <2xi32>
    }
    tile.role  consumer registers 232 {
      tile.for_tiles %0 -> %arg7, %arg8, %arg9, %arg10, %arg11 {
        %2 = tile.acc : !tile.acc<128x256, columns, n = 128>
        %3 = tile.acc : !tile.fragment<n = 128>
        tile.fill %2 : <128x256, columns, n = 128>
        %c0_i32 = arith.constant 0 : i32
        %c56_i32 = arith.constant 56 : i32
        %4 = arith.select %arg11, %c56_i32, %c0_i32 : i32
        %c1_i32 = arith.constant 1 : i32
        %c0_i32_0 = arith.constant 0 : i32
        %c64_i32 = arith.constant 64 : i32
        %5 = arith.cmpi sgt, %arg10, %c64_i32 : i32
        scf.if %5 {
          %c4_i32 = arith.constant 4 : i32
          scf.for %arg12 = %c0_i32_0 to %4 step %c4_i32  : i32 {
            ptx.unroll %slotIndex = 0 to 4 {
              %6 = arith.addi %arg12, %slotIndex {ptx.name = "kStep"} : i32
              %c128_i32 = arith.constant 128 : i32
              %7 = arith.muli %6, %c128_i32 {ptx.name = "k"} : i32
              %c7_i32 = arith.constant 7 : i32
              %8 = arith.shrsi %7, %c7_i32 : i32
              %c7_i32_1 = arith.constant 7 : i32
              %9 = arith.shrsi %7, %c7_i32_1 : i32
              %c7_i32_2 = arith.constant 7 : i32
              %10 = arith.shrsi %arg9, %c7_i32_2 : i32
              %11 = tile.await %1 slot %slotIndex
              %12 = tile.field %11[0] = %arg0[%arg8, %7] : <?x7168xf8E4M3FN> -> <128x128xf8E4M3FN>
              %13 = tile.field %11[1] = %arg3[%arg7, %arg9, %7] : <256x4096x7168xf8E4M3FN> -> <1x256x128xf8E4M3FN>
              %14 = tile.field %11[2] = %arg1[%8, %arg8] : <56x?xf32> -> <1x128xf32>
              %15 = tile.field %11[3] = %arg4[%arg7, %10, %9] : <256x32x56xf32> -> <1x2x1xf32>
              tile.dot %3, %12, %13 batch 0 of !tile.acc<128x256, columns, n = 128> fresh : !tile.fragment<n = 128>, <128x128xf8E4M3FN>, <1x256x128xf8E4M3FN>
              %16:2 = tile.read %14  rows per 1 batch 0 of !tile.acc<128x256, columns, n = 128> : <1x128xf32> -> f32, f32
              %17 = tile.read %15  columns per 128 batch 0 of !tile.acc<128x256, columns, n = 128> : <1x2x1xf32> -> f32
              tile.wait %3 : !tile.fragment<n = 128>
              tile.promote %2, %3 row_values(%16#0, %16#1 : f32, f32) column_values(%17 : f32) batch 0 : <128x256, columns, n = 128>, !tile.fragment<n = 128>
              tile.dot %3, %12, %13 batch 1 of !tile.acc<128x256, columns, n = 128> fresh : !tile.fragment<n = 128>, <128x128xf8E4M3FN>, <1x256x128xf8E4M3FN>
              %18:2 = tile.read %14  rows per 1 batch 1 of !tile.acc<128x256, columns, n = 128> : <1x128xf32> -> f32, f32
              %19 = tile.read %15  columns per 128 batch 1 of !tile.acc<128x256, columns, n = 128> : <1x2x1xf32> -> f32
              tile.wait %3 : !tile.fragment<n = 128>
              tile.release %11
              tile.promote %2, %3 row_values(%18#0, %18#1 : f32, f32) column_values(%19 : f32) batch 1 : <128x256, columns, n = 128>, !tile.fragment<n = 128>
            } {ptx.name = "slotIndex"}
          } {ptx.name = "kTurn"}
        } else {
          scf.for %arg12 = %c0_i32_0 to %4 step %c1_i32  : i32 {
            %c128_i32 = arith.constant 128 : i32
            %6 = arith.muli %arg12, %c128_i32 {ptx.name = "k"} : i32
            %c7_i32 = arith.constant 7 : i32
            %7 = arith.shrsi %6, %c7_i32 : i32
            %c7_i32_1 = arith.constant 7 : i32
            %8 = arith.shrsi %6, %c7_i32_1 : i32
            %c7_i32_2 = arith.constant 7 : i32
            %9 = arith.shrsi %arg9, %c7_i32_2 : i32
            %10 = tile.await %1
            %11 = tile.field %10[0] = %arg0[%arg8, %6] : <?x7168xf8E4M3FN> -> <128x128xf8E4M3FN>
            %12 = tile.field %10[1] = %arg3[%arg7, %arg9, %6] : <256x4096x7168xf8E4M3FN> -> <1x256x128xf8E4M3FN>
            %13 = tile.field %10[2] = %arg1[%7, %arg8] : <56x?xf32> -> <1x128xf32>
            %14 = tile.field %10[3] = %arg4[%arg7, %9, %8] : <256x32x56xf32> -> <1x2x1xf32>
            tile.dot %3, %11, %12 batch 0 of !tile.acc<128x256, columns, n = 128> fresh : !tile.fragment<n = 128>, <128x128xf8E4M3FN>, <1x256x128xf8E4M3FN>
            %15:2 = tile.read %13  rows per 1 batch 0 of !tile.acc<128x256, columns, n = 128> : <1x128xf32> -> f32, f32
            %16 = tile.read %14  columns per 128 batch 0 of !tile.acc<128x256, columns, n = 128> : <1x2x1xf32> -> f32
            tile.wait %3 : !tile.fragment<n = 128>
            tile.release %10
            tile.promote %2, %3 row_values(%15#0, %15#1 : f32, f32) column_values(%16 : f32) batch 0 : <128x256, columns, n = 128>, !tile.fragment<n = 128>
          } {ptx.name = "kStep"}
        }
        tile.next_tile
        tile.store %2 -> %arg5[%arg8, %arg9] rows %arg10 staged : <128x256, columns, n = 128>, <?x4096xbf16>
      }
    }
  }
}
