// moejit doctor: what this machine can do with kernels, what keeps it from more, and what helps.
#include "runtime/CacheAudit.h"
#include "runtime/Driver.h"
#include "runtime/Keys.h"
#include "runtime/Rules.h"
#include "runtime/emulator/Build.h"
#include "tools/moejit/Input.h"
#include "tools/moejit/Kernels.h"
#include "tools/moejit/Nvrtcs.h"
#include "tools/moejit/Report.h"
#include "tools/moejit/TunedFiles.h"
#include "tools/moejit/Wanted.h"

#include <fmt/format.h>

#include <algorithm>
#include <dlfcn.h>
#include <filesystem>
#include <link.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace moejit::tool {
namespace {

namespace fs = std::filesystem;

/// Less than this free on the disk of the cache is worth saying: a few hundred kernels.
constexpr uint64_t littleSpaceBytes = uint64_t(64) << 20;

/// One thing that was looked at.
struct Finding {
  enum class State { Fine, Noted, Problem };
  std::string what;   ///< "driver", "GPU 0", "NVRTC"
  std::string text;   ///< what was found
  std::string remedy; ///< of a problem: what helps
  State state = State::Fine;
};

const char *stateName(Finding::State state) {
  return state == Finding::State::Fine ? "ok" : state == Finding::State::Noted ? "note" : "problem";
}

/// "CUDA 13.0 (driver 580)": the first driver package that brings it.
std::string driverText(uint32_t version) {
  return fmt::format("CUDA {}{}", cudaVersionText(int(version)),
                     version == 13000   ? " (driver 580)"
                     : version == 12000 ? " (driver 525)"
                                        : "");
}

/// Where the library that was opened as `name` lies.
std::string loadedPath(const std::string &name) {
  void *library = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  const link_map *map = nullptr;
  bool isKnown = library && dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name[0];
  std::string path = isKnown ? map->l_name : name;
  if (library)
    dlclose(library);
  return path;
}

std::string joined(const Error &error) {
  return error.notes.empty() ? "" : fmt::format("{}", fmt::join(error.notes, "; "));
}

/// Looks at one thing after the other; later ones judge by what earlier ones found.
class Doctor {
public:
  explicit Doctor(const Arguments &arguments) : arguments(arguments) {}

  Result<void> run() {
    if (Result<void> read = readPurposes(); !read)
      return read;
    Result<Target> wanted = loadTarget(arguments);
    if (!wanted)
      return wanted.error();
    target = *wanted;
    chosen = kernelsOptions(arguments, target);
    if (chosen.problem)
      return *chosen.problem;
    lookAtDriver();
    lookAtNvrtc();
    if (Result<void> looked = arguments.has("--bundle") ? lookAtBundle() : lookAtCache(); !looked)
      return looked;
    lookAtCompiler();
    return {};
  }

  int report() const {
    bool hasProblem = std::any_of(findings.begin(), findings.end(), [](const Finding &each) {
      return each.state == Finding::State::Problem;
    });
    int printed = print(arguments.has("--json") ? json() : text());
    return printed != exitOk ? printed : hasProblem ? exitLacking : exitOk;
  }

private:
  Result<void> readPurposes() {
    std::string standard = arguments.has("--bundle") ? "launch" : "compile,launch";
    std::string text = arguments.valueOr("--for", standard);
    for (size_t begin = 0; begin <= text.size();) {
      size_t end = std::min(text.find(',', begin), text.size());
      std::string word = text.substr(begin, end - begin);
      begin = end + 1;
      if (word == "compile")
        mustCompile = true;
      else if (word == "launch")
        mustLaunch = true;
      else if (word == "emulate")
        mustEmulate = true;
      else
        return Error{ErrorCode::InvalidArgument,
                     fmt::format("--for takes some of compile, launch, emulate with commas between "
                                 "them, got '{}'",
                                 word),
                     {}};
    }
    return {};
  }

