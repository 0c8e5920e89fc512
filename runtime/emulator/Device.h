// What a printed kernel sees when it is compiled for the host: CUDA's keywords, the tensor map, and
// every wrapper of the ptx dialect, each a call through a table of functions that the emulator
// hands over. Includes no other project header: its text is embedded in the library. With
// MOEJIT_EMULATOR_HOST only the table and the tensor map are declared.
#pragma once

namespace moejit::emulated {

/// The emulator's stand-in for CUtensorMap: same size and alignment, other contents (TensorCopy.h).
struct alignas(64) TensorMap {
  unsigned long long words[16];
};

/// Every service of the emulator: X(result, name, parameters). `op` names the wrapper in error
/// messages.
#define MOEJIT_DEVICE_FUNCTIONS(X)                                                                 \
  X(int, threadIndex, ())                                                                          \
  X(int, blockIndex, ())                                                                           \
  X(int, gridSize, ())                                                                             \
  X(int, clusterRank, ())                                                                          \
  X(int, sharedBase, ())                                                                           \
  X(int, shuffle, (int value, int lane))                                                           \
  X(int, elect, ())                                                                                \
  X(void, syncWarp, ())                                                                            \
  X(void, barSync, (int id, int threads))                                                          \
  X(void, barArrive, (int id, int threads))                                                        \
  X(void, clusterArrive, ())                                                                       \
  X(void, clusterWait, ())                                                                         \
  X(void, setRegisters, (int registers, int grow))                                                 \
  X(void, mbarrierInit, (int barrier, int count))                                                  \
  X(void, mbarrierExpectTx, (int barrier, int bytes))                                              \
  X(void, mbarrierArrive, (int barrier))                                                           \
  X(void, mbarrierArriveCluster, (int barrier, int rank))                                          \
  X(void, mbarrierWait, (int barrier, int parity, int ofCluster))                                  \
  X(void, fenceMbarrierInit, ())                                                                   \
  X(void, fenceProxyAsync, ())                                                                     \
  X(void, fenceProxyGlobal, ())                                                                    \
  X(void, fenceDevice, ())                                                                         \
  X(void, prefetchTensorMap, (const TensorMap *map))                                               \
  X(void, tmaLoad,                                                                                 \
    (int dst, const TensorMap *map, const int *coordinates, int rank, int barrier, int ctaMask,    \
     const char *op))                                                                              \
  X(void, tmaStore,                                                                                \
    (const TensorMap *map, const int *coordinates, int rank, int src, const char *op))             \
  X(void, bulkCommit, ())                                                                          \
  X(void, bulkWait, (int groups, int isRead))                                                      \
  X(void, copyAsync,                                                                               \
    (int dst, const void *p, long long offset, int bytes, int size, const char *op))               \
  X(void, copyAsyncCommit, ())                                                                     \
  X(void, copyAsyncWait, (int groups))                                                             \
  X(void, copyAsyncWaitAll, ())                                                                    \
  X(void, copyAsyncArrive, (int barrier))                                                          \
  X(void, launchDependents, ())                                                                    \
  X(void, waitForGrid, ())                                                                         \
  X(void, wgmmaFence, ())                                                                          \
  X(void, wgmmaCommit, ())                                                                         \
  X(void, wgmmaWait, (int groups))                                                                 \
  X(void, wgmma,                                                                                   \
    (float *acc, int n, int types, unsigned long long a, unsigned long long b, int accumulate))    \
  X(void, loadShared, (int address, int *to, int words, const char *op))                           \
  X(int, loadSharedByte, (int address, const char *op))                                            \
  X(void, storeShared, (int address, const int *from, int words, const char *op))                  \
  X(void, storeAsync,                                                                              \
    (int address, const int *words, int count, int barrier, int rank, const char *op))             \
  X(void, storeMatrix, (int address, const int *registers, int transposes))                        \
  X(void, loadMatrix, (int address, int *to, int count, const char *op))                           \
  X(void, mma, (float *d, const int *a, const int *b, int types, const char *op))                  \
  X(void, loadGlobal, (const void *p, long long offset, void *to, int bytes, const char *op))      \
  X(void, storeGlobal, (void *p, long long offset, const void *from, int bytes, const char *op))   \
  X(int, atomicAddShared, (int address, int value))                                                \
  X(int, atomicAddGlobal, (void *p, long long offset, int value))                                  \
  X(void, reduceMaxGlobal, (void *p, long long offset, long long value))                           \
  X(void, waitGlobal, (const void *p, long long offset, int value))                                \
  X(void, raiseGlobal, (void *p, long long offset, int value))                                     \
  X(void, undefined, (const void *site, const char *what, long long a, long long b))               \
  X(int, convertBf16x2, (float low, float high))                                                   \
  X(int, convertF16x2, (float low, float high))                                                    \
  X(int, convertE4m3x2, (float low, float high))                                                   \
  X(int, convertE5m2x2, (float low, float high))                                                   \
  X(float, convertF32F16, (int bits))

struct DeviceTable {
#define MOEJIT_DEVICE_FUNCTION(result, name, parameters) result(*name) parameters;
  MOEJIT_DEVICE_FUNCTIONS(MOEJIT_DEVICE_FUNCTION)
#undef MOEJIT_DEVICE_FUNCTION
};

/// Values of `types` of DeviceTable::wgmma: bit 0 set when A is e5m2, bit 1 when B is.
enum WgmmaTypes { e4m3_e4m3 = 0, e5m2_e4m3 = 1, e4m3_e5m2 = 2, e5m2_e5m2 = 3 };

/// Further values of `types` of DeviceTable::mma.
enum MmaTypes { bf16_bf16 = 4, f16_f16 = 5 };

} // namespace moejit::emulated

