// Every operation of the dialect in one kernel, through NVRTC to a cubin: the proof that each wrapper's text assembles.
// RUN: ptx-emit --ptx-to-cuda %s | FileCheck %s --check-prefix=CUDA
// RUN: ptx-emit --ptx-to-binary %s | FileCheck %s --check-prefix=PTX

ptx.kernel @every_instruction(
    %map1: !ptx.tmap {ptx.name = "map1"}, %map2: !ptx.tmap {ptx.name = "map2"}, %map3: !ptx.tmap {ptx.name = "map3"},
    %in: !ptx.ptr {ptx.name = "in"}, %out: !ptx.ptr {ptx.name = "out"}, %rows: i32 {ptx.name = "rows"},
    %stride: i64 {ptx.name = "stride"})
    attributes {threads = 384 : i32, cluster = 2 : i32, shared_bytes = 65536 : i32} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %mask = arith.constant 3 : i32
  %eight = arith.constant 8 : i32
  %bytes = arith.constant 1024 : i32
  %quarter = ptx.constant_f32 0.25

  // CUDA: const int thread = thread_index();
  %thread = ptx.thread_index {ptx.name = "thread"}
  %block = ptx.block_index {ptx.name = "block"}
  %blocks = ptx.grid_size {ptx.name = "blocks"}
  %rank = ptx.cluster_rank {ptx.name = "rank"}
  %shared = ptx.shared_base {ptx.name = "shared"}
  %warp = ptx.shfl_idx %thread, %zero {ptx.name = "warp"}
  %crossed = ptx.shfl_bfly %thread, %mask {ptx.name = "crossed"}
  %leader = ptx.elect_one {ptx.name = "leader"}
  ptx.syncwarp
  // PTX-DAG: mov.u32 %r{{[0-9]+}}, %tid.x;
  // PTX-DAG: mov.u32 %r{{[0-9]+}}, %ctaid.x;
  // PTX-DAG: mov.u32 %r{{[0-9]+}}, %nctaid.x;
  // PTX-DAG: mov.u32 %r{{[0-9]+}}, %cluster_ctarank;
  // PTX-DAG: shfl.sync.idx.b32
  // PTX-DAG: shfl.sync.bfly.b32
  // PTX-DAG: elect.sync _|p, 0xffffffff;
  // PTX-DAG: bar.warp.sync 0xffffffff;
  // PTX-DAG: .extern .shared .align 1024 .b8 {{.*}}dynamicShared

  // CUDA: mbarrier_init(shared, 1);
  ptx.mbarrier_init %shared, %one
  ptx.fence_mbarrier_init
  ptx.cluster_arrive
  ptx.cluster_wait
  ptx.bar_sync 1, 384
  ptx.bar_arrive 2, 384
  ptx.bar_sync 2, 384
  // PTX-DAG: mbarrier.init.shared::cta.b64
  // PTX-DAG: fence.mbarrier_init.release.cluster;
  // PTX-DAG: barrier.cluster.arrive.release.aligned;
  // PTX-DAG: barrier.cluster.wait.acquire.aligned;
  // PTX-DAG: bar.sync
  // PTX-DAG: bar.arrive

  %first = ptx.createpolicy_evict_first {ptx.name = "evictFirst"}
  %last = ptx.createpolicy_evict_last {ptx.name = "evictLast"}
  %isProducer = arith.cmpi eq, %warp, %zero : i32
  scf.if %isProducer {
    // CUDA: setmaxnreg_dec<40>();
    ptx.setmaxnreg_dec 40
    ptx.prefetch_tensormap %map1
    ptx.mbarrier_expect_tx %shared, %bytes
    // CUDA: tma_load_1d(shared, map1, 0, shared);
    ptx.tma_load %shared, %map1[%zero], %shared
    // CUDA: tma_load_2d(shared, map2, 0, rows, shared);
    ptx.tma_load %shared, %map2[%zero, %rows], %shared
    // CUDA: tma_load_3d(shared, map3, 0, rows, 1, shared);
    ptx.tma_load %shared, %map3[%zero, %rows, %one], %shared
    // CUDA: tma_load_1d_hint(shared, map1, 0, shared, evictFirst);
    ptx.tma_load %shared, %map1[%zero], %shared policy %first
    ptx.tma_load %shared, %map2[%zero, %rows], %shared policy %last
    ptx.tma_load %shared, %map3[%zero, %rows, %one], %shared policy %last
    // CUDA: tma_load_1d_multicast(shared, map1, 0, shared, 3);
    ptx.tma_load %shared, %map1[%zero], %shared multicast %mask
    ptx.tma_load %shared, %map2[%zero, %rows], %shared multicast %mask
    ptx.tma_load %shared, %map3[%zero, %rows, %one], %shared multicast %mask
    // CUDA: tma_load_1d_hint_multicast(shared, map1, 0, shared, evictFirst, 3);
    ptx.tma_load %shared, %map1[%zero], %shared policy %first multicast %mask
    ptx.tma_load %shared, %map2[%zero, %rows], %shared policy %first multicast %mask
    ptx.tma_load %shared, %map3[%zero, %rows, %one], %shared policy %first multicast %mask
    // CUDA: st_async_i32(shared, rows, shared, rank);
    ptx.st_async_i32 %shared, %rows, %shared, %rank
    // CUDA: st_async_v4_f32(shared, {{.*}}, shared, rank);
    ptx.st_async_v4_f32 %shared, %quarter, %quarter, %quarter, %quarter, %shared, %rank
    ptx.mbarrier_arrive %shared
    ptx.mbarrier_arrive_cluster %shared, %rank
    // PTX-DAG: setmaxnreg.dec.sync.aligned.u32
    // PTX-DAG: prefetch.tensormap
    // PTX-DAG: mbarrier.arrive.expect_tx.shared::cta.b64
    // PTX-DAG: cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes{{$}}
    // PTX-DAG: cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes{{$}}
    // PTX-DAG: cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes{{$}}
    // PTX-DAG: cp.async.bulk.tensor.1d.{{.*}}.L2::cache_hint
    // PTX-DAG: cp.async.bulk.tensor.2d.{{.*}}.L2::cache_hint
    // PTX-DAG: cp.async.bulk.tensor.3d.{{.*}}.L2::cache_hint
    // PTX-DAG: cp.async.bulk.tensor.1d.{{.*}}.multicast::cluster
    // PTX-DAG: cp.async.bulk.tensor.2d.{{.*}}.multicast::cluster
    // PTX-DAG: cp.async.bulk.tensor.3d.{{.*}}.multicast::cluster
    // PTX-DAG: cp.async.bulk.tensor.1d.{{.*}}.multicast::cluster.L2::cache_hint
    // PTX-DAG: cp.async.bulk.tensor.2d.{{.*}}.multicast::cluster.L2::cache_hint
    // PTX-DAG: cp.async.bulk.tensor.3d.{{.*}}.multicast::cluster.L2::cache_hint
    // PTX-DAG: mapa.shared::cluster.u32 signal,
    // PTX-DAG: st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [place],
    // PTX-DAG: st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [place],
    // PTX-DAG: createpolicy.fractional.L2::evict_first.b64
    // PTX-DAG: createpolicy.fractional.L2::evict_last.b64
    // PTX-DAG: mbarrier.arrive.shared::cta.b64 _,
    // PTX-DAG: mapa.shared::cluster.u32 remote,
    // PTX-DAG: mbarrier.arrive.shared::cluster.b64 _, [remote];
  } else {
    // CUDA: setmaxnreg_inc<232>();
    ptx.setmaxnreg_inc 232
    ptx.mbarrier_wait %shared, %zero
    ptx.mbarrier_wait_cluster %shared, %zero
    // CUDA: float acc[2][64];
    %acc = ptx.regs {ptx.name = "acc"} : !ptx.regs<2x64xf32>
    %small = ptx.regs {ptx.name = "small"} : !ptx.regs<4xf32>
    %words = ptx.regs {ptx.name = "words"} : !ptx.regs<4xi32>
    %pairs = ptx.regs {ptx.name = "pairs"} : !ptx.regs<2x4xi32>
    %start = ptx.constant_f32 0.5
    ptx.unroll %i = 0 to 64 {
      // CUDA: acc[0][i] = 0.5f;
      ptx.regs_set %start, %acc[0, %i] : !ptx.regs<2x64xf32>
      ptx.regs_set %start, %acc[1, %i] : !ptx.regs<2x64xf32>
    } {ptx.name = "i"}
    ptx.unroll %i = 0 to 4 {
      ptx.regs_set %start, %small[%i] : !ptx.regs<4xf32>
      ptx.regs_set %zero, %pairs[1, %i] : !ptx.regs<2x4xi32>
    } {ptx.name = "i"}
    ptx.fence_proxy_async
    %c4 = arith.constant 4 : i32
    %high = arith.constant 65536 : i32
    %shifted = arith.shrui %shared, %c4 : i32
    %desc = arith.ori %shifted, %high {ptx.name = "descriptor"} : i32
    // CUDA: regs_pin(acc[0]);
    ptx.regs_pin %acc[0] : !ptx.regs<2x64xf32>
    ptx.regs_pin %acc[1] : !ptx.regs<2x64xf32>
    ptx.regs_pin %small : !ptx.regs<4xf32>
    ptx.wgmma_fence
    // CUDA: wgmma_m64n128k32_e4m3_e4m3(acc[0], descriptor, descriptor, 0);
    ptx.wgmma %acc[0], %desc, %desc, %zero {n = 128 : i32, a = "e4m3", b = "e4m3"} : !ptx.regs<2x64xf32>
    ptx.unroll %u = 0 to 2 {
      // CUDA: wgmma_m64n128k32_e5m2_e4m3(acc[u], descriptor, descriptor, 1);
      ptx.wgmma %acc[%u], %desc, %desc, %one {n = 128 : i32, a = "e5m2", b = "e4m3"} : !ptx.regs<2x64xf32>
    } {ptx.name = "u"}
    // CUDA: wgmma_m64n8k32_e5m2_e5m2(small, descriptor, descriptor, 1);
    ptx.wgmma %small, %desc, %desc, %one {n = 8 : i32, a = "e5m2", b = "e5m2"} : !ptx.regs<4xf32>
    ptx.wgmma %small, %desc, %desc, %one {n = 8 : i32, a = "e4m3", b = "e5m2"} : !ptx.regs<4xf32>
    ptx.wgmma_commit
    // CUDA: wgmma_wait<0>();
    ptx.wgmma_wait 0
    ptx.regs_pin %acc[0] : !ptx.regs<2x64xf32>
    ptx.regs_pin %acc[1] : !ptx.regs<2x64xf32>
    ptx.regs_pin %small : !ptx.regs<4xf32>
    ptx.regs_pin %pairs[1] : !ptx.regs<2x4xi32>
    // PTX-DAG: setmaxnreg.inc.sync.aligned.u32
    // PTX-DAG: mbarrier.try_wait.parity.shared::cta.b64
    // PTX-DAG: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64
    // PTX-DAG: fence.proxy.async.shared::cta;
    // PTX-DAG: wgmma.fence.sync.aligned;
    // PTX-DAG: wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3
    // PTX-DAG: wgmma.mma_async.sync.aligned.m64n128k32.f32.e5m2.e4m3
    // PTX-DAG: wgmma.mma_async.sync.aligned.m64n8k32.f32.e5m2.e5m2
    // PTX-DAG: wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2
    // PTX-DAG: wgmma.commit_group.sync.aligned;
    // PTX-DAG: wgmma.wait_group.sync.aligned 0;

    // CUDA: const float scale = ld_shared_f32(shared);
    %scale = ptx.ld_shared_f32 %shared {ptx.name = "scale"}
    %word = ptx.ld_shared_i32 %shared {ptx.name = "word"}
    // CUDA: ld_shared_u8(shared)
    %byte = ptx.ld_shared_u8 %shared {ptx.name = "byte"}
    ptx.st_shared_i32 %shared, %byte
    ptx.st_shared_f32 %shared, %scale
    ptx.st_shared_i32 %shared, %word
    // CUDA: ld_shared_v4(shared, words);
    ptx.ld_shared_v4 %shared, %words : !ptx.regs<4xi32>
    // CUDA: st_shared_v4(shared, pairs[1]);
    ptx.st_shared_v4 %shared, %pairs[1] : !ptx.regs<2x4xi32>
    // CUDA: const int firstWord = words[0];
    %w0 = ptx.regs_get %words[0] {ptx.name = "firstWord"} : !ptx.regs<4xi32>
    // CUDA: stmatrix_x4(shared, firstWord, word, 0, 1);
    ptx.stmatrix_x4 %shared, %w0, %word, %zero, %one
    // CUDA: stmatrix_x4_trans(shared, firstWord, word, 0, 1);
    ptx.stmatrix_x4_trans %shared, %w0, %word, %zero, %one
    // PTX-DAG: ld.shared.f32
    // PTX-DAG: ld.shared.b32
    // PTX-DAG: ld.shared.u8
    // PTX-DAG: st.shared.f32
    // PTX-DAG: st.shared.b32
    // PTX-DAG: ld.shared.v4.b32
    // PTX-DAG: st.shared.v4.b32
    // PTX-DAG: stmatrix.sync.aligned.m8n8.x4.shared.b16
    // PTX-DAG: stmatrix.sync.aligned.m8n8.x4.trans.shared.b16

    // CUDA: tma_store_1d(map1, 0, shared);
    ptx.tma_store %map1[%zero], %shared
    // CUDA: tma_store_2d(map2, 0, rows, shared);
    ptx.tma_store %map2[%zero, %rows], %shared
    // CUDA: tma_store_3d(map3, 0, rows, 1, shared);
    ptx.tma_store %map3[%zero, %rows, %one], %shared
    ptx.bulk_commit
    // CUDA: bulk_wait_read<1>();
    ptx.bulk_wait_read 1
    // CUDA: bulk_wait<0>();
    ptx.bulk_wait 0
    // PTX-DAG: cp.async.bulk.tensor.1d.global.shared::cta{{(\.tile)?}}.bulk_group
    // PTX-DAG: cp.async.bulk.tensor.2d.global.shared::cta{{(\.tile)?}}.bulk_group
    // PTX-DAG: cp.async.bulk.tensor.3d.global.shared::cta{{(\.tile)?}}.bulk_group
    // PTX-DAG: cp.async.bulk.commit_group;
    // PTX-DAG: cp.async.bulk.wait_group.read 1;
    // PTX-DAG: cp.async.bulk.wait_group 0;

    // CUDA: cp_async_ca_4(shared, in, stride);
    ptx.cp_async %shared, %in, %stride {bytes = 4 : i32, cache = "ca"}
    ptx.cp_async %shared, %in, %stride {bytes = 8 : i32, cache = "ca"}
    ptx.cp_async %shared, %in, %stride {bytes = 16 : i32, cache = "ca"}
    ptx.cp_async %shared, %in, %stride {bytes = 16 : i32, cache = "cg"}
    // CUDA: cp_async_ca_4_sized(shared, in, stride, rows);
    ptx.cp_async %shared, %in, %stride size %rows {bytes = 4 : i32, cache = "ca"}
    ptx.cp_async %shared, %in, %stride size %rows {bytes = 16 : i32, cache = "cg"}
    ptx.cp_async_commit
    // CUDA: cp_async_wait<2>();
    ptx.cp_async_wait 2
    ptx.cp_async_wait_all
    // CUDA: cp_async_arrive(shared);
    ptx.cp_async_arrive %shared
    // PTX-DAG: cp.async.ca.shared::cta.global [%r{{[0-9]+}}], [%rd{{[0-9]+}}], 4;
    // PTX-DAG: cp.async.ca.shared::cta.global [%r{{[0-9]+}}], [%rd{{[0-9]+}}], 8;
    // PTX-DAG: cp.async.ca.shared::cta.global [%r{{[0-9]+}}], [%rd{{[0-9]+}}], 16;
    // PTX-DAG: cp.async.cg.shared::cta.global [%r{{[0-9]+}}], [%rd{{[0-9]+}}], 16;
    // PTX-DAG: cp.async.ca.shared::cta.global [%r{{[0-9]+}}], [%rd{{[0-9]+}}], 4, %r{{[0-9]+}};
    // PTX-DAG: cp.async.cg.shared::cta.global [%r{{[0-9]+}}], [%rd{{[0-9]+}}], 16, %r{{[0-9]+}};
    // PTX-DAG: cp.async.commit_group;
    // PTX-DAG: cp.async.wait_group 2;
    // PTX-DAG: cp.async.wait_all;
    // PTX-DAG: cp.async.mbarrier.arrive.noinc.shared::cta.b64

    %twos = ptx.regs {ptx.name = "twos"} : !ptx.regs<2x2xi32>
    %single = ptx.regs {ptx.name = "single"} : !ptx.regs<1xi32>
    // CUDA: ldmatrix_x1(shared, single);
    ptx.ldmatrix %shared, %single : !ptx.regs<1xi32>
    // CUDA: ldmatrix_x2_trans(shared, twos[0]);
    ptx.ldmatrix %shared, %twos[0] {trans} : !ptx.regs<2x2xi32>
    // CUDA: ldmatrix_x2(shared, twos[1]);
    ptx.ldmatrix %shared, %twos[1] : !ptx.regs<2x2xi32>
    ptx.ldmatrix %shared, %words : !ptx.regs<4xi32>
    ptx.ldmatrix %shared, %pairs[1] {trans} : !ptx.regs<2x4xi32>
    ptx.ldmatrix %shared, %single {trans} : !ptx.regs<1xi32>
    // CUDA: mma_m16n8k32_e4m3_e5m2(small, words, twos[0]);
    ptx.mma %small, %words, %twos[0] {a_type = "e4m3", b_type = "e5m2"}
        : !ptx.regs<4xf32>, !ptx.regs<4xi32>, !ptx.regs<2x2xi32>
    ptx.mma %small, %pairs[1], %twos[1] {a_type = "e4m3", b_type = "e4m3"}
        : !ptx.regs<4xf32>, !ptx.regs<2x4xi32>, !ptx.regs<2x2xi32>
    ptx.mma %small, %words, %twos[1] {a_type = "e5m2", b_type = "e4m3"}
        : !ptx.regs<4xf32>, !ptx.regs<4xi32>, !ptx.regs<2x2xi32>
    ptx.mma %small, %words, %twos[1] {a_type = "e5m2", b_type = "e5m2"}
        : !ptx.regs<4xf32>, !ptx.regs<4xi32>, !ptx.regs<2x2xi32>
    // CUDA: mma_m16n8k16_bf16_bf16(small, words, twos[1]);
    ptx.mma %small, %words, %twos[1] {a_type = "bf16", b_type = "bf16"}
        : !ptx.regs<4xf32>, !ptx.regs<4xi32>, !ptx.regs<2x2xi32>
    ptx.mma %small, %words, %twos[1] {a_type = "f16", b_type = "f16"}
        : !ptx.regs<4xf32>, !ptx.regs<4xi32>, !ptx.regs<2x2xi32>
    %loneWord = ptx.regs_get %single[0] {ptx.name = "loneWord"} : !ptx.regs<1xi32>
    ptx.st_global_b32 %out, %stride, %loneWord
    // PTX-DAG: ldmatrix.sync.aligned.m8n8.x1.shared.b16
    // PTX-DAG: ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16
    // PTX-DAG: ldmatrix.sync.aligned.m8n8.x2.shared.b16
    // PTX-DAG: ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16
    // PTX-DAG: ldmatrix.sync.aligned.m8n8.x4.shared.b16
    // PTX-DAG: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
    // PTX-DAG: mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32
    // PTX-DAG: mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32
    // PTX-DAG: mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32
    // PTX-DAG: mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32
    // PTX-DAG: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
    // PTX-DAG: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32

    // CUDA: const int readByte = ld_global_u8(in, stride);
    // PTX-DAG: ld.global.nc.u8
    %readByte = ptx.ld_global_u8 %in, %stride {ptx.name = "readByte"}
    ptx.st_global_b32 %out, %stride, %readByte
    // CUDA: const float bias = ld_global_f32(in, stride);
    %bias = ptx.ld_global_f32 %in, %stride {ptx.name = "bias"}
    %offset = ptx.ld_global_i32 %in, %stride {ptx.name = "offset"}
    %v0 = ptx.regs_get %acc[0, 0] : !ptx.regs<2x64xf32>
    %v1 = ptx.regs_get %acc[1, 1] : !ptx.regs<2x64xf32>
    %v2 = ptx.regs_get %small[2] : !ptx.regs<4xf32>
    // CUDA: const float sum = fma_f32(acc[0][0], scale, add_f32(mul_f32(acc[1][1], bias), small[2]));
    %product = ptx.mul_f32 %v1, %bias
    %plus = ptx.add_f32 %product, %v2
    %sum = ptx.fma_f32 %v0, %scale, %plus {ptx.name = "sum"}
    %bf16 = ptx.cvt_bf16x2_f32 %sum, %bias {ptx.name = "bf16"}
    %f16 = ptx.cvt_f16x2_f32 %sum, %bias {ptx.name = "f16"}
    %bits = ptx.bits_f32 %sum {ptx.name = "bits"}
    %float = ptx.float_bits %offset {ptx.name = "fromBits"}
    // CUDA: st_global_f32(out, stride, fromBits);
    ptx.st_global_f32 %out, %stride, %float
    ptx.st_global_b16 %out, %stride, %bf16
    ptx.st_global_b32 %out, %stride, %f16
    // CUDA: st_global_v2(out, stride, words);
    ptx.st_global_v2 %out, %stride, %words : !ptx.regs<4xi32>
    ptx.st_global_v4 %out, %stride, %pairs[1] : !ptx.regs<2x4xi32>
    %inShared = ptx.atom_add_shared_i32 %offset, %bits {ptx.name = "inShared"}
    %old = ptx.atom_add_global_i32 %out, %stride, %inShared {ptx.name = "old"}
    // CUDA: ld_global_v4(in, stride, pairs[0]);
    ptx.ld_global_v4 %in, %stride, %pairs[0] : !ptx.regs<2x4xi32>
    ptx.st_global_v4 %out, %stride, %pairs[0] : !ptx.regs<2x4xi32>
    // CUDA: const float quotient = div_f32(sum, bias);
    %quotient = ptx.div_f32 %sum, %bias {ptx.name = "quotient"}
    // CUDA: const float widened = cvt_f32_f16(offset);
    %widened = ptx.cvt_f32_f16 %offset {ptx.name = "widened"}
    %codes = ptx.cvt_e4m3x2_f32 %quotient, %widened {ptx.name = "codes"}
    %wide = ptx.cvt_e5m2x2_f32 %quotient, %widened {ptx.name = "wideCodes"}
    // CUDA: st_global_b8(out, stride, codes);
    ptx.st_global_b8 %out, %stride, %codes
    ptx.st_global_b32 %out, %stride, %wide
    // CUDA: red_max_global_i32(out, stride, crossed);
    ptx.red_max_global_i32 %out, %stride, %crossed
    // PTX-DAG: ld.global.v4.b32
    // PTX-DAG: div.rn.f32
    // PTX-DAG: cvt.f32.f16
    // PTX-DAG: cvt.rn.satfinite.e4m3x2.f32 packed,
    // PTX-DAG: cvt.rn.satfinite.e5m2x2.f32 packed,
    // PTX-DAG: st.global.b8
    // PTX-DAG: red.relaxed.gpu.global.max.s32
    // CUDA: st_global_b32(out, stride, old + block + blocks);
    %t0 = arith.addi %old, %block : i32
    %t1 = arith.addi %t0, %blocks : i32
    ptx.st_global_b32 %out, %stride, %t1
    // PTX-DAG: ld.global.nc.f32
    // PTX-DAG: ld.global.b32
    // PTX-DAG: mul.rn.f32
    // PTX-DAG: add.rn.f32
    // PTX-DAG: fma.rn.f32
    // PTX-DAG: cvt.rn.bf16x2.f32
    // PTX-DAG: cvt.rn.f16x2.f32
    // PTX-DAG: st.global.f32
    // PTX-DAG: st.global.b16
    // PTX-DAG: st.global.b32
    // PTX-DAG: st.global.v2.b32
    // PTX-DAG: st.global.v4.b32
    // PTX-DAG: atom.relaxed.gpu.global.add.s32

    // CUDA: red_max_global_i64(out, stride, stride);
    ptx.red_max_global_i64 %out, %stride, %stride
    // PTX-DAG: red.relaxed.gpu.global.max.s64

    // CUDA: wait_global_i32(in, stride, rows);
    ptx.fence_proxy_async_global
    ptx.fence_acq_rel_gpu
    ptx.wait_global_i32 %in, %stride, %rows
    %fresh = ptx.ld_global_fresh_f32 %in, %stride {ptx.name = "fresh"}
    ptx.st_global_f32 %out, %stride, %fresh
    %freshByte = ptx.ld_global_fresh_u8 %in, %stride {ptx.name = "freshByte"}
    ptx.st_global_b32 %out, %stride, %freshByte
    // CUDA: griddepcontrol_launch_dependents();
    ptx.griddepcontrol_launch_dependents
    ptx.griddepcontrol_wait
    // PTX-DAG: griddepcontrol.launch_dependents;
    // PTX-DAG: griddepcontrol.wait;
    // PTX-DAG: fence.proxy.async.global;
    // PTX-DAG: fence.acq_rel.gpu;
    // PTX-DAG: ld.acquire.gpu.global.b32
    // PTX-DAG: ld.global.f32
    // PTX-DAG: ld.global.u8
  }
}
// PTX: // spills 0
// PTX: // stack 0
// PTX: // shared 0
// PTX: // cubin made
// PTX-NOT: // warning
