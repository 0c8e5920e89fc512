// Runs a fuzz target: replays inputs, then mutates them for a while, in processes that may die.
//
//   moejit-fuzz-NAME [--seconds=N] [--jobs=N] [--seed=N] [--max-bytes=N] [--limit-ms=N]
//                    [--findings=DIR] [--keep=DIR] [--minimize] [FILE or FOLDER]...
//
// Without --seconds the inputs are replayed and nothing else. Findings (inputs that crash, hang or
// leak) go to --findings; inputs that reach new code go to --keep, where the build is instrumented:
// new mutations, or in a replay those inputs, small ones first, that reach what smaller ones do
// not. One line of JSON on stdout tells what ran. Exits 0: no finding; 1: findings; 2: usage.
#include "tests/fuzz/Coverage.h"
#include "tests/fuzz/Fuzz.h"
#include "tests/fuzz/Mutator.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

// There where the build has them.
extern "C" __attribute__((weak)) int __lsan_do_recoverable_leak_check();
extern "C" __attribute__((visibility("default"))) const char *__asan_default_options() {
  return "allocator_may_return_null=0:max_allocation_size_mb=1024:hard_rss_limit_mb=3072:"
         "detect_stack_use_after_return=0:abort_on_error=1";
}

namespace fuzz {

void require(bool holds, const char *property) {
  if (holds)
    return;
  std::fprintf(stderr, "fuzz: this does not hold: %s\n", property);
  std::abort();
}

namespace {

namespace fs = std::filesystem;
constexpr size_t pageBytes = 1 << 20;
constexpr int leakStatus = 77;

int64_t nowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// CPU time that `process` has used.
int64_t cpuMs(pid_t process) {
  clockid_t clock = 0;
  timespec time = {};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0)
    return 0;
  return int64_t(time.tv_sec) * 1000 + time.tv_nsec / 1'000'000;
}

struct Options {
  int64_t seconds = 0, jobs = 1, seed = 1, maxBytes = 1 << 16, limitMs = 10'000;
  std::string findings = "fuzz-findings", keep;
  bool minimize = false;
  std::vector<std::string> paths;
};

struct Input {
  std::string name, bytes;
};

/// What a worker tells of itself; outlives it.
struct Page {
  std::atomic<int64_t> startedMs;    ///< when the input at hand began; 0: none
  std::atomic<int64_t> startedCpuMs; ///< CPU time of the worker then
  std::atomic<uint64_t> executions, slots, kept;
  std::atomic<size_t> size;
  char name[256];
  char bytes[pageBytes];
};

class Worker {
public:
  Worker(const Options &options, Page &page) : options(options), page(page) {}

  /// Replays `inputs`, then mutates until `deadlineMs`. Returns the exit status.
  int run(const std::vector<Input> &inputs, uint64_t seed, int64_t deadlineMs) {
    std::vector<std::string> pool;
    Coverage coverage;
    for (const Input &input : inputs) {
      runOne(input.bytes, input.name);
      if (coverage.takeIn() > 0 && deadlineMs == 0 && !options.keep.empty())
        keepInput(input.bytes);
      pool.push_back(input.bytes);
    }
    if (pool.empty())
      pool.emplace_back();
    if (nowMs() < deadlineMs) {
      std::vector<std::string> words = wordsOf(pool, 2000);
      for (const char *const *word = dictionary; *word; ++word)
        words.emplace_back(*word);
      words.emplace_back("0");
      Mutator mutator(seed, words);
      while (nowMs() < deadlineMs) {
        std::string input =
            mutator.mutate(choose(pool, mutator), choose(pool, mutator), size_t(options.maxBytes));
        runOne(input, "");
        // Without instrumentation some inputs are taken over blindly, so that changes add up.
        bool isNew = coverage.takeIn() > 0;
        if (isNew && !options.keep.empty())
          keepInput(input);
        if (isNew || (coverage.seenSlots() == 0 && mutator.below(512) == 0))
          pool.push_back(std::move(input));
        if (coverage.seenSlots() == 0 && pool.size() > inputs.size() + 4096)
          pool.resize(std::max<size_t>(1, inputs.size()));
        page.slots = coverage.seenSlots();
        page.kept = pool.size();
      }
    }
    page.startedMs = 0;
    return __lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check() ? leakStatus : 0;
  }

private:
  void runOne(const std::string &input, const std::string &name) {
    // Exactly as large as the input, so that a sanitizer sees a read past its end.
    std::vector<uint8_t> bytes(input.begin(), input.end());
    size_t size = std::min(input.size(), pageBytes);
    std::memcpy(page.bytes, input.data(), size);
    page.size = size;
    std::snprintf(page.name, sizeof page.name, "%s", name.c_str());
    page.startedCpuMs = cpuMs(getpid());
    page.startedMs = nowMs();
    Coverage::reset();
    (void)LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    ++page.executions;
  }

