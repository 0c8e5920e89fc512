// Artifact bytes: round trips, damage of every kind, and fields of hostile writers.
#include "runtime/Artifact.h"

#include "Samples.h"
#include "runtime/Sha256.h"

#include <doctest/doctest.h>

#include <cstring>
#include <random>

using namespace moejit;

namespace {

constexpr size_t headBytes = 56;

/// `payload` under a head with a right checksum, as a hostile writer would make it.
std::string sealed(std::string_view payload, uint32_t minor = Artifact::formatMinor) {
  std::string format;
  auto add = [&](auto value) {
    format.append(reinterpret_cast<const char *>(&value), sizeof value);
  };
  add(uint32_t(Artifact::formatMajor));
  add(minor);
  add(uint64_t(payload.size()));
  auto digest = [](const std::string &bytes) {
    auto raw = sha256(bytes);
    return std::string(raw.begin(), raw.end());
  };
  std::string magic("MOEJIT\x1a\n", 8);
  return magic + format + digest(format + digest(std::string(payload))) + std::string(payload);
}

} // namespace

TEST_CASE("an artifact comes back as it was") {
  Artifact artifact = samples::artifact();
  Result<Artifact> back = deserialize(serialize(artifact));
  REQUIRE(back);
  CHECK(*back == artifact);
  CHECK(serialize(*back) == serialize(artifact));
}

TEST_CASE("an empty artifact comes back as it was") {
  Artifact empty;
  empty.spec = samples::spec();
  Result<Artifact> back = deserialize(serialize(empty));
  REQUIRE(back);
  CHECK(*back == empty);
}

TEST_CASE("binary contents survive") {
  Artifact artifact = samples::artifact();
  for (int byte = 0; byte < 256; ++byte)
    artifact.cubin += char(byte);
  artifact.launch.workspace = {{Operand::Workspace, 4, 0, true},
                               {Operand::XQuantized, uint64_t(1) << 40, 7168, false}};
  artifact.launch.tensorMaps[0].extents[0].constant = -1;
  Result<Artifact> back = deserialize(serialize(artifact));
  REQUIRE(back);
  CHECK(*back == artifact);
}

// FreeToken #490: a file cut short must be told apart from a kernel, wherever the cut is.
TEST_CASE("every truncation is refused") {
  std::string bytes = serialize(samples::artifact());
  for (size_t length = 0; length < bytes.size(); ++length) {
    Result<Artifact> cut = deserialize(std::string_view(bytes).substr(0, length));
    CAPTURE(length);
    REQUIRE_FALSE(cut);
    REQUIRE(cut.error().code == ErrorCode::ParseError);
  }
  CHECK_FALSE(deserialize(bytes + '\0'));
}

TEST_CASE("every flipped bit is refused") {
  std::string bytes = serialize(samples::artifact());
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = char(flipped[bit / 8] ^ (1 << (bit % 8)));
    Result<Artifact> damaged = deserialize(flipped);
    CAPTURE(bit);
    REQUIRE_FALSE(damaged);
    REQUIRE(damaged.error().code == ErrorCode::ParseError);
  }
}

// A checksum is no signature. Payloads cut or changed under a right checksum must end in an answer,
// not in a crash; what is accepted must be writable again.
TEST_CASE("sealed hostile payloads are answered") {
  std::string bytes = serialize(samples::artifact());
  std::string payload = bytes.substr(headBytes);
  REQUIRE(sealed(payload) == bytes);
  for (size_t length = 0; length < payload.size(); ++length) {
    CAPTURE(length);
    REQUIRE_FALSE(deserialize(sealed(payload.substr(0, length))));
  }
  std::mt19937 random(7);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string changed = payload;
    int changes = 1 + int(random() % 4);
    for (int i = 0; i < changes; ++i) {
      // Lengths, counts and enumerators are small numbers and large ones; both get tried.
      char values[] = {0, 1, 0x7f, char(0xff), char(random())};
      changed[random() % changed.size()] = values[random() % 5];
    }
    Result<Artifact> result = deserialize(sealed(changed));
    if (!result)
      ++refused;
    else
      REQUIRE(deserialize(serialize(*result)));
  }
  CHECK(refused > 1000);
}

