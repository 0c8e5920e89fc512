// runtime/Rules.h: each rule has a Spec that trips it and a near one that passes; texts and the
// generated page.
#include "runtime/Rules.h"

#include <doctest/doctest.h>

#include <fstream>
#include <functional>
#include <set>
#include <sstream>

using namespace moejit;

namespace {

const Granule one = Granule::of(1), block = Granule::of(128), whole = Granule::whole(),
              expert = Granule::expert();

/// Legal: DeepSeek-V3's gate_up on 32 local experts.
Spec base() {
  Spec spec;
  spec.numExperts = 32;
  spec.n = 4096;
  spec.k = 7168;
  spec.xScales.granule = {one, block};
  spec.xScales.source = ScaleSource::Dynamic;
  spec.wScales.granule = {one, block, block};
  return spec;
}

Spec eager() {
  Spec spec = base();
  spec.dispatch = Dispatch::Eager;
  spec.numExperts = 1;
  spec.wScales.granule = {block, block};
  return spec;
}

Spec masked() {
  Spec spec = base();
  spec.dispatch = Dispatch::Masked;
  spec.maxRows = 64;
  spec.xScales.granule = {one, one, block};
  return spec;
}

Spec staticScales(std::vector<Granule> granule) {
  Spec spec = base();
  spec.xScales.granule = std::move(granule);
  spec.xScales.source = ScaleSource::Static;
  return spec;
}

Spec with(Spec spec, const std::function<void(Spec &)> &edit) {
  edit(spec);
  return spec;
}

struct Case {
  const char *id;
  Spec trips;
  Spec passes;
  const char *message; ///< of the violation
  RuleSubject subject = RuleSubject::Gemm;
  const char *tripsArch = "sm_90a";
};

/// Groups of 128 of which the data starts inside the first.
ScaleLayout startingInside() {
  ScaleLayout layout{{Granule::of(1), Granule::of(128)}, ElementType::F32, ScaleSource::Dynamic};
  layout.phase = {0, 32};
  return layout;
}

const std::vector<Case> &cases() {
  using S = Spec &;
  constexpr auto Gemm = RuleSubject::Gemm, X = RuleSubject::X, W = RuleSubject::W,
                 Y = RuleSubject::Y;
  static const std::vector<Case> table = {
      {"MJ001", with(staticScales({whole, whole}), [](S s) { s.dispatch = Dispatch::Batched; }),
       with(base(), [](S s) { s.dispatch = Dispatch::Batched; }),
       "batched takes dynamic activation scales, got static", X},
      {"MJ002", staticScales({one, block}), staticScales({expert, whole}),
       "a static activation scale is per tensor or per expert, got granule = [1, 128]", X},
      {"MJ002", staticScales({one, whole}), staticScales({whole, whole}),
       "a static activation scale is per tensor or per expert, got granule = [1, *]", X},
      {"MJ003", with(base(), [](S s) { s.xScales.granule[1] = Granule::of(48); }),
       with(base(), [](S s) { s.xScales.granule[1] = Granule::of(96); }),
       "the step along K is 16, expected a multiple of 32: it is the greatest common divisor of "
       "the K granules 48 of "
       "x and 128 of w and the phase difference 0",
       Gemm},
      {"MJ003", with(base(), [](S s) { s.xScales.phase = {0, 16}; }),
       with(base(),
            [](S s) {
              s.xScales.phase = {0, 80};
              s.wScales.phase = {0, 0, 16};
            }),
       "the step along K is 16, expected a multiple of 32: it is the greatest common divisor of "
       "the K granules 128 of "
       "x and 128 of w and the phase difference 16",
       Gemm},
      {"MJ004", with(base(), [](S s) { s.xType = ElementType::BF16; }),
       with(base(), [](S s) { s.xType = ElementType::F8E5M2; }),
       "x has element type bf16, expected f8E4M3FN or f8E5M2", X},
      {"MJ004", with(base(), [](S s) { s.wType = ElementType::F8E8M0FNU; }), base(),
       "w has element type f8E8M0FNU, expected f8E4M3FN or f8E5M2", W},
      {"MJ005", with(base(), [](S s) { s.outType = ElementType::F8E4M3FN; }),
       with(base(), [](S s) { s.outType = ElementType::F32; }),
       "y has element type f8E4M3FN, expected bf16, f16 or f32", Y},
      {"MJ006", with(base(), [](S s) { s.wScales.type = ElementType::BF16; }),
       with(base(), [](S s) { s.wScales.type = ElementType::F8E8M0FNU; }),
       "scales of w have type bf16, expected f32 or f8E8M0FNU", W},
      {"MJ007", with(base(), [](S s) { s.k = 7176; }), with(base(), [](S s) { s.k = 7184; }),
       "K is 7176, expected a positive multiple of 16", Gemm},
      {"MJ007", with(base(), [](S s) { s.k = 0; }), with(base(), [](S s) { s.k = 16; }),
       "K is 0, expected a positive multiple of 16", Gemm},
      {"MJ008", with(base(), [](S s) { s.n = 4100; }), with(base(), [](S s) { s.n = 4104; }),
       "N is 4100, expected a positive multiple of 8", W},
      {"MJ009", with(base(), [](S s) { s.wScales.granule = {block, block}; }), eager(),
       "the granule of w has 2 entries, expected 3: one for each dimension", W},
      {"MJ010", with(base(), [](S s) { s.xScales.granule[0] = Granule::of(0); }), base(),
       "granule = [0, 128] of x has the extent 0, expected 1 or more", X},
      {"MJ011", with(base(), [](S s) { s.wScales.granule = {expert, block, block}; }),
       staticScales({expert, whole}),
       "granule = [expert, 128, 128] of w has 'expert' at dimension 0, expected only on the rows "
       "of a "
       "two-dimensional x",
       W},
      {"MJ012", with(base(), [](S s) { s.numExperts = 1025; }),
       with(base(), [](S s) { s.numExperts = 1024; }),
       "E is 1025, expected 1 to 1024 local experts", W},
      {"MJ012", with(base(), [](S s) { s.numExperts = 0; }),
       with(base(), [](S s) { s.numExperts = 1; }), "E is 0, expected 1 to 1024 local experts", W},
      {"MJ012", with(eager(), [](S s) { s.numExperts = 2; }), eager(),
       "eager computes one expert, got 2 experts", W},
      {"MJ013", with(base(), [](S s) { s.wScales.granule[0] = Granule::of(2); }),
       with(base(), [](S s) { s.wScales.granule = {whole, whole, whole}; }),
       "one scale of w covers 2 experts, expected 1 or '*'", W},
      {"MJ014", with(base(), [](S s) { s.wScales.source = ScaleSource::Dynamic; }), base(),
       "scales of w are dynamic, expected static", W},
      {"MJ015", with(base(), [](S s) { s.xScales.packing = 4; }),
       with(base(),
            [](S s) {
              s.xScales.packing = 4;
              s.xScales.type = ElementType::F8E8M0FNU;
            }),
       "scales of x pack 4 f32 in a word, expected 1, or 4 of f8E8M0FNU", X},
      {"MJ016", with(base(), [](S s) { s.xScales.alignBytes = 24; }),
       with(base(), [](S s) { s.xScales.alignBytes = 16; }),
       "scales of x have align = 24, expected 0 or a power of two from 4 to 128 bytes", X},
      {"MJ017", with(base(), [](S s) { s.wScales.phase = {0, 128, 0}; }),
       with(base(), [](S s) { s.wScales.phase = {0, 127, 0}; }),
       "phase 128 of w at dimension 1, expected 0 to 127: inside the first granule", W},
      {"MJ017", with(base(), [](S s) { s.wScales.phase = {0, 1}; }), base(),
       "the phase of w has 2 entries, expected 3: one for each granule", W},
      {"MJ018", with(base(), [](S s) { s.wScales.parts = 3; }),
       with(base(), [](S s) { s.wScales.parts = 2; }),
       "N is 4096, expected a multiple of the 3 parts of w", W},
      {"MJ018", with(base(), [](S s) { s.xScales.parts = 2; }), base(),
       "x has 2 parts, expected 1: parts divide N", X},
      {"MJ018", with(base(), [](S s) { s.wScales.interleaved = true; }),
       with(base(),
            [](S s) {
              s.wScales.interleaved = true;
              s.wScales.parts = 2;
            }),
       "w is interleaved with one part, expected 2 parts or more", W},
      {"MJ019", with(masked(), [](S s) { s.maxRows = 0; }), masked(),
       "masked has Mmax = 0, expected 1 to 1048576 rows for each expert", X},
      {"MJ019", with(base(), [](S s) { s.maxRows = 4; }), base(),
       "grouped has Mmax = 4, expected none", X},
      {"MJ020", with(base(), [](S s) { s.expertMapSize = 8; }),
       with(base(),
            [](S s) {
              s.expertMapSize = 8;
              s.dispatch = Dispatch::Batched;
            }),
       "grouped has an expert map, expected one only with batched", Gemm},
      {"MJ020",
       with(base(),
            [](S s) {
              s.dispatch = Dispatch::Batched;
              s.expertMapSize = -1;
            }),
       with(base(),
            [](S s) {
              s.dispatch = Dispatch::Batched;
              s.expertMapSize = 64;
            }),
       "the expert map has no static length", Gemm},
      {"MJ025", with(base(), [](S s) { s.quantizeFrom = ElementType::F8E5M2; }),
       with(base(), [](S s) { s.quantizeFrom = ElementType::BF16; }),
       "x is quantized from f8E5M2, expected bf16, f16 or f32", X},
      {"MJ025", quantizeSpec(256, ElementType::BF16, ElementType::F8E4M3FN, {{expert, whole}}),
       quantizeSpec(256, ElementType::BF16, ElementType::F8E4M3FN, {{whole, whole}}),
       "x is quantized by granule = [expert, *], but a quantization of its own has no experts", X},
      {"MJ021", base(), base(),
       "unknown architecture 'sm_90', expected one of sm_80, sm_89, sm_90a, sm_100a, sm_120a", Gemm,
       "sm_90"},
      {"MJ022", with(base(), [](S s) { s.n = 1048584; }), with(base(), [](S s) { s.n = 1048576; }),
       "N is 1048584, expected at most 1048576", W},
      {"MJ022", with(base(), [](S s) { s.xScales.granule[1] = Granule::of((1LL << 32) + 32); }),
       with(base(), [](S s) { s.xScales.granule[1] = Granule::of(1 << 20); }),
       "granule = [1, 4294967328] of x has the extent 4294967328, expected at most 1048576", X},
      {"MJ022", with(base(), [](S s) { s.wScales.granule[1] = Granule::of(1LL << 32); }),
       with(base(), [](S s) { s.wScales.granule[1] = Granule::of(1 << 20); }),
       "granule = [1, 4294967296, 128] of w has the extent 4294967296, expected at most 1048576",
       W},
      {"MJ022",
       with(base(),
            [](S s) {
              s.dispatch = Dispatch::Batched;
              s.expertMapSize = (1LL << 32) + 8;
            }),
       with(base(),
            [](S s) {
              s.dispatch = Dispatch::Batched;
              s.expertMapSize = 1 << 20;
            }),
       "the expert map has 4294967304 entries, expected at most 1048576", Gemm},
      {"MJ109", base(), base(), "sm_100a is not supported by this version", Gemm, "sm_100a"},
      {"MJ113",
       with(base(),
            [](S s) {
              s.quantizeFrom = ElementType::BF16;
              s.xScales.source = ScaleSource::Static;
              s.xScales.granule = {whole, whole};
            }),
       with(base(), [](S s) { s.quantizeFrom = ElementType::BF16; }),
       "quantizing x by static scales in the launch of a GEMM is not supported by this version", X},
      {"MJ113",
       with(base(),
            [](S s) {
              s.quantizeFrom = ElementType::BF16;
              s.xScales.granule = {whole, whole};
            }),
       with(base(),
            [](S s) {
              s.quantizeFrom = ElementType::BF16;
              s.xScales.granule = {one, whole};
            }),
       "quantizing x by one scale in the launch of a grouped GEMM is not supported by this "
       "version: "
       "rows that no expert owns would take part in it",
       X},
      {"MJ113",
       quantizeSpec(256, ElementType::BF16, ElementType::F8E4M3FN,
                    {{Granule::of(128), Granule::of(128)}, ElementType::F32, ScaleSource::Dynamic}),
       quantizeSpec(256, ElementType::BF16, ElementType::F8E4M3FN,
                    {{Granule::of(1), Granule::of(96)}, ElementType::F32, ScaleSource::Dynamic}),
       "quantizing by granule = [128, 128], source = dynamic is not supported by this version", X},
      {"MJ113",
       quantizeSpec(256, ElementType::F16, ElementType::F8E5M2,
                    {{whole, Granule::of(128)}, ElementType::F32, ScaleSource::Dynamic}),
       quantizeSpec(256, ElementType::F16, ElementType::F8E5M2,
                    {{whole, whole}, ElementType::F8E8M0FNU, ScaleSource::Dynamic}),
       "quantizing by granule = [*, 128], source = dynamic is not supported by this version", X},
      {"MJ113",
       with(base(),
            [](S s) {
              s.dispatch = Dispatch::Masked;
              s.maxRows = 4;
              s.quantizeFrom = ElementType::BF16;
              s.xScales.granule = {whole, one, Granule::of(128)};
            }),
       with(base(),
            [](S s) {
              s.dispatch = Dispatch::Masked;
              s.maxRows = 4;
              s.quantizeFrom = ElementType::BF16;
              s.xScales.granule = {one, one, Granule::of(128)};
            }),
       "quantizing by granule = [*, 1, 128], source = dynamic is not supported by this version", X},
      {"MJ113", quantizeSpec(256, ElementType::F32, ElementType::F8E4M3FN, startingInside()),
       quantizeSpec(256, ElementType::F32, ElementType::F8E4M3FN,
                    {{Granule::of(1), Granule::of(128)},
                     ElementType::F32,
                     ScaleSource::Dynamic,
                     ScaleOrder::MnMajor}),
       "quantizing from a phase on is not supported by this version", X},
  };
  return table;
}

bool breaks(const std::vector<Violation> &violations, const std::string &id) {
  for (const Violation &violation : violations)
    if (violation.ruleId == id)
      return true;
  return false;
}

Target targetOf(const char *arch) {
  Target target;
  target.arch = arch;
  return target;
}

/// Dropped into the build folder, to be copied over the checked-in page after a change of the
/// table.
std::string writtenPage() {
  std::ofstream(MOEJIT_PAGES_DIR "/rules.md") << renderRulesMarkdown();
  return "the page in docs/generated is stale: copy " MOEJIT_PAGES_DIR "/rules.md over it";
}

} // namespace