#ifndef MOEJIT_EMULATOR_HOST

#include <utility>

#define __global__
#define __device__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)

using moejit::emulated::TensorMap;

namespace moejit::emulated {
/// Set by the entry before any kernel runs.
static const DeviceTable *device;

template <typename... P, unsigned long... I>
static inline void invoke(void (*kernel)(P...), void **arguments, std::index_sequence<I...>) {
  kernel(*static_cast<P *>(arguments[I])...);
}
template <typename... P> static inline void invoke(void (*kernel)(P...), void **arguments) {
  invoke(kernel, arguments, std::make_index_sequence<sizeof...(P)>());
}
template <typename... P> static inline int parameterBytes(void (*)(P...), int index) {
  const int bytes[] = {static_cast<int>(sizeof(P))..., 0};
  return index >= 0 && index < static_cast<int>(sizeof...(P)) ? bytes[index] : 0;
}
} // namespace moejit::emulated

/// Defines the entries the emulator looks up. `<name>_emulated(table, arguments)` runs one thread;
/// with null arguments it only takes the table. `<name>_parameter(i)` is the size of parameter i, 0
/// past the last.
#define MOEJIT_EMULATED_KERNEL(name)                                                               \
  extern "C" __attribute__((visibility("default"))) void name##_emulated(                          \
      const moejit::emulated::DeviceTable *table, void **arguments) {                              \
    if (arguments)                                                                                 \
      moejit::emulated::invoke(&name, arguments);                                                  \
    else                                                                                           \
      moejit::emulated::device = table;                                                            \
  }                                                                                                \
  extern "C" __attribute__((visibility("default"))) int name##_parameter(int index) {              \
    return moejit::emulated::parameterBytes(&name, index);                                         \
  }

