// Reads kernel descriptions.
#include "tools/moejit/Input.h"

#include "compiler/Compile.h"
#include "runtime/Rules.h"
#include "tools/moejit/Report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>

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
                       // It quotes lines of the file.
                       std::fputs(printable(diagnostic).c_str(), stderr);
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

Result<std::vector<std::string>> kernelFiles(const std::vector<std::string> &words) {
  std::vector<std::string> files;
  for (const std::string &word : words) {
    std::error_code code;
    if (!std::filesystem::is_directory(word, code)) {
      files.push_back(word);
      continue;
    }
    std::vector<std::string> inside;
    for (std::filesystem::directory_iterator entry(word, code), end; !code && entry != end;
         entry.increment(code)) {
      // A pipe would hold us up; a link that leads nowhere is worth an error.
      std::error_code ignored;
      std::filesystem::file_type type = entry->status(ignored).type();
      bool isFile = type == std::filesystem::file_type::regular ||
                    type == std::filesystem::file_type::not_found || ignored;
      if (isFile && entry->path().extension() == ".mlir")
        inside.push_back(entry->path().string());
    }
    if (code)
      return Error{ErrorCode::IoError, fmt::format("cannot read {}: {}", word, code.message())};
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  if (files.empty())
    return Error{ErrorCode::InvalidArgument,
                 words.empty() ? "no FILE given" : "the folder has no .mlir file",
                 {"give kernel descriptions, such as kernels/deepseek-v3.gate_up.mlir"}};
  return files;
}

Result<std::vector<int64_t>> numberList(const Arguments &arguments, const char *option,
                                        int64_t least, int64_t most, const std::string &standard) {
  std::string text = arguments.valueOr(option, standard);
  std::vector<int64_t> numbers;
  const char *at = text.data(), *end = text.data() + text.size();
  while (at < end) {
    int64_t number = 0;
    auto [rest, code] = std::from_chars(at, end, number);
    bool isWhole = code == std::errc() && (rest == end || (*rest == ',' && rest + 1 < end));
    if (!isWhole || number < least || number > most)
      return Error{ErrorCode::InvalidArgument,
                   fmt::format("{} takes whole numbers from {} to {} with commas between them, got "
                               "'{}'",
                               option, least, most, text),
                   {}};
    numbers.push_back(number);
    at = rest == end ? end : rest + 1;
  }
  return numbers;
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
