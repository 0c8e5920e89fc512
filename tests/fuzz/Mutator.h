// Makes inputs out of inputs. Knows no format; words and numbers are what it sees in all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace fuzz {

/// Deterministic for a seed and the same calls.
class Mutator {
public:
  /// `words` are put into inputs; none may be empty.
  Mutator(uint64_t seed, std::vector<std::string> words) : random(seed), words(std::move(words)) {}

  /// `input` with one to eight changes, at most `maxBytes` long. `other` gives pieces.
  std::string mutate(std::string input, const std::string &other, size_t maxBytes);
  /// A number in [0, end); `end` must not be 0.
  size_t below(size_t end) { return size_t(random() % end); }

private:
  void changeOnce(std::string &text, const std::string &other);
  void changeNumber(std::string &text);

  std::mt19937_64 random;
  std::vector<std::string> words;
};

/// The words of `texts` (runs of letters, digits and _) without repetition, at most `most`.
std::vector<std::string> wordsOf(const std::vector<std::string> &texts, size_t most);

} // namespace fuzz