/// What the compiler's checks of integer arithmetic call (the interface of UBSan's runtime):
/// offsets must not overflow, and what a shift by 32 or a division by zero gives is not the same
/// everywhere.
namespace moejit::emulated {
struct CheckedType {
  unsigned short kind, info; ///< info: bit 0 set when signed, the others log2 of the width
  char name[1];
};
struct CheckedPlace {
  const char *file;
  unsigned line, column;
  const CheckedType *type;
};
static inline long long checkedValue(const CheckedPlace *place, unsigned long value) {
  return place->type->info >> 1 <= 5 ? static_cast<int>(value) : static_cast<long long>(value);
}
} // namespace moejit::emulated
#define MOEJIT_CHECK(name, what)                                                                   \
  extern "C" __attribute__((used, visibility("hidden"))) void __ubsan_handle_##name##_abort(       \
      const moejit::emulated::CheckedPlace *place, unsigned long a, unsigned long b) {             \
    moejit::emulated::device->undefined(__builtin_return_address(0), what,                         \
                                        moejit::emulated::checkedValue(place, a),                  \
                                        moejit::emulated::checkedValue(place, b));                 \
    __builtin_unreachable();                                                                       \
  }
MOEJIT_CHECK(add_overflow, "+")
MOEJIT_CHECK(sub_overflow, "-")
MOEJIT_CHECK(mul_overflow, "*")
MOEJIT_CHECK(negate_overflow, "negated")
MOEJIT_CHECK(divrem_overflow, "/")
MOEJIT_CHECK(shift_out_of_bounds, "shifted by")

#define MOEJIT_WRAPPER [[maybe_unused]] static inline
#define MOEJIT_DEVICE moejit::emulated::device

// Special registers and warp.
MOEJIT_WRAPPER int thread_index() { return MOEJIT_DEVICE->threadIndex(); }
MOEJIT_WRAPPER int block_index() { return MOEJIT_DEVICE->blockIndex(); }
MOEJIT_WRAPPER int grid_size() { return MOEJIT_DEVICE->gridSize(); }
MOEJIT_WRAPPER int cluster_rank() { return MOEJIT_DEVICE->clusterRank(); }
MOEJIT_WRAPPER int shared_base() { return MOEJIT_DEVICE->sharedBase(); }
MOEJIT_WRAPPER int shfl_idx(int value, int lane) { return MOEJIT_DEVICE->shuffle(value, lane); }
MOEJIT_WRAPPER int shfl_bfly(int value, int mask) {
  return MOEJIT_DEVICE->shuffle(value, (MOEJIT_DEVICE->threadIndex() & 31) ^ mask);
}
MOEJIT_WRAPPER bool elect_one() { return MOEJIT_DEVICE->elect() != 0; }
MOEJIT_WRAPPER void syncwarp() { MOEJIT_DEVICE->syncWarp(); }

// Barriers and registers.
MOEJIT_WRAPPER void bar_sync(int id, int threads) { MOEJIT_DEVICE->barSync(id, threads); }
MOEJIT_WRAPPER void bar_arrive(int id, int threads) { MOEJIT_DEVICE->barArrive(id, threads); }
MOEJIT_WRAPPER void cluster_arrive() { MOEJIT_DEVICE->clusterArrive(); }
MOEJIT_WRAPPER void cluster_wait() { MOEJIT_DEVICE->clusterWait(); }
template <int R> MOEJIT_WRAPPER void setmaxnreg_inc() { MOEJIT_DEVICE->setRegisters(R, 1); }
template <int R> MOEJIT_WRAPPER void setmaxnreg_dec() { MOEJIT_DEVICE->setRegisters(R, 0); }
template <typename T, int N> MOEJIT_WRAPPER void regs_pin(T (&regs)[N]) {
  asm volatile("" : : "r"(&regs[0]) : "memory");
}

