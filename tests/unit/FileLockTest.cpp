// The lock between processes: one owner at a time, no file left, no owner that outlives its
// process.
#include "runtime/FileLock.h"

#include "Samples.h"

#include <doctest/doctest.h>

#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace moejit;

namespace {

struct Fixture {
  Fixture() : fd(open(folder.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}
  ~Fixture() { close(fd); }
  samples::TemporaryFolder folder;
  int fd;
};

} // namespace

TEST_CASE_FIXTURE(Fixture, "a held lock is busy for others, a released one is free and gone") {
  FileLock first = FileLock::acquire(fd, "x.lock", 0);
  CHECK(first.state() == FileLock::State::Held);
  CHECK(FileLock::acquire(fd, "x.lock", 5).state() == FileLock::State::Busy);
  CHECK(FileLock::acquire(fd, "y.lock", 0).state() == FileLock::State::Held);
  FileLock moved = std::move(first);
  CHECK(first.state() == FileLock::State::Free);
  CHECK(FileLock::acquire(fd, "x.lock", 0).state() == FileLock::State::Busy);
  moved.release();
  CHECK(samples::filesIn(folder.path).empty());
  CHECK(FileLock::acquire(fd, "x.lock", 0).state() == FileLock::State::Held);
}

TEST_CASE_FIXTURE(Fixture, "where no file can be made there is no lock") {
  CHECK(FileLock::acquire(fd, "absent/x.lock", 1000).state() == FileLock::State::Unsupported);
  CHECK(FileLock::acquire(-1, "x.lock", 1000).state() == FileLock::State::Unsupported);
}

// The owner unlinks the file; whoever opened it before and locks it after must not count as an
// owner.
TEST_CASE_FIXTURE(Fixture, "there is one owner at a time, however often the file goes") {
  std::atomic<int> owners = 0, violations = 0, turns = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      // On a busy machine an owner may be away for most of the others' attempts.
      for (int i = 0; i < 4000 || (turns <= 100 && i < 4'000'000); ++i) {
        FileLock lock = FileLock::acquire(fd, "x.lock", 0);
        if (lock.state() != FileLock::State::Held)
          continue;
        ++turns;
        violations += owners.fetch_add(1) != 0;
        std::this_thread::yield();
        --owners;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(turns > 100);
  CHECK(violations == 0);
  CHECK(samples::filesIn(folder.path).empty());
}

TEST_CASE_FIXTURE(Fixture,
                  "a killed owner frees the lock; a forked child neither keeps nor ends it") {
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  pid_t owner = fork();
  if (owner == 0) {
    FileLock lock = FileLock::acquire(fd, "x.lock", 0);
    (void)!write(ready[1], "r", 1);
    pause();
    _exit(0);
  }
  char byte;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  close(ready[0]);
  close(ready[1]);
  CHECK(FileLock::acquire(fd, "x.lock", 0).state() == FileLock::State::Busy);
  kill(owner, SIGKILL);
  waitpid(owner, nullptr, 0);
  FileLock lock = FileLock::acquire(fd, "x.lock", 0);
  REQUIRE(lock.state() == FileLock::State::Held);

  int gate[2];
  REQUIRE(pipe(gate) == 0);
  pid_t child = fork();
  if (child == 0) {
    lock.release(); // must leave the parent's lock alone
    close(gate[1]);
    (void)!read(gate[0], &byte, 1);
    _exit(0);
  }
  pid_t idle = fork();
  if (idle == 0) {
    close(gate[1]);
    (void)!read(gate[0], &byte, 1); // keeps the inherited descriptor open
    _exit(0);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(FileLock::acquire(fd, "x.lock", 0).state() == FileLock::State::Busy);
  lock.release();
  CHECK(FileLock::acquire(fd, "x.lock", 0).state() == FileLock::State::Held);
  close(gate[0]);
  close(gate[1]);
  waitpid(child, nullptr, 0);
  waitpid(idle, nullptr, 0);
}
