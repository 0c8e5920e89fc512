// moejit aot: the Jit's own compile and put, for many kernels and architectures, into a folder.
#include "tools/moejit/Input.h"
#include "tools/moejit/Kernels.h"
#include "tools/moejit/Parallel.h"
#include "tools/moejit/Report.h"
#include "tools/moejit/TunedFiles.h"

#include "runtime/Rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace moejit::tool {
namespace {

/// One kernel to build.
struct Task {
  std::string name; ///< of the file
  Spec spec;
  Kernels *kernels;
  int64_t rows; ///< the first of the range
  Result<Got> got = Error{};
};

std::vector<std::string> split(const std::string &text) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (begin <= text.size()) {
    size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin)
      parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// Tasks for every spec on every architecture. Errors: the first rule that refuses one.
Result<std::vector<Task>> plan(const Arguments &arguments,
                               const std::vector<std::unique_ptr<Kernels>> &kernels) {
  std::vector<std::string> files = arguments.words;
  if (!files.empty() && arguments.has("--spec"))
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("--spec stands for a FILE, got {} too", files[0]),
                 {}};
  if (arguments.has("--spec"))
    files.push_back("");
  if (files.empty())
    return Error{ErrorCode::InvalidArgument, "no FILE given", {"give one or more descriptions"}};
  Result<std::optional<int64_t>> rows = arguments.integer("--rows", 0, INT64_MAX);
  if (!rows)
    return rows.error();
  std::vector<Task> tasks;
  for (const std::string &file : files) {
    Result<Spec> spec = loadSpec(arguments, file);
    if (!spec)
      return spec.error();
    for (const std::unique_ptr<Kernels> &each : kernels) {
      if (Result<void> legal = requireLegal(*spec, each->target()); !legal) {
        Error error = legal.error();
        error.message =
            fmt::format("{}: {}", file.empty() ? "the given spec" : file, error.message);
        return error;
      }
      for (const PlannedRange &range : planRanges(*spec, each->target(), each->plan()))
        if (!*rows || (range.minRows <= **rows && **rows <= range.maxRows))
          tasks.push_back(
              {file.empty() ? "the given spec" : file, *spec, each.get(), range.minRows});
    }
  }
  return tasks;
}

int report(const Arguments &arguments, const std::vector<Task> &tasks,
           const std::vector<std::unique_ptr<Kernels>> &kernels, bool isBundle) {
  std::vector<std::vector<std::string>> rows = {
      {"description", "arch", "rows", "registers", "spills", "cubin", "kernel"}};
  JsonWriter json;
  json.beginObject().field("folder", kernels[0]->cache().folder()).field("bundle", isBundle);
  json.key("kernels").beginArray();
  int64_t compiled = 0;
  for (const Task &task : tasks) {
    const Artifact &artifact = task.got->kernel->artifact();
    compiled += task.got->isCompiled;
    json.beginObject().field("file", task.name).field("arch", artifact.arch);
    writeKernel(json, *task.got);
    json.endObject();
    rows.push_back(
        {task.name, artifact.arch, rowsText(task.got->range.minRows, task.got->range.maxRows),
         fmt::format("{}", artifact.resources.registers),
         fmt::format("{}", artifact.resources.spillStoreBytes + artifact.resources.spillLoadBytes),
         bytesText(artifact.cubin.size()),
         task.got->isCompiled ? fmt::format("compiled in {:.1f} s", task.got->seconds)
                              : "was there"});
  }
  json.endArray().field("compiled", compiled).endObject();
  if (arguments.has("--json"))
    return print(json.text());
  return print(fmt::format("{}\n{} kernels ({} compiled) in {}\n", table(rows), tasks.size(),
                           compiled, kernels[0]->cache().folder()));
}

int run(const Arguments &arguments) {
  std::vector<std::string> names = split(arguments.valueOr("--arch", "sm_90a"));
  Result<std::optional<int64_t>> jobs = arguments.integer("--jobs", 1, 1024);
  if (!jobs)
    return fail(arguments, jobs.error());
  std::optional<std::string> output = arguments.value("-o");

  std::vector<std::unique_ptr<Kernels>> kernels;
  for (const std::string &name : names) {
    Result<Target> target = parseTarget(name);
    if (!target)
      return fail(arguments, target.error());
    KernelsOptions options = kernelsOptions(arguments, *target);
    if (output)
      options.cache.folder = *output;
    Result<std::unique_ptr<Kernels>> opened = Kernels::open(std::move(options));
    if (!opened)
      return fail(arguments, opened.error());
    if (!(*opened)->hasNvrtc())
      return fail(arguments, (*opened)->nvrtcError());
    // Kernels that stay in memory would be lost.
    Cache &cache = (*opened)->cache();
    if (cache.diskProblem())
      return fail(arguments, *cache.diskProblem());
    if (cache.folder().empty())
      return fail(
          arguments,
          Error{ErrorCode::InvalidArgument, "kernels need a folder: name one with -o DIR", {}});
    kernels.push_back(std::move(*opened));
  }
  if (kernels.empty())
    return fail(arguments, Error{ErrorCode::InvalidArgument, "--arch names no architecture", {}});

  Result<std::vector<Task>> tasks = plan(arguments, kernels);
  if (!tasks)
    return fail(arguments, tasks.error());
  forEachParallel(tasks->size(), jobs->value_or(0), [&](size_t i) {
    Task &task = (*tasks)[i];
    task.got = task.kernels->get(task.spec, task.rows);
  });
  for (const Task &task : *tasks)
    if (!task.got) {
      Error error = task.got.error();
      error.message = fmt::format("{}: {}", task.name, error.message);
      return fail(arguments, error);
    }
  if (output)
    if (Result<void> written = kernels[0]->cache().writeManifest(); !written)
      return fail(arguments, written.error());
  return report(arguments, *tasks, kernels, output.has_value());
}

} // namespace

const Command aotCommand = {
    "aot",
    "Build kernels ahead of time into a folder that is then used without compiling",
    "FILES... -o DIR [options]",
    "Builds every kernel of every description for every architecture, as a running program "
    "would, and writes a manifest: DIR is then a bundle, which moejit run --bundle DIR and "
    "the runtime use without a compiler (CacheMode::Bundle). Kernels that are in DIR already "
    "are not built again. No GPU is needed. Without -o the kernels go to the cache folder, so "
    "that nothing compiles later.",
    "  moejit aot kernels/deepseek-v3.*.mlir -o deepseek.bundle\n"
    "  moejit aot my.mlir --arch sm_90a --jobs 8 -o my.bundle\n"
    "  moejit run my.mlir --tokens 64 --bundle my.bundle --check",
    "  0  every kernel is in the folder\n"
    "  1  a rule refuses a kernel\n"
    "  2  a FILE or the folder cannot be used, or the command line is wrong\n"
    "  3  there is no NVRTC on this machine\n"
    "  4  a pass or NVRTC failed",
    withCommonOptions(withExtentOptions({
        {"-o", "DIR", "the folder to make or add to", "the cache folder, without a manifest"},
        {"--arch", "LIST", "architectures, with commas between them", "sm_90a"},
        {"--rows", "N", "only the kernels for N rows"},
        checkedOption(),
        tunedOption(),
        {"--jobs", "N", "kernels to build at the same time", "one a CPU"},
    })),
    run,
};

} // namespace moejit::tool
