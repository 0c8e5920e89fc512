// Each test uploads problems once and compares launches bit for bit with plain ones.
#include "tests/gpu/LaunchTests.h"

#include "tests/gpu/QuantizeRuns.h"

#include "tests/oracle/Compare.h"
#include "tests/oracle/Random.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstring>
#include <thread>

namespace moejit::gpu {

using oracle::HostProblem;
using oracle::ProblemOptions;
using oracle::Random;
using oracle::Routing;

std::unique_ptr<Jit> LaunchContext::makeJit(const PlanRequest &plan) const {
  JitOptions options;
  options.plan = plan;
  options.cache = bundle;
  options.driver = &device.api();
  return std::make_unique<Jit>(std::move(options));
}

const Case *LaunchContext::find(std::string_view name) const {
  for (const Case &entry : cases)
    if (entry.name == name)
      return &entry;
  return nullptr;
}

namespace {

constexpr const char *blockCase = "grouped.w-block.x-group-mn.bf16.328x720";
constexpr const char *channelCase = "grouped.w-channel.x-token.bf16.328x720";
constexpr const char *floatCase = "grouped.w-block.x-group.f32.328x720";
constexpr uint64_t workspaceLimit = 1 << 20;

Error failure(std::string message) { return {ErrorCode::Internal, std::move(message), {}}; }
Error absent() { return failure("the bundle has none of the kernels this test launches"); }

/// A problem in device memory, and the kernel's launches of it.
struct Uploaded {
  HostProblem problem;
  LaunchImage image;
  DeviceMemory memory;

  Uploaded(const Device &device, const Spec &spec, int64_t rows, const Routing &routing,
           uint64_t seed, const ProblemOptions &options = {})
      : problem(oracle::makeProblem(spec, rows, routing, seed, options)),
        image(problem, workspaceLimit), memory(device, image.bytes.size()) {
    memory.upload(image.bytes.data(), image.bytes.size());
  }
  Uploaded(const Uploaded &) = delete; // `image` points at `problem`

