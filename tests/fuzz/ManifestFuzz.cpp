// Manifests of bundles, and indices as texts, with their checksum made right too.
#include "runtime/CacheIndex.h"
#include "runtime/Manifest.h"
#include "runtime/Sha256.h"
#include "tests/fuzz/Fuzz.h"

using namespace moejit;

const char *const fuzz::dictionary[] = {
    "\"formatMajor\": ", "\"kernels\": [",      "\"files\": {", "\"name\": ",
    "\"lookup\": ",      "\"rows\": [[",        "\"arch\": ",   "\"sha256\": ",
    "\"bytes\": ",       "\"resources\": {",    "../x.kernel",  "/etc/passwd.kernel",
    "moejit-index 1",    "9223372036854775807", "null",         nullptr};

static void checkIndex(std::string_view text) {
  std::optional<CacheIndex> index = parseIndex(text);
  if (!index)
    return;
  fuzz::require(indexText(*index) == text, "an index is written as it was read");
  for (const IndexedRange &range : index->ranges)
    fuzz::require(range.name.size() == 64 && range.name.find('/') == std::string::npos,
                  "an index names kernels of its folder");
  std::vector<IndexedRange> more = withRange(index->ranges, {5, 70, std::string(64, 'a')});
  fuzz::require(!more.empty(), "a range can be added to any index");
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text = fuzz::textOf(data, size);
  Result<Manifest> manifest = parseManifest(text);
  if (manifest) {
    std::string json = manifestJson(*manifest);
    Result<Manifest> again = parseManifest(json);
    fuzz::require(bool(again), "what is written can be read");
    fuzz::require(*again == *manifest, "a manifest is read as it was written");
    fuzz::require(manifestJson(*again) == json, "equal manifests give equal text");
    for (const auto &[name, file] : manifest->files)
      fuzz::require(name.find('/') == std::string::npos && name != ".." && !name.empty() &&
                        isSha256(file.sha256),
                    "a manifest names files of its folder");
  } else {
    fuzz::require(manifest.error().code == ErrorCode::ParseError, "a refusal is a ParseError");
  }
  checkIndex(text);
  size_t line = text.find('\n');
  std::string_view body = line == text.npos ? text : text.substr(line + 1);
  if (!body.empty() && body.back() == '\n')
    body.remove_suffix(1);
  checkIndex(sha256Hex(body) + "\n" + std::string(body) + "\n");
  return 0;
}
