// moejit compile: from a description to kernels, or to any stage on the way.
#include "tools/moejit/Input.h"
#include "tools/moejit/Kernels.h"
#include "tools/moejit/Report.h"
#include "tools/moejit/TunedFiles.h"

#include "compiler/Nvrtc.h"
#include "compiler/Pipeline.h"
#include "runtime/PlanModel.h"
#include "runtime/Rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <unistd.h>

namespace moejit::tool {
namespace {

/// The stages, in order, and the file each is written to by --emit all.
struct Stage {
  const char *name;
  const char *file;
  bool needsNvrtc;
};
constexpr Stage stages[] = {
    {"moe", "moe.mlir", false},      {"plan", "plan.json", false},
    {"tile", "tile.mlir", false},    {"ptx-ir", "ptx.mlir", false},
    {"cuda", "kernel.cu", false},    {"ptx", "kernel.ptx", true},
    {"cubin", "kernel.cubin", true}, {"resources", "resources.txt", true},
};

using StageTexts = std::map<std::string, std::string, std::less<>>;

Error usage(std::string message, std::vector<std::string> notes = {}) {
  return Error{ErrorCode::InvalidArgument, std::move(message), std::move(notes)};
}

/// Everything up to the translation unit. What came before a failure is in `texts` all the same.
Result<void> runToSource(const Spec &spec, const Target &target, const KernelPlan &plan,
                         const std::vector<std::string> &skipped, StageTexts &texts) {
  CompileOptions options;
  options.skippedPasses = skipped;
  options.onStage = [&](std::string_view stage, std::string_view text) {
    texts[std::string(stage)] = text;
  };
  Result<Artifact> made = compileToSource(spec, target, plan, options);
  return made ? Result<void>() : Result<void>(made.error());
}

void addKernelStages(const Artifact &artifact, StageTexts &texts) {
  texts["ptx"] = artifact.ptx;
  texts["cubin"] = artifact.cubin;
  texts["resources"] = resourcesText(artifact);
}

/// Writes the stages there are into `folder`, and says so.
Result<void> writeStages(const StageTexts &texts, const std::string &folder, bool isJson,
                         JsonWriter &json) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code)
    return Error{ErrorCode::IoError, fmt::format("cannot make {}: {}", folder, code.message())};
  json.key("files").beginObject();
  for (const Stage &stage : stages) {
    auto text = texts.find(stage.name);
    if (text == texts.end())
      continue;
    std::string path = (std::filesystem::path(folder) / stage.file).string();
    if (Result<void> written = writeFile(path, text->second); !written)
      return written;
    json.field(stage.name, path);
    if (!isJson)
      print(path + "\n");
  }
  json.endObject();
  return {};
}

/// Prints one stage, or writes it to -o.
int giveStage(const Arguments &arguments, const std::string &stage, const std::string &text,
              int64_t compiled) {
  std::optional<std::string> output = arguments.value("-o");
  if (output && *output != "-") {
    if (Result<void> written = writeFile(*output, text); !written)
      return fail(arguments, written.error());
    return exitOk;
  }
  if (arguments.has("--json")) {
    if (stage == "cubin")
      return fail(arguments, usage("a cubin is no text", {"write it to a file with -o FILE"}));
    JsonWriter json;
    json.beginObject().field("stage", stage).field("text", text);
    json.field("compiled", compiled).endObject();
    return print(json.text());
  }
  if (stage == "cubin" && isatty(1))
    return fail(arguments, usage("a cubin is binary, and stdout is a terminal",
                                 {"write it to a file with -o FILE"}));
  return print(text);
}

