// What the lanes of a warp do together: shuffles, elections, matrices in shared memory, mma.sync.
#include "runtime/emulator/Cluster.h"

#include <algorithm>
#include <string_view>

namespace moejit::emulated {

template <typename Put> bool Cluster::meetWarp(Fiber &f, const char *name, const Put &put) {
  Warp &warp = f.block->warps[f.thread / 32];
  const int lane = f.thread % 32;
  if (warp.lanes == 0)
    warp.name = name;
  else if (std::string_view(warp.name) != name)
    fail(name, Text::format("other lanes of the warp are at {}", warp.name));
  warp.lanes |= 1u << lane;
  put(warp, lane);
  if (warp.lanes != ~0u) {
    suspend(f, warp.waiters, {Wait::Kind::Warp, 0, 0, name});
    return false;
  }
  warp.lanes = 0;
  return true;
}

int Cluster::warpCollective(Fiber &f, WarpOp op, const char *name, int value, int source) {
  if (!meetWarp(f, name, [&](Warp &warp, int lane) {
        warp.values[lane] = value;
        warp.sources[lane] = source;
      }))
    return f.result;
  Warp &warp = f.block->warps[f.thread / 32];
  const int first = f.thread - f.thread % 32;
  for (int l = 0; l < 32; ++l) {
    int result = 0;
    if (op == WarpOp::Elect)
      result = l == 0;
    else if (op == WarpOp::Shuffle)
      result = warp.values[warp.sources[l] & 31];
    fiberOf(*f.block, first + l).result = result;
  }
  // A shuffle orders no memory, as on the GPU.
  if (op == WarpOp::Sync)
    f.block->shared.races.meet(first, 32);
  wake(warp.waiters);
  return f.result;
}

/// Lane 8 i + r names row r of matrix i in memory; lane l holds elements 2 (l % 4) and + 1 of row
/// l / 4, or, transposed, of column l / 4.
void Cluster::storeMatrix(Fiber &f, int address, const int *registers, bool isTransposed) {
  const char *name = isTransposed ? "stmatrix_x4_trans" : "stmatrix_x4";
  if (!meetWarp(f, name, [&](Warp &warp, int lane) {
        warp.values[lane] = address;
        std::copy_n(registers, 4, warp.matrix[lane]);
      }))
    return;
  Warp &warp = f.block->warps[f.thread / 32];
  const int first = f.thread - f.thread % 32;
  SharedMemory &shared = f.block->shared;
  for (int i = 0; i < 4; ++i)
    for (int r = 0; r < 8; ++r) {
      const int row = warp.values[8 * i + r];
      if (row % 16)
        fail(name, Text::format("address {} of lane {} is not 16-byte aligned",
                                SharedMemory::place(row), 8 * i + r));
      for (int l = 0; l < 4; ++l) {
        int source = 4 * r + l, pair = warp.matrix[source][i];
        if (isTransposed) {
          source = 8 * l + r / 2; // and the lane four further on
          const int shift = 16 * (r % 2);
          pair = ((warp.matrix[source][i] >> shift) & 0xffff) |
                 ((warp.matrix[source + 4][i] >> shift) & 0xffff) << 16;
        }
        const int writer = first + source;
        if (const Text message = shared.refuseWrite(row + 4 * l, 4, writer); !message.empty())
          fail(name, Text::format("address of lane {}: {}", 8 * i + r, message));
        shared.store(row + 4 * l, &pair, 4, writer);
      }
    }
  wake(warp.waiters);
}

/// The layout of storeMatrix, for `count` matrices.
void Cluster::loadMatrix(Fiber &f, int address, int *registers, int count, const char *op) {
  const int lane = f.thread % 32, first = f.thread - lane;
  const bool isTransposed = std::string_view(op).ends_with("_trans");
  Warp &warp = f.block->warps[f.thread / 32];
  if (meetWarp(f, op, [&](Warp &own, int l) { own.values[l] = address; })) {
    SharedMemory &shared = f.block->shared;
    for (int i = 0; i < count; ++i)
      for (int r = 0; r < 8; ++r) {
        const int row = warp.values[8 * i + r];
        if (row % 16)
          fail(op, Text::format("address {} of lane {} is not 16-byte aligned",
                                SharedMemory::place(row), 8 * i + r));
        for (int l = 0; l < 4; ++l) {
          // Elements 2 l and 2 l + 1 of the row: of one lane, or of two when columns are spread.
          const int reader = isTransposed ? 8 * l + r / 2 : 4 * r + l;
          for (int other = 0; other < (isTransposed ? 2 : 1); ++other)
            if (const Text message = shared.refuseRead(row + 4 * l, 4, first + reader + 4 * other);
                !message.empty())
              fail(op, Text::format("address of lane {}: {}", 8 * i + r, message));
          const uint8_t *bytes = shared.at(row + 4 * l);
          const int low = bytes[0] | bytes[1] << 8, high = bytes[2] | bytes[3] << 8;
          if (!isTransposed) {
            warp.matrix[reader][i] = static_cast<int>(static_cast<uint32_t>(high) << 16 | low);
            continue;
          }
          const int shift = 16 * (r % 2);
          const uint32_t kept = ~(0xffffu << shift);
          for (int column = 0; column < 2; ++column) {
            int &word = warp.matrix[reader + 4 * column][i];
            word = static_cast<int>((static_cast<uint32_t>(word) & kept) |
                                    static_cast<uint32_t>(column ? high : low) << shift);
          }
        }
      }
    wake(warp.waiters);
  }
  std::copy_n(warp.matrix[lane], count, registers);
}

void Cluster::mma(Fiber &f, float *d, const int *a, const int *b, int types, const char *op) {
  const int lane = f.thread % 32;
  Warp &warp = f.block->warps[f.thread / 32];
  if (meetWarp(f, op, [&](Warp &own, int l) {
        std::copy_n(a, 4, own.fragments.a[l]);
        std::copy_n(b, 2, own.fragments.b[l]);
        std::copy_n(d, 4, own.fragments.d[l]);
      })) {
    multiplyFragments(warp.fragments, types);
    wake(warp.waiters);
  }
  std::copy_n(warp.fragments.d[lane], 4, d);
}

} // namespace moejit::emulated
