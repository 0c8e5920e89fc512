// Reads the error words of a checked launch.
#include "runtime/Checks.h"

#include <fmt/format.h>

#include <algorithm>

namespace moejit {
namespace {

/// " (expert 3)" where stored scales of one expert follow those of the one before, else nothing.
std::string expertOf(const ScaleLayout &layout, const std::vector<int64_t> &dataShape,
                     int64_t numExperts, int64_t index) {
  std::vector<int64_t> shape = scaleShape(layout, dataShape, numExperts);
  if (numExperts == 1 || shape.empty() || shape[0] != numExperts)
    return "";
  int64_t each = 1;
  for (size_t d = 1; d < shape.size(); ++d)
    each *= shape[d];
  // Rows that an alignment pads, or the launch strides, make an expert's part longer.
  if (each <= 0 || layout.alignBytes > 0 || index / each >= numExperts)
    return "";
  return fmt::format(" (expert {})", index / each);
}

std::string sentence(const Spec &spec, const CheckFinding &finding) {
  switch (finding.kind) {
  case CheckKind::OffsetRange:
    return fmt::format("offsets: entry {} lies outside the rows", finding.index);
  case CheckKind::OffsetOrder:
    return fmt::format("offsets: entry {} is less than the one before", finding.index);
  case CheckKind::CountRange:
    return fmt::format("counts: that of expert {} is not from 0 to {}", finding.index,
                       spec.maxRows);
  case CheckKind::IdRange:
    return spec.expertMapSize > 0
               ? fmt::format("expertIds: that of row {} is neither -1 nor below the {} of the map",
                             finding.index, spec.expertMapSize)
               : fmt::format("expertIds: that of row {} is below -1", finding.index);
  case CheckKind::MapRange:
    return fmt::format("expertMap: entry {} is neither -1 nor one of {} experts", finding.index,
                       spec.numExperts);
  case CheckKind::XScale:
    return fmt::format("xScales: element {}{} is not positive and finite", finding.index,
                       spec.dispatch == Dispatch::Grouped && !spec.xScales.granule.empty() &&
                               spec.xScales.granule[0].kind == Granule::Kind::Expert
                           ? fmt::format(" (expert {})", finding.index)
                           : "");
  case CheckKind::WScale:
    return fmt::format("wScales: element {}{} is not positive and finite", finding.index,
                       expertOf(spec.wScales, wShape(spec), spec.numExperts, finding.index));
  }
  return "";
}

} // namespace

std::vector<CheckFinding> checkFindings(std::span<const int64_t> words) {
  std::vector<CheckFinding> findings;
  for (int64_t kind = 0; kind < std::min<int64_t>(numCheckKinds, int64_t(words.size())); ++kind)
    if (words[size_t(kind)] > 0) // a kernel raises words from zero
      findings.push_back({CheckKind(kind), checkWord(words[size_t(kind)])});
  return findings;
}

std::string describeChecks(const Spec &spec, std::span<const int64_t> words) {
  std::string text;
  for (const CheckFinding &finding : checkFindings(words))
    text += (text.empty() ? "" : "; ") + sentence(spec, finding);
  return text;
}

} // namespace moejit