  GemmArguments arguments() const { return image.arguments(memory.address()); }
  /// Poisons y, and fills the workspace with `dirt`.
  void reset(uint8_t dirt) const {
    const LaunchImage::Place &y = image.places[LaunchImage::Y];
    memory.upload(image.bytes.data() + y.offset, y.bytes, y.offset);
    std::vector<uint8_t> junk(workspaceLimit, dirt);
    memory.upload(junk.data(), junk.size(), image.places[LaunchImage::Workspace].offset);
  }
  /// y with its canaries.
  std::vector<uint8_t> output() const {
    const LaunchImage::Place &y = image.places[LaunchImage::Y];
    std::vector<uint8_t> bytes(y.bytes);
    memory.download(bytes.data(), y.bytes, y.offset);
    return bytes;
  }
  void setOffsets(const std::vector<int32_t> &offsets) {
    problem.offsets = offsets;
    memory.upload(offsets.data(), offsets.size() * 4, image.places[LaunchImage::Offsets].offset);
  }
  oracle::Comparison compareWithOracle(const std::vector<uint8_t> &output) const {
    oracle::HostOutput host = oracle::HostOutput::make(problem);
    host.bytes = output;
    return oracle::compare(problem, oracle::reference(problem), host);
  }
};

/// One launch and its end: the output it leaves.
Result<std::vector<uint8_t>> runOnce(const Uploaded &data, JitHandle handle, const Stream &stream,
                                     int64_t expectedRows, uint8_t dirt = 0xff,
                                     int64_t smLimit = 0) {
  data.reset(dirt);
  GemmArguments arguments = data.arguments();
  arguments.smLimit = smLimit;
  if (Result<void> launched = handle.launch(arguments, stream.get(), expectedRows); !launched)
    return launched.error();
  stream.wait();
  return data.output();
}

/// Offsets of another routing of at most `rows` rows; some of them out of order or out of range.
std::vector<int32_t> drawOffsets(Random &random, int64_t numExperts, int64_t rows) {
  std::vector<int32_t> offsets;
  int64_t live = int64_t(random.below(uint64_t(rows + 1)));
  offsets.push_back(random.below(4) == 0 ? int32_t(random.below(20)) : 0);
  for (int64_t e = 0; e < numExperts; ++e)
    offsets.push_back(int32_t(random.below(uint64_t(live + 1))));
  std::sort(offsets.begin(), offsets.end());
  switch (random.below(8)) {
  case 0: // one expert owns all
    for (size_t i = 0; i < offsets.size(); ++i)
      offsets[i] = i <= size_t(numExperts / 2) ? 0 : int32_t(rows);
    break;
  case 1: // no row is owned
    std::fill(offsets.begin(), offsets.end(), int32_t(random.below(uint64_t(rows))));
    break;
  case 2:
    std::swap(offsets[1], offsets[size_t(numExperts - 1)]);
    break;
  case 3:
    offsets[0] = INT32_MIN;
    offsets.back() = INT32_MAX;
    break;
  default:
    break;
  }
  return offsets;
}

Result<std::string> graphReplay(const LaunchContext &context, const char *name,
                                int64_t expectedRows) {
  const Case *entry = context.find(name);
  if (!entry)
    return absent();
  const DriverApi &api = context.device.api();
  const int replays = context.isQuick ? 8 : 100;
  constexpr int64_t rows = 700;
  // Every row is owned by the first routing, so that no row of x is poison under the others.
  Uploaded data(context.device, entry->spec, rows, Routing::uniform(), 77);
  std::unique_ptr<Jit> jit = context.makeJit();
  JitHandle handle = jit->handle(entry->spec);
  Result<std::shared_ptr<Kernel>> kernel = handle.kernel(expectedRows);
  if (!kernel)
    return kernel.error();
  if (Result<void> loaded = (*kernel)->load(); !loaded)
    return loaded.error();
  Stream stream(context.device);
  cu::Graph graph = nullptr;
  cu::GraphExec exec = nullptr;
  MOEJIT_GPU_CALL(context.device, streamBeginCapture(stream.get(), cu::captureModeGlobal));
  Result<void> captured = handle.launch(data.arguments(), stream.get(), expectedRows);
  MOEJIT_GPU_CALL(context.device, streamEndCapture(stream.get(), &graph));
  if (!captured)
    return captured.error();
  size_t nodes = context.device.nodeCount(graph);
  MOEJIT_GPU_CALL(context.device, graphInstantiate(&exec, graph, 0));

  Random random(99);
  int different = 0, wrong = 0;
  double worst = 0;
  int64_t unowned = 0;
  for (int i = 0; i < replays; ++i) {
    data.setOffsets(drawOffsets(random, entry->spec.numExperts, rows));
    data.reset(uint8_t(i * 37 + 1));
    MOEJIT_GPU_CALL(context.device, graphLaunch(exec, stream.get()));
    stream.wait();
    std::vector<uint8_t> replayed = data.output();
    Result<std::vector<uint8_t>> plain =
        runOnce(data, handle, stream, expectedRows, uint8_t(i * 91 + 5));
    if (!plain)
      return plain.error();
    different += replayed != *plain;
    std::vector<int32_t> owners = oracle::rowOwners(data.problem);
    unowned += std::count(owners.begin(), owners.end(), -1);
    if (i % 10 == 0) {
      oracle::Comparison comparison = data.compareWithOracle(replayed);
      wrong += !comparison.ok();
      worst = std::max(worst, comparison.worstRatio);
    }
  }
  api.graphExecDestroy(exec);
  api.graphDestroy(graph);
  std::string text = fmt::format(
      "{} nodes, {} replays of {} rows with other routings ({:.0f} % of rows unowned on "
      "average): {} differ from the plain launch, worst element {:.2f} of its bound",
      nodes, replays, rows, 100.0 * double(unowned) / double(rows * replays), different, worst);
  if (different || wrong)
    return failure(text);
  return text;
}

Result<std::string> captureRefusal(const LaunchContext &context) {
  const Case *absentKernel = context.find(channelCase), *readyKernel = context.find(blockCase);
  if (!absentKernel || !readyKernel)
    return absent();
  const DriverApi &api = context.device.api();
  std::unique_ptr<Jit> jit = context.makeJit();
  Uploaded data(context.device, readyKernel->spec, 200, Routing::uniform(), 5);
  Uploaded other(context.device, absentKernel->spec, 200, Routing::uniform(), 6);
  JitHandle ready = jit->handle(readyKernel->spec), late = jit->handle(absentKernel->spec);
  Stream stream(context.device);
  Result<std::vector<uint8_t>> plain = runOnce(data, ready, stream, -1);
  if (!plain)
    return plain.error();

  cu::Graph graph = nullptr;
  MOEJIT_GPU_CALL(context.device, streamBeginCapture(stream.get(), cu::captureModeGlobal));
  Result<void> notFound = late.launch(other.arguments(), stream.get());
  // Found in the bundle, but not in this context yet: also refused.
  std::unique_ptr<Jit> fresh = context.makeJit();
  JitHandle found = fresh->handle(absentKernel->spec);
  Result<std::shared_ptr<Kernel>> kernel = found.kernel(200);
  Result<void> notLoaded =
      kernel ? found.launch(other.arguments(), stream.get()) : Result<void>(kernel.error());
  Result<void> launched = ready.launch(data.arguments(), stream.get());
  MOEJIT_GPU_CALL(context.device, streamEndCapture(stream.get(), &graph));
  if (notFound || notFound.error().code != ErrorCode::CaptureActive)
    return failure(
        "a kernel that was never asked for before was not refused with capture-active: " +
        (notFound ? std::string("launched") : notFound.error().text()));
  if (notLoaded || notLoaded.error().code != ErrorCode::CaptureActive)
    return failure("a kernel that is not loaded was not refused with capture-active: " +
                   (notLoaded ? std::string("launched") : notLoaded.error().text()));
  if (!launched)
    return launched.error();
  cu::GraphExec exec = nullptr;
  MOEJIT_GPU_CALL(context.device, graphInstantiate(&exec, graph, 0));
  data.reset(0x5a);
  MOEJIT_GPU_CALL(context.device, graphLaunch(exec, stream.get()));
  stream.wait();
  bool isEqual = data.output() == *plain;
  api.graphExecDestroy(exec);
  api.graphDestroy(graph);
  if (!isEqual)
    return failure("the capture that went on gives another result");
  // Outside the capture the same launch works.
  if (Result<void> after = late.launch(other.arguments(), stream.get()); !after)
    return after.error();
  stream.wait();
  return std::string(
      "both refused with capture-active; the capture went on and its graph is right");
}

Result<std::string> nothingToDo(const LaunchContext &context) {
  const Case *entry = context.find(blockCase);
  if (!entry)
    return absent();
  std::unique_ptr<Jit> jit = context.makeJit();
  JitHandle handle = jit->handle(entry->spec);
  Result<std::shared_ptr<Kernel>> kernel = handle.kernel(0);
  if (!kernel)
    return kernel.error();
  Stream stream(context.device);
  GemmArguments nothing;
  if (Result<void> launched = handle.launch(nothing, stream.get()); !launched)
    return launched.error();
  if (Result<void> loaded = (*kernel)->load(); !loaded)
    return loaded.error();
  cu::Graph graph = nullptr;
  MOEJIT_GPU_CALL(context.device, streamBeginCapture(stream.get(), cu::captureModeGlobal));
  Result<void> byHandle = handle.launch(nothing, stream.get());
  Result<void> byKernel = (*kernel)->launch(nothing, stream.get());
  MOEJIT_GPU_CALL(context.device, streamEndCapture(stream.get(), &graph));
  size_t nodes = graph ? context.device.nodeCount(graph) : 0;
  if (graph)
    context.device.api().graphDestroy(graph);
  if (!byHandle)
    return byHandle.error();
  if (!byKernel)
    return byKernel.error();
  if (nodes != 0)
    return failure(fmt::format("0 rows put {} nodes into a graph", nodes));
  return std::string("0 rows with null pointers succeed; a capture of them has no node");
}

Result<std::string> twoStreams(const LaunchContext &context) {
  const Case *entries[2] = {context.find(blockCase), context.find(channelCase)};
  if (!entries[0] || !entries[1])
    return absent();
  std::unique_ptr<Jit> jit = context.makeJit();
  Uploaded first(context.device, entries[0]->spec, 650, Routing::skewed(), 11);
  Uploaded second(context.device, entries[1]->spec, 610, Routing::uniform(), 12);
  // The same kernel twice at once, each launch with a workspace of its own.
  Uploaded third(context.device, entries[0]->spec, 333, Routing::uniform(), 13);
  const Uploaded *data[3] = {&first, &second, &third};
  JitHandle handles[3] = {jit->handle(entries[0]->spec), jit->handle(entries[1]->spec),
                          jit->handle(entries[0]->spec)};
  Stream streams[3] = {Stream(context.device), Stream(context.device), Stream(context.device)};
  std::vector<uint8_t> alone[3];
  for (int i = 0; i < 3; ++i) {
    Result<std::vector<uint8_t>> plain = runOnce(*data[i], handles[i], streams[i], -1);
    if (!plain)
      return plain.error();
    alone[i] = std::move(*plain);
  }
  const int rounds = context.isQuick ? 3 : 50;
  int different = 0;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < 3; ++i)
      data[i]->reset(uint8_t(round));
    // Few SMs each, so that they do run side by side.
    for (int repeat = 0; repeat < 4; ++repeat)
      for (int i = 0; i < 3; ++i) {
        GemmArguments arguments = data[i]->arguments();
        arguments.smLimit = round % 2 ? 40 : 0;
        if (Result<void> launched = handles[i].launch(arguments, streams[i].get()); !launched)
          return launched.error();
      }
    for (int i = 0; i < 3; ++i)
      streams[i].wait();
    for (int i = 0; i < 3; ++i)
      different += data[i]->output() != alone[i];
  }
  std::string text = fmt::format("3 streams, {} rounds of 4 launches in flight on each: {} outputs "
                                 "differ from the launch alone",
                                 rounds, different);
  if (different)
    return failure(text);
  return text;
}

