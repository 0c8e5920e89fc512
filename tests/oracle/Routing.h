// How many rows each expert gets: generators for tests and benchmarks, and a strict reader of
// routing files.
#pragma once

#include "runtime/Result.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace moejit::oracle {

/// A way to share rows among experts.
struct Routing {
  enum class Kind {
    Uniform,   ///< each row picks an expert, all alike
    Skewed,    ///< Zipf: the i-th busiest expert draws in proportion to 1/i; who that is depends on
               ///< the seed
    OneExpert, ///< `expert` owns every row
    Empty,     ///< no expert owns a row
    Counts,    ///< `counts`, one for each expert; rows left over are owned by nobody
    Offsets,   ///< `offsets` as they are, legal or not
  };
  Kind kind = Kind::Uniform;
  int64_t expert = 0;
  std::vector<int64_t> counts = {};
  std::vector<int32_t> offsets = {};

  static Routing uniform() { return {Kind::Uniform}; }
  static Routing skewed() { return {Kind::Skewed}; }
  static Routing oneExpert(int64_t expert = 0) { return {Kind::OneExpert, expert}; }
  static Routing empty() { return {Kind::Empty}; }
  static Routing fromCounts(std::vector<int64_t> counts) {
    return {Kind::Counts, 0, std::move(counts)};
  }
  static Routing fromOffsets(std::vector<int32_t> offsets) {
    return {Kind::Offsets, 0, {}, std::move(offsets)};
  }
};

/// Rows of each expert; they sum to `rows` (0 for Empty, the given counts for Counts). Not for
/// Offsets.
std::vector<int64_t> drawCounts(const Routing &routing, int64_t numExperts, int64_t rows,
                                uint64_t seed);

/// Counts around the edges of a tile of `tileRows`: 0, 1, 7, half ± 1, the tile ± 1, twice the tile
/// ± 1, in an order that puts an empty expert first, last and in between.
std::vector<int64_t> edgeCounts(int64_t tileRows);

/// Reads `{"counts": [3, 0, 5]}` or `{"offsets": [0, 3, 3, 8]}`: exactly one key, integers only, at
/// most 65536 of them, counts not negative and summing below 2^31, offsets within i32. Errors:
/// ParseError with the byte position.
Result<Routing> parseRouting(std::string_view json);

} // namespace moejit::oracle
