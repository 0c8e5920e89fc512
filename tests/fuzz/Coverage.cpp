// The hook the compiler calls in every basic block. This file itself is built without it.
#include "tests/fuzz/Coverage.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace {

uint8_t counts[fuzz::Coverage::slots];

} // namespace

extern "C" void __sanitizer_cov_trace_pc() {
  auto address = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  uint8_t &count = counts[(address * 0x9e3779b97f4a7c15ull) >> 48];
  count += count != 255;
}

namespace fuzz {

void Coverage::reset() { std::memset(counts, 0, sizeof counts); }

size_t Coverage::takeIn() {
  size_t fresh = 0;
  for (size_t word = 0; word < slots; word += 8) {
    uint64_t eight = 0;
    std::memcpy(&eight, counts + word, 8);
    if (!eight)
      continue;
    for (size_t i = word; i < word + 8; ++i) {
      if (!counts[i])
        continue;
      auto bit = uint8_t(1u << (std::bit_width(counts[i]) - 1));
      if (seen[i] & bit)
        continue;
      reached += seen[i] == 0;
      seen[i] |= bit;
      ++fresh;
    }
  }
  return fresh;
}

} // namespace fuzz
