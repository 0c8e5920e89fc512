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

static __device__ __forceinline__ int grid_size() {
  int result;
  asm("mov.u32 %0, %%nctaid.x;" : "=r"(result));
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
      const bool v14 = clusterRank > 0;
      while (walk[1] < 258) {
        if (v12) {
          const int v15 = atom_add_global_i32(workspace, 0ll, 1);
          ahead[0] = v15 + (grid_size() >> 1);
        }
        const int low = walk[2];
        const int high = walk[3];
        const int group = walk[1];
        const int tileInGroup = walk[0] - walk[4];
        const int v16 = tileInGroup >> 7;
        const int v17 = tileInGroup - v16 * 128;
        const int v18 = v16 * 16;
        const int v19 = ((high - low + 127) >> 7) - v18;
        const int sweepHeight = v19 < 16 ? v19 : 16;
        const int v20 = v17 / sweepHeight;
        const int tileRow = low + (v18 + (v17 - v20 * sweepHeight)) * 128;
        const int tileColumn = v20 * 512 + v13;
        const int v21 = high - tileRow;
        const int rowsInTile = v21 < 128 ? v21 : 128;
        const int v22 = group - 1;
        const int v23 = v22 > 0 ? v22 : 0;
        const int expert = v23 < 255 ? v23 : 255;
        const bool isOwned = group > 0 && group < 257;
        const int v24 = isOwned ? 56 : 0;
        if (rowsInTile > 64) {
          const int v25 = shared + 200704;
          const int firstOfPart = clusterRank * 64;
          const int v26 = tileRow + firstOfPart;
          const int v27 = clusterRank * 8192;
          const int v28 = tileRow & -4;
          const int v29 = (expert * 32 + (tileColumn >> 7)) * 56;
          for (int kStep = 0; kStep < v24; ++kStep) {
            const int k = kStep * 128;
            const int v30 = k >> 7;
            const int slot = fill[0];
            const int phase = fill[1];
            const int v31 = slot + 50048;
            mbarrier_wait(slot + 50056, phase ^ 1);
            mbarrier_expect_tx(v31, 49712);
            const int v32 = slot + 50176;
            const bool v33 = v32 == v25;
            fill[0] = v33 ? shared : v32;
            fill[1] = phase ^ (int)v33;
            tma_load_2d_multicast(slot + v27, xMap, k, v26, v31, 3);
            tma_load_3d(slot + 16384, wMap, k, tileColumn, expert, v31);
            tma_load_2d(slot + 49152, xScalesMap, v28, v30, v31);
            const int v34 = v29 + v30;
            tma_load_1d(slot + 49792, wScalesMap, v34 & -4, v31);
            tma_load_1d(slot + 49920, wScalesMap, (v34 + 56) & -4, v31);
          }
        } else {
          const int v35 = shared + 200704;
          const int firstOfPart = clusterRank * 64;
          const int v36 = tileRow + firstOfPart;
          const int v37 = clusterRank * 8192;
          const int v38 = tileRow & -4;
          const int v39 = (expert * 32 + (tileColumn >> 7)) * 56;
          for (int kStep = 0; kStep < v24; ++kStep) {
            const int k = kStep * 128;
            const int v40 = k >> 7;
            const int slot = fill[0];
            const int phase = fill[1];
            const int v41 = slot + 50048;
            mbarrier_wait(slot + 50056, phase ^ 1);
            mbarrier_expect_tx(v41, 49712);
            const int v42 = slot + 50176;
            const bool v43 = v42 == v35;
            fill[0] = v43 ? shared : v42;
            fill[1] = phase ^ (int)v43;
            tma_load_2d_multicast(slot + v37, xMap, k, v36, v41, 3);
            tma_load_3d(slot + 16384, wMap, k, tileColumn, expert, v41);
            tma_load_2d(slot + 49152, xScalesMap, v38, v40, v41);
            const int v44 = v39 + v40;
            tma_load_1d(slot + 49792, wScalesMap, v44 & -4, v41);
            tma_load_1d(slot + 49920, wScalesMap, (v44 + 56) & -4, v41);
          }
        }
        const int v45 = queue[0];
        const int v46 = queue[1];
        const int tileFull = v0 + v45 * 8;
        const int v47 = v0 + (v45 * 4 + 32);
        if (v12) {
          mbarrier_wait(tileFull + 16, v46 ^ 1);
        }
        mbarrier_expect_tx(tileFull, 4);
        if (v12) {
          const int v48 = ahead[0];
          st_async_i32(v47, v48, tileFull, 0);
          st_async_i32(v47, v48, tileFull, 1);
        }
        if (v14) {
          mbarrier_wait_cluster(tileFull, v46);
          const int v49 = ld_shared_i32(v47);
          ahead[0] = v49;
          mbarrier_arrive_cluster(tileFull + 16, 0);
        }
        const int v50 = ahead[0];
        const bool v51 = v45 == 1;
        queue[0] = v51 ? 0 : v45 + 1;
        queue[1] = v46 ^ (int)v51;
        walk[0] = v50;
        while (true) {
          const bool v52 = walk[0] >= walk[4] + ((walk[3] - walk[2] + 127) >> 7) * 8;
          if (!(walk[1] < 258 && v52))
            break;
          const int group_1 = walk[1] + 1;
          const int low_1 = walk[3];
          walk[4] = walk[4] + ((walk[3] - walk[2] + 127) >> 7) * 8;
          walk[1] = group_1;
          walk[2] = low_1;
          const int v53 = ld_shared_i32(v8 + (group_1 < 256 ? group_1 : 256) * 4);
          const int v54 = group_1 > 256 ? rows : v53;
          walk[3] = low_1 > v54 ? low_1 : v54;
        }
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
    const int v55 = shared + 219184;
    const int firstOwned = ld_shared_i32(v55);
    walk[1] = 0;
    walk[2] = 0;
    walk[3] = firstOwned;
    while (true) {
      const bool v56 = walk[0] >= walk[4] + ((walk[3] - walk[2] + 127) >> 7) * 8;
      if (!(walk[1] < 258 && v56))
        break;
      const int group = walk[1] + 1;
      const int low = walk[3];
      walk[4] = walk[4] + ((walk[3] - walk[2] + 127) >> 7) * 8;
      walk[1] = group;
      walk[2] = low;
      const int v57 = ld_shared_i32(v55 + (group < 256 ? group : 256) * 4);
      const int v58 = group > 256 ? rows : v57;
      walk[3] = low > v58 ? low : v58;
    }
    const int v59 = clusterRank * 256;
    const bool v60 = lane == 0;
    const long long yStrideBytes = yStride * 2ll;
    const int buffer = shared + ((warpgroup * 4 + warpInGroup) * 2304 + 200704);
    const int firstRow = warpInGroup * 16;
    const int v61 = warpgroup * 128;
    const int firstRow_1 = warpInGroup * 16 + 64;
    while (walk[1] < 258) {
      const int low = walk[2];
      const int high = walk[3];
      const int group = walk[1];
      const int tileInGroup = walk[0] - walk[4];
      const int v62 = tileInGroup >> 7;
      const int v63 = tileInGroup - v62 * 128;
      const int v64 = v62 * 16;
      const int v65 = ((high - low + 127) >> 7) - v64;
      const int sweepHeight = v65 < 16 ? v65 : 16;
      const int v66 = v63 / sweepHeight;
      const int tileRow = low + (v64 + (v63 - v66 * sweepHeight)) * 128;
      const int tileColumn = v66 * 512 + v59;
      const int v67 = high - tileRow;
      const int rowsInTile = v67 < 128 ? v67 : 128;
      const int v68 = group - 1;
      const int v69 = v68 > 0 ? v68 : 0;
      const int expert = v69 < 255 ? v69 : 255;
      const bool isOwned = group > 0 && group < 257;
      float acc[2][64];
      float part[64];
      #pragma unroll
      for (int v70 = 0; v70 < 64; ++v70) {
        acc[0][v70] = 0.0f;
      }
      #pragma unroll
      for (int v71 = 0; v71 < 64; ++v71) {
        acc[1][v71] = 0.0f;
      }
      const int v72 = isOwned ? 56 : 0;
      if (rowsInTile > 64) {
        for (int kTurn = 0; kTurn < v72; kTurn += 4) {
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
            const int v73 = descB + 2;
            wgmma_m64n128k32_e4m3_e4m3(part, descA + 2, v73, 1);
            const int v74 = descB + 4;
            wgmma_m64n128k32_e4m3_e4m3(part, descA + 4, v74, 1);
            const int v75 = descB + 6;
            wgmma_m64n128k32_e4m3_e4m3(part, descA + 6, v75, 1);
            wgmma_commit();
            const int v76 = lane >> 2;
            const int v77 = warpInGroup * 16;
            const int v78 = v77 + v76;
            const int v79 = slot + 49152;
            const int v80 = tileRow & 3;
            const float rowScale = ld_shared_f32(v79 + (v78 + v80) * 4);
            const float rowScaleBelow = ld_shared_f32(v79 + (v78 + 8 + v80) * 4);
            const int v81 = (warpgroup * 128) >> 7;
            const int v82 = (expert * 32 + (tileColumn >> 7)) * 56 + (k >> 7);
            const int v83 = ((v82 + v81 * 56) & 3) * 4;
            const int v84 = slot + 49792 + v81 * 128 + v83;
            const float columnScale = ld_shared_f32(v84);
            wgmma_wait<0>();
            regs_pin(part);
            const float v85 = mul_f32(rowScale, columnScale);
            const float v86 = mul_f32(rowScaleBelow, columnScale);
            #pragma unroll
            for (int v87 = 0; v87 < 64; v87 += 4) {
              acc[0][v87] = fma_f32(part[v87], v85, acc[0][v87]);
              const int v88 = v87 + 1;
              acc[0][v88] = fma_f32(part[v88], v85, acc[0][v88]);
              const int v89 = v87 + 2;
              acc[0][v89] = fma_f32(part[v89], v86, acc[0][v89]);
              const int v90 = v87 + 3;
              acc[0][v90] = fma_f32(part[v90], v86, acc[0][v90]);
            }
            regs_pin(part);
            wgmma_fence();
            const int descA_1 = ((slot + 8192) >> 4) | 65536;
            wgmma_m64n128k32_e4m3_e4m3(part, descA_1, descB, 0);
            wgmma_m64n128k32_e4m3_e4m3(part, descA_1 + 2, v73, 1);
            wgmma_m64n128k32_e4m3_e4m3(part, descA_1 + 4, v74, 1);
            wgmma_m64n128k32_e4m3_e4m3(part, descA_1 + 6, v75, 1);
            wgmma_commit();
            const int v91 = v77 + 64 + v76;
            const float rowScale_1 = ld_shared_f32(v79 + (v91 + v80) * 4);
            const float rowScaleBelow_1 = ld_shared_f32(v79 + (v91 + 8 + v80) * 4);
            const float columnScale_1 = ld_shared_f32(v84);
            wgmma_wait<0>();
            regs_pin(part);
            const int v92 = slot + 50056;
            syncwarp();
            if (lane < 2) {
              mbarrier_arrive_cluster(v92, lane);
            }
            const float v93 = mul_f32(rowScale_1, columnScale_1);
            const float v94 = mul_f32(rowScaleBelow_1, columnScale_1);
            #pragma unroll
            for (int v95 = 0; v95 < 64; v95 += 4) {
              acc[1][v95] = fma_f32(part[v95], v93, acc[1][v95]);
              const int v96 = v95 + 1;
              acc[1][v96] = fma_f32(part[v96], v93, acc[1][v96]);
              const int v97 = v95 + 2;
              acc[1][v97] = fma_f32(part[v97], v94, acc[1][v97]);
              const int v98 = v95 + 3;
              acc[1][v98] = fma_f32(part[v98], v94, acc[1][v98]);
            }
          }
        }
      } else {
        const int v99 = shared + 200704;
        const int v100 = warpgroup * 16384;
        const int v101 = warpInGroup * 16 + (lane >> 2);
        const int v102 = tileRow & 3;
        const int v103 = (v101 + v102) * 4;
        const int v104 = (v101 + 8 + v102) * 4;
        const int v105 = (warpgroup * 128) >> 7;
        const int v106 = (expert * 32 + (tileColumn >> 7)) * 56;
        const int v107 = v105 * 56;
        const int v108 = v105 * 128;
        const bool v109 = lane < 2;
        for (int kStep = 0; kStep < v72; ++kStep) {
          const int k = kStep * 128;
          const int phase = drain[1];
          const int slot = shfl_idx(drain[0], 0);
          mbarrier_wait(slot + 50048, phase);
          const int v110 = slot + 50176;
          const bool v111 = v110 == v99;
          drain[0] = v111 ? shared : v110;
          drain[1] = phase ^ (int)v111;
          regs_pin(part);
          wgmma_fence();
          const int descA = (slot >> 4) | 65536;
          const int descB = ((slot + 16384 + v100) >> 4) | 65536;
          wgmma_m64n128k32_e4m3_e4m3(part, descA, descB, 0);
          wgmma_m64n128k32_e4m3_e4m3(part, descA + 2, descB + 2, 1);
          wgmma_m64n128k32_e4m3_e4m3(part, descA + 4, descB + 4, 1);
          wgmma_m64n128k32_e4m3_e4m3(part, descA + 6, descB + 6, 1);
          wgmma_commit();
          const int v112 = slot + 49152;
          const float rowScale = ld_shared_f32(v112 + v103);
          const float rowScaleBelow = ld_shared_f32(v112 + v104);
          const int v113 = ((v106 + (k >> 7) + v107) & 3) * 4;
          const float columnScale = ld_shared_f32(slot + 49792 + v108 + v113);
          wgmma_wait<0>();
          regs_pin(part);
          const int v114 = slot + 50056;
          syncwarp();
          if (v109) {
            mbarrier_arrive_cluster(v114, lane);
          }
          const float v115 = mul_f32(rowScale, columnScale);
          const float v116 = mul_f32(rowScaleBelow, columnScale);
          #pragma unroll
          for (int v117 = 0; v117 < 64; v117 += 4) {
            acc[0][v117] = fma_f32(part[v117], v115, acc[0][v117]);
            const int v118 = v117 + 1;
            acc[0][v118] = fma_f32(part[v118], v115, acc[0][v118]);
            const int v119 = v117 + 2;
            acc[0][v119] = fma_f32(part[v119], v116, acc[0][v119]);
            const int v120 = v117 + 3;
            acc[0][v120] = fma_f32(part[v120], v116, acc[0][v120]);
          }
        }
      }
      const int v121 = queue[0];
      const int v122 = queue[1];
      const int tileFull = v0 + v121 * 8;
      mbarrier_wait_cluster(tileFull, v122);
      const int v123 = ld_shared_i32(v0 + (v121 * 4 + 32));
      const int v124 = shfl_idx(v123, 0);
      syncwarp();
      if (v60) {
        mbarrier_arrive_cluster(tileFull + 16, 0);
      }
      const bool v125 = v121 == 1;
      queue[0] = v125 ? 0 : v121 + 1;
      queue[1] = v122 ^ (int)v125;
      walk[0] = v124;
      while (true) {
        const bool v126 = walk[0] >= walk[4] + ((walk[3] - walk[2] + 127) >> 7) * 8;
        if (!(walk[1] < 258 && v126))
          break;
        const int group_1 = walk[1] + 1;
        const int low_1 = walk[3];
        walk[4] = walk[4] + ((walk[3] - walk[2] + 127) >> 7) * 8;
        walk[1] = group_1;
        walk[2] = low_1;
        const int v127 = ld_shared_i32(v55 + (group_1 < 256 ? group_1 : 256) * 4);
        const int v128 = group_1 > 256 ? rows : v127;
        walk[3] = low_1 > v128 ? low_1 : v128;
      }
      const int v129 = v61 + tileColumn;
      if (firstRow < rowsInTile) {
        const int into = buffer + (lane & 15) * 144 + (lane >> 4) * 16;
        syncwarp();
        #pragma unroll
        for (int v130 = 0; v130 < 8; v130 += 2) {
          const int v131 = v130 * 4;
          const int v132 = cvt_bf16x2_f32(acc[0][v131 + 2], acc[0][v131 + 3]);
          const int v133 = cvt_bf16x2_f32(acc[0][v131 + 4], acc[0][v131 + 5]);
          const int v134 = cvt_bf16x2_f32(acc[0][v131 + 6], acc[0][v131 + 7]);
          stmatrix_x4(into + v130 * 16, cvt_bf16x2_f32(acc[0][v131], acc[0][v131 + 1]), v132, v133, v134);
        }
        syncwarp();
        const int v135 = lane & 7;
        const int v136 = v129 + v135 * 8;
        #pragma unroll
        for (int v137 = 0; v137 < 16; v137 += 4) {
          const int v138 = v137 + (lane >> 3);
          const int v139 = firstRow + v138;
          if (v139 < rowsInTile) {
            int vector[4];
            ld_shared_v4(buffer + v138 * 144 + v135 * 16, vector);
            const long long v140 = (long long)(tileRow + v139) * yStrideBytes + (long long)v136 * 2ll;
            st_global_v4(y, v140, vector);
          }
        }
        syncwarp();
        #pragma unroll
        for (int v141 = 0; v141 < 8; v141 += 2) {
          const int v142 = v141 * 4;
          const int v143 = cvt_bf16x2_f32(acc[0][v142 + 32], acc[0][v142 + 33]);
          const int v144 = cvt_bf16x2_f32(acc[0][v142 + 34], acc[0][v142 + 35]);
          const int v145 = cvt_bf16x2_f32(acc[0][v142 + 36], acc[0][v142 + 37]);
          stmatrix_x4(into + v141 * 16, v143, v144, v145, cvt_bf16x2_f32(acc[0][v142 + 38], acc[0][v142 + 39]));
        }
        syncwarp();
        const int v146 = v136 + 64;
        #pragma unroll
        for (int v147 = 0; v147 < 16; v147 += 4) {
          const int v148 = v147 + (lane >> 3);
          const int v149 = firstRow + v148;
          if (v149 < rowsInTile) {
            int vector[4];
            ld_shared_v4(buffer + v148 * 144 + v135 * 16, vector);
            const long long v150 = (long long)(tileRow + v149) * yStrideBytes + (long long)v146 * 2ll;
            st_global_v4(y, v150, vector);
          }
        }
      }
      if (firstRow_1 < rowsInTile) {
        const int into = buffer + (lane & 15) * 144 + (lane >> 4) * 16;
        syncwarp();
        #pragma unroll
        for (int v151 = 0; v151 < 8; v151 += 2) {
          const int v152 = v151 * 4;
          const int v153 = cvt_bf16x2_f32(acc[1][v152 + 2], acc[1][v152 + 3]);
          const int v154 = cvt_bf16x2_f32(acc[1][v152 + 4], acc[1][v152 + 5]);
          const int v155 = cvt_bf16x2_f32(acc[1][v152 + 6], acc[1][v152 + 7]);
          stmatrix_x4(into + v151 * 16, cvt_bf16x2_f32(acc[1][v152], acc[1][v152 + 1]), v153, v154, v155);
        }
        syncwarp();
        const int v156 = lane & 7;
        const int v157 = v129 + v156 * 8;
        #pragma unroll
        for (int v158 = 0; v158 < 16; v158 += 4) {
          const int v159 = v158 + (lane >> 3);
          const int v160 = firstRow_1 + v159;
          if (v160 < rowsInTile) {
            int vector[4];
            ld_shared_v4(buffer + v159 * 144 + v156 * 16, vector);
            const long long v161 = (long long)(tileRow + v160) * yStrideBytes + (long long)v157 * 2ll;
            st_global_v4(y, v161, vector);
          }
        }
        syncwarp();
        #pragma unroll
        for (int v162 = 0; v162 < 8; v162 += 2) {
          const int v163 = v162 * 4;
          const int v164 = cvt_bf16x2_f32(acc[1][v163 + 32], acc[1][v163 + 33]);
          const int v165 = cvt_bf16x2_f32(acc[1][v163 + 34], acc[1][v163 + 35]);
          const int v166 = cvt_bf16x2_f32(acc[1][v163 + 36], acc[1][v163 + 37]);
          stmatrix_x4(into + v162 * 16, v164, v165, v166, cvt_bf16x2_f32(acc[1][v163 + 38], acc[1][v163 + 39]));
        }
        syncwarp();
        const int v167 = v157 + 64;
        #pragma unroll
        for (int v168 = 0; v168 < 16; v168 += 4) {
          const int v169 = v168 + (lane >> 3);
          const int v170 = firstRow_1 + v169;
          if (v170 < rowsInTile) {
            int vector[4];
            ld_shared_v4(buffer + v169 * 144 + v156 * 16, vector);
            const long long v171 = (long long)(tileRow + v170) * yStrideBytes + (long long)v167 * 2ll;
            st_global_v4(y, v171, vector);
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