Result<std::string> manyThreads(const LaunchContext &context) {
  const Case *entries[2] = {context.find(blockCase), context.find(floatCase)};
  if (!entries[0] || !entries[1])
    return absent();
  std::unique_ptr<Jit> jit = context.makeJit();
  constexpr int numThreads = 4;
  const int rounds = context.isQuick ? 3 : 50;
  std::vector<std::unique_ptr<Uploaded>> data;
  for (int i = 0; i < numThreads; ++i)
    data.push_back(std::make_unique<Uploaded>(context.device, entries[i % 2]->spec, 90 + 170 * i,
                                              Routing::uniform(), 20 + i));
  std::atomic<int> different = 0;
  std::mutex mutex;
  std::optional<Error> problem;
  std::atomic<int> waiting = numThreads;
  auto work = [&](int i) {
    context.device.makeCurrent();
    Stream stream(context.device);
    JitHandle handle = jit->handle(entries[i % 2]->spec);
    // All at once: the first launches race to find and load the same kernels.
    for (--waiting; waiting > 0;)
      std::this_thread::yield();
    std::vector<uint8_t> first;
    for (int round = 0; round < rounds; ++round) {
      Result<std::vector<uint8_t>> output =
          runOnce(*data[i], handle, stream, round % 2 ? 0 : 1 << 20, uint8_t(round));
      if (!output) {
        std::lock_guard guard(mutex);
        problem = output.error();
        return;
      }
      if (round < 2 && i == 0) {
        if (oracle::Comparison comparison = data[i]->compareWithOracle(*output); !comparison.ok())
          ++different;
      }
      // Two plans may round differently; each must repeat itself.
      if (round % 2)
        continue;
      if (first.empty())
        first = std::move(*output);
      else
        different += *output != first;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < numThreads; ++i)
    threads.emplace_back(work, i);
  for (std::thread &thread : threads)
    thread.join();
  if (problem)
    return *problem;
  std::string text = fmt::format("{} threads, {} launches each: {} outputs differ", numThreads,
                                 rounds, different.load());
  if (different)
    return failure(text);
  return text;
}

Result<std::string> twoDevices(const LaunchContext &context) {
  const Case *entry = context.find(blockCase);
  if (!entry)
    return absent();
  Result<int> count = deviceCount(context.device.api());
  if (!count)
    return count.error();
  if (*count < 2)
    return std::string("one device: not run");
  Result<std::unique_ptr<Device>> second = Device::open(1);
  if (!second)
    return second.error();
  std::unique_ptr<Jit> jit = context.makeJit();
  JitHandle handle = jit->handle(entry->spec);
  const Device *devices[2] = {&context.device, second->get()};
  std::vector<uint8_t> outputs[2];
  for (int round = 0; round < 2; ++round)
    for (int i = 0; i < 2; ++i) {
      devices[i]->makeCurrent();
      Uploaded data(*devices[i], entry->spec, 640, Routing::skewed(), 31);
      Stream stream(*devices[i]);
      Result<std::vector<uint8_t>> output = runOnce(data, handle, stream, -1);
      if (!output)
        return output.error();
      outputs[i] = std::move(*output);
      if (oracle::Comparison comparison = data.compareWithOracle(outputs[i]); !comparison.ok())
        return failure(fmt::format("device {}: {}", i, comparison.text()));
    }
  context.device.makeCurrent();
  if (outputs[0] != outputs[1])
    return failure("two devices give different results");
  return std::string("one handle, two devices in turn: the same bits, equal to the oracle");
}

Result<std::string> fewSms(const LaunchContext &context) {
  int different = 0, launches = 0;
  for (const char *name : {blockCase, floatCase}) {
    const Case *entry = context.find(name);
    if (!entry)
      return absent();
    std::unique_ptr<Jit> jit = context.makeJit();
    JitHandle handle = jit->handle(entry->spec);
    Uploaded data(context.device, entry->spec, 640, Routing::skewed(), 41);
    Stream stream(context.device);
    for (int64_t expectedRows : {0, 1 << 20}) {
      Result<std::vector<uint8_t>> all = runOnce(data, handle, stream, expectedRows);
      if (!all)
        return all.error();
      for (int64_t limit : {1, 2, 7, 100, 1000}) {
        Result<std::vector<uint8_t>> output =
            runOnce(data, handle, stream, expectedRows, 0x11, limit);
        // One SM may be too few for a cluster; that is said, not run.
        if (!output && output.error().code == ErrorCode::InvalidArgument && limit == 1)
          continue;
        if (!output)
          return output.error();
        ++launches;
        different += *output != *all;
      }
    }
  }
  std::string text =
      fmt::format("{} launches on 1 to all SMs: {} outputs differ", launches, different);
  if (different)
    return failure(text);
  return text;
}

Result<std::string> refusals(const LaunchContext &context) {
  const Case *entry = context.find(blockCase);
  if (!entry)
    return absent();
  std::unique_ptr<Jit> jit = context.makeJit();
  Uploaded data(context.device, entry->spec, 100, Routing::uniform(), 51);
  Stream stream(context.device);
  JitHandle handle = jit->handle(entry->spec);
  auto refused = [&](GemmArguments arguments) {
    Result<void> launched = handle.launch(arguments, stream.get());
    return !launched && launched.error().code == ErrorCode::InvalidArgument;
  };
  GemmArguments misaligned = data.arguments(), narrow = data.arguments(), null = data.arguments();
  misaligned.x.data = static_cast<uint8_t *>(misaligned.x.data) + 8;
  narrow.y.rowStride = entry->spec.n - 8;
  null.wScales.data = nullptr;
  if (!refused(misaligned) || !refused(narrow) || !refused(null))
    return failure("a misaligned address, a stride below N or a null pointer was not refused");
  Spec unknown = entry->spec;
  unknown.n = 8 * 12345;
  Result<std::shared_ptr<Kernel>> found = jit->get(unknown, 1);
  if (found || found.error().code != ErrorCode::NotInCache)
    return failure("a kernel that the bundle lacks was not answered with not-in-cache");
  Result<std::vector<uint8_t>> output = runOnce(data, handle, stream, -1);
  if (!output)
    return output.error();
  if (oracle::Comparison comparison = data.compareWithOracle(*output); !comparison.ok())
    return failure(comparison.text());
  return std::string("refused before the driver saw them; the next launch is right");
}

/// Launches in a row in a workspace that was zeroed once, and that kernels of few and many rows
/// share.
Result<std::string> cleanWorkspace(const LaunchContext &context) {
  const Case *entry = context.find(blockCase);
  if (!entry)
    return absent();
  std::unique_ptr<Jit> jit = context.makeJit();
  JitHandle handle = jit->handle(entry->spec);
  Uploaded data(context.device, entry->spec, 700, Routing::skewed(), 41);
  Stream stream(context.device);
  DeviceMemory workspace(context.device, workspaceLimit);
  const std::vector<uint8_t> zeros(workspaceLimit);
  workspace.upload(zeros.data(), zeros.size());
  GemmArguments arguments = data.arguments();
  arguments.workspace = reinterpret_cast<void *>(workspace.address());
  arguments.workspaceIsClean = true;
  const int launches = context.isQuick ? 4 : 200;
  for (int i = 0; i < launches; ++i)
    for (int64_t expectedRows : {int64_t(0), int64_t(1) << 20}) {
      Result<std::vector<uint8_t>> plain = runOnce(data, handle, stream, expectedRows);
      if (!plain)
        return plain.error();
      data.reset(0xff); // y; the workspace in use is another
      if (Result<void> done = handle.launch(arguments, stream.get(), expectedRows); !done)
        return done.error();
      stream.wait();
      std::vector<uint8_t> left(workspaceLimit);
      workspace.download(left.data(), left.size());
      if (data.output() != *plain || left != zeros)
        return failure(fmt::format("launch {}: the output differs, or the workspace is dirty", i));
    }
  return fmt::format("{} launches of each kernel, outputs alike", launches);
}

Result<std::string> hostTime(const LaunchContext &context) {
  std::string text;
  for (const char *name : {blockCase, channelCase}) {
    const Case *entry = context.find(name);
    if (!entry)
      return absent();
    std::unique_ptr<Jit> jit = context.makeJit();
    JitHandle handle = jit->handle(entry->spec);
    Uploaded data(context.device, entry->spec, 64, Routing::uniform(), 61);
    Stream stream(context.device);
    GemmArguments arguments = data.arguments();
    auto start = std::chrono::steady_clock::now();
    if (Result<void> launched = handle.launch(arguments, stream.get()); !launched)
      return launched.error();
    double firstUs =
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
    stream.wait();
    arguments.workspaceIsClean = true; // as that launch has left it
    std::vector<double> times;
    const int launches = context.isQuick ? 40 : 4000;
    for (int i = 0; i < launches; ++i) {
      start = std::chrono::steady_clock::now();
      if (Result<void> launched = handle.launch(arguments, stream.get()); !launched)
        return launched.error();
      times.push_back(
          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
              .count());
      // Keeps the launch queue from filling, where a launch would wait for the GPU.
      if (i % 32 == 31)
        stream.wait();
    }
    stream.wait();
    std::sort(times.begin(), times.end());
    text += fmt::format("{}{}: median {:.2f} µs, p90 {:.2f} µs, first (finds and loads) {:.0f} µs",
                        text.empty() ? "" : "; ", entry->name, times[times.size() / 2],
                        times[times.size() * 9 / 10], firstUs);
  }
  return text;
}

} // namespace

