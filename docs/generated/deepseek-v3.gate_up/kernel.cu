#ifdef MOEJIT_EMULATOR
#include "runtime/emulator/Device.h"
#else
typedef struct __align__(64) {
  unsigned long long words[16];
} TensorMap;

static __device__ __forceinline__ int thread_index() {
  int result;
  asm("mov.u32 %0, %%tid.x;" : "=r"(result));
  return result;
}

static __device__ __forceinline__ int shfl_idx(int value, int lane) {
  int result;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xffffffff;"
               : "=r"(result) : "r"(value), "r"(lane));
  return result;
}

static __device__ __forceinline__ int shared_base() {
  extern __shared__ __align__(1024) unsigned char dynamicShared[];
  return (int)__cvta_generic_to_shared(dynamicShared);
}

static __device__ __forceinline__ int cluster_rank() {
  int result;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(result));
  return result;
}

static __device__ __forceinline__ void mbarrier_init(int barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(count) : "memory");
}

static __device__ __forceinline__ void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

static __device__ __forceinline__ int ld_global_i32(const void *pointer, long long offset) {
  int result;
  asm volatile("ld.global.b32 %0, [%1];"
               : "=r"(result) : "l"((const char *)pointer + offset) : "memory");
  return result;
}

static __device__ __forceinline__ void st_shared_i32(int address, int value) {
  asm volatile("st.shared.b32 [%0], %1;" :: "r"(address), "r"(value) : "memory");
}

static __device__ __forceinline__ void syncwarp() {
  asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
}

static __device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

static __device__ __forceinline__ void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

template <int Registers>
static __device__ __forceinline__ void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(Registers));
}

static __device__ __forceinline__ int block_index() {
  int result;
  asm("mov.u32 %0, %%ctaid.x;" : "=r"(result));
  return result;
}

static __device__ __forceinline__ int ld_shared_i32(int address) {
  int result;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(result) : "r"(address) : "memory");
  return result;
}

static __device__ __forceinline__ int
atom_add_global_i32(void *pointer, long long offset, int value) {
  int result;
  asm volatile("atom.relaxed.gpu.global.add.s32 %0, [%1], %2;"
               : "=r"(result) : "l"((char *)pointer + offset), "r"(value) : "memory");
  return result;
}

static __device__ __forceinline__ void mbarrier_wait(int barrier, int parity) {
  int done;
  do {
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.b32 %0, 1, 0, p;\n"
                 "}" : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
  } while (!done);
}

static __device__ __forceinline__ void mbarrier_expect_tx(int barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               :: "r"(barrier), "r"(bytes) : "memory");
}

static __device__ __forceinline__ void
tma_load_2d_multicast(int dst, const TensorMap &map, int c0, int c1, int barrier, int ctaMask) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster\n"
               "[%0], [%1, {%3, %4}], [%2], %5;"
               :: "r"(dst), "l"(&map), "r"(barrier), "r"(c0), "r"(c1), "h"((short)ctaMask)
               : "memory");
}

static __device__ __forceinline__ void
tma_load_3d(int dst, const TensorMap &map, int c0, int c1, int c2, int barrier) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes\n"
               "[%0], [%1, {%3, %4, %5}], [%2];"
               :: "r"(dst), "l"(&map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2) : "memory");
}

static __device__ __forceinline__ void
tma_load_2d(int dst, const TensorMap &map, int c0, int c1, int barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes\n"
               "[%0], [%1, {%3, %4}], [%2];"
               :: "r"(dst), "l"(&map), "r"(barrier), "r"(c0), "r"(c1) : "memory");
}

static __device__ __forceinline__ void
tma_load_1d(int dst, const TensorMap &map, int c0, int barrier) {
  asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes\n"
               "[%0], [%1, {%3}], [%2];" :: "r"(dst), "l"(&map), "r"(barrier), "r"(c0) : "memory");
}

static __device__ __forceinline__ int grid_size() {
  int result;
  asm("mov.u32 %0, %%nctaid.x;" : "=r"(result));
  return result;
}

