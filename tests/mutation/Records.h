// What is known of each fault, as lines of JSON: the file a campaign leaves, and what its processes
// tell each other.
#pragma once

#include "tests/mutation/Campaign.h"
#include "tests/mutation/Equivalents.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace moejit::mutation {

/// One fault of one kernel, or, with `error`, why there is none.
struct Record {
  std::string kernel;
  Verdict verdict;
  int entry = 0;      ///< of a survivor: line of equivalents.txt that explains it; 0: none
  std::string reason; ///< of that entry
  std::string error;  ///< the kernel could not be tried
};

/// `record` as one line of JSON, with its end.
std::string recordLine(const Record &record);
/// Nothing where `line` is no record.
std::optional<Record> readRecord(const std::string &line);

/// Records by kernel and number of the fault.
class Records {
public:
  /// Takes `record` in place of what is known of the fault. One that was not run replaces nothing
  /// but a record of another fault (isSameFault).
  void put(const Record &record);
  /// Reads a file of records; lines that are none are left out. False when it cannot be opened.
  bool read(const std::string &path);
  /// Keeps, of `kernel`, only the faults `numbers`.
  void keep(const std::string &kernel, const std::vector<int> &numbers);
  /// Gives every survivor its entry, in the order of kernels and faults.
  void explain(const std::vector<Equivalent> &entries);

  /// Of `kernel`, by number.
  const std::map<int, Record> &of(const std::string &kernel) const;
  /// All as lines, in order.
  std::string text() const;
  /// Tables by kernel, by kind of fault, and of the reasons of survivors, as Markdown. Kernels come
  /// in the order of `kernels`; those without records are left out.
  std::string tables(const std::vector<std::string> &kernels) const;

private:
  std::map<std::string, std::map<int, Record>> byKernel;
};

} // namespace moejit::mutation
