// What a hand-written CUDA kernel of the study sees in place of its own PTX wrappers: the same
// names, each a call of the emulator's wrappers. Included after runtime/emulator/Device.h, in a
// translation unit that tests/emulator/PrototypeTest.cpp makes.
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned short u16;

#define __align__(n) alignas(n)
#define __syncthreads() bar_sync(0, kcfg[1])
extern "C" int kcfg[9]; // of the kernel: [1] is its number of threads

// The kernels find a table or two in shared memory by ordinary pointers: memory of its own, one for
// each host thread, as the blocks of a cluster share one, and write the same tables.
alignas(1024) static thread_local unsigned char raw[232448];
static inline u32 smem_u32(const void *) { return shared_base(); }

// Special registers read like unsigned integers.
namespace prototype {
struct Thread {
  operator u32() const { return thread_index(); }
};
struct Block {
  operator u32() const { return block_index(); }
};
struct Grid {
  operator u32() const { return grid_size(); }
};
template <typename X> struct Dimension {
  X x;
};
} // namespace prototype
static const prototype::Dimension<prototype::Thread> threadIdx{};
static const prototype::Dimension<prototype::Block> blockIdx{};
static const prototype::Dimension<prototype::Grid> gridDim{};
static const prototype::Dimension<u32> blockDim{384};

struct uint2 {
  u32 x, y;
};
struct uint4 {
  u32 x, y, z, w;
};
struct float2 {
  float x, y;
};
struct float4 {
  float x, y, z, w;
};
static inline uint2 make_uint2(u32 x, u32 y) { return {x, y}; }
static inline uint4 make_uint4(u32 x, u32 y, u32 z, u32 w) { return {x, y, z, w}; }
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static inline float __uint_as_float(u32 bits) { return float_bits(bits); }
static inline float fmaf(float a, float b, float c) { return fma_f32(a, b, c); }
static inline float fmaxf(float a, float b) { return __builtin_fmaxf(a, b); }
static inline float fabsf(float a) { return __builtin_fabsf(a); }
template <typename T> static inline T __ldg(const T *p) { return *p; }
template <typename T> static inline T __ldcg(const T *p) { return *p; }
template <typename T> static inline void __stcg(T *p, const T &value) { *p = value; }
static inline int atomicAdd(int *p, int value) { return atom_add_global_i32(p, 0, value); }
static inline void __threadfence() { fence_acq_rel_gpu(); }

// The study's kernels take the lanes of a warp to be in step: what all of them have read before a
// shuffle, a wait for wgmma or a branch is read before what one of them does next. PTX promises it
// of bar.warp.sync alone. With IN_STEP these count as one.
#ifdef IN_STEP
static inline void in_step() { syncwarp(); }
#else
static inline void in_step() {}
#endif

static inline void __syncwarp() { syncwarp(); }
static inline int __shfl_sync(u32, int value, int lane) { return shfl_idx(value, lane); }
static inline u32 __shfl_sync(u32, u32 value, int lane) { return shfl_idx(value, lane); }
static inline float __shfl_sync(u32, float value, int lane) {
  return float_bits(shfl_idx(bits_f32(value), lane));
}
static inline int __shfl_xor_sync(u32, int value, int mask) { return shfl_bfly(value, mask); }
static inline float __shfl_xor_sync(u32, float value, int mask) {
  return float_bits(shfl_bfly(bits_f32(value), mask));
}

