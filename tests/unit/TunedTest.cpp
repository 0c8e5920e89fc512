// Tables of tuned plans: reading hostile ones, precedence over the heuristic, ranges from times.
#include "runtime/Tuned.h"

#include "runtime/JsonReader.h"

#include <algorithm>

#include <doctest/doctest.h>

#include <fmt/format.h>

using namespace moejit;

namespace {

Spec blockScaled(int64_t numExperts = 8, int64_t n = 1024, int64_t k = 512) {
  Spec spec;
  spec.numExperts = numExperts;
  spec.n = n;
  spec.k = k;
  spec.xScales.granule = {Granule::of(1), Granule::of(128)};
  spec.xScales.source = ScaleSource::Dynamic;
  spec.wScales.granule = {Granule::of(1), Granule::of(128), Granule::of(128)};
  return spec;
}

KernelPlan planOf(const std::string &text) {
  Result<KernelPlan> plan = parsePlan(text);
  REQUIRE_MESSAGE(bool(plan), (plan ? "" : plan.error().text()));
  return *plan;
}

TunedTable tableOf(const Spec &spec, std::vector<TunedRange> ranges) {
  TunedTable table;
  table.gpu = "NVIDIA \"H200\"";
  table.arch = "sm_90a";
  table.smCount = 132;
  table.driver = table.nvrtc = "13.0";
  table.how = "by hand";
  table.specs = {{canonicalText(spec), std::move(ranges)}};
  return table;
}

const char *const narrowText = "tileM=64,tileN=128,stages=6,raster=1,weightPolicy=evict_first";

} // namespace

TEST_CASE("plans are read as they are written, and by what differs") {
  KernelPlan odd = planOf("tileM=64,split=rows,scheduler=static,store=direct,hoistRelease=false");
  CHECK(odd.tileM == 64);
  CHECK(odd.split == WarpgroupSplit::Rows);
  CHECK(!odd.hoistRelease);
  CHECK(odd.tileN == KernelPlan().tileN);
  CHECK(planOf(planText(odd)) == odd);
  CHECK(planOf("") == KernelPlan());
  Result<KernelPlan> other = parsePlan("stages=2", odd);
  REQUIRE(bool(other));
  CHECK(other->tileM == 64);
  CHECK(other->stages == 2);
  // What cannot be, and the word that says so.
  const std::pair<const char *, const char *> bad[] = {{"tileM", "no NAME=VALUE"},
                                                       {"tilem=64", "no field 'tilem'"},
                                                       {"tileM=64k", "a whole number"},
                                                       {"tileM=", "a whole number"},
                                                       {"split=row", "rows or columns"},
                                                       {"checked=1", "true or false"},
                                                       {"tileM=64,,stages=2", "no NAME=VALUE"}};
  for (auto [text, word] : bad) {
    Result<KernelPlan> refused = parsePlan(text);
    REQUIRE_MESSAGE(!refused, text);
    CHECK_MESSAGE(refused.error().message.find(word) != std::string::npos, refused.error().message);
  }
}

TEST_CASE("JSON is read strictly") {
  Result<JsonValue> value = parseJson(" {\"a\": [1, -2.5e1, \"x\\u00e9\\ud83d\\ude00\\n\"], "
                                      "\"b\": {\"c\": null, \"d\": true}} ");
  REQUIRE_MESSAGE(bool(value), (value ? "" : value.error().text()));
  REQUIRE(value->find("a"));
  CHECK(value->find("a")->items[0].integer() == 1);
  CHECK(value->find("a")->items[1].number == -25);
  CHECK(value->find("a")->items[2].text == "x\u00e9\U0001F600\n");
  CHECK(value->find("b")->find("d")->boolean);
  CHECK(!value->find("a")->items[2].integer());
  for (const char *bad : {"",
                          "{",
                          "[1,]",
                          "{\"a\":1,}",
                          "{a:1}",
                          "01",
                          "1.",
                          "-",
                          "1e",
                          "\"\\x\"",
                          "\"\n\"",
                          "\"a",
                          "tru",
                          "[1] 2",
                          "{\"a\":1,\"a\":2}",
                          "\"\\ud800\"",
                          "\"\\udc00x\"",
                          "1e999",
                          "nan",
                          "'a'"}) {
    Result<JsonValue> refused = parseJson(bad);
    CHECK_MESSAGE(!refused, bad);
  }
  CHECK(!parseJson(std::string(100000, '[')));
  CHECK(bool(parseJson(std::string(60, '[') + std::string(60, ']'))));
}