TEST_CASE("The base cases are legal") {
  CHECK(checkSpec(base(), Target()).empty());
  CHECK(checkSpec(eager(), Target()).empty());
  CHECK(requireLegal(base(), Target()));
}

TEST_CASE("Each rule trips on one Spec and lets its neighbour pass") {
  for (const Case &test : cases()) {
    CAPTURE(test.id);
    CAPTURE(test.message);
    std::vector<Violation> violations = checkSpec(test.trips, targetOf(test.tripsArch));
    REQUIRE(violations.size() >= 1);
    bool isFound = false;
    for (const Violation &violation : violations)
      if (violation.ruleId == test.id && violation.message == test.message) {
        isFound = true;
        CHECK(violation.subject == test.subject);
      }
    CHECK_MESSAGE(isFound, "got: ", violations[0].text());
    CHECK_FALSE(breaks(checkSpec(test.passes, Target()), test.id));
  }
}

TEST_CASE("Every rule that is asked of a Spec has a case") {
  std::set<std::string> covered = {"MJ023", "MJ024"}; // asked where scales are joined: below
  for (const Case &test : cases())
    covered.insert(test.id);
  for (const Rule &rule : allRules())
    CHECK_MESSAGE(covered.count(rule.id) == 1, rule.id);
}

TEST_CASE("A batched GEMM with static scales is refused with three ways out") {
  Spec spec = staticScales({expert, whole});
  spec.dispatch = Dispatch::Batched;
  std::vector<Violation> violations = checkSpec(spec, Target());
  REQUIRE(violations.size() == 1); // that batched is not lowered yet does not matter here
  CHECK(violations[0].text() == "batched takes dynamic activation scales, got static [MJ001]");
  REQUIRE(violations[0].notes.size() == 3);
  CHECK(violations[0].notes[0].find("'eager'") != std::string::npos);
  CHECK(violations[0].notes[1].find("'grouped'") != std::string::npos);
  CHECK(violations[0].notes[2].find("dynamic") != std::string::npos);
}