// The wrappers at the head of each file.
static inline void mbar_init(u32 a, u32 n) { mbarrier_init(a, n); }
static inline void mbar_wait(u32 a, u32 parity) { mbarrier_wait(a, parity); }
static inline void mbar_expect(u32 a, u32 bytes) { mbarrier_expect_tx(a, bytes); }
static inline void mbar_arrive(u32 a) { mbarrier_arrive(a); }
static inline void mbar_arrive_cta(u32 a, u32 cta) { mbarrier_arrive_cluster(a, cta); }
static inline void tma2d(u32 dst, const TensorMap *map, int c0, int c1, u32 barrier, u64) {
  tma_load_2d(dst, *map, c0, c1, barrier);
}
static inline void tma2d_mc(u32 dst, const TensorMap *map, int c0, int c1, u32 barrier, u16 mask,
                            u64) {
  tma_load_2d_multicast(dst, *map, c0, c1, barrier, mask);
}
static inline void tma1d(u32 dst, const TensorMap *map, int c0, u32 barrier) {
  tma_load_1d(dst, *map, c0, barrier);
}
static inline u64 pol_first() { return 0; }
static inline u64 pol_last() { return 0; }
static inline u64 pol_normal() { return 0; }
static inline void prefetch_tm(const TensorMap *map) { prefetch_tensormap(*map); }
static inline void wg_fence() { wgmma_fence(); }
static inline void wg_commit() { wgmma_commit(); }
template <int N> static inline void wg_wait() {
  wgmma_wait<N>();
  in_step();
}
template <int N> static inline void pin(float (&d)[N]) { regs_pin(d); }
static inline u32 desc_lo(u32 address) { return (address >> 4) | 0x10000u; }
static inline float lds_f(u32 a) { return ld_shared_f32(a); }
static inline void lds_f2(float &x, float &y, u32 a) {
  x = ld_shared_f32(a);
  y = ld_shared_f32(a + 4);
}
static inline uint4 lds_v4(u32 a) {
  int v[4];
  ld_shared_v4(a, v);
  return {u32(v[0]), u32(v[1]), u32(v[2]), u32(v[3])};
}
static inline u32 pack_bf16(float low, float high) { return cvt_bf16x2_f32(low, high); }
static inline void stsm4(u32 a, u32 r0, u32 r1, u32 r2, u32 r3) { stmatrix_x4(a, r0, r1, r2, r3); }
/// Lane 4r + q holds columns 2q and 2q + 1 of row r: of the transposed matrix these are rows 2q and
/// 2q + 1 of column r.
static inline u32 transposed(u32 pair) {
  const int lane = thread_index() & 31, row = lane >> 2, q = lane & 3, half = 16 * (row & 1);
  const u32 low = shfl_idx(pair, 8 * q + (row >> 1)), high = shfl_idx(pair, 8 * q + 4 + (row >> 1));
  return (low >> half & 0xffff) | (high >> half & 0xffff) << 16;
}
static inline void stsm4t(u32 a, u32 r0, u32 r1, u32 r2, u32 r3) {
  stmatrix_x4(a, transposed(r0), transposed(r1), transposed(r2), transposed(r3));
}
/// For tiles of eight tokens, which the tests do not run.
static inline void stsm2t(u32, u32, u32) { __builtin_trap(); }
static inline u32 cta_rank() { return cluster_rank(); }
static inline void cluster_sync_all() {
  cluster_arrive();
  cluster_wait();
}
template <int R> static inline void reg_inc() { setmaxnreg_inc<R>(); }
template <int R> static inline void reg_dec() { setmaxnreg_dec<R>(); }
template <int N> struct Wgmma {
  static void mma(float (&d)[N / 2], u32 a, u32 b, int accumulate) {
    MOEJIT_DEVICE->wgmma(d, N, moejit::emulated::e4m3_e4m3, moejit::emulated::descriptor(a),
                         moejit::emulated::descriptor(b), accumulate);
  }
};

// What the bodies say in assembly: outputs first, then inputs. An address of another block carries
// its rank above the 24 bits of an address.
static inline void ptx_mapa(u32 &mapped, u32 address, u32 rank) { mapped = address | rank << 24; }
static inline void ptx_arrive_mapped(u32 address) {
  mbarrier_arrive_cluster(address & 0xffffff, address >> 24);
}
static inline void ptx_wait_cluster(u32 &ok, u32 barrier, u32 parity) {
  mbarrier_wait_cluster(barrier, parity);
  ok = 1;
}
static inline void ptx_ld_shared(int &value, u32 address) {
  value = ld_shared_i32(address);
  in_step();
}
static inline void ptx_st_shared(u32 address, u32 value) { st_shared_i32(address, value); }
static inline void ptx_st_shared_f32(u32 address, float value) { st_shared_f32(address, value); }
static inline void ptx_st_shared_v2(u32 address, u32 a, u32 b) {
  st_shared_i32(address, a);
  st_shared_i32(address + 4, b);
}
static inline void ptx_cvt_e4m3x2(u16 &codes, float high, float low) {
  codes = static_cast<u16>(cvt_e4m3x2_f32(low, high));
}
static inline void ptx_fence_mbarrier_init() { fence_mbarrier_init(); }
static inline void ptx_fence_proxy() { fence_proxy_async(); }
/// Compiled, as it stands behind a constant condition, and never run by the tests.
template <typename... T> static inline void ptx_not_modelled(T &&...) { __builtin_trap(); }
