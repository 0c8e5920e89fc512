// runtime/Spec.h: names, canonical text there and back, scale shapes.
#include "runtime/Spec.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using namespace moejit;

namespace {

/// DeepSeek-V3's gate_up with 1x128 activations and 128x128 weights.
Spec deepseek() {
  Spec spec;
  spec.numExperts = 256;
  spec.n = 4096;
  spec.k = 7168;
  spec.xScales.granule = {Granule::of(1), Granule::of(128)};
  spec.xScales.source = ScaleSource::Dynamic;
  spec.xScales.order = ScaleOrder::MnMajor;
  spec.xScales.alignBytes = 16;
  spec.wScales.granule = {Granule::of(1), Granule::of(128), Granule::of(128)};
  return spec;
}

constexpr const char *deepseekText =
    "computes=gemm;dispatch=grouped;experts=256;n=4096;k=7168;maxRows=0;x=f8E4M3FN;from=none;"
    "w=f8E4M3FN;out=bf16;"
    "xScales={granule=[1,128],type=f32,source=dynamic,order=mn_major,align=16,packing=1,parts=1,"
    "interleaved=no,phase=[]};"
    "wScales={granule=[1,128,128],type=f32,source=static,order=row_major,align=0,packing=1,parts=1,"
    "interleaved=no,phase=[]};"
    "accumulate=exact;skipped=zeroed;expertMap=0";

/// A Spec in which no field has its default.
Spec unusual() {
  Spec spec;
  spec.computation = Computation::Quantize;
  spec.quantizeFrom = ElementType::BF16;
  spec.dispatch = Dispatch::Masked;
  spec.numExperts = 7;
  spec.n = 704;
  spec.k = 48;
  spec.maxRows = 33;
  spec.xType = ElementType::F8E5M2;
  spec.wType = ElementType::F8E5M2;
  spec.outType = ElementType::F16;
  spec.xScales = {{Granule::of(1), Granule::expert(), Granule::of(32)},
                  ElementType::F8E8M0FNU,
                  ScaleSource::Dynamic,
                  ScaleOrder::MnMajor,
                  16,
                  4,
                  1,
                  false,
                  {0, 0, 16}};
  spec.wScales = {{Granule::whole(), Granule::of(64), Granule::whole()},
                  ElementType::F8E8M0FNU,
                  ScaleSource::Dynamic,
                  ScaleOrder::MnMajor,
                  32,
                  4,
                  2,
                  true,
                  {0, 63, 0}};
  spec.accumulate = Accumulate::Fast;
  spec.skipped = Skipped::Untouched;
  spec.expertMapSize = 8;
  return spec;
}

std::string errorOf(std::string_view text) {
  Result<Spec> parsed = parseSpec(text);
  if (parsed)
    return "parsed";
  CHECK(parsed.error().code == ErrorCode::ParseError);
  return parsed.error().message;
}

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

} // namespace

TEST_CASE("The canonical text is pinned: cached kernels are found by it") {
  CHECK(canonicalText(deepseek()) == deepseekText);
}

TEST_CASE("Canonical text reads back as the same Spec") {
  for (const Spec &spec : {Spec(), deepseek(), unusual()}) {
    Result<Spec> parsed = parseSpec(canonicalText(spec));
    REQUIRE(parsed);
    CHECK(*parsed == spec);
  }
}

TEST_CASE("Every field is in the text: changing one changes it") {
  std::vector<std::pair<const char *, Spec>> changed;
  auto change = [&](const char *field, auto edit) {
    Spec spec = deepseek();
    edit(spec);
    changed.emplace_back(field, spec);
  };
  change("computation", [](Spec &s) { s.computation = Computation::Quantize; });
  change("quantizeFrom", [](Spec &s) { s.quantizeFrom = ElementType::F16; });
  change("dispatch", [](Spec &s) { s.dispatch = Dispatch::Batched; });
  change("numExperts", [](Spec &s) { s.numExperts = 255; });
  change("n", [](Spec &s) { s.n = 4104; });
  change("k", [](Spec &s) { s.k = 7184; });
  change("maxRows", [](Spec &s) { s.maxRows = 1; });
  change("xType", [](Spec &s) { s.xType = ElementType::F8E5M2; });
  change("wType", [](Spec &s) { s.wType = ElementType::F8E5M2; });
  change("outType", [](Spec &s) { s.outType = ElementType::F32; });
  change("accumulate", [](Spec &s) { s.accumulate = Accumulate::Fast; });
  change("skipped", [](Spec &s) { s.skipped = Skipped::Untouched; });
  change("expertMapSize", [](Spec &s) { s.expertMapSize = 8; });
  for (ScaleLayout Spec::*side : {&Spec::xScales, &Spec::wScales}) {
    change("granule kind", [&](Spec &s) { (s.*side).granule[1] = Granule::whole(); });
    change("granule extent", [&](Spec &s) { (s.*side).granule[1] = Granule::of(64); });
    change("type", [&](Spec &s) { (s.*side).type = ElementType::F8E8M0FNU; });
    change("source", [&](Spec &s) {
      bool isStatic = (s.*side).source == ScaleSource::Static;
      (s.*side).source = isStatic ? ScaleSource::Dynamic : ScaleSource::Static;
    });
    change("order", [&](Spec &s) {
      bool isRowMajor = (s.*side).order == ScaleOrder::RowMajor;
      (s.*side).order = isRowMajor ? ScaleOrder::MnMajor : ScaleOrder::RowMajor;
    });
    change("alignBytes", [&](Spec &s) { (s.*side).alignBytes = 32; });
    change("packing", [&](Spec &s) { (s.*side).packing = 4; });
    change("parts", [&](Spec &s) { (s.*side).parts = 2; });
    change("interleaved", [&](Spec &s) { (s.*side).interleaved = true; });
    change("phase", [&](Spec &s) { (s.*side).phase = {0, 64}; });
  }
  for (const auto &[field, spec] : changed) {
    CAPTURE(field);
    CHECK(canonicalText(spec) != deepseekText);
    Result<Spec> parsed = parseSpec(canonicalText(spec));
    REQUIRE(parsed);
    CHECK(*parsed == spec);
  }
}

