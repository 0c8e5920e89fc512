// Issue, execution and delivery of emulated wgmma instructions.
#include "runtime/emulator/Wgmma.h"

#include "runtime/emulator/DeviceTable.h"
#include "runtime/emulator/Numerics.h"
#include "runtime/emulator/TensorCopy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace moejit::emulated {

void multiplyTileBase(float *d, int n, const float *a, const float *b);
void multiplyTileV3(float *d, int n, const float *a, const float *b);

void multiplyTile(float *d, int n, const float *a, const float *b) {
#if defined(__x86_64__)
  static const bool hasV3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (hasV3)
    return multiplyTileV3(d, n, a, b);
#endif
  multiplyTileBase(d, n, a, b);
}

namespace {

/// A matrix descriptor, taken apart.
struct Descriptor {
  int start;
  int leadingBytes; ///< LBO: used only without swizzle
  int strideBytes;  ///< SBO: from eight rows to the next eight
  int span;         ///< of the swizzle; 0: none
  int rowBytes;     ///< from one row to the next, inside eight

  explicit Descriptor(uint64_t bits)
      : start((bits & 0x3fff) << 4), leadingBytes(((bits >> 16) & 0x3fff) << 4),
        strideBytes(((bits >> 32) & 0x3fff) << 4) {
    const int mode = static_cast<int>(bits >> 62);
    span = mode == 1 ? 128 : mode == 2 ? 64 : mode == 3 ? 32 : 0;
    rowBytes = span ? span : 16;
  }
  /// Address of 16-byte chunk `chunk` (0 or 1) of row `row`.
  int chunkAddress(int row, int chunk) const {
    const int linear =
        start + (row / 8) * strideBytes + (row % 8) * rowBytes + chunk * (span ? 16 : leadingBytes);
    return swizzled(linear, span);
  }
  /// Bounds of all bytes of `rows` rows.
  int low() const { return span ? start & ~127 : start; }
  int high(int rows) const {
    return low() + (rows / 8 - 1) * strideBytes + 8 * rowBytes + (span ? 0 : leadingBytes);
  }
};

/// First register of the fragment of `thread` in a [64][n] matrix (PTX ISA, "Register fragments for
/// wgmma").
int fragmentRow(int thread) { return 16 * (thread / 32) + (thread % 32) / 4; }
int fragmentColumn(int thread) { return 2 * (thread % 4); }

void gather(float *values, int n, int thread, const float *registers) {
  float *upper = values + fragmentRow(thread) * n + fragmentColumn(thread);
  float *lower = upper + 8 * n;
  for (int j = 0; j < n / 8; ++j) {
    std::memcpy(upper + 8 * j, registers + 4 * j, 8);
    std::memcpy(lower + 8 * j, registers + 4 * j + 2, 8);
  }
}

void scatter(const float *values, int n, int thread, float *registers) {
  const float *upper = values + fragmentRow(thread) * n + fragmentColumn(thread);
  const float *lower = upper + 8 * n;
  for (int j = 0; j < n / 8; ++j) {
    std::memcpy(registers + 4 * j, upper + 8 * j, 8);
    std::memcpy(registers + 4 * j + 2, lower + 8 * j, 8);
  }
}

} // namespace

void Warpgroup::reset(int warpgroup) {
  index = warpgroup;
  instructions.clear();
  firstInstruction = 0;
  groups.clear();
  complete = 0;
  for (Accumulator &accumulator : accumulators) {
    accumulator.users = 0;
    accumulator.registers.fill(nullptr);
  }
  state.fill({});
  waiters.clear();
}

int Warpgroup::inFlight(int thread, const float *registers) const {
  for (size_t i = 0; i < accumulators.size(); ++i)
    if (accumulators[i].registers[thread] == registers)
      return static_cast<int>(i);
  return -1;
}

int Warpgroup::allocateAccumulator(int n) {
  size_t i = 0;
  while (i < accumulators.size() && accumulators[i].users > 0)
    ++i;
  if (i == accumulators.size())
    accumulators.emplace_back();
  accumulators[i].n = n;
  accumulators[i].values.resize(static_cast<size_t>(64) * n);
  return static_cast<int>(i);
}