/// --emit: one stage, or all, of the kernel for `rows` rows.
int emit(const Arguments &arguments, const Spec &spec, const Target &target, int64_t rows) {
  std::string wanted = *arguments.value("--emit");
  bool isAll = wanted == "all";
  if (isAll && !arguments.has("-o"))
    return fail(arguments, usage("--emit all writes files: name a folder with -o DIR"));
  KernelsOptions options = kernelsOptions(arguments, target);
  StageTexts texts;
  PlanExplanation why = explainPlan(spec, target, rows, options.plan);
  bool needsNvrtc = isAll;
  for (const Stage &stage : stages)
    needsNvrtc |= wanted == stage.name && stage.needsNvrtc;
  Result<void> done;
  if (!needsNvrtc || isAll)
    done = runToSource(spec, target, choosePlan(spec, target, rows, options.plan),
                       options.skippedPasses, texts);
  // The plan says why it was chosen.
  if (std::string &plan = texts["plan"]; plan.ends_with("}\n")) {
    plan.resize(plan.size() - 2);
    plan += fmt::format(", \"why\": {}}}\n", why.json());
  }
  int64_t compiled = 0;
  if (done && needsNvrtc) {
    Result<std::unique_ptr<Kernels>> kernels = Kernels::open(std::move(options));
    if (!kernels)
      return fail(arguments, kernels.error());
    Result<Got> got = (*kernels)->get(spec, rows);
    compiled = (*kernels)->compiled();
    if (got)
      addKernelStages(got->kernel->artifact(), texts);
    else
      done = got.error();
  }
  if (!isAll)
    return done ? giveStage(arguments, wanted, texts[wanted], compiled)
                : fail(arguments, done.error());

  // What was reached is worth looking at, above all when the next stage failed.
  JsonWriter json;
  json.beginObject();
  Result<void> written = writeStages(texts, *arguments.value("-o"), arguments.has("--json"), json);
  if (!done)
    return fail(arguments, done.error());
  if (!written)
    return fail(arguments, written.error());
  json.field("compiled", compiled).endObject();
  return arguments.has("--json") ? print(json.text()) : int(exitOk);
}

std::string tileText(const KernelPlan &plan) {
  return fmt::format("{}x{}x{}", plan.tileM, plan.tileN, plan.tileK);
}

/// Builds the kernels of `ranges` through the cache and prints what they take.
int build(const Arguments &arguments, const std::string &name, const Spec &spec,
          const Target &target, const std::vector<PlannedRange> &ranges) {
  Result<std::unique_ptr<Kernels>> opened = Kernels::open(kernelsOptions(arguments, target));
  if (!opened)
    return fail(arguments, opened.error());
  Kernels &kernels = **opened;
  std::vector<std::vector<std::string>> rows = {
      {"rows", "tile", "stages", "registers", "spills", "shared memory", "cubin", "kernel"}};
  JsonWriter json;
  json.beginObject().field("file", name).field("spec", canonicalText(spec));
  json.field("arch", target.arch).key("kernels").beginArray();
  bool isSpilling = false;
  std::set<std::string> slow;
  for (const PlannedRange &range : ranges) {
    Result<Got> got = kernels.get(spec, range.minRows);
    if (!got)
      return fail(arguments, got.error());
    const Artifact &artifact = got->kernel->artifact();
    uint64_t spilled = artifact.resources.spillStoreBytes + artifact.resources.spillLoadBytes;
    isSpilling |= spilled > 0;
    for (const std::string &warning : parsePerformanceWarnings(artifact.compileLog))
      slow.insert(warning);
    json.beginObject();
    writeKernel(json, *got);
    json.key("plan").raw(planJson(range.plan)).endObject();
    rows.push_back(
        {rowsText(range.minRows, range.maxRows), tileText(range.plan),
         fmt::format("{}", range.plan.stages), fmt::format("{}", artifact.resources.registers),
         fmt::format("{}", spilled),
         bytesText(artifact.launch.sharedBytes + artifact.resources.staticSharedBytes),
         bytesText(artifact.cubin.size()),
         got->isCompiled ? fmt::format("compiled in {:.1f} s", got->seconds) : "from cache"});
  }
  json.endArray();
  writeToolchain(json, kernels);
  // A folder that may not be written has kernels, and takes none.
  Cache &cache = kernels.cache();
  std::optional<Error> refused = cache.storeProblem();
  if (!refused && kernels.compiled() > 0)
    refused = cache.diskProblem();
  bool isKept = !cache.folder().empty() && !refused;
  json.field("kept", isKept).endObject();
  if (arguments.has("--json"))
    return print(json.text());
  std::string text =
      fmt::format("{}\n{}\n{}{}\n\n{}", name, describe(spec), target.arch,
                  kernels.hasNvrtc() ? ", NVRTC " + kernels.nvrtcVersion() : "", table(rows));
  if (isSpilling)
    text += "\nspills: bytes of registers that go through memory; they cost speed, nothing else\n";
  for (const std::string &warning : slow)
    text += fmt::format("\nslower than it could be: {}\n", warning);
  if (isKept)
    text += fmt::format("\nkept in {}\n", cache.folder());
  else if (refused)
    text += fmt::format("\nnot kept: {}\n", refused->message);
  return print(text);
}

