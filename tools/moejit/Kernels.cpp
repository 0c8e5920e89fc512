// The Jit behind the subcommands.
#include "tools/moejit/Kernels.h"

#include "tools/moejit/Nvrtcs.h"
#include "tools/moejit/Report.h"
#include "tools/moejit/TunedFiles.h"

#include <fmt/format.h>

namespace moejit::tool {

/// Kernels that the calling thread compiled.
static thread_local int64_t compiledHere = 0;

Result<std::string> cacheFolder(const Arguments &arguments) {
  std::optional<std::string> given = arguments.value("--cache");
  if (!given) {
    Result<std::string> standard = defaultCacheFolder();
    if (!standard)
      standard.error().notes = {"name a folder of your own with --cache"};
    return standard;
  }
  if (given->empty())
    return Error{ErrorCode::InvalidArgument, "--cache names no folder: it is empty", {}};
  return *given;
}

KernelsOptions kernelsOptions(const Arguments &arguments, const Target &target) {
  KernelsOptions options;
  options.target = target;
  options.nvrtc = arguments.valueOr("--nvrtc", "");
  options.skippedPasses = arguments.values("--skip-pass");
  options.plan.checked = arguments.has("--checked");
  if (Result<std::shared_ptr<const TunedTable>> table = tunedTable(arguments, target); table)
    options.plan.tuned = *table;
  else
    options.problem = table.error();
  if (arguments.has("--no-cache") || !options.skippedPasses.empty())
    options.cache.folder = "";
  else if (arguments.has("--cache")) {
    if (Result<std::string> folder = cacheFolder(arguments); folder)
      options.cache.folder = *folder;
    else
      options.problem = folder.error();
  }
  std::optional<std::string> bundle = arguments.value("--bundle");
  std::optional<std::string> digest = arguments.value("--bundle-sha256");
  if (bundle) {
    options.cache.mode = CacheMode::Bundle;
    options.cache.folder = *bundle;
    options.cache.manifestSha256 = digest;
  } else if (digest) {
    options.problem = Error{
        ErrorCode::InvalidArgument, "--bundle-sha256 pins a bundle: name it with --bundle DIR", {}};
  }
  options.cache.log = [](const std::string &message) {
    std::fputs(printable(fmt::format("warning: {}\n", message)).c_str(), stderr);
  };
  return options;
}

std::vector<Option> withBundleOptions(std::vector<Option> own) {
  own.push_back(
      {"--bundle", "DIR", "take kernels from a folder that moejit aot made; never compile"});
  own.push_back({"--bundle-sha256", "DIGEST",
                 "what the SHA-256 of the bundle's manifest has to be; moejit aot prints it",
                 "any"});
  return own;
}

Result<std::unique_ptr<Kernels>> Kernels::open(KernelsOptions given) {
  std::unique_ptr<Kernels> kernels(new Kernels);
  kernels->options = std::move(given);
  const KernelsOptions &options = kernels->options;
  if (options.problem)
    return *options.problem;
  Result<std::shared_ptr<Cache>> cache = Cache::open(options.cache);
  if (!cache)
    return cache.error();
  kernels->store = *cache;

  JitOptions jit;
  jit.cache = *cache;
  jit.target = options.target;
  jit.plan = options.plan;
  if (options.cache.mode != CacheMode::Bundle) {
    kernels->nvrtc = findNvrtc(options.nvrtc);
    Result<GeneratorIdentity> identity = generatorIdentity(kernels->nvrtc);
    if (!identity && identity.error().code != ErrorCode::Unavailable)
      return identity.error();
    if (!identity) {
      kernels->lacking = identity.error();
    } else {
      kernels->identity = *identity;
      CompileOptions compiling;
      compiling.nvrtc = kernels->nvrtc;
      compiling.skippedPasses = options.skippedPasses;
      jit.generator = *identity;
      jit.compile = [self = kernels.get(), compiling](const Spec &spec, const Target &target,
                                                      const KernelPlan &plan) {
        ++self->count;
        ++compiledHere;
        return compile(spec, target, plan, compiling);
      };
    }
  }
  kernels->jit = std::make_unique<Jit>(std::move(jit));
  return kernels;
}

/// The range of `spec` that holds `rows`.
static PlannedRange rangeOf(const Spec &spec, const Target &target, int64_t rows,
                            const PlanRequest &request) {
  std::vector<PlannedRange> ranges = planRanges(spec, target, request);
  for (const PlannedRange &range : ranges)
    if (rows <= range.maxRows)
      return range;
  return ranges.back();
}

Result<Got> Kernels::get(const Spec &spec, int64_t rows) {
  Got got;
  got.range = rangeOf(spec, options.target, rows, options.plan);
  Progress progress(options.isQuiet ? ""
                                    : fmt::format("compiling for {} rows, {}",
                                                  rowsText(got.range.minRows, got.range.maxRows),
                                                  options.target.arch));
  int64_t before = compiledHere;
  Result<std::shared_ptr<Kernel>> kernel = jit->get(spec, rows);
  if (!kernel && kernel.error().code == ErrorCode::NotInCache && lacking) {
    Error error = *lacking;
    error.message += ", and the cache has no such kernel";
    return error;
  }
  if (!kernel)
    return kernel.error();
  got.kernel = *kernel;
  got.isCompiled = compiledHere != before;
  got.seconds = progress.seconds();
  return got;
}

Result<Got> Kernels::build(const Spec &spec, const KernelPlan &plan) {
  if (Result<void> verified = verifyPlan(plan, spec, options.target); !verified)
    return verified.error();
  Got got;
  got.range = {0, INT64_MAX, plan};
  std::shared_ptr<Cache> cache;
  {
    std::lock_guard guard(mutex);
    if (!plans) {
      CacheOptions own = options.cache;
      own.mode = CacheMode::ReadWrite;
      // A bundle is complete as it is.
      bool isKept = !store->folder().empty() && options.cache.mode == CacheMode::ReadWrite;
      own.folder = isKept ? store->folder() + "/plans" : std::string();
      Result<std::shared_ptr<Cache>> opened = Cache::open(own);
      if (!opened)
        return opened.error();
      plans = *opened;
    }
    cache = plans;
  }
  if (lacking)
    return *lacking;
  if (!jit->options().compile)
    return Error{ErrorCode::Unavailable, "a bundle has no kernels of other plans", {}};
  Progress progress(fmt::format("compiling {}", planText(plan)));
  std::string lookup = lookupKeyText(spec, options.target, options.plan);
  // The range of an entry says which kernel serves a lookup: the entries here serve none.
  lookup += "plans=1\n";
  std::string key = buildKeyText(lookup, planText(plan), identity);
  std::shared_ptr<const Artifact> found = cache->findByBuildKey(key);
  if (!found) {
    Result<Artifact> made = jit->options().compile(spec, options.target, plan);
    if (!made)
      return made.error();
    made->spec = spec;
    made->arch = options.target.arch;
    made->planText = planText(plan);
    made->lookupKey = lookup;
    made->buildKey = key;
    (void)cache->put(*made, 0, INT64_MAX);
    found = std::make_shared<const Artifact>(std::move(*made));
    got.isCompiled = true;
  }
  got.kernel = std::make_shared<Kernel>(found);
  got.seconds = progress.seconds();
  return got;
}

void writeKernel(JsonWriter &json, const Got &got) {
  const Artifact &artifact = got.kernel->artifact();
  json.field("minRows", got.range.minRows);
  if (got.range.maxRows == INT64_MAX)
    json.key("maxRows").null();
  else
    json.field("maxRows", got.range.maxRows);
  json.field("planText", artifact.planText);
  json.field("registers", artifact.resources.registers);
  json.field("spillStoreBytes", artifact.resources.spillStoreBytes);
  json.field("spillLoadBytes", artifact.resources.spillLoadBytes);
  json.field("stackBytes", artifact.resources.stackBytes);
  json.field("sharedBytes", artifact.launch.sharedBytes + artifact.resources.staticSharedBytes);
  json.field("threads", artifact.launch.threads);
  json.field("workspaceBytes", workspaceBytes(artifact.launch, 0));
  json.field("workspaceBytesPerRow", workspaceBytesPerRow(artifact.launch));
  json.field("cubinBytes", artifact.cubin.size());
  json.field("key", keyName(artifact.buildKey));
  json.field("nvrtcVersion", artifact.nvrtcVersion);
  json.field("minDriver", artifact.minDriver);
  json.field("compiled", got.isCompiled);
  json.field("seconds", got.seconds);
}

void writeToolchain(JsonWriter &json, Kernels &kernels) {
  json.key("nvrtc").beginObject();
  json.field("found", !kernels.nvrtcPath().empty());
  json.field("path", kernels.nvrtcPath()).field("version", kernels.nvrtcVersion());
  json.endObject();
  json.field("cache", kernels.cache().folder()).field("compiled", kernels.compiled());
}

std::string resourcesText(const Artifact &artifact) {
  const ResourceUsage &used = artifact.resources;
  return fmt::format("registers      {} a thread\n"
                     "spills         {} bytes stored, {} loaded\n"
                     "stack          {} bytes\n"
                     "shared memory  {} bytes\n"
                     "threads        {}\n"
                     "cubin          {} bytes\n",
                     used.registers, used.spillStoreBytes, used.spillLoadBytes, used.stackBytes,
                     artifact.launch.sharedBytes + used.staticSharedBytes, artifact.launch.threads,
                     artifact.cubin.size());
}

} // namespace moejit::tool
