// A libcuda.so.1 whose device is the emulator, for testing the GPU tests themselves (and the C API)
// without a GPU. Device memory is host memory, streams run in order and at once, graphs are lists
// of calls. Kernels are recognised by their cubins, which must come from <build>/gpu/bundle, or
// from the folders that the file `bundle` names: kernels of a bundle, or NAME.cubin beside the
// NAME.cu that it was made from. Not installed, never linked by anything.
#include "runtime/Driver.h"
#include "runtime/emulator/Build.h"
#include "runtime/emulator/Emulator.h"
#include "runtime/emulator/TensorCopy.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

using namespace moejit;

struct CUctx_st {
  int ordinal = 0;
};
/// A kernel that is no artifact.
struct PlainUnit {
  std::string cubin, source;
};
struct CUmod_st {
  const Artifact *artifact = nullptr; ///< or `unit`
  const PlainUnit *unit = nullptr;
};
struct CUfunc_st {
  const Artifact *artifact = nullptr;
  const PlainUnit *unit = nullptr;
};
struct CUevent_st {};
struct CUgraph_st {
  std::vector<std::function<cu::Status()>> nodes;
};
struct CUgraphExec_st {
  CUgraph_st graph;
};
struct CUstream_st {
  bool isCapturing = false;
  CUgraph_st captured;
  cu::Status sticky = cu::success;
};

