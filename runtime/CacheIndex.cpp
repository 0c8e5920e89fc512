// Row ranges and their text.
#include "runtime/CacheIndex.h"

#include "runtime/Sha256.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

namespace moejit {
namespace {

constexpr std::string_view header = "moejit-index 1\n";
constexpr size_t digestChars = 64;

/// A line "0 64 <name>".
std::optional<IndexedRange> parseRange(std::string_view line) {
  IndexedRange range;
  const char *end = line.data() + line.size();
  auto [afterMin, minError] = std::from_chars(line.data(), end, range.minRows);
  if (minError != std::errc() || afterMin == end)
    return std::nullopt;
  auto [afterMax, maxError] = std::from_chars(afterMin + 1, end, range.maxRows);
  if (maxError != std::errc() || afterMax == end)
    return std::nullopt;
  range.name.assign(afterMax + 1, end);
  if (range.name.size() != digestChars || range.name.find('/') != std::string::npos)
    return std::nullopt;
  return range;
}

} // namespace

std::vector<IndexedRange> withRange(const std::vector<IndexedRange> &ranges, IndexedRange added) {
  std::vector<IndexedRange> result;
  for (const IndexedRange &range : ranges) {
    if (range.minRows < added.minRows)
      result.push_back({range.minRows, std::min(range.maxRows, added.minRows - 1), range.name});
    if (range.maxRows > added.maxRows)
      result.push_back({std::max(range.minRows, added.maxRows + 1), range.maxRows, range.name});
  }
  result.push_back(std::move(added));
  std::sort(result.begin(), result.end(),
            [](const IndexedRange &a, const IndexedRange &b) { return a.minRows < b.minRows; });
  return result;
}

std::string indexText(const CacheIndex &index) {
  std::string body = fmt::format("{}{}\n{}", header, index.ranges.size(), index.lookupKey);
  for (const IndexedRange &range : index.ranges)
    body += fmt::format("\n{} {} {}", range.minRows, range.maxRows, range.name);
  return fmt::format("{}\n{}\n", sha256Hex(body), body);
}

std::optional<CacheIndex> parseIndex(std::string_view text) {
  if (text.size() < digestChars + 2 || text[digestChars] != '\n' || text.back() != '\n')
    return std::nullopt;
  std::string_view body = text.substr(digestChars + 1, text.size() - digestChars - 2);
  if (sha256Hex(body) != text.substr(0, digestChars) || body.substr(0, header.size()) != header)
    return std::nullopt;
  std::string_view rest = body.substr(header.size());
  uint64_t count = 0;
  auto [afterCount, error] = std::from_chars(rest.data(), rest.data() + rest.size(), count);
  if (error != std::errc() || afterCount == rest.data() + rest.size() || count > body.size())
    return std::nullopt;
  rest.remove_prefix(size_t(afterCount - rest.data()) + 1);
  // Ranges are the last lines; what stands before them is the key, which has lines of its own.
  CacheIndex index;
  for (uint64_t i = 0; i < count; ++i) {
    size_t line = rest.rfind('\n');
    std::optional<IndexedRange> range =
        line == std::string_view::npos ? std::nullopt : parseRange(rest.substr(line + 1));
    if (!range)
      return std::nullopt;
    index.ranges.push_back(std::move(*range));
    rest = rest.substr(0, line);
  }
  std::reverse(index.ranges.begin(), index.ranges.end());
  int64_t least = 0;
  for (const IndexedRange &range : index.ranges) {
    // withRange leaves none like these: two kernels would serve one row count, or none.
    bool isNext = range.minRows >= least && range.maxRows >= range.minRows;
    if (!isNext || (range.maxRows == INT64_MAX && &range != &index.ranges.back()))
      return std::nullopt;
    least = range.maxRows == INT64_MAX ? INT64_MAX : range.maxRows + 1;
  }
  index.lookupKey = std::string(rest);
  // Made again from its parts, the text must come out the same: that is the check of the rest.
  if (indexText(index) != text)
    return std::nullopt;
  return index;
}

} // namespace moejit
