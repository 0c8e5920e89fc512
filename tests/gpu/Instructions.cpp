// moejit-gpu-instructions: runs hand-written kernels of single instructions on a GPU and on the
// emulator, with the same operands, and compares what they leave, bit for bit where it is
// specified.
#include "compiler/Nvrtc.h"
#include "runtime/emulator/Emulator.h"
#include "runtime/emulator/TensorCopy.h"
#include "tests/gpu/Device.h"
#include "tests/gpu/InstructionTrials.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

using namespace moejit;
using namespace moejit::gpu;

namespace {

struct Options {
  std::string work = "instruction-units", units, markdown;
  std::vector<std::string> only;
  int rounds = 8;
};

/// Every buffer of a trial as one block of bytes, poison between them.
struct Image {
  std::vector<uint8_t> bytes;
  std::vector<size_t> places;

  explicit Image(const Trial &trial) {
    constexpr size_t gap = 1024, align = 256;
    size_t end = gap;
    for (const TrialBuffer &buffer : trial.buffers) {
      places.push_back(end);
      end = (end + buffer.bytes.size() + gap + align - 1) / align * align;
    }
    bytes.assign(end, 0xa5);
    for (size_t i = 0; i < places.size(); ++i)
      std::memcpy(bytes.data() + places[i], trial.buffers[i].bytes.data(),
                  trial.buffers[i].bytes.size());
  }
};

struct alignas(64) Slot {
  std::array<uint64_t, 16> words = {};
};

/// The parameters of `grid`, with the image at `base`. `encode` makes 128 bytes of a tensor map.
template <typename Encode>
Result<std::vector<Slot>> parametersOf(const TrialGrid &grid, const Image &image, uint64_t base,
                                       const Encode &encode) {
  std::vector<Slot> slots;
  for (const TrialArgument &argument : grid.arguments) {
    Slot &slot = slots.emplace_back();
    const uint64_t address =
        argument.kind == TrialArgument::Kind::Integer ? 0 : base + image.places[argument.buffer];
    if (argument.kind == TrialArgument::Kind::Integer) {
      std::memcpy(slot.words.data(), &argument.integer, 4);
    } else if (argument.kind == TrialArgument::Kind::Pointer) {
      slot.words[0] = address;
    } else {
      TensorMapValues values = argument.map;
      values.address = address;
      auto map = encode(values);
      if (!map)
        return map.error();
      static_assert(sizeof *map == sizeof slot);
      std::memcpy(slot.words.data(), &*map, sizeof slot);
    }
  }
  return slots;
}

std::vector<void *> addressesOf(std::vector<Slot> &slots) {
  std::vector<void *> addresses;
  for (Slot &slot : slots)
    addresses.push_back(&slot);
  return addresses;
}

/// Both devices with every kernel compiled for both.
class Runner {
public:
  static Result<std::unique_ptr<Runner>> create(const Device &device, const Options &options) {
    std::unique_ptr<Runner> runner(new Runner(device));
    EmulatorOptions emulatorOptions;
    emulatorOptions.workFolder = options.work;
    emulatorOptions.seed = 1;
    Result<std::unique_ptr<Emulator>> emulator = Emulator::create(emulatorOptions);
    if (!emulator)
      return emulator.error();
    runner->emulator = std::move(*emulator);
    Result<Nvrtc> nvrtc = Nvrtc::open({});
    if (!nvrtc)
      return nvrtc.error();
    for (const InstructionUnit &unit : instructionUnits()) {
      Result<NvrtcOutput> output = nvrtc->compile(unit.source, device.info().arch());
      if (!output)
        return output.error();
      if (!options.units.empty())
        keep(options.units, unit, output->cubin);
      Compiled &compiled = runner->kernels[unit.name];
      Result<std::shared_ptr<const EmulatedModule>> module = runner->emulator->load(unit.source);
      if (!module)
        return module.error();
      compiled.module = *module;
      cu::Module loaded = nullptr;
      MOEJIT_GPU_CALL(device, moduleLoadData(&loaded, output->cubin.data()));
      MOEJIT_GPU_CALL(device, moduleGetFunction(&compiled.function, loaded, "moejit_kernel"));
    }
    return runner;
  }

