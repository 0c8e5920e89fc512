// The JSON reader on hostile texts; TunedTest.cpp has the grammar.
#include "runtime/JsonReader.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>

using namespace moejit;

TEST_CASE("objects of very many names are read in little time, and repeated names are found") {
  std::string text = "{";
  for (int i = 0; i < 200000; ++i)
    text += fmt::format("\"model.layers.{}.experts.{}.weight\":{},", i % 61, i, i);
  auto begin = std::chrono::steady_clock::now();
  Result<JsonValue> value = parseJson(text + "\"end\":0}");
  REQUIRE_MESSAGE(bool(value), (value ? "" : value.error().text()));
  CHECK(value->members.size() == 200001);
  // Comparing each name with each would be 2·10^10 comparisons: minutes.
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
  for (int repeated : {0, 15, 16, 17, 199999}) {
    Result<JsonValue> refused = parseJson(
        text + fmt::format("\"model.layers.{}.experts.{}.weight\":1}}", repeated % 61, repeated));
    REQUIRE(!refused);
    CHECK(refused.error().message.find("each name once") != std::string::npos);
    CHECK(refused.error().message.find(fmt::format("byte {}", text.size())) == 0);
  }
  CHECK(!parseJson("{\"a\":1,\"b\":2,\"\\u0061\":3}"));
}

TEST_CASE("values and levels are counted") {
  JsonOptions options;
  options.maxValues = 4;
  CHECK(bool(parseJson("[1,2,3]", options)));
  Result<JsonValue> refused = parseJson("[1,2,3,4]", options);
  REQUIRE(!refused);
  CHECK(refused.error().message == "byte 7: expected at most 4 values");
  CHECK(!parseJson("[" + std::string(size_t(5) << 20, '1') + ",", options));
  for (const char *open : {"[", "{\"a\":"}) {
    std::string text;
    for (int i = 0; i < 1000000; ++i)
      text += open;
    CHECK(!parseJson(text));
  }
}

TEST_CASE("strings are UTF-8") {
  for (const char *good : {"\"\xc2\x80\"", "\"\xdf\xbf\"", "\"\xe0\xa0\x80\"", "\"\xed\x9f\xbf\"",
                           "\"\xee\x80\x80\"", "\"\xf0\x90\x80\x80\"", "\"\xf4\x8f\xbf\xbf\""})
    CHECK_MESSAGE(bool(parseJson(good)), good);
  for (const char *bad :
       {"\"\x80\"", "\"\xc0\x80\"", "\"\xc1\xbf\"", "\"\xc2\"", "\"\xc2", "\"\xe0\x9f\xbf\"",
        "\"\xed\xa0\x80\"", "\"\xf0\x8f\xbf\xbf\"", "\"\xf4\x90\x80\x80\"", "\"\xf5\x80\x80\x80\"",
        "\"\xff\"", "\"\xe2\x82", "\"\xe2\x82\"", "{\"\xff\":1}", "\xef\xbb\xbf{}"}) {
    Result<JsonValue> refused = parseJson(bad);
    CHECK_MESSAGE(!refused, bad);
  }
  CHECK(parseJson("\"\xff\"").error().message == "byte 1: expected UTF-8");
  CHECK(parseJson("\"a\xe2\x82z\"").error().message == "byte 4: expected UTF-8");
}

TEST_CASE("what Python writes and RFC 8259 has not is taken on request alone") {
  JsonOptions python;
  python.allowsNonFinite = true;
  for (const char *text : {"NaN", "Infinity", "-Infinity", "[0.0, Infinity]", "1e999", "-1e999"}) {
    CHECK_MESSAGE(!parseJson(text), text);
    CHECK_MESSAGE(bool(parseJson(text, python)), text);
  }
  CHECK(std::isnan(parseJson("NaN", python)->number));
  CHECK(parseJson("-Infinity", python)->number == -HUGE_VAL);
  CHECK(!parseJson("Infinity", python)->integer());
  CHECK(!parseJson("NaN", python)->integer());
  CHECK(!parseJson("-NaN", python));
  CHECK(!parseJson("+Infinity", python));
}

TEST_CASE("integers beyond 2^53 are none") {
  CHECK(parseJson("9007199254740992")->integer() == int64_t(1) << 53);
  CHECK(!parseJson("9007199254740993000")->integer());
  CHECK(!parseJson("1e300")->integer());
  CHECK(!parseJson("1.5")->integer());
  CHECK(parseJson("1e3")->integer() == 1000);
}