  void add(std::string what, std::string text) {
    findings.push_back({std::move(what), std::move(text), "", Finding::State::Fine});
  }
  /// A problem where the machine is there for it, else only worth knowing.
  void lack(bool isNeeded, std::string what, std::string text, std::string remedy) {
    findings.push_back({std::move(what), std::move(text), std::move(remedy),
                        isNeeded ? Finding::State::Problem : Finding::State::Noted});
  }

  void lookAtDriver() {
    Result<const DriverApi *> driver = openDriver();
    if (!driver) {
      lack(mustLaunch, "driver", driver.error().message,
           "install NVIDIA's driver, 525 or later, to launch kernels; moejit aot and moejit run "
           "--device emulator need none");
      return;
    }
    int version = 0;
    (*driver)->driverGetVersion(&version);
    driverVersion = uint32_t(version);
    add("driver", fmt::format("for CUDA {}", cudaVersionText(version)));
    Result<int> count = deviceCount(**driver);
    if (!count || *count == 0) {
      lack(mustLaunch, "GPU", count ? "the driver sees none" : count.error().message,
           "look at nvidia-smi and CUDA_VISIBLE_DEVICES; in a container, pass the GPUs in");
      return;
    }
    bool hasUsable = false;
    std::vector<Finding> unfit;
    for (int i = 0; i < *count; ++i) {
      std::string what = fmt::format("GPU {}", i);
      Result<DeviceInfo> info = deviceInfo(**driver, i);
      if (!info) {
        unfit.push_back({what, info.error().message, "look at nvidia-smi and dmesg"});
        continue;
      }
      std::string text = fmt::format("{}, {}, {} SMs", info->name, info->arch(), info->smCount);
      if (info->arch() == target.arch) {
        hasUsable = true;
        add(what, text);
      } else {
        unfit.push_back({what, fmt::format("{}: kernels are for {}", text, target.arch),
                         fmt::format("use a GPU of {}", target.arch)});
      }
    }
    for (Finding &finding : unfit)
      lack(mustLaunch && !hasUsable, finding.what, finding.text, finding.remedy);
    canLaunch = hasUsable;
  }

  void lookAtNvrtc() {
    nvrtcOptions = findNvrtc(arguments.valueOr("--nvrtc", ""));
    Result<GeneratorIdentity> found = generatorIdentity(nvrtcOptions);
    if (!found) {
      lack(mustCompile, "NVRTC",
           fmt::format("{} ({})", found.error().message, joined(found.error())),
           "install CUDA's libnvrtc (13 or 12; a pip package nvidia-cuda-nvrtc has it) and name it "
           "with --nvrtc, or use a bundle that moejit aot made elsewhere");
      return;
    }
    identity = *found;
    canCompile = true;
    Result<Nvrtc> nvrtc = Nvrtc::open(nvrtcOptions);
    uint32_t needed = nvrtc ? uint32_t(nvrtc->versionMajor()) * 1000 : 0;
    nvrtcPath = loadedPath(nvrtc ? nvrtc->libraryPath() : nvrtcOptions.libraryPath);
    std::string text = fmt::format("{}, {}; its kernels need {} or later", identity->nvrtcVersion,
                                   nvrtcPath, driverText(needed));
    if (driverVersion && driverVersion < needed) {
      canLaunch = canLaunch && arguments.has("--bundle"); // of which nothing is compiled here
      lack(mustLaunch && mustCompile, "NVRTC",
           fmt::format("{}; the driver here is for CUDA {}", text,
                       cudaVersionText(int(driverVersion))),
           fmt::format("update the driver to one for {}, or compile with an NVRTC of CUDA {}: "
                       "--nvrtc PATH",
                       driverText(needed), driverVersion / 1000));
      return;
    }
    add("NVRTC", text);
  }

  Result<void> lookAtCache() {
    std::string folder;
    if (arguments.has("--no-cache")) {
      add("cache", "none: kernels stay in memory");
    } else if (Result<std::string> named = cacheFolder(arguments); named) {
      folder = *named;
    } else {
      lack(true, "cache", named.error().message + ": every process compiles its kernels anew",
           "set HOME or XDG_CACHE_HOME, or name a folder with --cache");
    }
    std::error_code code;
    if (!folder.empty() && fs::exists(folder, code))
      lookAtFolder(folder);
    else if (!folder.empty())
      lookAtAbsentFolder(folder);
    return lookAtKernels(folder);
  }