TEST_CASE("tables come back as they were written; every cut and changed byte is survived") {
  TunedTable table = tableOf(
      blockScaled(), {{0, 99, 64, planOf(narrowText), 10.5, 12}, {200, 4000, 1024, {}, 99, 99}});
  table.specs.push_back({canonicalText(blockScaled(4)), {}});
  std::string text = tunedTableJson(table);
  Result<TunedTable> back = parseTunedTable(text);
  REQUIRE_MESSAGE(bool(back), (back ? "" : back.error().text()));
  CHECK(tunedTableJson(*back) == text);
  CHECK(back->gpu == table.gpu);
  for (const TunedSpec &spec : table.specs)
    CHECK(std::find(back->specs.begin(), back->specs.end(), spec) != back->specs.end());
  for (size_t cut = 0; cut + 2 < text.size(); ++cut)
    CHECK(!parseTunedTable(std::string_view(text).substr(0, cut)));
  // Changed bytes may give another table, but nothing that cannot be written again.
  for (size_t at = 0; at < text.size(); ++at)
    for (char byte : {'\0', '"', '}', '9', '-', '\xff'}) {
      std::string changed = text;
      changed[at] = byte;
      if (Result<TunedTable> read = parseTunedTable(changed))
        CHECK(bool(parseTunedTable(tunedTableJson(*read))));
    }
}

TEST_CASE("tables that say what cannot be are refused") {
  std::string good = tunedTableJson(tableOf(blockScaled(), {{0, 99, 64, {}, 1, 1}}));
  REQUIRE(bool(parseTunedTable(good)));
  auto with = [&](const std::string &from, const std::string &to) {
    std::string text = good;
    size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
  };
  const std::pair<std::string, const char *> bad[] = {
      {with("\"format\": 1", "\"format\": 2"), "format 1"},
      {with("\"smCount\": 132", "\"smCount\": \"132\""), "smCount"},
      {with("\"minRows\": 0", "\"minRows\": 100"), "maxRows"},
      {with("\"minRows\": 0", "\"minRows\": -1"), "minRows"},
      {with("\"us\": 1", "\"us\": -1"), "us"},
      {with("tileM=", "tileQ="), "tileQ"},
      {with("\"spec\": \"", "\"spec\": \"x"), "canonical spec"},
      {with("\"gpu\"", "\"gpo\""), "gpu"},
      {"[]", "an object"}};
  for (const auto &[text, word] : bad) {
    Result<TunedTable> refused = parseTunedTable(text);
    REQUIRE_MESSAGE(!refused, text);
    CHECK_MESSAGE(refused.error().message.find(word) != std::string::npos, refused.error().message);
  }
  TunedTable overlapping =
      tableOf(blockScaled(), {{0, 99, 64, {}, 1, 1}, {99, 200, 128, {}, 1, 1}});
  CHECK(!parseTunedTable(tunedTableJson(overlapping)));
  TunedTable twice = tableOf(blockScaled(), {});
  twice.specs.push_back(twice.specs[0]);
  CHECK(!parseTunedTable(tunedTableJson(twice)));
}

