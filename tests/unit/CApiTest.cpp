// The C API: folders, specs, errors and launches that need no device.
#include "runtime/c/moejit.h"

#include "runtime/Cache.h"
#include "tests/unit/Samples.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

using namespace moejit;
using namespace moejit::samples;

namespace {

/// A bundle with the sample kernel for rows 0 to 500 (workspace 64 bytes) and above (256 bytes).
void makeBundle(const std::string &folder) {
  CacheOptions options;
  options.folder = folder;
  std::shared_ptr<Cache> cache = *Cache::open(std::move(options));
  Artifact few = artifact(0), many = artifact(1);
  few.launch.workspace = {{Operand::Workspace, 64, 0, true}};
  many.launch.workspace = {{Operand::Workspace, 256, 0, true}};
  REQUIRE(cache->put(few, 0, 500));
  REQUIRE(cache->put(many, 501, INT64_MAX));
  REQUIRE(cache->writeManifest());
}

struct Opened {
  TemporaryFolder folder;
  moejit_library *library = nullptr;
  moejit_gemm *gemm = nullptr;
  char error[2000] = "untouched";

  Opened() {
    makeBundle(folder.path);
    REQUIRE(moejit_open(folder.path.c_str(), MOEJIT_BUNDLE, nullptr, &library, error,
                        sizeof error) == MOEJIT_OK);
    REQUIRE(moejit_gemm_find(library, canonicalText(spec()).c_str(), &gemm, error, sizeof error) ==
            MOEJIT_OK);
  }
  ~Opened() {
    moejit_gemm_release(gemm);
    moejit_close(library);
  }
};

moejit_gemm_arguments noArguments() {
  moejit_gemm_arguments arguments;
  std::memset(&arguments, 0, sizeof arguments);
  arguments.struct_bytes = sizeof arguments;
  return arguments;
}

} // namespace

TEST_CASE("C API: every error code has a status of the same name") {
  for (int code = 0; code <= int(ErrorCode::Internal); ++code)
    CHECK(std::string(moejit_status_name(moejit_status(code + 1))) ==
          errorCodeName(ErrorCode(code)));
  CHECK(std::string(moejit_status_name(MOEJIT_OK)) == "ok");
  CHECK(std::string(moejit_status_name(moejit_status(999))) == "unknown");
  CHECK(std::string(moejit_version()).find('.') != std::string::npos);
}

TEST_CASE("C API: a bundle opens, and success empties the error text") {
  Opened opened;
  CHECK(std::string(opened.error).empty());
  CHECK(opened.gemm != nullptr);
}

TEST_CASE("C API: a cache folder opens for reading") {
  TemporaryFolder folder;
  makeBundle(folder.path);
  moejit_library *library = nullptr;
  REQUIRE(moejit_open(folder.path.c_str(), MOEJIT_CACHE, "sm_90a", &library, nullptr, 0) ==
          MOEJIT_OK);
  moejit_gemm *gemm = nullptr;
  CHECK(moejit_gemm_find(library, canonicalText(spec()).c_str(), &gemm, nullptr, 0) == MOEJIT_OK);
  moejit_gemm_release(gemm);
  moejit_close(library);
}