TEST_CASE("A refusal is one Error with the id and the notes") {
  Spec spec = base();
  spec.k = 7170;
  spec.n = 4095;
  Result<void> legal = requireLegal(spec, Target());
  REQUIRE_FALSE(legal);
  CHECK(legal.error().code == ErrorCode::RuleViolation);
  CHECK(legal.error().message == "K is 7170, expected a positive multiple of 16 [MJ007]");
  REQUIRE(legal.error().notes.size() == 2);
  CHECK(legal.error().notes[0] == "the next legal value is 7184: pad K with zeros");
  CHECK(legal.error().notes[1] == "also: N is 4095, expected a positive multiple of 8 [MJ008]");
}

TEST_CASE("No malformed Spec crashes the checks") {
  CHECK_FALSE(checkSpec(Spec(), Target()).empty());
  Spec spec;
  spec.n = spec.k = spec.numExperts = spec.maxRows = INT64_MIN;
  spec.xScales.phase = {INT64_MIN, INT64_MAX, 1};
  spec.wScales.granule = {Granule::of(INT64_MIN), Granule::of(INT64_MAX), Granule::of(-1)};
  spec.wScales.phase = {INT64_MIN, INT64_MAX, 1};
  spec.wScales.parts = INT64_MIN;
  spec.wScales.packing = spec.wScales.alignBytes = INT64_MIN;
  CHECK_FALSE(checkSpec(spec, targetOf("")).empty());
  spec.n = spec.k = INT64_MAX;
  spec.xScales.granule = {Granule::of(INT64_MAX), Granule::of(INT64_MAX)};
  spec.xScales.phase = {INT64_MIN, INT64_MIN};
  CHECK_FALSE(checkSpec(spec, targetOf("")).empty());
}

