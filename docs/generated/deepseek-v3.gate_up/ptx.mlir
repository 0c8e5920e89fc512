module {
  ptx.kernel @moejit_kernel(%xMap: !ptx.tmap {ptx.name = "xMap"}, %wMap: !ptx.tmap {ptx.name = "wMap"}, %xScalesMap: !ptx.tmap {ptx.name = "xScalesMap"}, %wScalesMap: !ptx.tmap {ptx.name = "wScalesMap"}, %offsets: !ptx.ptr {ptx.name = "offsets"}, %y: !ptx.ptr {ptx.name = "y"}, %workspace: !ptx.ptr {ptx.name = "workspace"}, %rows: i32 {ptx.name = "rows"}, %yStride: i64 {ptx.name = "yStride"}) attributes {cluster = 1 : i32, min_blocks = 1 : i32, shared_bytes = 220212 : i32, threads = 384 : i32, tile.grid = {columns = 4096 : i64, experts = 256 : i64, tile_m = 128 : i64, tile_n = 256 : i64}, tile.parameters = [{kind = "map", operand = "x", recipe = 0 : i64}, {kind = "map", operand = "w", recipe = 1 : i64}, {kind = "map", operand = "x_scales", recipe = 2 : i64}, {kind = "map", operand = "w_scales", recipe = 3 : i64}, {kind = "pointer", operand = "offsets"}, {kind = "pointer", operand = "y"}, {kind = "pointer", operand = "workspace"}, {kind = "rows", operand = ""}, {kind = "stride", operand = "y"}], tile.tensor_maps = [{box = array<i64: 128, 128>, extents = array<i64: 7168, -9223372036854775808>, operand = "x", strides = array<i64: -9223372036854775808>, swizzled = true, type = f8E4M3FN}, {box = array<i64: 128, 256, 1>, extents = array<i64: 7168, 4096, 256>, operand = "w", strides = array<i64: 7168, 29360128>, swizzled = true, type = f8E4M3FN}, {box = array<i64: 132, 1>, extents = array<i64: -9223372036854775808, 56>, operand = "x_scales", strides = array<i64: -9223372036854775808>, swizzled = false, type = f32}, {box = array<i64: 4>, extents = array<i64: 458752>, operand = "w_scales", strides = array<i64>, swizzled = false, type = f32}], tile.workspace = [{bytes = 4 : i64, operand = "workspace", row_bytes = 0 : i64, zeroed = true}]} {
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
    %c32_i32 = arith.constant 32 : i32
    %c49792_i32 = arith.constant 49792 : i32
    %c-4_i32 = arith.constant -4 : i32
    %c49152_i32 = arith.constant 49152 : i32
    %c16384_i32 = arith.constant 16384 : i32
    %c200704_i32 = arith.constant 200704 : i32
    %c49712_i32 = arith.constant 49712 : i32
    %c64_i32 = arith.constant 64 : i32
    %c56_i32 = arith.constant 56 : i32
    %c255_i32 = arith.constant 255 : i32
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
    %c16_i32 = arith.constant 16 : i32
    %c8_i32 = arith.constant 8 : i32
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
    %9 = arith.addi %8, %c219136_i32 : i32
    %10 = arith.cmpi eq, %1, %c0_i32 : i32
    scf.if %10 {
      ptx.mbarrier_init %9, %c1_i32
      %14 = arith.addi %8, %c219152_i32 : i32
      ptx.mbarrier_init %14, %c8_i32
      %15 = arith.addi %8, %c219144_i32 : i32
      ptx.mbarrier_init %15, %c1_i32
      %16 = arith.addi %8, %c219160_i32 : i32
      ptx.mbarrier_init %16, %c8_i32
      ptx.fence_mbarrier_init
    }
    %11 = arith.addi %8, %c219184_i32 : i32
    scf.for %arg0 = %1 to %c257_i32 step %c384_i32  : i32 {
      %14 = arith.muli %arg0, %c4_i32 : i32
      %15 = arith.extsi %14 : i32 to i64
      %16 = ptx.ld_global_i32 %offsets, %15
      %17 = arith.maxsi %16, %c0_i32 : i32
      %18 = arith.minsi %17, %rows : i32
      %19 = arith.addi %11, %14 : i32
      ptx.st_shared_i32 %19, %18
    } {ptx.name = "expert"}
    %12 = arith.addi %8, %c50048_i32 : i32
    scf.if %10 {
      ptx.unroll %arg0 = 0 to 4 {
        %14 = arith.muli %arg0, %c50176_i32 : i32
        %15 = arith.addi %12, %14 {ptx.name = "full"} : i32
        ptx.mbarrier_init %15, %c1_i32
        %16 = arith.addi %15, %c8_i32 : i32
        ptx.mbarrier_init %16, %c8_i32
      }
      ptx.fence_mbarrier_init
    }
    ptx.bar_sync 0, 384
    %13 = arith.cmpi slt, %3, %c4_i32 : i32
    scf.if %13 {
      ptx.setmaxnreg_dec 40
      scf.if %10 {
        %14 = ptx.regs {ptx.name = "fill"} : !ptx.regs<2xi32>
        ptx.regs_set %8, %14[0] : !ptx.regs<2xi32>
        ptx.regs_set %c0_i32, %14[1] : !ptx.regs<2xi32>
        %15 = ptx.regs {ptx.name = "walk"} : !ptx.regs<5xi32>
        %16 = ptx.regs {ptx.name = "queue"} : !ptx.regs<2xi32>
        ptx.regs_set %c0_i32, %16[0] : !ptx.regs<2xi32>
        ptx.regs_set %c0_i32, %16[1] : !ptx.regs<2xi32>
        %17 = ptx.block_index
        ptx.regs_set %17, %15[0] : !ptx.regs<5xi32>
        ptx.regs_set %c0_i32, %15[4] : !ptx.regs<5xi32>
        %18 = arith.addi %8, %c219184_i32 : i32
        %19 = ptx.ld_shared_i32 %18 {ptx.name = "firstOwned"}
        ptx.regs_set %c0_i32, %15[1] : !ptx.regs<5xi32>
        ptx.regs_set %c0_i32, %15[2] : !ptx.regs<5xi32>
        ptx.regs_set %19, %15[3] : !ptx.regs<5xi32>
        scf.while : () -> () {
          %21 = ptx.regs_get %15[2] : !ptx.regs<5xi32>
          %22 = ptx.regs_get %15[3] : !ptx.regs<5xi32>
          %23 = arith.subi %22, %21 : i32
          %24 = arith.addi %23, %c127_i32 : i32
          %25 = arith.shrsi %24, %c7_i32 : i32
          %26 = arith.muli %25, %c16_i32 : i32
          %27 = ptx.regs_get %15[4] : !ptx.regs<5xi32>
          %28 = arith.addi %27, %26 : i32
          %29 = ptx.regs_get %15[0] : !ptx.regs<5xi32>
          %30 = arith.cmpi sge, %29, %28 : i32
          %31 = ptx.regs_get %15[1] : !ptx.regs<5xi32>
          %32 = arith.cmpi slt, %31, %c258_i32 : i32
          %33 = arith.andi %32, %30 : i1
          scf.condition(%33)
        } do {
          %21 = ptx.regs_get %15[2] : !ptx.regs<5xi32>
          %22 = ptx.regs_get %15[3] : !ptx.regs<5xi32>
          %23 = arith.subi %22, %21 : i32
          %24 = arith.addi %23, %c127_i32 : i32
          %25 = arith.shrsi %24, %c7_i32 : i32
          %26 = arith.muli %25, %c16_i32 : i32
          %27 = ptx.regs_get %15[4] : !ptx.regs<5xi32>
          %28 = arith.addi %27, %26 : i32
          %29 = ptx.regs_get %15[1] : !ptx.regs<5xi32>
          %30 = arith.addi %29, %c1_i32 {ptx.name = "group"} : i32
          %31 = ptx.regs_get %15[3] {ptx.name = "low"} : !ptx.regs<5xi32>
          ptx.regs_set %28, %15[4] : !ptx.regs<5xi32>
          ptx.regs_set %30, %15[1] : !ptx.regs<5xi32>
          ptx.regs_set %31, %15[2] : !ptx.regs<5xi32>
          %32 = arith.minsi %30, %c256_i32 : i32
          %33 = arith.muli %32, %c4_i32 : i32
          %34 = arith.addi %18, %33 : i32
          %35 = ptx.ld_shared_i32 %34
          %36 = arith.cmpi sgt, %30, %c256_i32 : i32
          %37 = arith.select %36, %rows, %35 : i32
          %38 = arith.maxsi %31, %37 : i32
          ptx.regs_set %38, %15[3] : !ptx.regs<5xi32>
          scf.yield
        }
        %20 = ptx.grid_size
        scf.while : () -> () {
          %21 = ptx.regs_get %15[1] : !ptx.regs<5xi32>
          %22 = arith.cmpi slt, %21, %c258_i32 : i32
          scf.condition(%22)
        } do {
          %21 = ptx.atom_add_global_i32 %workspace, %c0_i64, %c1_i32
          %22 = arith.addi %21, %20 : i32
          %23 = ptx.regs_get %15[2] {ptx.name = "low"} : !ptx.regs<5xi32>
          %24 = ptx.regs_get %15[3] {ptx.name = "high"} : !ptx.regs<5xi32>
          %25 = ptx.regs_get %15[1] {ptx.name = "group"} : !ptx.regs<5xi32>
          %26 = ptx.regs_get %15[4] : !ptx.regs<5xi32>
          %27 = ptx.regs_get %15[0] : !ptx.regs<5xi32>
          %28 = arith.subi %27, %26 {ptx.name = "tileInGroup"} : i32
          %29 = arith.shrsi %28, %c8_i32 : i32
          %30 = arith.muli %29, %c256_i32 : i32
          %31 = arith.subi %28, %30 : i32
          %32 = arith.muli %29, %c16_i32 : i32
          %33 = arith.subi %24, %23 : i32
          %34 = arith.addi %33, %c127_i32 : i32
          %35 = arith.shrsi %34, %c7_i32 : i32
          %36 = arith.subi %35, %32 : i32
          %37 = arith.minsi %36, %c16_i32 {ptx.name = "sweepHeight"} : i32
          %38 = arith.divsi %31, %37 : i32
          %39 = arith.muli %38, %37 : i32
          %40 = arith.subi %31, %39 : i32
          %41 = arith.addi %32, %40 : i32
          %42 = arith.muli %41, %c128_i32 : i32
          %43 = arith.addi %23, %42 {ptx.name = "tileRow"} : i32
          %44 = arith.muli %38, %c256_i32 {ptx.name = "tileColumn"} : i32
          %45 = arith.subi %24, %43 : i32
          %46 = arith.minsi %45, %c128_i32 {ptx.name = "rowsInTile"} : i32
          %47 = arith.addi %25, %c-1_i32 : i32
          %48 = arith.maxsi %47, %c0_i32 : i32
          %49 = arith.minsi %48, %c255_i32 {ptx.name = "expert"} : i32
          %50 = arith.cmpi slt, %25, %c257_i32 : i32
          %51 = arith.cmpi sgt, %25, %c0_i32 : i32
          %52 = arith.andi %51, %50 {ptx.name = "isOwned"} : i1
          %53 = arith.select %52, %c56_i32, %c0_i32 : i32
          %54 = arith.cmpi sgt, %46, %c64_i32 : i32
          scf.if %54 {
            %69 = arith.shrsi %44, %c7_i32 : i32
            %70 = arith.addi %8, %c200704_i32 : i32
            %71 = arith.andi %43, %c-4_i32 : i32
            %72 = arith.muli %49, %c32_i32 : i32
            %73 = arith.addi %72, %69 : i32
            %74 = arith.muli %73, %c56_i32 : i32
            scf.for %arg0 = %c0_i32 to %53 step %c1_i32  : i32 {
              %75 = arith.muli %arg0, %c128_i32 {ptx.name = "k"} : i32
              %76 = arith.shrsi %75, %c7_i32 : i32
              %77 = ptx.regs_get %14[0] {ptx.name = "slot"} : !ptx.regs<2xi32>
              %78 = ptx.regs_get %14[1] {ptx.name = "phase"} : !ptx.regs<2xi32>
              %79 = arith.addi %77, %c50048_i32 : i32
              %80 = arith.xori %78, %c1_i32 : i32
              %81 = arith.addi %77, %c50056_i32 : i32
              ptx.mbarrier_wait %81, %80
              ptx.mbarrier_expect_tx %79, %c49712_i32
              %82 = arith.addi %77, %c50176_i32 : i32
              %83 = arith.cmpi eq, %82, %70 : i32
              %84 = arith.select %83, %8, %82 : i32
              ptx.regs_set %84, %14[0] : !ptx.regs<2xi32>
              %85 = arith.extui %83 : i1 to i32
              %86 = arith.xori %78, %85 : i32
              ptx.regs_set %86, %14[1] : !ptx.regs<2xi32>
              ptx.tma_load %77, %xMap[%75, %43], %79
              %87 = arith.addi %77, %c16384_i32 : i32
              ptx.tma_load %87, %wMap[%75, %44, %49], %79
              %88 = arith.addi %77, %c49152_i32 : i32
              ptx.tma_load %88, %xScalesMap[%71, %76], %79
              %89 = arith.addi %77, %c49792_i32 : i32
              %90 = arith.addi %74, %76 : i32
              %91 = arith.andi %90, %c-4_i32 : i32
              ptx.tma_load %89, %wScalesMap[%91], %79
              %92 = arith.addi %90, %c56_i32 : i32
              %93 = arith.andi %92, %c-4_i32 : i32
              %94 = arith.addi %77, %c49920_i32 : i32
              ptx.tma_load %94, %wScalesMap[%93], %79
            } {ptx.name = "kStep"}
          } else {
            %69 = arith.shrsi %44, %c7_i32 : i32
            %70 = arith.addi %8, %c200704_i32 : i32
            %71 = arith.andi %43, %c-4_i32 : i32
            %72 = arith.muli %49, %c32_i32 : i32
            %73 = arith.addi %72, %69 : i32
            %74 = arith.muli %73, %c56_i32 : i32
            scf.for %arg0 = %c0_i32 to %53 step %c1_i32  : i32 {
              %75 = arith.muli %arg0, %c128_i32 {ptx.name = "k"} : i32
              %76 = arith.shrsi %75, %c7_i32 : i32
              %77 = ptx.regs_get %14[0] {ptx.name = "slot"} : !ptx.regs<2xi32>
              %78 = ptx.regs_get %14[1] {ptx.name = "phase"} : !ptx.regs<2xi32>
              %79 = arith.addi %77, %c50048_i32 : i32
              %80 = arith.xori %78, %c1_i32 : i32
              %81 = arith.addi %77, %c50056_i32 : i32
              ptx.mbarrier_wait %81, %80
              ptx.mbarrier_expect_tx %79, %c49712_i32
              %82 = arith.addi %77, %c50176_i32 : i32
              %83 = arith.cmpi eq, %82, %70 : i32
              %84 = arith.select %83, %8, %82 : i32
              ptx.regs_set %84, %14[0] : !ptx.regs<2xi32>
              %85 = arith.extui %83 : i1 to i32
              %86 = arith.xori %78, %85 : i32
              ptx.regs_set %86, %14[1] : !ptx.regs<2xi32>
              ptx.tma_load %77, %xMap[%75, %43], %79
              %87 = arith.addi %77, %c16384_i32 : i32
              ptx.tma_load %87, %wMap[%75, %44, %49], %79
              %88 = arith.addi %77, %c49152_i32 : i32
              ptx.tma_load %88, %xScalesMap[%71, %76], %79
              %89 = arith.addi %77, %c49792_i32 : i32
              %90 = arith.addi %74, %76 : i32
              %91 = arith.andi %90, %c-4_i32 : i32
              ptx.tma_load %89, %wScalesMap[%91], %79
              %92 = arith.addi %90, %c56_i32 : i32
              %93 = arith.andi %92, %c-4_i32 : i32
              %94 = arith.addi %77, %c49920_i32 : i32
              ptx.tma_load %94, %wScalesMap[%93], %79
            } {ptx.name = "kStep"}
          }
          %55 = ptx.regs_get %16[0] : !ptx.regs<2xi32>
          %56 = ptx.regs_get %16[1] : !ptx.regs<2xi32>
          %57 = arith.muli %55, %c8_i32 : i32
          %58 = arith.addi %9, %57 {ptx.name = "tileFull"} : i32
          %59 = arith.muli %55, %c4_i32 : i32
          %60 = arith.addi %59, %c32_i32 : i32
          %61 = arith.addi %9, %60 : i32
          %62 = arith.xori %56, %c1_i32 : i32
          %63 = arith.addi %58, %c16_i32 : i32
          ptx.mbarrier_wait %63, %62
          ptx.st_shared_i32 %61, %22
          ptx.mbarrier_arrive %58
          %64 = arith.cmpi eq, %55, %c1_i32 : i32
          %65 = arith.addi %55, %c1_i32 : i32
          %66 = arith.select %64, %c0_i32, %65 : i32
          ptx.regs_set %66, %16[0] : !ptx.regs<2xi32>
          %67 = arith.extui %64 : i1 to i32
          %68 = arith.xori %56, %67 : i32
          ptx.regs_set %68, %16[1] : !ptx.regs<2xi32>
          ptx.regs_set %22, %15[0] : !ptx.regs<5xi32>
          scf.while : () -> () {
            %69 = ptx.regs_get %15[2] : !ptx.regs<5xi32>
            %70 = ptx.regs_get %15[3] : !ptx.regs<5xi32>
            %71 = arith.subi %70, %69 : i32
            %72 = arith.addi %71, %c127_i32 : i32
            %73 = arith.shrsi %72, %c7_i32 : i32
            %74 = arith.muli %73, %c16_i32 : i32
            %75 = ptx.regs_get %15[4] : !ptx.regs<5xi32>
            %76 = arith.addi %75, %74 : i32
            %77 = ptx.regs_get %15[0] : !ptx.regs<5xi32>
            %78 = arith.cmpi sge, %77, %76 : i32
            %79 = ptx.regs_get %15[1] : !ptx.regs<5xi32>
            %80 = arith.cmpi slt, %79, %c258_i32 : i32
            %81 = arith.andi %80, %78 : i1
            scf.condition(%81)
          } do {
            %69 = ptx.regs_get %15[2] : !ptx.regs<5xi32>
            %70 = ptx.regs_get %15[3] : !ptx.regs<5xi32>
            %71 = arith.subi %70, %69 : i32
            %72 = arith.addi %71, %c127_i32 : i32
            %73 = arith.shrsi %72, %c7_i32 : i32
            %74 = arith.muli %73, %c16_i32 : i32
            %75 = ptx.regs_get %15[4] : !ptx.regs<5xi32>
            %76 = arith.addi %75, %74 : i32
            %77 = ptx.regs_get %15[1] : !ptx.regs<5xi32>
            %78 = arith.addi %77, %c1_i32 {ptx.name = "group"} : i32
            %79 = ptx.regs_get %15[3] {ptx.name = "low"} : !ptx.regs<5xi32>
            ptx.regs_set %76, %15[4] : !ptx.regs<5xi32>
            ptx.regs_set %78, %15[1] : !ptx.regs<5xi32>
            ptx.regs_set %79, %15[2] : !ptx.regs<5xi32>
            %80 = arith.minsi %78, %c256_i32 : i32
            %81 = arith.muli %80, %c4_i32 : i32
            %82 = arith.addi %18, %81 : i32
            %83 = ptx.ld_shared_i32 %82
            %84 = arith.cmpi sgt, %78, %c256_i32 : i32
            %85 = arith.select %84, %rows, %83 : i32
            %86 = arith.maxsi %79, %85 : i32
            ptx.regs_set %86, %15[3] : !ptx.regs<5xi32>
            scf.yield
          }
          scf.yield
        }
      }
    } else {
      ptx.setmaxnreg_inc 232
      %14 = ptx.regs {ptx.name = "drain"} : !ptx.regs<2xi32>
      ptx.regs_set %8, %14[0] : !ptx.regs<2xi32>
      ptx.regs_set %c0_i32, %14[1] : !ptx.regs<2xi32>
      %15 = ptx.regs {ptx.name = "walk"} : !ptx.regs<5xi32>
      %16 = ptx.regs {ptx.name = "queue"} : !ptx.regs<2xi32>
      ptx.regs_set %c0_i32, %16[0] : !ptx.regs<2xi32>
      ptx.regs_set %c0_i32, %16[1] : !ptx.regs<2xi32>
      %17 = ptx.block_index
      ptx.regs_set %17, %15[0] : !ptx.regs<5xi32>
      ptx.regs_set %c0_i32, %15[4] : !ptx.regs<5xi32>
      %18 = arith.addi %8, %c219184_i32 : i32
      %19 = ptx.ld_shared_i32 %18 {ptx.name = "firstOwned"}
      ptx.regs_set %c0_i32, %15[1] : !ptx.regs<5xi32>
      ptx.regs_set %c0_i32, %15[2] : !ptx.regs<5xi32>
      ptx.regs_set %19, %15[3] : !ptx.regs<5xi32>
      scf.while : () -> () {
        %31 = ptx.regs_get %15[2] : !ptx.regs<5xi32>
        %32 = ptx.regs_get %15[3] : !ptx.regs<5xi32>
        %33 = arith.subi %32, %31 : i32
        %34 = arith.addi %33, %c127_i32 : i32
        %35 = arith.shrsi %34, %c7_i32 : i32
        %36 = arith.muli %35, %c16_i32 : i32
        %37 = ptx.regs_get %15[4] : !ptx.regs<5xi32>
        %38 = arith.addi %37, %36 : i32
        %39 = ptx.regs_get %15[0] : !ptx.regs<5xi32>
        %40 = arith.cmpi sge, %39, %38 : i32
        %41 = ptx.regs_get %15[1] : !ptx.regs<5xi32>
        %42 = arith.cmpi slt, %41, %c258_i32 : i32
        %43 = arith.andi %42, %40 : i1
        scf.condition(%43)
      } do {
        %31 = ptx.regs_get %15[2] : !ptx.regs<5xi32>
        %32 = ptx.regs_get %15[3] : !ptx.regs<5xi32>
        %33 = arith.subi %32, %31 : i32
        %34 = arith.addi %33, %c127_i32 : i32
        %35 = arith.shrsi %34, %c7_i32 : i32
        %36 = arith.muli %35, %c16_i32 : i32
        %37 = ptx.regs_get %15[4] : !ptx.regs<5xi32>
        %38 = arith.addi %37, %36 : i32
        %39 = ptx.regs_get %15[1] : !ptx.regs<5xi32>
        %40 = arith.addi %39, %c1_i32 {ptx.name = "group"} : i32
        %41 = ptx.regs_get %15[3] {ptx.name = "low"} : !ptx.regs<5xi32>
        ptx.regs_set %38, %15[4] : !ptx.regs<5xi32>
        ptx.regs_set %40, %15[1] : !ptx.regs<5xi32>
        ptx.regs_set %41, %15[2] : !ptx.regs<5xi32>
        %42 = arith.minsi %40, %c256_i32 : i32
        %43 = arith.muli %42, %c4_i32 : i32
        %44 = arith.addi %18, %43 : i32
        %45 = ptx.ld_shared_i32 %44
        %46 = arith.cmpi sgt, %40, %c256_i32 : i32
        %47 = arith.select %46, %rows, %45 : i32
        %48 = arith.maxsi %41, %47 : i32
        ptx.regs_set %48, %15[3] : !ptx.regs<5xi32>
        scf.yield
      }
      %20 = arith.cmpi eq, %7, %c0_i32 : i32
      %21 = arith.muli %yStride, %c2_i64 {ptx.name = "yStrideBytes"} : i64
      %22 = arith.muli %5, %c4_i32 : i32
      %23 = arith.addi %22, %6 : i32
      %24 = arith.muli %23, %c2304_i32 : i32
      %25 = arith.addi %24, %c200704_i32 : i32
      %26 = arith.addi %8, %25 {ptx.name = "buffer"} : i32
      %27 = arith.muli %6, %c16_i32 {ptx.name = "firstRow"} : i32
      %28 = arith.muli %5, %c128_i32 : i32
      %29 = arith.muli %6, %c16_i32 : i32
      %30 = arith.addi %29, %c64_i32 {ptx.name = "firstRow"} : i32
      scf.while : () -> () {
        %31 = ptx.regs_get %15[1] : !ptx.regs<5xi32>
        %32 = arith.cmpi slt, %31, %c258_i32 : i32
        scf.condition(%32)
      } do {
        %31 = ptx.regs_get %15[2] {ptx.name = "low"} : !ptx.regs<5xi32>
        %32 = ptx.regs_get %15[3] {ptx.name = "high"} : !ptx.regs<5xi32>
        %33 = ptx.regs_get %15[1] {ptx.name = "group"} : !ptx.regs<5xi32>
        %34 = ptx.regs_get %15[4] : !ptx.regs<5xi32>
        %35 = ptx.regs_get %15[0] : !ptx.regs<5xi32>
        %36 = arith.subi %35, %34 {ptx.name = "tileInGroup"} : i32
        %37 = arith.shrsi %36, %c8_i32 : i32
        %38 = arith.muli %37, %c256_i32 : i32
        %39 = arith.subi %36, %38 : i32
        %40 = arith.muli %37, %c16_i32 : i32
        %41 = arith.subi %32, %31 : i32
        %42 = arith.addi %41, %c127_i32 : i32
        %43 = arith.shrsi %42, %c7_i32 : i32
        %44 = arith.subi %43, %40 : i32
        %45 = arith.minsi %44, %c16_i32 {ptx.name = "sweepHeight"} : i32
        %46 = arith.divsi %39, %45 : i32
        %47 = arith.muli %46, %45 : i32
        %48 = arith.subi %39, %47 : i32
        %49 = arith.addi %40, %48 : i32
        %50 = arith.muli %49, %c128_i32 : i32
        %51 = arith.addi %31, %50 {ptx.name = "tileRow"} : i32
        %52 = arith.muli %46, %c256_i32 {ptx.name = "tileColumn"} : i32
        %53 = arith.subi %32, %51 : i32
        %54 = arith.minsi %53, %c128_i32 {ptx.name = "rowsInTile"} : i32
        %55 = arith.addi %33, %c-1_i32 : i32
        %56 = arith.maxsi %55, %c0_i32 : i32
        %57 = arith.minsi %56, %c255_i32 {ptx.name = "expert"} : i32
        %58 = arith.cmpi slt, %33, %c257_i32 : i32
        %59 = arith.cmpi sgt, %33, %c0_i32 : i32
        %60 = arith.andi %59, %58 {ptx.name = "isOwned"} : i1
        %61 = ptx.regs {ptx.name = "acc"} : !ptx.regs<2x64xf32>
        %62 = ptx.regs {ptx.name = "part"} : !ptx.regs<64xf32>
        ptx.unroll %arg0 = 0 to 64 {
          ptx.regs_set %0, %61[0, %arg0] : !ptx.regs<2x64xf32>
        }
        ptx.unroll %arg0 = 0 to 64 {
          ptx.regs_set %0, %61[1, %arg0] : !ptx.regs<2x64xf32>
        }
        %63 = arith.select %60, %c56_i32, %c0_i32 : i32
        %64 = arith.cmpi sgt, %54, %c64_i32 : i32
        scf.if %64 {
          scf.for %arg0 = %c0_i32 to %63 step %c4_i32  : i32 {
            ptx.unroll %slotIndex = 0 to 4 {
              %82 = arith.addi %arg0, %slotIndex {ptx.name = "kStep"} : i32
              %83 = arith.muli %82, %c128_i32 {ptx.name = "k"} : i32
              %84 = arith.shrsi %83, %c7_i32 : i32
              %85 = arith.shrsi %52, %c7_i32 : i32
              %86 = ptx.regs_get %14[1] {ptx.name = "phase"} : !ptx.regs<2xi32>
              %87 = arith.muli %slotIndex, %c50176_i32 : i32
              %88 = arith.addi %8, %87 {ptx.name = "slot"} : i32
              %89 = arith.addi %88, %c50048_i32 : i32
              ptx.mbarrier_wait %89, %86
              %90 = arith.cmpi eq, %slotIndex, %c3_i32 : i32
              %91 = arith.extui %90 : i1 to i32
              %92 = arith.xori %86, %91 : i32
              ptx.regs_set %92, %14[1] : !ptx.regs<2xi32>
              %93 = arith.addi %88, %c16384_i32 : i32
              ptx.regs_pin %62 : !ptx.regs<64xf32>
              ptx.wgmma_fence
              %94 = arith.shrsi %88, %c4_i32 : i32
              %95 = arith.ori %94, %c65536_i32 {ptx.name = "descA"} : i32
              %96 = arith.muli %5, %c16384_i32 : i32
              %97 = arith.addi %93, %96 : i32
              %98 = arith.shrsi %97, %c4_i32 : i32
              %99 = arith.ori %98, %c65536_i32 {ptx.name = "descB"} : i32
              ptx.wgmma %62, %95, %99, %c0_i32 {a = "e4m3", b = "e4m3", n = 128 : i32} : !ptx.regs<64xf32>
              %100 = arith.addi %99, %c2_i32 : i32
              %101 = arith.addi %95, %c2_i32 : i32
              ptx.wgmma %62, %101, %100, %c1_i32 {a = "e4m3", b = "e4m3", n = 128 : i32} : !ptx.regs<64xf32>
              %102 = arith.addi %99, %c4_i32 : i32
              %103 = arith.addi %95, %c4_i32 : i32
              ptx.wgmma %62, %103, %102, %c1_i32 {a = "e4m3", b = "e4m3", n = 128 : i32} : !ptx.regs<64xf32>
              %104 = arith.addi %99, %c6_i32 : i32
              %105 = arith.addi %95, %c6_i32 : i32
              ptx.wgmma %62, %105, %104, %c1_i32 {a = "e4m3", b = "e4m3", n = 128 : i32} : !ptx.regs<64xf32>
              ptx.wgmma_commit
              %106 = arith.shrsi %7, %c2_i32 : i32
              %107 = arith.muli %6, %c16_i32 : i32
              %108 = arith.addi %107, %106 : i32
              %109 = arith.addi %88, %c49152_i32 : i32
              %110 = arith.andi %51, %c3_i32 : i32
              %111 = arith.addi %108, %110 : i32
              %112 = arith.muli %111, %c4_i32 : i32
              %113 = arith.addi %109, %112 : i32
              %114 = ptx.ld_shared_f32 %113 {ptx.name = "rowScale"}
              %115 = arith.addi %108, %c8_i32 : i32
              %116 = arith.addi %115, %110 : i32
              %117 = arith.muli %116, %c4_i32 : i32
              %118 = arith.addi %109, %117 : i32
              %119 = ptx.ld_shared_f32 %118 {ptx.name = "rowScaleBelow"}
              %120 = arith.muli %5, %c128_i32 : i32
              %121 = arith.shrsi %120, %c7_i32 : i32
              %122 = arith.addi %88, %c49792_i32 : i32
              %123 = arith.muli %57, %c32_i32 : i32
              %124 = arith.addi %123, %85 : i32
              %125 = arith.muli %124, %c56_i32 : i32
              %126 = arith.addi %125, %84 : i32
              %127 = arith.muli %121, %c56_i32 : i32
              %128 = arith.addi %126, %127 : i32
              %129 = arith.andi %128, %c3_i32 : i32
              %130 = arith.muli %129, %c4_i32 : i32
              %131 = arith.muli %121, %c128_i32 : i32
              %132 = arith.addi %122, %131 : i32
              %133 = arith.addi %132, %130 : i32
              %134 = ptx.ld_shared_f32 %133 {ptx.name = "columnScale"}
              ptx.wgmma_wait 0
              ptx.regs_pin %62 : !ptx.regs<64xf32>
              %135 = ptx.mul_f32 %114, %134
              %136 = ptx.mul_f32 %119, %134
              ptx.unroll %arg1 = 0 to 64 step 4 {
                %159 = ptx.regs_get %61[0, %arg1] : !ptx.regs<2x64xf32>
                %160 = ptx.regs_get %62[%arg1] : !ptx.regs<64xf32>
                %161 = ptx.fma_f32 %160, %135, %159
                ptx.regs_set %161, %61[0, %arg1] : !ptx.regs<2x64xf32>
                %162 = arith.addi %arg1, %c1_i32 : i32
                %163 = ptx.regs_get %61[0, %162] : !ptx.regs<2x64xf32>
                %164 = ptx.regs_get %62[%162] : !ptx.regs<64xf32>
                %165 = ptx.fma_f32 %164, %135, %163
                ptx.regs_set %165, %61[0, %162] : !ptx.regs<2x64xf32>
                %166 = arith.addi %arg1, %c2_i32 : i32
                %167 = ptx.regs_get %61[0, %166] : !ptx.regs<2x64xf32>
                %168 = ptx.regs_get %62[%166] : !ptx.regs<64xf32>
                %169 = ptx.fma_f32 %168, %136, %167
                ptx.regs_set %169, %61[0, %166] : !ptx.regs<2x64xf32>
                %170 = arith.addi %arg1, %c3_i32 : i32
                %171 = ptx.regs_get %61[0, %170] : !ptx.regs<2x64xf32>
                %172 = ptx.regs_get %62[%170] : !ptx.regs<64xf32>
                %173 = ptx.fma_f32 %172, %136, %171
                ptx.regs_set %173, %61[0, %170] : !ptx.regs<2x64xf32>
              }
              ptx.regs_pin %62 : !ptx.regs<64xf32>
              ptx.wgmma_fence
              %137 = arith.addi %88, %c8192_i32 : i32
              %138 = arith.shrsi %137, %c4_i32 : i32
              %139 = arith.ori %138, %c65536_i32 {ptx.name = "descA"} : i32
              ptx.wgmma %62, %139, %99, %c0_i32 {a = "e4m3", b = "e4m3", n = 128 : i32} : !ptx.regs<64xf32>
              %140 = arith.addi %139, %c2_i32 : i32
              ptx.wgmma %62, %140, %100, %c1_i32 {a = "e4m3", b = "e4m3", n = 128 : i32} : !ptx.regs<64xf32>
              %141 = arith.addi %139, %c4_i32 : i32
              ptx.wgmma %62, %141, %102, %c1_i32 {a = "e4m3", b = "e4m3", n = 128 : i32} : !ptx.regs<64xf32>
              %142 = arith.addi %139, %c6_i32 : i32
              ptx.wgmma %62, %142, %104, %c1_i32 {a = "e4m3", b = "e4m3", n = 128 : i32} : !ptx.regs<64xf32>
              ptx.wgmma_commit
              %143 = arith.addi %107, %c64_i32 : i32
              %144 = arith.addi %143, %106 : i32
              %145 = arith.addi %144, %110 : i32
              %146 = arith.muli %145, %c4_i32 : i32
              %147 = arith.addi %109, %146 : i32
              %148 = ptx.ld_shared_f32 %147 {ptx.name = "rowScale"}
              %149 = arith.addi %144, %c8_i32 : i32
              %150 = arith.addi %149, %110 : i32
              %151 = arith.muli %150, %c4_i32 : i32
              %152 = arith.addi %109, %151 : i32
              %153 = ptx.ld_shared_f32 %152 {ptx.name = "rowScaleBelow"}
              %154 = ptx.ld_shared_f32 %133 {ptx.name = "columnScale"}
              ptx.wgmma_wait 0
              ptx.regs_pin %62 : !ptx.regs<64xf32>
              %155 = arith.addi %88, %c50056_i32 : i32
              ptx.syncwarp
              %156 = arith.cmpi eq, %7, %c0_i32 : i32
              scf.if %156 {
                ptx.mbarrier_arrive %155
              }
              %157 = ptx.mul_f32 %148, %154
              %158 = ptx.mul_f32 %153, %154
              ptx.unroll %arg1 = 0 to 64 step 4 {
                %159 = ptx.regs_get %61[1, %arg1] : !ptx.regs<2x64xf32>
                %160 = ptx.regs_get %62[%arg1] : !ptx.regs<64xf32>
                %161 = ptx.fma_f32 %160, %157, %159
                ptx.regs_set %161, %61[1, %arg1] : !ptx.regs<2x64xf32>
                %162 = arith.addi %arg1, %c1_i32 : i32
                %163 = ptx.regs_get %61[1, %162] : !ptx.regs<2x64xf32>
                %164 = ptx.regs_get %62[%162] : !ptx.regs<64xf32>
                %165 = ptx.fma_f32 %164, %157, %163
                ptx.regs_set %165, %61[1, %162] : !ptx.regs<2x64xf32>
                %166 = arith.addi %arg1, %c2_i32 : i32
                %167 = ptx.regs_get %61[1, %166] : !ptx.regs<2x64xf32>
                %168 = ptx.regs_get %62[%166] : !ptx.regs<64xf32>
                %169 = ptx.fma_f32 %168, %158, %167
                ptx.regs_set %169, %61[1, %166] : !ptx.regs<2x64xf32>
                %170 = arith.addi %arg1, %c3_i32 : i32
                %171 = ptx.regs_get %61[1, %170] : !ptx.regs<2x64xf32>
                %172 = ptx.regs_get %62[%170] : !ptx.regs<64xf32>
                %173 = ptx.fma_f32 %172, %158, %171
                ptx.regs_set %173, %61[1, %170] : !ptx.regs<2x64xf32>
              }
            } {ptx.name = "slotIndex"}
          } {ptx.name = "kTurn"}
        } else {
          %82 = arith.shrsi %52, %c7_i32 : i32
          %83 = arith.addi %8, %c200704_i32 : i32
          %84 = arith.muli %5, %c16384_i32 : i32
          %85 = arith.shrsi %7, %c2_i32 : i32
          %86 = arith.muli %6, %c16_i32 : i32
          %87 = arith.addi %86, %85 : i32
          %88 = arith.andi %51, %c3_i32 : i32
          %89 = arith.addi %87, %88 : i32
          %90 = arith.muli %89, %c4_i32 : i32
          %91 = arith.addi %87, %c8_i32 : i32
          %92 = arith.addi %91, %88 : i32
          %93 = arith.muli %92, %c4_i32 : i32
          %94 = arith.muli %5, %c128_i32 : i32
          %95 = arith.shrsi %94, %c7_i32 : i32
          %96 = arith.muli %57, %c32_i32 : i32
          %97 = arith.addi %96, %82 : i32
          %98 = arith.muli %97, %c56_i32 : i32
          %99 = arith.muli %95, %c56_i32 : i32
          %100 = arith.muli %95, %c128_i32 : i32
          %101 = arith.cmpi eq, %7, %c0_i32 : i32
          scf.for %arg0 = %c0_i32 to %63 step %c1_i32  : i32 {
            %102 = arith.muli %arg0, %c128_i32 {ptx.name = "k"} : i32
            %103 = arith.shrsi %102, %c7_i32 : i32
            %104 = ptx.regs_get %14[1] {ptx.name = "phase"} : !ptx.regs<2xi32>
            %105 = ptx.regs_get %14[0] : !ptx.regs<2xi32>
            %106 = ptx.shfl_idx %105, %c0_i32 {ptx.name = "slot"}
            %107 = arith.addi %106, %c50048_i32 : i32
            ptx.mbarrier_wait %107, %104
            %108 = arith.addi %106, %c50176_i32 : i32
            %109 = arith.cmpi eq, %108, %83 : i32
            %110 = arith.select %109, %8, %108 : i32
            ptx.regs_set %110, %14[0] : !ptx.regs<2xi32>
            %111 = arith.extui %109 : i1 to i32
            %112 = arith.xori %104, %111 : i32
            ptx.regs_set %112, %14[1] : !ptx.regs<2xi32>
            %113 = arith.addi %106, %c16384_i32 : i32
            ptx.regs_pin %62 : !ptx.regs<64xf32>
            ptx.wgmma_fence
            %114 = arith.shrsi %106, %c4_i32 : i32
            %115 = arith.ori %114, %c65536_i32 {ptx.name = "descA"} : i32
            %116 = arith.addi %113, %84 : i32
            %117 = arith.shrsi %116, %c4_i32 : i32
            %118 = arith.ori %117, %c65536_i32 {ptx.name = "descB"} : i32
            ptx.wgmma %62, %115, %118, %c0_i32 {a = "e4m3", b = "e4m3", n = 128 : i32} : !ptx.regs<64xf32>
            %119 = arith.addi %118, %c2_i32 : i32
            %120 = arith.addi %115, %c2_i32 : i32
            ptx.wgmma %62, %120, %119, %c1_i32 {a = "e4m3", b = "e4m3", n = 128 : i32} : !ptx.regs<64xf32>
            %121 = arith.addi %118, %c4_i32 : i32
            %122 = arith.addi %115, %c4_i32 : i32
            ptx.wgmma %62, %122, %121, %c1_i32 {a = "e4m3", b = "e4m3", n = 128 : i32} : !ptx.regs<64xf32>
            %123 = arith.addi %118, %c6_i32 : i32
            %124 = arith.addi %115, %c6_i32 : i32
            ptx.wgmma %62, %124, %123, %c1_i32 {a = "e4m3", b = "e4m3", n = 128 : i32} : !ptx.regs<64xf32>
            ptx.wgmma_commit
            %125 = arith.addi %106, %c49152_i32 : i32
            %126 = arith.addi %125, %90 : i32
            %127 = ptx.ld_shared_f32 %126 {ptx.name = "rowScale"}
            %128 = arith.addi %125, %93 : i32
            %129 = ptx.ld_shared_f32 %128 {ptx.name = "rowScaleBelow"}
            %130 = arith.addi %106, %c49792_i32 : i32
            %131 = arith.addi %98, %103 : i32
            %132 = arith.addi %131, %99 : i32
            %133 = arith.andi %132, %c3_i32 : i32
            %134 = arith.muli %133, %c4_i32 : i32
            %135 = arith.addi %130, %100 : i32
            %136 = arith.addi %135, %134 : i32
            %137 = ptx.ld_shared_f32 %136 {ptx.name = "columnScale"}
            ptx.wgmma_wait 0
            ptx.regs_pin %62 : !ptx.regs<64xf32>
            %138 = arith.addi %106, %c50056_i32 : i32
            ptx.syncwarp
            scf.if %101 {
              ptx.mbarrier_arrive %138
            }
            %139 = ptx.mul_f32 %127, %137
            %140 = ptx.mul_f32 %129, %137
            ptx.unroll %arg1 = 0 to 64 step 4 {
              %141 = ptx.regs_get %61[0, %arg1] : !ptx.regs<2x64xf32>
              %142 = ptx.regs_get %62[%arg1] : !ptx.regs<64xf32>
              %143 = ptx.fma_f32 %142, %139, %141
              ptx.regs_set %143, %61[0, %arg1] : !ptx.regs<2x64xf32>
              %144 = arith.addi %arg1, %c1_i32 : i32
              %145 = ptx.regs_get %61[0, %144] : !ptx.regs<2x64xf32>
              %146 = ptx.regs_get %62[%144] : !ptx.regs<64xf32>
              %147 = ptx.fma_f32 %146, %139, %145
              ptx.regs_set %147, %61[0, %144] : !ptx.regs<2x64xf32>
              %148 = arith.addi %arg1, %c2_i32 : i32
              %149 = ptx.regs_get %61[0, %148] : !ptx.regs<2x64xf32>
              %150 = ptx.regs_get %62[%148] : !ptx.regs<64xf32>
              %151 = ptx.fma_f32 %150, %140, %149
              ptx.regs_set %151, %61[0, %148] : !ptx.regs<2x64xf32>
              %152 = arith.addi %arg1, %c3_i32 : i32
              %153 = ptx.regs_get %61[0, %152] : !ptx.regs<2x64xf32>
              %154 = ptx.regs_get %62[%152] : !ptx.regs<64xf32>
              %155 = ptx.fma_f32 %154, %140, %153
              ptx.regs_set %155, %61[0, %152] : !ptx.regs<2x64xf32>
            }
          } {ptx.name = "kStep"}
        }
        %65 = ptx.regs_get %16[0] : !ptx.regs<2xi32>
        %66 = ptx.regs_get %16[1] : !ptx.regs<2xi32>
        %67 = arith.muli %65, %c8_i32 : i32
        %68 = arith.addi %9, %67 {ptx.name = "tileFull"} : i32
        %69 = arith.muli %65, %c4_i32 : i32
        %70 = arith.addi %69, %c32_i32 : i32
        %71 = arith.addi %9, %70 : i32
        ptx.mbarrier_wait %68, %66
        %72 = ptx.ld_shared_i32 %71
        %73 = ptx.shfl_idx %72, %c0_i32
        ptx.syncwarp
        scf.if %20 {
          %82 = arith.addi %68, %c16_i32 : i32
          ptx.mbarrier_arrive %82
        }
        %74 = arith.cmpi eq, %65, %c1_i32 : i32
        %75 = arith.addi %65, %c1_i32 : i32
        %76 = arith.select %74, %c0_i32, %75 : i32
        ptx.regs_set %76, %16[0] : !ptx.regs<2xi32>
        %77 = arith.extui %74 : i1 to i32
        %78 = arith.xori %66, %77 : i32
        ptx.regs_set %78, %16[1] : !ptx.regs<2xi32>
        ptx.regs_set %73, %15[0] : !ptx.regs<5xi32>
        scf.while : () -> () {
          %82 = ptx.regs_get %15[2] : !ptx.regs<5xi32>
          %83 = ptx.regs_get %15[3] : !ptx.regs<5xi32>
          %84 = arith.subi %83, %82 : i32
          %85 = arith.addi %84, %c127_i32 : i32
          %86 = arith.shrsi %85, %c7_i32 : i32
          %87 = arith.muli %86, %c16_i32 : i32
          %88 = ptx.regs_get %15[4] : !ptx.regs<5xi32>
          %89 = arith.addi %88, %87 : i32
          %90 = ptx.regs_get %15[0] : !ptx.regs<5xi32>
          %91 = arith.cmpi sge, %90, %89 : i32
          %92 = ptx.regs_get %15[1] : !ptx.regs<5xi32>
          %93 = arith.cmpi slt, %92, %c258_i32 : i32
          %94 = arith.andi %93, %91 : i1
          scf.condition(%94)
        } do {
          %82 = ptx.regs_get %15[2] : !ptx.regs<5xi32>
          %83 = ptx.regs_get %15[3] : !ptx.regs<5xi32>
          %84 = arith.subi %83, %82 : i32
          %85 = arith.addi %84, %c127_i32 : i32
          %86 = arith.shrsi %85, %c7_i32 : i32
          %87 = arith.muli %86, %c16_i32 : i32
          %88 = ptx.regs_get %15[4] : !ptx.regs<5xi32>
          %89 = arith.addi %88, %87 : i32
          %90 = ptx.regs_get %15[1] : !ptx.regs<5xi32>
          %91 = arith.addi %90, %c1_i32 {ptx.name = "group"} : i32
          %92 = ptx.regs_get %15[3] {ptx.name = "low"} : !ptx.regs<5xi32>
          ptx.regs_set %89, %15[4] : !ptx.regs<5xi32>
          ptx.regs_set %91, %15[1] : !ptx.regs<5xi32>
          ptx.regs_set %92, %15[2] : !ptx.regs<5xi32>
          %93 = arith.minsi %91, %c256_i32 : i32
          %94 = arith.muli %93, %c4_i32 : i32
          %95 = arith.addi %18, %94 : i32
          %96 = ptx.ld_shared_i32 %95
          %97 = arith.cmpi sgt, %91, %c256_i32 : i32
          %98 = arith.select %97, %rows, %96 : i32
          %99 = arith.maxsi %92, %98 : i32
          ptx.regs_set %99, %15[3] : !ptx.regs<5xi32>
          scf.yield
        }
        %79 = arith.addi %28, %52 : i32
        %80 = arith.cmpi slt, %27, %54 : i32
        scf.if %80 {
          %82 = arith.shrsi %7, %c4_i32 : i32
          %83 = arith.muli %82, %c16_i32 : i32
          %84 = arith.andi %7, %c15_i32 : i32
          %85 = arith.muli %84, %c144_i32 : i32
          %86 = arith.addi %26, %85 : i32
          %87 = arith.addi %86, %83 {ptx.name = "into"} : i32
          ptx.syncwarp
          ptx.unroll %arg0 = 0 to 8 step 2 {
            %92 = arith.muli %arg0, %c4_i32 : i32
            %93 = ptx.regs_get %61[0, %92] : !ptx.regs<2x64xf32>
            %94 = arith.addi %92, %c1_i32 : i32
            %95 = ptx.regs_get %61[0, %94] : !ptx.regs<2x64xf32>
            %96 = ptx.cvt_bf16x2_f32 %93, %95
            %97 = arith.addi %92, %c2_i32 : i32
            %98 = ptx.regs_get %61[0, %97] : !ptx.regs<2x64xf32>
            %99 = arith.addi %92, %c3_i32 : i32
            %100 = ptx.regs_get %61[0, %99] : !ptx.regs<2x64xf32>
            %101 = ptx.cvt_bf16x2_f32 %98, %100
            %102 = arith.addi %92, %c4_i32 : i32
            %103 = ptx.regs_get %61[0, %102] : !ptx.regs<2x64xf32>
            %104 = arith.addi %92, %c5_i32 : i32
            %105 = ptx.regs_get %61[0, %104] : !ptx.regs<2x64xf32>
            %106 = ptx.cvt_bf16x2_f32 %103, %105
            %107 = arith.addi %92, %c6_i32 : i32
            %108 = ptx.regs_get %61[0, %107] : !ptx.regs<2x64xf32>
            %109 = arith.addi %92, %c7_i32 : i32
            %110 = ptx.regs_get %61[0, %109] : !ptx.regs<2x64xf32>
            %111 = ptx.cvt_bf16x2_f32 %108, %110
            %112 = arith.muli %arg0, %c16_i32 : i32
            %113 = arith.addi %87, %112 : i32
            ptx.stmatrix_x4 %113, %96, %101, %106, %111
          }
          ptx.syncwarp
          %88 = arith.andi %7, %c7_i32 : i32
          %89 = arith.muli %88, %c8_i32 : i32
          %90 = arith.addi %79, %89 : i32
          ptx.unroll %arg0 = 0 to 16 step 4 {
            %92 = arith.shrsi %7, %c3_i32 : i32
            %93 = arith.addi %arg0, %92 : i32
            %94 = arith.addi %27, %93 : i32
            %95 = arith.cmpi slt, %94, %54 : i32
            scf.if %95 {
              %96 = ptx.regs {ptx.name = "vector"} : !ptx.regs<4xi32>
              %97 = arith.muli %88, %c16_i32 : i32
              %98 = arith.muli %93, %c144_i32 : i32
              %99 = arith.addi %26, %98 : i32
              %100 = arith.addi %99, %97 : i32
              ptx.ld_shared_v4 %100, %96 : !ptx.regs<4xi32>
              %101 = arith.addi %51, %94 : i32
              %102 = arith.extsi %90 : i32 to i64
              %103 = arith.muli %102, %c2_i64 : i64
              %104 = arith.extsi %101 : i32 to i64
              %105 = arith.muli %104, %21 : i64
              %106 = arith.addi %105, %103 : i64
              ptx.st_global_v4 %y, %106, %96 : !ptx.regs<4xi32>
            }
          }
          ptx.syncwarp
          ptx.unroll %arg0 = 0 to 8 step 2 {
            %92 = arith.muli %arg0, %c4_i32 : i32
            %93 = arith.addi %92, %c32_i32 : i32
            %94 = ptx.regs_get %61[0, %93] : !ptx.regs<2x64xf32>
            %95 = arith.addi %92, %c33_i32 : i32
            %96 = ptx.regs_get %61[0, %95] : !ptx.regs<2x64xf32>
            %97 = ptx.cvt_bf16x2_f32 %94, %96
            %98 = arith.addi %92, %c34_i32 : i32
            %99 = ptx.regs_get %61[0, %98] : !ptx.regs<2x64xf32>
            %100 = arith.addi %92, %c35_i32 : i32
            %101 = ptx.regs_get %61[0, %100] : !ptx.regs<2x64xf32>
            %102 = ptx.cvt_bf16x2_f32 %99, %101
            %103 = arith.addi %92, %c36_i32 : i32
            %104 = ptx.regs_get %61[0, %103] : !ptx.regs<2x64xf32>
            %105 = arith.addi %92, %c37_i32 : i32
            %106 = ptx.regs_get %61[0, %105] : !ptx.regs<2x64xf32>
            %107 = ptx.cvt_bf16x2_f32 %104, %106
            %108 = arith.addi %92, %c38_i32 : i32
            %109 = ptx.regs_get %61[0, %108] : !ptx.regs<2x64xf32>
            %110 = arith.addi %92, %c39_i32 : i32
            %111 = ptx.regs_get %61[0, %110] : !ptx.regs<2x64xf32>
            %112 = ptx.cvt_bf16x2_f32 %109, %111
            %113 = arith.muli %arg0, %c16_i32 : i32
            %114 = arith.addi %87, %113 : i32
            ptx.stmatrix_x4 %114, %97, %102, %107, %112
          }
          ptx.syncwarp
          %91 = arith.addi %90, %c64_i32 : i32
          ptx.unroll %arg0 = 0 to 16 step 4 {
            %92 = arith.shrsi %7, %c3_i32 : i32
            %93 = arith.addi %arg0, %92 : i32
            %94 = arith.addi %27, %93 : i32
            %95 = arith.cmpi slt, %94, %54 : i32
            scf.if %95 {
              %96 = ptx.regs {ptx.name = "vector"} : !ptx.regs<4xi32>
              %97 = arith.muli %88, %c16_i32 : i32
              %98 = arith.muli %93, %c144_i32 : i32
              %99 = arith.addi %26, %98 : i32
              %100 = arith.addi %99, %97 : i32
              ptx.ld_shared_v4 %100, %96 : !ptx.regs<4xi32>
              %101 = arith.addi %51, %94 : i32
              %102 = arith.extsi %91 : i32 to i64
              %103 = arith.muli %102, %c2_i64 : i64
              %104 = arith.extsi %101 : i32 to i64
              %105 = arith.muli %104, %21 : i64
              %106 = arith.addi %105, %103 : i64
              ptx.st_global_v4 %y, %106, %96 : !ptx.regs<4xi32>
            }
          }
        }
        %81 = arith.cmpi slt, %30, %54 : i32
        scf.if %81 {
          %82 = arith.shrsi %7, %c4_i32 : i32
          %83 = arith.muli %82, %c16_i32 : i32
          %84 = arith.andi %7, %c15_i32 : i32
          %85 = arith.muli %84, %c144_i32 : i32
          %86 = arith.addi %26, %85 : i32
          %87 = arith.addi %86, %83 {ptx.name = "into"} : i32
          ptx.syncwarp
          ptx.unroll %arg0 = 0 to 8 step 2 {
            %92 = arith.muli %arg0, %c4_i32 : i32
            %93 = ptx.regs_get %61[1, %92] : !ptx.regs<2x64xf32>
            %94 = arith.addi %92, %c1_i32 : i32
            %95 = ptx.regs_get %61[1, %94] : !ptx.regs<2x64xf32>
            %96 = ptx.cvt_bf16x2_f32 %93, %95
            %97 = arith.addi %92, %c2_i32 : i32
            %98 = ptx.regs_get %61[1, %97] : !ptx.regs<2x64xf32>
            %99 = arith.addi %92, %c3_i32 : i32
            %100 = ptx.regs_get %61[1, %99] : !ptx.regs<2x64xf32>
            %101 = ptx.cvt_bf16x2_f32 %98, %100
            %102 = arith.addi %92, %c4_i32 : i32
            %103 = ptx.regs_get %61[1, %102] : !ptx.regs<2x64xf32>
            %104 = arith.addi %92, %c5_i32 : i32
            %105 = ptx.regs_get %61[1, %104] : !ptx.regs<2x64xf32>
            %106 = ptx.cvt_bf16x2_f32 %103, %105
            %107 = arith.addi %92, %c6_i32 : i32
            %108 = ptx.regs_get %61[1, %107] : !ptx.regs<2x64xf32>
            %109 = arith.addi %92, %c7_i32 : i32
            %110 = ptx.regs_get %61[1, %109] : !ptx.regs<2x64xf32>
            %111 = ptx.cvt_bf16x2_f32 %108, %110
            %112 = arith.muli %arg0, %c16_i32 : i32
            %113 = arith.addi %87, %112 : i32
            ptx.stmatrix_x4 %113, %96, %101, %106, %111
          }
          ptx.syncwarp
          %88 = arith.andi %7, %c7_i32 : i32
          %89 = arith.muli %88, %c8_i32 : i32
          %90 = arith.addi %79, %89 : i32
          ptx.unroll %arg0 = 0 to 16 step 4 {
            %92 = arith.shrsi %7, %c3_i32 : i32
            %93 = arith.addi %arg0, %92 : i32
            %94 = arith.addi %30, %93 : i32
            %95 = arith.cmpi slt, %94, %54 : i32
            scf.if %95 {
              %96 = ptx.regs {ptx.name = "vector"} : !ptx.regs<4xi32>
              %97 = arith.muli %88, %c16_i32 : i32
              %98 = arith.muli %93, %c144_i32 : i32
              %99 = arith.addi %26, %98 : i32
              %100 = arith.addi %99, %97 : i32
              ptx.ld_shared_v4 %100, %96 : !ptx.regs<4xi32>
              %101 = arith.addi %51, %94 : i32
              %102 = arith.extsi %90 : i32 to i64
              %103 = arith.muli %102, %c2_i64 : i64
              %104 = arith.extsi %101 : i32 to i64
              %105 = arith.muli %104, %21 : i64
              %106 = arith.addi %105, %103 : i64
              ptx.st_global_v4 %y, %106, %96 : !ptx.regs<4xi32>
            }
          }
          ptx.syncwarp
          ptx.unroll %arg0 = 0 to 8 step 2 {
            %92 = arith.muli %arg0, %c4_i32 : i32
            %93 = arith.addi %92, %c32_i32 : i32
            %94 = ptx.regs_get %61[1, %93] : !ptx.regs<2x64xf32>
            %95 = arith.addi %92, %c33_i32 : i32
            %96 = ptx.regs_get %61[1, %95] : !ptx.regs<2x64xf32>
            %97 = ptx.cvt_bf16x2_f32 %94, %96
            %98 = arith.addi %92, %c34_i32 : i32
            %99 = ptx.regs_get %61[1, %98] : !ptx.regs<2x64xf32>
            %100 = arith.addi %92, %c35_i32 : i32
            %101 = ptx.regs_get %61[1, %100] : !ptx.regs<2x64xf32>
            %102 = ptx.cvt_bf16x2_f32 %99, %101
            %103 = arith.addi %92, %c36_i32 : i32
            %104 = ptx.regs_get %61[1, %103] : !ptx.regs<2x64xf32>
            %105 = arith.addi %92, %c37_i32 : i32
            %106 = ptx.regs_get %61[1, %105] : !ptx.regs<2x64xf32>
            %107 = ptx.cvt_bf16x2_f32 %104, %106
            %108 = arith.addi %92, %c38_i32 : i32
            %109 = ptx.regs_get %61[1, %108] : !ptx.regs<2x64xf32>
            %110 = arith.addi %92, %c39_i32 : i32
            %111 = ptx.regs_get %61[1, %110] : !ptx.regs<2x64xf32>
            %112 = ptx.cvt_bf16x2_f32 %109, %111
            %113 = arith.muli %arg0, %c16_i32 : i32
            %114 = arith.addi %87, %113 : i32
            ptx.stmatrix_x4 %114, %97, %102, %107, %112
          }
          ptx.syncwarp
          %91 = arith.addi %90, %c64_i32 : i32
          ptx.unroll %arg0 = 0 to 16 step 4 {
            %92 = arith.shrsi %7, %c3_i32 : i32
            %93 = arith.addi %arg0, %92 : i32
            %94 = arith.addi %30, %93 : i32
            %95 = arith.cmpi slt, %94, %54 : i32
            scf.if %95 {
              %96 = ptx.regs {ptx.name = "vector"} : !ptx.regs<4xi32>
              %97 = arith.muli %88, %c16_i32 : i32
              %98 = arith.muli %93, %c144_i32 : i32
              %99 = arith.addi %26, %98 : i32
              %100 = arith.addi %99, %97 : i32
              ptx.ld_shared_v4 %100, %96 : !ptx.regs<4xi32>
              %101 = arith.addi %51, %94 : i32
              %102 = arith.extsi %91 : i32 to i64
              %103 = arith.muli %102, %c2_i64 : i64
              %104 = arith.extsi %101 : i32 to i64
              %105 = arith.muli %104, %21 : i64
              %106 = arith.addi %105, %103 : i64
              ptx.st_global_v4 %y, %106, %96 : !ptx.regs<4xi32>
            }
          }
        }
        scf.yield
      }
    }
  }
}
