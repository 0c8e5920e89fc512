// Runs hand-written kernels on the emulator: the frame around a kernel's body, tensor maps, buffers
// with canaries.
#pragma once

#include "runtime/emulator/DeviceTable.h"
#include "runtime/emulator/Emulator.h"

#include <cstdint>
#include <string>
#include <vector>

namespace moejit::test {

/// A translation unit with kernel `moejit_kernel(parameters) { body }`, for the emulator and for
/// the GPU alike.
std::string kernelSource(const std::string &parameters, const std::string &body);

/// Default options of the tests: a work folder in the build tree, so that a second run compiles
/// nothing.
EmulatorOptions testOptions();

/// Memory of one operand. Canary bytes on both sides are checked when it is destroyed.
class Buffer {
public:
  Buffer(std::string name, int64_t bytes, bool writable);
  ~Buffer();
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;

  uint8_t *data() { return storage.data() + guardBytes + shift; }
  template <typename T> T *as() { return reinterpret_cast<T *>(data()); }
  int64_t bytes() const { return length; }
  MemoryRange range() { return {name, data(), length, writable, 0, 0}; }

private:
  static constexpr int64_t guardBytes = 256;
  std::string name;
  int64_t length;
  bool writable;
  std::vector<uint8_t> storage;
  int64_t shift = 0; ///< makes data() 128-byte aligned
};

/// The values of a tensor map; extents, strides (of dimensions 1…) and box from dimension 0 on.
TensorMapValues mapOf(Buffer &buffer, ElementType type, std::vector<uint64_t> extents,
                      std::vector<uint64_t> strideBytes, std::vector<uint32_t> box,
                      Swizzle swizzle);

/// A launch under construction: arguments are stored by value.
class TestLaunch {
public:
  TestLaunch(uint32_t blocks, uint32_t threads, int64_t sharedBytes, uint32_t cluster = 1);

  TestLaunch &map(const TensorMapValues &values);
  TestLaunch &pointer(Buffer &buffer);
  TestLaunch &integer(int value);
  /// Memory that holds nothing at first.
  TestLaunch &scratch(Buffer &buffer);
  /// A matrix of rows of `rowBytes` bytes, `strideBytes` apart.
  TestLaunch &rows(Buffer &buffer, int64_t rowBytes, int64_t strideBytes);
  TestLaunch &storesOnce(bool isOn);
  /// Memory the kernel reaches through a tensor map.
  TestLaunch &range(Buffer &buffer);

  /// Compiles and runs `source`.
  Result<EmulatorReport> run(const std::string &source,
                             const EmulatorOptions &options = testOptions());
  Result<EmulatorReport> run(const std::string &source, Emulator &emulator,
                             const std::string &entry = "moejit_kernel");
  /// Runs `source`, and after it `secondSource` by `second`, which need not wait for it to end.
  Result<std::pair<EmulatorReport, EmulatorReport>> runDependent(const std::string &source,
                                                                 TestLaunch &second,
                                                                 const std::string &secondSource,
                                                                 Emulator &emulator);

private:
  struct alignas(64) Slot {
    emulated::TensorMap map;
  };
  std::vector<std::unique_ptr<Slot>> slots;
  EmulatedLaunch launch;
  void *newSlot();
};

/// Runs, and gives the text of the error; empty when there is none.
std::string errorOf(TestLaunch &launch, const std::string &source,
                    const EmulatorOptions &options = testOptions());

/// Whether `text` contains `part`.
bool contains(const std::string &text, const std::string &part);

} // namespace moejit::test