TEST_CASE("A phase of zeros has the text of none") {
  Spec spec = deepseek();
  spec.xScales.phase = {0, 0};
  CHECK(canonicalText(spec) == deepseekText);
}

TEST_CASE("The parser is strict, and says where and what") {
  const std::string text = deepseekText;
  CHECK(errorOf("") == "spec text, position 0: expected 'computes=', found the end");
  CHECK(errorOf(replaced(text, "grouped", "group")) ==
        "spec text, position 23: expected eager, batched, grouped or masked, found "
        "'group;experts=256;n=4096'");
  CHECK(errorOf(replaced(text, "n=4096", "n=x")) ==
        "spec text, position 45: expected a number, found 'x;k=7168;maxRows=0;x=f8E'");
  CHECK(errorOf(text + " ") == "spec text, position 386: expected the end, found ' '");
  CHECK(errorOf(text.substr(0, 20)).find("expected ") != std::string::npos);
  for (const auto &[from, to] :
       std::vector<std::pair<std::string, std::string>>{{"=256", "=0256"},
                                                        {"=256", "=+256"},
                                                        {"=256", "= 256"},
                                                        {"=256", "=-0"},
                                                        {"=256", "=99999999999999999999"},
                                                        {"[1,128]", "[1,128,]"},
                                                        {"[1,128]", "[1, 128]"},
                                                        {"[1,128]", "[]1"},
                                                        {"phase=[]", "phase=[0,0]"},
                                                        {"expertMap=0", "expertMap=no"},
                                                        {"from=none", "from=None"},
                                                        {"n=4096;", "n=4096;n=4096;"}}) {
    CAPTURE(to);
    CHECK(errorOf(replaced(text, from, to)) != "parsed");
  }
}

TEST_CASE("No truncation of a text parses, and none crashes") {
  const std::string text = canonicalText(unusual());
  for (size_t length = 0; length < text.size(); ++length)
    CHECK_FALSE(parseSpec(std::string_view(text).substr(0, length)));
}

TEST_CASE("Names of enumerators read back") {
  for (ElementType type : {ElementType::F8E4M3FN, ElementType::F8E5M2, ElementType::F8E8M0FNU,
                           ElementType::BF16, ElementType::F16, ElementType::F32, ElementType::I32})
    CHECK(parseElementType(elementTypeName(type)) == type);
  CHECK_FALSE(parseElementType("f8e4m3fn"));
  for (Dispatch dispatch :
       {Dispatch::Eager, Dispatch::Batched, Dispatch::Grouped, Dispatch::Masked})
    CHECK(parseDispatch(dispatchName(dispatch)) == dispatch);
  CHECK(elementBytes(ElementType::F8E8M0FNU) == 1);
  CHECK(elementBytes(ElementType::BF16) == 2);
  CHECK(elementBytes(ElementType::I32) == 4);
}