  /// A folder that the first kernel will make.
  void lookAtAbsentFolder(const std::string &folder) {
    fs::path parent = fs::path(folder);
    std::error_code code;
    // A link that leads nowhere is there, and in the way.
    while (parent.has_relative_path() && !fs::exists(fs::symlink_status(parent, code)))
      parent = parent.parent_path();
    if (parent.empty())
      parent = ".";
    bool canMake = fs::is_directory(parent, code) && access(parent.c_str(), W_OK | X_OK) == 0;
    if (canMake)
      add("cache", fmt::format("{} will be made by the first kernel", folder));
    else
      lack(true, "cache",
           fmt::format("{} cannot be made: {} is not a folder that this user may write", folder,
                       parent.string()),
           "name a folder of your own with --cache; until then every process compiles anew");
  }

  void lookAtFolder(const std::string &folder) {
    Result<FolderAudit> audit = auditFolder(folder);
    if (!audit) {
      lack(true, "cache", audit.error().message,
           joined(audit.error()).empty() ? "name a folder of your own with --cache"
                                         : joined(audit.error()));
      return;
    }
    size_t kernels = 0, superseded = 0, leftovers = 0;
    uint64_t bytes = 0;
    for (const AuditedFile &file : audit->files) {
      kernels += file.kind == FileKind::Kernel;
      superseded += file.state == FileState::Superseded;
      leftovers += file.kind == FileKind::Leftover && file.state == FileState::Stale;
      bytes += file.bytes;
    }
    std::string text = fmt::format("{}: {} kernels, {}", folder, kernels, bytesText(bytes));
    if (superseded)
      text += fmt::format(", {} superseded", superseded);
    if (leftovers)
      text += fmt::format(", {} files of dead processes", leftovers);
    struct statvfs space = {};
    bool isFull = statvfs(folder.c_str(), &space) == 0 &&
                  uint64_t(space.f_bavail) * space.f_frsize < littleSpaceBytes;
    if (audit->damaged())
      lack(true, "cache", fmt::format("{}; {} damaged", text, audit->damaged()),
           "moejit cache verify names them, moejit cache gc removes them; they count as absent");
    else if (access(folder.c_str(), W_OK) != 0)
      lack(true, "cache", text + "; not writable: new kernels stay in memory",
           "make it writable for this user alone, or name another with --cache");
    else if (isFull)
      lack(true, "cache", text + "; the disk is full",
           "moejit cache gc --superseded --max-size SIZE makes room");
    else
      add("cache", text);
  }

  /// What of the given paths is there, and what a first launch would compile.
  Result<void> lookAtKernels(const std::string &folder) {
    if (arguments.words.empty() && !arguments.has("--spec")) {
      lack(false, "kernels",
           canCompile ? "any that is not in the cache is compiled when it is first launched, in a "
                        "second or so"
                      : "only those in the cache can be launched",
           "name descriptions or a checkpoint to hear which are there");
      return {};
    }
    Result<WantedLaunches> wanted = wantedLaunches(arguments, target);
    if (!wanted)
      return wanted.error();
    CacheOptions options;
    options.folder = folder;
    options.mode = CacheMode::ReadOnly;
    std::error_code code;
    if (!folder.empty() && !fs::exists(folder, code))
      options.folder = "";
    Result<std::shared_ptr<Cache>> cache = Cache::open(std::move(options));
    if (!cache)
      return cache.error();
    size_t there = 0;
    for (const WantedLaunch &launch : wanted->launches) {
      std::string lookup = lookupKeyText(launch.spec, target, chosen.plan);
      for (const PlannedRange &range : planRanges(launch.spec, target, chosen.plan)) {
        if (range.minRows > launch.maxRows || range.maxRows < launch.minRows)
          continue;
        bool isThere =
            identity
                ? (*cache)->findByBuildKey(buildKeyText(lookup, planText(range.plan), *identity)) !=
                      nullptr
                : (*cache)->findByLookup(lookup, std::max(range.minRows, launch.minRows)) !=
                      nullptr;
        there += isThere;
        if (!isThere)
          missing.push_back(
              fmt::format("{}, {} rows", launch.name, rowsText(range.minRows, range.maxRows)));
      }
    }
    std::string text =
        fmt::format("{} of {} row ranges are in the cache", there, there + missing.size());
    if (missing.empty())
      add("kernels", text);
    else if (canCompile)
      lack(false, "kernels",
           fmt::format("{}; {} would be compiled at their first launch by NVRTC {}", text,
                       missing.size(), identity->nvrtcVersion),
           "moejit aot with the same words compiles them now");
    else
      lack(true, "kernels", fmt::format("{}; {} cannot be compiled here", text, missing.size()),
           "install NVRTC, or use a bundle that moejit aot made elsewhere");
    return {};
  }