// mbarrier.
MOEJIT_WRAPPER void mbarrier_init(int barrier, int count) {
  MOEJIT_DEVICE->mbarrierInit(barrier, count);
}
MOEJIT_WRAPPER void mbarrier_expect_tx(int barrier, int bytes) {
  MOEJIT_DEVICE->mbarrierExpectTx(barrier, bytes);
}
MOEJIT_WRAPPER void mbarrier_arrive(int barrier) { MOEJIT_DEVICE->mbarrierArrive(barrier); }
MOEJIT_WRAPPER void mbarrier_arrive_cluster(int barrier, int rank) {
  MOEJIT_DEVICE->mbarrierArriveCluster(barrier, rank);
}
MOEJIT_WRAPPER void mbarrier_wait(int barrier, int parity) {
  MOEJIT_DEVICE->mbarrierWait(barrier, parity, 0);
}
MOEJIT_WRAPPER void mbarrier_wait_cluster(int barrier, int parity) {
  MOEJIT_DEVICE->mbarrierWait(barrier, parity, 1);
}
MOEJIT_WRAPPER void fence_mbarrier_init() { MOEJIT_DEVICE->fenceMbarrierInit(); }
MOEJIT_WRAPPER void fence_proxy_async() { MOEJIT_DEVICE->fenceProxyAsync(); }
MOEJIT_WRAPPER void fence_proxy_async_global() { MOEJIT_DEVICE->fenceProxyGlobal(); }
MOEJIT_WRAPPER void fence_acq_rel_gpu() { MOEJIT_DEVICE->fenceDevice(); }

// TMA. A multicast mask of -1 means the executing block alone.
MOEJIT_WRAPPER void prefetch_tensormap(const TensorMap &map) {
  MOEJIT_DEVICE->prefetchTensorMap(&map);
}
MOEJIT_WRAPPER long long createpolicy_evict_first() { return 1; }
MOEJIT_WRAPPER long long createpolicy_evict_last() { return 2; }
MOEJIT_WRAPPER void tma_load_1d(int dst, const TensorMap &map, int c0, int barrier) {
  MOEJIT_DEVICE->tmaLoad(dst, &map, &c0, 1, barrier, -1, "tma_load_1d");
}
MOEJIT_WRAPPER void tma_load_2d(int dst, const TensorMap &map, int c0, int c1, int barrier) {
  const int c[] = {c0, c1};
  MOEJIT_DEVICE->tmaLoad(dst, &map, c, 2, barrier, -1, "tma_load_2d");
}
MOEJIT_WRAPPER void tma_load_3d(int dst, const TensorMap &map, int c0, int c1, int c2,
                                int barrier) {
  const int c[] = {c0, c1, c2};
  MOEJIT_DEVICE->tmaLoad(dst, &map, c, 3, barrier, -1, "tma_load_3d");
}
MOEJIT_WRAPPER void tma_load_1d_hint(int dst, const TensorMap &map, int c0, int barrier,
                                     long long) {
  MOEJIT_DEVICE->tmaLoad(dst, &map, &c0, 1, barrier, -1, "tma_load_1d_hint");
}
MOEJIT_WRAPPER void tma_load_2d_hint(int dst, const TensorMap &map, int c0, int c1, int barrier,
                                     long long) {
  const int c[] = {c0, c1};
  MOEJIT_DEVICE->tmaLoad(dst, &map, c, 2, barrier, -1, "tma_load_2d_hint");
}
MOEJIT_WRAPPER void tma_load_3d_hint(int dst, const TensorMap &map, int c0, int c1, int c2,
                                     int barrier, long long) {
  const int c[] = {c0, c1, c2};
  MOEJIT_DEVICE->tmaLoad(dst, &map, c, 3, barrier, -1, "tma_load_3d_hint");
}
MOEJIT_WRAPPER void tma_load_1d_multicast(int dst, const TensorMap &map, int c0, int barrier,
                                          int ctaMask) {
  MOEJIT_DEVICE->tmaLoad(dst, &map, &c0, 1, barrier, ctaMask & 0xffff, "tma_load_1d_multicast");
}
MOEJIT_WRAPPER void tma_load_2d_multicast(int dst, const TensorMap &map, int c0, int c1,
                                          int barrier, int ctaMask) {
  const int c[] = {c0, c1};
  MOEJIT_DEVICE->tmaLoad(dst, &map, c, 2, barrier, ctaMask & 0xffff, "tma_load_2d_multicast");
}
MOEJIT_WRAPPER void tma_load_3d_multicast(int dst, const TensorMap &map, int c0, int c1, int c2,
                                          int barrier, int ctaMask) {
  const int c[] = {c0, c1, c2};
  MOEJIT_DEVICE->tmaLoad(dst, &map, c, 3, barrier, ctaMask & 0xffff, "tma_load_3d_multicast");
}

