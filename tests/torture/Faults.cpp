// The wrapped calls: each asks whether it is to fail, then calls the real one.
#include "tests/torture/Faults.h"

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

namespace moejit::torture {
namespace {

bool isArmed = false;
int suspended = 0;
int64_t happened = 0;
std::vector<Fault> planned;
std::vector<std::string> calls;

/// The fault of the call at hand; null for none.
const Fault *next(const char *call) {
  if (!isArmed || suspended > 0)
    return nullptr;
  auto index = int64_t(calls.size());
  calls.emplace_back(call);
  for (const Fault &fault : planned)
    if (fault.first <= index && index <= fault.last && (fault.call.empty() || fault.call == call)) {
      ++happened;
      if (fault.effect == Fault::Effect::Dies)
        raise(SIGKILL);
      return &fault;
    }
  return nullptr;
}

/// Lets the call at hand fail, or calls `real`.
template <typename Real> auto through(const char *call, const Real &real) -> decltype(real()) {
  const Fault *fault = next(call);
  if (!fault || fault->effect == Fault::Effect::Short)
    return real();
  int error = fault->error;
  if (fault->effect == Fault::Effect::FailsDone)
    (void)real();
  errno = error;
  return -1;
}

/// The same for calls that move bytes.
template <typename Real> ssize_t throughBytes(const char *call, size_t size, const Real &real) {
  const Fault *fault = next(call);
  if (!fault)
    return real(size);
  if (fault->effect == Fault::Effect::Short)
    return real(size < 1 ? size : 1);
  if (fault->effect == Fault::Effect::FailsDone)
    (void)real(size / 2);
  errno = fault->error;
  return -1;
}

} // namespace

void armFaults(std::vector<Fault> faults) {
  planned = std::move(faults);
  calls.clear();
  happened = 0;
  isArmed = true;
}

std::vector<std::string> disarmFaults() {
  isArmed = false;
  return calls;
}

int64_t faultsThatHappened() { return happened; }

FaultsSuspended::FaultsSuspended() { ++suspended; }
FaultsSuspended::~FaultsSuspended() { --suspended; }

} // namespace moejit::torture

using moejit::torture::through;
using moejit::torture::throughBytes;

extern "C" {
int __real_open(const char *path, int flags, ...);
int __real_openat(int folder, const char *path, int flags, ...);
int __real_flock(int fd, int operation);
int __real_stat(const char *path, struct stat *info);
int __real_fstat(int fd, struct stat *info);
int __real_fstatat(int folder, const char *path, struct stat *info, int flags);
int __real_faccessat(int folder, const char *path, int mode, int flags);
int __real_renameat(int fromFolder, const char *from, int toFolder, const char *to);
int __real_unlinkat(int folder, const char *path, int flags);
int __real_mkdir(const char *path, mode_t mode);
int __real_fsync(int fd);
int __real_utimensat(int folder, const char *path, const timespec times[2], int flags);
ssize_t __real_read(int fd, void *bytes, size_t size);
ssize_t __real_write(int fd, const void *bytes, size_t size);

int __wrap_open(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return through("open", [&] { return __real_open(path, flags, mode); });
}
int __wrap_openat(int folder, const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return through("openat", [&] { return __real_openat(folder, path, flags, mode); });
}
int __wrap_flock(int fd, int operation) {
  return through("flock", [&] { return __real_flock(fd, operation); });
}
int __wrap_stat(const char *path, struct stat *info) {
  return through("stat", [&] { return __real_stat(path, info); });
}
int __wrap_fstat(int fd, struct stat *info) {
  return through("fstat", [&] { return __real_fstat(fd, info); });
}
int __wrap_fstatat(int folder, const char *path, struct stat *info, int flags) {
  return through("fstatat", [&] { return __real_fstatat(folder, path, info, flags); });
}
int __wrap_faccessat(int folder, const char *path, int mode, int flags) {
  return through("faccessat", [&] { return __real_faccessat(folder, path, mode, flags); });
}
int __wrap_renameat(int fromFolder, const char *from, int toFolder, const char *to) {
  return through("renameat", [&] { return __real_renameat(fromFolder, from, toFolder, to); });
}
int __wrap_unlinkat(int folder, const char *path, int flags) {
  return through("unlinkat", [&] { return __real_unlinkat(folder, path, flags); });
}
int __wrap_mkdir(const char *path, mode_t mode) {
  return through("mkdir", [&] { return __real_mkdir(path, mode); });
}
int __wrap_fsync(int fd) {
  return through("fsync", [&] { return __real_fsync(fd); });
}
int __wrap_utimensat(int folder, const char *path, const timespec times[2], int flags) {
  return through("utimensat", [&] { return __real_utimensat(folder, path, times, flags); });
}
ssize_t __wrap_read(int fd, void *bytes, size_t size) {
  return throughBytes("read", size, [&](size_t most) { return __real_read(fd, bytes, most); });
}
ssize_t __wrap_write(int fd, const void *bytes, size_t size) {
  return throughBytes("write", size, [&](size_t most) { return __real_write(fd, bytes, most); });
}
}