  /// What `trial` leaves of `image` on each device.
  Result<std::vector<uint8_t>> onGpu(const Trial &trial, const Image &image) {
    DeviceMemory memory(device, image.bytes.size());
    memory.upload(image.bytes.data(), image.bytes.size());
    Stream stream(device);
    cu::LaunchAttribute serialization;
    serialization.id = cu::LaunchAttribute::programmaticStreamSerialization;
    serialization.value[0] = 1;
    std::vector<std::vector<Slot>> parameters;
    for (const TrialGrid &grid : trial.grids) {
      Result<std::vector<Slot>> slots =
          parametersOf(grid, image, memory.address(), [&](const TensorMapValues &values) {
            return encodeTensorMap(device.api(), values);
          });
      if (!slots)
        return slots.error();
      parameters.push_back(std::move(*slots));
    }
    for (size_t i = 0; i < trial.grids.size(); ++i) {
      const TrialGrid &grid = trial.grids[i];
      cu::LaunchConfig config;
      config.grid[0] = grid.blocks;
      config.block[0] = grid.threads;
      config.sharedBytes = grid.sharedBytes;
      config.stream = stream.get();
      config.attributes = &serialization;
      config.numAttributes = i > 0;
      std::vector<void *> addresses = addressesOf(parameters[i]);
      MOEJIT_GPU_CALL(device, launchKernelEx(&config, kernels.at(grid.unit).function,
                                             addresses.data(), nullptr));
    }
    stream.wait();
    std::vector<uint8_t> after(image.bytes.size());
    memory.download(after.data(), after.size());
    return after;
  }

  Result<std::vector<uint8_t>> onEmulator(const Trial &trial, const Image &image) {
    // Aligned as device memory is.
    std::vector<uint8_t> storage(image.bytes.size() + 256);
    const auto begin = reinterpret_cast<uint64_t>(storage.data());
    uint8_t *base = storage.data() + (-begin & 255);
    std::memcpy(base, image.bytes.data(), image.bytes.size());
    std::vector<EmulatedLaunch> launches;
    std::vector<std::vector<Slot>> parameters;
    for (const TrialGrid &grid : trial.grids) {
      Result<std::vector<Slot>> slots = parametersOf(
          grid, image, reinterpret_cast<uint64_t>(base),
          [](const TensorMapValues &values) { return emulated::packTensorMap(values); });
      if (!slots)
        return slots.error();
      parameters.push_back(std::move(*slots));
      EmulatedLaunch &launch = launches.emplace_back();
      launch.blocks = grid.blocks;
      launch.threads = grid.threads;
      launch.sharedBytes = grid.sharedBytes;
      launch.arguments = addressesOf(parameters.back());
      for (size_t i = 0; i < trial.buffers.size(); ++i)
        launch.ranges.push_back({trial.buffers[i].name, base + image.places[i],
                                 static_cast<int64_t>(trial.buffers[i].bytes.size()),
                                 trial.buffers[i].isWritten});
    }
    const EmulatedModule &first = *kernels.at(trial.grids[0].unit).module;
    if (trial.grids.size() == 1) {
      if (Result<EmulatorReport> report = emulator->run(first, launches[0]); !report)
        return report.error();
    } else if (auto reports = emulator->runDependent(
                   first, launches[0], *kernels.at(trial.grids[1].unit).module, launches[1]);
               !reports) {
      return reports.error();
    }
    return std::vector<uint8_t>(base, base + image.bytes.size());
  }

private:
  explicit Runner(const Device &device) : device(device) {}
  static void keep(const std::string &folder, const InstructionUnit &unit,
                   const std::string &cubin) {
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/" + unit.name + ".cu") << unit.source;
    std::ofstream(folder + "/" + unit.name + ".cubin", std::ios::binary) << cubin;
  }

