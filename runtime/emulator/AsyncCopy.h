// Owns what is known of the cp.async of one thread: copies from global to shared memory in flight,
// and the mbarriers that wait for them.
#pragma once

#include "runtime/emulator/CommitGroups.h"

#include <string>
#include <vector>

namespace moejit::emulated {

/// A cp.async that its thread has not waited for.
struct AsyncCopy {
  int dst = 0;
  int bytes = 0;
  int size = 0; ///< bytes that are read; zeros after them
  const char *source = nullptr;
  bool isLanded = false;
  int barrier = 0; ///< address of an mbarrier that tells of it; 0: none
};

/// An arrival at an mbarrier when all copies before `end` have landed (cp.async.mbarrier.arrive).
struct PendingArrival {
  uint64_t end = 0;
  int barrier = 0;
  VectorClock known; ///< what the thread vouches for
  std::vector<LandedBox> boxes;
};

struct AsyncCopies {
  CommitGroups<AsyncCopy> copies;
  std::vector<PendingArrival> arrivals;
};

} // namespace moejit::emulated
