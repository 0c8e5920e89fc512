// runtime/Target.h: known architectures and their text.
#include "runtime/Target.h"

#include <doctest/doctest.h>

using namespace moejit;

TEST_CASE("The default target is the one parseTarget gives for sm_90a") {
  Result<Target> target = parseTarget("sm_90a");
  REQUIRE(target);
  CHECK(*target == Target());
  CHECK(canonicalText(*target) == "arch=sm_90a;device=h200;sms=132;l2Bytes=62914560;bandwidthGBps="
                                  "4300;sharedBytesPerBlock=232448");
}

TEST_CASE("Every known architecture parses, with texts of its own") {
  std::vector<std::string> texts;
  for (const std::string &arch : knownArchitectures()) {
    Result<Target> target = parseTarget(arch);
    REQUIRE(target);
    CHECK(target->arch == arch);
    for (const std::string &other : texts)
      CHECK(canonicalText(*target) != other);
    texts.push_back(canonicalText(*target));
  }
  CHECK(texts.size() == 5);
}

TEST_CASE("An unknown architecture is refused, and the suffix explained") {
  Result<Target> target = parseTarget("sm_90");
  REQUIRE_FALSE(target);
  CHECK(target.error().code == ErrorCode::InvalidArgument);
  CHECK(target.error().message ==
        "unknown architecture 'sm_90', expected one of sm_80, sm_89, sm_90a, sm_100a, sm_120a");
  REQUIRE(target.error().notes.size() == 1);
  CHECK(target.error().notes[0].find("sm_90a") != std::string::npos);
  CHECK_FALSE(parseTarget(""));
  CHECK_FALSE(parseTarget("sm_90a "));
}

TEST_CASE("A device name cannot forge a field") {
  Target plain, forged;
  forged.profile.name = "h200;sms=1";
  CHECK(canonicalText(forged) != canonicalText(plain));
  CHECK(canonicalText(forged).find("device=h200%3bsms%3d1;sms=132") != std::string::npos);
}
