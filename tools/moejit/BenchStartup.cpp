// Times the ways by which a kernel comes to a program.
#include "tools/moejit/BenchStartup.h"

#include "tools/moejit/Meter.h"
#include "tools/moejit/Report.h"

#include "compiler/Compile.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <unistd.h>

namespace moejit::tool {
namespace {

using Work = std::function<Result<void>()>;

double now() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// The median of `repeats` runs of `work` in ms.
Result<double> medianMs(int64_t repeats, const Work &work) {
  std::vector<double> times;
  for (int64_t i = 0; i < repeats; ++i) {
    double begin = now();
    if (Result<void> done = work(); !done)
      return done.error();
    times.push_back(now() - begin);
  }
  return median(times);
}

/// A folder that nobody else has, removed at the end.
class OwnFolder {
public:
  OwnFolder() {
    std::error_code code;
    std::string pattern =
        (std::filesystem::temp_directory_path(code) / "moejit-startup-XXXXXX").string();
    if (mkdtemp(pattern.data()))
      path = pattern;
  }
  ~OwnFolder() {
    std::error_code code;
    if (!path.empty())
      std::filesystem::remove_all(path, code);
  }
  std::string path; ///< empty: none could be made
};

/// One kernel, from the description to the context.
class Startup {
public:
  Startup(const StartupOptions &options, const Spec &spec, int64_t rows, const KernelPlan &plan)
      : options(options), spec(spec), rows(rows), plan(plan) {
    compiling.nvrtc = options.nvrtc;
  }

  Result<void> measure(StartupTimes &times) {
    Result<double> source = medianMs(options.repeats, [&]() -> Result<void> {
      Result<Artifact> made = compileToSource(spec, options.kernels.target, plan, compiling);
      return made ? Result<void>() : Result<void>(made.error());
    });
    if (!source)
      return source.error();
    Result<double> whole = medianMs(options.repeats, [&]() -> Result<void> {
      Result<Artifact> made = compile(spec, options.kernels.target, plan, compiling);
      if (!made)
        return made.error();
      artifact = std::move(*made);
      return {};
    });
    if (!whole)
      return whole.error();
    times.sourceMs = *source;
    times.compileMs = *whole;
    return find(times);
  }

private:
  /// A Jit over `cache` whose compiler gives the artifact that is there, and counts.
  JitOptions jitOptions(std::shared_ptr<Cache> cache, const GeneratorIdentity &identity) {
    JitOptions jit;
    jit.cache = std::move(cache);
    jit.target = options.kernels.target;
    jit.plan = options.kernels.plan;
    jit.generator = identity;
    jit.compile = [this](const Spec &, const Target &, const KernelPlan &) -> Result<Artifact> {
      ++compiled;
      return artifact;
    };
    return jit;
  }

  Result<void> find(StartupTimes &times) {
    OwnFolder folder;
    if (folder.path.empty())
      return Error{ErrorCode::IoError, "cannot make a folder for temporary files", {}};
    Result<GeneratorIdentity> identity = generatorIdentity(options.nvrtc);
    if (!identity)
      return identity.error();
    CacheOptions cacheOptions;
    cacheOptions.folder = folder.path;
    std::shared_ptr<Kernel> kernel;
    auto fromDisk = [&]() -> Result<void> {
      Result<std::shared_ptr<Cache>> cache = Cache::open(cacheOptions);
      if (!cache)
        return cache.error();
      Result<std::shared_ptr<Kernel>> got = Jit(jitOptions(*cache, *identity)).get(spec, rows);
      if (!got)
        return got.error();
      kernel = *got;
      return {};
    };
    if (Result<void> first = fromDisk(); !first) // puts it there
      return first;
    compiled = 0;
    Result<double> disk = medianMs(4 * options.repeats, fromDisk);
    if (!disk)
      return disk.error();
    if (compiled > 0)
      return Error{ErrorCode::Internal, "the cache did not keep the kernel", {}};
    times.diskMs = *disk;

    Result<std::shared_ptr<Cache>> cache = Cache::open(cacheOptions);
    if (!cache)
      return cache.error();
    Jit jit(jitOptions(*cache, *identity));
    JitHandle handle = jit.handle(spec);
    constexpr int64_t calls = 20'000;
    Result<double> known = medianMs(options.repeats + 1, [&]() -> Result<void> {
      for (int64_t i = 0; i < calls; ++i)
        if (Result<std::shared_ptr<Kernel>> got = handle.kernel(rows); !got)
          return got.error();
      return {};
    });
    if (!known)
      return known.error();
    times.knownNs = *known * 1e6 / double(calls);
    return load(times);
  }

