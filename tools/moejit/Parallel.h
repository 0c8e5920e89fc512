// The same work for many things, on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace moejit::tool {

/// Calls `work(i)` for every i below `count`, with at most `jobs` threads (0: one a CPU). `work`
/// must be thread-safe. Where the system grants fewer threads, those do all of it. What `work`
/// throws first (memory may run out) ends the others early, and is thrown on.
template <typename Work> void forEachParallel(size_t count, int64_t jobs, const Work &work) {
  std::atomic<size_t> next = 0;
  std::exception_ptr thrown;
  std::once_flag once;
  auto loop = [&] {
    try {
      for (size_t i = next++; i < count; i = next++)
        work(i);
    } catch (...) {
      std::call_once(once, [&] { thrown = std::current_exception(); });
      next = count;
    }
  };
  if (jobs <= 0)
    jobs = int64_t(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::thread> threads;
  for (int64_t t = 1; t < std::min<int64_t>(jobs, int64_t(count)); ++t)
    try {
      threads.emplace_back(loop);
    } catch (const std::system_error &) {
      break;
    }
  loop();
  for (std::thread &thread : threads)
    thread.join();
  if (thrown)
    std::rethrow_exception(thrown);
}

} // namespace moejit::tool
