// Generated faults of generated kernels, run on the emulator: each must be found, or stand in
// equivalents.txt with the reason why it changes nothing.
//
//   moejit-mutation-tests                        a sample of every kernel, as ctest runs it
//   moejit-mutation-tests --every=1              every fault of every kernel
//   … --part=0/2                                 every second kernel
//   … --kernel=NAME --faults=3,17                one kernel; of its faults these alone, by number
//   … --table=FILE --survivors --verbose         the table as Markdown; lists survivors; lists all
#define DOCTEST_CONFIG_IMPLEMENT
#include "tests/mutation/Equivalents.h"
#include "tests/mutation/Expression.h"
#include "tests/mutation/Kernels.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <set>

using namespace moejit;
using namespace moejit::mutation;

namespace {

struct Settings {
  int every = 200;         ///< one fault of so many
  int part = 0, parts = 1; ///< kernels `part`, `part` + `parts`, …
  std::string kernel, table;
  std::set<int> faults;
  bool listsSurvivors = false, listsAll = false;
};
Settings settings;

/// Counts of one kernel, by kind.
struct Tally {
  std::string kernel;
  std::array<std::array<int, outcomeCount>, kindCount> counts{};
  int equivalent = 0;
};
std::vector<Tally> tallies;
std::map<std::string, int> reasons;
std::set<int> usedEntries; ///< lines of equivalents.txt that explained something

int sumOf(const Tally &tally, Outcome outcome) {
  int sum = 0;
  for (const auto &row : tally.counts)
    sum += row[static_cast<size_t>(outcome)];
  return sum;
}

std::string table() {
  std::string text =
      "| kernel | faults | found by the emulator | deadlock | wrong values | endless "
      "| crash | equivalent | not found |\n|---|---|---|---|---|---|---|---|---|\n";
  for (const Tally &tally : tallies) {
    int all = 0;
    for (int o = 0; o < outcomeCount; ++o)
      all += sumOf(tally, static_cast<Outcome>(o));
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", tally.kernel, all,
                        sumOf(tally, Outcome::Fault), sumOf(tally, Outcome::Deadlock),
                        sumOf(tally, Outcome::Values), sumOf(tally, Outcome::Endless),
                        sumOf(tally, Outcome::Crash), tally.equivalent,
                        sumOf(tally, Outcome::Survived) - tally.equivalent);
  }
  text += "\n| kind of fault | faults | emulator | deadlock | values | endless | crash | survived "
          "|\n|---|---|---|---|---|---|---|---|\n";
  for (int k = 0; k < kindCount; ++k) {
    std::array<int, outcomeCount> row{};
    int all = 0;
    for (const Tally &tally : tallies)
      for (int o = 0; o < outcomeCount; ++o) {
        row[o] += tally.counts[k][o];
        all += tally.counts[k][o];
      }
    text +=
        fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", kindName(static_cast<Kind>(k)),
                    all, row[1], row[2], row[3], row[4], row[5], row[0]);
  }
  text += "\n| survivors | why they change nothing |\n|---|---|\n";
  for (const auto &[reason, count] : reasons)
    text += fmt::format("| {} | {} |\n", count, reason);
  return text;
}

void runKernel(const std::string &name) {
  std::vector<Equivalent> entries =
      readEquivalents(MOEJIT_SOURCE_DIR "/tests/mutation/equivalents.txt");
  for (const Equivalent &entry : entries)
    CHECK_MESSAGE(!entry.reason.empty(), "equivalents.txt, line ", entry.line,
                  ": expected kernel | kind | text | change | most | reason");
  Subject subject = makeSubject(name);
  REQUIRE(!subject.artifact.source.empty());
  CampaignOptions options;
  options.shards = settings.every;
  options.faults = settings.faults;
  options.showProgress = settings.every == 1;
  CampaignResult result = runCampaign(subject, options);
  if (!result.error.empty()) {
    FAIL_CHECK(name, ": ", result.error);
    return;
  }
  for (const std::string &line : result.unread)
    FAIL_CHECK("no fault is made in line ", line);
  Tally tally;
  tally.kernel = name;
  int found = 0;
  std::vector<int> used;
  for (const Verdict &verdict : result.verdicts) {
    if (settings.listsAll)
      std::printf("%s fault %d, line %d: %s | %s | %s => %s: %s\n", name.c_str(),
                  verdict.mutant.number, verdict.mutant.line, kindName(verdict.mutant.kind),
                  verdict.mutant.text.c_str(), verdict.mutant.change.c_str(),
                  outcomeName(verdict.outcome), verdict.message.c_str());
    ++tally.counts[static_cast<size_t>(verdict.mutant.kind)][static_cast<size_t>(verdict.outcome)];
    if (verdict.outcome != Outcome::Survived) {
      ++found;
      continue;
    }
    int index = findEquivalent(entries, name, verdict.mutant, used);
    if (index >= 0) {
      const Equivalent &entry = entries[static_cast<size_t>(index)];
      ++tally.equivalent;
      ++reasons[entry.reason];
      usedEntries.insert(entry.line);
      continue;
    }
    std::string what = fmt::format("{} | {} | {} | {}", name, kindName(verdict.mutant.kind),
                                   verdict.mutant.text, verdict.mutant.change);
    if (settings.listsSurvivors)
      std::printf("%s | fault %d, line %d\n", what.c_str(), verdict.mutant.number,
                  verdict.mutant.line);
    FAIL_CHECK("a fault is not found: line ", verdict.mutant.line, ": ", what);
  }
  CHECK((found > 0 || result.verdicts.size() < 5));
  tallies.push_back(tally);
}

} // namespace

