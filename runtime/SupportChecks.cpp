// Predicates of what this version lowers (MJ1xx). They are asked only of a Spec that the contract
// allows, so every rank, extent and type is sane here. Widening the compiler means deleting from
// this file.
#include "runtime/RuleChecks.h"

#include <algorithm>

#include <fmt/format.h>

namespace moejit::rules {

namespace {

constexpr const char *supportedArch = "sm_90a";

const ScaleLayout &scalesOf(const Spec &spec, RuleSubject subject) {
  return subject == RuleSubject::X ? spec.xScales : spec.wScales;
}

/// One layout of scales that is lowered, and its name.
struct LoweredLayout {
  const char *name;
  ScaleSource source;
  std::vector<Granule> granule;
};

const std::vector<LoweredLayout> &activationLayouts(bool isMasked) {
  static const std::vector<LoweredLayout> buffers = {
      {"static per tensor",
       ScaleSource::Static,
       {Granule::whole(), Granule::whole(), Granule::whole()}},
      {"static per expert",
       ScaleSource::Static,
       {Granule::of(1), Granule::whole(), Granule::whole()}},
      {"dynamic per tensor",
       ScaleSource::Dynamic,
       {Granule::whole(), Granule::whole(), Granule::whole()}},
      {"dynamic per token",
       ScaleSource::Dynamic,
       {Granule::of(1), Granule::of(1), Granule::whole()}},
      {"dynamic 1x128 groups",
       ScaleSource::Dynamic,
       {Granule::of(1), Granule::of(1), Granule::of(128)}},
  };
  static const std::vector<LoweredLayout> table = {
      {"static per tensor", ScaleSource::Static, {Granule::whole(), Granule::whole()}},
      {"static per expert", ScaleSource::Static, {Granule::expert(), Granule::whole()}},
      {"dynamic per tensor", ScaleSource::Dynamic, {Granule::whole(), Granule::whole()}},
      {"dynamic per token", ScaleSource::Dynamic, {Granule::of(1), Granule::whole()}},
      {"dynamic 1x128 groups", ScaleSource::Dynamic, {Granule::of(1), Granule::of(128)}},
  };
  return isMasked ? buffers : table;
}

const std::vector<LoweredLayout> &weightLayouts(bool isEager) {
  static const std::vector<LoweredLayout> stacked = {
      {"per tensor", ScaleSource::Static, {Granule::whole(), Granule::whole(), Granule::whole()}},
      {"per expert", ScaleSource::Static, {Granule::of(1), Granule::whole(), Granule::whole()}},
      {"per channel", ScaleSource::Static, {Granule::of(1), Granule::of(1), Granule::whole()}},
      {"128x128 blocks", ScaleSource::Static, {Granule::of(1), Granule::of(128), Granule::of(128)}},
  };
  static const std::vector<LoweredLayout> single = {
      {"per tensor", ScaleSource::Static, {Granule::whole(), Granule::whole()}},
      {"per channel", ScaleSource::Static, {Granule::of(1), Granule::whole()}},
      {"128x128 blocks", ScaleSource::Static, {Granule::of(128), Granule::of(128)}},
  };
  return isEager ? single : stacked;
}

/// One representative of the granules that are lowered alike: one instruction sums 32 of K, so any
/// multiple of it will do; a tile has 128 or 256 columns, so an extent along N divides 128 or
/// is a multiple of 256.
std::vector<Granule> representative(std::vector<Granule> granule, RuleSubject subject) {
  Granule &k = granule.back();
  bool isStep = k.kind == Granule::Kind::Extent && k.extent % 32 == 0;
  if (isStep)
    k.extent = 128;
  if (subject == RuleSubject::X || granule.size() < 2)
    return granule;
  Granule &n = granule[granule.size() - 2];
  bool isLowered = n.kind == Granule::Kind::Extent && (128 % n.extent == 0 || n.extent % 256 == 0);
  if (isLowered)
    n.extent = isStep ? 128 : k.kind == Granule::Kind::Whole ? 1 : n.extent;
  return granule;
}

void checkLayout(const std::vector<LoweredLayout> &lowered, RuleSubject subject, const char *what,
                 const ScaleLayout &layout, Report &report) {
  std::vector<std::string> notes;
  for (const LoweredLayout &entry : lowered) {
    if (entry.source == layout.source && entry.granule == representative(layout.granule, subject))
      return;
    ScaleLayout example;
    example.granule = entry.granule;
    notes.push_back(fmt::format("supported: {}, granule = {}, source = {}", entry.name,
                                example.granuleText(), scaleSourceName(entry.source)));
  }
  report.add(
      subject,
      fmt::format("{} scales with granule = {}, source = {} are not supported by this version",
                  what, layout.granuleText(), scaleSourceName(layout.source)),
      std::move(notes));
}

} // namespace

void supportedExpertMap(const Spec &spec, const Target &, Report &report) {
  if (spec.expertMapSize != 0)
    report.add(RuleSubject::Gemm, "an expert map is not supported by this version",
               {"give local expert ids: any id outside [0, E) is nobody's"});
}

void supportedScaleType(const Spec &spec, const Target &, Report &report) {
  for (RuleSubject subject : {RuleSubject::X, RuleSubject::W})
    if (scalesOf(spec, subject).type != ElementType::F32)
      report.add(
          subject,
          fmt::format("{} scales of {} are not supported by this version",
                      elementTypeName(scalesOf(spec, subject).type), ruleSubjectName(subject)),
          {"f32 scales are; every f8E8M0FNU scale is a power of two and widens to f32 exactly"});
}

void supportedActivationScales(const Spec &spec, const Target &, Report &report) {
  checkLayout(activationLayouts(spec.dispatch == Dispatch::Masked), RuleSubject::X, "activation",
              spec.xScales, report);
}

void supportedWeightScales(const Spec &spec, const Target &, Report &report) {
  checkLayout(weightLayouts(spec.dispatch == Dispatch::Eager), RuleSubject::W, "weight",
              spec.wScales, report);
}

void supportedOrder(const Spec &spec, const Target &, Report &report) {
  for (RuleSubject subject : {RuleSubject::X, RuleSubject::W}) {
    const ScaleLayout &layout = scalesOf(spec, subject);
    bool isGroups = subject == RuleSubject::X && layout.kGranule() != 0;
    if (layout.order == ScaleOrder::MnMajor && !isGroups)
      report.add(subject,
                 fmt::format("mn_major order of scales {} of {} is not supported by this version",
                             layout.granuleText(), ruleSubjectName(subject)),
                 {subject == RuleSubject::X
                      ? "scales that do not vary along K have one order: leave order away"
                      : "store the scales of w in row_major order"});
  }
}

void supportedPhase(const Spec &spec, const Target &, Report &report) {
  for (RuleSubject subject : {RuleSubject::X, RuleSubject::W})
    if (scalesOf(spec, subject).hasPhase())
      report.add(
          subject,
          fmt::format("a phase of {} is not supported by this version", ruleSubjectName(subject)),
          {"shard at multiples of the granule, or by expert instead of by tensor"});
}

void supportedParts(const Spec &spec, const Target &, Report &report) {
  const ScaleLayout &layout = spec.wScales;
  if (layout.parts == 1)
    return;
  if (layout.interleaved)
    return report.add(RuleSubject::W, "interleaved parts are not supported by this version",
                      {"stack the parts: gate rows, then up rows"});
  size_t rank = layout.granule.size();
  if (rank < 2)
    return;
  const Granule &granule = layout.granule[rank - 2];
  int64_t rowsPerPart = spec.n / layout.parts;
  if (granule.kind == Granule::Kind::Extent && rowsPerPart % granule.extent == 0)
    return;
  if (granule.kind == Granule::Kind::Whole)
    return report.add(RuleSubject::W,
                      fmt::format("one scale for each of {} parts is not supported by this version",
                                  layout.parts),
                      {"repeat the scales for each channel: granule 1 on N"});
  report.add(
      RuleSubject::W,
      fmt::format(
          "{} parts of {} rows each are not supported by this version: a part must be a multiple "
          "of the granule {}",
          layout.parts, rowsPerPart, granule.extent),
      {fmt::format("pad each part with zero rows to {}",
                   rowsPerPart - rowsPerPart % granule.extent + granule.extent)});
}

void supportedAlignment(const Spec &spec, const Target &, Report &report) {
  for (RuleSubject subject : {RuleSubject::X, RuleSubject::W}) {
    const ScaleLayout &layout = scalesOf(spec, subject);
    // Groups of activations lie as far apart as the launch says.
    if (layout.alignBytes == 0 || (subject == RuleSubject::X && layout.kGranule() != 0))
      continue;
    std::vector<int64_t> shape = scaleShape(
        layout, subject == RuleSubject::X ? xShape(spec) : wShape(spec), spec.numExperts);
    int64_t rowBytes = shape.back() * elementBytes(layout.storedType());
    bool isOneRow =
        std::all_of(shape.begin(), shape.end() - 1, [](int64_t extent) { return extent == 1; });
    if (isOneRow || rowBytes % layout.alignBytes == 0)
      continue;
    report.add(subject,
               fmt::format("align = {} of the scales of {} pads their rows of {} bytes, which is "
                           "not supported by this version",
                           layout.alignBytes, ruleSubjectName(subject), rowBytes),
               {"store the scales packed, and leave align away"});
  }
}

void supportedQuantization(const Spec &spec, const Target &, Report &report) {
  if (spec.quantizeFrom)
    report.add(RuleSubject::X,
               fmt::format("quantizing x from {} is not supported by this version",
                           elementTypeName(*spec.quantizeFrom)),
               {"give x in f8E4M3FN, with its scales"});
}

void supportedArchitecture(const Spec &, const Target &target, Report &report) {
  if (target.arch != supportedArch)
    report.add(RuleSubject::Gemm, fmt::format("{} is not supported by this version", target.arch),
               {fmt::format("supported: {}", supportedArch)});
}

} // namespace moejit::rules