MOEJIT_WRAPPER void tma_load_1d_hint_multicast(int dst, const TensorMap &map, int c0, int barrier,
                                               long long, int ctaMask) {
  MOEJIT_DEVICE->tmaLoad(dst, &map, &c0, 1, barrier, ctaMask & 0xffff,
                         "tma_load_1d_hint_multicast");
}
MOEJIT_WRAPPER void tma_load_2d_hint_multicast(int dst, const TensorMap &map, int c0, int c1,
                                               int barrier, long long, int ctaMask) {
  const int c[] = {c0, c1};
  MOEJIT_DEVICE->tmaLoad(dst, &map, c, 2, barrier, ctaMask & 0xffff, "tma_load_2d_hint_multicast");
}
MOEJIT_WRAPPER void tma_load_3d_hint_multicast(int dst, const TensorMap &map, int c0, int c1,
                                               int c2, int barrier, long long, int ctaMask) {
  const int c[] = {c0, c1, c2};
  MOEJIT_DEVICE->tmaLoad(dst, &map, c, 3, barrier, ctaMask & 0xffff, "tma_load_3d_hint_multicast");
}

// TMA stores and their groups.
MOEJIT_WRAPPER void tma_store_1d(const TensorMap &map, int c0, int src) {
  MOEJIT_DEVICE->tmaStore(&map, &c0, 1, src, "tma_store_1d");
}
MOEJIT_WRAPPER void tma_store_2d(const TensorMap &map, int c0, int c1, int src) {
  const int c[] = {c0, c1};
  MOEJIT_DEVICE->tmaStore(&map, c, 2, src, "tma_store_2d");
}
MOEJIT_WRAPPER void tma_store_3d(const TensorMap &map, int c0, int c1, int c2, int src) {
  const int c[] = {c0, c1, c2};
  MOEJIT_DEVICE->tmaStore(&map, c, 3, src, "tma_store_3d");
}
MOEJIT_WRAPPER void bulk_commit() { MOEJIT_DEVICE->bulkCommit(); }
template <int N> MOEJIT_WRAPPER void bulk_wait() { MOEJIT_DEVICE->bulkWait(N, 0); }
template <int N> MOEJIT_WRAPPER void bulk_wait_read() { MOEJIT_DEVICE->bulkWait(N, 1); }