static __device__ __forceinline__ void st_async_i32(int address, int value, int barrier, int rank) {
  asm volatile("{\n"
               ".reg .b32 place, signal;\n"
               "mapa.shared::cluster.u32 place, %0, %3;\n"
               "mapa.shared::cluster.u32 signal, %2, %3;\n"
               "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [place], %1, [signal];\n"
               "}" :: "r"(address), "r"(value), "r"(barrier), "r"(rank) : "memory");
}

static __device__ __forceinline__ void mbarrier_wait_cluster(int barrier, int parity) {
  int done;
  do {
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
                 "selp.b32 %0, 1, 0, p;\n"
                 "}" : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
  } while (!done);
}

static __device__ __forceinline__ void mbarrier_arrive_cluster(int barrier, int rank) {
  asm volatile("{\n"
               ".reg .b32 remote;\n"
               "mapa.shared::cluster.u32 remote, %0, %1;\n"
               "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
               "}" :: "r"(barrier), "r"(rank) : "memory");
}

static __device__ __forceinline__ void fence_acq_rel_gpu() {
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

static __device__ __forceinline__ void st_global_b32(void *pointer, long long offset, int value) {
  asm volatile("st.global.b32 [%0], %1;" :: "l"((char *)pointer + offset), "r"(value) : "memory");
}

template <int Registers>
static __device__ __forceinline__ void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(Registers));
}

// No instruction: keeps the registers in place around wgmma.
template <int N>
static __device__ __forceinline__ void regs_pin(float (&regs)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i)
    asm volatile("" : "+f"(regs[i]) :: "memory");
}

static __device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// The high word of both descriptors: K-major, SWIZZLE_128B, 1024 bytes between groups of 8 rows.
static __device__ __forceinline__ void
wgmma_m64n128k32_e4m3_e4m3(float (&d)[64], int descALow, int descBLow, int accumulate) {
  asm volatile("{\n"
               ".reg .pred p;\n"
               ".reg .b64 a, b;\n"
               "setp.ne.b32 p, %66, 0;\n"
               "mov.b64 a, {%64, %67};\n"
               "mov.b64 b, {%65, %67};\n"
               "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3\n"
               "{%0, %1, %2, %3, %4, %5, %6, %7,\n"
               "%8, %9, %10, %11, %12, %13, %14, %15,\n"
               "%16, %17, %18, %19, %20, %21, %22, %23,\n"
               "%24, %25, %26, %27, %28, %29, %30, %31,\n"
               "%32, %33, %34, %35, %36, %37, %38, %39,\n"
               "%40, %41, %42, %43, %44, %45, %46, %47,\n"
               "%48, %49, %50, %51, %52, %53, %54, %55,\n"
               "%56, %57, %58, %59, %60, %61, %62, %63},\n"
               "a, b, p, 1, 1;\n"
               "}"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]),
                 "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                 "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
                 "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
                 "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]),
                 "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
                 "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
                 "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
                 "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),
                 "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
                 "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]),
                 "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
                 "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]),
                 "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
                 "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]),
                 "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
               : "r"(descALow), "r"(descBLow), "r"(accumulate), "n"(0x40000040));
}

static __device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ float ld_shared_f32(int address) {
  float result;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(result) : "r"(address) : "memory");
  return result;
}

template <int Pending>
static __device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(Pending) : "memory");
}

static __device__ __forceinline__ float mul_f32(float a, float b) {
  float result;
  asm("mul.rn.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

static __device__ __forceinline__ float fma_f32(float a, float b, float c) {
  float result;
  asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(result) : "f"(a), "f"(b), "f"(c));
  return result;
}

static __device__ __forceinline__ int cvt_bf16x2_f32(float low, float high) {
  int result;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
}

static __device__ __forceinline__ void stmatrix_x4(int address, int r0, int r1, int r2, int r3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
               :: "r"(address), "r"(r0), "r"(r1), "r"(r2), "r"(r3) : "memory");
}

static __device__ __forceinline__ void ld_shared_v4(int address, int (&v)[4]) {
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(address) : "memory");
}