Text Warpgroup::issue(int thread, float *registers, const WgmmaShape &shape, SharedMemory &shared,
                      StrictOperands strict) {
  ThreadState &own = state[thread];
  const uint64_t number = own.issued++;
  int found = inFlight(thread, registers);
  if (number == firstInstruction + instructions.size()) {
    const int accumulator = found >= 0 ? found : allocateAccumulator(shape.n);
    instructions.push_back({shape, 0, thread, accumulator});
    const Descriptor a(shape.a), b(shape.b);
    shared.operandReads.push_back({a.low(), a.high(64), index, own.committed});
    shared.operandReads.push_back({b.low(), b.high(shape.n), index, own.committed});
  }
  Instruction &instruction = instructions[number - firstInstruction];
  if (!(instruction.shape == shape))
    return Text::format("thread {} of the warpgroup issued n = {}, descriptors {:#x} and {:#x}, "
                        "accumulate {}; this "
                        "one n = {}, {:#x} and {:#x}, accumulate {}: all 128 must issue the same",
                        instruction.firstThread, instruction.shape.n, instruction.shape.a,
                        instruction.shape.b, instruction.shape.accumulate, shape.n, shape.a,
                        shape.b, shape.accumulate);
  Accumulator &accumulator = accumulators[instruction.accumulator];
  if (accumulator.n != shape.n)
    return Text::format("its accumulator is in flight with n = {}", accumulator.n);
  if (found < 0) {
    if (!own.isFenced)
      return "no wgmma_fence since the registers were last the thread's own";
    if (accumulator.registers[thread])
      return "threads of the warpgroup disagree about which accumulators are in flight";
    accumulator.registers[thread] = registers;
    ++accumulator.users;
    if (shape.accumulate)
      gather(accumulator.values.data(), shape.n, thread, registers);
    std::fill_n(registers, shape.n / 2, std::numeric_limits<float>::quiet_NaN());
  } else if (found != instruction.accumulator) {
    return "threads of the warpgroup disagree about which accumulator is meant";
  }
  accumulator.lastIssue[thread] = number;
  if (++instruction.arrivals == threads)
    return execute(instruction, shared, strict);
  return {};
}

Text Warpgroup::decode(const SharedMemory &shared, uint64_t bits, int rows, const float *table,
                       bool strict, const char *name, float *values, int rowStep, int kStep,
                       Writers &writers) const {
  const Descriptor descriptor(bits);
  constexpr uint64_t allWritten = 0x0101010101010101;
  for (int row = 0; row < rows; ++row)
    for (int chunk = 0; chunk < 2; ++chunk) {
      const int address = descriptor.chunkAddress(row, chunk);
      if (!shared.contains(address, 16))
        return Text::format(
            "row {} of {} lies at {}, outside the block's {} bytes of shared memory", row, name,
            SharedMemory::place(address), shared.bytes());
      for (int word = 0; word < 16; word += 4)
        writers.add(shared.races.writerOf(address - SharedMemory::base + word));
      const uint8_t *bytes = shared.at(address);
      float *out = values + row * rowStep + chunk * 16 * kStep;
      for (int k = 0; k < 16; ++k)
        out[k * kStep] = table[bytes[k]];
      const uint8_t *states = shared.stateAt(address);
      uint64_t words[2];
      std::memcpy(words, states, 16);
      if (words[0] == allWritten && words[1] == allWritten)
        continue;
      for (int k = 0; k < 16; ++k) {
        const auto complain = [&](const Text &what) {
          return Text::format("row {}, byte {} of k of {} at {} {}", row, 16 * chunk + k, name,
                              SharedMemory::place(address + k), what);
        };
        const uint8_t s = states[k];
        if (s & SharedMemory::loading)
          return complain(Text::format("is the destination of {}", loadingText));
        if (s & SharedMemory::copying)
          return complain("is the destination of a cp.async that has not been waited for");
        if (s & SharedMemory::barrier)
          return complain("belongs to an mbarrier");
        if (!(s & SharedMemory::written)) {
          if (strict)
            return complain("has not been written");
          out[k * kStep] = std::numeric_limits<float>::quiet_NaN();
        } else if (s & SharedMemory::generic &&
                   !shared.isFenced(address + k, index * threads, threads)) {
          return complain("was written by an ordinary store, and its writer has executed no "
                          "fence_proxy_async since");
        }
      }
    }
  return {};
}

