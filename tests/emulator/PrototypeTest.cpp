// No false alarms: the hand-written kernels of the study, which ran right on the GPU, run clean.
// They are no part of this tree: MOEJIT_PROTOTYPES names the folder with prefill.cu and decode.cu,
// and without it these tests say that they have not run.
#include "tests/emulator/Harness.h"
#include "tests/oracle/Compare.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

using namespace moejit;
using namespace moejit::test;

namespace {

std::string readAll(const std::string &path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// The parts of `text` between `separator`s outside strings and parentheses.
std::vector<std::string> splitTop(const std::string &text, char separator) {
  std::vector<std::string> parts = {""};
  int depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' && text[i - (i > 0)] != '\\')
      inString = !inString;
    if (!inString)
      depth += (c == '(') - (c == ')');
    if (c == separator && !inString && depth == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

/// `asm("text" : outputs : inputs : clobbers)` as a call of Shim.h, by the instruction it has.
std::string translated(const std::string &body) {
  // The first that the text has: longer ones first.
  static constexpr std::pair<const char *, const char *> calls[] = {
      {"st.shared::cluster", "ptx_not_modelled"},
      {"cp.async.bulk", "ptx_not_modelled"},
      {"ld.acquire.gpu", "ptx_not_modelled"},
      {"mbarrier.try_wait.parity.acquire.cluster", "ptx_wait_cluster"},
      {"mbarrier.arrive.shared::cluster", "ptx_arrive_mapped"},
      {"mapa.shared::cluster", "ptx_mapa"},
      {"fence.mbarrier_init", "ptx_fence_mbarrier_init"},
      {"fence.proxy.async", "ptx_fence_proxy"},
      {"cvt.rn.satfinite.e4m3x2", "ptx_cvt_e4m3x2"},
      {"ld.shared.u32", "ptx_ld_shared"},
      {"st.shared.v2.u32", "ptx_st_shared_v2"},
      {"st.shared.u32", "ptx_st_shared"},
      {"st.shared.f32", "ptx_st_shared_f32"}};
  const std::vector<std::string> parts = splitTop(body, ':');
  for (auto [instruction, name] : calls) {
    if (parts[0].find(instruction) == std::string::npos)
      continue;
    std::string arguments;
    for (size_t p = 1; p < std::min<size_t>(parts.size(), 3); ++p)
      for (const std::string &operand : splitTop(parts[p], ','))
        if (const size_t open = operand.find('('); open != std::string::npos)
          arguments += (arguments.empty() ? "" : ", ") +
                       operand.substr(open + 1, operand.rfind(')') - open - 1);
    return std::string(name) + "(" + arguments + ")";
  }
  FAIL("no call for ", parts[0]);
  return "";
}

/// The file with Shim.h in place of its wrappers, as a unit for the emulator.
std::string unitOf(const std::string &file, const std::string &entry, const std::string &macros) {
  std::string text = readAll(file);
  const size_t end = text.find("// ====");
  REQUIRE_MESSAGE(end != std::string::npos, file, " has no rule behind its wrappers");
  text.erase(0, end);
  for (size_t at; (at = text.find("asm")) != std::string::npos;) {
    const size_t open = text.find('(', at);
    size_t close = open;
    int depth = 0;
    bool inString = false;
    do {
      if (text[close] == '"' && text[close - 1] != '\\')
        inString = !inString;
      if (!inString)
        depth += (text[close] == '(') - (text[close] == ')');
      ++close;
    } while (depth > 0 && close < text.size());
    text.replace(at, close - at, translated(text.substr(open + 1, close - open - 2)));
  }
  const std::string shared = "extern __shared__ unsigned char raw[];";
  const size_t at = text.find(shared);
  REQUIRE(at != std::string::npos);
  text.erase(at, shared.size());
  return macros + "\n#include \"runtime/emulator/Device.h\"\n" +
         readAll(MOEJIT_SOURCE_DIR "/tests/emulator/prototypes/Shim.h") + text +
         "\nMOEJIT_EMULATED_KERNEL(" + entry + ")\n";
}

/// The kernel named `name`, or nothing where the prototypes are not on this machine.
std::optional<std::string> prototype(const std::string &name, const std::string &macros) {
  const char *folder = std::getenv("MOEJIT_PROTOTYPES");
  const std::string file = std::string(folder ? folder : "") + "/" + name + ".cu";
  if (!folder || !std::ifstream(file)) {
    MESSAGE("not run: MOEJIT_PROTOTYPES names no folder with ", name, ".cu");
    return {};
  }
  return unitOf(file, name, macros);
}

constexpr int experts = 4, n = 448, k = 640; // N ends within a tile; the prototypes want whole 64s

Spec blockScaled() {
  Spec spec;
  spec.numExperts = experts;
  spec.n = n;
  spec.k = k;
  spec.xScales.granule = {Granule::of(1), Granule::of(128)};
  spec.xScales.source = ScaleSource::Dynamic;
  spec.xScales.order = ScaleOrder::MnMajor;
  spec.xScales.alignBytes = 16;
  spec.wScales.granule = {Granule::of(1), Granule::of(128), Granule::of(128)};
  return spec;
}

template <typename T>
std::unique_ptr<Buffer> bufferOf(const char *name, const std::vector<T> &values) {
  // The boxes of weight scales are four words: the last may lie at the end.
  const int64_t bytes = static_cast<int64_t>(values.size() * sizeof(T) + 15) / 16 * 16;
  auto buffer = std::make_unique<Buffer>(name, bytes, false);
  std::memset(buffer->data(), 0, static_cast<size_t>(bytes));
  std::memcpy(buffer->data(), values.data(), values.size() * sizeof(T));
  return buffer;
}

/// Operands of a launch, its output, and what is right.
struct Operands {
  explicit Operands(std::vector<int64_t> counts) {
    int64_t rows = 0;
    for (int64_t count : counts)
      rows += count;
    problem = oracle::makeProblem(blockScaled(), rows, oracle::Routing::fromCounts(counts), 3);
    output = oracle::HostOutput::make(problem);
    x = bufferOf("x", problem.x);
    w = bufferOf("w", problem.w);
    xScales = bufferOf("x_scales", problem.xScales);
    wScales = bufferOf("w_scales", problem.wScales);
    offsets = bufferOf("offsets", problem.offsets);
    y = std::make_unique<Buffer>("y", problem.rows * n * 2, true);
    std::memset(y->data(), oracle::poisonByte, static_cast<size_t>(y->bytes()));
    counters = std::make_unique<Buffer>("counters", 66000 * 4, true);
    std::memset(counters->data(), 0, static_cast<size_t>(counters->bytes()));
    sums = std::make_unique<Buffer>("sums", 4 << 20, true);
  }
  TensorMapValues mapX(uint32_t boxRows) {
    return mapOf(*x, ElementType::F8E4M3FN, {k, static_cast<uint64_t>(problem.rows)},
                 {static_cast<uint64_t>(problem.xStride)}, {128, boxRows}, Swizzle::B128);
  }
  TensorMapValues mapW(uint32_t boxRows) {
    return mapOf(*w, ElementType::F8E4M3FN, {k, experts * n}, {k}, {128, boxRows}, Swizzle::B128);
  }
  TensorMapValues mapXScales(uint32_t box) {
    const auto stride = static_cast<uint64_t>(problem.xScaleStride);
    return mapOf(*xScales, ElementType::F32, {stride, k / 128}, {4 * stride}, {box, 1},
                 Swizzle::None);
  }
  TensorMapValues mapWScales() {
    return mapOf(*wScales, ElementType::F32, {static_cast<uint64_t>(wScales->bytes() / 4)}, {}, {4},
                 Swizzle::None);
  }
  void check(const std::string &what) {
    const oracle::Comparison comparison =
        oracle::compare(problem, oracle::reference(problem), y->data(), ElementType::BF16);
    CHECK_MESSAGE(comparison.ok(), what, ": ", comparison.text());
  }

  oracle::HostProblem problem;
  oracle::HostOutput output;
  std::unique_ptr<Buffer> x, w, xScales, wScales, offsets, y, counters, sums;
};

/// A short last tile of an expert, experts without rows, more tiles than blocks.
const std::vector<std::vector<int64_t>> routings = {{0, 129, 1, 0}, {70, 0, 5, 260}};

void runTwice(TestLaunch &launch, const std::string &source, const std::string &entry,
              Operands &operands, const std::string &what) {
  for (uint64_t seed : {0, 11}) {
    EmulatorOptions options = testOptions();
    options.seed = seed;
    Result<std::unique_ptr<Emulator>> emulator = Emulator::create(options);
    REQUIRE(emulator);
    Result<EmulatorReport> report = launch.run(source, **emulator, entry);
    CHECK_MESSAGE(report, what, ", seed ", seed, ": ", report ? "" : report.error().text());
    if (report)
      operands.check(what);
  }
}

} // namespace

namespace {

/// Block, grid and operands of prefill, in the order of its parameters.
TestLaunch &prefillLaunch(TestLaunch &launch, Operands &o, uint32_t boxW) {
  return launch.map(o.mapX(64))
      .map(o.mapW(boxW))
      .map(o.mapXScales(132))
      .map(o.mapWScales())
      .pointer(*o.offsets)
      .pointer(*o.y)
      .pointer(*o.xScales) // a scale a token, and one a channel: of another variant
      .pointer(*o.wScales)
      .integer(0x3f800000) // alpha
      .pointer(*o.counters)
      .pointer(*o.xScales)
      .pointer(*o.wScales)
      .integer(static_cast<int>(o.problem.xScaleStride))
      .integer(experts)
      .integer(n)
      .integer(k)
      .range(*o.x)
      .range(*o.w);
}

/// The same of decode, for tiles of `tokens`.
TestLaunch &decodeLaunch(TestLaunch &launch, Operands &o, uint32_t tokens) {
  return launch.map(o.mapW(128))
      .map(o.mapX(8))
      .map(o.mapX(16))
      .map(o.mapX(std::min(tokens, 32u)))
      .map(o.mapX(std::min(tokens, 64u)))
      .map(o.mapXScales(tokens + 4))
      .map(o.mapWScales())
      .pointer(*o.x) // in bf16, for a variant that quantizes
      .pointer(*o.offsets)
      .pointer(*o.y)
      .pointer(*o.sums)
      .pointer(*o.counters)
      .pointer(*o.x)
      .pointer(*o.xScales)
      .integer(static_cast<int>(o.problem.xScaleStride))
      .integer(experts)
      .integer(n)
      .integer(k)
      .range(*o.w)
      .range(*o.wScales);
}

const std::string inStep = "#define IN_STEP\n";

} // namespace

TEST_CASE("the prototype of prefill runs clean") {
  struct Variant {
    const char *macros;
    uint32_t cluster, boxW;
  };
  for (const Variant &variant :
       {Variant{"#define CLUSTER 1\n", 1, 256},
        Variant{"#define CLUSTER 2\n#define DYN 0\n", 2, 256},
        Variant{"#define CLUSTER 2\n#define DYN 0\n#define MCAST_B 1\n", 2, 128},
        Variant{"#define CLUSTER 1\n#define SF 1\n#define EPI 0\n#define DYN 0\n", 1, 256}}) {
    std::optional<std::string> source = prototype("prefill", inStep + variant.macros);
    if (!source)
      return;
    for (const std::vector<int64_t> &counts : routings) {
      Operands o(counts);
      TestLaunch launch(4, 384, 232448, variant.cluster);
      runTwice(prefillLaunch(launch, o, variant.boxW), *source, "prefill", o, variant.macros);
    }
  }
}

TEST_CASE("the prototype of decode runs clean") {
  struct Variant {
    const char *macros;
    uint32_t tokens;
  };
  for (const Variant &variant :
       {Variant{"#define TN 64\n", 64}, Variant{"#define TN 32\n#define STREAMK 1\n", 32},
        Variant{"#define TN 16\n#define STREAMK 2\n", 16}}) {
    std::optional<std::string> source = prototype("decode", inStep + variant.macros);
    if (!source)
      return;
    for (const std::vector<int64_t> &counts : routings) {
      Operands o(counts);
      TestLaunch launch(4, 384, 232448);
      runTwice(decodeLaunch(launch, o, variant.tokens), *source, "decode", o, variant.macros);
    }
  }
}

// A slot of the ring is freed by lane 0 alone, and nothing orders what the other lanes have read of
// it: the GPU keeps them in step, the PTX memory model does not say so.
TEST_CASE("what the prototypes take for granted is named") {
  const std::optional<std::string> prefill = prototype("prefill", "#define CLUSTER 1\n"),
                                   decode = prototype("decode", "");
  if (!prefill || !decode)
    return;
  for (const auto &[source, entry] : {std::pair{*prefill, "prefill"}, {*decode, "decode"}}) {
    CAPTURE(entry);
    Operands o(routings[1]);
    TestLaunch launch(4, 384, 232448);
    Result<std::unique_ptr<Emulator>> emulator = Emulator::create(testOptions());
    REQUIRE(emulator);
    Result<EmulatorReport> report = (entry == std::string("prefill") ? prefillLaunch(launch, o, 256)
                                                                     : decodeLaunch(launch, o, 64))
                                        .run(source, **emulator, entry);
    REQUIRE(!report);
    CHECK(contains(report.error().text(), "has read: no barrier orders the two"));
  }
}
