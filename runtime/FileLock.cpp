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

/// Whether `name` still leads to the file behind `fd`: the previous owner may have unlinked it
/// while we waited.
bool isSameFile(int folderFd, const std::string &name, int fd) {
  struct stat byName, byDescriptor;
  return fstatat(folderFd, name.c_str(), &byName, AT_SYMLINK_NOFOLLOW) == 0 &&
         fstat(fd, &byDescriptor) == 0 && byName.st_ino == byDescriptor.st_ino &&
         byName.st_dev == byDescriptor.st_dev;
}

} // namespace

FileLock FileLock::acquire(int folderFd, std::string name, int waitMs) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(waitMs);
  FileLock lock;
  lock.folder = folderFd;
  lock.fileName = std::move(name);
  int pauseMs = 1;
  while (true) {
    int fd = openat(folderFd, lock.fileName.c_str(),
                    O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0) {
      lock.current = State::Unsupported;
      return lock;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
      if (isSameFile(folderFd, lock.fileName, fd)) {
        lock.fd = fd;
        lock.owner = getpid();
        lock.current = State::Held;
        return lock;
      }
      close(fd); // drops the lock on a file that is gone
      continue;
    }
    int error = errno;
    close(fd);
    if (error != EWOULDBLOCK && error != EINTR) {
      lock.current = State::Unsupported;
      return lock;
    }
    if (Clock::now() >= deadline) {
      lock.current = State::Busy;
      return lock;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(pauseMs));
    pauseMs = pauseMs < 16 ? pauseMs * 2 : 16;
  }
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