  struct Compiled {
    cu::Function function = nullptr;
    std::shared_ptr<const EmulatedModule> module;
  };
  const Device &device;
  std::unique_ptr<Emulator> emulator;
  std::map<std::string, Compiled> kernels;
};

/// Of all trials of one name.
struct Score {
  int64_t launches = 0, bytes = 0, equal = 0;
  double worst = 0; ///< of its bound
  std::string difference;
};

void compare(const Trial &trial, const Image &image, const std::vector<uint8_t> &gpu,
             const std::vector<uint8_t> &emulator, Score &score) {
  ++score.launches;
  size_t begin = 0;
  const auto differ = [&](std::string what) {
    if (score.difference.empty())
      score.difference = std::move(what);
  };
  for (size_t i = 0; i <= trial.buffers.size(); ++i) {
    // What lies before the buffer belongs to nobody.
    const size_t place = i < trial.buffers.size() ? image.places[i] : image.bytes.size();
    for (size_t at = begin; at < place; ++at)
      if (gpu[at] != 0xa5 || emulator[at] != 0xa5)
        differ(fmt::format("byte {} between the buffers was overwritten", at));
    if (i == trial.buffers.size())
      break;
    const TrialBuffer &buffer = trial.buffers[i];
    begin = place + buffer.bytes.size();
    score.bytes += static_cast<int64_t>(buffer.bytes.size());
    for (size_t at = 0; at < buffer.bytes.size(); ++at) {
      const bool isEqual = gpu[place + at] == emulator[place + at];
      score.equal += isEqual;
      if (!isEqual && buffer.bounds.empty())
        differ(fmt::format("byte {} of {}: {:#04x} on the GPU, {:#04x} on the emulator", at,
                           buffer.name, gpu[place + at], emulator[place + at]));
    }
    for (size_t element = 0; element < buffer.bounds.size(); ++element) {
      float there, here;
      std::memcpy(&there, gpu.data() + place + 4 * element, 4);
      std::memcpy(&here, emulator.data() + place + 4 * element, 4);
      const double apart = std::abs(double(there) - double(here));
      const double bound = buffer.bounds[element];
      if (apart > 0)
        score.worst = std::max(score.worst, apart / bound);
      if (!(apart <= bound))
        differ(fmt::format("float {} of {}: {} on the GPU, {} on the emulator, bound {}", element,
                           buffer.name, there, here, bound));
    }
  }
}

void leaveLost(const std::string &what) {
  fmt::print(stderr, "moejit-gpu-instructions: the context was lost: {}\n", what);
  std::fflush(nullptr);
  std::_Exit(3);
}

int run(const Options &options) {
  onContextLost(leaveLost);
  const auto refuse = [](const Error &error) {
    return fmt::print(stderr, "moejit-gpu-instructions: {}\n", error.text()), 2;
  };
  Result<std::unique_ptr<Device>> device = Device::open(0);
  if (!device)
    return refuse(device.error());
  Result<std::unique_ptr<Runner>> runner = Runner::create(**device, options);
  if (!runner)
    return refuse(runner.error());
  std::map<std::string, Score> scores;
  for (const Trial &trial : makeTrials(options.rounds)) {
    if (!options.only.empty() &&
        std::none_of(options.only.begin(), options.only.end(), [&](const std::string &text) {
          return trial.name.find(text) != std::string::npos;
        }))
      continue;
    const Image image(trial);
    Score &score = scores[trial.name];
    Result<std::vector<uint8_t>> gpu = (*runner)->onGpu(trial, image);
    Result<std::vector<uint8_t>> emulator = (*runner)->onEmulator(trial, image);
    if (gpu && emulator)
      compare(trial, image, *gpu, *emulator, score);
    else if (score.difference.empty())
      score.difference =
          gpu ? "on the emulator: " + emulator.error().text() : "on the GPU: " + gpu.error().text();
  }
  std::string page = "| instruction | launches | bytes | equal | worst part of the bound |\n"
                     "|---|---|---|---|---|\n";
  bool isRight = !scores.empty();
  for (const auto &[name, score] : scores) {
    page += fmt::format("| {} | {} | {} | {} | {:.3f} |\n", name, score.launches, score.bytes,
                        score.equal, score.worst);
    isRight = isRight && score.difference.empty();
    if (!score.difference.empty())
      fmt::print(stderr, "DIFFERS {}: {}\n", name, score.difference);
  }
  fmt::print("{}", page);
  if (!options.markdown.empty())
    std::ofstream(options.markdown) << page;
  fmt::print(stderr, "{}: {}\n", (*device)->info().name,
             isRight ? "every instruction as on the emulator" : "DIFFERENT");
  return isRight ? 0 : 1;
}

constexpr const char *help =
    R"(usage: moejit-gpu-instructions [options]

Runs kernels of single instructions (cp.async, ldmatrix, mma.sync, TMA stores, dependent grids) on
GPU 0 and on the emulator, with the same random operands, and compares the results bit for bit;
sums of mma.sync that are not exact within a bound (docs/emulator.md).

  --work FOLDER    where the emulator keeps what it compiles (instruction-units)
  --rounds N       sets of operands (8)
  --only TEXT      only trials whose name contains TEXT; may be given several times
  --markdown FILE  the table
  --units FOLDER   keep the kernels there, as printed and as compiled

exit code: 0 equal, 1 not so, 2 wrong usage, no GPU, no NVRTC or no C++ compiler, 3 a kernel took
the GPU's context with it
)";

} // namespace

int main(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--help")
      return fmt::print("{}", help), 0;
    if (i + 1 == argc) {
      fmt::print(stderr, "moejit-gpu-instructions: {}: unknown, or without its value\n{}", option,
                 help);
      return 2;
    }
    const std::string value = argv[++i];
    if (option == "--work")
      options.work = value;
    else if (option == "--units")
      options.units = value;
    else if (option == "--markdown")
      options.markdown = value;
    else if (option == "--only")
      options.only.push_back(value);
    else if (option == "--rounds")
      options.rounds = std::max(1, std::atoi(value.c_str()));
    else
      return fmt::print(stderr, "moejit-gpu-instructions: {}: unknown\n{}", option, help), 2;
  }
  return run(options);
}