  Result<void> lookAtBundle() {
    std::string folder = *arguments.value("--bundle");
    CacheOptions options;
    options.folder = folder;
    options.mode = CacheMode::Bundle;
    options.manifestSha256 = arguments.value("--bundle-sha256");
    Result<std::shared_ptr<Cache>> bundle = Cache::open(std::move(options));
    if (!bundle)
      return bundle.error();
    Result<FolderAudit> audit = auditFolder(folder);
    if (!audit)
      return audit.error();
    uint32_t needed = audit->manifest ? audit->manifest->minDriver() : 0;
    std::string text =
        fmt::format("{}: {} kernels; needs {} or later", folder,
                    audit->manifest ? audit->manifest->kernels.size() : 0, driverText(needed));
    bool isTooOld = driverVersion && driverVersion < needed;
    canLaunch = canLaunch && !isTooOld;
    if (audit->damaged())
      lack(true, "bundle",
           fmt::format("{}; {} files are not as the manifest says", text, audit->damaged()),
           "copy it again; moejit cache verify names the files");
    // A copy that is whole would still be too new: both are told.
    if (isTooOld)
      lack(mustLaunch, "bundle",
           fmt::format("{}; the driver here is for CUDA {}", text,
                       cudaVersionText(int(driverVersion))),
           "update the driver, or build the bundle with an NVRTC of the driver's CUDA version: "
           "moejit aot --nvrtc PATH");
    if (!audit->damaged() && !isTooOld)
      add("bundle", text);
    if (arguments.words.empty() && !arguments.has("--spec"))
      return {};
    Result<WantedLaunches> wanted = wantedLaunches(arguments, target);
    if (!wanted)
      return wanted.error();
    missing = gapsIn(*bundle, target, chosen.plan, wanted->launches);
    if (missing.empty())
      add("kernels", fmt::format("every row count of {} launches has its kernel in the bundle",
                                 wanted->launches.size()));
    else
      lack(true, "kernels", fmt::format("{} row ranges have none in the bundle", missing.size()),
           "build them into it: moejit aot with the same words and -o");
    return {};
  }

  void lookAtCompiler() {
    std::error_code code;
    std::string folder = (fs::temp_directory_path(code) / "moejit-XXXXXX").string();
    if (code || !mkdtemp(folder.data())) {
      lack(mustEmulate, "emulator", "there is no folder to work in", "set TMPDIR to one");
      return;
    }
    Result<emulated::HostCompiler> compiler = emulated::findCompiler("", folder);
    fs::remove_all(folder, code);
    canEmulate = bool(compiler);
    if (compiler)
      add("emulator", fmt::format("{} ({})", compiler->path,
                                  compiler->version.substr(0, compiler->version.find('\n'))));
    else if (const std::vector<std::string> &said = compiler.error().notes; !said.empty())
      lack(
          mustEmulate, "emulator",
          fmt::format("{} ({})", compiler.error().message, said[0].substr(0, said[0].find('\n'))),
          "install a whole g++ or clang++, with its standard library and linker, to run kernels on "
          "the CPU");
    else
      lack(mustEmulate, "emulator", compiler.error().message,
           "install g++ or clang++ to run kernels on the CPU");
  }

