// Which bytes of global memory a launch has read and written, and by which threads: what a grid
// that is launched before this one has ended must not touch until it has waited for it
// (griddepcontrol.wait).
#pragma once

#include "runtime/emulator/Emulator.h"
#include "runtime/emulator/SparseWords.h"
#include "runtime/emulator/Text.h"

#include <vector>

namespace moejit::emulated {

class Footprint {
public:
  /// Of a launch that has done nothing, which must outlive this.
  explicit Footprint(const EmulatedLaunch &launch);

  /// Thread `thread` of block `block` reads or writes `bytes` bytes at `at` of range `range` of the
  /// launch. Thread-safe.
  void note(size_t range, int64_t at, int bytes, int block, int thread, bool isWrite);

  /// What a thread of the next grid must not do that has not waited: reading what this launch
  /// writes, and writing what it reads or writes. `name` and `at` say where the bytes are. Empty
  /// when nothing forbids it.
  Text refuse(const char *address, int bytes, bool isWrite, const std::string &name,
              int64_t at) const;
  /// Whether the launch has written the byte.
  bool hasWritten(const char *address) const;

private:
  uint64_t wordOf(const char *address) const;

  const EmulatedLaunch &launch;
  /// Of each byte of each range the last writer in the low half, the last reader in the high one:
  /// numbers of threads in the grid, from 1 on.
  std::vector<SparseWords> words;
};

} // namespace moejit::emulated
