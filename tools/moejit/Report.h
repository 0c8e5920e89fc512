// What people are told: exit codes, errors, progress on stderr, tables on stdout.
#pragma once

#include "runtime/Result.h"
#include "tools/moejit/Json.h"
#include "tools/moejit/Options.h"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace moejit::tool {

enum ExitCode {
  exitOk = 0,
  exitWrong = 1,    ///< a wrong result, or a rule refuses the kernel
  exitUnusable = 2, ///< input or command line
  exitLacking = 3,  ///< this machine lacks something
  exitInternal = 4, ///< a defect of moejit
  exitReported = 5, ///< a checked kernel reported its operands
};

/// The exit code of a command that failed with `error`.
ExitCode exitCodeOf(const Error &error);

/// Prints `error` in clang's shape on stderr and, with --json, as an object on stdout. Returns
/// `exit`, or exitCodeOf(error) where it is not given.
int fail(const Arguments &arguments, const Error &error, std::optional<ExitCode> exit = {});
int fail(bool isJson, const Error &error, std::optional<ExitCode> exit = {});

/// `text` with its control characters spelt out (\x1b): what files say must not steer a terminal.
/// Ends of lines and tabs stay where `keepsLines`.
std::string printable(std::string_view text, bool keepsLines = true);

/// Prints one line, with "note: ", on stderr.
void note(const std::string &text);

/// Prints `text` on stdout. Returns exitOk, or exitLacking when stdout takes no more.
int print(const std::string &text);

/// Writes a file whole. Errors: IoError.
Result<void> writeFile(const std::string &path, const std::string &bytes);

/// Whether `path` can be written: a mistake in it should not be told when an hour of measuring is
/// over. Leaves things as they are. Errors: IoError.
Result<void> checkWritable(const std::string &path);

/// Says on stderr what takes longer than a second, again every ten seconds, and when it is done. An
/// empty text says nothing and only takes the time.
class Progress {
public:
  explicit Progress(std::string text);
  ~Progress();
  double seconds() const;

private:
  std::string text;
  double begin;
  std::mutex mutex;
  std::condition_variable done;
  bool isDone = false;
  std::thread watcher;
};

/// Counts many things on stderr, once a second at most: how many of them, how fast, how much
/// longer. Thread-safe.
class Tally {
public:
  /// `things`: what is counted, such as "kernels".
  Tally(std::string things, size_t count);
  /// One more is done; `isMade` says that it took work.
  void add(bool isMade);

private:
  std::string what;
  size_t total, done = 0, made = 0;
  double begin, said;
  bool saidAny = false;
  std::mutex mutex; ///< guards the counts
};

/// `rows` in columns, two spaces apart; the first row is the heading. Cells are made printable.
std::string table(std::vector<std::vector<std::string>> rows);

/// "35.1 KiB", "7.0 GiB".
std::string bytesText(uint64_t bytes);
/// "0 to 24575", "24576 or more".
std::string rowsText(int64_t minRows, int64_t maxRows);

} // namespace moejit::tool