// cp.async.
#define MOEJIT_CP_ASYNC(name, bytes)                                                               \
  MOEJIT_WRAPPER void cp_async_##name(int dst, const void *p, long long offset) {                  \
    MOEJIT_DEVICE->copyAsync(dst, p, offset, bytes, bytes, "cp_async_" #name);                     \
  }                                                                                                \
  MOEJIT_WRAPPER void cp_async_##name##_sized(int dst, const void *p, long long offset,            \
                                              int size) {                                          \
    MOEJIT_DEVICE->copyAsync(dst, p, offset, bytes, size, "cp_async_" #name "_sized");             \
  }
MOEJIT_CP_ASYNC(ca_4, 4)
MOEJIT_CP_ASYNC(ca_8, 8)
MOEJIT_CP_ASYNC(ca_16, 16)
MOEJIT_CP_ASYNC(cg_16, 16)
MOEJIT_WRAPPER void cp_async_commit() { MOEJIT_DEVICE->copyAsyncCommit(); }
template <int N> MOEJIT_WRAPPER void cp_async_wait() { MOEJIT_DEVICE->copyAsyncWait(N); }
MOEJIT_WRAPPER void cp_async_wait_all() { MOEJIT_DEVICE->copyAsyncWaitAll(); }
MOEJIT_WRAPPER void cp_async_arrive(int barrier) { MOEJIT_DEVICE->copyAsyncArrive(barrier); }

// Dependent launches.
MOEJIT_WRAPPER void griddepcontrol_launch_dependents() { MOEJIT_DEVICE->launchDependents(); }
MOEJIT_WRAPPER void griddepcontrol_wait() { MOEJIT_DEVICE->waitForGrid(); }

// wgmma: the high descriptor word is K-major, SWIZZLE_128B, SBO 1024.
MOEJIT_WRAPPER void wgmma_fence() { MOEJIT_DEVICE->wgmmaFence(); }
MOEJIT_WRAPPER void wgmma_commit() { MOEJIT_DEVICE->wgmmaCommit(); }
template <int N> MOEJIT_WRAPPER void wgmma_wait() { MOEJIT_DEVICE->wgmmaWait(N); }
namespace moejit::emulated {
static inline unsigned long long descriptor(int low) {
  return (0x40000040ull << 32) | static_cast<unsigned>(low);
}
} // namespace moejit::emulated
#define MOEJIT_WGMMA(n, types)                                                                     \
  MOEJIT_WRAPPER void wgmma_m64n##n##k32_##types(float (&acc)[n / 2], int descALow, int descBLow,  \
                                                 int accumulate) {                                 \
    MOEJIT_DEVICE->wgmma(acc, n, moejit::emulated::types, moejit::emulated::descriptor(descALow),  \
                         moejit::emulated::descriptor(descBLow), accumulate);                      \
  }
#define MOEJIT_WGMMA_TYPES(n)                                                                      \
  MOEJIT_WGMMA(n, e4m3_e4m3)                                                                       \
  MOEJIT_WGMMA(n, e5m2_e4m3) MOEJIT_WGMMA(n, e4m3_e5m2) MOEJIT_WGMMA(n, e5m2_e5m2)
#define MOEJIT_WGMMA_FOUR(a, b, c, d)                                                              \
  MOEJIT_WGMMA_TYPES(a) MOEJIT_WGMMA_TYPES(b) MOEJIT_WGMMA_TYPES(c) MOEJIT_WGMMA_TYPES(d)
MOEJIT_WGMMA_FOUR(8, 16, 24, 32)
MOEJIT_WGMMA_FOUR(40, 48, 56, 64)
MOEJIT_WGMMA_FOUR(72, 80, 88, 96)
MOEJIT_WGMMA_FOUR(104, 112, 120, 128)
MOEJIT_WGMMA_FOUR(136, 144, 152, 160)
MOEJIT_WGMMA_FOUR(168, 176, 184, 192)
MOEJIT_WGMMA_FOUR(200, 208, 216, 224)
MOEJIT_WGMMA_FOUR(232, 240, 248, 256)

// Bits.
MOEJIT_WRAPPER int bits_f32(float value) {
  int bits;
  __builtin_memcpy(&bits, &value, 4);
  return bits;
}
MOEJIT_WRAPPER float float_bits(int bits) {
  float value;
  __builtin_memcpy(&value, &bits, 4);
  return value;
}

