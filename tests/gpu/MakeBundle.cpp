// Builds every kernel that the GPU tests run (BundleSpecs.h), on a machine without a GPU or with
// one. Jit::build into a cache folder, as `moejit aot` does; no path of its own.
#include "compiler/Compile.h"
#include "compiler/Nvrtc.h"
#include "runtime/Jit.h"
#include "tests/gpu/BundleSpecs.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

using namespace moejit;
using gpu::BundleEntry;

namespace {

Result<void> build(const gpu::BundleSpecs &specs, const std::string &folder, unsigned threads) {
  const std::vector<BundleEntry> &entries = specs.entries;
  Result<GeneratorIdentity> generator = generatorIdentity({});
  if (!generator)
    return generator.error();
  CacheOptions cacheOptions;
  cacheOptions.folder = folder + "/bundle";
  cacheOptions.log = [](const std::string &message) { fmt::print(stderr, "{}\n", message); };
  Result<std::shared_ptr<Cache>> cache = Cache::open(std::move(cacheOptions));
  if (!cache)
    return cache.error();
  if ((*cache)->diskProblem())
    return *(*cache)->diskProblem();
  JitOptions options;
  options.cache = *cache;
  options.target = Target();
  options.generator = *generator;
  options.plan.tuned = std::make_shared<TunedTable>(specs.families);
  std::atomic<int> compiled = 0, spilling = 0;
  options.compile = [&](const Spec &spec, const Target &target, const KernelPlan &plan) {
    Result<Artifact> artifact = compile(spec, target, plan);
    ++compiled;
    if (artifact && !parsePerformanceWarnings(artifact->compileLog).empty())
      fmt::print(stderr, "serialised: {} with {}\n", canonicalText(spec), planText(plan));
    if (artifact && artifact->resources.spillStoreBytes + artifact->resources.spillLoadBytes > 0) {
      ++spilling;
      auto entry = std::find_if(entries.begin(), entries.end(), [&](const BundleEntry &candidate) {
        return candidate.spec == spec;
      });
      fmt::print(stderr, "{}: spills {} bytes with {}\n", entry->name,
                 artifact->resources.spillStoreBytes, planText(plan));
    }
    return artifact;
  };
  Jit jit(options);
  options.plan.checked = true;
  Jit checkedJit(options);

  auto start = std::chrono::steady_clock::now();
  std::atomic<size_t> next = 0, failed = 0;
  auto work = [&] {
    for (size_t i = next++; i < entries.size(); i = next++) {
      Result<void> built = jit.build(entries[i].spec);
      bool isChecked = (' ' + entries[i].groups + ' ').find(" checked ") != std::string::npos;
      if (built && isChecked)
        built = checkedJit.build(entries[i].spec);
      if (built)
        continue;
      ++failed;
      // The rest of a long diagnostic is the operation itself.
      std::string text = built.error().text();
      fmt::print(stderr, "{}: {}\n", entries[i].name, text.substr(0, 400));
    }
  };
  std::vector<std::thread> helpers;
  for (unsigned i = 1; i < threads; ++i)
    helpers.emplace_back(work);
  work();
  for (std::thread &helper : helpers)
    helper.join();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  std::ofstream list(folder + "/specs.tsv");
  for (const BundleEntry &entry : entries)
    list << entry.name << '\t' << entry.groups << '\t' << canonicalText(entry.spec) << '\n';
  list.close();
  if (!list)
    return Error{ErrorCode::IoError, fmt::format("{}/specs.tsv cannot be written", folder), {}};
  if (Result<std::string> written = (*cache)->writeManifest(); !written)
    return written.error();
  fmt::print("{} specs, {} kernels compiled in {:.1f} s, {} with spills, {} specs failed\n",
             entries.size(), compiled.load(), seconds, spilling.load(), failed.load());
  if (failed > 0)
    return Error{ErrorCode::CompileError, fmt::format("{} specs failed", failed.load()), {}};
  return {};
}

constexpr const char *help =
    R"(usage: moejit-gpu-bundle -o FOLDER --kernels FOLDER [--threads N] [--only TEXT] [--group WORD] [--list]

Compiles what moejit-gpu-tests and speed.py run into FOLDER/bundle and lists it in FOLDER/specs.tsv
(name, groups, canonical spec). Kernels that the folder has already are not compiled again.

  --kernels FOLDER  the catalogue, *.mlir
  --threads N       compile on N threads (2)
  --only TEXT       only specs whose name contains TEXT
  --group WORD      only specs of that group: matrix, quick, light (quick, one of each kind,
                    without families of plans), many, generated, wide, checked, catalogue,
                    quantize or quantize-speed
  --list            print the specs and compile nothing

exit code: 0 all compiled, 1 a spec failed, 2 wrong usage
)";

int usage(const std::string &problem) {
  fmt::print(stderr, "moejit-gpu-bundle: {}\n{}", problem, help);
  return 2;
}

} // namespace

int main(int argc, char **argv) {
  std::string folder, kernels, only, group;
  unsigned threads = 2;
  bool listOnly = false;
  for (int i = 1; i < argc; ++i) {
    std::string option = argv[i];
    if (option == "--help")
      return fmt::print("{}", help), 0;
    if (option == "--list") {
      listOnly = true;
      continue;
    }
    if (i + 1 == argc)
      return usage(option + ": unknown, or without its value");
    std::string value = argv[++i];
    if (option == "-o")
      folder = value;
    else if (option == "--kernels")
      kernels = value;
    else if (option == "--only")
      only = value;
    else if (option == "--group")
      group = value;
    else if (option == "--threads")
      threads = unsigned(std::clamp(std::atoi(value.c_str()), 1, 64));
    else
      return usage(option + ": unknown");
  }
  if (kernels.empty() || (folder.empty() && !listOnly))
    return usage("-o and --kernels are needed");

  Result<gpu::BundleSpecs> specs = gpu::bundleSpecs(kernels);
  if (!specs)
    return fmt::print(stderr, "moejit-gpu-bundle: {}\n", specs.error().text()), 1;
  std::vector<BundleEntry> &entries = specs->entries;
  std::erase_if(entries, [&](const BundleEntry &entry) {
    return entry.name.find(only) == std::string::npos ||
           (' ' + entry.groups + ' ').find(group.empty() ? "" : ' ' + group + ' ') ==
               std::string::npos;
  });
  if (listOnly) {
    size_t plans = 0;
    for (const BundleEntry &entry : entries) {
      plans += planRanges(entry.spec, Target()).size();
      fmt::print("{}\t{}\t{}\n", entry.name, entry.groups, canonicalText(entry.spec));
    }
    fmt::print(stderr, "{} specs, {} kernels\n", entries.size(), plans);
    return 0;
  }
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (Result<void> built = build(*specs, folder, threads); !built)
    return fmt::print(stderr, "moejit-gpu-bundle: {}\n", built.error().text()), 1;
  return 0;
}