namespace {

constexpr cu::Status invalidValue = 1;
constexpr cu::Status outOfMemory = 2;
constexpr cu::Status notFound = 500;
constexpr cu::Status notReady = 600;
constexpr cu::Status illegalAddress = 700;
constexpr cu::Status launchFailed = 719;

CUctx_st contexts[2] = {{0}, {1}};
thread_local cu::Context current = nullptr;
CUstream_st defaultStream;
std::mutex mutex; ///< guards the artifacts, the allocations and the emulator's making
std::map<uint64_t, size_t> allocations; ///< bytes of each

uint64_t elfBytes(const char *image) {
  if (std::memcmp(image,
                  "\x7f"
                  "ELF",
                  4) != 0)
    return 0;
  uint64_t sectionsAt = 0;
  uint16_t sectionBytes = 0, sectionCount = 0;
  std::memcpy(&sectionsAt, image + 40, 8);
  std::memcpy(&sectionBytes, image + 58, 2);
  std::memcpy(&sectionCount, image + 60, 2);
  return sectionsAt + uint64_t(sectionBytes) * sectionCount;
}

/// The folders that the file `bundle` of the work folder names, a line each, or else the built-in
/// one.
std::vector<std::string> folders() {
  std::vector<std::string> folders;
  std::ifstream list(MOEJIT_STAND_IN_WORK "/bundle");
  for (std::string folder; list >> folder;)
    folders.push_back(folder);
  if (folders.empty())
    folders.push_back(MOEJIT_STAND_IN_BUNDLE);
  return folders;
}

std::string contentsOf(const std::filesystem::path &file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// The unit whose cubin lies at `image`; null when there is none.
const PlainUnit *unitOf(const char *image) {
  static std::vector<std::unique_ptr<PlainUnit>> given;
  for (const std::string &folder : folders()) {
    std::error_code problem;
    for (const auto &file : std::filesystem::directory_iterator(folder, problem)) {
      std::filesystem::path path = file.path();
      if (path.extension() != ".cubin")
        continue;
      const std::string cubin = contentsOf(path);
      if (cubin.empty() || elfBytes(cubin.data()) != elfBytes(image) ||
          std::memcmp(image, cubin.data(), cubin.size()) != 0)
        continue;
      given.push_back(
          std::make_unique<PlainUnit>(PlainUnit{cubin, contentsOf(path.replace_extension(".cu"))}));
      return given.back().get();
    }
  }
  return nullptr;
}

std::vector<std::unique_ptr<Artifact>> readArtifacts() {
  std::vector<std::unique_ptr<Artifact>> found;
  for (const std::string &folder : folders()) {
    std::error_code problem;
    for (const auto &file : std::filesystem::directory_iterator(folder, problem)) {
      if (file.path().extension() != ".kernel")
        continue;
      if (Result<Artifact> artifact = deserialize(contentsOf(file.path())))
        found.push_back(std::make_unique<Artifact>(std::move(*artifact)));
    }
  }
  return found;
}

const Artifact *artifactOf(const char *image) {
  // Kernels may come while the program runs; those that were given out are kept.
  static std::vector<std::vector<std::unique_ptr<Artifact>>> readings;
  uint64_t bytes = elfBytes(image);
  auto find = [&]() -> const Artifact * {
    for (const auto &reading : readings)
      for (const auto &artifact : reading)
        if (bytes && elfBytes(artifact->cubin.data()) == bytes &&
            std::memcmp(image, artifact->cubin.data(), artifact->cubin.size()) == 0)
          return artifact.get();
    return nullptr;
  };
  if (const Artifact *known = find())
    return known;
  readings.push_back(readArtifacts());
  return find();
}

Emulator *emulator() {
  static std::unique_ptr<Emulator> made = [] {
    EmulatorOptions options;
    options.workFolder = MOEJIT_STAND_IN_WORK;
    std::error_code problem;
    std::filesystem::create_directories(options.workFolder, problem);
    Result<std::unique_ptr<Emulator>> created = Emulator::create(options);
    if (!created) {
      std::fprintf(stderr, "stand-in: %s\n", created.error().text().c_str());
      return std::unique_ptr<Emulator>();
    }
    return std::move(*created);
  }();
  return made.get();
}

TensorArgument *argumentOf(GemmArguments &arguments, Operand operand) {
  TensorArgument GemmArguments::*member = memberOf(operand);
  return member ? &(arguments.*member) : nullptr;
}

/// What was launched, from the kernel's parameters.
GemmArguments argumentsOf(const Artifact &artifact, void **parameters) {
  GemmArguments arguments;
  const LaunchData &launch = artifact.launch;
  auto valueOf = [&](size_t i) {
    uint64_t value = 0;
    std::memcpy(&value, parameters[i], 8);
    return value;
  };
  // Where scratch lies in the workspace depends on the rows.
  for (size_t i = 0; i < launch.parameters.size(); ++i)
    if (launch.parameters[i].kind == KernelParameter::Kind::Rows)
      arguments.rows = int32_t(uint32_t(valueOf(i)));
  auto bind = [&](Operand operand, uint64_t address) {
    if (TensorArgument *tensor = argumentOf(arguments, operand)) {
      tensor->data = reinterpret_cast<void *>(address);
      return;
    }
    arguments.workspace =
        reinterpret_cast<void *>(address - regionPlace(launch, operand, arguments.rows).offset);
    arguments.workspaceBytes = size_t(workspaceBytes(launch, arguments.rows));
  };
  for (size_t i = 0; i < launch.parameters.size(); ++i) {
    const KernelParameter &parameter = launch.parameters[i];
    switch (parameter.kind) {
    case KernelParameter::Kind::Rows:
      break;
    case KernelParameter::Kind::Stride:
      if (TensorArgument *tensor = argumentOf(arguments, parameter.operand))
        tensor->rowStride = int64_t(valueOf(i));
      break;
    case KernelParameter::Kind::Pointer:
      bind(parameter.operand, valueOf(i));
      break;
    case KernelParameter::Kind::TensorMap: {
      const emulated::PackedMap map =
          emulated::unpackTensorMap(*static_cast<const emulated::TensorMap *>(parameters[i]));
      const TensorMapRecipe &recipe = launch.tensorMaps[parameter.recipe];
      bind(recipe.operand, map.address);
      TensorArgument *tensor = argumentOf(arguments, recipe.operand);
      for (size_t d = 0; tensor && d < recipe.strideBytes.size(); ++d)
        if (recipe.strideBytes[d].kind == LaunchValue::Kind::StrideBytes)
          tensor->rowStride = int64_t(map.strideBytes[d]) / elementBytes(recipe.type);
      break;
    }
    }
  }
  return arguments;
}

/// For testing those who must survive it: the file `fault` of the work folder holds a word and a
/// number N; every N-th launch then never ends (hang), faults (fault), ends the process (crash) or
/// writes a wrong byte (wrong).
std::string faultOfThisLaunch() {
  static std::atomic<int> launches = 0;
  static const std::pair<std::string, int> planned = [] {
    std::ifstream in(MOEJIT_STAND_IN_WORK "/fault");
    std::string word;
    int every = 0;
    in >> word >> every;
    return std::pair<std::string, int>(word, every);
  }();
  return planned.second > 0 && ++launches % planned.second == 0 ? planned.first : std::string();
}

/// Launches a kernel that is no artifact; it may touch all that is allocated.
cu::Status launchUnit(Emulator &on, const PlainUnit &unit, const cu::LaunchConfig &config,
                      const std::vector<std::vector<char>> &parameters, const std::string &fault) {
  Result<std::shared_ptr<const EmulatedModule>> module = on.load(unit.source);
  if (!module) {
    std::fprintf(stderr, "stand-in: %s\n", module.error().text().c_str());
    return launchFailed;
  }
  EmulatedLaunch launch;
  launch.blocks = config.grid[0];
  launch.threads = config.block[0];
  launch.sharedBytes = config.sharedBytes;
  // Tensor maps are aligned.
  std::vector<emulated::TensorMap> values(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    std::memcpy(static_cast<void *>(&values[i]), parameters[i].data(), parameters[i].size());
    launch.arguments.push_back(&values[i]);
  }
  uint8_t *last = nullptr; ///< what the last pointer points to
  {
    std::lock_guard guard(mutex);
    for (const auto &[address, bytes] : allocations) {
      launch.ranges.push_back(
          {"memory", reinterpret_cast<void *>(address), static_cast<int64_t>(bytes), true});
      for (const std::vector<char> &parameter : parameters)
        if (uint64_t value = 0; parameter.size() == 8) {
          std::memcpy(&value, parameter.data(), 8);
          if (value >= address && value < address + bytes)
            last = reinterpret_cast<uint8_t *>(value);
        }
    }
  }
  Result<EmulatorReport> report = on.run(**module, launch);
  if (fault == "wrong" && last)
    last[1] ^= 0x40;
  if (report)
    return cu::success;
  std::fprintf(stderr, "stand-in: %s\n", report.error().text().c_str());
  return launchFailed;
}

/// The values of the parameters of `unit`, which belong to the caller no longer than the call.
std::vector<std::vector<char>> copyParameters(Emulator &on, const PlainUnit &unit,
                                              void **parameters) {
  std::vector<std::vector<char>> copied;
  if (Result<std::shared_ptr<const EmulatedModule>> module = on.load(unit.source))
    for (int i = 0; const int bytes = (*module)->parameterBytes(i); ++i)
      copied.emplace_back(static_cast<char *>(parameters[i]),
                          static_cast<char *>(parameters[i]) + bytes);
  return copied;
}

/// What is wrong with the attributes of a launch, or nothing.
std::string wrongAttributes(const LaunchData &launch, const cu::LaunchConfig *config) {
  unsigned cluster = 1;
  bool isDependent = false;
  for (unsigned i = 0; i < config->numAttributes; ++i) {
    const cu::LaunchAttribute &attribute = config->attributes[i];
    if (attribute.id == cu::LaunchAttribute::clusterDimension)
      cluster = attribute.value[0];
    else if (attribute.id == cu::LaunchAttribute::programmaticStreamSerialization)
      isDependent = attribute.value[0] == 1;
    else
      return "the launch has an attribute that is not known: " + std::to_string(attribute.id);
  }
  if (cluster != launch.cluster)
    return "the launch has clusters of " + std::to_string(cluster) + ", the kernel of " +
           std::to_string(launch.cluster);
  if (isDependent != launch.dependentLaunch)
    return isDependent ? "the launch may start early, and the kernel does not wait"
                       : "the kernel waits, and the launch may not start early";
  return {};
}

/// Runs `work` now, or when the graph that `stream` captures is launched.
cu::Status put(cu::Stream stream, std::function<cu::Status()> work) {
  CUstream_st &to = stream ? *stream : defaultStream;
  if (to.isCapturing) {
    to.captured.nodes.push_back(std::move(work));
    return cu::success;
  }
  if (to.sticky == cu::success)
    to.sticky = work();
  return cu::success;
}

} // namespace

extern "C" {

cu::Status cuInit(unsigned) { return cu::success; }
cu::Status cuDriverGetVersion(int *version) { return *version = 13000, cu::success; }
cu::Status cuGetErrorName(cu::Status, const char **name) {
  return *name = "CUDA_ERROR_OF_STAND_IN", cu::success;
}
cu::Status cuGetErrorString(cu::Status, const char **text) {
  return *text = "see what the emulator said", cu::success;
}
cu::Status cuDeviceGetCount(int *count) { return *count = 2, cu::success; }
cu::Status cuDeviceGet(cu::Device *device, int ordinal) { return *device = ordinal, cu::success; }
cu::Status cuDeviceGetName(char *name, int length, cu::Device) {
  std::snprintf(name, size_t(length), "moejit emulator");
  return cu::success;
}
cu::Status cuDeviceGetAttribute(int *value, int attribute, cu::Device) {
  *value = attribute == cu::multiprocessorCount            ? 132
           : attribute == cu::computeCapabilityMajor       ? 9
           : attribute == cu::maxSharedMemoryPerBlockOptin ? 232448
           : attribute == cu::l2CacheSize                  ? 60 << 20
                                                           : 0;
  return cu::success;
}
cu::Status cuDevicePrimaryCtxRetain(cu::Context *context, cu::Device device) {
  return *context = &contexts[device], cu::success;
}
cu::Status cuDevicePrimaryCtxRelease_v2(cu::Device) { return cu::success; }
cu::Status cuCtxSetCurrent(cu::Context context) { return current = context, cu::success; }
cu::Status cuCtxGetCurrent(cu::Context *context) { return *context = current, cu::success; }
cu::Status cuCtxGetDevice(cu::Device *device) {
  return *device = current ? current->ordinal : 0, cu::success;
}
cu::Status cuCtxGetId(cu::Context context, unsigned long long *id) {
  return *id = 1 + unsigned(context->ordinal), cu::success;
}
cu::Status cuCtxSynchronize() { return cu::success; }
cu::Status cuModuleLoadData(cu::Module *module, const void *image) {
  std::lock_guard guard(mutex);
  const Artifact *artifact = artifactOf(static_cast<const char *>(image));
  const PlainUnit *unit = artifact ? nullptr : unitOf(static_cast<const char *>(image));
  if (!artifact && !unit)
    return cu::noBinaryForGpu;
  *module = new CUmod_st{artifact, unit};
  return cu::success;
}
cu::Status cuModuleUnload(cu::Module module) {
  delete module;
  return cu::success;
}
cu::Status cuModuleGetFunction(cu::Function *function, cu::Module module, const char *name) {
  if ((module->artifact ? module->artifact->launch.entry : "moejit_kernel") != std::string(name))
    return notFound;
  *function = new CUfunc_st{module->artifact, module->unit};
  return cu::success;
}
cu::Status cuFuncSetAttribute(cu::Function, int, int) { return cu::success; }
cu::Status cuFuncGetAttribute(int *value, int, cu::Function) { return *value = 0, cu::success; }
cu::Status cuLaunchKernelEx(const cu::LaunchConfig *config, cu::Function function,
                            void **parameters, void **) {
  Emulator *on = nullptr;
  {
    std::lock_guard guard(mutex);
    on = emulator();
  }
  if (!on)
    return put(config->stream, [] { return launchFailed; });
  const Artifact *artifact = function->artifact;
  const PlainUnit *unit = function->unit;
  GemmArguments arguments = artifact ? argumentsOf(*artifact, parameters) : GemmArguments();
  if (artifact) {
    if (const std::string wrong = wrongAttributes(artifact->launch, config); !wrong.empty()) {
      std::fprintf(stderr, "stand-in: %s\n", wrong.c_str());
      return invalidValue;
    }
    // Whoever launches has zeroed the words, or was promised that they are zero: the emulator
    // looks.
    arguments.workspaceIsClean = artifact->launch.cleansWorkspace;
  }
  std::vector<std::vector<char>> plain;
  if (unit)
    plain = copyParameters(*on, *unit, parameters);
  return put(config->stream,
             [arguments, artifact, unit, plain, on, config = *config]() -> cu::Status {
               std::string fault = faultOfThisLaunch();
               if (fault == "hang")
                 return notReady;
               if (fault == "fault")
                 return illegalAddress;
               if (fault == "crash")
                 std::abort();
               if (unit)
                 return launchUnit(*on, *unit, config, plain, fault);
               Result<EmulatorReport> report = on->launch(*artifact, arguments);
               if (fault == "wrong")
                 static_cast<uint8_t *>(arguments.y.data)[1] ^= 0x40;
               if (report)
                 return cu::success;
               std::fprintf(stderr, "stand-in: %s\n", report.error().text().c_str());
               return launchFailed;
             });
}
/// NVRTC asks for it where it finds a driver.
cu::Status cuGetExportTable(const void **table, const void *) { return *table = nullptr, notFound; }
cu::Status cuMemAlloc_v2(cu::DevicePointer *pointer, size_t bytes) {
  void *data = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  *pointer = reinterpret_cast<cu::DevicePointer>(data);
  std::lock_guard guard(mutex);
  allocations[*pointer] = bytes;
  return data ? cu::success : outOfMemory;
}
cu::Status cuMemFree_v2(cu::DevicePointer pointer) {
  {
    std::lock_guard guard(mutex);
    allocations.erase(pointer);
  }
  std::free(reinterpret_cast<void *>(pointer));
  return cu::success;
}
cu::Status cuMemcpyHtoD_v2(cu::DevicePointer to, const void *from, size_t bytes) {
  std::memcpy(reinterpret_cast<void *>(to), from, bytes);
  return cu::success;
}
cu::Status cuMemcpyDtoH_v2(void *to, cu::DevicePointer from, size_t bytes) {
  std::memcpy(to, reinterpret_cast<void *>(from), bytes);
  return cu::success;
}
cu::Status cuMemcpyDtoD_v2(cu::DevicePointer to, cu::DevicePointer from, size_t bytes) {
  return cuMemcpyHtoD_v2(to, reinterpret_cast<void *>(from), bytes);
}
cu::Status cuMemsetD8Async(cu::DevicePointer to, unsigned char value, size_t count,
                           cu::Stream stream) {
  return put(stream, [=] {
    std::memset(reinterpret_cast<void *>(to), value, count);
    return cu::success;
  });
}
cu::Status cuMemsetD32Async(cu::DevicePointer to, unsigned value, size_t count, cu::Stream stream) {
  return put(stream, [=] {
    std::fill_n(reinterpret_cast<unsigned *>(to), count, value);
    return cu::success;
  });
}
cu::Status cuStreamCreate(cu::Stream *stream, unsigned) {
  return *stream = new CUstream_st(), cu::success;
}
cu::Status cuStreamDestroy_v2(cu::Stream stream) {
  delete stream;
  return cu::success;
}
cu::Status cuStreamSynchronize(cu::Stream stream) {
  return stream ? stream->sticky : defaultStream.sticky;
}
cu::Status cuStreamQuery(cu::Stream stream) { return cuStreamSynchronize(stream); }
cu::Status cuStreamIsCapturing(cu::Stream stream, int *status) {
  return *status = stream && stream->isCapturing, cu::success;
}
cu::Status cuStreamBeginCapture_v2(cu::Stream stream, int) {
  if (stream->isCapturing)
    return invalidValue;
  stream->isCapturing = true;
  stream->captured.nodes.clear();
  return cu::success;
}
cu::Status cuStreamEndCapture(cu::Stream stream, cu::Graph *graph) {
  if (!stream->isCapturing)
    return invalidValue;
  stream->isCapturing = false;
  *graph = new CUgraph_st(stream->captured);
  return cu::success;
}
cu::Status cuThreadExchangeStreamCaptureMode(int *) { return cu::success; }
cu::Status cuEventCreate(cu::Event *event, unsigned) {
  return *event = new CUevent_st(), cu::success;
}
cu::Status cuEventDestroy_v2(cu::Event event) {
  delete event;
  return cu::success;
}
cu::Status cuEventRecord(cu::Event, cu::Stream) { return cu::success; }
cu::Status cuEventSynchronize(cu::Event) { return cu::success; }
cu::Status cuEventElapsedTime(float *milliseconds, cu::Event, cu::Event) {
  return *milliseconds = 1, cu::success;
}
cu::Status cuGraphGetNodes(cu::Graph graph, void **, size_t *count) {
  return *count = graph->nodes.size(), cu::success;
}
cu::Status cuGraphInstantiateWithFlags(cu::GraphExec *exec, cu::Graph graph, unsigned long long) {
  return *exec = new CUgraphExec_st{*graph}, cu::success;
}
cu::Status cuGraphLaunch(cu::GraphExec exec, cu::Stream stream) {
  for (const auto &node : exec->graph.nodes)
    put(stream, node);
  return cu::success;
}
cu::Status cuGraphDestroy(cu::Graph graph) {
  delete graph;
  return cu::success;
}
cu::Status cuGraphExecDestroy(cu::GraphExec exec) {
  delete exec;
  return cu::success;
}
/// The emulator's map in place of the driver's.
cu::Status cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address,
                                  const uint64_t *extents, const uint64_t *strideBytes,
                                  const uint32_t *box, const uint32_t *, int, int swizzle, int,
                                  int) {
  TensorMapValues values;
  values.type = type == 0   ? ElementType::F8E4M3FN
                : type == 3 ? ElementType::I32
                : type == 6 ? ElementType::F16
                : type == 7 ? ElementType::F32
                            : ElementType::BF16;
  values.swizzle = static_cast<Swizzle>(swizzle);
  values.rank = rank;
  values.address = reinterpret_cast<uint64_t>(address);
  for (uint32_t d = 0; d < rank && d < TensorMapValues::maxRank; ++d) {
    values.extents[d] = extents[d];
    values.box[d] = box[d];
    if (d > 0)
      values.strideBytes[d - 1] = strideBytes[d - 1];
  }
  Result<emulated::TensorMap> packed = emulated::packTensorMap(values);
  if (!packed) {
    std::fprintf(stderr, "stand-in: %s\n", packed.error().text().c_str());
    return invalidValue;
  }
  std::memcpy(map, &*packed, sizeof *packed);
  return cu::success;
}
cu::Status cuGetProcAddress_v2(const char *symbol, void **function, int, uint64_t, int *status) {
  static const std::map<std::string, void *> known = {
      {"cuTensorMapEncodeTiled", reinterpret_cast<void *>(&cuTensorMapEncodeTiled)},
      {"cuStreamQuery", reinterpret_cast<void *>(&cuStreamQuery)},
      {"cuGraphGetNodes", reinterpret_cast<void *>(&cuGraphGetNodes)}};
  auto found = known.find(symbol);
  *function = found == known.end() ? nullptr : found->second;
  if (status)
    *status = *function ? 0 : 1;
  return *function ? cu::success : notFound;
}

} // extern "C"
