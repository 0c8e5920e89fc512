// Predicates of what this version lowers (MJ1xx). They are asked only of a Spec that the contract
// allows, so every rank, extent and type is sane here. Widening the compiler means deleting from
// this file.
#include "runtime/RuleChecks.h"

#include <algorithm>

#include <fmt/format.h>

namespace moejit::rules {

namespace {

constexpr const char *supportedArch = "sm_90a";

} // namespace

void supportedQuantizedScales(const Spec &spec, const Target &, Report &report) {
  if (!spec.quantizeFrom)
    return;
  const ScaleLayout &layout = spec.xScales;
  if (spec.computation == Computation::Gemm && layout.source == ScaleSource::Static)
    report.add(RuleSubject::X,
               "quantizing x by static scales in the launch of a GEMM is not supported by this "
               "version",
               {"quantize x in a launch of its own: moe.quantize alone", "use source = dynamic"});
  if (spec.computation == Computation::Gemm && layout.source == ScaleSource::Dynamic &&
      layout.isPerTensor() && spec.dispatch != Dispatch::Eager)
    report.add(RuleSubject::X,
               fmt::format("quantizing x by one scale in the launch of a {} GEMM is not supported "
                           "by this version: rows that no expert owns would take part in it",
                           dispatchName(spec.dispatch)),
               {"one scale per token: granule = [1, *]",
                "quantize x in a launch of its own: moe.quantize alone"});
  if (layout.hasPhase())
    report.add(RuleSubject::X, "quantizing from a phase on is not supported by this version",
               {"quantize from the start of a granule"});
  // Masked activations have a dimension for experts before that of rows: rows of several experts
  // would share a scale where one covers it.
  const Granule &rows = layout.granule[layout.granule.size() - 2];
  bool isOneExpert = layout.granule.size() == 2 || layout.granule[0].kind == Granule::Kind::Extent;
  bool isOneRow = isOneExpert && rows.kind == Granule::Kind::Extent && rows.extent == 1;
  if (isOneRow || layout.isPerTensor())
    return;
  report.add(
      RuleSubject::X,
      fmt::format("quantizing by granule = {}, source = {} is not supported by this version",
                  layout.granuleText(), scaleSourceName(layout.source)),
      {"supported: one scale per tensor, granule = [*, *]",
       "supported: one scale per token, granule = [1, *], source = dynamic",
       "supported: one scale for a multiple of 32 of K, such as granule = [1, 128], source = "
       "dynamic"});
}

void supportedArchitecture(const Spec &, const Target &target, Report &report) {
  if (target.arch != supportedArch)
    report.add(RuleSubject::Gemm, fmt::format("{} is not supported by this version", target.arch),
               {fmt::format("supported: {}", supportedArch)});
}

} // namespace moejit::rules