TEST_CASE("C API: a pinned bundle opens by its digest alone, and an altered kernel is refused") {
  TemporaryFolder folder;
  makeBundle(folder.path);
  CacheOptions options;
  options.folder = folder.path;
  options.mode = CacheMode::Bundle;
  std::string digest = (*Cache::open(options))->manifestSha256();
  char error[2000];
  moejit_library *library = nullptr;
  CHECK(moejit_open_pinned(folder.path.c_str(), std::string(64, '0').c_str(), nullptr, &library,
                           error, sizeof error) == MOEJIT_PARSE_ERROR);
  CHECK(library == nullptr);
  CHECK(std::string(error).find(digest) != std::string::npos);
  for (const char *wrong : {"", "abc", static_cast<const char *>(nullptr)})
    CHECK(moejit_open_pinned(folder.path.c_str(), wrong, nullptr, &library, error, sizeof error) ==
          MOEJIT_INVALID_ARGUMENT);
  REQUIRE(moejit_open_pinned(folder.path.c_str(), digest.c_str(), nullptr, &library, error,
                             sizeof error) == MOEJIT_OK);
  moejit_gemm *gemm = nullptr;
  REQUIRE(moejit_gemm_find(library, canonicalText(spec()).c_str(), &gemm, error, sizeof error) ==
          MOEJIT_OK);
  // The kernel for many rows is not loaded yet.
  std::string many = folder.path + "/" + keyName(artifact(1).buildKey) + ".kernel";
  Artifact forged = artifact(1);
  forged.cubin += "other code";
  std::string bytes = serialize(forged);
  std::FILE *file = std::fopen(many.c_str(), "wb");
  REQUIRE(file);
  CHECK(std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size());
  std::fclose(file);
  CHECK(moejit_gemm_prepare(gemm, 1000, error, sizeof error) == MOEJIT_PARSE_ERROR);
  CHECK(std::string(error).find("not as it was made") != std::string::npos);
  moejit_gemm_release(gemm);
  moejit_close(library);
}

TEST_CASE("C API: what cannot be opened is refused, and the pointer is null") {
  TemporaryFolder folder;
  char error[500];
  auto *library = reinterpret_cast<moejit_library *>(0x1);
  CHECK(moejit_open(folder.path.c_str(), MOEJIT_BUNDLE, nullptr, &library, error, sizeof error) ==
        MOEJIT_NOT_FOUND);
  CHECK(library == nullptr);
  CHECK(std::string(error).find("manifest") != std::string::npos);
  CHECK(moejit_open((folder.path + "/absent").c_str(), MOEJIT_CACHE, nullptr, &library, error,
                    sizeof error) == MOEJIT_IO_ERROR);
  CHECK(moejit_open(folder.path.c_str(), MOEJIT_CACHE, "sm_1", &library, error, sizeof error) ==
        MOEJIT_INVALID_ARGUMENT);
  CHECK(std::string(error).find("sm_1") != std::string::npos);
  CHECK(moejit_open(nullptr, MOEJIT_CACHE, nullptr, &library, error, sizeof error) ==
        MOEJIT_INVALID_ARGUMENT);
  CHECK(moejit_open("", MOEJIT_CACHE, nullptr, &library, error, sizeof error) ==
        MOEJIT_INVALID_ARGUMENT);
  CHECK(moejit_open(folder.path.c_str(), moejit_folder_kind(7), nullptr, &library, error,
                    sizeof error) == MOEJIT_INVALID_ARGUMENT);
  CHECK(moejit_open(folder.path.c_str(), MOEJIT_CACHE, nullptr, nullptr, error, sizeof error) ==
        MOEJIT_INVALID_ARGUMENT);
}

TEST_CASE("C API: a spec is parsed and looked up") {
  Opened opened;
  moejit_gemm *gemm = nullptr;
  CHECK(moejit_gemm_find(opened.library, "no spec", &gemm, opened.error, sizeof opened.error) ==
        MOEJIT_PARSE_ERROR);
  CHECK(gemm == nullptr);
  Spec other = spec();
  other.n = 264;
  CHECK(moejit_gemm_find(opened.library, canonicalText(other).c_str(), &gemm, opened.error,
                         sizeof opened.error) == MOEJIT_NOT_IN_CACHE);
  CHECK(std::string(opened.error).find("moejit aot") != std::string::npos);
  CHECK(moejit_gemm_find(nullptr, "", &gemm, nullptr, 0) == MOEJIT_INVALID_ARGUMENT);
  CHECK(moejit_gemm_find(opened.library, nullptr, &gemm, nullptr, 0) == MOEJIT_INVALID_ARGUMENT);
}

