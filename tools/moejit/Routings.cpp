// Reads --routing.
#include "tools/moejit/Routings.h"

#include "tools/moejit/Input.h"
#include "tools/moejit/Options.h"

#include <fmt/format.h>

#include <array>
#include <numeric>

namespace moejit::tool {
namespace {

constexpr std::array<const char *, 5> names = {"uniform", "skewed", "exact", "one-expert", "empty"};

Error usage(std::string message, std::vector<std::string> notes = {}) {
  return Error{ErrorCode::InvalidArgument, std::move(message), std::move(notes)};
}

} // namespace

std::string routingNames() { return fmt::format("{}", fmt::join(names, ", ")); }

Result<oracle::Routing> readRouting(const std::string &text, const Spec &spec, int64_t rows) {
  if (text == "uniform")
    return oracle::Routing::uniform();
  if (text == "skewed")
    return oracle::Routing::skewed();
  if (text == "exact") {
    std::vector<int64_t> counts(size_t(spec.numExperts), rows / spec.numExperts);
    for (int64_t e = 0; e < rows % spec.numExperts; ++e)
      ++counts[size_t(e)];
    return oracle::Routing::fromCounts(std::move(counts));
  }
  if (text == "one-expert")
    return oracle::Routing::oneExpert();
  if (text == "empty")
    return oracle::Routing::empty();
  bool isFile = text.find('/') != std::string::npos || text.ends_with(".json");
  std::optional<std::string> near = nearest(text, {names.begin(), names.end()});
  if (!isFile)
    return usage(fmt::format("--routing takes {} or a file whose name ends in .json; got '{}'{}",
                             routingNames(), text,
                             near ? fmt::format(". Did you mean '{}'?", *near) : ""));
  Result<std::string> json = readFile(text, 4 << 20);
  if (!json)
    return json.error();
  Result<oracle::Routing> routing = oracle::parseRouting(*json);
  if (!routing) {
    Error error = routing.error();
    error.message = fmt::format("{}: {}", text, error.message);
    error.notes.push_back(R"(a routing reads {"counts": [3, 0, 5]} or {"offsets": [0, 3, 3, 8]})");
    return error;
  }
  if (spec.dispatch == Dispatch::Eager)
    return usage(
        fmt::format("{}: an eager kernel takes no routing, all rows are its expert's", text));
  bool isOffsets = routing->kind == oracle::Routing::Kind::Offsets;
  int64_t size = isOffsets ? int64_t(routing->offsets.size()) : int64_t(routing->counts.size());
  int64_t expected = spec.numExperts + (isOffsets ? 1 : 0);
  if (size != expected)
    return usage(fmt::format("{}: {} {}, expected {} for {} experts", text, size,
                             isOffsets ? "offsets" : "counts", expected, spec.numExperts));
  if (isOffsets && spec.dispatch != Dispatch::Grouped)
    return usage(fmt::format("{}: only grouped kernels read offsets", text));
  int64_t sum = std::accumulate(routing->counts.begin(), routing->counts.end(), int64_t(0));
  if (sum > rows)
    return usage(fmt::format("{}: the counts sum to {}, more than --tokens {}", text, sum, rows));
  return routing;
}

} // namespace moejit::tool
