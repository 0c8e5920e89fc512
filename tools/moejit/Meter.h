// How far a long piece of work is: count, rate and time left, on stderr.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

namespace moejit::tool {

/// Counts steps and says so at most every `everySeconds` seconds, and at the end where it said
/// anything. Thread-safe.
class Meter {
public:
  Meter(std::string text, int64_t total, double everySeconds = 2);
  ~Meter();
  /// One step is done; `note` is what it was.
  void step(const std::string &note = {});

private:
  std::mutex mutex;
  std::string text;
  int64_t total, count = 0;
  double begin, said, every;
  bool isSaid = false;
};

} // namespace moejit::tool