const std::vector<LaunchTest> &launchTests() {
  constexpr int64_t narrow = 0, wide = 1 << 20;
  static const std::vector<LaunchTest> tests = {
      {"graph replay, blocks, few rows",
       [](const LaunchContext &c) { return graphReplay(c, blockCase, narrow); }},
      {"graph replay, blocks, many rows",
       [](const LaunchContext &c) { return graphReplay(c, blockCase, wide); }},
      {"graph replay, channels, few rows",
       [](const LaunchContext &c) { return graphReplay(c, channelCase, narrow); }},
      {"graph replay, f32 out, many rows",
       [](const LaunchContext &c) { return graphReplay(c, floatCase, wide); }},
      {"kernel not ready during a capture", captureRefusal},
      {"a clean workspace", cleanWorkspace},
      {"no rows", nothingToDo},
      {"streams side by side", twoStreams},
      {"threads", manyThreads},
      {"two devices", twoDevices},
      {"fewer SMs", fewSms},
      {"refusals", refusals},
      {"checked kernels", checkedKernels},
      {"a launch after a fault elsewhere", afterAbort},
      {"rows past 2^31 elements", rowsPast31Bits},
      {"weights past 2^31 elements", weightsPast31Bits},
      {"host time of a launch", hostTime},
      {"bandwidth of quantizations", quantizeBandwidth},
  };
  return tests;
}

} // namespace moejit::gpu
