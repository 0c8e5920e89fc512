// What is kept of one TMA store from shared to global memory until its thread has waited for it.
#pragma once

#include "runtime/emulator/CommitGroups.h"
#include "runtime/emulator/TensorCopy.h"

#include <array>
#include <vector>

namespace moejit::emulated {

struct TensorStore {
  PackedMap map;
  std::array<int, 5> coordinates = {};
  int src = 0;
  size_t range = 0;           ///< of the launch, which holds the tensor
  int64_t base = 0;           ///< of the tensor in it
  bool hasRead = false;       ///< its source
  bool hasWritten = false;    ///< the tensor
  std::vector<uint8_t> image; ///< of the box as it was read, without swizzle
};

/// The TMA stores of one thread.
struct TensorStores {
  CommitGroups<TensorStore> stores;
  uint64_t readsKnown = 0; ///< the stores before this one the thread knows to have read
  uint64_t readsUnknown() const { return stores.issued() - readsKnown; }
};

} // namespace moejit::emulated