TEST_CASE("counts that the bytes cannot hold are refused before anything is allocated") {
  Artifact artifact = samples::artifact();
  std::string payload = serialize(artifact).substr(headBytes);
  // Tag 12, 130 bytes, 9 parameters.
  size_t at = payload.find(std::string("\x0c\0\0\0\x82\0\0\0\0\0\0\0\x09\0\0\0", 16));
  REQUIRE(at != std::string::npos);
  payload.replace(at + 12, 4, "\xff\xff\xff\xff");
  Result<Artifact> result = deserialize(sealed(payload));
  REQUIRE_FALSE(result);
  CHECK(result.error().message.find("parameters") != std::string::npos);
}

TEST_CASE("a workspace whose sizes could overflow, or whose zeros do not lie together, is damage") {
  const std::vector<WorkspaceRegion> unsound[] = {
      {{Operand::Workspace, WorkspaceRegion::maxBytes + 1, 0, true}},
      {{Operand::XQuantized, 0, WorkspaceRegion::maxRowBytes + 1, false}},
      {{Operand::Counters, 8, 16, true}}, // zeros that grow with the rows
      {{Operand::XQuantized, 0, 16, false}, {Operand::Counters, 8, 0, true}},
      {{Operand::X, 8, 0, false}}, // no scratch
      {{Operand::XQuantized, 0, 16, false}, {Operand::XQuantized, 0, 16, false}},
  };
  for (const std::vector<WorkspaceRegion> &workspace : unsound) {
    Artifact artifact = samples::artifact();
    artifact.launch.workspace = workspace;
    Result<Artifact> result = deserialize(serialize(artifact));
    REQUIRE_FALSE(result);
    CHECK(result.error().message.find("workspace") != std::string::npos);
  }
}

TEST_CASE("another major format is refused by name, a newer minor is read") {
  std::string bytes = serialize(samples::artifact());
  std::string other = bytes;
  other[8] = char(Artifact::formatMajor + 1);
  Result<Artifact> refused = deserialize(other);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "the artifact has format 3.1, this runtime reads format 2");

  std::string extra("\x40\0\0\0\x02\0\0\0\0\0\0\0hi", 14);
  std::string payload = bytes.substr(headBytes) + extra;
  Result<Artifact> newer = deserialize(sealed(payload, Artifact::formatMinor + 1));
  REQUIRE(newer);
  CHECK(*newer == samples::artifact());
  CHECK_FALSE(deserialize(sealed(payload)));
}

// Records of format 2.0 end before the flags.
TEST_CASE("an artifact of format 2.0 is read, and has no flags") {
  Artifact artifact = samples::artifact();
  artifact.launch.cleansWorkspace = artifact.launch.dependentLaunch = true;
  std::string payload = serialize(artifact).substr(headBytes);
  CHECK(*deserialize(sealed(payload)) == artifact);
  // The launch numbers: tag 10, then 16 bytes.
  const std::string head("\x0a\0\0\0\x10\0\0\0\0\0\0\0", 12);
  const size_t at = payload.find(head);
  REQUIRE(at != std::string::npos);
  std::string old = payload;
  old[at + 4] = 12;
  old.erase(at + 12 + 12, 4);
  Result<Artifact> read = deserialize(sealed(old, 0));
  REQUIRE(read);
  artifact.launch.cleansWorkspace = artifact.launch.dependentLaunch = false;
  CHECK(*read == artifact);
  CHECK_FALSE(deserialize(sealed(old)));
  CHECK_FALSE(deserialize(sealed(payload, 0)));
  std::string unknown = payload;
  unknown[at + 12 + 12] |= char(0x80);
  CHECK_FALSE(deserialize(sealed(unknown)));
  CHECK(deserialize(sealed(unknown, Artifact::formatMinor + 1)));
}

TEST_CASE("fields out of order, twice or missing are refused") {
  std::string payload = serialize(samples::artifact()).substr(headBytes);
  uint64_t specLength = 0;
  std::memcpy(&specLength, payload.data() + 4, 8);
  size_t specEnd = 12 + size_t(specLength);
  CHECK_FALSE(deserialize(sealed(payload.substr(specEnd))));
  CHECK_FALSE(deserialize(sealed(payload.substr(0, specEnd) + payload)));
  CHECK_FALSE(deserialize(sealed(payload.substr(specEnd) + payload.substr(0, specEnd))));
  CHECK_FALSE(deserialize(sealed("")));
}