void Warpgroup::Writers::add(std::pair<int, uint32_t> writer) {
  if (writer.first < 0)
    return;
  for (size_t i = 0; i < std::min(count, last.size()); ++i)
    if (last[i] == writer)
      return;
  last[count++ % last.size()] = writer;
}

/// What some thread of the warpgroup, each of which must know that the operands are there, does
/// not.
Text Warpgroup::unorderedWriter(const Writers &writers, const SharedMemory &shared) const {
  for (size_t i = 0; i < std::min(writers.count, writers.last.size()); ++i)
    for (int thread = index * threads; thread < (index + 1) * threads; ++thread) {
      const auto [lane, clock] = writers.last[i];
      if (lane != thread && !shared.races.isOrdered(lane, clock, thread))
        return Text::format("for thread {}: the operands hold what {}", thread,
                            shared.races.deed(lane, "stored"));
    }
  return {};
}

Text Warpgroup::execute(const Instruction &instruction, SharedMemory &shared,
                        StrictOperands strict) {
  const WgmmaShape &shape = instruction.shape;
  alignas(32) static thread_local float a[64 * 32];
  alignas(32) static thread_local float b[32 * 256];
  Writers writers;
  const float *tableA = (shape.types & 1 ? e5m2Values : e4m3Values).data();
  const float *tableB = (shape.types & 2 ? e5m2Values : e4m3Values).data();
  if (const Text message = decode(shared, shape.a, 64, tableA, strict.a, "A", a, 32, 1, writers);
      !message.empty())
    return message;
  if (const Text message =
          decode(shared, shape.b, shape.n, tableB, strict.b, "B", b, 1, shape.n, writers);
      !message.empty())
    return message;
  if (const Text message = unorderedWriter(writers, shared); !message.empty())
    return message;
  std::vector<float> &values = accumulators[instruction.accumulator].values;
  if (!shape.accumulate)
    std::fill(values.begin(), values.end(), 0.0f);
  multiplyTile(values.data(), shape.n, a, b);
  return {};
}

Text Warpgroup::commit(int thread, bool &isWhole) {
  ThreadState &own = state[thread];
  const uint64_t number = own.committed++;
  if (number == groups.size())
    groups.push_back({own.issued, 0, thread});
  Group &group = groups[number];
  if (group.end != own.issued)
    return Text::format("group {} ends after {} instructions here, after {} in thread {} of the "
                        "warpgroup",
                        number, own.issued, group.end, group.firstThread);
  isWhole = ++group.arrivals == threads;
  return {};
}

void Warpgroup::completeGroup(SharedMemory &shared) {
  const uint64_t end = groups[complete++].end;
  std::erase_if(shared.operandReads, [&](const SharedMemory::OperandRead &read) {
    return read.warpgroup == index && read.group < complete;
  });
  while (firstInstruction < end) {
    instructions.pop_front();
    ++firstInstruction;
  }
}

uint64_t Warpgroup::groupsNeeded(int thread, int allowed) const {
  const uint64_t committed = state[thread].committed;
  return committed > static_cast<uint64_t>(allowed) ? committed - allowed : 0;
}

int Warpgroup::threadsCommitted(uint64_t group) const {
  return group < groups.size() ? groups[group].arrivals : 0;
}

void Warpgroup::deliver(int thread, uint64_t groupCount) {
  state[thread].isFenced = false;
  if (groupCount == 0)
    return;
  const uint64_t end = groups[groupCount - 1].end;
  for (Accumulator &accumulator : accumulators) {
    float *&registers = accumulator.registers[thread];
    if (!registers || accumulator.lastIssue[thread] >= end)
      continue;
    scatter(accumulator.values.data(), accumulator.n, thread, registers);
    registers = nullptr;
    --accumulator.users;
  }
}

bool Warpgroup::isPending(int thread) const {
  for (const Accumulator &accumulator : accumulators)
    if (accumulator.registers[thread])
      return true;
  return false;
}

} // namespace moejit::emulated