// Shared memory.
MOEJIT_WRAPPER int ld_shared_i32(int address) {
  int value;
  MOEJIT_DEVICE->loadShared(address, &value, 1, "ld_shared_i32");
  return value;
}
MOEJIT_WRAPPER float ld_shared_f32(int address) {
  int value;
  MOEJIT_DEVICE->loadShared(address, &value, 1, "ld_shared_f32");
  return float_bits(value);
}
MOEJIT_WRAPPER int ld_shared_u8(int address) {
  return MOEJIT_DEVICE->loadSharedByte(address, "ld_shared_u8");
}
MOEJIT_WRAPPER void st_shared_i32(int address, int value) {
  MOEJIT_DEVICE->storeShared(address, &value, 1, "st_shared_i32");
}
MOEJIT_WRAPPER void st_async_i32(int address, int value, int barrier, int rank) {
  MOEJIT_DEVICE->storeAsync(address, &value, 1, barrier, rank, "st_async_i32");
}
MOEJIT_WRAPPER void st_async_v4_f32(int address, float v0, float v1, float v2, float v3,
                                    int barrier, int rank) {
  const int words[] = {bits_f32(v0), bits_f32(v1), bits_f32(v2), bits_f32(v3)};
  MOEJIT_DEVICE->storeAsync(address, words, 4, barrier, rank, "st_async_v4_f32");
}
MOEJIT_WRAPPER void st_shared_f32(int address, float value) {
  const int bits = bits_f32(value);
  MOEJIT_DEVICE->storeShared(address, &bits, 1, "st_shared_f32");
}
MOEJIT_WRAPPER void ld_shared_v4(int address, int (&v)[4]) {
  MOEJIT_DEVICE->loadShared(address, v, 4, "ld_shared_v4");
}
MOEJIT_WRAPPER void st_shared_v4(int address, const int (&v)[4]) {
  MOEJIT_DEVICE->storeShared(address, v, 4, "st_shared_v4");
}
MOEJIT_WRAPPER void stmatrix_x4(int address, int r0, int r1, int r2, int r3) {
  const int registers[] = {r0, r1, r2, r3};
  MOEJIT_DEVICE->storeMatrix(address, registers, false);
}
MOEJIT_WRAPPER void stmatrix_x4_trans(int address, int r0, int r1, int r2, int r3) {
  const int registers[] = {r0, r1, r2, r3};
  MOEJIT_DEVICE->storeMatrix(address, registers, true);
}

#define MOEJIT_LDMATRIX(name, count)                                                               \
  MOEJIT_WRAPPER void ldmatrix_##name(int address, int (&v)[count]) {                              \
    MOEJIT_DEVICE->loadMatrix(address, v, count, "ldmatrix_" #name);                               \
  }
MOEJIT_LDMATRIX(x1, 1)
MOEJIT_LDMATRIX(x2, 2)
MOEJIT_LDMATRIX(x4, 4)
MOEJIT_LDMATRIX(x1_trans, 1)
MOEJIT_LDMATRIX(x2_trans, 2)
MOEJIT_LDMATRIX(x4_trans, 4)

// mma.sync.
#define MOEJIT_MMA(shape, types)                                                                   \
  MOEJIT_WRAPPER void mma_##shape##_##types(float (&d)[4], const int (&a)[4], const int (&b)[2]) { \
    MOEJIT_DEVICE->mma(d, a, b, moejit::emulated::types, "mma_" #shape "_" #types);                \
  }
MOEJIT_MMA(m16n8k32, e4m3_e4m3)
MOEJIT_MMA(m16n8k32, e5m2_e4m3)
MOEJIT_MMA(m16n8k32, e4m3_e5m2)
MOEJIT_MMA(m16n8k32, e5m2_e5m2)
MOEJIT_MMA(m16n8k16, bf16_bf16)
MOEJIT_MMA(m16n8k16, f16_f16)

