// Names of a Spec's enumerations and the arithmetic of scale layouts. The canonical text is in
// SpecText.cpp.
#include "runtime/Spec.h"

#include <algorithm>
#include <iterator>

namespace moejit {

namespace {

/// One name of an enumerator; tables of these are the only place that spells them.
template <typename Enum> struct Named {
  Enum value;
  const char *name;
};

constexpr Named<ElementType> elementTypes[] = {
    {ElementType::F8E4M3FN, "f8E4M3FN"},
    {ElementType::F8E5M2, "f8E5M2"},
    {ElementType::F8E8M0FNU, "f8E8M0FNU"},
    {ElementType::BF16, "bf16"},
    {ElementType::F16, "f16"},
    {ElementType::F32, "f32"},
    {ElementType::I32, "i32"},
};
constexpr Named<Dispatch> dispatches[] = {
    {Dispatch::Eager, "eager"},
    {Dispatch::Batched, "batched"},
    {Dispatch::Grouped, "grouped"},
    {Dispatch::Masked, "masked"},
};
constexpr Named<ScaleSource> sources[] = {
    {ScaleSource::Static, "static"},
    {ScaleSource::Dynamic, "dynamic"},
};
constexpr Named<ScaleOrder> orders[] = {
    {ScaleOrder::RowMajor, "row_major"},
    {ScaleOrder::MnMajor, "mn_major"},
};
constexpr Named<Accumulate> accumulates[] = {
    {Accumulate::Exact, "exact"},
    {Accumulate::Fast, "fast"},
};
constexpr Named<Computation> computations[] = {
    {Computation::Gemm, "gemm"},
    {Computation::Quantize, "quantize"},
};
constexpr Named<Skipped> skippeds[] = {
    {Skipped::Zeroed, "zeroed"},
    {Skipped::Untouched, "untouched"},
};

template <typename Enum, size_t size>
const char *nameIn(const Named<Enum> (&table)[size], Enum value) {
  for (const Named<Enum> &entry : table)
    if (entry.value == value)
      return entry.name;
  return "?";
}

template <typename Enum, size_t size>
std::optional<Enum> valueIn(const Named<Enum> (&table)[size], std::string_view name) {
  for (const Named<Enum> &entry : table)
    if (entry.name == name)
      return entry.value;
  return std::nullopt;
}

int64_t ceilDiv(int64_t dividend, int64_t divisor) {
  return dividend / divisor + (dividend % divisor > 0);
}

/// Scales that cover `extent` elements, of which the first lies `phase` elements inside its
/// granule.
int64_t scalesAlong(int64_t extent, const Granule &granule, int64_t phase, int64_t numExperts) {
  switch (granule.kind) {
  case Granule::Kind::Whole:
    return 1;
  case Granule::Kind::Expert:
    return numExperts;
  case Granule::Kind::Extent:
    break;
  }
  if (granule.extent < 1)
    return 0;
  if (extent < 0)
    return -1;
  // Unsigned, so that no extents overflow; a phase outside the granule is refused by rule MJ017,
  // and counts as 0.
  bool isInside = phase >= 0 && phase < granule.extent;
  uint64_t covered = static_cast<uint64_t>(extent) + static_cast<uint64_t>(isInside ? phase : 0);
  uint64_t size = static_cast<uint64_t>(granule.extent);
  return static_cast<int64_t>(covered / size + (covered % size != 0));
}

} // namespace

const char *elementTypeName(ElementType type) { return nameIn(elementTypes, type); }
std::optional<ElementType> parseElementType(std::string_view name) {
  return valueIn(elementTypes, name);
}
const char *dispatchName(Dispatch dispatch) { return nameIn(dispatches, dispatch); }
std::optional<Dispatch> parseDispatch(std::string_view name) { return valueIn(dispatches, name); }
const char *scaleSourceName(ScaleSource source) { return nameIn(sources, source); }
std::optional<ScaleSource> parseScaleSource(std::string_view name) {
  return valueIn(sources, name);
}
const char *scaleOrderName(ScaleOrder order) { return nameIn(orders, order); }
std::optional<ScaleOrder> parseScaleOrder(std::string_view name) { return valueIn(orders, name); }
const char *accumulateName(Accumulate accumulate) { return nameIn(accumulates, accumulate); }
std::optional<Accumulate> parseAccumulate(std::string_view name) {
  return valueIn(accumulates, name);
}
const char *computationName(Computation computation) { return nameIn(computations, computation); }
std::optional<Computation> parseComputation(std::string_view name) {
  return valueIn(computations, name);
}
const char *skippedName(Skipped skipped) { return nameIn(skippeds, skipped); }
std::optional<Skipped> parseSkipped(std::string_view name) { return valueIn(skippeds, name); }

int64_t elementBytes(ElementType type) {
  switch (type) {
  case ElementType::F8E4M3FN:
  case ElementType::F8E5M2:
  case ElementType::F8E8M0FNU:
    return 1;
  case ElementType::BF16:
  case ElementType::F16:
    return 2;
  case ElementType::F32:
  case ElementType::I32:
    break;
  }
  return 4;
}

bool ScaleLayout::isPerTensor() const {
  return parts == 1 && std::all_of(granule.begin(), granule.end(), [](const Granule &entry) {
           return entry.kind == Granule::Kind::Whole;
         });
}

int64_t ScaleLayout::kGranule() const {
  if (granule.empty() || granule.back().kind != Granule::Kind::Extent)
    return 0;
  return granule.back().extent;
}

bool ScaleLayout::hasPhase() const {
  return std::any_of(phase.begin(), phase.end(), [](int64_t entry) { return entry != 0; });
}

int64_t ScaleLayout::phaseAt(size_t dimension) const {
  return dimension < phase.size() ? phase[dimension] : 0;
}

std::string ScaleLayout::granuleText() const {
  std::string text = "[";
  for (const Granule &entry : granule) {
    if (text.size() > 1)
      text += ", ";
    switch (entry.kind) {
    case Granule::Kind::Whole:
      text += "*";
      break;
    case Granule::Kind::Expert:
      text += "expert";
      break;
    case Granule::Kind::Extent:
      text += std::to_string(entry.extent);
      break;
    }
  }
  return text + "]";
}

ElementType ScaleLayout::storedType() const {
  return packing == 4 && type == ElementType::F8E8M0FNU ? ElementType::I32 : type;
}

std::vector<int64_t> scaleShape(const ScaleLayout &layout, const std::vector<int64_t> &dataShape,
                                int64_t numExperts) {
  std::vector<int64_t> shape = dataShape;
  if (!makeScaleShape(layout, shape, numExperts))
    shape.clear();
  return shape;
}

bool makeScaleShape(const ScaleLayout &layout, std::span<int64_t> shape, int64_t numExperts) {
  const size_t rank = shape.size();
  if (layout.granule.size() != rank)
    return false;
  for (size_t i = 0; i < rank; ++i) {
    int64_t parts = i + 2 == rank ? std::clamp<int64_t>(layout.parts, 1, int64_t(1) << 20) : 1;
    int64_t extent = shape[i] < 0 ? -1 : ceilDiv(shape[i], parts);
    int64_t phase = i < layout.phase.size() ? layout.phase[i] : 0;
    int64_t scales = scalesAlong(extent, layout.granule[i], phase, numExperts);
    // Extents that no rule allows may be too large to count.
    shape[i] = scales < 0 ? -1 : scales > INT64_MAX / parts ? INT64_MAX : scales * parts;
  }
  if (rank > 0 && layout.packing > 1 && shape.back() > 0)
    shape.back() = ceilDiv(shape.back(), layout.packing);
  if (layout.order == ScaleOrder::MnMajor && rank > 1)
    std::swap(shape[rank - 1], shape[rank - 2]);
  return rank > 0;
}

Spec quantizedGemm(const Spec &spec) {
  Spec gemm = spec;
  if (!spec.quantizeFrom)
    return gemm;
  gemm.quantizeFrom.reset();
  gemm.xScales = quantizedScales(std::move(gemm.xScales));
  return gemm;
}

ScaleLayout quantizedScales(ScaleLayout scales) {
  scales.order = ScaleOrder::RowMajor;
  scales.alignBytes = 0;
  scales.packing = 1;
  return scales;
}

Spec quantizeSpec(int64_t k, ElementType from, ElementType to, ScaleLayout scales) {
  Spec spec;
  spec.computation = Computation::Quantize;
  spec.dispatch = Dispatch::Eager;
  spec.k = k;
  spec.quantizeFrom = from;
  spec.xType = to;
  spec.xScales = std::move(scales);
  return spec;
}

std::vector<int64_t> xShape(const Spec &spec) {
  if (spec.dispatch == Dispatch::Masked)
    return {spec.numExperts, spec.maxRows, spec.k};
  return {-1, spec.k};
}

std::vector<int64_t> wShape(const Spec &spec) {
  if (spec.dispatch == Dispatch::Eager)
    return {spec.n, spec.k};
  return {spec.numExperts, spec.n, spec.k};
}

} // namespace moejit
