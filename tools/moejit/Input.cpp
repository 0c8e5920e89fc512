// Reads kernel descriptions.
#include "tools/moejit/Input.h"

#include "compiler/Compile.h"
#include "runtime/Rules.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace moejit::tool {

Result<std::string> readFile(const std::string &path, uint64_t limitBytes) {
  std::FILE *file = std::fopen(path.c_str(), "rb");
  std::string bytes;
  size_t count = 0;
  if (file) {
    char buffer[1 << 16];
    while (bytes.size() <= limitBytes && (count = std::fread(buffer, 1, sizeof buffer, file)) > 0)
      bytes.append(buffer, count);
  }
  int problem = errno;
  bool isRead = file && !std::ferror(file);
  if (file)
    std::fclose(file);
  if (!isRead)
    return Error{ErrorCode::IoError,
                 fmt::format("cannot read {}: {}", path, std::strerror(problem))};
  if (bytes.size() > limitBytes)
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("{} has more than {} bytes", path, limitBytes)};
  return bytes;
}

Result<std::string> oneFile(const Arguments &arguments) {
  if (arguments.words.size() == 1)
    return arguments.words[0];
  if (arguments.words.empty())
    return Error{ErrorCode::InvalidArgument,
                 "no FILE given",
                 {"give a kernel description, such as kernels/deepseek-v3.gate_up.mlir"}};
  return Error{ErrorCode::InvalidArgument,
               fmt::format("one FILE is taken, got {}: {}", arguments.words.size(),
                           fmt::join(arguments.words, " "))};
}

/// Puts --experts, --n and --k into `spec`.
static Result<void> applyExtents(const Arguments &arguments, Spec &spec) {
  struct {
    const char *option;
    int64_t &extent;
  } extents[] = {{"--experts", spec.numExperts}, {"--n", spec.n}, {"--k", spec.k}};
  for (auto &[option, extent] : extents) {
    Result<std::optional<int64_t>> given = arguments.integer(option, 1, int64_t(1) << 31);
    if (!given)
      return given.error();
    if (!*given)
      continue;
    if (&extent != &spec.k && spec.computation == Computation::Quantize)
      return Error{ErrorCode::InvalidArgument,
                   fmt::format("{}: a quantization has rows and K, and nothing else", option)};
    extent = **given;
    if (&extent == &spec.numExperts && spec.dispatch == Dispatch::Eager && extent != 1)
      return Error{ErrorCode::InvalidArgument,
                   fmt::format("--experts {}: an eager kernel has one expert", extent)};
  }
  return {};
}

Result<Spec> loadSpec(const Arguments &arguments, const std::string &file) {
  Result<Spec> spec = Error{};
  if (std::optional<std::string> text = arguments.value("--spec"); text && file.empty()) {
    spec = parseSpec(*text);
  } else {
    Result<std::string> source = readFile(file);
    if (!source)
      return source.error();
    std::string diagnostics;
    spec = parseMlir(*source, file, arguments.valueOr("--kernel", ""),
                     [&](const std::string &diagnostic) {
                       std::fputs(diagnostic.c_str(), stderr);
                       diagnostics += diagnostic;
                     });
    for (const Rule &rule : allRules())
      if (!spec && diagnostics.find(fmt::format("[{}]", rule.id)) != std::string::npos)
        spec.error().notes.push_back(
            fmt::format("moejit explain {} says why, and what works", rule.id));
  }
  if (!spec)
    return spec;
  if (Result<void> applied = applyExtents(arguments, *spec); !applied)
    return applied.error();
  return spec;
}

Result<Spec> loadOneSpec(const Arguments &arguments, std::string &name) {
  if (arguments.has("--spec") && !arguments.words.empty())
    return Error{ErrorCode::InvalidArgument,
                 fmt::format("--spec stands for a FILE, got {} too", arguments.words[0]),
                 {}};
  if (arguments.has("--spec")) {
    name = "the given spec";
    return loadSpec(arguments, "");
  }
  Result<std::string> file = oneFile(arguments);
  if (!file)
    return file.error();
  name = *file;
  return loadSpec(arguments, *file);
}

Result<Target> loadTarget(const Arguments &arguments) {
  return parseTarget(arguments.valueOr("--arch", "sm_90a"));
}

std::string describe(const Spec &spec) {
  if (spec.computation == Computation::Quantize)
    return fmt::format("quantize, K {}, {} -> {}, {} scales {} of {}", spec.k,
                       spec.quantizeFrom ? elementTypeName(*spec.quantizeFrom) : "?",
                       elementTypeName(spec.xType), scaleSourceName(spec.xScales.source),
                       spec.xScales.granuleText(), elementTypeName(spec.xScales.type));
  std::string experts =
      spec.dispatch == Dispatch::Eager ? "one expert" : fmt::format("{} experts", spec.numExperts);
  std::string x = elementTypeName(spec.xType);
  if (spec.quantizeFrom)
    x = fmt::format("{} as {}", elementTypeName(*spec.quantizeFrom), x);
  return fmt::format("{}, {}, N {}, K {}, {} x {} -> {}, scales {} x {}",
                     dispatchName(spec.dispatch), experts, spec.n, spec.k, x,
                     elementTypeName(spec.wType), elementTypeName(spec.outType),
                     spec.xScales.granuleText(), spec.wScales.granuleText());
}

} // namespace moejit::tool
