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

static __device__ __forceinline__ void bar_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" :: "r"(id), "r"(threads) : "memory");
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

static __device__ __forceinline__ int grid_size() {
  int result;
  asm("mov.u32 %0, %%nctaid.x;" : "=r"(result));
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
tma_load_2d(int dst, const TensorMap &map, int c0, int c1, int barrier) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes\n"
               "[%0], [%1, {%3, %4}], [%2];"
               :: "r"(dst), "l"(&map), "r"(barrier), "r"(c0), "r"(c1) : "memory");
}

static __device__ __forceinline__ void
tma_load_3d(int dst, const TensorMap &map, int c0, int c1, int c2, int barrier) {
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes\n"
               "[%0], [%1, {%3, %4, %5}], [%2];"
               :: "r"(dst), "l"(&map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2) : "memory");
}

static __device__ __forceinline__ void
tma_load_1d(int dst, const TensorMap &map, int c0, int barrier) {
  asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes\n"
               "[%0], [%1, {%3}], [%2];" :: "r"(dst), "l"(&map), "r"(barrier), "r"(c0) : "memory");
}

static __device__ __forceinline__ void mbarrier_arrive(int barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
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

static __device__ __forceinline__ void syncwarp() {
  asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
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

extern "C" __global__ void __launch_bounds__(384, 1)
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
  const int v0 = shared + 219136;
  const bool v1 = thread == 0;
  if (v1) {
    mbarrier_init(v0, 1);
    mbarrier_init(shared + 219152, 8);
    mbarrier_init(shared + 219144, 1);
    mbarrier_init(shared + 219160, 8);
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
      mbarrier_init(full + 8, 8);
    }
    fence_mbarrier_init();
  }
  bar_sync(0, 384);
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
      walk[0] = block_index();
      walk[4] = 0;
      const int v8 = shared + 219184;
      const int firstOwned = ld_shared_i32(v8);
      walk[1] = 0;
      walk[2] = 0;
      walk[3] = firstOwned;
      while (true) {
        const bool v9 = walk[0] >= walk[4] + ((walk[3] - walk[2] + 127) >> 7) * 16;
        if (!(walk[1] < 258 && v9))
          break;
        const int group = walk[1] + 1;
        const int low = walk[3];
        walk[4] = walk[4] + ((walk[3] - walk[2] + 127) >> 7) * 16;
        walk[1] = group;
        walk[2] = low;
        const int v10 = ld_shared_i32(v8 + (group < 256 ? group : 256) * 4);
        const int v11 = group > 256 ? rows : v10;
        walk[3] = low > v11 ? low : v11;
      }
      const int v12 = grid_size();
      while (walk[1] < 258) {
        const int v13 = atom_add_global_i32(workspace, 0ll, 1);
        const int v14 = v13 + v12;
        const int low = walk[2];
        const int high = walk[3];
        const int group = walk[1];
        const int tileInGroup = walk[0] - walk[4];
        const int v15 = tileInGroup >> 8;
        const int v16 = tileInGroup - v15 * 256;
        const int v17 = v15 * 16;
        const int v18 = ((high - low + 127) >> 7) - v17;
        const int sweepHeight = v18 < 16 ? v18 : 16;
        const int v19 = v16 / sweepHeight;
        const int tileRow = low + (v17 + (v16 - v19 * sweepHeight)) * 128;
        const int tileColumn = v19 * 256;
        const int v20 = high - tileRow;
        const int rowsInTile = v20 < 128 ? v20 : 128;
        const int v21 = group - 1;
        const int v22 = v21 > 0 ? v21 : 0;
        const int expert = v22 < 255 ? v22 : 255;
        const bool isOwned = group > 0 && group < 257;
        const int v23 = isOwned ? 56 : 0;
        if (rowsInTile > 64) {
          const int v24 = shared + 200704;
          const int v25 = tileRow & -4;
          const int v26 = (expert * 32 + (tileColumn >> 7)) * 56;
          for (int kStep = 0; kStep < v23; ++kStep) {
            const int k = kStep * 128;
            const int v27 = k >> 7;
            const int slot = fill[0];
            const int phase = fill[1];
            const int v28 = slot + 50048;
            mbarrier_wait(slot + 50056, phase ^ 1);
            mbarrier_expect_tx(v28, 49712);
            const int v29 = slot + 50176;
            const bool v30 = v29 == v24;
            fill[0] = v30 ? shared : v29;
            fill[1] = phase ^ (int)v30;
            tma_load_2d(slot, xMap, k, tileRow, v28);
            tma_load_3d(slot + 16384, wMap, k, tileColumn, expert, v28);
            tma_load_2d(slot + 49152, xScalesMap, v25, v27, v28);
            const int v31 = v26 + v27;
            tma_load_1d(slot + 49792, wScalesMap, v31 & -4, v28);
            tma_load_1d(slot + 49920, wScalesMap, (v31 + 56) & -4, v28);
          }
        } else {
          const int v32 = shared + 200704;
          const int v33 = tileRow & -4;
          const int v34 = (expert * 32 + (tileColumn >> 7)) * 56;
          for (int kStep = 0; kStep < v23; ++kStep) {
            const int k = kStep * 128;
            const int v35 = k >> 7;
            const int slot = fill[0];
            const int phase = fill[1];
            const int v36 = slot + 50048;
            mbarrier_wait(slot + 50056, phase ^ 1);
            mbarrier_expect_tx(v36, 49712);
            const int v37 = slot + 50176;
            const bool v38 = v37 == v32;
            fill[0] = v38 ? shared : v37;
            fill[1] = phase ^ (int)v38;
            tma_load_2d(slot, xMap, k, tileRow, v36);
            tma_load_3d(slot + 16384, wMap, k, tileColumn, expert, v36);
            tma_load_2d(slot + 49152, xScalesMap, v33, v35, v36);
            const int v39 = v34 + v35;
            tma_load_1d(slot + 49792, wScalesMap, v39 & -4, v36);
            tma_load_1d(slot + 49920, wScalesMap, (v39 + 56) & -4, v36);
          }
        }
        const int v40 = queue[0];
        const int v41 = queue[1];
        const int tileFull = v0 + v40 * 8;
        mbarrier_wait(tileFull + 16, v41 ^ 1);
        st_shared_i32(v0 + (v40 * 4 + 32), v14);
        mbarrier_arrive(tileFull);
        const bool v42 = v40 == 1;
        queue[0] = v42 ? 0 : v40 + 1;
        queue[1] = v41 ^ (int)v42;
        walk[0] = v14;
        while (true) {
          const bool v43 = walk[0] >= walk[4] + ((walk[3] - walk[2] + 127) >> 7) * 16;
          if (!(walk[1] < 258 && v43))
            break;
          const int group_1 = walk[1] + 1;
          const int low_1 = walk[3];
          walk[4] = walk[4] + ((walk[3] - walk[2] + 127) >> 7) * 16;
          walk[1] = group_1;
          walk[2] = low_1;
          const int v44 = ld_shared_i32(v8 + (group_1 < 256 ? group_1 : 256) * 4);
          const int v45 = group_1 > 256 ? rows : v44;
          walk[3] = low_1 > v45 ? low_1 : v45;
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
    walk[0] = block_index();
    walk[4] = 0;
    const int v46 = shared + 219184;
    const int firstOwned = ld_shared_i32(v46);
    walk[1] = 0;
    walk[2] = 0;
    walk[3] = firstOwned;
    while (true) {
      const bool v47 = walk[0] >= walk[4] + ((walk[3] - walk[2] + 127) >> 7) * 16;
      if (!(walk[1] < 258 && v47))
        break;
      const int group = walk[1] + 1;
      const int low = walk[3];
      walk[4] = walk[4] + ((walk[3] - walk[2] + 127) >> 7) * 16;
      walk[1] = group;
      walk[2] = low;
      const int v48 = ld_shared_i32(v46 + (group < 256 ? group : 256) * 4);
      const int v49 = group > 256 ? rows : v48;
      walk[3] = low > v49 ? low : v49;
    }
    const bool v50 = lane == 0;
    const long long yStrideBytes = yStride * 2ll;
    const int buffer = shared + ((warpgroup * 4 + warpInGroup) * 2304 + 200704);
    const int firstRow = warpInGroup * 16;
    const int v51 = warpgroup * 128;
    const int firstRow_1 = warpInGroup * 16 + 64;
    while (walk[1] < 258) {
      const int low = walk[2];
      const int high = walk[3];
      const int group = walk[1];
      const int tileInGroup = walk[0] - walk[4];
      const int v52 = tileInGroup >> 8;
      const int v53 = tileInGroup - v52 * 256;
      const int v54 = v52 * 16;
      const int v55 = ((high - low + 127) >> 7) - v54;
      const int sweepHeight = v55 < 16 ? v55 : 16;
      const int v56 = v53 / sweepHeight;
      const int tileRow = low + (v54 + (v53 - v56 * sweepHeight)) * 128;
      const int tileColumn = v56 * 256;
      const int v57 = high - tileRow;
      const int rowsInTile = v57 < 128 ? v57 : 128;
      const int v58 = group - 1;
      const int v59 = v58 > 0 ? v58 : 0;
      const int expert = v59 < 255 ? v59 : 255;
      const bool isOwned = group > 0 && group < 257;
      float acc[2][64];
      float part[64];
      #pragma unroll
      for (int v60 = 0; v60 < 64; ++v60) {
        acc[0][v60] = 0.0f;
      }
      #pragma unroll
      for (int v61 = 0; v61 < 64; ++v61) {
        acc[1][v61] = 0.0f;
      }
      const int v62 = isOwned ? 56 : 0;
      if (rowsInTile > 64) {
        for (int kTurn = 0; kTurn < v62; kTurn += 4) {
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
            const int v63 = descB + 2;
            wgmma_m64n128k32_e4m3_e4m3(part, descA + 2, v63, 1);
            const int v64 = descB + 4;
            wgmma_m64n128k32_e4m3_e4m3(part, descA + 4, v64, 1);
            const int v65 = descB + 6;
            wgmma_m64n128k32_e4m3_e4m3(part, descA + 6, v65, 1);
            wgmma_commit();
            const int v66 = lane >> 2;
            const int v67 = warpInGroup * 16;
            const int v68 = v67 + v66;
            const int v69 = slot + 49152;
            const int v70 = tileRow & 3;
            const float rowScale = ld_shared_f32(v69 + (v68 + v70) * 4);
            const float rowScaleBelow = ld_shared_f32(v69 + (v68 + 8 + v70) * 4);
            const int v71 = (warpgroup * 128) >> 7;
            const int v72 = (expert * 32 + (tileColumn >> 7)) * 56 + (k >> 7);
            const int v73 = ((v72 + v71 * 56) & 3) * 4;
            const int v74 = slot + 49792 + v71 * 128 + v73;
            const float columnScale = ld_shared_f32(v74);
            wgmma_wait<0>();
            regs_pin(part);
            const float v75 = mul_f32(rowScale, columnScale);
            const float v76 = mul_f32(rowScaleBelow, columnScale);
            #pragma unroll
            for (int v77 = 0; v77 < 64; v77 += 4) {
              acc[0][v77] = fma_f32(part[v77], v75, acc[0][v77]);
              const int v78 = v77 + 1;
              acc[0][v78] = fma_f32(part[v78], v75, acc[0][v78]);
              const int v79 = v77 + 2;
              acc[0][v79] = fma_f32(part[v79], v76, acc[0][v79]);
              const int v80 = v77 + 3;
              acc[0][v80] = fma_f32(part[v80], v76, acc[0][v80]);
            }
            regs_pin(part);
            wgmma_fence();
            const int descA_1 = ((slot + 8192) >> 4) | 65536;
            wgmma_m64n128k32_e4m3_e4m3(part, descA_1, descB, 0);
            wgmma_m64n128k32_e4m3_e4m3(part, descA_1 + 2, v63, 1);
            wgmma_m64n128k32_e4m3_e4m3(part, descA_1 + 4, v64, 1);
            wgmma_m64n128k32_e4m3_e4m3(part, descA_1 + 6, v65, 1);
            wgmma_commit();
            const int v81 = v67 + 64 + v66;
            const float rowScale_1 = ld_shared_f32(v69 + (v81 + v70) * 4);
            const float rowScaleBelow_1 = ld_shared_f32(v69 + (v81 + 8 + v70) * 4);
            const float columnScale_1 = ld_shared_f32(v74);
            wgmma_wait<0>();
            regs_pin(part);
            const int v82 = slot + 50056;
            syncwarp();
            if (lane == 0) {
              mbarrier_arrive(v82);
            }
            const float v83 = mul_f32(rowScale_1, columnScale_1);
            const float v84 = mul_f32(rowScaleBelow_1, columnScale_1);
            #pragma unroll
            for (int v85 = 0; v85 < 64; v85 += 4) {
              acc[1][v85] = fma_f32(part[v85], v83, acc[1][v85]);
              const int v86 = v85 + 1;
              acc[1][v86] = fma_f32(part[v86], v83, acc[1][v86]);
              const int v87 = v85 + 2;
              acc[1][v87] = fma_f32(part[v87], v84, acc[1][v87]);
              const int v88 = v85 + 3;
              acc[1][v88] = fma_f32(part[v88], v84, acc[1][v88]);
            }
          }
        }
      } else {
        const int v89 = shared + 200704;
        const int v90 = warpgroup * 16384;
        const int v91 = warpInGroup * 16 + (lane >> 2);
        const int v92 = tileRow & 3;
        const int v93 = (v91 + v92) * 4;
        const int v94 = (v91 + 8 + v92) * 4;
        const int v95 = (warpgroup * 128) >> 7;
        const int v96 = (expert * 32 + (tileColumn >> 7)) * 56;
        const int v97 = v95 * 56;
        const int v98 = v95 * 128;
        const bool v99 = lane == 0;
        for (int kStep = 0; kStep < v62; ++kStep) {
          const int k = kStep * 128;
          const int phase = drain[1];
          const int slot = shfl_idx(drain[0], 0);
          mbarrier_wait(slot + 50048, phase);
          const int v100 = slot + 50176;
          const bool v101 = v100 == v89;
          drain[0] = v101 ? shared : v100;
          drain[1] = phase ^ (int)v101;
          regs_pin(part);
          wgmma_fence();
          const int descA = (slot >> 4) | 65536;
          const int descB = ((slot + 16384 + v90) >> 4) | 65536;
          wgmma_m64n128k32_e4m3_e4m3(part, descA, descB, 0);
          wgmma_m64n128k32_e4m3_e4m3(part, descA + 2, descB + 2, 1);
          wgmma_m64n128k32_e4m3_e4m3(part, descA + 4, descB + 4, 1);
          wgmma_m64n128k32_e4m3_e4m3(part, descA + 6, descB + 6, 1);
          wgmma_commit();
          const int v102 = slot + 49152;
          const float rowScale = ld_shared_f32(v102 + v93);
          const float rowScaleBelow = ld_shared_f32(v102 + v94);
          const int v103 = ((v96 + (k >> 7) + v97) & 3) * 4;
          const float columnScale = ld_shared_f32(slot + 49792 + v98 + v103);
          wgmma_wait<0>();
          regs_pin(part);
          const int v104 = slot + 50056;
          syncwarp();
          if (v99) {
            mbarrier_arrive(v104);
          }
          const float v105 = mul_f32(rowScale, columnScale);
          const float v106 = mul_f32(rowScaleBelow, columnScale);
          #pragma unroll
          for (int v107 = 0; v107 < 64; v107 += 4) {
            acc[0][v107] = fma_f32(part[v107], v105, acc[0][v107]);
            const int v108 = v107 + 1;
            acc[0][v108] = fma_f32(part[v108], v105, acc[0][v108]);
            const int v109 = v107 + 2;
            acc[0][v109] = fma_f32(part[v109], v106, acc[0][v109]);
            const int v110 = v107 + 3;
            acc[0][v110] = fma_f32(part[v110], v106, acc[0][v110]);
          }
        }
      }
      const int v111 = queue[0];
      const int v112 = queue[1];
      const int tileFull = v0 + v111 * 8;
      mbarrier_wait(tileFull, v112);
      const int v113 = ld_shared_i32(v0 + (v111 * 4 + 32));
      const int v114 = shfl_idx(v113, 0);
      syncwarp();
      if (v50) {
        mbarrier_arrive(tileFull + 16);
      }
      const bool v115 = v111 == 1;
      queue[0] = v115 ? 0 : v111 + 1;
      queue[1] = v112 ^ (int)v115;
      walk[0] = v114;
      while (true) {
        const bool v116 = walk[0] >= walk[4] + ((walk[3] - walk[2] + 127) >> 7) * 16;
        if (!(walk[1] < 258 && v116))
          break;
        const int group_1 = walk[1] + 1;
        const int low_1 = walk[3];
        walk[4] = walk[4] + ((walk[3] - walk[2] + 127) >> 7) * 16;
        walk[1] = group_1;
        walk[2] = low_1;
        const int v117 = ld_shared_i32(v46 + (group_1 < 256 ? group_1 : 256) * 4);
        const int v118 = group_1 > 256 ? rows : v117;
        walk[3] = low_1 > v118 ? low_1 : v118;
      }
      const int v119 = v51 + tileColumn;
      if (firstRow < rowsInTile) {
        const int into = buffer + (lane & 15) * 144 + (lane >> 4) * 16;
        syncwarp();
        #pragma unroll
        for (int v120 = 0; v120 < 8; v120 += 2) {
          const int v121 = v120 * 4;
          const int v122 = cvt_bf16x2_f32(acc[0][v121 + 2], acc[0][v121 + 3]);
          const int v123 = cvt_bf16x2_f32(acc[0][v121 + 4], acc[0][v121 + 5]);
          const int v124 = cvt_bf16x2_f32(acc[0][v121 + 6], acc[0][v121 + 7]);
          stmatrix_x4(into + v120 * 16, cvt_bf16x2_f32(acc[0][v121], acc[0][v121 + 1]), v122, v123, v124);
        }
        syncwarp();
        const int v125 = lane & 7;
        const int v126 = v119 + v125 * 8;
        #pragma unroll
        for (int v127 = 0; v127 < 16; v127 += 4) {
          const int v128 = v127 + (lane >> 3);
          const int v129 = firstRow + v128;
          if (v129 < rowsInTile) {
            int vector[4];
            ld_shared_v4(buffer + v128 * 144 + v125 * 16, vector);
            const long long v130 = (long long)(tileRow + v129) * yStrideBytes + (long long)v126 * 2ll;
            st_global_v4(y, v130, vector);
          }
        }
        syncwarp();
        #pragma unroll
        for (int v131 = 0; v131 < 8; v131 += 2) {
          const int v132 = v131 * 4;
          const int v133 = cvt_bf16x2_f32(acc[0][v132 + 32], acc[0][v132 + 33]);
          const int v134 = cvt_bf16x2_f32(acc[0][v132 + 34], acc[0][v132 + 35]);
          const int v135 = cvt_bf16x2_f32(acc[0][v132 + 36], acc[0][v132 + 37]);
          stmatrix_x4(into + v131 * 16, v133, v134, v135, cvt_bf16x2_f32(acc[0][v132 + 38], acc[0][v132 + 39]));
        }
        syncwarp();
        const int v136 = v126 + 64;
        #pragma unroll
        for (int v137 = 0; v137 < 16; v137 += 4) {
          const int v138 = v137 + (lane >> 3);
          const int v139 = firstRow + v138;
          if (v139 < rowsInTile) {
            int vector[4];
            ld_shared_v4(buffer + v138 * 144 + v125 * 16, vector);
            const long long v140 = (long long)(tileRow + v139) * yStrideBytes + (long long)v136 * 2ll;
            st_global_v4(y, v140, vector);
          }
        }
      }
      if (firstRow_1 < rowsInTile) {
        const int into = buffer + (lane & 15) * 144 + (lane >> 4) * 16;
        syncwarp();
        #pragma unroll
        for (int v141 = 0; v141 < 8; v141 += 2) {
          const int v142 = v141 * 4;
          const int v143 = cvt_bf16x2_f32(acc[1][v142 + 2], acc[1][v142 + 3]);
          const int v144 = cvt_bf16x2_f32(acc[1][v142 + 4], acc[1][v142 + 5]);
          const int v145 = cvt_bf16x2_f32(acc[1][v142 + 6], acc[1][v142 + 7]);
          stmatrix_x4(into + v141 * 16, cvt_bf16x2_f32(acc[1][v142], acc[1][v142 + 1]), v143, v144, v145);
        }
        syncwarp();
        const int v146 = lane & 7;
        const int v147 = v119 + v146 * 8;
        #pragma unroll
        for (int v148 = 0; v148 < 16; v148 += 4) {
          const int v149 = v148 + (lane >> 3);
          const int v150 = firstRow_1 + v149;
          if (v150 < rowsInTile) {
            int vector[4];
            ld_shared_v4(buffer + v149 * 144 + v146 * 16, vector);
            const long long v151 = (long long)(tileRow + v150) * yStrideBytes + (long long)v147 * 2ll;
            st_global_v4(y, v151, vector);
          }
        }
        syncwarp();
        #pragma unroll
        for (int v152 = 0; v152 < 8; v152 += 2) {
          const int v153 = v152 * 4;
          const int v154 = cvt_bf16x2_f32(acc[1][v153 + 32], acc[1][v153 + 33]);
          const int v155 = cvt_bf16x2_f32(acc[1][v153 + 34], acc[1][v153 + 35]);
          const int v156 = cvt_bf16x2_f32(acc[1][v153 + 36], acc[1][v153 + 37]);
          stmatrix_x4(into + v152 * 16, v154, v155, v156, cvt_bf16x2_f32(acc[1][v153 + 38], acc[1][v153 + 39]));
        }
        syncwarp();
        const int v157 = v147 + 64;
        #pragma unroll
        for (int v158 = 0; v158 < 16; v158 += 4) {
          const int v159 = v158 + (lane >> 3);
          const int v160 = firstRow_1 + v159;
          if (v160 < rowsInTile) {
            int vector[4];
            ld_shared_v4(buffer + v159 * 144 + v146 * 16, vector);
            const long long v161 = (long long)(tileRow + v160) * yStrideBytes + (long long)v157 * 2ll;
            st_global_v4(y, v161, vector);
          }
        }
      }
    }
  }
}

#ifdef MOEJIT_EMULATOR
MOEJIT_EMULATED_KERNEL(moejit_kernel)
#endif
