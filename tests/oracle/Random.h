// A small deterministic generator (SplitMix64): the same seed gives the same data on every machine
// and library.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace moejit::oracle {

class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}

  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  /// In [0, limit); the bias of the multiplication is below limit / 2^64.
  uint64_t below(uint64_t limit) {
    return uint64_t((static_cast<unsigned __int128>(next()) * limit) >> 64);
  }
  /// In [0, 1).
  double uniform() { return double(next() >> 11) * 0x1p-53; }
  /// Mean 0, deviation about 1, within ±6: twelve uniforms, so that no library function shapes the
  /// data.
  double normal() {
    double sum = -6;
    for (int i = 0; i < 6; ++i) {
      uint64_t bits = next();
      sum += double(bits >> 32) * 0x1p-32 + double(bits & 0xffffffffu) * 0x1p-32;
    }
    return sum;
  }
  template <typename T> void shuffle(std::vector<T> &values) {
    for (size_t i = values.size(); i > 1; --i)
      std::swap(values[i - 1], values[below(i)]);
  }

private:
  uint64_t state;
};

} // namespace moejit::oracle