static __device__ __forceinline__ void
st_global_v4(void *pointer, long long offset, const int (&v)[4]) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};"
               :: "l"((char *)pointer + offset), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3])
               : "memory");
}
#endif

extern "C" __global__ void __launch_bounds__(384, 1) __cluster_dims__(2, 1, 1)
moejit_kernel(const __grid_constant__ TensorMap xMap, const __grid_constant__ TensorMap wMap,
              const __grid_constant__ TensorMap xScalesMap,
              const __grid_constant__ TensorMap wScalesMap, const void *offsets, void *y,
              void *workspace, int rows, long long yStride) {
  const int thread = thread_index();
  const int warp = shfl_idx(thread >> 5, 0);
  const int warpgroup = (warp >> 2) - 1;
  const int warpInGroup = warp & 3;
  const int lane = thread & 31;
  const int shared = shared_base();
  const int clusterRank = cluster_rank();
  const int v0 = shared + 219136;
  const bool v1 = thread == 0;
  if (v1) {
    mbarrier_init(v0, 1);
    mbarrier_init(shared + 219152, 17);
    mbarrier_init(shared + 219144, 1);
    mbarrier_init(shared + 219160, 17);
    fence_mbarrier_init();
  }
  const int v2 = shared + 219184;
  for (int expert = thread; expert < 257; expert += 384) {
    const int v3 = expert * 4;
    const int v4 = ld_global_i32(offsets, (long long)v3);
    const int v5 = v4 > 0 ? v4 : 0;
    st_shared_i32(v2 + v3, v5 < rows ? v5 : rows);
  }
  const int v6 = shared + 50048;
  if (v1) {
    #pragma unroll
    for (int v7 = 0; v7 < 4; ++v7) {
      const int full = v6 + v7 * 50176;
      mbarrier_init(full, 1);
      mbarrier_init(full + 8, 16);
    }
    fence_mbarrier_init();
  }
  syncwarp();
  cluster_arrive();
  cluster_wait();
  if (warp < 4) {
    setmaxnreg_dec<40>();
    if (v1) {
      int fill[2];
      fill[0] = shared;
      fill[1] = 0;
      int walk[5];
      int queue[2];
      queue[0] = 0;
      queue[1] = 0;
      int ahead[1];
      walk[0] = block_index() >> 1;
      walk[4] = 0;
      const int v8 = shared + 219184;
      const int firstOwned = ld_shared_i32(v8);
      walk[1] = 0;
      walk[2] = 0;
      walk[3] = firstOwned;
      while (true) {
        const bool v9 = walk[0] >= walk[4] + ((walk[3] - walk[2] + 127) >> 7) * 8;
        if (!(walk[1] < 258 && v9))
          break;
        const int group = walk[1] + 1;
        const int low = walk[3];
        walk[4] = walk[4] + ((walk[3] - walk[2] + 127) >> 7) * 8;
        walk[1] = group;
        walk[2] = low;
        const int v10 = ld_shared_i32(v8 + (group < 256 ? group : 256) * 4);
        const int v11 = group > 256 ? rows : v10;
        walk[3] = low > v11 ? low : v11;
      }
      const bool v12 = clusterRank == 0;
      const int v13 = clusterRank * 256;
      const int v14 = shared + 200704;
      const int firstOfPart = clusterRank * 64;
      const int v15 = clusterRank * 8192;
      const bool v16 = clusterRank > 0;
      while (walk[1] < 258) {
        if (v12) {
          const int v17 = atom_add_global_i32(workspace, 0ll, 1);
          ahead[0] = v17;
        }
        const int low = walk[2];
        const int high = walk[3];
        const int group = walk[1];
        const int tileInGroup = walk[0] - walk[4];
        const int v18 = tileInGroup >> 7;
        const int v19 = tileInGroup - v18 * 128;
        const int v20 = v18 * 16;
        const int v21 = ((high - low + 127) >> 7) - v20;
        const int sweepHeight = v21 < 16 ? v21 : 16;
        const int v22 = v19 / sweepHeight;
        const int tileRow = low + (v20 + (v19 - v22 * sweepHeight)) * 128;
        const int tileColumn = v22 * 512 + v13;
        const int v23 = group - 1;
        const int v24 = v23 > 0 ? v23 : 0;
        const int expert = v24 < 255 ? v24 : 255;
        const bool isOwned = group > 0 && group < 257;
        const int v25 = tileRow + firstOfPart;
        const int v26 = tileRow & -4;
        const int v27 = (expert * 32 + (tileColumn >> 7)) * 56;
        for (int kStep = 0; kStep < (isOwned ? 56 : 0); ++kStep) {
          const int k = kStep * 128;
          const int v28 = k >> 7;
          const int slot = fill[0];
          const int phase = fill[1];
          const int v29 = slot + 50048;
          mbarrier_wait(slot + 50056, phase ^ 1);
          mbarrier_expect_tx(v29, 49712);
          const int v30 = slot + 50176;
          const bool v31 = v30 == v14;
          fill[0] = v31 ? shared : v30;
          fill[1] = phase ^ (int)v31;
          tma_load_2d_multicast(slot + v15, xMap, k, v25, v29, 3);
          tma_load_3d(slot + 16384, wMap, k, tileColumn, expert, v29);
          tma_load_2d(slot + 49152, xScalesMap, v26, v28, v29);
          const int v32 = v27 + v28;
          tma_load_1d(slot + 49792, wScalesMap, v32 & -4, v29);
          tma_load_1d(slot + 49920, wScalesMap, (v32 + 56) & -4, v29);
        }
        const int v33 = queue[0];
        const int v34 = queue[1];
        const int tileFull = v0 + v33 * 8;
        const int v35 = v0 + (v33 * 4 + 32);
        if (v12) {
          mbarrier_wait(tileFull + 16, v34 ^ 1);
        }
        mbarrier_expect_tx(tileFull, 4);
        if (v12) {
          const int v36 = ahead[0] + (grid_size() >> 1);
          ahead[0] = v36;
          st_async_i32(v35, v36, tileFull, 0);
          st_async_i32(v35, v36, tileFull, 1);
        }
        if (v16) {
          mbarrier_wait_cluster(tileFull, v34);
          const int v37 = ld_shared_i32(v35);
          ahead[0] = v37;
          mbarrier_arrive_cluster(tileFull + 16, 0);
        }
        const int v38 = ahead[0];
        const bool v39 = v33 == 1;
        queue[0] = v39 ? 0 : v33 + 1;
        queue[1] = v34 ^ (int)v39;
        walk[0] = v38;
        while (true) {
          const bool v40 = walk[0] >= walk[4] + ((walk[3] - walk[2] + 127) >> 7) * 8;
          if (!(walk[1] < 258 && v40))
            break;
          const int group_1 = walk[1] + 1;
          const int low_1 = walk[3];
          walk[4] = walk[4] + ((walk[3] - walk[2] + 127) >> 7) * 8;
          walk[1] = group_1;
          walk[2] = low_1;
          const int v41 = ld_shared_i32(v8 + (group_1 < 256 ? group_1 : 256) * 4);
          const int v42 = group_1 > 256 ? rows : v41;
          walk[3] = low_1 > v42 ? low_1 : v42;
        }
      }
      fence_acq_rel_gpu();
      const int blocksBefore = atom_add_global_i32(workspace, 4ll, 1);
      if (blocksBefore == grid_size() - 1) {
        fence_acq_rel_gpu();
        st_global_b32(workspace, 0ll, 0);
        st_global_b32(workspace, 4ll, 0);
      }
    }
  } else {
    setmaxnreg_inc<232>();
    int drain[2];
    drain[0] = shared;
    drain[1] = 0;
    int walk[5];
    int queue[2];
    queue[0] = 0;
    queue[1] = 0;
    walk[0] = block_index() >> 1;
    walk[4] = 0;
    const int v43 = shared + 219184;
    const int firstOwned = ld_shared_i32(v43);
    walk[1] = 0;
    walk[2] = 0;
    walk[3] = firstOwned;
    while (true) {
      const bool v44 = walk[0] >= walk[4] + ((walk[3] - walk[2] + 127) >> 7) * 8;
      if (!(walk[1] < 258 && v44))
        break;
      const int group = walk[1] + 1;
      const int low = walk[3];
      walk[4] = walk[4] + ((walk[3] - walk[2] + 127) >> 7) * 8;
      walk[1] = group;
      walk[2] = low;
      const int v45 = ld_shared_i32(v43 + (group < 256 ? group : 256) * 4);
      const int v46 = group > 256 ? rows : v45;
      walk[3] = low > v46 ? low : v46;
    }
    const int v47 = clusterRank * 256;
    const bool v48 = lane == 0;
    const long long yStrideBytes = yStride * 2ll;
    const int buffer = shared + ((warpgroup * 4 + warpInGroup) * 2304 + 200704);
    const int firstRow = warpInGroup * 16;
    const int v49 = warpgroup * 128;
    const int firstRow_1 = warpInGroup * 16 + 64;
    while (walk[1] < 258) {
      const int low = walk[2];
      const int high = walk[3];
      const int group = walk[1];
      const int tileInGroup = walk[0] - walk[4];
      const int v50 = tileInGroup >> 7;
      const int v51 = tileInGroup - v50 * 128;
      const int v52 = v50 * 16;
      const int v53 = ((high - low + 127) >> 7) - v52;
      const int sweepHeight = v53 < 16 ? v53 : 16;
      const int v54 = v51 / sweepHeight;
      const int tileRow = low + (v52 + (v51 - v54 * sweepHeight)) * 128;
      const int tileColumn = v54 * 512 + v47;
      const int v55 = high - tileRow;
      const int rowsInTile = v55 < 128 ? v55 : 128;
      const int v56 = group - 1;
      const int v57 = v56 > 0 ? v56 : 0;
      const int expert = v57 < 255 ? v57 : 255;
      const bool isOwned = group > 0 && group < 257;
      float acc[2][64];
      float part[64];
      #pragma unroll
      for (int v58 = 0; v58 < 64; ++v58) {
        acc[0][v58] = 0.0f;
      }
      #pragma unroll
      for (int v59 = 0; v59 < 64; ++v59) {
        acc[1][v59] = 0.0f;
      }
      const int v60 = isOwned ? 56 : 0;
      if (rowsInTile > 64) {
        for (int kTurn = 0; kTurn < v60; kTurn += 4) {
          #pragma unroll
          for (int slotIndex = 0; slotIndex < 4; ++slotIndex) {
            const int kStep = kTurn + slotIndex;
            const int k = kStep * 128;
            const int phase = drain[1];
            const int slot = shared + slotIndex * 50176;
            mbarrier_wait(slot + 50048, phase);
            drain[1] = phase ^ (int)(slotIndex == 3);
            regs_pin(part);
            wgmma_fence();
            const int descA = (slot >> 4) | 65536;
            const int descB = ((slot + 16384 + warpgroup * 16384) >> 4) | 65536;
            wgmma_m64n128k32_e4m3_e4m3(part, descA, descB, 0);
            const int v61 = descB + 2;
            wgmma_m64n128k32_e4m3_e4m3(part, descA + 2, v61, 1);
            const int v62 = descB + 4;
            wgmma_m64n128k32_e4m3_e4m3(part, descA + 4, v62, 1);
            const int v63 = descB + 6;
            wgmma_m64n128k32_e4m3_e4m3(part, descA + 6, v63, 1);
            wgmma_commit();
            const int v64 = lane >> 2;
            const int v65 = warpInGroup * 16;
            const int v66 = v65 + v64;
            const int v67 = slot + 49152;
            const int v68 = tileRow & 3;
            const float rowScale = ld_shared_f32(v67 + (v66 + v68) * 4);
            const float rowScaleBelow = ld_shared_f32(v67 + (v66 + 8 + v68) * 4);
            const int v69 = (warpgroup * 128) >> 7;
            const int v70 = (expert * 32 + (tileColumn >> 7)) * 56 + (k >> 7);
            const int v71 = ((v70 + v69 * 56) & 3) * 4;
            const int v72 = slot + 49792 + v69 * 128 + v71;
            const float columnScale = ld_shared_f32(v72);
            wgmma_wait<0>();
            regs_pin(part);
            const float v73 = mul_f32(rowScale, columnScale);
            const float v74 = mul_f32(rowScaleBelow, columnScale);
            #pragma unroll
            for (int v75 = 0; v75 < 64; v75 += 4) {
              acc[0][v75] = fma_f32(part[v75], v73, acc[0][v75]);
              const int v76 = v75 + 1;
              acc[0][v76] = fma_f32(part[v76], v73, acc[0][v76]);
              const int v77 = v75 + 2;
              acc[0][v77] = fma_f32(part[v77], v74, acc[0][v77]);
              const int v78 = v75 + 3;
              acc[0][v78] = fma_f32(part[v78], v74, acc[0][v78]);
            }
            regs_pin(part);
            wgmma_fence();
            const int descA_1 = ((slot + 8192) >> 4) | 65536;
            wgmma_m64n128k32_e4m3_e4m3(part, descA_1, descB, 0);
            wgmma_m64n128k32_e4m3_e4m3(part, descA_1 + 2, v61, 1);
            wgmma_m64n128k32_e4m3_e4m3(part, descA_1 + 4, v62, 1);
            wgmma_m64n128k32_e4m3_e4m3(part, descA_1 + 6, v63, 1);
            wgmma_commit();
            const int v79 = v65 + 64 + v64;
            const float rowScale_1 = ld_shared_f32(v67 + (v79 + v68) * 4);
            const float rowScaleBelow_1 = ld_shared_f32(v67 + (v79 + 8 + v68) * 4);
            const float columnScale_1 = ld_shared_f32(v72);
            wgmma_wait<0>();
            regs_pin(part);
            const int v80 = slot + 50056;
            syncwarp();
            if (lane < 2) {
              mbarrier_arrive_cluster(v80, lane);
            }
            const float v81 = mul_f32(rowScale_1, columnScale_1);
            const float v82 = mul_f32(rowScaleBelow_1, columnScale_1);
            #pragma unroll
            for (int v83 = 0; v83 < 64; v83 += 4) {
              acc[1][v83] = fma_f32(part[v83], v81, acc[1][v83]);
              const int v84 = v83 + 1;
              acc[1][v84] = fma_f32(part[v84], v81, acc[1][v84]);
              const int v85 = v83 + 2;
              acc[1][v85] = fma_f32(part[v85], v82, acc[1][v85]);
              const int v86 = v83 + 3;
              acc[1][v86] = fma_f32(part[v86], v82, acc[1][v86]);
            }
          }
        }
      } else {
        const int v87 = shared + 200704;
        const int v88 = warpgroup * 16384;
        const int v89 = warpInGroup * 16 + (lane >> 2);
        const int v90 = tileRow & 3;
        const int v91 = (v89 + v90) * 4;
        const int v92 = (v89 + 8 + v90) * 4;
        const int v93 = (warpgroup * 128) >> 7;
        const int v94 = (expert * 32 + (tileColumn >> 7)) * 56;
        const int v95 = v93 * 56;
        const int v96 = v93 * 128;
        const bool v97 = lane < 2;
        for (int kStep = 0; kStep < v60; ++kStep) {
          const int k = kStep * 128;
          const int phase = drain[1];
          const int slot = shfl_idx(drain[0], 0);
          mbarrier_wait(slot + 50048, phase);
          const int v98 = slot + 50176;
          const bool v99 = v98 == v87;
          drain[0] = v99 ? shared : v98;
          drain[1] = phase ^ (int)v99;
          regs_pin(part);
          wgmma_fence();
          const int descA = (slot >> 4) | 65536;
          const int descB = ((slot + 16384 + v88) >> 4) | 65536;
          wgmma_m64n128k32_e4m3_e4m3(part, descA, descB, 0);
          wgmma_m64n128k32_e4m3_e4m3(part, descA + 2, descB + 2, 1);
          wgmma_m64n128k32_e4m3_e4m3(part, descA + 4, descB + 4, 1);
          wgmma_m64n128k32_e4m3_e4m3(part, descA + 6, descB + 6, 1);
          wgmma_commit();
          const int v100 = slot + 49152;
          const float rowScale = ld_shared_f32(v100 + v91);
          const float rowScaleBelow = ld_shared_f32(v100 + v92);
          const int v101 = ((v94 + (k >> 7) + v95) & 3) * 4;
          const float columnScale = ld_shared_f32(slot + 49792 + v96 + v101);
          wgmma_wait<0>();
          regs_pin(part);
          const int v102 = slot + 50056;
          syncwarp();
          if (v97) {
            mbarrier_arrive_cluster(v102, lane);
          }
          const float v103 = mul_f32(rowScale, columnScale);
          const float v104 = mul_f32(rowScaleBelow, columnScale);
          #pragma unroll
          for (int v105 = 0; v105 < 64; v105 += 4) {
            acc[0][v105] = fma_f32(part[v105], v103, acc[0][v105]);
            const int v106 = v105 + 1;
            acc[0][v106] = fma_f32(part[v106], v103, acc[0][v106]);
            const int v107 = v105 + 2;
            acc[0][v107] = fma_f32(part[v107], v104, acc[0][v107]);
            const int v108 = v105 + 3;
            acc[0][v108] = fma_f32(part[v108], v104, acc[0][v108]);
          }
        }
      }
      const int v109 = queue[0];
      const int v110 = queue[1];
      const int tileFull = v0 + v109 * 8;
      mbarrier_wait_cluster(tileFull, v110);
      const int v111 = ld_shared_i32(v0 + (v109 * 4 + 32));
      const int v112 = shfl_idx(v111, 0);
      syncwarp();
      if (v48) {
        mbarrier_arrive_cluster(tileFull + 16, 0);
      }
      const bool v113 = v109 == 1;
      queue[0] = v113 ? 0 : v109 + 1;
      queue[1] = v110 ^ (int)v113;
      walk[0] = v112;
      while (true) {
        const bool v114 = walk[0] >= walk[4] + ((walk[3] - walk[2] + 127) >> 7) * 8;
        if (!(walk[1] < 258 && v114))
          break;
        const int group_1 = walk[1] + 1;
        const int low_1 = walk[3];
        walk[4] = walk[4] + ((walk[3] - walk[2] + 127) >> 7) * 8;
        walk[1] = group_1;
        walk[2] = low_1;
        const int v115 = ld_shared_i32(v43 + (group_1 < 256 ? group_1 : 256) * 4);
        const int v116 = group_1 > 256 ? rows : v115;
        walk[3] = low_1 > v116 ? low_1 : v116;
      }
      const int v117 = v49 + tileColumn;
      if (firstRow < rowsInTile) {
        const int into = buffer + (lane & 15) * 144 + (lane >> 4) * 16;
        syncwarp();
        #pragma unroll
        for (int v118 = 0; v118 < 8; v118 += 2) {
          const int v119 = v118 * 4;
          const int v120 = cvt_bf16x2_f32(acc[0][v119 + 2], acc[0][v119 + 3]);
          const int v121 = cvt_bf16x2_f32(acc[0][v119 + 4], acc[0][v119 + 5]);
          const int v122 = cvt_bf16x2_f32(acc[0][v119 + 6], acc[0][v119 + 7]);
          stmatrix_x4(into + v118 * 16, cvt_bf16x2_f32(acc[0][v119], acc[0][v119 + 1]), v120, v121, v122);
        }
        syncwarp();
        const int v123 = lane & 7;
        const int v124 = v117 + v123 * 8;
        #pragma unroll
        for (int v125 = 0; v125 < 16; v125 += 4) {
          const int v126 = v125 + (lane >> 3);
          const int v127 = firstRow + v126;
          if (v127 < rowsInTile) {
            const long long v128 = (long long)(tileRow + v127) * yStrideBytes + (long long)v124 * 2ll;
            int vector[4];
            ld_shared_v4(buffer + v126 * 144 + v123 * 16, vector);
            st_global_v4(y, v128, vector);
          }
        }
        syncwarp();
        #pragma unroll
        for (int v129 = 0; v129 < 8; v129 += 2) {
          const int v130 = v129 * 4;
          const int v131 = cvt_bf16x2_f32(acc[0][v130 + 32], acc[0][v130 + 33]);
          const int v132 = cvt_bf16x2_f32(acc[0][v130 + 34], acc[0][v130 + 35]);
          const int v133 = cvt_bf16x2_f32(acc[0][v130 + 36], acc[0][v130 + 37]);
          stmatrix_x4(into + v129 * 16, v131, v132, v133, cvt_bf16x2_f32(acc[0][v130 + 38], acc[0][v130 + 39]));
        }
        syncwarp();
        const int v134 = v124 + 64;
        #pragma unroll
        for (int v135 = 0; v135 < 16; v135 += 4) {
          const int v136 = v135 + (lane >> 3);
          const int v137 = firstRow + v136;
          if (v137 < rowsInTile) {
            const long long v138 = (long long)(tileRow + v137) * yStrideBytes + (long long)v134 * 2ll;
            int vector[4];
            ld_shared_v4(buffer + v136 * 144 + v123 * 16, vector);
            st_global_v4(y, v138, vector);
          }
        }
      }
      if (firstRow_1 < rowsInTile) {
        const int into = buffer + (lane & 15) * 144 + (lane >> 4) * 16;
        syncwarp();
        #pragma unroll
        for (int v139 = 0; v139 < 8; v139 += 2) {
          const int v140 = v139 * 4;
          const int v141 = cvt_bf16x2_f32(acc[1][v140 + 2], acc[1][v140 + 3]);
          const int v142 = cvt_bf16x2_f32(acc[1][v140 + 4], acc[1][v140 + 5]);
          const int v143 = cvt_bf16x2_f32(acc[1][v140 + 6], acc[1][v140 + 7]);
          stmatrix_x4(into + v139 * 16, cvt_bf16x2_f32(acc[1][v140], acc[1][v140 + 1]), v141, v142, v143);
        }
        syncwarp();
        const int v144 = lane & 7;
        const int v145 = v117 + v144 * 8;
        #pragma unroll
        for (int v146 = 0; v146 < 16; v146 += 4) {
          const int v147 = v146 + (lane >> 3);
          const int v148 = firstRow_1 + v147;
          if (v148 < rowsInTile) {
            const long long v149 = (long long)(tileRow + v148) * yStrideBytes + (long long)v145 * 2ll;
            int vector[4];
            ld_shared_v4(buffer + v147 * 144 + v144 * 16, vector);
            st_global_v4(y, v149, vector);
          }
        }
        syncwarp();
        #pragma unroll
        for (int v150 = 0; v150 < 8; v150 += 2) {
          const int v151 = v150 * 4;
          const int v152 = cvt_bf16x2_f32(acc[1][v151 + 32], acc[1][v151 + 33]);
          const int v153 = cvt_bf16x2_f32(acc[1][v151 + 34], acc[1][v151 + 35]);
          const int v154 = cvt_bf16x2_f32(acc[1][v151 + 36], acc[1][v151 + 37]);
          stmatrix_x4(into + v150 * 16, v152, v153, v154, cvt_bf16x2_f32(acc[1][v151 + 38], acc[1][v151 + 39]));
        }
        syncwarp();
        const int v155 = v145 + 64;
        #pragma unroll
        for (int v156 = 0; v156 < 16; v156 += 4) {
          const int v157 = v156 + (lane >> 3);
          const int v158 = firstRow_1 + v157;
          if (v158 < rowsInTile) {
            const long long v159 = (long long)(tileRow + v158) * yStrideBytes + (long long)v155 * 2ll;
            int vector[4];
            ld_shared_v4(buffer + v157 * 144 + v144 * 16, vector);
            st_global_v4(y, v159, vector);
          }
        }
      }
    }
  }
  syncwarp();
  cluster_arrive();
  cluster_wait();
}

#ifdef MOEJIT_EMULATOR
MOEJIT_EMULATED_KERNEL(moejit_kernel)
#endif
