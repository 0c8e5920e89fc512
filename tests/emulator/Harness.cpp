// The frame of hand-written kernels and their launches.
#include "tests/emulator/Harness.h"

#include "runtime/emulator/TensorCopy.h"

#include <doctest/doctest.h>

#include <cstring>

namespace moejit::test {

std::string kernelSource(const std::string &parameters, const std::string &body) {
  return "#ifdef MOEJIT_EMULATOR\n#include \"runtime/emulator/Device.h\"\n#endif\n"
         "extern \"C\" __global__ void __launch_bounds__(384, 1)\n"
         "moejit_kernel(" +
         parameters + ") {\n" + body +
         "}\n#ifdef MOEJIT_EMULATOR\nMOEJIT_EMULATED_KERNEL(moejit_kernel)\n#endif\n";
}

EmulatorOptions testOptions() {
  EmulatorOptions options;
  options.workFolder = MOEJIT_TEST_WORK_FOLDER;
  options.maxSeconds = 600; // of a machine that may be busy
  return options;
}

Buffer::Buffer(std::string name, int64_t bytes, bool writable)
    : name(std::move(name)), length(bytes), writable(writable),
      storage(bytes + 2 * guardBytes + 128, 0xa5) {
  const auto address = reinterpret_cast<uintptr_t>(storage.data() + guardBytes);
  shift = static_cast<int64_t>(-address & 127);
}

Buffer::~Buffer() {
  const int64_t end = guardBytes + shift + length;
  for (int64_t i = 0; i < static_cast<int64_t>(storage.size()); ++i)
    if ((i < guardBytes + shift || i >= end) && storage[i] != 0xa5)
      FAIL_CHECK("canary of ", name, " overwritten at offset ", i - guardBytes - shift);
}

TensorMapValues mapOf(Buffer &buffer, ElementType type, std::vector<uint64_t> extents,
                      std::vector<uint64_t> strideBytes, std::vector<uint32_t> box,
                      Swizzle swizzle) {
  TensorMapValues values;
  values.type = type;
  values.swizzle = swizzle;
  values.rank = static_cast<uint32_t>(extents.size());
  values.address = reinterpret_cast<uint64_t>(buffer.data());
  std::copy(extents.begin(), extents.end(), values.extents.begin());
  std::copy(strideBytes.begin(), strideBytes.end(), values.strideBytes.begin());
  std::copy(box.begin(), box.end(), values.box.begin());
  return values;
}

TestLaunch::TestLaunch(uint32_t blocks, uint32_t threads, int64_t sharedBytes, uint32_t cluster) {
  launch.blocks = blocks;
  launch.threads = threads;
  launch.cluster = cluster;
  launch.sharedBytes = sharedBytes;
}

void *TestLaunch::newSlot() {
  slots.push_back(std::make_unique<Slot>());
  launch.arguments.push_back(slots.back().get());
  return slots.back().get();
}

TestLaunch &TestLaunch::map(const TensorMapValues &values) {
  Result<emulated::TensorMap> packed = emulated::packTensorMap(values);
  if (!packed)
    FAIL(packed.error().text());
  std::memcpy(newSlot(), &*packed, sizeof *packed);
  return *this;
}

TestLaunch &TestLaunch::pointer(Buffer &buffer) {
  void *p = buffer.data();
  std::memcpy(newSlot(), &p, sizeof p);
  return range(buffer);
}

TestLaunch &TestLaunch::scratch(Buffer &buffer) {
  pointer(buffer);
  launch.ranges.back().isScratch = true;
  return *this;
}

TestLaunch &TestLaunch::rows(Buffer &buffer, int64_t rowBytes, int64_t strideBytes) {
  pointer(buffer);
  launch.ranges.back().rowBytes = rowBytes;
  launch.ranges.back().strideBytes = strideBytes;
  return *this;
}

TestLaunch &TestLaunch::storesOnce(bool isOn) {
  launch.storesOnce = isOn;
  return *this;
}

TestLaunch &TestLaunch::integer(int value) {
  std::memcpy(newSlot(), &value, sizeof value);
  return *this;
}

TestLaunch &TestLaunch::range(Buffer &buffer) {
  launch.ranges.push_back(buffer.range());
  return *this;
}

Result<EmulatorReport> TestLaunch::run(const std::string &source, const EmulatorOptions &options) {
  Result<std::unique_ptr<Emulator>> emulator = Emulator::create(options);
  if (!emulator)
    return emulator.error();
  return run(source, **emulator);
}

Result<EmulatorReport> TestLaunch::run(const std::string &source, Emulator &emulator,
                                       const std::string &entry) {
  Result<std::shared_ptr<const EmulatedModule>> module = emulator.load(source, entry);
  if (!module)
    return module.error();
  return emulator.run(**module, launch);
}

Result<std::pair<EmulatorReport, EmulatorReport>>
TestLaunch::runDependent(const std::string &source, TestLaunch &second,
                         const std::string &secondSource, Emulator &emulator) {
  Result<std::shared_ptr<const EmulatedModule>> module = emulator.load(source);
  if (!module)
    return module.error();
  Result<std::shared_ptr<const EmulatedModule>> secondModule = emulator.load(secondSource);
  if (!secondModule)
    return secondModule.error();
  return emulator.runDependent(**module, launch, **secondModule, second.launch);
}

std::string errorOf(TestLaunch &launch, const std::string &source, const EmulatorOptions &options) {
  Result<EmulatorReport> report = launch.run(source, options);
  return report ? std::string() : report.error().text();
}

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

} // namespace moejit::test
