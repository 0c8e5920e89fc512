// The way from combinations to counts, and to a covering set.
#include "tests/pipeline/MatrixCensus.h"

#include "runtime/Rules.h"

#include <fmt/format.h>

#include <bitset>
#include <memory>

namespace moejit::test::matrix {

namespace {

/// Pairs of a value of one factor and a value of another, numbered.
class Pairs {
public:
  static constexpr int mostLevels = 16;
  static constexpr size_t count = size_t(FactorCount * FactorCount) * mostLevels * mostLevels;

  template <typename Visit> static void each(const Choice &choice, Visit visit) {
    for (int a = 0; a < FactorCount; ++a)
      for (int b = a + 1; b < FactorCount; ++b)
        visit(size_t(((a * FactorCount + b) * mostLevels + choice[a]) * mostLevels + choice[b]));
  }
  void add(const Choice &choice) {
    each(choice, [&](size_t pair) { members.set(pair); });
  }
  void remove(const Choice &choice) {
    each(choice, [&](size_t pair) { members.reset(pair); });
  }
  int64_t common(const Choice &choice) const {
    int64_t sum = 0;
    each(choice, [&](size_t pair) { sum += members[pair]; });
    return sum;
  }
  bool empty() const { return members.none(); }

private:
  std::bitset<count> members;
};

} // namespace

void Census::add(const Census &other) {
  combinations += other.combinations;
  for (const auto &[id, count] : other.refused)
    refused[id] += count;
  legal.insert(legal.end(), other.legal.begin(), other.legal.end());
}

Census takeCensus(int64_t first, int64_t step, std::string &problem) {
  Census census;
  for (int64_t index = first; index < numLayouts(); index += step) {
    Choice choice = choiceAt(index);
    ++census.combinations;
    std::vector<Violation> violations = checkSpec(specOf(choice), Target());
    if (violations.empty()) {
      census.legal.push_back(choice);
      continue;
    }
    if (!findRule(violations.front().ruleId) || violations.front().message.empty())
      problem = fmt::format("refused without a reason: {}", canonicalText(specOf(choice)));
    ++census.refused[violations.front().ruleId];
  }
  return census;
}

std::vector<Choice> coveringSet(const std::vector<Choice> &legal) {
  auto missing = std::make_unique<Pairs>();
  for (const Choice &choice : legal)
    missing->add(choice);
  std::vector<Choice> chosen;
  oracle::Random random(2);
  // Where chance finds nothing more, what is left is looked for in order.
  size_t next = 0;
  while (!missing->empty()) {
    Choice best{};
    int64_t most = 0;
    for (int i = 0; i < 300; ++i) {
      const Choice &choice = legal[random.below(legal.size())];
      if (int64_t gain = missing->common(choice); gain > most) {
        most = gain;
        best = choice;
      }
    }
    for (; most == 0 && next < legal.size(); ++next)
      if (int64_t gain = missing->common(legal[next]); gain > 0) {
        most = gain;
        best = legal[next];
      }
    missing->remove(best);
    chosen.push_back(best);
  }
  return chosen;
}

} // namespace moejit::test::matrix
