module {
  ptx.kernel @moejit_kernel(%xMap: !ptx.tmap {ptx.name = "xMap"}, %wMap: !ptx.tmap {ptx.name = "wMap"}, %xScalesMap: !ptx.tmap {ptx.name = "xScalesMap"}, %wScalesMap: !ptx.tmap {ptx.name = "wScalesMap"}, %offsets: !ptx.ptr {ptx.name = "offsets"}, %y: !ptx.ptr {ptx.name = "y"}, %workspace: !ptx.ptr {ptx.name = "workspace"}, %rows: i32 {ptx.name = "rows"}, %yStride: i64 {ptx.name = "yStride"}) attributes {cluster = 2 : i32, min_blocks = 1 : i32, shared_bytes = 220212 : i32, threads = 384 : i32, tile.cleans, tile.grid = {columns = 4096 : i64, experts = 256 : i64, tile_m = 128 : i64, tile_n = 256 : i64}, tile.parameters = [{kind = "map", operand = "x", recipe = 0 : i64}, {kind = "map", operand = "w", recipe = 1 : i64}, {kind = "map", operand = "x_scales", recipe = 2 : i64}, {kind = "map", operand = "w_scales", recipe = 3 : i64}, {kind = "pointer", operand = "offsets"}, {kind = "pointer", operand = "y"}, {kind = "pointer", operand = "workspace"}, {kind = "rows", operand = ""}, {kind = "stride", operand = "y"}], tile.tensor_maps = [{box = array<i64: 128, 64>, extents = array<i64: 7168, -9223372036854775808>, operand = "x", strides = array<i64: -9223372036854775808>, swizzled = true, type = f8E4M3FN}, {box = array<i64: 128, 256, 1>, extents = array<i64: 7168, 4096, 256>, operand = "w", strides = array<i64: 7168, 29360128>, swizzled = true, type = f8E4M3FN}, {box = array<i64: 132, 1>, extents = array<i64: -9223372036854775808, 56>, operand = "x_scales", strides = array<i64: -9223372036854775808>, swizzled = false, type = f32}, {box = array<i64: 4>, extents = array<i64: 458752>, operand = "w_scales", strides = array<i64>, swizzled = false, type = f32}], tile.workspace = [{bytes = 8 : i64, operand = "workspace", row_bytes = 0 : i64, zeroed = true}]} {
    %c39_i32 = arith.constant 39 : i32
    %c38_i32 = arith.constant 38 : i32
    %c37_i32 = arith.constant 37 : i32
    %c36_i32 = arith.constant 36 : i32
    %c35_i32 = arith.constant 35 : i32
    %c34_i32 = arith.constant 34 : i32
    %c33_i32 = arith.constant 33 : i32
    %c49920_i32 = arith.constant 49920 : i32
    %c219160_i32 = arith.constant 219160 : i32
    %c219144_i32 = arith.constant 219144 : i32
    %c219152_i32 = arith.constant 219152 : i32
    %c144_i32 = arith.constant 144 : i32
    %c15_i32 = arith.constant 15 : i32
    %c2304_i32 = arith.constant 2304 : i32
    %c2_i64 = arith.constant 2 : i64
    %c50056_i32 = arith.constant 50056 : i32
    %c8192_i32 = arith.constant 8192 : i32
    %c6_i32 = arith.constant 6 : i32
    %c65536_i32 = arith.constant 65536 : i32
    %0 = ptx.constant_f32 0.000000e+00
    %c4_i64 = arith.constant 4 : i64
    %c32_i32 = arith.constant 32 : i32
    %c49792_i32 = arith.constant 49792 : i32
    %c-4_i32 = arith.constant -4 : i32
    %c49152_i32 = arith.constant 49152 : i32
    %c16384_i32 = arith.constant 16384 : i32
    %c64_i32 = arith.constant 64 : i32
    %c200704_i32 = arith.constant 200704 : i32
    %c49712_i32 = arith.constant 49712 : i32
    %c56_i32 = arith.constant 56 : i32
    %c255_i32 = arith.constant 255 : i32
    %c512_i32 = arith.constant 512 : i32
    %c128_i32 = arith.constant 128 : i32
    %c0_i64 = arith.constant 0 : i64
    %c256_i32 = arith.constant 256 : i32
    %c258_i32 = arith.constant 258 : i32
    %c7_i32 = arith.constant 7 : i32
    %c127_i32 = arith.constant 127 : i32
    %c50176_i32 = arith.constant 50176 : i32
    %c50048_i32 = arith.constant 50048 : i32
    %c219184_i32 = arith.constant 219184 : i32
    %c4_i32 = arith.constant 4 : i32
    %c257_i32 = arith.constant 257 : i32
    %c384_i32 = arith.constant 384 : i32
    %c8_i32 = arith.constant 8 : i32
    %c16_i32 = arith.constant 16 : i32
    %c17_i32 = arith.constant 17 : i32
    %c1_i32 = arith.constant 1 : i32
    %c219136_i32 = arith.constant 219136 : i32
    %c31_i32 = arith.constant 31 : i32
    %c3_i32 = arith.constant 3 : i32
    %c-1_i32 = arith.constant -1 : i32
    %c2_i32 = arith.constant 2 : i32
    %c0_i32 = arith.constant 0 : i32
    %c5_i32 = arith.constant 5 : i32
    %1 = ptx.thread_index {ptx.name = "thread"}
    %2 = arith.shrsi %1, %c5_i32 : i32
    %3 = ptx.shfl_idx %2, %c0_i32 {ptx.name = "warp"}
    %4 = arith.shrsi %3, %c2_i32 : i32
    %5 = arith.addi %4, %c-1_i32 {ptx.name = "warpgroup"} : i32
    %6 = arith.andi %3, %c3_i32 {ptx.name = "warpInGroup"} : i32
    %7 = arith.andi %1, %c31_i32 {ptx.name = "lane"} : i32
    %8 = ptx.shared_base {ptx.name = "shared"}
    %9 = ptx.cluster_rank {ptx.name = "clusterRank"}
    %10 = arith.addi %8, %c219136_i32 : i32
    %11 = arith.cmpi eq, %1, %c0_i32 : i32
    scf.if %11 {
      ptx.mbarrier_init %10, %c1_i32
      %15 = arith.addi %8, %c219152_i32 : i32
      ptx.mbarrier_init %15, %c17_i32
      %16 = arith.addi %8, %c219144_i32 : i32
      ptx.mbarrier_init %16, %c1_i32
      %17 = arith.addi %8, %c219160_i32 : i32
      ptx.mbarrier_init %17, %c17_i32
      ptx.fence_mbarrier_init
    }
    %12 = arith.addi %8, %c219184_i32 : i32
    scf.for %arg0 = %1 to %c257_i32 step %c384_i32  : i32 {
      %15 = arith.muli %arg0, %c4_i32 : i32
      %16 = arith.extsi %15 : i32 to i64
      %17 = ptx.ld_global_i32 %offsets, %16
      %18 = arith.maxsi %17, %c0_i32 : i32
      %19 = arith.minsi %18, %rows : i32
      %20 = arith.addi %12, %15 : i32
      ptx.st_shared_i32 %20, %19
    } {ptx.name = "expert"}
    %13 = arith.addi %8, %c50048_i32 : i32
    scf.if %11 {
      ptx.unroll %arg0 = 0 to 4 {
        %15 = arith.muli %arg0, %c50176_i32 : i32
        %16 = arith.addi %13, %15 {ptx.name = "full"} : i32
        ptx.mbarrier_init %16, %c1_i32
        %17 = arith.addi %16, %c8_i32 : i32
        ptx.mbarrier_init %17, %c16_i32
      }
      ptx.fence_mbarrier_init
    }
    ptx.syncwarp
    ptx.cluster_arrive
    ptx.cluster_wait
    %14 = arith.cmpi slt, %3, %c4_i32 : i32
    scf.if %14 {
      ptx.setmaxnreg_dec 40
      scf.if %11 {
        %15 = ptx.regs {ptx.name = "fill"} : !ptx.regs<2xi32>
        ptx.regs_set %8, %15[0] : !ptx.regs<2xi32>
        ptx.regs_set %c0_i32, %15[1] : !ptx.regs<2xi32>
        %16 = ptx.regs {ptx.name = "walk"} : !ptx.regs<5xi32>
        %17 = ptx.regs {ptx.name = "queue"} : !ptx.regs<2xi32>
        ptx.regs_set %c0_i32, %17[0] : !ptx.regs<2xi32>
        ptx.regs_set %c0_i32, %17[1] : !ptx.regs<2xi32>
        %18 = ptx.regs {ptx.name = "ahead"} : !ptx.regs<1xi32>
        %19 = ptx.block_index
        %20 = arith.shrsi %19, %c1_i32 : i32
        ptx.regs_set %20, %16[0] : !ptx.regs<5xi32>
        ptx.regs_set %c0_i32, %16[4] : !ptx.regs<5xi32>
        %21 = arith.addi %8, %c219184_i32 : i32
        %22 = ptx.ld_shared_i32 %21 {ptx.name = "firstOwned"}
        ptx.regs_set %c0_i32, %16[1] : !ptx.regs<5xi32>
        ptx.regs_set %c0_i32, %16[2] : !ptx.regs<5xi32>
        ptx.regs_set %22, %16[3] : !ptx.regs<5xi32>
        scf.while : () -> () {
          %33 = ptx.regs_get %16[2] : !ptx.regs<5xi32>
          %34 = ptx.regs_get %16[3] : !ptx.regs<5xi32>
          %35 = arith.subi %34, %33 : i32
          %36 = arith.addi %35, %c127_i32 : i32
          %37 = arith.shrsi %36, %c7_i32 : i32
          %38 = arith.muli %37, %c8_i32 : i32
          %39 = ptx.regs_get %16[4] : !ptx.regs<5xi32>
          %40 = arith.addi %39, %38 : i32
          %41 = ptx.regs_get %16[0] : !ptx.regs<5xi32>
          %42 = arith.cmpi sge, %41, %40 : i32
          %43 = ptx.regs_get %16[1] : !ptx.regs<5xi32>
          %44 = arith.cmpi slt, %43, %c258_i32 : i32
          %45 = arith.andi %44, %42 : i1
          scf.condition(%45)
        } do {
          %33 = ptx.regs_get %16[2] : !ptx.regs<5xi32>
          %34 = ptx.regs_get %16[3] : !ptx.regs<5xi32>
          %35 = arith.subi %34, %33 : i32
          %36 = arith.addi %35, %c127_i32 : i32
          %37 = arith.shrsi %36, %c7_i32 : i32
          %38 = arith.muli %37, %c8_i32 : i32
          %39 = ptx.regs_get %16[4] : !ptx.regs<5xi32>
          %40 = arith.addi %39, %38 : i32
          %41 = ptx.regs_get %16[1] : !ptx.regs<5xi32>
          %42 = arith.addi %41, %c1_i32 {ptx.name = "group"} : i32
          %43 = ptx.regs_get %16[3] {ptx.name = "low"} : !ptx.regs<5xi32>
          ptx.regs_set %40, %16[4] : !ptx.regs<5xi32>
          ptx.regs_set %42, %16[1] : !ptx.regs<5xi32>
          ptx.regs_set %43, %16[2] : !ptx.regs<5xi32>
          %44 = arith.minsi %42, %c256_i32 : i32
          %45 = arith.muli %44, %c4_i32 : i32
          %46 = arith.addi %21, %45 : i32
          %47 = ptx.ld_shared_i32 %46
          %48 = arith.cmpi sgt, %42, %c256_i32 : i32
          %49 = arith.select %48, %rows, %47 : i32
          %50 = arith.maxsi %43, %49 : i32
          ptx.regs_set %50, %16[3] : !ptx.regs<5xi32>
          scf.yield
        }
        %23 = arith.cmpi eq, %9, %c0_i32 : i32
        %24 = arith.muli %9, %c256_i32 : i32
        %25 = arith.addi %8, %c200704_i32 : i32
        %26 = arith.muli %9, %c64_i32 {ptx.name = "firstOfPart"} : i32
        %27 = arith.muli %9, %c8192_i32 : i32
        %28 = arith.cmpi sgt, %9, %c0_i32 : i32
        scf.while : () -> () {
          %33 = ptx.regs_get %16[1] : !ptx.regs<5xi32>
          %34 = arith.cmpi slt, %33, %c258_i32 : i32
          scf.condition(%34)
        } do {
          scf.if %23 {
            %82 = ptx.atom_add_global_i32 %workspace, %c0_i64, %c1_i32
            ptx.regs_set %82, %18[0] : !ptx.regs<1xi32>
          }
          %33 = ptx.regs_get %16[2] {ptx.name = "low"} : !ptx.regs<5xi32>
          %34 = ptx.regs_get %16[3] {ptx.name = "high"} : !ptx.regs<5xi32>
          %35 = ptx.regs_get %16[1] {ptx.name = "group"} : !ptx.regs<5xi32>
          %36 = ptx.regs_get %16[4] : !ptx.regs<5xi32>
          %37 = ptx.regs_get %16[0] : !ptx.regs<5xi32>
          %38 = arith.subi %37, %36 {ptx.name = "tileInGroup"} : i32
          %39 = arith.shrsi %38, %c7_i32 : i32
          %40 = arith.muli %39, %c128_i32 : i32
          %41 = arith.subi %38, %40 : i32
          %42 = arith.muli %39, %c16_i32 : i32
          %43 = arith.subi %34, %33 : i32
          %44 = arith.addi %43, %c127_i32 : i32
          %45 = arith.shrsi %44, %c7_i32 : i32
          %46 = arith.subi %45, %42 : i32
          %47 = arith.minsi %46, %c16_i32 {ptx.name = "sweepHeight"} : i32
          %48 = arith.divsi %41, %47 : i32
          %49 = arith.muli %48, %47 : i32
          %50 = arith.subi %41, %49 : i32
          %51 = arith.addi %42, %50 : i32
          %52 = arith.muli %51, %c128_i32 : i32
          %53 = arith.addi %33, %52 {ptx.name = "tileRow"} : i32
          %54 = arith.muli %48, %c512_i32 : i32
          %55 = arith.addi %54, %24 {ptx.name = "tileColumn"} : i32
          %56 = arith.addi %35, %c-1_i32 : i32
          %57 = arith.maxsi %56, %c0_i32 : i32
          %58 = arith.minsi %57, %c255_i32 {ptx.name = "expert"} : i32
          %59 = arith.cmpi slt, %35, %c257_i32 : i32
          %60 = arith.cmpi sgt, %35, %c0_i32 : i32
          %61 = arith.andi %60, %59 {ptx.name = "isOwned"} : i1
          %62 = arith.select %61, %c56_i32, %c0_i32 : i32
          %63 = arith.shrsi %55, %c7_i32 : i32
          %64 = arith.addi %53, %26 : i32
          %65 = arith.andi %53, %c-4_i32 : i32
          %66 = arith.muli %58, %c32_i32 : i32
          %67 = arith.addi %66, %63 : i32
          %68 = arith.muli %67, %c56_i32 : i32
          scf.for %arg0 = %c0_i32 to %62 step %c1_i32  : i32 {
            %82 = arith.muli %arg0, %c128_i32 {ptx.name = "k"} : i32
            %83 = arith.shrsi %82, %c7_i32 : i32
            %84 = ptx.regs_get %15[0] {ptx.name = "slot"} : !ptx.regs<2xi32>
            %85 = ptx.regs_get %15[1] {ptx.name = "phase"} : !ptx.regs<2xi32>
            %86 = arith.addi %84, %c50048_i32 : i32
            %87 = arith.xori %85, %c1_i32 : i32
            %88 = arith.addi %84, %c50056_i32 : i32
            ptx.mbarrier_wait %88, %87
            ptx.mbarrier_expect_tx %86, %c49712_i32
            %89 = arith.addi %84, %c50176_i32 : i32
            %90 = arith.cmpi eq, %89, %25 : i32
            %91 = arith.select %90, %8, %89 : i32
            ptx.regs_set %91, %15[0] : !ptx.regs<2xi32>
            %92 = arith.extui %90 : i1 to i32
            %93 = arith.xori %85, %92 : i32
            ptx.regs_set %93, %15[1] : !ptx.regs<2xi32>
            %94 = arith.addi %84, %27 : i32
            ptx.tma_load %94, %xMap[%82, %64], %86 multicast %c3_i32
            %95 = arith.addi %84, %c16384_i32 : i32
            ptx.tma_load %95, %wMap[%82, %55, %58], %86
            %96 = arith.addi %84, %c49152_i32 : i32
            ptx.tma_load %96, %xScalesMap[%65, %83], %86
            %97 = arith.addi %84, %c49792_i32 : i32
            %98 = arith.addi %68, %83 : i32
            %99 = arith.andi %98, %c-4_i32 : i32
            ptx.tma_load %97, %wScalesMap[%99], %86
            %100 = arith.addi %98, %c56_i32 : i32
            %101 = arith.andi %100, %c-4_i32 : i32
            %102 = arith.addi %84, %c49920_i32 : i32
            ptx.tma_load %102, %wScalesMap[%101], %86
          } {ptx.name = "kStep"}
          %69 = ptx.regs_get %17[0] : !ptx.regs<2xi32>
          %70 = ptx.regs_get %17[1] : !ptx.regs<2xi32>
          %71 = arith.muli %69, %c8_i32 : i32
          %72 = arith.addi %10, %71 {ptx.name = "tileFull"} : i32
          %73 = arith.muli %69, %c4_i32 : i32
          %74 = arith.addi %73, %c32_i32 : i32
          %75 = arith.addi %10, %74 : i32
          scf.if %23 {
            %82 = arith.xori %70, %c1_i32 : i32
            %83 = arith.addi %72, %c16_i32 : i32
            ptx.mbarrier_wait %83, %82
          }
          ptx.mbarrier_expect_tx %72, %c4_i32
          scf.if %23 {
            %82 = ptx.regs_get %18[0] : !ptx.regs<1xi32>
            %83 = ptx.grid_size
            %84 = arith.shrsi %83, %c1_i32 : i32
            %85 = arith.addi %82, %84 : i32
            ptx.regs_set %85, %18[0] : !ptx.regs<1xi32>
            ptx.st_async_i32 %75, %85, %72, %c0_i32
            ptx.st_async_i32 %75, %85, %72, %c1_i32
          }
          scf.if %28 {
            ptx.mbarrier_wait_cluster %72, %70
            %82 = ptx.ld_shared_i32 %75
            ptx.regs_set %82, %18[0] : !ptx.regs<1xi32>
            %83 = arith.addi %72, %c16_i32 : i32
            ptx.mbarrier_arrive_cluster %83, %c0_i32
          }
          %76 = ptx.regs_get %18[0] : !ptx.regs<1xi32>
          %77 = arith.cmpi eq, %69, %c1_i32 : i32
          %78 = arith.addi %69, %c1_i32 : i32
          %79 = arith.select %77, %c0_i32, %78 : i32
          ptx.regs_set %79, %17[0] : !ptx.regs<2xi32>
          %80 = arith.extui %77 : i1 to i32
          %81 = arith.xori %70, %80 : i32
          ptx.regs_set %81, %17[1] : !ptx.regs<2xi32>
          ptx.regs_set %76, %16[0] : !ptx.regs<5xi32>
          scf.while : () -> () {
            %82 = ptx.regs_get %16[2] : !ptx.regs<5xi32>
            %83 = ptx.regs_get %16[3] : !ptx.regs<5xi32>
            %84 = arith.subi %83, %82 : i32
            %85 = arith.addi %84, %c127_i32 : i32
            %86 = arith.shrsi %85, %c7_i32 : i32
            %87 = arith.muli %86, %c8_i32 : i32
            %88 = ptx.regs_get %16[4] : !ptx.regs<5xi32>
            %89 = arith.addi %88, %87 : i32
            %90 = ptx.regs_get %16[0] : !ptx.regs<5xi32>
            %91 = arith.cmpi sge, %90, %89 : i32
            %92 = ptx.regs_get %16[1] : !ptx.regs<5xi32>
            %93 = arith.cmpi slt, %92, %c258_i32 : i32
            %94 = arith.andi %93, %91 : i1
            scf.condition(%94)
          } do {
            %82 = ptx.regs_get %16[2] : !ptx.regs<5xi32>
            %83 = ptx.regs_get %16[3] : !ptx.regs<5xi32>
            %84 = arith.subi %83, %82 : i32
            %85 = arith.addi %84, %c127_i32 : i32
            %86 = arith.shrsi %85, %c7_i32 : i32
            %87 = arith.muli %86, %c8_i32 : i32
            %88 = ptx.regs_get %16[4] : !ptx.regs<5xi32>
            %89 = arith.addi %88, %87 : i32
            %90 = ptx.regs_get %16[1] : !ptx.regs<5xi32>
            %91 = arith.addi %90, %c1_i32 {ptx.name = "group"} : i32
            %92 = ptx.regs_get %16[3] {ptx.name = "low"} : !ptx.regs<5xi32>
            ptx.regs_set %89, %16[4] : !ptx.regs<5xi32>
            ptx.regs_set %91, %16[1] : !ptx.regs<5xi32>
            ptx.regs_set %92, %16[2] : !ptx.regs<5xi32>
            %93 = arith.minsi %91, %c256_i32 : i32
            %94 = arith.muli %93, %c4_i32 : i32
            %95 = arith.addi %21, %94 : i32
            %96 = ptx.ld_shared_i32 %95
            %97 = arith.cmpi sgt, %91, %c256_i32 : i32
            %98 = arith.select %97, %rows, %96 : i32
            %99 = arith.maxsi %92, %98 : i32
            ptx.regs_set %99, %16[3] : !ptx.regs<5xi32>
            scf.yield
          }
          scf.yield
        }
        ptx.fence_acq_rel_gpu
        %29 = ptx.atom_add_global_i32 %workspace, %c4_i64, %c1_i32 {ptx.name = "blocksBefore"}
        %30 = ptx.grid_size
        %31 = arith.addi %30, %c-1_i32 : i32
        %32 = arith.cmpi eq, %29, %31 : i32
        scf.if %32 {
          ptx.fence_acq_rel_gpu
          ptx.st_global_b32 %workspace, %c0_i64, %c0_i32
          ptx.st_global_b32 %workspace, %c4_i64, %c0_i32
        }
      }
    } else {
      ptx.setmaxnreg_inc 232
      %15 = ptx.regs {ptx.name = "drain"} : !ptx.regs<2xi32>
      ptx.regs_set %8, %15[0] : !ptx.regs<2xi32>
      ptx.regs_set %c0_i32, %15[1] : !ptx.regs<2xi32>
      %16 = ptx.regs {ptx.name = "walk"} : !ptx.regs<5xi32>
      %17 = ptx.regs {ptx.name = "queue"} : !ptx.regs<2xi32>
      ptx.regs_set %c0_i32, %17[0] : !ptx.regs<2xi32>
      ptx.regs_set %c0_i32, %17[1] : !ptx.regs<2xi32>
      %18 = ptx.block_index
      %19 = arith.shrsi %18, %c1_i32 : i32
      ptx.regs_set %19, %16[0] : !ptx.regs<5xi32>
      ptx.regs_set %c0_i32, %16[4] : !ptx.regs<5xi32>
      %20 = arith.addi %8, %c219184_i32 : i32
      %21 = ptx.ld_shared_i32 %20 {ptx.name = "firstOwned"}
      ptx.regs_set %c0_i32, %16[1] : !ptx.regs<5xi32>
      ptx.regs_set %c0_i32, %16[2] : !ptx.regs<5xi32>
      ptx.regs_set %21, %16[3] : !ptx.regs<5xi32>
      scf.while : () -> () {
        %34 = ptx.regs_get %16[2] : !ptx.regs<5xi32>
        %35 = ptx.regs_get %16[3] : !ptx.regs<5xi32>
        %36 = arith.subi %35, %34 : i32
        %37 = arith.addi %36, %c127_i32 : i32
        %38 = arith.shrsi %37, %c7_i32 : i32
        %39 = arith.muli %38, %c8_i32 : i32
        %40 = ptx.regs_get %16[4] : !ptx.regs<5xi32>
        %41 = arith.addi %40, %39 : i32
        %42 = ptx.regs_get %16[0] : !ptx.regs<5xi32>
        %43 = arith.cmpi sge, %42, %41 : i32
        %44 = ptx.regs_get %16[1] : !ptx.regs<5xi32>
        %45 = arith.cmpi slt, %44, %c258_i32 : i32
        %46 = arith.andi %45, %43 : i1
        scf.condition(%46)
      } do {
        %34 = ptx.regs_get %16[2] : !ptx.regs<5xi32>
        %35 = ptx.regs_get %16[3] : !ptx.regs<5xi32>
        %36 = arith.subi %35, %34 : i32
        %37 = arith.addi %36, %c127_i32 : i32
        %38 = arith.shrsi %37, %c7_i32 : i32
        %39 = arith.muli %38, %c8_i32 : i32
        %40 = ptx.regs_get %16[4] : !ptx.regs<5xi32>
        %41 = arith.addi %40, %39 : i32
        %42 = ptx.regs_get %16[1] : !ptx.regs<5xi32>
        %43 = arith.addi %42, %c1_i32 {ptx.name = "group"} : i32
        %44 = ptx.regs_get %16[3] {ptx.name = "low"} : !ptx.regs<5xi32>
        ptx.regs_set %41, %16[4] : !ptx.regs<5xi32>
        ptx.regs_set %43, %16[1] : !ptx.regs<5xi32>
        ptx.regs_set %44, %16[2] : !ptx.regs<5xi32>
        %45 = arith.minsi %43, %c256_i32 : i32
        %46 = arith.muli %45, %c4_i32 : i32
        %47 = arith.addi %20, %46 : i32
        %48 = ptx.ld_shared_i32 %47
        %49 = arith.cmpi sgt, %43, %c256_i32 : i32
        %50 = arith.select %49, %rows, %48 : i32
        %51 = arith.maxsi %44, %50 : i32
        ptx.regs_set %51, %16[3] : !ptx.regs<5xi32>
        scf.yield
      }
      %22 = arith.muli %9, %c256_i32 : i32
      %23 = arith.cmpi eq, %7, %c0_i32 : i32
      %24 = arith.muli %yStride, %c2_i64 {ptx.name = "yStrideBytes"} : i64
      %25 = arith.muli %5, %c4_i32 : i32
      %26 = arith.addi %25, %6 : i32
      %27 = arith.muli %26, %c2304_i32 : i32
      %28 = arith.addi %27, %c200704_i32 : i32
      %29 = arith.addi %8, %28 {ptx.name = "buffer"} : i32
      %30 = arith.muli %6, %c16_i32 {ptx.name = "firstRow"} : i32
      %31 = arith.muli %5, %c128_i32 : i32
      %32 = arith.muli %6, %c16_i32 : i32
      %33 = arith.addi %32, %c64_i32 {ptx.name = "firstRow"} : i32
      scf.while : () -> () {
        %34 = ptx.regs_get %16[1] : !ptx.regs<5xi32>
        %35 = arith.cmpi slt, %34, %c258_i32 : i32
        scf.condition(%35)
      } do {
        %34 = ptx.regs_get %16[2] {ptx.name = "low"} : !ptx.regs<5xi32>
        %35 = ptx.regs_get %16[3] {ptx.name = "high"} : !ptx.regs<5xi32>
        %36 = ptx.regs_get %16[1] {ptx.name = "group"} : !ptx.regs<5xi32>
        %37 = ptx.regs_get %16[4] : !ptx.regs<5xi32>
        %38 = ptx.regs_get %16[0] : !ptx.regs<5xi32>
        %39 = arith.subi %38, %37 {ptx.name = "tileInGroup"} : i32
        %40 = arith.shrsi %39, %c7_i32 : i32
        %41 = arith.muli %40, %c128_i32 : i32
        %42 = arith.subi %39, %41 : i32
        %43 = arith.muli %40, %c16_i32 : i32
        %44 = arith.subi %35, %34 : i32
        %45 = arith.addi %44, %c127_i32 : i32
        %46 = arith.shrsi %45, %c7_i32 : i32
        %47 = arith.subi %46, %43 : i32
        %48 = arith.minsi %47, %c16_i32 {ptx.name = "sweepHeight"} : i32
        %49 = arith.divsi %42, %48 : i32
        %50 = arith.muli %49, %48 : i32
        %51 = arith.subi %42, %50 : i32
        %52 = arith.addi %43, %51 : i32
        %53 = arith.muli %52, %c128_i32 : i32
        %54 = arith.addi %34, %53 {ptx.name = "tileRow"} : i32
        %55 = arith.muli %49, %c512_i32 : i32
        %56 = arith.addi %55, %22 {ptx.name = "tileColumn"} : i32
        %57 = arith.subi %35, %54 : i32
        %58 = arith.minsi %57, %c128_i32 {ptx.name = "rowsInTile"} : i32
        %59 = arith.addi %36, %c-1_i32 : i32
        %60 = arith.maxsi %59, %c0_i32 : i32
        %61 = arith.minsi %60, %c255_i32 {ptx.name = "expert"} : i32
        %62 = arith.cmpi slt, %36, %c257_i32 : i32
        %63 = arith.cmpi sgt, %36, %c0_i32 : i32
        %64 = arith.andi %63, %62 {ptx.name = "isOwned"} : i1
        %65 = ptx.regs {ptx.name = "acc"} : !ptx.regs<2x64xf32>
        %66 = ptx.regs {ptx.name = "part"} : !ptx.regs<64xf32>
        ptx.unroll %arg0 = 0 to 64 {
          ptx.regs_set %0, %65[0, %arg0] : !ptx.regs<2x64xf32>
        }
        ptx.unroll %arg0 = 0 to 64 {
          ptx.regs_set %0, %65[1, %arg0] : !ptx.regs<2x64xf32>
        }
        %67 = arith.select %64, %c56_i32, %c0_i32 : i32
        %68 = arith.cmpi sgt, %58, %c64_i32 : i32
        scf.if %68 {
          scf.for %arg0 = %c0_i32 to %67 step %c4_i32  : i32 {
            ptx.unroll %slotIndex = 0 to 4 {
              %86 = arith.addi %arg0, %slotIndex {ptx.name = "kStep"} : i32
              %87 = arith.muli %86, %c128_i32 {ptx.name = "k"} : i32
              %88 = arith.shrsi %87, %c7_i32 : i32
              %89 = arith.shrsi %56, %c7_i32 : i32
              %90 = ptx.regs_get %15[1] {ptx.name = "phase"} : !ptx.regs<2xi32>
              %91 = arith.muli %slotIndex, %c50176_i32 : i32
              %92 = arith.addi %8, %91 {ptx.name = "slot"} : i32
              %93 = arith.addi %92, %c50048_i32 : i32
              ptx.mbarrier_wait %93, %90
              %94 = arith.cmpi eq, %slotIndex, %c3_i32 : i32
              %95 = arith.extui %94 : i1 to i32
              %96 = arith.xori %90, %95 : i32
              ptx.regs_set %96, %15[1] : !ptx.regs<2xi32>
              %97 = arith.addi %92, %c16384_i32 : i32
              ptx.regs_pin %66 : !ptx.regs<64xf32>
              ptx.wgmma_fence
              %98 = arith.shrsi %92, %c4_i32 : i32
              %99 = arith.ori %98, %c65536_i32 {ptx.name = "descA"} : i32
              %100 = arith.muli %5, %c16384_i32 : i32
              %101 = arith.addi %97, %100 : i32
              %102 = arith.shrsi %101, %c4_i32 : i32
              %103 = arith.ori %102, %c65536_i32 {ptx.name = "descB"} : i32
              ptx.wgmma %66, %99, %103, %c0_i32 {a = "e4m3", b = "e4m3", n = 128 : i32} : !ptx.regs<64xf32>
              %104 = arith.addi %103, %c2_i32 : i32
              %105 = arith.addi %99, %c2_i32 : i32
              ptx.wgmma %66, %105, %104, %c1_i32 {a = "e4m3", b = "e4m3", n = 128 : i32} : !ptx.regs<64xf32>
              %106 = arith.addi %103, %c4_i32 : i32
              %107 = arith.addi %99, %c4_i32 : i32
              ptx.wgmma %66, %107, %106, %c1_i32 {a = "e4m3", b = "e4m3", n = 128 : i32} : !ptx.regs<64xf32>
              %108 = arith.addi %103, %c6_i32 : i32
              %109 = arith.addi %99, %c6_i32 : i32
              ptx.wgmma %66, %109, %108, %c1_i32 {a = "e4m3", b = "e4m3", n = 128 : i32} : !ptx.regs<64xf32>
              ptx.wgmma_commit
              %110 = arith.shrsi %7, %c2_i32 : i32
              %111 = arith.muli %6, %c16_i32 : i32
              %112 = arith.addi %111, %110 : i32
              %113 = arith.addi %92, %c49152_i32 : i32
              %114 = arith.andi %54, %c3_i32 : i32
              %115 = arith.addi %112, %114 : i32
              %116 = arith.muli %115, %c4_i32 : i32
              %117 = arith.addi %113, %116 : i32
              %118 = ptx.ld_shared_f32 %117 {ptx.name = "rowScale"}
              %119 = arith.addi %112, %c8_i32 : i32
              %120 = arith.addi %119, %114 : i32
              %121 = arith.muli %120, %c4_i32 : i32
              %122 = arith.addi %113, %121 : i32
              %123 = ptx.ld_shared_f32 %122 {ptx.name = "rowScaleBelow"}
              %124 = arith.muli %5, %c128_i32 : i32
              %125 = arith.shrsi %124, %c7_i32 : i32
              %126 = arith.addi %92, %c49792_i32 : i32
              %127 = arith.muli %61, %c32_i32 : i32
              %128 = arith.addi %127, %89 : i32
              %129 = arith.muli %128, %c56_i32 : i32
              %130 = arith.addi %129, %88 : i32
              %131 = arith.muli %125, %c56_i32 : i32
              %132 = arith.addi %130, %131 : i32
              %133 = arith.andi %132, %c3_i32 : i32
              %134 = arith.muli %133, %c4_i32 : i32
              %135 = arith.muli %125, %c128_i32 : i32
              %136 = arith.addi %126, %135 : i32
              %137 = arith.addi %136, %134 : i32
              %138 = ptx.ld_shared_f32 %137 {ptx.name = "columnScale"}
              ptx.wgmma_wait 0
              ptx.regs_pin %66 : !ptx.regs<64xf32>
              %139 = ptx.mul_f32 %118, %138
              %140 = ptx.mul_f32 %123, %138
              ptx.unroll %arg1 = 0 to 64 step 4 {
                %163 = ptx.regs_get %65[0, %arg1] : !ptx.regs<2x64xf32>
                %164 = ptx.regs_get %66[%arg1] : !ptx.regs<64xf32>
                %165 = ptx.fma_f32 %164, %139, %163
                ptx.regs_set %165, %65[0, %arg1] : !ptx.regs<2x64xf32>
                %166 = arith.addi %arg1, %c1_i32 : i32
                %167 = ptx.regs_get %65[0, %166] : !ptx.regs<2x64xf32>
                %168 = ptx.regs_get %66[%166] : !ptx.regs<64xf32>
                %169 = ptx.fma_f32 %168, %139, %167
                ptx.regs_set %169, %65[0, %166] : !ptx.regs<2x64xf32>
                %170 = arith.addi %arg1, %c2_i32 : i32
                %171 = ptx.regs_get %65[0, %170] : !ptx.regs<2x64xf32>
                %172 = ptx.regs_get %66[%170] : !ptx.regs<64xf32>
                %173 = ptx.fma_f32 %172, %140, %171
                ptx.regs_set %173, %65[0, %170] : !ptx.regs<2x64xf32>
                %174 = arith.addi %arg1, %c3_i32 : i32
                %175 = ptx.regs_get %65[0, %174] : !ptx.regs<2x64xf32>
                %176 = ptx.regs_get %66[%174] : !ptx.regs<64xf32>
                %177 = ptx.fma_f32 %176, %140, %175
                ptx.regs_set %177, %65[0, %174] : !ptx.regs<2x64xf32>
              }
              ptx.regs_pin %66 : !ptx.regs<64xf32>
              ptx.wgmma_fence
              %141 = arith.addi %92, %c8192_i32 : i32
              %142 = arith.shrsi %141, %c4_i32 : i32
              %143 = arith.ori %142, %c65536_i32 {ptx.name = "descA"} : i32
              ptx.wgmma %66, %143, %103, %c0_i32 {a = "e4m3", b = "e4m3", n = 128 : i32} : !ptx.regs<64xf32>
              %144 = arith.addi %143, %c2_i32 : i32
              ptx.wgmma %66, %144, %104, %c1_i32 {a = "e4m3", b = "e4m3", n = 128 : i32} : !ptx.regs<64xf32>
              %145 = arith.addi %143, %c4_i32 : i32
              ptx.wgmma %66, %145, %106, %c1_i32 {a = "e4m3", b = "e4m3", n = 128 : i32} : !ptx.regs<64xf32>
              %146 = arith.addi %143, %c6_i32 : i32
              ptx.wgmma %66, %146, %108, %c1_i32 {a = "e4m3", b = "e4m3", n = 128 : i32} : !ptx.regs<64xf32>
              ptx.wgmma_commit
              %147 = arith.addi %111, %c64_i32 : i32
              %148 = arith.addi %147, %110 : i32
              %149 = arith.addi %148, %114 : i32
              %150 = arith.muli %149, %c4_i32 : i32
              %151 = arith.addi %113, %150 : i32
              %152 = ptx.ld_shared_f32 %151 {ptx.name = "rowScale"}
              %153 = arith.addi %148, %c8_i32 : i32
              %154 = arith.addi %153, %114 : i32
              %155 = arith.muli %154, %c4_i32 : i32
              %156 = arith.addi %113, %155 : i32
              %157 = ptx.ld_shared_f32 %156 {ptx.name = "rowScaleBelow"}
              %158 = ptx.ld_shared_f32 %137 {ptx.name = "columnScale"}
              ptx.wgmma_wait 0
              ptx.regs_pin %66 : !ptx.regs<64xf32>
              %159 = arith.addi %92, %c50056_i32 : i32
              ptx.syncwarp
              %160 = arith.cmpi slt, %7, %c2_i32 : i32
              scf.if %160 {
                ptx.mbarrier_arrive_cluster %159, %7
              }
              %161 = ptx.mul_f32 %152, %158
              %162 = ptx.mul_f32 %157, %158
              ptx.unroll %arg1 = 0 to 64 step 4 {
                %163 = ptx.regs_get %65[1, %arg1] : !ptx.regs<2x64xf32>
                %164 = ptx.regs_get %66[%arg1] : !ptx.regs<64xf32>
                %165 = ptx.fma_f32 %164, %161, %163
                ptx.regs_set %165, %65[1, %arg1] : !ptx.regs<2x64xf32>
                %166 = arith.addi %arg1, %c1_i32 : i32
                %167 = ptx.regs_get %65[1, %166] : !ptx.regs<2x64xf32>
                %168 = ptx.regs_get %66[%166] : !ptx.regs<64xf32>
                %169 = ptx.fma_f32 %168, %161, %167
                ptx.regs_set %169, %65[1, %166] : !ptx.regs<2x64xf32>
                %170 = arith.addi %arg1, %c2_i32 : i32
                %171 = ptx.regs_get %65[1, %170] : !ptx.regs<2x64xf32>
                %172 = ptx.regs_get %66[%170] : !ptx.regs<64xf32>
                %173 = ptx.fma_f32 %172, %162, %171
                ptx.regs_set %173, %65[1, %170] : !ptx.regs<2x64xf32>
                %174 = arith.addi %arg1, %c3_i32 : i32
                %175 = ptx.regs_get %65[1, %174] : !ptx.regs<2x64xf32>
                %176 = ptx.regs_get %66[%174] : !ptx.regs<64xf32>
                %177 = ptx.fma_f32 %176, %162, %175
                ptx.regs_set %177, %65[1, %174] : !ptx.regs<2x64xf32>
              }
            } {ptx.name = "slotIndex"}
          } {ptx.name = "kTurn"}
        } else {
          %86 = arith.shrsi %56, %c7_i32 : i32
          %87 = arith.addi %8, %c200704_i32 : i32
          %88 = arith.muli %5, %c16384_i32 : i32
          %89 = arith.shrsi %7, %c2_i32 : i32
          %90 = arith.muli %6, %c16_i32 : i32
          %91 = arith.addi %90, %89 : i32
          %92 = arith.andi %54, %c3_i32 : i32
          %93 = arith.addi %91, %92 : i32
          %94 = arith.muli %93, %c4_i32 : i32
          %95 = arith.addi %91, %c8_i32 : i32
          %96 = arith.addi %95, %92 : i32
          %97 = arith.muli %96, %c4_i32 : i32
          %98 = arith.muli %5, %c128_i32 : i32
          %99 = arith.shrsi %98, %c7_i32 : i32
          %100 = arith.muli %61, %c32_i32 : i32
          %101 = arith.addi %100, %86 : i32
          %102 = arith.muli %101, %c56_i32 : i32
          %103 = arith.muli %99, %c56_i32 : i32
          %104 = arith.muli %99, %c128_i32 : i32
          %105 = arith.cmpi slt, %7, %c2_i32 : i32
          scf.for %arg0 = %c0_i32 to %67 step %c1_i32  : i32 {
            %106 = arith.muli %arg0, %c128_i32 {ptx.name = "k"} : i32
            %107 = arith.shrsi %106, %c7_i32 : i32
            %108 = ptx.regs_get %15[1] {ptx.name = "phase"} : !ptx.regs<2xi32>
            %109 = ptx.regs_get %15[0] : !ptx.regs<2xi32>
            %110 = ptx.shfl_idx %109, %c0_i32 {ptx.name = "slot"}
            %111 = arith.addi %110, %c50048_i32 : i32
            ptx.mbarrier_wait %111, %108
            %112 = arith.addi %110, %c50176_i32 : i32
            %113 = arith.cmpi eq, %112, %87 : i32
            %114 = arith.select %113, %8, %112 : i32
            ptx.regs_set %114, %15[0] : !ptx.regs<2xi32>
            %115 = arith.extui %113 : i1 to i32
            %116 = arith.xori %108, %115 : i32
            ptx.regs_set %116, %15[1] : !ptx.regs<2xi32>
            %117 = arith.addi %110, %c16384_i32 : i32
            ptx.regs_pin %66 : !ptx.regs<64xf32>
            ptx.wgmma_fence
            %118 = arith.shrsi %110, %c4_i32 : i32
            %119 = arith.ori %118, %c65536_i32 {ptx.name = "descA"} : i32
            %120 = arith.addi %117, %88 : i32
            %121 = arith.shrsi %120, %c4_i32 : i32
            %122 = arith.ori %121, %c65536_i32 {ptx.name = "descB"} : i32
            ptx.wgmma %66, %119, %122, %c0_i32 {a = "e4m3", b = "e4m3", n = 128 : i32} : !ptx.regs<64xf32>
            %123 = arith.addi %122, %c2_i32 : i32
            %124 = arith.addi %119, %c2_i32 : i32
            ptx.wgmma %66, %124, %123, %c1_i32 {a = "e4m3", b = "e4m3", n = 128 : i32} : !ptx.regs<64xf32>
            %125 = arith.addi %122, %c4_i32 : i32
            %126 = arith.addi %119, %c4_i32 : i32
            ptx.wgmma %66, %126, %125, %c1_i32 {a = "e4m3", b = "e4m3", n = 128 : i32} : !ptx.regs<64xf32>
            %127 = arith.addi %122, %c6_i32 : i32
            %128 = arith.addi %119, %c6_i32 : i32
            ptx.wgmma %66, %128, %127, %c1_i32 {a = "e4m3", b = "e4m3", n = 128 : i32} : !ptx.regs<64xf32>
            ptx.wgmma_commit
            %129 = arith.addi %110, %c49152_i32 : i32
            %130 = arith.addi %129, %94 : i32
            %131 = ptx.ld_shared_f32 %130 {ptx.name = "rowScale"}
            %132 = arith.addi %129, %97 : i32
            %133 = ptx.ld_shared_f32 %132 {ptx.name = "rowScaleBelow"}
            %134 = arith.addi %110, %c49792_i32 : i32
            %135 = arith.addi %102, %107 : i32
            %136 = arith.addi %135, %103 : i32
            %137 = arith.andi %136, %c3_i32 : i32
            %138 = arith.muli %137, %c4_i32 : i32
            %139 = arith.addi %134, %104 : i32
            %140 = arith.addi %139, %138 : i32
            %141 = ptx.ld_shared_f32 %140 {ptx.name = "columnScale"}
            ptx.wgmma_wait 0
            ptx.regs_pin %66 : !ptx.regs<64xf32>
            %142 = arith.addi %110, %c50056_i32 : i32
            ptx.syncwarp
            scf.if %105 {
              ptx.mbarrier_arrive_cluster %142, %7
            }
            %143 = ptx.mul_f32 %131, %141
            %144 = ptx.mul_f32 %133, %141
            ptx.unroll %arg1 = 0 to 64 step 4 {
              %145 = ptx.regs_get %65[0, %arg1] : !ptx.regs<2x64xf32>
              %146 = ptx.regs_get %66[%arg1] : !ptx.regs<64xf32>
              %147 = ptx.fma_f32 %146, %143, %145
              ptx.regs_set %147, %65[0, %arg1] : !ptx.regs<2x64xf32>
              %148 = arith.addi %arg1, %c1_i32 : i32
              %149 = ptx.regs_get %65[0, %148] : !ptx.regs<2x64xf32>
              %150 = ptx.regs_get %66[%148] : !ptx.regs<64xf32>
              %151 = ptx.fma_f32 %150, %143, %149
              ptx.regs_set %151, %65[0, %148] : !ptx.regs<2x64xf32>
              %152 = arith.addi %arg1, %c2_i32 : i32
              %153 = ptx.regs_get %65[0, %152] : !ptx.regs<2x64xf32>
              %154 = ptx.regs_get %66[%152] : !ptx.regs<64xf32>
              %155 = ptx.fma_f32 %154, %144, %153
              ptx.regs_set %155, %65[0, %152] : !ptx.regs<2x64xf32>
              %156 = arith.addi %arg1, %c3_i32 : i32
              %157 = ptx.regs_get %65[0, %156] : !ptx.regs<2x64xf32>
              %158 = ptx.regs_get %66[%156] : !ptx.regs<64xf32>
              %159 = ptx.fma_f32 %158, %144, %157
              ptx.regs_set %159, %65[0, %156] : !ptx.regs<2x64xf32>
            }
          } {ptx.name = "kStep"}
        }
        %69 = ptx.regs_get %17[0] : !ptx.regs<2xi32>
        %70 = ptx.regs_get %17[1] : !ptx.regs<2xi32>
        %71 = arith.muli %69, %c8_i32 : i32
        %72 = arith.addi %10, %71 {ptx.name = "tileFull"} : i32
        %73 = arith.muli %69, %c4_i32 : i32
        %74 = arith.addi %73, %c32_i32 : i32
        %75 = arith.addi %10, %74 : i32
        ptx.mbarrier_wait_cluster %72, %70
        %76 = ptx.ld_shared_i32 %75
        %77 = ptx.shfl_idx %76, %c0_i32
        ptx.syncwarp
        scf.if %23 {
          %86 = arith.addi %72, %c16_i32 : i32
          ptx.mbarrier_arrive_cluster %86, %c0_i32
        }
        %78 = arith.cmpi eq, %69, %c1_i32 : i32
        %79 = arith.addi %69, %c1_i32 : i32
        %80 = arith.select %78, %c0_i32, %79 : i32
        ptx.regs_set %80, %17[0] : !ptx.regs<2xi32>
        %81 = arith.extui %78 : i1 to i32
        %82 = arith.xori %70, %81 : i32
        ptx.regs_set %82, %17[1] : !ptx.regs<2xi32>
        ptx.regs_set %77, %16[0] : !ptx.regs<5xi32>
        scf.while : () -> () {
          %86 = ptx.regs_get %16[2] : !ptx.regs<5xi32>
          %87 = ptx.regs_get %16[3] : !ptx.regs<5xi32>
          %88 = arith.subi %87, %86 : i32
          %89 = arith.addi %88, %c127_i32 : i32
          %90 = arith.shrsi %89, %c7_i32 : i32
          %91 = arith.muli %90, %c8_i32 : i32
          %92 = ptx.regs_get %16[4] : !ptx.regs<5xi32>
          %93 = arith.addi %92, %91 : i32
          %94 = ptx.regs_get %16[0] : !ptx.regs<5xi32>
          %95 = arith.cmpi sge, %94, %93 : i32
          %96 = ptx.regs_get %16[1] : !ptx.regs<5xi32>
          %97 = arith.cmpi slt, %96, %c258_i32 : i32
          %98 = arith.andi %97, %95 : i1
          scf.condition(%98)
        } do {
          %86 = ptx.regs_get %16[2] : !ptx.regs<5xi32>
          %87 = ptx.regs_get %16[3] : !ptx.regs<5xi32>
          %88 = arith.subi %87, %86 : i32
          %89 = arith.addi %88, %c127_i32 : i32
          %90 = arith.shrsi %89, %c7_i32 : i32
          %91 = arith.muli %90, %c8_i32 : i32
          %92 = ptx.regs_get %16[4] : !ptx.regs<5xi32>
          %93 = arith.addi %92, %91 : i32
          %94 = ptx.regs_get %16[1] : !ptx.regs<5xi32>
          %95 = arith.addi %94, %c1_i32 {ptx.name = "group"} : i32
          %96 = ptx.regs_get %16[3] {ptx.name = "low"} : !ptx.regs<5xi32>
          ptx.regs_set %93, %16[4] : !ptx.regs<5xi32>
          ptx.regs_set %95, %16[1] : !ptx.regs<5xi32>
          ptx.regs_set %96, %16[2] : !ptx.regs<5xi32>
          %97 = arith.minsi %95, %c256_i32 : i32
          %98 = arith.muli %97, %c4_i32 : i32
          %99 = arith.addi %20, %98 : i32
          %100 = ptx.ld_shared_i32 %99
          %101 = arith.cmpi sgt, %95, %c256_i32 : i32
          %102 = arith.select %101, %rows, %100 : i32
          %103 = arith.maxsi %96, %102 : i32
          ptx.regs_set %103, %16[3] : !ptx.regs<5xi32>
          scf.yield
        }
        %83 = arith.addi %31, %56 : i32
        %84 = arith.cmpi slt, %30, %58 : i32
        scf.if %84 {
          %86 = arith.shrsi %7, %c4_i32 : i32
          %87 = arith.muli %86, %c16_i32 : i32
          %88 = arith.andi %7, %c15_i32 : i32
          %89 = arith.muli %88, %c144_i32 : i32
          %90 = arith.addi %29, %89 : i32
          %91 = arith.addi %90, %87 {ptx.name = "into"} : i32
          ptx.syncwarp
          ptx.unroll %arg0 = 0 to 8 step 2 {
            %96 = arith.muli %arg0, %c4_i32 : i32
            %97 = ptx.regs_get %65[0, %96] : !ptx.regs<2x64xf32>
            %98 = arith.addi %96, %c1_i32 : i32
            %99 = ptx.regs_get %65[0, %98] : !ptx.regs<2x64xf32>
            %100 = ptx.cvt_bf16x2_f32 %97, %99
            %101 = arith.addi %96, %c2_i32 : i32
            %102 = ptx.regs_get %65[0, %101] : !ptx.regs<2x64xf32>
            %103 = arith.addi %96, %c3_i32 : i32
            %104 = ptx.regs_get %65[0, %103] : !ptx.regs<2x64xf32>
            %105 = ptx.cvt_bf16x2_f32 %102, %104
            %106 = arith.addi %96, %c4_i32 : i32
            %107 = ptx.regs_get %65[0, %106] : !ptx.regs<2x64xf32>
            %108 = arith.addi %96, %c5_i32 : i32
            %109 = ptx.regs_get %65[0, %108] : !ptx.regs<2x64xf32>
            %110 = ptx.cvt_bf16x2_f32 %107, %109
            %111 = arith.addi %96, %c6_i32 : i32
            %112 = ptx.regs_get %65[0, %111] : !ptx.regs<2x64xf32>
            %113 = arith.addi %96, %c7_i32 : i32
            %114 = ptx.regs_get %65[0, %113] : !ptx.regs<2x64xf32>
            %115 = ptx.cvt_bf16x2_f32 %112, %114
            %116 = arith.muli %arg0, %c16_i32 : i32
            %117 = arith.addi %91, %116 : i32
            ptx.stmatrix_x4 %117, %100, %105, %110, %115
          }
          ptx.syncwarp
          %92 = arith.andi %7, %c7_i32 : i32
          %93 = arith.muli %92, %c8_i32 : i32
          %94 = arith.addi %83, %93 : i32
          ptx.unroll %arg0 = 0 to 16 step 4 {
            %96 = arith.shrsi %7, %c3_i32 : i32
            %97 = arith.addi %arg0, %96 : i32
            %98 = arith.addi %30, %97 : i32
            %99 = arith.cmpi slt, %98, %58 : i32
            scf.if %99 {
              %100 = arith.muli %92, %c16_i32 : i32
              %101 = arith.muli %97, %c144_i32 : i32
              %102 = arith.addi %29, %101 : i32
              %103 = arith.addi %102, %100 : i32
              %104 = arith.addi %54, %98 : i32
              %105 = arith.extsi %94 : i32 to i64
              %106 = arith.muli %105, %c2_i64 : i64
              %107 = arith.extsi %104 : i32 to i64
              %108 = arith.muli %107, %24 : i64
              %109 = arith.addi %108, %106 : i64
              %110 = ptx.regs {ptx.name = "vector"} : !ptx.regs<4xi32>
              ptx.ld_shared_v4 %103, %110 : !ptx.regs<4xi32>
              ptx.st_global_v4 %y, %109, %110 : !ptx.regs<4xi32>
            }
          }
          ptx.syncwarp
          ptx.unroll %arg0 = 0 to 8 step 2 {
            %96 = arith.muli %arg0, %c4_i32 : i32
            %97 = arith.addi %96, %c32_i32 : i32
            %98 = ptx.regs_get %65[0, %97] : !ptx.regs<2x64xf32>
            %99 = arith.addi %96, %c33_i32 : i32
            %100 = ptx.regs_get %65[0, %99] : !ptx.regs<2x64xf32>
            %101 = ptx.cvt_bf16x2_f32 %98, %100
            %102 = arith.addi %96, %c34_i32 : i32
            %103 = ptx.regs_get %65[0, %102] : !ptx.regs<2x64xf32>
            %104 = arith.addi %96, %c35_i32 : i32
            %105 = ptx.regs_get %65[0, %104] : !ptx.regs<2x64xf32>
            %106 = ptx.cvt_bf16x2_f32 %103, %105
            %107 = arith.addi %96, %c36_i32 : i32
            %108 = ptx.regs_get %65[0, %107] : !ptx.regs<2x64xf32>
            %109 = arith.addi %96, %c37_i32 : i32
            %110 = ptx.regs_get %65[0, %109] : !ptx.regs<2x64xf32>
            %111 = ptx.cvt_bf16x2_f32 %108, %110
            %112 = arith.addi %96, %c38_i32 : i32
            %113 = ptx.regs_get %65[0, %112] : !ptx.regs<2x64xf32>
            %114 = arith.addi %96, %c39_i32 : i32
            %115 = ptx.regs_get %65[0, %114] : !ptx.regs<2x64xf32>
            %116 = ptx.cvt_bf16x2_f32 %113, %115
            %117 = arith.muli %arg0, %c16_i32 : i32
            %118 = arith.addi %91, %117 : i32
            ptx.stmatrix_x4 %118, %101, %106, %111, %116
          }
          ptx.syncwarp
          %95 = arith.addi %94, %c64_i32 : i32
          ptx.unroll %arg0 = 0 to 16 step 4 {
            %96 = arith.shrsi %7, %c3_i32 : i32
            %97 = arith.addi %arg0, %96 : i32
            %98 = arith.addi %30, %97 : i32
            %99 = arith.cmpi slt, %98, %58 : i32
            scf.if %99 {
              %100 = arith.muli %92, %c16_i32 : i32
              %101 = arith.muli %97, %c144_i32 : i32
              %102 = arith.addi %29, %101 : i32
              %103 = arith.addi %102, %100 : i32
              %104 = arith.addi %54, %98 : i32
              %105 = arith.extsi %95 : i32 to i64
              %106 = arith.muli %105, %c2_i64 : i64
              %107 = arith.extsi %104 : i32 to i64
              %108 = arith.muli %107, %24 : i64
              %109 = arith.addi %108, %106 : i64
              %110 = ptx.regs {ptx.name = "vector"} : !ptx.regs<4xi32>
              ptx.ld_shared_v4 %103, %110 : !ptx.regs<4xi32>
              ptx.st_global_v4 %y, %109, %110 : !ptx.regs<4xi32>
            }
          }
        }
        %85 = arith.cmpi slt, %33, %58 : i32
        scf.if %85 {
          %86 = arith.shrsi %7, %c4_i32 : i32
          %87 = arith.muli %86, %c16_i32 : i32
          %88 = arith.andi %7, %c15_i32 : i32
          %89 = arith.muli %88, %c144_i32 : i32
          %90 = arith.addi %29, %89 : i32
          %91 = arith.addi %90, %87 {ptx.name = "into"} : i32
          ptx.syncwarp
          ptx.unroll %arg0 = 0 to 8 step 2 {
            %96 = arith.muli %arg0, %c4_i32 : i32
            %97 = ptx.regs_get %65[1, %96] : !ptx.regs<2x64xf32>
            %98 = arith.addi %96, %c1_i32 : i32
            %99 = ptx.regs_get %65[1, %98] : !ptx.regs<2x64xf32>
            %100 = ptx.cvt_bf16x2_f32 %97, %99
            %101 = arith.addi %96, %c2_i32 : i32
            %102 = ptx.regs_get %65[1, %101] : !ptx.regs<2x64xf32>
            %103 = arith.addi %96, %c3_i32 : i32
            %104 = ptx.regs_get %65[1, %103] : !ptx.regs<2x64xf32>
            %105 = ptx.cvt_bf16x2_f32 %102, %104
            %106 = arith.addi %96, %c4_i32 : i32
            %107 = ptx.regs_get %65[1, %106] : !ptx.regs<2x64xf32>
            %108 = arith.addi %96, %c5_i32 : i32
            %109 = ptx.regs_get %65[1, %108] : !ptx.regs<2x64xf32>
            %110 = ptx.cvt_bf16x2_f32 %107, %109
            %111 = arith.addi %96, %c6_i32 : i32
            %112 = ptx.regs_get %65[1, %111] : !ptx.regs<2x64xf32>
            %113 = arith.addi %96, %c7_i32 : i32
            %114 = ptx.regs_get %65[1, %113] : !ptx.regs<2x64xf32>
            %115 = ptx.cvt_bf16x2_f32 %112, %114
            %116 = arith.muli %arg0, %c16_i32 : i32
            %117 = arith.addi %91, %116 : i32
            ptx.stmatrix_x4 %117, %100, %105, %110, %115
          }
          ptx.syncwarp
          %92 = arith.andi %7, %c7_i32 : i32
          %93 = arith.muli %92, %c8_i32 : i32
          %94 = arith.addi %83, %93 : i32
          ptx.unroll %arg0 = 0 to 16 step 4 {
            %96 = arith.shrsi %7, %c3_i32 : i32
            %97 = arith.addi %arg0, %96 : i32
            %98 = arith.addi %33, %97 : i32
            %99 = arith.cmpi slt, %98, %58 : i32
            scf.if %99 {
              %100 = arith.muli %92, %c16_i32 : i32
              %101 = arith.muli %97, %c144_i32 : i32
              %102 = arith.addi %29, %101 : i32
              %103 = arith.addi %102, %100 : i32
              %104 = arith.addi %54, %98 : i32
              %105 = arith.extsi %94 : i32 to i64
              %106 = arith.muli %105, %c2_i64 : i64
              %107 = arith.extsi %104 : i32 to i64
              %108 = arith.muli %107, %24 : i64
              %109 = arith.addi %108, %106 : i64
              %110 = ptx.regs {ptx.name = "vector"} : !ptx.regs<4xi32>
              ptx.ld_shared_v4 %103, %110 : !ptx.regs<4xi32>
              ptx.st_global_v4 %y, %109, %110 : !ptx.regs<4xi32>
            }
          }
          ptx.syncwarp
          ptx.unroll %arg0 = 0 to 8 step 2 {
            %96 = arith.muli %arg0, %c4_i32 : i32
            %97 = arith.addi %96, %c32_i32 : i32
            %98 = ptx.regs_get %65[1, %97] : !ptx.regs<2x64xf32>
            %99 = arith.addi %96, %c33_i32 : i32
            %100 = ptx.regs_get %65[1, %99] : !ptx.regs<2x64xf32>
            %101 = ptx.cvt_bf16x2_f32 %98, %100
            %102 = arith.addi %96, %c34_i32 : i32
            %103 = ptx.regs_get %65[1, %102] : !ptx.regs<2x64xf32>
            %104 = arith.addi %96, %c35_i32 : i32
            %105 = ptx.regs_get %65[1, %104] : !ptx.regs<2x64xf32>
            %106 = ptx.cvt_bf16x2_f32 %103, %105
            %107 = arith.addi %96, %c36_i32 : i32
            %108 = ptx.regs_get %65[1, %107] : !ptx.regs<2x64xf32>
            %109 = arith.addi %96, %c37_i32 : i32
            %110 = ptx.regs_get %65[1, %109] : !ptx.regs<2x64xf32>
            %111 = ptx.cvt_bf16x2_f32 %108, %110
            %112 = arith.addi %96, %c38_i32 : i32
            %113 = ptx.regs_get %65[1, %112] : !ptx.regs<2x64xf32>
            %114 = arith.addi %96, %c39_i32 : i32
            %115 = ptx.regs_get %65[1, %114] : !ptx.regs<2x64xf32>
            %116 = ptx.cvt_bf16x2_f32 %113, %115
            %117 = arith.muli %arg0, %c16_i32 : i32
            %118 = arith.addi %91, %117 : i32
            ptx.stmatrix_x4 %118, %101, %106, %111, %116
          }
          ptx.syncwarp
          %95 = arith.addi %94, %c64_i32 : i32
          ptx.unroll %arg0 = 0 to 16 step 4 {
            %96 = arith.shrsi %7, %c3_i32 : i32
            %97 = arith.addi %arg0, %96 : i32
            %98 = arith.addi %33, %97 : i32
            %99 = arith.cmpi slt, %98, %58 : i32
            scf.if %99 {
              %100 = arith.muli %92, %c16_i32 : i32
              %101 = arith.muli %97, %c144_i32 : i32
              %102 = arith.addi %29, %101 : i32
              %103 = arith.addi %102, %100 : i32
              %104 = arith.addi %54, %98 : i32
              %105 = arith.extsi %95 : i32 to i64
              %106 = arith.muli %105, %c2_i64 : i64
              %107 = arith.extsi %104 : i32 to i64
              %108 = arith.muli %107, %24 : i64
              %109 = arith.addi %108, %106 : i64
              %110 = ptx.regs {ptx.name = "vector"} : !ptx.regs<4xi32>
              ptx.ld_shared_v4 %103, %110 : !ptx.regs<4xi32>
              ptx.st_global_v4 %y, %109, %110 : !ptx.regs<4xi32>
            }
          }
        }
        scf.yield
      }
    }
    ptx.syncwarp
    ptx.cluster_arrive
    ptx.cluster_wait
  }
}