  static const std::string &choose(const std::vector<std::string> &pool, Mutator &mutator) {
    // Half of the time one of the newest: what reached new code may reach more.
    size_t newest = std::min<size_t>(pool.size(), 32);
    return mutator.below(2) ? pool[pool.size() - 1 - mutator.below(newest)]
                            : pool[mutator.below(pool.size())];
  }

  void keepInput(const std::string &input) const {
    std::string name = std::to_string(std::hash<std::string>()(input));
    std::ofstream(options.keep + "/" + name, std::ios::binary) << input;
  }

  const Options &options;
  Page &page;
};

/// Starts workers, watches them, and gathers what they found.
class Campaign {
public:
  explicit Campaign(const Options &options) : options(options) {
    void *memory = mmap(nullptr, sizeof(Page) * size_t(options.jobs), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      std::abort();
    pages = static_cast<Page *>(memory);
  }

  /// The number of findings.
  size_t run(const std::vector<Input> &inputs) {
    int64_t begun = nowMs();
    deadlineMs = options.seconds > 0 ? begun + options.seconds * 1000 : 0;
    workers.resize(size_t(options.jobs));
    for (size_t i = 0; i < workers.size(); ++i)
      start(i, inputs);
    while (std::any_of(workers.begin(), workers.end(), [](pid_t pid) { return pid > 0; })) {
      for (size_t i = 0; i < workers.size(); ++i)
        if (workers[i] > 0)
          watch(i, inputs);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    for (size_t i = 0; i < workers.size(); ++i) {
      executions += pages[i].executions;
      slots = std::max<uint64_t>(slots, pages[i].slots);
      kept += pages[i].kept;
    }
    rusage usage = {};
    getrusage(RUSAGE_CHILDREN, &usage);
    std::printf("{\"inputs\": %zu, \"seconds\": %.1f, \"cpuSeconds\": %.1f, \"jobs\": %lld, "
                "\"seed\": %lld, \"executions\": %llu, \"slots\": %llu, \"kept\": %llu, "
                "\"crashes\": %zu, \"hangs\": %zu, \"leaks\": %zu, \"peakMiB\": %ld}\n",
                inputs.size(), double(nowMs() - begun) / 1000,
                double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                    double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
                static_cast<long long>(options.jobs), static_cast<long long>(options.seed),
                static_cast<unsigned long long>(executions), static_cast<unsigned long long>(slots),
                static_cast<unsigned long long>(kept), crashes, hangs, leaks,
                usage.ru_maxrss / 1024);
    return crashes + hangs + leaks;
  }

private:
  static constexpr size_t mostFindings = 30;

  void start(size_t i, const std::vector<Input> &inputs) {
    std::fflush(nullptr);
    pages[i].startedMs = nowMs();
    pages[i].startedCpuMs = 0;
    uint64_t seed = uint64_t(options.seed) * 1000003 + starts++;
    workers[i] = fork();
    if (workers[i] != 0)
      return;
    // Every job replays a part of the corpus; all of it is the pool of each when they mutate.
    std::vector<Input> own;
    for (size_t input = 0; input < inputs.size(); ++input)
      if (deadlineMs || input % workers.size() == i)
        own.push_back(inputs[input]);
    _exit(Worker(options, pages[i]).run(own, seed, deadlineMs));
  }

  void watch(size_t i, const std::vector<Input> &inputs) {
    Page &page = pages[i];
    int status = 0;
    bool isOver = waitpid(workers[i], &status, WNOHANG) == workers[i];
    int64_t started = page.startedMs;
    // Others may keep the machine busy: time of its own counts, and of the clock much more.
    bool hangs = !isOver && started &&
                 (cpuMs(workers[i]) - page.startedCpuMs > options.limitMs ||
                  nowMs() - started > 20 * options.limitMs);
    if (hangs) {
      kill(workers[i], SIGKILL);
      waitpid(workers[i], &status, 0);
    }
    if (!isOver && !hangs)
      return;
    workers[i] = 0;
    if (!hangs && WIFEXITED(status) && WEXITSTATUS(status) == 0)
      return;
    if (!hangs && WIFEXITED(status) && WEXITSTATUS(status) == leakStatus) {
      ++leaks;
      std::fprintf(stderr, "fuzz: memory leaked; the report is above\n");
      return;
    }
    record(page, hangs, status);
    // A corpus with a finding is not replayed again and again.
    if (deadlineMs && page.name[0] == 0 && crashes + this->hangs < mostFindings)
      start(i, inputs);
  }

  void record(const Page &page, bool isHang, int status) {
    ++(isHang ? hangs : crashes);
    std::string bytes(page.bytes, page.size);
    std::error_code ignored;
    fs::create_directories(options.findings, ignored);
    std::string path = options.findings + (isHang ? "/hang-" : "/crash-") +
                       std::to_string(std::hash<std::string>()(bytes));
    std::ofstream(path, std::ios::binary) << bytes;
    std::fprintf(stderr, "fuzz: %s (%s %d) of %s, %zu bytes: %s\n", isHang ? "a hang" : "a crash",
                 WIFSIGNALED(status) ? "signal" : "status",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
                 page.name[0] ? page.name : "a mutation", bytes.size(), path.c_str());
  }

  const Options &options;
  Page *pages = nullptr;
  std::vector<pid_t> workers; ///< 0: over
  int64_t deadlineMs = 0;     ///< 0: replay only
  uint64_t starts = 0, executions = 0, slots = 0, kept = 0;
  size_t crashes = 0, hangs = 0, leaks = 0;
};

/// Whether the target dies of `bytes`, or runs longer than the limit.
bool dies(const Options &options, const std::string &bytes) {
  std::fflush(nullptr);
  pid_t child = fork();
  if (child == 0) {
    if (!std::freopen("/dev/null", "w", stderr))
      _exit(2);
    std::vector<uint8_t> copy(bytes.begin(), bytes.end());
    (void)LLVMFuzzerTestOneInput(copy.data(), copy.size());
    _exit(0);
  }
  int64_t begun = nowMs();
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (nowMs() - begun > options.limitMs) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return status != 0;
}

/// The shortest part of `bytes` that still dies, by leaving out ever smaller pieces.
std::string minimized(const Options &options, std::string bytes) {
  for (size_t piece = std::max<size_t>(1, bytes.size() / 2); piece > 0; piece /= 2)
    for (size_t at = 0; at < bytes.size();) {
      std::string shorter = bytes;
      shorter.erase(at, piece);
      if (dies(options, shorter))
        bytes = shorter;
      else
        at += piece;
    }
  return bytes;
}

bool readNumber(const std::string &word, const char *name, int64_t &value) {
  std::string prefix = std::string(name) + "=";
  if (word.compare(0, prefix.size(), prefix) != 0)
    return false;
  value = std::strtoll(word.c_str() + prefix.size(), nullptr, 10);
  return true;
}

bool readText(const std::string &word, const char *name, std::string &value) {
  std::string prefix = std::string(name) + "=";
  if (word.compare(0, prefix.size(), prefix) != 0)
    return false;
  value = word.substr(prefix.size());
  return true;
}

bool parse(int count, char **words, Options &options) {
  for (int i = 1; i < count; ++i) {
    std::string word = words[i];
    if (word == "--minimize")
      options.minimize = true;
    else if (word.compare(0, 2, "--") != 0)
      options.paths.push_back(word);
    else if (!readNumber(word, "--seconds", options.seconds) &&
             !readNumber(word, "--jobs", options.jobs) &&
             !readNumber(word, "--seed", options.seed) &&
             !readNumber(word, "--max-bytes", options.maxBytes) &&
             !readNumber(word, "--limit-ms", options.limitMs) &&
             !readText(word, "--findings", options.findings) &&
             !readText(word, "--keep", options.keep)) {
      std::fprintf(stderr, "unknown: %s\n", word.c_str());
      return false;
    }
  }
  return options.jobs > 0 && options.maxBytes > 0 && options.maxBytes <= int64_t(pageBytes);
}

/// Files as they are, of folders every file in them, by name. False when one cannot be read.
bool readInputs(const std::vector<std::string> &paths, std::vector<Input> &inputs) {
  std::vector<std::string> files;
  for (const std::string &path : paths) {
    std::error_code code;
    if (!fs::is_directory(path, code)) {
      files.push_back(path);
      continue;
    }
    for (const auto &entry : fs::recursive_directory_iterator(path, code))
      if (entry.is_regular_file(code))
        files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  for (const std::string &file : files) {
    std::ifstream stream(file, std::ios::binary);
    std::stringstream bytes;
    bytes << stream.rdbuf();
    if (!stream) {
      std::fprintf(stderr, "cannot read %s\n", file.c_str());
      return false;
    }
    inputs.push_back({file, bytes.str()});
  }
  return true;
}

int runMain(int count, char **words) {
  Options options;
  std::vector<Input> inputs;
  if (!parse(count, words, options) || !readInputs(options.paths, inputs))
    return 2;
  if (inputs.empty() && options.seconds == 0) {
    std::fprintf(stderr, "neither inputs nor --seconds: nothing would be tested\n");
    return 2;
  }
  if (options.minimize) {
    for (const Input &input : inputs) {
      bool isFinding = dies(options, input.bytes);
      std::string shorter = isFinding ? minimized(options, input.bytes) : input.bytes;
      if (isFinding)
        std::ofstream(input.name + ".min", std::ios::binary) << shorter;
      std::printf("%s: %zu bytes -> %s\n", input.name.c_str(), input.bytes.size(),
                  isFinding ? std::to_string(shorter.size()).c_str() : "no finding");
    }
    return 0;
  }
  std::error_code ignored;
  if (!options.keep.empty())
    fs::create_directories(options.keep, ignored);
  if (!options.keep.empty() && options.seconds == 0)
    std::stable_sort(inputs.begin(), inputs.end(), [](const Input &a, const Input &b) {
      return a.bytes.size() < b.bytes.size();
    });
  return Campaign(options).run(inputs) ? 1 : 0;
}

} // namespace
} // namespace fuzz

int main(int count, char **words) { return fuzz::runMain(count, words); }
