// One launch on the emulator, and the folder it works in.
#include "tools/moejit/Emulation.h"

#include "runtime/DiskCache.h"

#include <cstdlib>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace moejit::tool {
namespace {

/// A folder for compiled units. Code is loaded from it, so it has to be ours alone.
class WorkFolder {
public:
  explicit WorkFolder(std::optional<std::string> wanted) {
    if (wanted) {
      // It lies in the cache folder, which a umask of 002 must not open to others.
      (void)makeFolders(*wanted);
      struct stat status, above;
      bool isOurs = lstat(wanted->c_str(), &status) == 0 && isOursAlone(status) &&
                    stat((*wanted + "/..").c_str(), &above) == 0 && isOursAlone(above) &&
                    access(wanted->c_str(), W_OK) == 0;
      if (isOurs) {
        path = *wanted;
        return;
      }
    }
    std::error_code code;
    std::string name = (std::filesystem::temp_directory_path(code) / "moejit-XXXXXX").string();
    isTemporary = !code && mkdtemp(name.data());
    if (isTemporary)
      path = name;
  }
  ~WorkFolder() {
    std::error_code code;
    if (isTemporary)
      std::filesystem::remove_all(path, code);
  }
  std::string path;

private:
  static bool isOursAlone(const struct stat &status) {
    return S_ISDIR(status.st_mode) && status.st_uid == geteuid() && (status.st_mode & 022) == 0;
  }

  bool isTemporary = false;
};

} // namespace

Result<EmulatorReport> emulate(const Artifact &artifact, const HostLaunch &given,
                               std::optional<std::string> folder, bool &hasFault) {
  WorkFolder work(std::move(folder));
  if (work.path.empty())
    return Error{ErrorCode::IoError, "there is no folder to work in: set TMPDIR to one"};
  EmulatorOptions options;
  options.workFolder = work.path;
  options.maxSeconds = 0;
  Result<std::unique_ptr<Emulator>> emulator = Emulator::create(options);
  if (!emulator)
    return emulator.error();

  GemmArguments arguments;
  for (const OperandBytes &operand : given.operands)
    arguments.*memberOf(operand.operand) = {static_cast<char *>(operand.data) + operand.offsetBytes,
                                            operand.rowStride};
  arguments.rows = given.rows;
  // A workspace may come uninitialised.
  std::vector<uint64_t> dirt(workspaceBytes(artifact.launch, given.rows) / 8 + 2, ~uint64_t(0));
  arguments.workspace = dirt.data();
  arguments.workspaceBytes = workspaceBytes(artifact.launch, given.rows);
  Result<EmulatorReport> report = (*emulator)->launch(artifact, arguments);
  hasFault = !report && report.error().code == ErrorCode::Internal;
  return report;
}

} // namespace moejit::tool
