// The rule table and its readers: checks, explanations, the generated page.
#include "runtime/Rules.h"

#include "runtime/RuleChecks.h"

#include <algorithm>
#include <fmt/format.h>

namespace moejit {

namespace {

using namespace rules;

/// Which computations a rule is about.
enum class Scope { Gemm, Any };

struct Entry {
  Rule rule;
  Predicate predicate; ///< null: asked where scale tensors are joined with data, not of a Spec
  Scope scope = Scope::Gemm;
};

constexpr Rule::Kind contract = Rule::Kind::Contract;
constexpr Rule::Kind unsupported = Rule::Kind::Unsupported;

constexpr const char *scaleShapeId = "MJ023";
constexpr const char *maxOverExpertsId = "MJ024";

const Entry table[] = {
    {{"MJ001", contract, "A batched GEMM takes dynamic activation scales only.",
      "This is moejit's contract, as it is that of batched_mm in transformers; it is not a "
      "mathematical "
      "impossibility. A static scheme is refused, never silently run as a dynamic one.",
      "Use 'eager', which consumes static scales; 'grouped' with one static scale per tensor or "
      "per expert; or a "
      "dynamic scheme."},
     batchedIsDynamic},
    {{"MJ002", contract, "A static activation scale is per tensor or per expert.",
      "A calibrated scale cannot know rows or groups that exist only at run time.",
      "Use granule [*, *] or [expert, *], or compute the scales: source = dynamic."},
     staticIsCoarse,
     Scope::Any},
    {{"MJ003", contract, "The step along K is a multiple of 32.",
      "The step is the greatest common divisor of the K granules and of the difference of their "
      "phases; one wgmma "
      "of 8-bit types covers 32 elements of K (PTX ISA, wgmma.mma_async), and scales may not "
      "change inside it.",
      "Use granules along K that are multiples of 32, and shard K at multiples of 32."},
     stepAlongK,
     Scope::Any},
    {{"MJ004", contract, "x and w are f8E4M3FN or f8E5M2.",
      "The tensor core multiplies these two types; other 8-bit formats have other bit patterns.",
      "Quantize to f8E4M3FN first."},
     operandTypes,
     Scope::Any},
    {{"MJ005", contract, "y is bf16, f16 or f32.", "Results are rounded once, from fp32.",
      "Write bf16 and convert in a step of its own."},
     outputType},
    {{"MJ006", contract, "Scales are f32 or f8E8M0FNU.",
      "Turning f32 into f8E8M0FNU loses information and is never done implicitly.",
      "Widen bf16 or f16 scales to f32, which is exact."},
     scaleType,
     Scope::Any},
    {{"MJ007", contract, "K is a multiple of 16.",
      "Bulk copies need row strides that are multiples of 16 bytes (cuTensorMapEncodeTiled), and "
      "an fp8 element is "
      "one byte.",
      "Pad K of x and w with zeros to the next multiple of 16."},
     multipleOfK,
     Scope::Any},
    {{"MJ008", contract, "N is a multiple of 8.",
      "A row of 16-bit results is stored in units of 16 bytes, and the N of a wgmma is a multiple "
      "of 8.",
      "Pad N of w with zero rows to the next multiple of 8."},
     multipleOfN},
    {{"MJ009", contract, "A granule has one entry for each dimension of the data.",
      "Layouts that differ only by which dimension a scale covers are different types.",
      "x has [rows, K] (masked: [E, Mmax, K]); w has [E, N, K] (eager: [N, K])."},
     granuleRank,
     Scope::Any},
    {{"MJ010", contract, "A granule's extent is 1 or more.", "A scale covers at least one element.",
      "Write '*' for a whole dimension."},
     granuleExtent,
     Scope::Any},
    {{"MJ011", contract, "'expert' stands only on the rows of a two-dimensional x.",
      "Only there do rows of one dimension belong to different experts; elsewhere experts are a "
      "dimension.",
      "Use 1 on the expert dimension."},
     expertGranule,
     Scope::Any},
    {{"MJ012", contract, "E is 1 to 1024; eager has 1.",
      "A kernel holds one row boundary for each local expert in shared memory.",
      "Split the experts over launches or ranks."},
     expertCount},
    {{"MJ013", contract, "A scale covers one expert or all.",
      "Experts are scaled on their own in every published scheme; a group of experts is none.",
      "Repeat the scale for each expert."},
     wholeExperts},
    {{"MJ014", contract, "Scales of w are static.", "Weights are quantized ahead of time.",
      "Pass the scales that were computed with the weights."},
     weightsAreStatic},
    {{"MJ015", contract, "Packing is 1, or 4 with f8E8M0FNU.",
      "Four 8-bit exponents fill one 32-bit word.", "Leave packing away, or use f8E8M0FNU."},
     packing,
     Scope::Any},
    {{"MJ016", contract, "Alignment of scales is 0 or a power of two from a word to 128 bytes.",
      "Strides are counted in whole words.", "Use align = 16, which bulk copies need."},
     alignment,
     Scope::Any},
    {{"MJ017", contract, "A phase lies inside the first granule.",
      "It says how far inside its first granule a shard starts; whole granules in front belong to "
      "no shard.",
      "Drop whole granules; a dimension with '*' or 'expert' has phase 0."},
     phase,
     Scope::Any},
    {{"MJ018", contract, "Parts divide N evenly, and only w has them.",
      "Parts are projections stacked along N, such as gate and up, each with scale rows of its "
      "own.",
      "Use parts = 2 on a w that holds gate and up."},
     parts,
     Scope::Any},
    {{"MJ019", contract, "masked has a static Mmax from 1 to 1048576, no other dispatch has one.",
      "masked works on a buffer of Mmax rows for each expert.",
      "Give x the static shape [E, Mmax, K]."},
     maskedRows},
    {{"MJ020", contract, "Only batched takes an expert map, of a static length.",
      "The other forms name experts by position, so there is no id to map; ids past the map's end "
      "must be told from those inside.",
      "Map the ids before rows are sorted by expert."},
     expertMap},
    {{"MJ021", contract, "The architecture is a known one, with its suffix.",
      "sm_90a and sm_90 are different targets: only the first has wgmma.",
      "Write sm_90a for an H100 or H200."},
     knownArchitecture,
     Scope::Any},
    {{"MJ022", contract, "N, K, granules and the expert map are at most 1048576.",
      "Coordinates, tile counts and what divides them are 32-bit inside a kernel.",
      "Split the GEMM; write '*' for a granule that covers a whole dimension."},
     extentLimit,
     Scope::Any},
    {{scaleShapeId, contract, "A scale tensor has the shape that its layout asks for.",
      "The shape follows from granule, parts, phase, packing and order by ceil-division. A "
      "transposed tensor has as "
      "many elements and would be read wrongly.",
      "Reshape the scales, or correct granule, order or parts."},
     nullptr},
    {{maxOverExpertsId, contract, "Scales of several experts are never merged implicitly.",
      "The maximum over experts changes results; so does the maximum over gate and up.",
      "Use one scale per expert, or merge them in an explicit step."},
     nullptr},
    {{"MJ025", contract, "x is quantized from bf16, f16 or f32, by scales that know no experts.",
      "These are the types activations come in; a quantization of its own has rows, not experts.",
      "Convert x first; use granule [*, *] for one static scale."},
     quantizedFrom,
     Scope::Any},
    {{"MJ109", unsupported, "The architecture is sm_90a.",
      "Other architectures are not lowered yet.", "Compile for sm_90a."},
     supportedArchitecture,
     Scope::Any},
    {{"MJ113", unsupported,
      "A quantization has dynamic scales per tensor, token or group, or, in a launch of its own, a "
      "static one per tensor; and no phase.",
      "Scales of several rows, rows that start inside a granule, and static scales on the way into "
      "a GEMM are not lowered yet; one scale of all rows is, on the way into a GEMM, for eager "
      "alone: elsewhere rows that no expert owns would take part in it.",
      "Use granule [*, *], [1, *] or [1, 128], and source = dynamic."},
     supportedQuantizedScales,
     Scope::Any},
};

void checkKind(Rule::Kind kind, const Spec &spec, const Target &target,
               std::vector<Violation> &violations) {
  for (const Entry &entry : table) {
    bool isAsked = entry.scope == Scope::Any || spec.computation == Computation::Gemm;
    if (entry.rule.kind != kind || !entry.predicate || !isAsked)
      continue;
    Report report(entry.rule.id, violations);
    entry.predicate(spec, target, report);
  }
}

std::string shapeText(const std::vector<int64_t> &shape) {
  std::vector<std::string> extents;
  for (int64_t extent : shape)
    extents.push_back(extent < 0 ? "?" : std::to_string(extent));
  return fmt::format("[{}]", fmt::join(extents, ", "));
}

bool fits(const std::vector<int64_t> &expected, const std::vector<int64_t> &actual) {
  return std::equal(expected.begin(), expected.end(), actual.begin(), actual.end(),
                    [](int64_t a, int64_t b) { return a < 0 || b < 0 || a == b; });
}

const char *kindText(Rule::Kind kind) {
  return kind == Rule::Kind::Contract ? "contract" : "not supported by this version";
}

} // namespace

const char *ruleSubjectName(RuleSubject subject) {
  switch (subject) {
  case RuleSubject::X:
    return "x";
  case RuleSubject::W:
    return "w";
  case RuleSubject::Y:
    return "y";
  case RuleSubject::Gemm:
    break;
  }
  return "gemm";
}

std::string Violation::text() const { return fmt::format("{} [{}]", message, ruleId); }

const std::vector<Rule> &allRules() {
  static const std::vector<Rule> all = [] {
    std::vector<Rule> rules;
    for (const Entry &entry : table)
      rules.push_back(entry.rule);
    return rules;
  }();
  return all;
}

const Rule *findRule(std::string_view id) {
  for (const Entry &entry : table)
    if (id == entry.rule.id)
      return &entry.rule;
  return nullptr;
}

std::vector<Violation> checkSpec(const Spec &spec, const Target &target) {
  std::vector<Violation> violations;
  checkKind(contract, spec, target, violations);
  if (violations.empty())
    checkKind(unsupported, spec, target, violations);
  return violations;
}

Result<void> requireLegal(const Spec &spec, const Target &target) {
  std::vector<Violation> violations = checkSpec(spec, target);
  if (violations.empty())
    return {};
  Error error{ErrorCode::RuleViolation, violations.front().text(), violations.front().notes};
  for (size_t i = 1; i < violations.size(); ++i)
    error.notes.push_back("also: " + violations[i].text());
  return error;
}

std::optional<Violation> checkScaleShape(const ScaleLayout &layout,
                                         const std::vector<int64_t> &dataShape, int64_t numExperts,
                                         const std::vector<int64_t> &actual, RuleSubject subject) {
  std::vector<int64_t> expected = scaleShape(layout, dataShape, numExperts);
  if (expected.size() == dataShape.size() && fits(expected, actual))
    return std::nullopt;
  bool isOneForEach =
      layout.isPerTensor() && !actual.empty() && actual[0] > 1 &&
      std::all_of(actual.begin() + 1, actual.end(), [](int64_t extent) { return extent == 1; });
  if (isOneForEach)
    return Violation{
        maxOverExpertsId,
        fmt::format("one scale per tensor is declared, got {} scales {}", actual[0],
                    shapeText(actual)),
        {fmt::format("one scale per expert: granule = {}",
                     dataShape.size() == 2 ? "[expert, *]" : "[1, *, *]"),
         "or reduce the scales to one in a step of its own, and requantize the data with it"},
        subject};
  std::vector<std::string> notes;
  if (expected.size() >= 2 && actual.size() == expected.size()) {
    std::vector<int64_t> transposed = expected;
    std::swap(transposed[transposed.size() - 1], transposed[transposed.size() - 2]);
    if (fits(transposed, actual))
      notes.push_back(layout.order == ScaleOrder::RowMajor
                          ? "this is the transposed shape, which is order = mn_major"
                          : "this is the transposed shape, which is order = row_major");
  }
  notes.push_back(fmt::format("data {} with granule = {}, {} part{}", shapeText(dataShape),
                              layout.granuleText(), layout.parts, layout.parts == 1 ? "" : "s"));
  return Violation{
      scaleShapeId,
      fmt::format("scales have shape {}, expected {}", shapeText(actual), shapeText(expected)),
      std::move(notes), subject};
}

std::optional<Violation> checkLayoutRank(const ScaleLayout &layout, size_t rank,
                                         RuleSubject subject) {
  if (layout.granule.size() != rank)
    return Violation{
        "MJ009",
        fmt::format("the granule {} has {} entries, expected {}: one for each dimension",
                    layout.granuleText(), layout.granule.size(), rank),
        {},
        subject};
  if (!layout.phase.empty() && layout.phase.size() != rank)
    return Violation{"MJ017",
                     fmt::format("the phase has {} entries, expected {}: one for each granule",
                                 layout.phase.size(), rank),
                     {},
                     subject};
  return std::nullopt;
}

Violation foreignElementType(std::string_view name, RuleSubject subject) {
  return {subject == RuleSubject::Y ? "MJ005" : "MJ004", typeMessage(subject, name), {}, subject};
}

Result<std::string> explainRule(std::string_view id) {
  const Rule *rule = findRule(id);
  if (rule)
    return fmt::format("{} ({})\n{}\n\nWhy: {}\nInstead: {}\n", rule->id, kindText(rule->kind),
                       rule->summary, rule->reason, rule->remedy);
  std::vector<std::string> ids;
  for (const Rule &known : allRules())
    ids.push_back(known.id);
  return Error{ErrorCode::NotFound,
               fmt::format("no rule '{}'", id),
               {fmt::format("known rules: {}", fmt::join(ids, " "))}};
}

std::string renderRulesMarkdown() {
  std::string page =
      "# Rules\n\n"
      "Generated from the table in `runtime/Rules.cpp`; a unit test compares the two.\n"
      "`moejit explain MJ001` prints an entry; every command, every API and the `moe-check` pass "
      "apply them.\n";
  auto section = [&](const char *title, const char *intro, Rule::Kind kind) {
    page += fmt::format("\n## {}\n\n{}\n", title, intro);
    for (const Entry &entry : table)
      if (entry.rule.kind == kind)
        page += fmt::format("\n### {}: {}\n\n{}\n\nInstead: {}\n", entry.rule.id,
                            entry.rule.summary, entry.rule.reason, entry.rule.remedy);
  };
  section("The contract", "What moejit is, in any version.", contract);
  section("Not supported by this version",
          "Within the contract, but this version does not lower it yet.", unsupported);
  return page;
}

} // namespace moejit
