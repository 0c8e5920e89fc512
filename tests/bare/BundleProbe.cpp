// What a server does with a bundle, in a program that links the runtime alone: opens it by its
// pinned digest, finds a kernel for every row count on devices of several sizes, and where there is
// a driver launches each kernel on ones and looks at the sums. Usage: moejit-bundle-probe BUNDLE
// DIGEST FIRST LAST. Prints what it did as `name count` lines; exit 0: all found and right, 1: not
// so, 2: usage.
#include "runtime/Driver.h"
#include "runtime/Jit.h"
#include "runtime/Manifest.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

using namespace moejit;

namespace {

/// SM counts of an H20, an H100 PCIe, and an H100 SXM or H200.
constexpr int64_t smCounts[] = {78, 114, 132};

[[noreturn]] void give(const std::string &reason) {
  std::fprintf(stderr, "error: %s\n", reason.c_str());
  std::exit(1);
}

/// What the bundle's own list says that is in it.
struct Wanted {
  Spec spec;
  std::string arch;
  bool checked = false;
};

std::vector<Wanted> wantedOf(const std::string &folder) {
  std::ifstream stream(folder + "/manifest.json", std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  Result<Manifest> manifest = parseManifest(text.str());
  if (!manifest)
    give(manifest.error().text());
  std::map<std::string, Wanted> byLookup;
  for (const ManifestKernel &kernel : manifest->kernels) {
    Result<Spec> spec = parseSpec(kernel.spec);
    if (!spec)
      give(spec.error().text());
    bool isChecked = kernel.plan.find("checked=true") != std::string::npos;
    byLookup[kernel.lookup] = {*spec, kernel.arch, isChecked};
  }
  std::vector<Wanted> wanted;
  for (auto &[lookup, each] : byLookup)
    wanted.push_back(each);
  return wanted;
}

JitOptions optionsFor(const std::shared_ptr<Cache> &cache, const Wanted &wanted, int64_t smCount) {
  JitOptions options;
  options.cache = cache;
  Result<Target> target = parseTarget(wanted.arch);
  if (!target)
    give(target.error().text());
  options.target = *target;
  options.target.profile.smCount = smCount;
  options.plan.checked = wanted.checked;
  return options;
}

/// The bytes of 1 in `type`, as often as they fit into a word.
uint32_t oneOf(ElementType type) {
  switch (type) {
  case ElementType::F8E4M3FN:
    return 0x38383838;
  case ElementType::F8E5M2:
    return 0x3c3c3c3c;
  case ElementType::F8E8M0FNU:
    return 0x7f7f7f7f;
  case ElementType::BF16:
    return 0x3f803f80;
  case ElementType::F16:
    return 0x3c003c00;
  case ElementType::F32:
    return 0x3f800000;
  case ElementType::I32:
    break;
  }
  return 1;
}

/// Memory of the device, until the end.
class DeviceMemory {
public:
  DeviceMemory(const DriverApi &driver, size_t bytes) : driver(driver), size(bytes + 256) {
    check(driver.memAlloc(&address, size), "cuMemAlloc");
    check(driver.memsetD8Async(address, 0, size, nullptr), "cuMemsetD8Async");
  }
  ~DeviceMemory() { driver.memFree(address); }
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;

  void *data() const { return reinterpret_cast<void *>(uintptr_t(address)); }
  void fill(uint32_t word, size_t words) {
    check(driver.memsetD32Async(address, word, words, nullptr), "cuMemsetD32Async");
  }
  void write(const void *from, size_t bytes) {
    check(driver.streamSynchronize(nullptr), "cuStreamSynchronize");
    check(driver.memcpyHtoD(address, from, bytes), "cuMemcpyHtoD");
  }
  std::vector<uint8_t> read(size_t bytes) const {
    std::vector<uint8_t> result(bytes);
    check(driver.streamSynchronize(nullptr), "cuStreamSynchronize");
    check(driver.memcpyDtoH(result.data(), address, bytes), "cuMemcpyDtoH");
    return result;
  }
  void check(cu::Status status, const char *call) const {
    if (status != cu::success)
      give(driverError(driver, status, call).text());
  }

private:
  const DriverApi &driver;
  size_t size;
  cu::DevicePointer address = 0;
};

/// Launches `spec` over `rows` rows of ones, all owned by some expert. Every sum is K then.
void launchOnOnes(const DriverApi &driver, Jit &jit, const Spec &spec, int64_t rows) {
  if (spec.dispatch == Dispatch::Masked)
    rows = spec.numExperts * spec.maxRows;
  std::map<Operand, std::unique_ptr<DeviceMemory>> memory;
  GemmArguments arguments;
  arguments.rows = rows;
  auto place = [&](Operand operand, ElementType type, int64_t elements) -> DeviceMemory & {
    size_t bytes = size_t(elements * elementBytes(type) + 3) / 4 * 4;
    auto &made = memory[operand] = std::make_unique<DeviceMemory>(driver, bytes);
    if (operand != Operand::Y)
      made->fill(oneOf(type), bytes / 4);
    arguments.*memberOf(operand) = {made->data()};
    return *made;
  };
  auto elementsOf = [&](Operand operand) {
    OperandLayout layout = operandLayout(spec, operand, rows);
    int64_t stride = std::max(layout.packedStride, layout.columns);
    return layout.rows * stride + 64;
  };
  auto writeInts = [&](Operand operand, const std::vector<int32_t> &values) {
    place(operand, ElementType::I32, int64_t(values.size()))
        .write(values.data(), values.size() * 4);
  };
  place(Operand::X, spec.quantizeFrom.value_or(spec.xType), elementsOf(Operand::X));
  if (!spec.quantizeFrom)
    place(Operand::XScales,
          spec.xScales.storedType() == ElementType::I32 ? ElementType::F8E8M0FNU
                                                        : spec.xScales.storedType(),
          elementsOf(Operand::XScales) * spec.xScales.packing);
  place(Operand::W, spec.wType, elementsOf(Operand::W));
  place(Operand::WScales,
        spec.wScales.storedType() == ElementType::I32 ? ElementType::F8E8M0FNU
                                                      : spec.wScales.storedType(),
        elementsOf(Operand::WScales) * spec.wScales.packing);
  DeviceMemory &y = place(Operand::Y, spec.outType, elementsOf(Operand::Y));
  std::vector<int32_t> values;
  if (spec.dispatch == Dispatch::Grouped) {
    for (int64_t expert = 0; expert <= spec.numExperts; ++expert)
      values.push_back(int32_t(rows * expert / spec.numExperts));
    writeInts(Operand::Offsets, values);
  } else if (spec.dispatch == Dispatch::Masked) {
    writeInts(Operand::Counts,
              std::vector<int32_t>(size_t(spec.numExperts), int32_t(spec.maxRows)));
  } else if (spec.dispatch == Dispatch::Batched) {
    for (int64_t row = 0; row < rows; ++row)
      values.push_back(int32_t(row % spec.numExperts));
    writeInts(Operand::ExpertIds, values);
    if (spec.expertMapSize > 0) {
      values.clear();
      for (int64_t id = 0; id < spec.expertMapSize; ++id)
        values.push_back(id < spec.numExperts ? int32_t(id) : -1);
      writeInts(Operand::ExpertMap, values);
    }
  }
  Result<uint64_t> bytes = jit.workspaceBytes(spec, rows);
  if (!bytes)
    give(bytes.error().text());
  DeviceMemory workspace(driver, *bytes);
  arguments.workspace = workspace.data();
  arguments.workspaceBytes = *bytes;
  if (Result<void> launched = jit.handle(spec).launch(arguments, nullptr); !launched)
    give(launched.error().text());
  size_t elementSize = size_t(elementBytes(spec.outType));
  std::vector<uint8_t> found = y.read(size_t(rows * spec.n) * elementSize);
  for (int64_t i = 0; i < rows * spec.n; ++i) {
    float sum = 0;
    if (spec.outType == ElementType::F32) {
      std::memcpy(&sum, found.data() + size_t(i) * 4, 4);
    } else if (spec.outType == ElementType::BF16) {
      std::memcpy(reinterpret_cast<char *>(&sum) + 2, found.data() + size_t(i) * 2, 2);
    } else {
      uint16_t half;
      std::memcpy(&half, found.data() + size_t(i) * 2, 2);
      sum = std::ldexp(float((half & 0x3ff) | 0x400), (half >> 10 & 31) - 25);
    }
    // A sum of ones is exact; where x was quantized, 1 is 448 times 1/448, rounded. The result is
    // rounded to 16 bits.
    if (!(std::fabs(sum - float(spec.k)) <= float(spec.k) / 128))
      give("row " + std::to_string(i / spec.n) + ", column " + std::to_string(i % spec.n) + ": " +
           std::to_string(sum) + ", expected " + std::to_string(spec.k) + ", of " +
           canonicalText(spec));
  }
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 5) {
    std::fputs("usage: moejit-bundle-probe BUNDLE DIGEST FIRST LAST\n", stderr);
    return 2;
  }
  const std::string folder = argv[1];
  const int64_t first = std::atoll(argv[3]), last = std::atoll(argv[4]);
  CacheOptions cacheOptions;
  cacheOptions.folder = folder;
  cacheOptions.mode = CacheMode::Bundle;
  cacheOptions.manifestSha256 = argv[2];
  Result<std::shared_ptr<Cache>> cache = Cache::open(cacheOptions);
  if (!cache)
    give(cache.error().text());
  const std::vector<Wanted> wanted = wantedOf(folder);
  long long lookups = 0, launches = 0;
  std::set<std::string> kernels;
  for (const Wanted &each : wanted)
    for (int64_t smCount : smCounts) {
      Jit jit(optionsFor(*cache, each, smCount));
      JitHandle handle = jit.handle(each.spec);
      bool isBatched = each.spec.dispatch == Dispatch::Batched;
      for (int64_t rows = first; rows <= (isBatched ? std::min(last, batchedRowLimit) : last);
           ++rows) {
        Result<std::shared_ptr<Kernel>> kernel = handle.kernel(rows);
        if (!kernel)
          give(std::to_string(rows) + " rows: " + kernel.error().text());
        kernels.insert((*kernel)->artifact().buildKey);
        ++lookups;
      }
    }
  Result<const DriverApi *> driver = openDriver();
  cu::Device device = 0;
  cu::Context context = nullptr;
  if (driver && ((*driver)->deviceGet(&device, 0) != cu::success ||
                 (*driver)->primaryCtxRetain(&context, device) != cu::success ||
                 (*driver)->ctxSetCurrent(context) != cu::success))
    give("there is a driver and no device");
  if (driver)
    for (const Wanted &each : wanted) {
      Result<DeviceInfo> info = deviceInfo(**driver, 0);
      if (!info)
        give(info.error().text());
      if (each.spec.computation != Computation::Gemm || each.checked || info->arch() != each.arch)
        continue;
      Jit jit(optionsFor(*cache, each, info->smCount));
      for (int64_t rows : {first, std::min<int64_t>(last, 300)})
        if (rows > 0) {
          launchOnOnes(**driver, jit, each.spec, rows);
          ++launches;
        }
    }
  std::printf("specs %zu\nlookups %lld\nkernels %zu\nlaunches %lld\n%s", wanted.size(), lookups,
              kernels.size(), launches,
              driver ? "" : ("driver: " + driver.error().message + "\n").c_str());
  return 0;
}