TEST_CASE("Scale shapes: each published layout") {
  auto shape = [](std::vector<Granule> granule, std::vector<int64_t> data,
                  int64_t numExperts = 32) {
    ScaleLayout layout;
    layout.granule = std::move(granule);
    return scaleShape(layout, data, numExperts);
  };
  using Shape = std::vector<int64_t>;
  Granule one = Granule::of(1), block = Granule::of(128), whole = Granule::whole();
  CHECK(shape({whole, whole}, {-1, 7168}) == Shape{1, 1});              // per tensor
  CHECK(shape({Granule::expert(), whole}, {-1, 7168}) == Shape{32, 1}); // static, per expert
  CHECK(shape({one, whole}, {-1, 7168}) == Shape{-1, 1});               // per token
  CHECK(shape({one, block}, {300, 7168}) == Shape{300, 56});            // groups
  CHECK(shape({one, block, block}, {32, 4096, 7168}) == Shape{32, 32, 56});
  CHECK(shape({one, one, whole}, {32, 4096, 7168}) == Shape{32, 4096, 1});  // per channel
  CHECK(shape({one, whole, whole}, {32, 4096, 7168}) == Shape{32, 1, 1});   // per expert
  CHECK(shape({one, block, block}, {32, 4104, 7184}) == Shape{32, 33, 57}); // ragged: ceil-divided
  CHECK(shape({one, Granule::of(32)}, {5, 96}) == Shape{5, 3});             // MX
  CHECK(shape({one}, {5, 96}).empty());                                     // wrong rank
  CHECK(shape({one, Granule::of(0)}, {5, 96}) == Shape{5, 0}); // nonsense does not divide by zero
}

TEST_CASE("Scale shapes: each part has its own ceil-divided rows") {
  // I per rank of facts on tensor parallelism: gate_up has N = 2I; two parts give 2·ceil(I/128),
  // one ceil(2I/128).
  struct Row {
    int64_t intermediate, twoParts, onePart;
  };
  for (const Row &row : {Row{64, 2, 1}, Row{96, 2, 2}, Row{160, 4, 3}, Row{192, 4, 3},
                         Row{256, 4, 4}, Row{704, 12, 11}}) {
    ScaleLayout layout;
    layout.granule = {Granule::of(1), Granule::of(128), Granule::of(128)};
    std::vector<int64_t> data = {8, 2 * row.intermediate, 256};
    CHECK(scaleShape(layout, data, 8) == std::vector<int64_t>{8, row.onePart, 2});
    layout.parts = 2;
    CHECK(scaleShape(layout, data, 8) == std::vector<int64_t>{8, row.twoParts, 2});
    layout.interleaved = true;
    CHECK(scaleShape(layout, data, 8) == std::vector<int64_t>{8, row.twoParts, 2});
  }
  ScaleLayout perPart;
  perPart.granule = {Granule::of(1), Granule::whole(), Granule::whole()};
  perPart.parts = 2;
  CHECK(scaleShape(perPart, {8, 192, 256}, 8) == std::vector<int64_t>{8, 2, 1});
}

TEST_CASE("Scale shapes: a phase counts granules as brute force does") {
  for (int64_t extent = 1; extent <= 40; ++extent)
    for (int64_t granule = 1; granule <= 9; ++granule)
      for (int64_t phase = 0; phase < granule; ++phase) {
        int64_t first = phase / granule;
        int64_t last = (phase + extent - 1) / granule;
        ScaleLayout layout;
        layout.granule = {Granule::of(1), Granule::of(granule)};
        layout.phase = {0, phase};
        REQUIRE(scaleShape(layout, {1, extent}, 1) == std::vector<int64_t>{1, last - first + 1});
      }
}

TEST_CASE("Scale shapes: order and packing are those of memory") {
  ScaleLayout layout;
  layout.granule = {Granule::of(1), Granule::of(128)};
  layout.order = ScaleOrder::MnMajor;
  CHECK(scaleShape(layout, {-1, 7168}, 1) == std::vector<int64_t>{56, -1});
  layout.type = ElementType::F8E8M0FNU;
  layout.packing = 4;
  CHECK(scaleShape(layout, {-1, 7168}, 1) == std::vector<int64_t>{14, -1});
  CHECK(scaleShape(layout, {-1, 640}, 1) == std::vector<int64_t>{2, -1});
  CHECK(layout.storedType() == ElementType::I32);
}

TEST_CASE("Shapes of operands follow the dispatch") {
  Spec spec = deepseek();
  CHECK(xShape(spec) == std::vector<int64_t>{-1, 7168});
  CHECK(wShape(spec) == std::vector<int64_t>{256, 4096, 7168});
  spec.dispatch = Dispatch::Eager;
  CHECK(wShape(spec) == std::vector<int64_t>{4096, 7168});
  spec.dispatch = Dispatch::Masked;
  spec.maxRows = 64;
  CHECK(xShape(spec) == std::vector<int64_t>{256, 64, 7168});
}

TEST_CASE("Layouts describe themselves") {
  ScaleLayout layout;
  layout.granule = {Granule::expert(), Granule::whole()};
  CHECK(layout.granuleText() == "[expert, *]");
  CHECK_FALSE(layout.isPerTensor());
  CHECK(layout.kGranule() == 0);
  layout.granule = {Granule::whole(), Granule::whole()};
  CHECK(layout.isPerTensor());
  layout.granule = {Granule::of(1), Granule::of(128)};
  CHECK(layout.granuleText() == "[1, 128]");
  CHECK(layout.kGranule() == 128);
  CHECK_FALSE(layout.hasPhase());
  layout.phase = {0, 32};
  CHECK(layout.hasPhase());
}
