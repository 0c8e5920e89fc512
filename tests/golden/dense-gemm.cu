#ifdef MOEJIT_EMULATOR
#include "runtime/emulator/Device.h"
#else
typedef struct __align__(64) {
  unsigned long long words[16];
} TensorMap;

static __device__ __forceinline__ int shared_base() {
  extern __shared__ __align__(1024) unsigned char dynamicShared[];
  return (int)__cvta_generic_to_shared(dynamicShared);
}

static __device__ __forceinline__ int thread_index() {
  int result;
  asm("mov.u32 %0, %%tid.x;" : "=r"(result));
  return result;
}

static __device__ __forceinline__ void mbarrier_init(int barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(count) : "memory");
}

static __device__ __forceinline__ void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

static __device__ __forceinline__ void bar_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" :: "r"(id), "r"(threads) : "memory");
}

static __device__ __forceinline__ int shfl_idx(int value, int lane) {
  int result;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xffffffff;"
               : "=r"(result) : "r"(value), "r"(lane));
  return result;
}

template <int Registers>
static __device__ __forceinline__ void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(Registers));
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

template <int Pending>
static __device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(Pending) : "memory");
}

static __device__ __forceinline__ void mbarrier_arrive(int barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}

static __device__ __forceinline__ float add_f32(float a, float b) {
  float result;
  asm("add.rn.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

static __device__ __forceinline__ void st_global_b32(void *pointer, long long offset, int value) {
  asm volatile("st.global.b32 [%0], %1;" :: "l"((char *)pointer + offset), "r"(value) : "memory");
}

static __device__ __forceinline__ int cvt_bf16x2_f32(float low, float high) {
  int result;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
}
#endif

extern "C" __global__ void __launch_bounds__(384, 1)
moejit_kernel(const __grid_constant__ TensorMap xMap, const __grid_constant__ TensorMap wMap,
              void *y, long long yStride) {
  const int shared = shared_base();
  const int thread = thread_index();
  const int fullBarriers = shared + 131072;
  const int emptyBarriers = fullBarriers + 32;
  if (thread == 0) {
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int v0 = i * 8;
      mbarrier_init(fullBarriers + v0, 1);
      mbarrier_init(emptyBarriers + v0, 8);
    }
    fence_mbarrier_init();
  }
  bar_sync(0, 384);
  const int warpgroup = shfl_idx(thread / 128, 0);
  if (warpgroup == 2) {
    setmaxnreg_dec<40>();
    if (thread == 256) {
      int stage = 0;
      int phase = 1;
      for (int kBlock = 0; kBlock < 56; ++kBlock) {
        const int v1 = stage * 8;
        mbarrier_wait(emptyBarriers + v1, phase);
        const int full = fullBarriers + v1;
        mbarrier_expect_tx(full, 32768);
        const int slot = shared + stage * 32768;
        const int column = kBlock * 128;
        tma_load_2d(slot, xMap, column, 0, full);
        tma_load_2d(slot + 16384, wMap, column, 0, full);
        const int v2 = stage + 1;
        const bool wraps = v2 == 4;
        stage = wraps ? 0 : v2;
        phase = wraps ? phase ^ 1 : phase;
      }
    }
  } else {
    setmaxnreg_inc<232>();
    const int lane = thread & 31;
    const int inGroup = thread % 128;
    const bool releases = lane == 0;
    float sum[64];
    float acc[64];
    #pragma unroll
    for (int i = 0; i < 64; ++i) {
      sum[i] = 0.0f;
    }
    const int rowsOffset = warpgroup * 8192;
    int stage = 0;
    int phase = 0;
    for (int kBlock = 0; kBlock < 56; ++kBlock) {
      const int barrier = stage * 8;
      mbarrier_wait(fullBarriers + barrier, phase);
      const int slot = shared + stage * 32768;
      const int descX = ((slot + rowsOffset) >> 4) | 65536;
      const int descW = ((slot + 16384) >> 4) | 65536;
      regs_pin(acc);
      wgmma_fence();
      #pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int v3 = i * 2;
        wgmma_m64n128k32_e4m3_e4m3(acc, descX + v3, descW + v3, (int)(i > 0));
      }
      wgmma_commit();
      wgmma_wait<0>();
      regs_pin(acc);
      if (releases) {
        mbarrier_arrive(emptyBarriers + barrier);
      }
      #pragma unroll
      for (int i = 0; i < 64; ++i) {
        sum[i] = add_f32(sum[i], acc[i]);
      }
      const int v4 = stage + 1;
      const bool wraps = v4 == 4;
      stage = wraps ? 0 : v4;
      phase = wraps ? phase ^ 1 : phase;
    }
    const int row = warpgroup * 64 + inGroup / 32 * 16 + lane / 4;
    const int columnBytes = lane % 4 * 4;
    const long long start = (long long)row * yStride + (long long)columnBytes;
    const long long below = start + yStride * 8ll;
    #pragma unroll
    for (int j = 0; j < 64; j += 4) {
      const long long bytes = (long long)(j * 4);
      st_global_b32(y, start + bytes, cvt_bf16x2_f32(sum[j], sum[j + 1]));
      st_global_b32(y, below + bytes, cvt_bf16x2_f32(sum[j + 2], sum[j + 3]));
    }
  }
}

#ifdef MOEJIT_EMULATOR
MOEJIT_EMULATED_KERNEL(moejit_kernel)
#endif
