// Entry point. Besides doctest's own options:
//   --whole        everything as often as docs/results/torture.md says; else a sample, in seconds
//   --report=FILE  the counters as a table
#include "tests/torture/Torture.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <unistd.h>

namespace {

bool isWhole = false;
std::vector<std::pair<std::string, int64_t>> counters;

} // namespace

namespace moejit::torture {

int times(int whole, int sample) { return isWhole ? whole : sample; }

void count(const std::string &what, int64_t howMany) {
  auto found = std::find_if(counters.begin(), counters.end(),
                            [&](const auto &counter) { return counter.first == what; });
  if (found == counters.end())
    counters.emplace_back(what, howMany);
  else
    found->second += howMany;
}

} // namespace moejit::torture

int main(int argumentCount, char **arguments) {
  std::string report;
  for (int i = 1; i < argumentCount; ++i) {
    std::string word = arguments[i];
    isWhole |= word == "--whole";
    if (word.compare(0, 9, "--report=") == 0)
      report = word.substr(9);
  }
  // Thousands of folders with their fsyncs are for memory, where it can be had.
  if (!std::getenv("TMPDIR") && access("/dev/shm", W_OK) == 0)
    setenv("TMPDIR", "/dev/shm", 1);
  doctest::Context context(argumentCount, arguments);
  moejit::torture::Stopwatch watch;
  int status = context.run();
  if (context.shouldExit())
    return status;
  std::string table = "| counter | |\n|---|---:|\n";
  for (const auto &[what, howMany] : counters)
    table += "| " + what + " | " + std::to_string(howMany) + " |\n";
  std::printf("%sin %.1f s\n", table.c_str(), watch.seconds());
  if (!report.empty())
    std::ofstream(report) << table;
  return status;
}
