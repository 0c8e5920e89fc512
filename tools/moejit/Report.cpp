// Printing for people: errors, progress, tables, units.
#include "tools/moejit/Report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <poll.h>
#include <system_error>
#include <unistd.h>

namespace moejit::tool {

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

ExitCode exitCodeOf(const Error &error) {
  switch (error.code) {
  case ErrorCode::RuleViolation:
    return exitWrong;
  case ErrorCode::InvalidArgument:
  case ErrorCode::ParseError:
  case ErrorCode::NotFound:
  case ErrorCode::IoError:
    return exitUnusable;
  case ErrorCode::Unavailable:
  case ErrorCode::DriverError:
  case ErrorCode::NotInCache:
    return exitLacking;
  case ErrorCode::CaptureActive:
  case ErrorCode::CompileError:
  case ErrorCode::Internal:
    break;
  }
  return exitInternal;
}

int fail(bool isJson, const Error &error, std::optional<ExitCode> given) {
  std::string text = fmt::format("error: {}\n", error.message);
  for (const std::string &line : error.notes)
    text += fmt::format("note: {}\n", line);
  std::fputs(printable(text).c_str(), stderr);
  ExitCode exit = given.value_or(exitCodeOf(error));
  if (isJson) {
    JsonWriter json;
    json.beginObject().key("error").beginObject();
    json.field("code", errorCodeName(error.code)).field("message", error.message);
    json.key("notes").beginArray();
    for (const std::string &line : error.notes)
      json.string(line);
    json.endArray().endObject().field("exit", int64_t(exit)).endObject();
    print(json.text());
  }
  return exit;
}

int fail(const Arguments &arguments, const Error &error, std::optional<ExitCode> exit) {
  return fail(arguments.has("--json"), error, exit);
}

std::string printable(std::string_view text, bool keepsLines) {
  std::string shown;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    bool isKept = (byte >= 0x20 && byte != 0x7f) || (keepsLines && (c == '\n' || c == '\t'));
    shown += isKept ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  return shown;
}

void note(const std::string &text) {
  std::fputs(printable(fmt::format("note: {}\n", text)).c_str(), stderr);
}

/// Writes all of `text` to stdout. A pipe that its other end made non-blocking is waited for.
static bool writeAll(std::string_view text) {
  while (!text.empty()) {
    ssize_t count = write(STDOUT_FILENO, text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(size_t(count));
    } else if (errno == EAGAIN) {
      pollfd room = {STDOUT_FILENO, POLLOUT, 0};
      poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

int print(const std::string &text) {
  if (writeAll(text))
    return exitOk;
  std::fputs(fmt::format("error: cannot write to stdout: {}\n", std::strerror(errno)).c_str(),
             stderr);
  return exitLacking;
}

Result<void> writeFile(const std::string &path, const std::string &bytes) {
  std::FILE *file = std::fopen(path.c_str(), "wb");
  bool isWritten = file && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  int problem = errno;
  if (file && std::fclose(file) != 0) {
    isWritten = false;
    problem = errno;
  }
  if (isWritten)
    return {};
  return Error{ErrorCode::IoError,
               fmt::format("cannot write {}: {}", path, std::strerror(problem))};
}

Result<void> checkWritable(const std::string &path) {
  std::error_code ignored;
  bool isThere = std::filesystem::exists(path, ignored);
  std::FILE *file = std::fopen(path.c_str(), "ab");
  if (!file)
    return Error{ErrorCode::IoError,
                 fmt::format("cannot write {}: {}", path, std::strerror(errno))};
  std::fclose(file);
  if (!isThere)
    std::filesystem::remove(path, ignored);
  return {};
}

Progress::Progress(std::string what) : text(std::move(what)), begin(now()) {
  if (text.empty())
    return;
  auto watch = [this] {
    std::unique_lock lock(mutex);
    auto wait = std::chrono::seconds(1);
    bool isSaid = false;
    while (!done.wait_for(lock, wait, [this] { return isDone; })) {
      std::fputs(isSaid ? fmt::format("{}: {:.0f} s so far\n", text, seconds()).c_str()
                        : fmt::format("{} ...\n", text).c_str(),
                 stderr);
      isSaid = true;
      wait = std::chrono::seconds(10);
    }
    if (isSaid)
      std::fputs(fmt::format("{}: {:.1f} s\n", text, seconds()).c_str(), stderr);
  };
  try {
    watcher = std::thread(watch);
  } catch (const std::system_error &) {
    // This user may start no thread more: the work goes on unwatched.
  }
}

Progress::~Progress() {
  {
    std::lock_guard guard(mutex);
    isDone = true;
  }
  done.notify_all();
  if (watcher.joinable())
    watcher.join();
}

double Progress::seconds() const { return now() - begin; }

static std::string durationText(double seconds) {
  auto whole = int64_t(seconds + 0.5);
  return whole < 100    ? fmt::format("{} s", whole)
         : whole < 6000 ? fmt::format("{} min {} s", whole / 60, whole % 60)
                        : fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

Tally::Tally(std::string things, size_t count)
    : what(std::move(things)), total(count), begin(now()), said(begin) {}

void Tally::add(bool isMade) {
  std::lock_guard guard(mutex);
  ++done;
  made += isMade;
  double at = now();
  if (at - said < 1 && !(done == total && saidAny))
    return;
  said = at;
  saidAny = true;
  std::string line = fmt::format("{}/{} {}", done, total, what);
  if (made > 0 && done < total) {
    // What was there already took no time and says nothing of the rest.
    double rate = double(made) / (at - begin);
    line +=
        fmt::format(", {:.2f} a second, {} left", rate, durationText(double(total - done) / rate));
  } else if (done == total) {
    line += fmt::format(" in {}", durationText(at - begin));
  }
  std::fputs((line + '\n').c_str(), stderr);
}

std::string table(std::vector<std::vector<std::string>> rows) {
  for (std::vector<std::string> &row : rows)
    for (std::string &cell : row)
      cell = printable(cell, false);
  std::vector<size_t> widths;
  for (const std::vector<std::string> &row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t c = 0; c < row.size(); ++c)
      widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const std::vector<std::string> &row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c)
      line += c + 1 == row.size() ? row[c] : fmt::format("{:<{}}  ", row[c], widths[c]);
    text += line + '\n';
  }
  return text;
}

std::string bytesText(uint64_t bytes) {
  static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

std::string rowsText(int64_t minRows, int64_t maxRows) {
  if (maxRows == INT64_MAX)
    return minRows == 0 ? "any" : fmt::format("{} or more", minRows);
  return minRows == maxRows ? fmt::format("{}", minRows)
                            : fmt::format("{} to {}", minRows, maxRows);
}

} // namespace moejit::tool
