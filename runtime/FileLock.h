// Locks between processes that a dead owner cannot keep. Knows nothing of what they guard.
#pragma once

#include <string>
#include <utility>

namespace moejit {

/// An exclusive flock(2) on a file of its own. The kernel drops it when the owner dies, however it
/// dies; the file is unlinked on release. One object is one owner, also among threads of one
/// process. Movable, not copyable.
class FileLock {
public:
  enum class State {
    Free,        ///< holds nothing
    Held,        ///< holds the lock
    Busy,        ///< another owner held it for the whole wait
    Unsupported, ///< this file system has no locks, or the file cannot be made: go on alone
  };

  FileLock() = default;
  FileLock(FileLock &&other) noexcept { swap(other); }
  FileLock &operator=(FileLock &&other) noexcept {
    FileLock(std::move(other)).swap(*this);
    return *this;
  }
  ~FileLock() { release(); }

  /// Locks the file `name` in the open folder `folderFd`, made when absent with mode 0600, and
  /// waits `waitMs` at most for another owner. `folderFd` must stay open until release.
  static FileLock acquire(int folderFd, std::string name, int waitMs);

  State state() const { return current; }
  /// Descriptor of the locked file; -1 unless Held.
  int descriptor() const { return fd; }
  /// Keeps the file under whatever name it has by now (it was renamed to be published), and
  /// unlocks.
  void releaseKeepingFile();
  /// Unlinks the file and unlocks.
  void release();

private:
  void swap(FileLock &other) noexcept {
    std::swap(current, other.current);
    std::swap(folder, other.folder);
    std::swap(fd, other.fd);
    std::swap(owner, other.owner);
    std::swap(fileName, other.fileName);
  }

  State current = State::Free;
  int folder = -1;
  int fd = -1;
  int owner = 0; ///< process that locked
  std::string fileName;
};

} // namespace moejit