TEST_CASE("tuned plans come before the heuristic's where they were measured, and only there") {
  Spec spec = blockScaled();
  KernelPlan tuned = planOf(narrowText);
  PlanRequest request;
  auto use = [&](TunedTable table) {
    request.tuned = std::make_shared<const TunedTable>(std::move(table));
  };
  use(tableOf(spec, {{100, 199, 150, tuned, 1, 2}}));
  KernelPlan below = choosePlan(spec, Target(), 99), above = choosePlan(spec, Target(), 200);
  CHECK(choosePlan(spec, Target(), 99, request) == below);
  CHECK(choosePlan(spec, Target(), 100, request) == tuned);
  CHECK(choosePlan(spec, Target(), 199, request) == tuned);
  CHECK(choosePlan(spec, Target(), 200, request) == above);
  // The ranges still cover every row count once.
  int64_t next = 0;
  for (const PlannedRange &range : planRanges(spec, Target(), request)) {
    CHECK(range.minRows == next);
    next = range.maxRows == INT64_MAX ? -1 : range.maxRows + 1;
  }
  CHECK(next == -1);
  // A plan that is asked for to be checked is, whoever chose it.
  request.checked = true;
  CHECK(choosePlan(spec, Target(), 150, request).checked);
  CHECK(choosePlan(spec, Target(), 150, request).tileN == tuned.tileN);
  request.checked = false;

  SUBCASE("another spec, architecture or number of SMs has no entry") {
    CHECK(choosePlan(blockScaled(9), Target(), 150, request) ==
          choosePlan(blockScaled(9), Target(), 150));
    Target smaller;
    smaller.profile.smCount = 114;
    CHECK(choosePlan(spec, smaller, 150, request) == choosePlan(spec, smaller, 150));
  }
  SUBCASE("a plan that the verifier refuses is passed over") {
    use(tableOf(spec, {{100, 199, 150, planOf("tileM=96"), 1, 2}}));
    CHECK(choosePlan(spec, Target(), 150, request) == choosePlan(spec, Target(), 150));
  }
  SUBCASE("ranges at both ends, and neighbours of one plan are one range") {
    use(tableOf(spec, {{0, 10, 5, tuned, 1, 2}, {11, INT64_MAX - 1, 50, tuned, 1, 2}}));
    std::vector<PlannedRange> ranges = planRanges(spec, Target(), request);
    REQUIRE(ranges.size() == 2);
    CHECK(ranges[0].maxRows == INT64_MAX - 1);
    use(tableOf(spec, {{0, INT64_MAX, 50, tuned, 1, 2}}));
    CHECK(planRanges(spec, Target(), request).size() == 1);
  }
}

TEST_CASE("merging keeps what was not measured again") {
  Spec a = blockScaled(), b = blockScaled(4);
  TunedTable table = tableOf(a, {{0, 9, 4, {}, 1, 1}});
  table.specs.push_back({canonicalText(b), {{0, 9, 4, {}, 1, 1}}});
  TunedTable newer = tableOf(a, {{5, 50, 30, planOf(narrowText), 2, 3}});
  newer.nvrtc = "13.1";
  REQUIRE(bool(mergeTuned(table, newer)));
  CHECK(table.specs.size() == 2);
  CHECK(table.nvrtc == "13.1");
  CHECK(table.find(a, Target())->ranges == newer.specs[0].ranges);
  CHECK(table.find(b, Target())->ranges.size() == 1);
  newer.smCount = 78;
  CHECK(!mergeTuned(table, newer));
  TunedTable empty;
  CHECK(bool(mergeTuned(empty, newer)));
  CHECK(empty == newer);
}

TEST_CASE("ranges meet in the middle, and noise makes no kernels") {
  KernelPlan heuristic, fast = planOf("stages=3"), other = planOf("raster=1");
  std::vector<MeasuredRows> points = {
      {64, {{heuristic, 10}, {fast, 8}, {other, 9}}},
      {256, {{heuristic, 20}, {fast, 18.1}, {other, 18}}},   // one percent: that of before
      {1024, {{heuristic, 50.4}, {fast, 50}, {other, 60}}}}; // one percent: the heuristic's
  std::vector<TunedRange> ranges = tunedRanges(points, 0.01);
  REQUIRE(ranges.size() == 3);
  CHECK(ranges[0].plan == fast);
  CHECK(ranges[1].plan == fast);
  CHECK(ranges[2].plan == heuristic);
  CHECK(ranges[0].minRows == 45);
  CHECK(ranges[0].maxRows == 128);
  CHECK(ranges[1].minRows == 129);
  CHECK(ranges[1].maxRows == 512);
  CHECK(ranges[2].maxRows == 1448);
  CHECK(ranges[1].us == 18.1);
  CHECK(ranges[1].heuristicUs == 20);
  // Neighbouring row counts leave no gap and no overlap.
  std::vector<TunedRange> close = tunedRanges({{7, {{fast, 1}}}, {8, {{fast, 1}}}}, 0);
  CHECK(close[0].maxRows == 7);
  CHECK(close[1].minRows == 8);
  CHECK(tunedRanges({}, 0.01).empty());
}
