// Counts by draw, and the reader of routing files.
#include "tests/oracle/Routing.h"

#include "tests/oracle/Random.h"

#include <algorithm>
#include <cassert>
#include <fmt/format.h>
#include <numeric>

namespace moejit::oracle {

namespace {

constexpr size_t maxEntries = 65536;

/// A reader of the two JSON forms; remembers the first thing that was wrong.
class RoutingReader {
public:
  explicit RoutingReader(std::string_view text) : text(text) {}

  Result<Routing> read() {
    expect('{');
    expect('"');
    size_t keyBegin = position;
    while (position < text.size() && text[position] >= 'a' && text[position] <= 'z')
      ++position;
    std::string_view key = text.substr(keyBegin, position - keyBegin);
    bool isCounts = key == "counts";
    if (!isCounts && key != "offsets")
      fail(keyBegin, "the key \"counts\" or \"offsets\"");
    expectHere('"');
    expect(':');
    expect('[');
    std::vector<int64_t> numbers = readNumbers(isCounts);
    expect('}');
    skipSpace();
    if (position != text.size())
      fail(position, "the end of the text");
    if (!problem.empty())
      return Error{
          ErrorCode::ParseError,
          problem,
          {"a routing file is {\"counts\": [rows of expert 0, …]} or {\"offsets\": [0, …]}"}};
    if (isCounts)
      return Routing::fromCounts(std::move(numbers));
    return Routing::fromOffsets({numbers.begin(), numbers.end()});
  }

private:
  std::vector<int64_t> readNumbers(bool isCounts) {
    std::vector<int64_t> numbers;
    int64_t sum = 0;
    skipSpace();
    if (peek() == ']') {
      fail(position, "at least one number");
      return numbers;
    }
    while (problem.empty()) {
      skipSpace();
      size_t begin = position;
      int64_t value = readInteger();
      sum += isCounts ? value : 0;
      if (isCounts && (value < 0 || sum > INT32_MAX))
        fail(begin, "counts that are not negative and sum to less than 2^31");
      if (value < INT32_MIN || value > INT32_MAX)
        fail(begin, "a 32-bit integer");
      numbers.push_back(value);
      if (numbers.size() > maxEntries)
        fail(begin, fmt::format("at most {} numbers", maxEntries));
      skipSpace();
      if (peek() == ']')
        break;
      expect(',');
    }
    expect(']');
    return numbers;
  }

  int64_t readInteger() {
    size_t begin = position;
    bool negative = peek() == '-';
    position += negative;
    size_t digits = position;
    int64_t value = 0;
    while (peek() >= '0' && peek() <= '9') {
      value = std::min<int64_t>(value * 10 + (peek() - '0'), int64_t(1) << 40);
      ++position;
    }
    bool leadingZero = position - digits > 1 && text[digits] == '0';
    if (position == digits || leadingZero || peek() == '.' || peek() == 'e' || peek() == 'E')
      fail(begin, "an integer");
    return negative ? -value : value;
  }

  char peek() const { return position < text.size() ? text[position] : '\0'; }
  void skipSpace() {
    while (peek() == ' ' || peek() == '\n' || peek() == '\t' || peek() == '\r')
      ++position;
  }
  void expect(char wanted) {
    skipSpace();
    expectHere(wanted);
  }
  void expectHere(char wanted) {
    if (position < text.size() && text[position] == wanted)
      ++position;
    else
      fail(position, fmt::format("'{}'", wanted));
  }
  void fail(size_t at, std::string_view expected) {
    if (problem.empty())
      problem = fmt::format("routing, byte {}: expected {}", at, expected);
  }

  std::string_view text;
  size_t position = 0;
  std::string problem;
};

} // namespace

std::vector<int64_t> drawCounts(const Routing &routing, int64_t numExperts, int64_t rows,
                                uint64_t seed) {
  assert(routing.kind != Routing::Kind::Offsets);
  std::vector<int64_t> counts(numExperts, 0);
  Random random(seed);
  switch (routing.kind) {
  case Routing::Kind::Uniform:
    for (int64_t r = 0; r < rows; ++r)
      ++counts[random.below(uint64_t(numExperts))];
    break;
  case Routing::Kind::Skewed: {
    std::vector<int64_t> order(numExperts);
    std::iota(order.begin(), order.end(), 0);
    random.shuffle(order);
    std::vector<double> upTo(numExperts);
    double sum = 0;
    for (int64_t i = 0; i < numExperts; ++i)
      upTo[i] = sum += 1.0 / double(i + 1);
    for (int64_t r = 0; r < rows; ++r) {
      auto found = std::upper_bound(upTo.begin(), upTo.end(), random.uniform() * sum);
      ++counts[order[std::min<int64_t>(found - upTo.begin(), numExperts - 1)]];
    }
    break;
  }
  case Routing::Kind::OneExpert:
    assert(routing.expert >= 0 && routing.expert < numExperts);
    counts[routing.expert] = rows;
    break;
  case Routing::Kind::Counts:
    assert(int64_t(routing.counts.size()) == numExperts);
    return routing.counts;
  case Routing::Kind::Empty:
  case Routing::Kind::Offsets:
    break;
  }
  return counts;
}

std::vector<int64_t> edgeCounts(int64_t tileRows) {
  int64_t half = tileRows / 2;
  return {0,
          1,
          tileRows - 1,
          7,
          0,
          tileRows,
          half - 1,
          half + 1,
          tileRows + 1,
          half,
          2 * tileRows - 1,
          2 * tileRows + 1,
          0};
}

Result<Routing> parseRouting(std::string_view json) { return RoutingReader(json).read(); }

} // namespace moejit::oracle