TEST_CASE("C API: checked kernels are found apart, and reports read as sentences") {
  Opened opened;
  moejit_gemm *gemm = nullptr;
  CHECK(moejit_gemm_find_checked(opened.library, canonicalText(spec()).c_str(), &gemm, opened.error,
                                 sizeof opened.error) == MOEJIT_NOT_IN_CACHE);
  CHECK(std::string(opened.error).find("--checked") != std::string::npos);
  CHECK(gemm == nullptr);
  char text[200] = "old";
  int64_t errors[MOEJIT_ERROR_WORDS] = {};
  CHECK(moejit_describe_checks(opened.gemm, errors, text, sizeof text) == MOEJIT_OK);
  CHECK(std::string(text).empty());
  errors[0] = INT64_MAX - 4;
  CHECK(moejit_describe_checks(opened.gemm, errors, text, sizeof text) == MOEJIT_OK);
  CHECK(std::string(text) == "offsets: entry 4 lies outside the rows");
  CHECK(moejit_describe_checks(opened.gemm, nullptr, text, sizeof text) == MOEJIT_INVALID_ARGUMENT);
  CHECK(moejit_describe_checks(nullptr, errors, text, sizeof text) == MOEJIT_INVALID_ARGUMENT);
}

TEST_CASE("C API: the workspace covers every kernel up to the given rows") {
  Opened opened;
  uint64_t bytes = 1;
  CHECK(moejit_gemm_workspace_bytes(opened.gemm, 500, &bytes, nullptr, 0) == MOEJIT_OK);
  CHECK(bytes == 64);
  CHECK(moejit_gemm_workspace_bytes(opened.gemm, 501, &bytes, nullptr, 0) == MOEJIT_OK);
  CHECK(bytes == 256);
  CHECK(moejit_gemm_workspace_bytes(opened.gemm, -1, &bytes, nullptr, 0) ==
        MOEJIT_INVALID_ARGUMENT);
}

TEST_CASE("C API: the workspace of a bundle with gaps covers the kernels it has") {
  TemporaryFolder folder;
  CacheOptions options;
  options.folder = folder.path;
  std::shared_ptr<Cache> cache = *Cache::open(std::move(options));
  Artifact few = artifact(0), many = artifact(1);
  few.launch.workspace = {{Operand::Workspace, 64, 0, true}};
  many.launch.workspace = {{Operand::Workspace, 256, 0, true}};
  REQUIRE(cache->put(few, 10, 20));
  REQUIRE(cache->put(many, 50, 60));
  REQUIRE(cache->writeManifest());
  moejit_library *library = nullptr;
  moejit_gemm *gemm = nullptr;
  REQUIRE(moejit_open(folder.path.c_str(), MOEJIT_BUNDLE, nullptr, &library, nullptr, 0) ==
          MOEJIT_OK);
  REQUIRE(moejit_gemm_find(library, canonicalText(spec()).c_str(), &gemm, nullptr, 0) == MOEJIT_OK);
  uint64_t bytes = 1;
  using Case = std::pair<int64_t, uint64_t>;
  for (auto [rows, expected] :
       {Case(15, 64), Case(20, 64), Case(40, 64), Case(50, 256), Case(INT64_MAX, 256)}) {
    CAPTURE(rows);
    CHECK(moejit_gemm_workspace_bytes(gemm, rows, &bytes, nullptr, 0) == MOEJIT_OK);
    CHECK(bytes == expected);
  }
  CHECK(moejit_gemm_workspace_bytes(gemm, 9, &bytes, nullptr, 0) == MOEJIT_NOT_IN_CACHE);
  moejit_gemm_release(gemm);
  moejit_close(library);
}

TEST_CASE("C API: 0 rows need neither pointers nor a driver") {
  Opened opened;
  moejit_gemm_arguments arguments = noArguments();
  CHECK(moejit_gemm_launch(opened.gemm, &arguments, nullptr, opened.error, sizeof opened.error) ==
        MOEJIT_OK);
  // The GEMM outlives the library it was found in.
  moejit_close(opened.library);
  opened.library = nullptr;
  CHECK(moejit_gemm_launch(opened.gemm, &arguments, nullptr, nullptr, 0) == MOEJIT_OK);
}

