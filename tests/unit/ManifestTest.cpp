// The manifest: a round trip, and what is refused.
#include "runtime/Manifest.h"

#include "runtime/Sha256.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>

using namespace moejit;

namespace {

Manifest sample() {
  Manifest manifest;
  for (int i = 0; i < 2; ++i) {
    ManifestKernel kernel;
    kernel.name = sha256Hex("build " + std::to_string(i));
    kernel.lookup = sha256Hex("lookup");
    kernel.rows = {{0, 63}, {65, i ? std::numeric_limits<int64_t>::max() : 80}};
    kernel.arch = "sm_90a";
    kernel.spec = "dispatch=grouped;\"quoted\\\n";
    kernel.plan = "tileM=64";
    kernel.nvrtc = "13.0";
    kernel.minDriver = 12000 + 1000 * uint32_t(i);
    kernel.resources = {168, 1, 2, 3, 4};
    kernel.sharedBytes = 200004;
    kernel.threads = 384;
    manifest.files[kernel.name + ".kernel"] = {100, sha256Hex("kernel")};
    manifest.files[kernel.lookup + ".index"] = {20, sha256Hex("index")};
    manifest.kernels.push_back(kernel);
  }
  return manifest;
}

/// The text of the sample with `from` replaced by `to`, once.
std::string changed(const std::string &from, const std::string &to) {
  std::string text = manifestJson(sample());
  size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

} // namespace

TEST_CASE("a manifest comes back as it was") {
  for (const Manifest &manifest : {sample(), Manifest()}) {
    Result<Manifest> read = parseManifest(manifestJson(manifest));
    REQUIRE(read);
    CHECK(*read == manifest);
    CHECK(manifestJson(*read) == manifestJson(manifest));
  }
  CHECK(sample().minDriver() == 13000);
  CHECK(Manifest().minDriver() == 0);
}

TEST_CASE("what is no manifest is refused, and the error names it") {
  std::string name = sample().kernels[0].name;
  for (auto [text, expected] : std::initializer_list<std::pair<std::string, const char *>>{
           {"", "is damaged"},
           {"{", "is damaged"},
           {"null", "it names no format"},
           {"{}", "it names no format"},
           {"{\"formatMajor\": \"2\"}", "it names no format"},
           {"{\"formatMajor\": 99}", "has format 99, this runtime reads format"},
           {"{\"formatMajor\": 2}", "no list of kernels"},
           {changed("\"files\"", "\"fils\""), "no list of kernels"},
           {changed("\"registers\": 168", "\"registers\": -1"),
            "'registers' is not a whole number"},
           {changed("\"registers\": 168", "\"registers\": 4294967296"), "'registers'"},
           {changed("\"arch\": \"sm_90a\"", "\"arch\": 90"), "'arch' is not a string"},
           {changed("[0, 63]", "[63, 0]"), "'rows'"},
           {changed("[65, 80]", "[63, 80]"), "'rows'"},
           {changed("[65, 80]", "[65]"), "'rows'"},
           {changed("\"name\": \"" + name, "\"name\": \"../" + name.substr(3)), "'name'"},
           {changed("\"" + name + ".kernel", "\"../" + name + ".kernel"), "name of a file"},
           {changed("\"" + name + ".kernel", "\"other.kernel"), "is not among the files"},
           {changed("\"sha256\": \"", "\"sha256\": \"0"), "'sha256' is not a SHA-256"},
           {changed("\"sha256\": \"", "\"sha256\": \"Z"), "'sha256'"},
       }) {
    CAPTURE(text);
    Result<Manifest> read = parseManifest(text);
    REQUIRE_FALSE(read);
    CHECK(read.error().code == ErrorCode::ParseError);
    CHECK(read.error().message.find(expected) != std::string::npos);
  }
}

TEST_CASE("a manifest that is cut short is refused at every length") {
  std::string text = manifestJson(sample());
  // The last byte is a line end.
  for (size_t length = 0; length + 1 < text.size(); ++length)
    CHECK_FALSE(parseManifest(text.substr(0, length)));
}
