// Predicates of the contract's rules (MJ0xx). Each says what is, what is expected and the nearest
// thing that works.
#include "runtime/RuleChecks.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

namespace moejit::rules {

namespace {

struct Side {
  RuleSubject subject;
  const ScaleLayout &layout;
  size_t rank; ///< dimensions of the data
};

/// The operands with scales, x first.
std::vector<Side> sides(const Spec &spec) {
  if (spec.computation == Computation::Quantize)
    return {{RuleSubject::X, spec.xScales, xShape(spec).size()}};
  return {{RuleSubject::X, spec.xScales, xShape(spec).size()},
          {RuleSubject::W, spec.wScales, wShape(spec).size()}};
}

bool hasRank(const Side &side) { return side.layout.granule.size() == side.rank; }

bool isWhole(const Granule &granule) { return granule.kind == Granule::Kind::Whole; }

/// "K is 7170, expected a multiple of 16" with the next legal value as a note.
void checkMultiple(RuleSubject subject, const char *name, int64_t value, int64_t factor,
                   Report &report) {
  if (value > 0 && value % factor == 0)
    return;
  std::vector<std::string> notes;
  if (value <= maxExtent) {
    int64_t next = value <= 0 ? factor : value - value % factor + factor;
    notes.push_back(fmt::format("the next legal value is {}: pad {} with zeros", next, name));
  }
  report.add(subject,
             fmt::format("{} is {}, expected a positive multiple of {}", name, value, factor),
             std::move(notes));
}

} // namespace

void batchedIsDynamic(const Spec &spec, const Target &, Report &report) {
  if (spec.dispatch != Dispatch::Batched || spec.xScales.source != ScaleSource::Static)
    return;
  report.add(
      RuleSubject::X, "batched takes dynamic activation scales, got static",
      {"'eager' consumes static scales, one expert at a time",
       "'grouped' takes one static scale per tensor (granule = [*, *]) or per expert "
       "(granule = [expert, *])",
       "or use a dynamic scheme: source = dynamic, scales computed from the live activations"});
}

void staticIsCoarse(const Spec &spec, const Target &, Report &report) {
  const ScaleLayout &layout = spec.xScales;
  size_t rank = xShape(spec).size();
  if (layout.source != ScaleSource::Static || layout.granule.size() != rank)
    return;
  const Granule &rows = layout.granule[rank - 2];
  bool coversRows = isWhole(rows) || rows.kind == Granule::Kind::Expert;
  if (coversRows && isWhole(layout.granule[rank - 1]))
    return;
  bool isMasked = spec.dispatch == Dispatch::Masked;
  report.add(
      RuleSubject::X,
      fmt::format("a static activation scale is per tensor or per expert, got granule = {}",
                  layout.granuleText()),
      {fmt::format("one static scale per tensor: granule = {}", isMasked ? "[*, *, *]" : "[*, *]"),
       fmt::format("one static scale per expert: granule = {}",
                   isMasked ? "[1, *, *]" : "[expert, *]"),
       "this granule with scales computed from the live activations: source = dynamic"});
}

void stepAlongK(const Spec &spec, const Target &, Report &report) {
  int64_t x = spec.xScales.kGranule();
  int64_t w = spec.wScales.kGranule();
  if (x < 0 || w < 0)
    return;
  int64_t difference = 0;
  if (x > 0 && w > 0) {
    int64_t xPhase = spec.xScales.kPhase();
    int64_t wPhase = spec.wScales.kPhase();
    if (xPhase < 0 || wPhase < 0)
      return; // phases have a rule of their own
    difference = xPhase - wPhase;
  }
  int64_t step = std::gcd(std::gcd(x, w), difference);
  if (step % 32 == 0)
    return;
  std::vector<std::string> notes = {
      "granules along K that are multiples of 32 work, such as 32 or 128"};
  if (difference % 32 != 0)
    notes.push_back(
        "shard K at a multiple of 32, so that both phases agree up to a multiple of 32");
  auto extentText = [](int64_t extent) {
    return extent == 0 ? std::string("*") : std::to_string(extent);
  };
  report.add(
      RuleSubject::Gemm,
      fmt::format("the step along K is {}, expected a multiple of 32: it is the greatest common "
                  "divisor of the K granules {} of x and {} of w and the phase difference {}",
                  step, extentText(x), extentText(w), std::abs(difference)),
      std::move(notes));
}

std::string typeMessage(RuleSubject subject, std::string_view name) {
  return fmt::format("{} has element type {}, expected {}", ruleSubjectName(subject), name,
                     subject == RuleSubject::Y ? "bf16, f16 or f32" : "f8E4M3FN or f8E5M2");
}

void operandTypes(const Spec &spec, const Target &, Report &report) {
  auto check = [&](RuleSubject subject, ElementType type) {
    if (type == ElementType::F8E4M3FN || type == ElementType::F8E5M2)
      return;
    std::vector<std::string> notes;
    if (type == ElementType::BF16 || type == ElementType::F16 || type == ElementType::F32)
      notes.push_back(fmt::format("quantize {} to f8E4M3FN first", ruleSubjectName(subject)));
    report.add(subject, typeMessage(subject, elementTypeName(type)), std::move(notes));
  };
  check(RuleSubject::X, spec.xType);
  check(RuleSubject::W, spec.wType);
}

void outputType(const Spec &spec, const Target &, Report &report) {
  ElementType type = spec.outType;
  if (type != ElementType::BF16 && type != ElementType::F16 && type != ElementType::F32)
    report.add(RuleSubject::Y, typeMessage(RuleSubject::Y, elementTypeName(type)),
               {"write bf16 and quantize in a step of its own"});
}

void scaleType(const Spec &spec, const Target &, Report &report) {
  for (const Side &side : sides(spec)) {
    ElementType type = side.layout.type;
    if (type != ElementType::F32 && type != ElementType::F8E8M0FNU)
      report.add(side.subject,
                 fmt::format("scales of {} have type {}, expected f32 or f8E8M0FNU",
                             ruleSubjectName(side.subject), elementTypeName(type)),
                 {"widen them to f32: every bf16 and f16 value is one"});
  }
}

void multipleOfK(const Spec &spec, const Target &, Report &report) {
  checkMultiple(RuleSubject::Gemm, "K", spec.k, 16, report);
}

void multipleOfN(const Spec &spec, const Target &, Report &report) {
  checkMultiple(RuleSubject::W, "N", spec.n, 8, report);
}

void granuleRank(const Spec &spec, const Target &, Report &report) {
  for (const Side &side : sides(spec))
    if (!hasRank(side))
      report.add(
          side.subject,
          fmt::format("the granule of {} has {} entries, expected {}: one for each dimension",
                      ruleSubjectName(side.subject), side.layout.granule.size(), side.rank));
}

void granuleExtent(const Spec &spec, const Target &, Report &report) {
  for (const Side &side : sides(spec))
    for (const Granule &granule : side.layout.granule)
      if (granule.kind == Granule::Kind::Extent && granule.extent < 1)
        report.add(side.subject,
                   fmt::format("granule = {} of {} has the extent {}, expected 1 or more",
                               side.layout.granuleText(), ruleSubjectName(side.subject),
                               granule.extent),
                   {"write '*' for a scale that covers the whole dimension"});
}

void expertGranule(const Spec &spec, const Target &, Report &report) {
  for (const Side &side : sides(spec))
    for (size_t i = 0; i < side.layout.granule.size(); ++i) {
      bool isRows = side.subject == RuleSubject::X && i + 2 == side.rank;
      if (side.layout.granule[i].kind != Granule::Kind::Expert || (isRows && side.rank == 2))
        continue;
      report.add(
          side.subject,
          fmt::format("granule = {} of {} has 'expert' at dimension {}, expected only on the rows "
                      "of a two-dimensional x",
                      side.layout.granuleText(), ruleSubjectName(side.subject), i),
          {side.rank == 3 ? "one scale per expert is granule = [1, *, *] here"
                          : "write '*' for a scale that covers the whole dimension"});
    }
}

void expertCount(const Spec &spec, const Target &, Report &report) {
  if (spec.dispatch == Dispatch::Eager && spec.numExperts != 1)
    return report.add(RuleSubject::W,
                      fmt::format("eager computes one expert, got {} experts", spec.numExperts),
                      {"'grouped' computes all experts in one launch"});
  if (spec.numExperts < 1 || spec.numExperts > maxExperts)
    report.add(RuleSubject::W,
               fmt::format("E is {}, expected 1 to {} local experts", spec.numExperts, maxExperts),
               {"split the experts over several launches or ranks"});
}

void wholeExperts(const Spec &spec, const Target &, Report &report) {
  for (const Side &side : sides(spec)) {
    if (side.rank != 3 || !hasRank(side))
      continue;
    const Granule &granule = side.layout.granule[0];
    if (granule.kind == Granule::Kind::Extent && granule.extent > 1)
      report.add(side.subject,
                 fmt::format("one scale of {} covers {} experts, expected 1 or '*'",
                             ruleSubjectName(side.subject), granule.extent),
                 {"repeat the scale for each expert: granule 1 on the first dimension"});
  }
}

void weightsAreStatic(const Spec &spec, const Target &, Report &report) {
  if (spec.wScales.source == ScaleSource::Dynamic)
    report.add(RuleSubject::W, "scales of w are dynamic, expected static",
               {"quantize the weights ahead, and pass the scales that were computed with them"});
}

void packing(const Spec &spec, const Target &, Report &report) {
  for (const Side &side : sides(spec)) {
    const ScaleLayout &layout = side.layout;
    if (layout.packing == 1 || (layout.packing == 4 && layout.type == ElementType::F8E8M0FNU))
      continue;
    report.add(side.subject,
               fmt::format("scales of {} pack {} {} in a word, expected 1, or 4 of f8E8M0FNU",
                           ruleSubjectName(side.subject), layout.packing,
                           elementTypeName(layout.type)),
               {layout.type == ElementType::F8E8M0FNU ? "packing = 4 puts four in an i32"
                                                      : "leave packing away"});
  }
}

void alignment(const Spec &spec, const Target &, Report &report) {
  for (const Side &side : sides(spec)) {
    int64_t align = side.layout.alignBytes;
    int64_t word = elementBytes(side.layout.storedType());
    bool isPowerOfTwo = align > 0 && (align & (align - 1)) == 0;
    if (align == 0 || (isPowerOfTwo && align >= word && align <= 128))
      continue;
    report.add(
        side.subject,
        fmt::format(
            "scales of {} have align = {}, expected 0 or a power of two from {} to 128 bytes",
            ruleSubjectName(side.subject), align, word),
        {"align = 16 is what bulk copies need"});
  }
}

void phase(const Spec &spec, const Target &, Report &report) {
  for (const Side &side : sides(spec)) {
    const ScaleLayout &layout = side.layout;
    const char *name = ruleSubjectName(side.subject);
    if (!layout.phase.empty() && layout.phase.size() != layout.granule.size()) {
      report.add(side.subject,
                 fmt::format("the phase of {} has {} entries, expected {}: one for each granule",
                             name, layout.phase.size(), layout.granule.size()));
      continue;
    }
    for (size_t i = 0; i < layout.phase.size(); ++i) {
      bool isExtent = layout.granule[i].kind == Granule::Kind::Extent;
      int64_t limit = isExtent ? std::max<int64_t>(layout.granule[i].extent, 1) : 1;
      int64_t value = layout.phase[i];
      if (value >= 0 && value < limit)
        continue;
      std::vector<std::string> notes;
      if (isExtent && value >= limit)
        notes.push_back(fmt::format("drop the {} whole granules in front: phase {}", value / limit,
                                    value % limit));
      report.add(
          side.subject,
          fmt::format("phase {} of {} at dimension {}, expected 0 to {}: inside the first granule",
                      value, name, i, limit - 1),
          std::move(notes));
    }
  }
}

void parts(const Spec &spec, const Target &, Report &report) {
  if (spec.xScales.parts != 1 || spec.xScales.interleaved)
    report.add(RuleSubject::X,
               fmt::format("x has {} parts, expected 1: parts divide N", spec.xScales.parts),
               {"leave parts away on x"});
  const ScaleLayout &layout = spec.wScales;
  if (layout.parts < 1 || layout.parts > maxExtent)
    return report.add(RuleSubject::W,
                      fmt::format("w has {} parts, expected 1 to {}", layout.parts, maxExtent));
  if (layout.interleaved && layout.parts == 1)
    report.add(RuleSubject::W, "w is interleaved with one part, expected 2 parts or more",
               {"parts = 2, interleaved is gate and up in alternate rows"});
  if (spec.n < 1 || spec.n > maxExtent || spec.n % layout.parts == 0)
    return;
  int64_t factor = std::lcm<int64_t>(layout.parts, 8);
  report.add(RuleSubject::W,
             fmt::format("N is {}, expected a multiple of the {} parts of w", spec.n, layout.parts),
             {fmt::format("the next legal value is {}", spec.n - spec.n % factor + factor)});
}

void maskedRows(const Spec &spec, const Target &, Report &report) {
  if (spec.dispatch != Dispatch::Masked) {
    if (spec.maxRows != 0)
      report.add(
          RuleSubject::X,
          fmt::format("{} has Mmax = {}, expected none", dispatchName(spec.dispatch), spec.maxRows),
          {"only 'masked' has a buffer of Mmax rows for each expert"});
    return;
  }
  if (spec.maxRows < 1 || spec.maxRows > maxExtent)
    report.add(RuleSubject::X,
               fmt::format("masked has Mmax = {}, expected 1 to {} rows for each expert",
                           spec.maxRows, maxExtent),
               {"give x a static shape [E, Mmax, K]"});
}

void expertMap(const Spec &spec, const Target &, Report &report) {
  if (spec.expertMapSize == 0)
    return;
  if (spec.dispatch == Dispatch::Batched && spec.expertMapSize < 0)
    report.add(RuleSubject::Gemm, "the expert map has no static length",
               {"give it the type tensor<Gxi32>, where G is the number of global experts"});
  if (spec.dispatch != Dispatch::Batched)
    report.add(RuleSubject::Gemm,
               fmt::format("{} has an expert map, expected one only with batched",
                           dispatchName(spec.dispatch)),
               {"map the ids before the rows are sorted by expert"});
}

void quantizedFrom(const Spec &spec, const Target &, Report &report) {
  bool isAlone = spec.computation == Computation::Quantize;
  if (!spec.quantizeFrom) {
    if (isAlone)
      report.add(RuleSubject::X, "the type that x is quantized from is missing",
                 {"give bf16, f16 or f32"});
    return;
  }
  ElementType from = *spec.quantizeFrom;
  if (from != ElementType::BF16 && from != ElementType::F16 && from != ElementType::F32)
    report.add(
        RuleSubject::X,
        fmt::format("x is quantized from {}, expected bf16, f16 or f32", elementTypeName(from)),
        {"fp8 data comes with its scales, and is not quantized again"});
  bool hasExpert =
      std::any_of(spec.xScales.granule.begin(), spec.xScales.granule.end(),
                  [](const Granule &granule) { return granule.kind == Granule::Kind::Expert; });
  if (isAlone && hasExpert)
    report.add(RuleSubject::X,
               fmt::format("x is quantized by granule = {}, but a quantization of its own has no "
                           "experts",
                           spec.xScales.granuleText()),
               {"one static scale per tensor: granule = [*, *]",
                "scales computed from the live rows: source = dynamic, granule = [1, 128]"});
}

void knownArchitecture(const Spec &, const Target &target, Report &report) {
  Result<Target> known = parseTarget(target.arch);
  if (!known)
    report.add(RuleSubject::Gemm, known.error().message, known.error().notes);
}

void extentLimit(const Spec &spec, const Target &, Report &report) {
  auto check = [&](RuleSubject subject, const char *name, int64_t value) {
    if (value > maxExtent)
      report.add(subject, fmt::format("{} is {}, expected at most {}", name, value, maxExtent),
                 {fmt::format("split {} over several launches", name)});
  };
  check(RuleSubject::Gemm, "K", spec.k);
  check(RuleSubject::W, "N", spec.n);
  for (const Side &side : sides(spec))
    for (const Granule &granule : side.layout.granule)
      if (granule.kind == Granule::Kind::Extent && granule.extent > maxExtent)
        report.add(side.subject,
                   fmt::format("granule = {} of {} has the extent {}, expected at most {}",
                               side.layout.granuleText(), ruleSubjectName(side.subject),
                               granule.extent, maxExtent),
                   {"write '*' for a scale that covers the whole dimension"});
  if (spec.expertMapSize > maxExtent)
    report.add(RuleSubject::Gemm,
               fmt::format("the expert map has {} entries, expected at most {}", spec.expertMapSize,
                           maxExtent),
               {"give it an entry for each global expert"});
}

} // namespace moejit::rules