  Result<void> load(StartupTimes &times) {
    Result<std::unique_ptr<Gpu>> gpu = Gpu::open();
    if (!gpu || (*gpu)->info().arch() != options.kernels.target.arch)
      return {};
    auto shared = std::make_shared<const Artifact>(artifact);
    // A binary stays loaded for the life of the context, so each time is of a kernel of its own.
    Result<double> loaded =
        medianMs(options.repeats, [&]() -> Result<void> { return Kernel(shared).load(); });
    if (!loaded)
      return loaded.error();
    times.loadMs = *loaded;
    return {};
  }

  const StartupOptions &options;
  const Spec &spec;
  int64_t rows;
  KernelPlan plan;
  CompileOptions compiling;
  Artifact artifact;
  int64_t compiled = 0;
};

} // namespace

Result<std::vector<StartupTimes>> measureStartup(const std::vector<BenchSpec> &specs,
                                                 const StartupOptions &options) {
  std::vector<StartupTimes> all;
  Meter meter("measuring start-up", int64_t(specs.size()));
  for (const BenchSpec &spec : specs) {
    std::vector<std::string> seen;
    for (int64_t perExpert : options.rowsPerExpert) {
      int64_t rows = perExpert * spec.spec.numExperts;
      KernelPlan plan = choosePlan(spec.spec, options.kernels.target, rows, options.kernels.plan);
      if (std::find(seen.begin(), seen.end(), planText(plan)) != seen.end())
        continue;
      seen.push_back(planText(plan));
      StartupTimes times;
      times.kernel = spec.name;
      times.rows = rows;
      if (Result<void> measured = Startup(options, spec.spec, rows, plan).measure(times);
          !measured) {
        Error error = measured.error();
        error.message = fmt::format("{}, {} rows: {}", spec.name, rows, error.message);
        return error;
      }
      all.push_back(times);
    }
    meter.step(spec.name);
  }
  return all;
}

std::string startupText(const std::vector<StartupTimes> &times) {
  std::vector<std::vector<std::string>> rows = {
      {"kernel", "rows", "compile ms", "of that passes", "from disk ms", "known ns", "load ms"}};
  for (const StartupTimes &each : times)
    rows.push_back({each.kernel, fmt::format("{}", each.rows),
                    fmt::format("{:.0f}", each.compileMs), fmt::format("{:.0f}", each.sourceMs),
                    fmt::format("{:.2f}", each.diskMs), fmt::format("{:.0f}", each.knownNs),
                    each.loadMs > 0 ? fmt::format("{:.2f}", each.loadMs) : "no GPU"});
  return table(rows) + "\ncompile: a description that is nowhere kept; passes: up to CUDA C++, the "
                       "rest is NVRTC.\n"
                       "from disk: another process has compiled it. known: the handle has it.\n";
}

std::string startupJson(const std::vector<StartupTimes> &times) {
  JsonWriter json;
  json.beginObject().field("format", 1).key("startup").beginArray();
  for (const StartupTimes &each : times) {
    json.beginObject().field("kernel", each.kernel).field("rows", each.rows);
    json.field("compileMs", each.compileMs).field("sourceMs", each.sourceMs);
    json.field("diskMs", each.diskMs).field("knownNs", each.knownNs).key("loadMs");
    if (each.loadMs > 0)
      json.real(each.loadMs);
    else
      json.null();
    json.endObject();
  }
  return json.endArray().endObject().text();
}

} // namespace moejit::tool
