// flock on a file that its owner unlinks; whoever got the lock on an unlinked file starts over.
#include "runtime/FileLock.h"

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace moejit {
namespace {

/// More often than others can get between our opening and our locking, one after the other.
constexpr int mostReplacements = 1000;

enum class Identity { Same, Other, Unknown };

/// Whether `name` still leads to the file behind `fd`: the previous owner may have unlinked it
/// while we waited. Unknown where the file system does not say.
Identity identify(int folderFd, const std::string &name, int fd) {
  struct stat byName, byDescriptor;
  if (fstat(fd, &byDescriptor) != 0)
    return Identity::Unknown;
  if (fstatat(folderFd, name.c_str(), &byName, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT ? Identity::Other : Identity::Unknown;
  return byName.st_ino == byDescriptor.st_ino && byName.st_dev == byDescriptor.st_dev
             ? Identity::Same
             : Identity::Other;
}

/// Opens the file `name`, or makes it, which `isMade` tells. -1 with ENOENT when it was there and
/// is gone.
int openFile(int folderFd, const char *name, bool &isMade) {
  constexpr int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  int fd = openat(folderFd, name, flags | O_CREAT | O_EXCL, 0600);
  isMade = fd >= 0;
  return fd < 0 && errno == EEXIST ? openat(folderFd, name, flags) : fd;
}

} // namespace

FileLock FileLock::acquire(int folderFd, std::string name, int waitMs) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(waitMs);
  FileLock lock;
  lock.folder = folderFd;
  lock.fileName = std::move(name);
  int pauseMs = 1;
  for (int replacements = 0; replacements < mostReplacements;) {
    bool isMade = false;
    int fd = openFile(folderFd, lock.fileName.c_str(), isMade);
    if (fd < 0 && errno == ENOENT) {
      ++replacements;
      continue;
    }
    if (fd < 0)
      break;
    int error = flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    if (error == 0) {
      Identity identity = identify(folderFd, lock.fileName, fd);
      if (identity == Identity::Same) {
        lock.fd = fd;
        lock.owner = getpid();
        lock.current = State::Held;
        return lock;
      }
      if (identity == Identity::Unknown && isMade)
        unlinkat(folderFd, lock.fileName.c_str(), 0);
      close(fd); // drops the lock on a file that is gone
      if (identity == Identity::Unknown)
        break;
      ++replacements;
      continue;
    }
    close(fd);
    if (error != EWOULDBLOCK && error != EINTR) {
      // No one can lock it, so it is of no use to anyone.
      if (isMade)
        unlinkat(folderFd, lock.fileName.c_str(), 0);
      break;
    }
    if (Clock::now() >= deadline) {
      lock.current = State::Busy;
      return lock;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(pauseMs));
    pauseMs = pauseMs < 16 ? pauseMs * 2 : 16;
  }
  lock.current = State::Unsupported;
  return lock;
}

void FileLock::releaseKeepingFile() {
  // A forked child shares the lock and must not end it; LOCK_UN ends it though a child keeps the
  // descriptor open.
  if (fd >= 0 && owner == getpid())
    flock(fd, LOCK_UN);
  if (fd >= 0)
    close(fd);
  fd = -1;
  current = State::Free;
}

void FileLock::release() {
  // Unlinked while still locked: no one can lock this file and believe it is the current one.
  if (current == State::Held && owner == getpid())
    unlinkat(folder, fileName.c_str(), 0);
  releaseKeepingFile();
}

} // namespace moejit
