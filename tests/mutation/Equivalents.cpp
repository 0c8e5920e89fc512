// Reads equivalents.txt.
#include "tests/mutation/Equivalents.h"

#include <cstdlib>
#include <fstream>
#include <regex>

namespace moejit::mutation {

std::vector<Equivalent> readEquivalents(const std::string &path) {
  std::vector<Equivalent> entries;
  std::ifstream file(path);
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.empty() || line[0] == '#')
      continue;
    std::vector<std::string> fields = {""};
    for (size_t i = 0; i < line.size(); ++i)
      if (line.compare(i, 3, " | ") == 0) {
        fields.emplace_back();
        i += 2;
      } else {
        fields.back() += line[i];
      }
    Equivalent entry;
    entry.line = number;
    if (fields.size() == 6 && (fields[4] == "any" || std::atoi(fields[4].c_str()) > 0))
      entry = {fields[0], fields[1], fields[2], fields[3], std::atoi(fields[4].c_str()),
               fields[5], number};
    entries.push_back(entry);
  }
  return entries;
}

int findEquivalent(const std::vector<Equivalent> &entries, const std::string &kernel,
                   const Mutant &mutant, std::vector<int> &used) {
  used.resize(entries.size());
  const auto fits = [](const std::string &text, const std::string &pattern) {
    return std::regex_match(text, std::regex(pattern));
  };
  for (size_t i = 0; i < entries.size(); ++i) {
    const Equivalent &entry = entries[i];
    if (entry.reason.empty() || (entry.most > 0 && used[i] == entry.most) ||
        !fits(kernel, entry.kernel) || !fits(kindName(mutant.kind), entry.kind) ||
        !fits(mutant.text, entry.text) || !fits(mutant.change, entry.change))
      continue;
    ++used[i];
    return static_cast<int>(i);
  }
  return -1;
}

} // namespace moejit::mutation
