// Reads the list of specs; the table of routings.
#include "tests/gpu/Cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <fstream>

namespace moejit::gpu {

using oracle::ProblemOptions;
using oracle::Routing;

bool Case::isIn(std::string_view group) const {
  std::string_view rest = groups;
  while (!rest.empty()) {
    size_t end = rest.find(' ');
    if (rest.substr(0, end) == group)
      return true;
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  return false;
}

Result<std::vector<Case>> readCases(const std::string &folder) {
  std::string path = folder + "/specs.tsv";
  std::ifstream in(path);
  if (!in)
    return Error{ErrorCode::IoError,
                 fmt::format("{} cannot be read", path),
                 {"make the folder with moejit-gpu-bundle"}};
  std::vector<Case> cases;
  std::string line;
  while (std::getline(in, line)) {
    size_t first = line.find('\t');
    size_t second = first == std::string::npos ? first : line.find('\t', first + 1);
    if (second == std::string::npos)
      return Error{ErrorCode::ParseError,
                   fmt::format("{}, line {}: expected three columns", path, cases.size() + 1),
                   {}};
    Result<Spec> spec = parseSpec(std::string_view(line).substr(second + 1));
    if (!spec)
      return spec.error();
    cases.push_back({line.substr(0, first), line.substr(first + 1, second - first - 1), *spec});
  }
  return cases;
}

namespace {

int64_t sumOf(const std::vector<int64_t> &counts) {
  int64_t sum = 0;
  for (int64_t count : counts)
    sum += count;
  return sum;
}

/// `counts` as far as there are experts, then experts without rows.
RoutingCase counted(std::string name, std::vector<int64_t> counts, int64_t numExperts,
                    bool isQuick = false) {
  counts.resize(size_t(numExperts), 0);
  int64_t rows = sumOf(counts);
  return {std::move(name), rows, Routing::fromCounts(std::move(counts)), {}, isQuick};
}

/// `offsets` for as many experts as there are; the last one repeats.
RoutingCase bounded(std::string name, int64_t rows, std::vector<int32_t> offsets,
                    int64_t numExperts, bool isQuick = false) {
  int32_t last = offsets.back();
  offsets.resize(size_t(numExperts + 1), last);
  return {std::move(name), rows, Routing::fromOffsets(std::move(offsets)), {}, isQuick};
}

ProblemOptions unowned(int64_t leading, int64_t trailing) {
  ProblemOptions options;
  options.leadingRows = leading;
  options.trailingRows = trailing;
  return options;
}

/// `counts` of as many experts as there are in buffers of `spec`, counted past the end again.
RoutingCase masked(std::string name, const Spec &spec, std::vector<int64_t> counts,
                   bool isQuick = false) {
  std::vector<int64_t> all;
  for (int64_t e = 0; e < spec.numExperts; ++e)
    all.push_back(std::min(counts[size_t(e) % counts.size()], spec.maxRows));
  return {std::move(name),
          spec.numExperts * spec.maxRows,
          Routing::fromCounts(std::move(all)),
          {},
          isQuick};
}

ProblemOptions padded(const Spec &spec) {
  ProblemOptions options;
  options.xPadBytes = 48;
  options.yPadElements = 24;
  // Scales that do not vary along K are vectors: they have no rows to pad.
  options.xScalePad = spec.xScales.kGranule() != 0 ? 5 : 0;
  return options;
}

std::vector<RoutingCase> maskedRoutings(const Spec &spec) {
  std::vector<RoutingCase> all;
  int64_t most = spec.maxRows;
  all.push_back(masked("all buffers full", spec, {most}));
  all.push_back(masked("all buffers empty", spec, {0}, true));
  all.push_back(masked("one row", spec, {0, 0, 1, 0, 0, 0}, true));
  all.push_back(masked("one expert has all rows", spec, {0, most, 0, 0, 0, 0}));
  all.push_back(masked("tile 64 ± 1", spec, {63, 64, 65, 1, 0, 62}, true));
  all.push_back(masked("tile 128 ± 1", spec, {127, 128, 129, 0, 1, 126}, true));
  all.push_back(masked("uneven", spec, {most - 1, 7, 0, most, 30, 100}));
  // The kernel sees what follows; makeProblem must know what comes of it.
  RoutingCase outOfRange = masked("counts out of range", spec, {0, most, most, 0, 5, most}, true);
  const int32_t raw[] = {-7, int32_t(most + 1), INT32_MAX, INT32_MIN, 5, int32_t(2 * most)};
  for (int64_t e = 0; e < spec.numExperts; ++e)
    outOfRange.rawCounts.push_back(raw[e % 6]);
  all.push_back(std::move(outOfRange));
  RoutingCase strided = masked("padded strides", spec, {20, most, 3, 0, 100, 64}, true);
  strided.options = padded(spec);
  all.push_back(std::move(strided));
  return all;
}

} // namespace

oracle::HostProblem makeProblem(const Case &entry, const RoutingCase &routing, uint64_t seed) {
  oracle::HostProblem problem =
      oracle::makeProblem(entry.spec, routing.rows, routing.routing, seed, routing.options);
  if (!routing.rawCounts.empty())
    problem.counts = routing.rawCounts;
  return problem;
}

std::vector<RoutingCase> routingsOf(const Case &entry) {
  const Spec &spec = entry.spec;
  int64_t experts = spec.numExperts;
  std::vector<RoutingCase> all;
  if (spec.dispatch == Dispatch::Eager) {
    for (int64_t rows : {1, 2, 63, 64, 65, 127, 128, 129, 257, 384})
      all.push_back({fmt::format("{} row{}", rows, rows == 1 ? "" : "s"),
                     rows,
                     Routing::uniform(),
                     {},
                     rows == 1 || rows == 129});
    all.push_back({"padded strides", 200, Routing::uniform(), padded(spec), true});
    return all;
  }
  if (spec.dispatch == Dispatch::Masked)
    return maskedRoutings(spec);
  if (entry.isIn("many")) {
    all.push_back({"uniform", 700, Routing::uniform()});
    all.push_back({"skewed", 900, Routing::skewed()});
    all.push_back({"one row", 1, Routing::oneExpert(experts - 1)});
    all.push_back({"no row owned", 130, Routing::empty()});
    return all;
  }
  all.push_back({"uniform", 300, Routing::uniform()});
  all.push_back({"no row owned", 70, Routing::empty(), {}, true});
  all.push_back({"one row", 1, Routing::oneExpert(experts / 2), {}, true});
  all.push_back(counted("empty experts", {0, 37, 0, 0, 90, 0}, experts, true));
  all.push_back({"one expert owns all", 260, Routing::oneExpert(experts - 1)});
  all.push_back(counted("tile 64 ± 1", {63, 64, 65, 1, 0, 62}, experts, true));
  all.push_back(counted("tile 128 ± 1", {127, 128, 129, 0, 1, 126}, experts, true));
  all.push_back(counted("tile 256 ± 1", {257, 0, 255, 3, 256, 1}, experts));
  all.push_back({"skewed", 400, Routing::skewed()});
  if (spec.dispatch == Dispatch::Batched) {
    // Rows lie in any order; there are no boundaries to be wrong.
    RoutingCase some =
        counted("rows of nobody among the others", {3, 64, 0, 20, 0, 1}, experts, true);
    some.rows += 41;
    all.push_back(std::move(some));
    all.push_back({"as many rows as can be", batchedRowLimit, Routing::skewed()});
    all.push_back({"padded strides", 200, Routing::uniform(), padded(spec), true});
    return all;
  }
  all.push_back({"leading rows unowned", 190, Routing::uniform(), unowned(37, 0)});
  all.push_back({"trailing rows unowned", 290, Routing::uniform(), unowned(0, 131)});
  all.push_back({"both ends unowned", 280, Routing::uniform(), unowned(129, 70), true});
  all.push_back(bounded("offsets decreasing", 220, {0, 100, 50, 120, 119, 90, 200}, experts, true));
  all.push_back(bounded("offsets negative", 160, {INT32_MIN, -5, 30, 60, -1, 150, 155}, experts));
  all.push_back(bounded("offsets too large", 150, {0, 50, 100, 151, INT32_MAX, INT32_MAX, 100000},
                        experts, true));
  all.push_back(bounded("all offsets past the end", 90, {91, 400, INT32_MAX, 200}, experts));
  all.push_back({"padded strides", 200, Routing::uniform(), padded(spec), true});
  return all;
}

} // namespace moejit::gpu
