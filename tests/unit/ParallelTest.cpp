// The tools' one way to work on several things at once.
#include "tools/moejit/Parallel.h"

#include <doctest/doctest.h>

#include <new>

using moejit::tool::forEachParallel;

TEST_CASE("each thing is worked on once, with as many threads as there are things at most") {
  for (int64_t jobs : {0, 1, 3, 1000})
    for (size_t count : {size_t(0), size_t(1), size_t(2), size_t(100)}) {
      std::vector<std::atomic<int>> calls(count);
      forEachParallel(count, jobs, [&](size_t i) { ++calls[i]; });
      for (const std::atomic<int> &each : calls)
        CHECK(each == 1);
    }
}

TEST_CASE("what a thread throws reaches the caller, once all have ended") {
  // Two threads meet in the work, so that each of them throws: the caller's and another.
  std::atomic<int> inside = 0, ended = 0;
  auto work = [&](size_t) {
    ++inside;
    while (inside < 2)
      std::this_thread::yield();
    ++ended;
    throw std::bad_alloc();
  };
  CHECK_THROWS_AS(forEachParallel(2, 2, work), std::bad_alloc);
  CHECK(ended == 2);
}