  std::string text() const {
    std::vector<std::vector<std::string>> rows;
    for (const Finding &finding : findings)
      rows.push_back({finding.what, stateName(finding.state), finding.text});
    std::string text = table(rows);
    std::string problems;
    for (const Finding &finding : findings)
      if (finding.state == Finding::State::Problem)
        problems += fmt::format("{}: {}\n", finding.what, finding.remedy);
    constexpr size_t shown = 20;
    for (size_t i = 0; i < std::min(missing.size(), shown); ++i)
      text += fmt::format("{}{}\n", i == 0 ? "\nnot there:\n  " : "  ", missing[i]);
    if (missing.size() > shown)
      text += fmt::format("  and {} more\n", missing.size() - shown);
    text += fmt::format("\nthis machine can compile: {}, launch: {}, emulate: {}\n",
                        yes(canCompile), yes(canLaunch), yes(canEmulate));
    return problems.empty() ? text : text + "\nwhat helps\n" + problems;
  }

  std::string json() const {
    JsonWriter json;
    json.beginObject().field("canCompile", canCompile).field("canLaunch", canLaunch);
    json.field("canEmulate", canEmulate).field("arch", target.arch);
    json.field("nvrtcPath", nvrtcPath);
    json.field("nvrtcVersion", identity ? identity->nvrtcVersion : "");
    json.field("driverVersion", driverVersion).key("findings").beginArray();
    size_t problems = 0;
    for (const Finding &finding : findings) {
      problems += finding.state == Finding::State::Problem;
      json.beginObject().field("what", finding.what).field("state", stateName(finding.state));
      json.field("text", finding.text).field("remedy", finding.remedy).endObject();
    }
    json.endArray().key("missing").beginArray();
    for (const std::string &each : missing)
      json.string(each);
    return json.endArray().field("problems", problems).endObject().text();
  }

  static const char *yes(bool can) { return can ? "yes" : "no"; }

  const Arguments &arguments;
  Target target;
  KernelsOptions chosen; ///< what the command line says of kernels
  std::vector<Finding> findings;
  std::vector<std::string> missing; ///< launches without a kernel
  bool mustCompile = false, mustLaunch = false, mustEmulate = false;
  bool canCompile = false, canLaunch = false, canEmulate = false;
  uint32_t driverVersion = 0; ///< 0: no driver
  NvrtcOptions nvrtcOptions;
  std::string nvrtcPath; ///< of the library that was opened
  std::optional<GeneratorIdentity> identity;
};

int run(const Arguments &arguments) {
  Doctor doctor(arguments);
  if (Result<void> looked = doctor.run(); !looked)
    return fail(arguments, looked.error());
  return doctor.report();
}

} // namespace

const Command doctorCommand = {
    "doctor",
    "Say what this machine can do with kernels, what it lacks, and what helps",
    "[PATHS...] [options]",
    "Looks at the CUDA driver, the GPUs, NVRTC and whether they fit each other, at the cache "
    "folder, "
    "and at the C++ compiler of the emulator. With descriptions or checkpoints it says which of "
    "their kernels are in the cache, and which a first launch would compile. With --bundle it "
    "checks a bundle in place of the cache: every file, the driver it needs, and whether it has a "
    "kernel for every row count of the PATHs.\n"
    "Each problem comes with its remedy. --for says what the machine is there for; what it lacks "
    "for other things is a note. No kernel is compiled or launched, and no cache is written.",
    "  moejit doctor\n"
    "  moejit doctor --for compile                                    # a build machine\n"
    "  moejit doctor DeepSeek-V3/config.json --tp 8\n"
    "  moejit doctor DeepSeek-V3/config.json --tp 8 --bundle deepseek.bundle",
    "  0  no problem\n"
    "  2  a PATH or the bundle cannot be used, or the command line is wrong\n"
    "  3  there is a problem",
    withCommonOptions(withBundleOptions(withExtentOptions(withCheckpointOptions({
        {"--for", "LIST", "some of compile, launch, emulate",
         "compile,launch; with --bundle: launch"},
        {"--arch", "ARCH", "the architecture kernels are for", "sm_90a"},
        checkedOption(),
        tunedOption(),
    })))),
    run,
};

} // namespace moejit::tool
