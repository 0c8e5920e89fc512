// The asynchronous operations of one thread that complete by commit groups (cp.async, TMA stores):
// which of them a wait waits for. Knows nothing of what they do.
#pragma once

#include "runtime/emulator/SharedMemory.h"

#include <cstdint>
#include <deque>
#include <vector>

namespace moejit::emulated {

/// Operations are numbered from 0 on in the order of issue. `Operation` is what is kept of one that
/// the thread has not waited for.
template <typename Operation> class CommitGroups {
public:
  /// Gives the number of the operation.
  uint64_t issue(Operation operation) {
    operations.push_back(std::move(operation));
    return first + operations.size() - 1;
  }
  uint64_t issued() const { return first + operations.size(); }
  void commit() { ends.push_back(issued()); }
  /// A wait that lets at most `pending` groups be unfinished waits for the operations before this
  /// one.
  uint64_t needed(int pending) const {
    const size_t allowed = static_cast<size_t>(pending);
    return ends.size() > allowed ? ends[ends.size() - 1 - allowed] : 0;
  }
  /// Operation `number`, which the thread has not waited for.
  Operation &at(uint64_t number) { return operations[number - first]; }
  bool isKept(uint64_t number) const { return number >= first; }
  uint64_t firstKept() const { return first; }
  /// The oldest operation has been waited for.
  void forgetFirst() {
    operations.pop_front();
    ++first;
  }
  /// Whether `isDone` holds for every kept operation before `end`.
  template <typename Predicate> bool allBefore(uint64_t end, Predicate isDone) const {
    for (uint64_t number = first; number < end; ++number)
      if (!isDone(operations[number - first]))
        return false;
    return true;
  }

  WaitList waiters; ///< the thread itself, while it waits

private:
  std::deque<Operation> operations;
  uint64_t first = 0;         ///< number of operations[0]
  std::vector<uint64_t> ends; ///< of the groups: operations before this one belong to them
};

} // namespace moejit::emulated