// Global memory.
MOEJIT_WRAPPER float ld_global_f32(const void *p, long long offset) {
  float value;
  MOEJIT_DEVICE->loadGlobal(p, offset, &value, 4, "ld_global_f32");
  return value;
}
MOEJIT_WRAPPER float ld_global_fresh_f32(const void *p, long long offset) {
  float value;
  MOEJIT_DEVICE->loadGlobal(p, offset, &value, 4, "ld_global_fresh_f32");
  return value;
}
MOEJIT_WRAPPER int ld_global_i32(const void *p, long long offset) {
  int value;
  MOEJIT_DEVICE->loadGlobal(p, offset, &value, 4, "ld_global_i32");
  return value;
}
MOEJIT_WRAPPER int ld_global_fresh_u8(const void *p, long long offset) {
  unsigned char value;
  MOEJIT_DEVICE->loadGlobal(p, offset, &value, 1, "ld_global_fresh_u8");
  return value;
}
MOEJIT_WRAPPER int ld_global_u8(const void *p, long long offset) {
  unsigned char value;
  MOEJIT_DEVICE->loadGlobal(p, offset, &value, 1, "ld_global_u8");
  return value;
}
MOEJIT_WRAPPER void ld_global_v4(const void *p, long long offset, int (&v)[4]) {
  MOEJIT_DEVICE->loadGlobal(p, offset, v, 16, "ld_global_v4");
}
MOEJIT_WRAPPER void st_global_f32(void *p, long long offset, float value) {
  MOEJIT_DEVICE->storeGlobal(p, offset, &value, 4, "st_global_f32");
}
MOEJIT_WRAPPER void st_global_b8(void *p, long long offset, int value) {
  const unsigned char byte = static_cast<unsigned char>(value);
  MOEJIT_DEVICE->storeGlobal(p, offset, &byte, 1, "st_global_b8");
}
MOEJIT_WRAPPER void st_global_b16(void *p, long long offset, int value) {
  const unsigned short half = static_cast<unsigned short>(value);
  MOEJIT_DEVICE->storeGlobal(p, offset, &half, 2, "st_global_b16");
}
MOEJIT_WRAPPER void st_global_b32(void *p, long long offset, int value) {
  MOEJIT_DEVICE->storeGlobal(p, offset, &value, 4, "st_global_b32");
}
MOEJIT_WRAPPER void st_global_v2(void *p, long long offset, const int (&v)[4]) {
  MOEJIT_DEVICE->storeGlobal(p, offset, v, 8, "st_global_v2");
}
MOEJIT_WRAPPER void st_global_v4(void *p, long long offset, const int (&v)[4]) {
  MOEJIT_DEVICE->storeGlobal(p, offset, v, 16, "st_global_v4");
}
MOEJIT_WRAPPER int atom_add_shared_i32(int address, int value) {
  return MOEJIT_DEVICE->atomicAddShared(address, value);
}
MOEJIT_WRAPPER int atom_add_global_i32(void *p, long long offset, int value) {
  return MOEJIT_DEVICE->atomicAddGlobal(p, offset, value);
}
MOEJIT_WRAPPER void red_max_global_i64(void *p, long long offset, long long value) {
  MOEJIT_DEVICE->reduceMaxGlobal(p, offset, value);
}
MOEJIT_WRAPPER void wait_global_i32(const void *p, long long offset, int value) {
  MOEJIT_DEVICE->waitGlobal(p, offset, value);
}

MOEJIT_WRAPPER void red_max_global_i32(void *p, long long offset, int value) {
  MOEJIT_DEVICE->raiseGlobal(p, offset, value);
}

// Arithmetic and conversions. The unit is compiled without contraction, so products and sums round
// alone.
MOEJIT_WRAPPER float fma_f32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
MOEJIT_WRAPPER float mul_f32(float a, float b) { return a * b; }
MOEJIT_WRAPPER float add_f32(float a, float b) { return a + b; }
MOEJIT_WRAPPER float div_f32(float a, float b) {
  const float quotient = a / b;
  return quotient == quotient ? quotient : float_bits(0x7fffffff); // PTX's one NaN
}
MOEJIT_WRAPPER int cvt_bf16x2_f32(float low, float high) {
  return MOEJIT_DEVICE->convertBf16x2(low, high);
}
MOEJIT_WRAPPER int cvt_f16x2_f32(float low, float high) {
  return MOEJIT_DEVICE->convertF16x2(low, high);
}
MOEJIT_WRAPPER int cvt_e4m3x2_f32(float low, float high) {
  return MOEJIT_DEVICE->convertE4m3x2(low, high);
}
MOEJIT_WRAPPER int cvt_e5m2x2_f32(float low, float high) {
  return MOEJIT_DEVICE->convertE5m2x2(low, high);
}
MOEJIT_WRAPPER float cvt_f32_f16(int bits) { return MOEJIT_DEVICE->convertF32F16(bits); }

#endif // MOEJIT_EMULATOR_HOST
