// The journal that worker processes write and their supervisor reads, and the tables made of it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace moejit::gpu {

/// What became of one check: a kernel under one routing, or one launch test.
struct Outcome {
  std::string subject;   ///< name of the case, or "launch"
  std::string situation; ///< routing, or the launch test
  std::string plan;      ///< "rows 0..575: 64x256, 5 stages"
  bool ok = false;
  double relativeError = 0;
  double worstRatio = 0; ///< of the worst element to its bound
  int64_t compared = 0;  ///< elements
  std::string worst;     ///< that element: "1.5, expected 1.4 ± 0.2 at [3, 7]"
  std::string text;      ///< for people: numbers of a launch test, or what went wrong
  bool isLost = false;   ///< the kernel took the context with it

  std::string key() const { return subject + '|' + situation + '|' + plan; }
};

/// An append-only file of lines; survives the process that writes it. Thread-safe.
class Journal {
public:
  /// Opens `path` and reads what is there.
  explicit Journal(const std::string &path);
  ~Journal();
  Journal(const Journal &) = delete;
  Journal &operator=(const Journal &) = delete;

  bool isOpen() const { return file != nullptr; }
  /// Notes that `outcome` (its key) is about to be tried.
  void begin(const Outcome &outcome);
  void add(const Outcome &outcome);
  /// Reads the file again, as others have written it.
  void reload();

  bool isDone(const Outcome &outcome) const { return done.count(outcome.key()) > 0; }
  /// Whether a kernel (subject and plan) has taken a context with it.
  bool isLost(const std::string &subject, const std::string &plan) const {
    return lost.count(subject + '|' + plan) > 0;
  }
  const std::vector<Outcome> &outcomes() const { return all; }
  /// Begun, and never ended: what a process that died was at.
  const std::vector<Outcome> &unfinished() const { return open; }

private:
  void write(char kind, const Outcome &outcome);

  std::string path;
  std::FILE *file = nullptr;
  std::mutex mutex;
  std::vector<Outcome> all, open;
  std::set<std::string> done, lost;
};

/// One line for people.
std::string lineOf(const Outcome &outcome);
/// Counts, the worst errors, what failed. `notRun`: checks that time or lost contexts left out.
std::string summaryOf(const std::vector<Outcome> &outcomes, size_t notRun);
/// The tables of docs/results: launch tests, one row for each kernel, one for each routing.
std::string markdownOf(const std::vector<Outcome> &outcomes, size_t notRun,
                       const std::string &device);
/// One row of a Markdown table for each kernel and routing: the worst of its plans.
std::string everyLineOf(const std::vector<Outcome> &outcomes);

} // namespace moejit::gpu
