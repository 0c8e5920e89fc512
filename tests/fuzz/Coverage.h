// Which code an input reaches, where the target was built with -fsanitize-coverage=trace-pc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fuzz {

/// Counts of basic blocks entered since reset(), by a hash of their address. Not thread-safe: a
/// fuzz process has one thread.
class Coverage {
public:
  static constexpr size_t slots = 1 << 16;

  /// Forgets the counts of the last input.
  static void reset();
  /// Takes the counts of this input in; the number of slots whose count reached a new power of two.
  size_t takeIn();
  /// Slots seen so far; 0 where the target was built without instrumentation.
  size_t seenSlots() const { return reached; }

private:
  std::vector<uint8_t> seen = std::vector<uint8_t>(slots); ///< bit i: a count of 2^i to 2^(i+1) - 1
  size_t reached = 0;
};

} // namespace fuzz