TEST_CASE("The next legal N suits the parts and the multiple of 8") {
  Spec spec = base();
  spec.wScales.parts = 3;
  for (const Violation &violation : checkSpec(spec, Target()))
    if (violation.ruleId == "MJ018")
      CHECK(violation.notes[0] == "the next legal value is 4104");
}

TEST_CASE("Scale tensors of the wrong shape are refused with both shapes") {
  ScaleLayout blocks;
  blocks.granule = {one, block, block};
  std::vector<int64_t> data = {32, 4096, 7168};
  CHECK_FALSE(checkScaleShape(blocks, data, 32, {32, 32, 56}, RuleSubject::W));
  CHECK_FALSE(checkScaleShape(blocks, data, 32, {-1, 32, 56}, RuleSubject::W));

  std::optional<Violation> transposed =
      checkScaleShape(blocks, data, 32, {32, 56, 32}, RuleSubject::W);
  REQUIRE(transposed);
  CHECK(transposed->text() == "scales have shape [32, 56, 32], expected [32, 32, 56] [MJ023]");
  CHECK(transposed->notes[0] == "this is the transposed shape, which is order = mn_major");
  CHECK(transposed->subject == RuleSubject::W);
  CHECK(checkScaleShape(blocks, data, 32, {32, 32}, RuleSubject::W));

  ScaleLayout perTensor;
  perTensor.granule = {whole, whole};
  CHECK_FALSE(checkScaleShape(perTensor, {-1, 7168}, 32, {1, 1}, RuleSubject::X));
  std::optional<Violation> merged =
      checkScaleShape(perTensor, {-1, 7168}, 32, {32, 1}, RuleSubject::X);
  REQUIRE(merged);
  CHECK(merged->text() == "one scale per tensor is declared, got 32 scales [32, 1] [MJ024]");

  ScaleLayout perExpert;
  perExpert.granule = {expert, whole};
  CHECK_FALSE(checkScaleShape(perExpert, {-1, 7168}, 32, {32, 1}, RuleSubject::X));
  CHECK(checkScaleShape(perExpert, {-1, 7168}, 32, {16, 1}, RuleSubject::X));
}