int run(const Arguments &arguments) {
  std::string name;
  Result<Target> target = loadTarget(arguments);
  if (!target)
    return fail(arguments, target.error());
  if (arguments.has("-o") && !arguments.has("--emit"))
    return fail(arguments, usage("-o needs --emit: kernels go to the cache",
                                 {"moejit aot FILE -o DIR makes a folder of kernels"}));
  for (const std::string &pass : arguments.values("--skip-pass"))
    if (const std::vector<std::string> &known = optionalPasses();
        std::find(known.begin(), known.end(), pass) == known.end())
      return fail(arguments,
                  usage(fmt::format("--skip-pass {}: no such optional pass", pass),
                        {fmt::format("the optional passes: {}", fmt::join(known, ", "))}));
  Result<Spec> spec = loadOneSpec(arguments, name);
  if (!spec)
    return fail(arguments, spec.error());
  if (Result<void> legal = requireLegal(*spec, *target); !legal)
    return fail(arguments, legal.error());
  Result<std::optional<int64_t>> rows = arguments.integer("--rows", 0, INT64_MAX);
  if (!rows)
    return fail(arguments, rows.error());

  KernelsOptions chosen = kernelsOptions(arguments, *target);
  if (chosen.problem)
    return fail(arguments, *chosen.problem);
  PlanRequest request = chosen.plan;
  std::vector<PlannedRange> ranges = planRanges(*spec, *target, request);
  if (arguments.has("--emit"))
    return emit(arguments, *spec, *target, rows->value_or(ranges.back().minRows));
  if (*rows)
    std::erase_if(ranges, [&](const PlannedRange &range) {
      return **rows < range.minRows || **rows > range.maxRows;
    });
  return build(arguments, name, *spec, *target, ranges);
}

} // namespace

const Command compileCommand = {
    "compile",
    "Compile a kernel and show what it takes, or print any stage of it",
    "FILE [options]",
    "Reads the description in FILE, checks it against the rules, and builds one kernel for "
    "each range of row counts: few rows an expert and many want different tiles. Kernels go "
    "to the cache, and what is there is not compiled again. No GPU is needed.\nWith --emit "
    "nothing but one stage is made, for the row count of --rows (default: the largest range). "
    "Stages, in order: moe (the description), plan (the schedule, JSON), tile (the program of "
    "a thread block), ptx-ir (its instructions), cuda (the C++ translation unit), ptx, cubin, "
    "resources (registers, spills, memory). Up to cuda no NVRTC is needed.",
    "  moejit compile kernels/qwen3-30b-a3b.down.mlir\n"
    "  moejit compile kernels/mixtral-8x7b.down.mlir --emit tile --rows 64\n"
    "  moejit compile kernels/deepseek-v3.down.mlir --emit all -o stages/\n"
    "  moejit compile kernels/deepseek-v3.down.mlir --emit ptx --skip-pass tile-split-columns\n"
    "  moejit compile my.mlir --json | jq '.kernels[].registers'",
    "  0  compiled, or found in the cache\n"
    "  1  a rule refuses the kernel; the message names it, and moejit explain says more\n"
    "  2  FILE cannot be read or is no kernel description, or the command line is wrong\n"
    "  3  there is no NVRTC on this machine\n"
    "  4  a pass or NVRTC failed",
    withCommonOptions(withExtentOptions({
        {"--emit",
         "STAGE",
         "print one stage: moe, plan, tile, ptx-ir, cuda, ptx, cubin, resources; or all",
         "a table of all kernels",
         {"moe", "plan", "tile", "ptx-ir", "cuda", "ptx", "cubin", "resources", "all"}},
        {"-o", "PATH", "where --emit writes: a file, or for all a folder", "stdout"},
        {"--rows", "N", "only the kernel for N rows"},
        checkedOption(),
        tunedOption(),
        {"--arch", "ARCH", "the architecture to compile for", "sm_90a"},
        {"--skip-pass", "NAME",
         "leave out an optional pass (may be repeated; the kernel is slower, and right; no cache)"},
    })),
    run,
};

} // namespace moejit::tool
