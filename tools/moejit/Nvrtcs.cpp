// Finds NVRTC: an option, the default search, then folders beside the program.
#include "tools/moejit/Nvrtcs.h"

#include <algorithm>
#include <filesystem>

namespace fs = std::filesystem;

namespace moejit::tool {

/// Entries of `folder`, sorted, newest name first; none when it cannot be read.
static std::vector<fs::path> entriesOf(const fs::path &folder) {
  std::vector<fs::path> entries;
  std::error_code code;
  for (fs::directory_iterator entry(folder, code), end; !code && entry != end;
       entry.increment(code))
    entries.push_back(entry->path());
  std::sort(entries.rbegin(), entries.rend());
  return entries;
}

std::string executablePath() {
  std::error_code code;
  fs::path path = fs::read_symlink("/proc/self/exe", code);
  return code ? std::string() : path.string();
}

std::vector<std::string> foldersBeside(const std::string &executable) {
  if (executable.empty())
    return {};
  std::vector<std::string> folders;
  fs::path place = fs::path(executable).parent_path();
  folders.push_back((place.parent_path() / "lib").string());
  // bin/moejit of an archive, or tools/moejit/moejit of a build folder. No other folder above the
  // program is looked into: it might be anyone's.
  bool isBuilt = place.filename() == "moejit" && place.parent_path().filename() == "tools";
  fs::path root = isBuilt ? place.parent_path().parent_path() : place.parent_path();
  for (const fs::path &entry : entriesOf(root / "cuda-wheels" / "nvidia"))
    folders.push_back((entry / "lib").string());
  return folders;
}

NvrtcOptions findNvrtc(const std::string &given) {
  NvrtcOptions options;
  if (!given.empty()) {
    fs::path path(given);
    std::error_code code;
    // A file here is meant before one that the loader would find.
    options.libraryPath = fs::exists(path, code) ? fs::absolute(path, code).string() : given;
    if (fs::is_directory(path, code)) {
      // A folder stands for the library in it.
      for (const char *name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"})
        if (fs::exists(path / name, code)) {
          options.libraryPath = (path / name).string();
          break;
        }
    }
    return options;
  }
  options.folders = foldersBeside(executablePath());
  if (Result<Nvrtc> found = Nvrtc::open(options))
    options.libraryPath = found->libraryPath();
  return options;
}

} // namespace moejit::tool