TEST_CASE("Ids are unique, ascending and tell the kind") {
  std::string previous;
  for (const Rule &rule : allRules()) {
    std::string id = rule.id;
    CHECK(previous < id);
    CHECK((id >= "MJ101") == (rule.kind == Rule::Kind::Unsupported));
    CHECK(findRule(id) != nullptr);
    previous = id;
  }
  CHECK(findRule("MJ000") == nullptr);
}

TEST_CASE("A rule explains itself") {
  Result<std::string> text = explainRule("MJ001");
  REQUIRE(text);
  CHECK(text->rfind("MJ001 (contract)\nA batched GEMM takes dynamic activation scales only.\n",
                    0) == 0);
  CHECK(text->find("Instead: Use 'eager'") != std::string::npos);
  Result<std::string> unknown = explainRule("MJ999");
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().code == ErrorCode::NotFound);
  CHECK(unknown.error().notes[0].find("MJ001 MJ002") != std::string::npos);
}

TEST_CASE("docs/generated/rules.md is up to date") {
  std::ifstream file(MOEJIT_SOURCE_DIR "/docs/generated/rules.md");
  std::stringstream page;
  page << file.rdbuf();
  bool isCurrent = page.str() == renderRulesMarkdown();
  CHECK_MESSAGE(isCurrent, writtenPage());
}