TEST_CASE("every fault is found, or is no fault") {
  const std::vector<std::string> &names = subjectNames();
  for (size_t i = 0; i < names.size(); ++i)
    if (settings.kernel.empty() ? static_cast<int>(i) % settings.parts == settings.part
                                : settings.kernel == names[i])
      SUBCASE(names[i].c_str()) { runKernel(names[i]); }
}

TEST_CASE("every entry of equivalents.txt explains a fault") {
  if (settings.every > 1 || settings.parts > 1 || !settings.kernel.empty())
    return; // a part of the faults needs a part of the entries
  for (const Equivalent &entry :
       readEquivalents(MOEJIT_SOURCE_DIR "/tests/mutation/equivalents.txt"))
    CHECK_MESSAGE(usedEntries.count(entry.line) > 0, "equivalents.txt, line ", entry.line,
                  ": no fault needs it");
}

TEST_CASE("expressions are parsed as C does") {
  const auto printed = [](const char *text) {
    ExpressionPtr parsed = parseExpression(text);
    return parsed ? parsed->print() : "none";
  };
  CHECK(printed("a + b * c - d") == "((a + (b * c)) - d)");
  CHECK(printed("x < 4 ? x : y & -4") == "((x < 4) ? x : (y & -(4)))");
  CHECK(printed("(long long)(a + 1) * 2ll") == "((long long)((a + 1)) * 2ll)");
  CHECK(printed("phase ^ (int)v38") == "(phase ^ (int)(v38))");
  CHECK(printed("acc[0][v + 2]") == "acc[0][(v + 2)]");
  CHECK(printed("wgmma_wait<0>()") == "wgmma_wait<0>()");
  CHECK(printed("a && b || c >> 2 >= d") == "((a && b) || ((c >> 2) >= d))");
  CHECK(printed("a +") == "none");
  CHECK(printed("a b") == "none");
}

TEST_CASE("each statement has its faults, and only those") {
  const std::string source = "extern \"C\" __global__ void __launch_bounds__(32, 1)\n"
                             "moejit_kernel(void *y, int rows) {\n"
                             "  const int v0 = rows < 4 ? rows : 4;\n"
                             "  if (v0 == 2) {\n"
                             "    mbarrier_wait(v0, 1);\n"
                             "  }\n"
                             "  wgmma_wait<0>();\n"
                             "}\n";
  MutatedSource made = mutate(source);
  CHECK(made.unread.empty());
  std::vector<std::string> changes;
  for (const Mutant &mutant : made.mutants)
    changes.push_back(fmt::format("{}: {}: {}", mutant.line, kindName(mutant.kind), mutant.change));
  CHECK(changes ==
        std::vector<std::string>{"3: constant: 4 -> 8", "3: condition: first value always",
                                 "3: condition: second value always", "4: constant: 2 -> 4",
                                 "4: mask: == -> !=", "4: condition: always", "5: constant: 1 -> 2",
                                 "5: phase: other parity", "5: wait: left out",
                                 "7: wait: one group more may be under way", "7: wait: left out"});
  std::set<int> numbers;
  for (const Mutant &mutant : made.mutants)
    numbers.insert(mutant.number);
  CHECK(numbers.size() == made.mutants.size());
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    const auto value = [&](const char *option) {
      return argument.compare(0, std::strlen(option), option) == 0
                 ? argument.substr(std::strlen(option))
                 : std::string();
    };
    if (std::string every = value("--every="); !every.empty())
      settings.every = std::max(1, std::atoi(every.c_str()));
    if (std::string part = value("--part="); !part.empty())
      std::sscanf(part.c_str(), "%d/%d", &settings.part, &settings.parts);
    if (std::string kernel = value("--kernel="); !kernel.empty())
      settings.kernel = kernel;
    if (std::string list = value("--faults="); !list.empty())
      for (size_t at = 0; at < list.size(); at = std::min(list.find(',', at), list.size() - 1) + 1)
        settings.faults.insert(std::atoi(list.c_str() + at));
    if (std::string file = value("--table="); !file.empty())
      settings.table = file;
    settings.listsSurvivors |= argument == "--survivors";
    settings.listsAll |= argument == "--verbose";
  }
  doctest::Context context(argc, argv);
  int status = context.run();
  if (context.shouldExit())
    return status;
  if (!tallies.empty())
    std::printf("%s", table().c_str());
  if (!settings.table.empty())
    std::ofstream(settings.table) << table();
  return status;
}