TEST_CASE("C API: arguments of another size, or out of range, are refused") {
  Opened opened;
  moejit_gemm_arguments arguments = noArguments();
  arguments.struct_bytes -= 8;
  CHECK(moejit_gemm_launch(opened.gemm, &arguments, nullptr, opened.error, sizeof opened.error) ==
        MOEJIT_INVALID_ARGUMENT);
  CHECK(std::string(opened.error).find("struct_bytes") != std::string::npos);
  arguments = noArguments();
  arguments.rows = -4;
  CHECK(moejit_gemm_launch(opened.gemm, &arguments, nullptr, nullptr, 0) ==
        MOEJIT_INVALID_ARGUMENT);
  arguments = noArguments();
  arguments.expected_rows = -1;
  CHECK(moejit_gemm_launch(opened.gemm, &arguments, nullptr, nullptr, 0) ==
        MOEJIT_INVALID_ARGUMENT);
  CHECK(moejit_gemm_launch(opened.gemm, nullptr, nullptr, nullptr, 0) == MOEJIT_INVALID_ARGUMENT);
  CHECK(moejit_gemm_launch(nullptr, &arguments, nullptr, nullptr, 0) == MOEJIT_INVALID_ARGUMENT);
  CHECK(moejit_gemm_prepare(nullptr, 1, nullptr, 0) == MOEJIT_INVALID_ARGUMENT);
}

TEST_CASE("C API: a launch without a driver, or without a context, says so") {
  Opened opened;
  moejit_gemm_arguments arguments = noArguments();
  arguments.rows = 3;
  moejit_status status =
      moejit_gemm_launch(opened.gemm, &arguments, nullptr, opened.error, sizeof opened.error);
  bool isExpected = status == MOEJIT_UNAVAILABLE || status == MOEJIT_DRIVER_ERROR ||
                    status == MOEJIT_INVALID_ARGUMENT;
  CHECK(isExpected);
  CHECK(!std::string(opened.error).empty());
}

TEST_CASE("C API: an error text is cut to its buffer, at a whole character") {
  Opened opened;
  moejit_gemm *gemm = nullptr;
  char error[8] = "1234567";
  CHECK(moejit_gemm_find(opened.library, "no spec", &gemm, error, 5) == MOEJIT_PARSE_ERROR);
  CHECK(std::strlen(error) == 4);
  CHECK(std::string(error + 5) == "67"); // past the given bytes
  CHECK(moejit_gemm_find(opened.library, "no spec", &gemm, error, 0) == MOEJIT_PARSE_ERROR);
  CHECK(std::strlen(error) == 4);
  // Whatever the length, the text stays valid UTF-8: "é" of the folder's name is never split.
  std::string folder = "/absent/\xc3\xa9\xc3\xa9\xc3\xa9";
  moejit_library *library = nullptr;
  char full[500];
  moejit_open(folder.c_str(), MOEJIT_CACHE, nullptr, &library, full, sizeof full);
  std::string whole = full;
  REQUIRE(whole.find("\xc3\xa9") != std::string::npos);
  for (size_t bytes = 1; bytes <= whole.size(); ++bytes) {
    std::string text(bytes, '?');
    moejit_open(folder.c_str(), MOEJIT_CACHE, nullptr, &library, text.data(), bytes);
    std::string cut = text.c_str();
    CHECK(whole.compare(0, cut.size(), cut) == 0);
    CHECK((cut.empty() || uint8_t(cut.back()) != 0xc3));
  }
}

TEST_CASE("C API: threads share a library and a GEMM") {
  Opened opened;
  std::vector<std::thread> threads;
  std::atomic<int> failures = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        moejit_gemm *gemm = nullptr;
        uint64_t bytes = 0;
        failures += moejit_gemm_find(opened.library, canonicalText(spec()).c_str(), &gemm, nullptr,
                                     0) != MOEJIT_OK;
        failures += moejit_gemm_workspace_bytes(gemm, 600, &bytes, nullptr, 0) != MOEJIT_OK;
        failures += bytes != 256;
        moejit_gemm_release(gemm);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(failures == 0);
}
