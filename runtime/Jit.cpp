// Finds or makes kernels. The hot path reads one atomic pointer; everything else happens once for
// each kernel.
#include "runtime/Jit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace moejit {

/// What all handles of a Jit share.
struct Jit::Shared {
  explicit Shared(JitOptions given) : options(std::move(given)) {}

  /// A kernel and the rows it is meant for.
  struct Ready {
    int64_t minRows = 0;
    int64_t maxRows = 0;
    std::shared_ptr<Kernel> kernel;
  };
  using Future = std::shared_future<Result<std::shared_ptr<Kernel>>>;

  bool neverCompiles() const {
    return !options.compile || (options.cache && options.cache->mode() == CacheMode::Bundle);
  }
  Result<std::shared_ptr<Kernel>> obtain(JitHandle::State &state, int64_t rows);
  /// The lookup key that a runtime without a compiler finds the kernels of `spec` under: its own
  /// `lookupKey`, or that of the architecture's usual device where only this one has kernels.
  std::string servedKey(const Spec &spec, const std::string &lookupKey);
  Result<Ready> findReady(const Spec &spec, const std::string &lookupKey, int64_t rows);
  Result<Ready> makeReady(const Spec &spec, const std::string &lookupKey, const std::string &key,
                          const PlannedRange &range);
  Ready readyOf(std::shared_ptr<const Artifact> artifact, int64_t minRows, int64_t maxRows) const {
    return {minRows, maxRows, std::make_shared<Kernel>(std::move(artifact), options.driver)};
  }

  JitOptions options;
  std::mutex mutex;
  std::unordered_map<std::string, Future> building;                           ///< by build key
  std::unordered_map<std::string, std::shared_ptr<JitHandle::State>> handles; ///< by spec text
};

/// The ready kernels of one spec. The table only grows; readers need no lock, so replaced tables
/// are kept.
struct JitHandle::State {
  using Ready = Jit::Shared::Ready;
  using Table = std::vector<Ready>;

  const Ready *find(int64_t rows) const {
    const Table *table = current.load(std::memory_order_acquire);
    if (table)
      for (const Ready &ready : *table)
        if (ready.minRows <= rows && rows <= ready.maxRows)
          return &ready;
    return nullptr;
  }
  /// Enters `ready`, which serves `rows`, unless another thread was first.
  std::shared_ptr<Kernel> add(Ready ready, int64_t rows) {
    std::lock_guard guard(mutex);
    if (const Ready *first = find(rows))
      return first->kernel;
    auto table = std::make_unique<Table>(tables.empty() ? Table() : *tables.back());
    std::shared_ptr<Kernel> kernel = ready.kernel;
    table->push_back(std::move(ready));
    tables.push_back(std::move(table));
    current.store(tables.back().get(), std::memory_order_release);
    return kernel;
  }
  Result<std::shared_ptr<Kernel>> get(int64_t rows) {
    if (const Ready *ready = find(rows))
      return ready->kernel;
    return jit->obtain(*this, rows);
  }
  /// The refusal of a kernel that is not ready, when `stream` is being captured.
  Result<void> refuseInCapture(cu::Stream stream) const {
    // Without a driver there is no capture; the launch itself will say what is missing.
    Result<const DriverApi *> driver =
        jit->options.driver ? Result<const DriverApi *>(jit->options.driver) : openDriver();
    if (!driver)
      return {};
    Result<bool> capturing = isCapturing(**driver, stream);
    if (!capturing)
      return capturing.error();
    return *capturing ? Result<void>(captureActive("a kernel was asked for that is not built yet"))
                      : Result<void>();
  }

  Spec spec;
  std::string lookupKey;
  std::shared_ptr<Jit::Shared> jit;
  std::atomic<const Table *> current = nullptr;
  std::mutex mutex; ///< guards `tables`
  std::vector<std::unique_ptr<Table>> tables;
};

namespace {

Result<void> checkRows(int64_t rows) {
  if (rows >= 0)
    return {};
  return Error{ErrorCode::InvalidArgument, fmt::format("rows: {} is negative", rows), {}};
}

/// `text` as one word of a shell.
std::string shellWord(std::string_view text) {
  std::string word = "'";
  for (char c : text)
    word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

/// The words that make moejit aot build into what `cache` is.
std::string folderWords(const Cache *cache) {
  if (!cache || cache->folder().empty())
    return "";
  if (cache->mode() == CacheMode::Bundle)
    return " -o " + shellWord(cache->folder());
  Result<std::string> usual = defaultCacheFolder();
  return usual && *usual == cache->folder() ? "" : " --cache " + shellWord(cache->folder());
}

Error notInCache(const Spec &spec, const JitOptions &options, int64_t rows,
                 const std::vector<IndexedRange> &known) {
  Error error;
  error.code = ErrorCode::NotInCache;
  error.message =
      fmt::format("not in the cache; build it with: moejit aot --arch {} --rows {}{}{} --spec '{}'",
                  options.target.arch, rows, options.plan.checked ? " --checked" : "",
                  folderWords(options.cache.get()), canonicalText(spec));
  for (const IndexedRange &range : known)
    error.notes.push_back(
        fmt::format("the cache knows rows {} to {}: {}", range.minRows, range.maxRows, range.name));
  if (options.cache && options.cache->mode() == CacheMode::Bundle)
    error.notes.push_back("that writes the bundle's manifest anew: where its digest is pinned, pin "
                          "the one that is printed then");
  return error;
}

} // namespace

Result<void> checkImage(const Artifact &artifact) {
  if (artifact.cubin.empty() && artifact.ptx.empty())
    return Error{ErrorCode::CompileError, "the compiler gave neither cubin nor PTX", {}};
  if (artifact.cubin.empty())
    return {};
  // ELF64, System V gABI: section headers come last, so their end is the least size of the file.
  constexpr size_t headerBytes = 64;
  const std::string &bytes = artifact.cubin;
  uint64_t sectionsAt = 0;
  uint16_t sectionBytes = 0, sectionCount = 0;
  bool isSound = bytes.size() >= headerBytes && bytes.compare(0, 4,
                                                              "\x7f"
                                                              "ELF") == 0;
  if (isSound) {
    std::memcpy(&sectionsAt, bytes.data() + 40, 8);
    std::memcpy(&sectionBytes, bytes.data() + 58, 2);
    std::memcpy(&sectionCount, bytes.data() + 60, 2);
    isSound = sectionsAt <= bytes.size() &&
              uint64_t(sectionBytes) * sectionCount <= bytes.size() - sectionsAt;
  }
  if (!isSound)
    return Error{ErrorCode::CompileError,
                 fmt::format("the compiler gave a cubin of {} bytes that is cut short or is no ELF "
                             "file",
                             bytes.size()),
                 {}};
  return {};
}

std::string Jit::Shared::servedKey(const Spec &spec, const std::string &lookupKey) {
  if (!options.cache || !options.cache->ranges(lookupKey).empty())
    return lookupKey;
  // Plans are chosen for a device, kernels are right on every one of their architecture: what was
  // built ahead for the usual one serves the others too.
  Result<Target> usual = parseTarget(options.target.arch);
  return usual ? lookupKeyText(spec, *usual, options.plan) : lookupKey;
}

Result<Jit::Shared::Ready> Jit::Shared::findReady(const Spec &spec, const std::string &lookupKey,
                                                  int64_t rows) {
  if (!options.cache)
    return notInCache(spec, options, rows, {});
  std::string key = servedKey(spec, lookupKey);
  std::vector<IndexedRange> known = options.cache->ranges(key);
  std::shared_ptr<const Artifact> artifact = options.cache->findByLookup(key, rows);
  for (const IndexedRange &range : known)
    if (artifact && range.minRows <= rows && rows <= range.maxRows)
      return readyOf(std::move(artifact), range.minRows, range.maxRows);
  Error missing = notInCache(spec, options, rows, known);
  std::optional<Error> damage = options.cache->damageOf(key, rows);
  if (damage && options.cache->mode() == CacheMode::Bundle)
    // What was altered or lost after the bundle was made is no miss like others: someone should
    // look.
    return Error{ErrorCode::ParseError,
                 fmt::format("the bundle is not as it was made: {}", damage->message),
                 {"its kernel is not used; copy the bundle again, or build it again: moejit aot"}};
  if (damage)
    missing.notes.push_back(damage->message);
  return missing;
}

Result<Jit::Shared::Ready> Jit::Shared::makeReady(const Spec &spec, const std::string &lookupKey,
                                                  const std::string &key,
                                                  const PlannedRange &range) {
  Cache *cache = options.cache.get();
  auto find = [&]() {
    std::shared_ptr<const Artifact> found = cache ? cache->findByBuildKey(key) : nullptr;
    // Two ranges may share a plan, and so a kernel; the index must know both.
    if (found)
      cache->serve(*found, range.minRows, range.maxRows);
    return found;
  };
  if (std::shared_ptr<const Artifact> found = find())
    return readyOf(std::move(found), range.minRows, range.maxRows);
  FileLock lock;
  if (cache)
    lock = cache->lockBuild(key);
  if (std::shared_ptr<const Artifact> found = find())
    return readyOf(std::move(found), range.minRows, range.maxRows);
  Result<Artifact> compiled = options.compile(spec, options.target, range.plan);
  if (!compiled)
    return compiled.error();
  if (Result<void> sound = checkImage(*compiled); !sound) {
    Error error = sound.error();
    if (!compiled->compileLog.empty())
      error.notes.push_back(compiled->compileLog);
    return error;
  }
  compiled->spec = spec;
  compiled->arch = options.target.arch;
  compiled->planText = planText(range.plan);
  compiled->lookupKey = lookupKey;
  compiled->buildKey = key;
  auto artifact = std::make_shared<const Artifact>(std::move(*compiled));
  // A disk that refuses costs a warning, which the cache has given; the kernel is there all the
  // same.
  if (cache)
    (void)cache->put(*artifact, range.minRows, range.maxRows);
  return readyOf(std::move(artifact), range.minRows, range.maxRows);
}

Result<std::shared_ptr<Kernel>> Jit::Shared::obtain(JitHandle::State &state, int64_t rows) {
  if (Result<void> checked = checkRows(rows); !checked)
    return checked.error();
  if (neverCompiles()) {
    Result<Ready> found = findReady(state.spec, state.lookupKey, rows);
    if (!found)
      return found.error();
    return state.add(std::move(*found), rows);
  }
  std::vector<PlannedRange> planned = planRanges(state.spec, options.target, options.plan);
  auto range = std::find_if(planned.begin(), planned.end(), [&](const PlannedRange &candidate) {
    return candidate.minRows <= rows && rows <= candidate.maxRows;
  });
  if (range == planned.end())
    return Error{ErrorCode::Internal, fmt::format("no plan for {} rows", rows), {}};
  std::string key = buildKeyText(state.lookupKey, planText(range->plan), options.generator);

  std::promise<Result<std::shared_ptr<Kernel>>> promise;
  Future future;
  bool isBuilder = false;
  {
    std::lock_guard guard(mutex);
    // A builder enters its kernel in the handle before it leaves `building`: one of the two has it.
    if (const Ready *ready = state.find(rows))
      return ready->kernel;
    auto found = building.find(key);
    if (found != building.end())
      future = found->second;
    else {
      isBuilder = true;
      future = promise.get_future().share();
      building.emplace(key, future);
    }
  }
  if (!isBuilder) {
    // The builder may have asked for another range of the same plan, and entered only that one.
    Result<std::shared_ptr<Kernel>> built = future.get();
    if (!built)
      return built;
    if (options.cache)
      options.cache->serve((*built)->artifact(), range->minRows, range->maxRows);
    return state.add({range->minRows, range->maxRows, *built}, rows);
  }
  Result<Ready> made = makeReady(state.spec, state.lookupKey, key, *range);
  promise.set_value(made ? Result<std::shared_ptr<Kernel>>(state.add(std::move(*made), rows))
                         : Result<std::shared_ptr<Kernel>>(made.error()));
  {
    std::lock_guard guard(mutex);
    building.erase(key); // a failure is kept nowhere
  }
  return future.get();
}

const Spec &JitHandle::spec() const { return state->spec; }

Result<std::shared_ptr<Kernel>> JitHandle::kernel(int64_t rows) { return state->get(rows); }

Result<void> JitHandle::launch(const GemmArguments &arguments, cu::Stream stream,
                               int64_t expectedRows) {
  // Nothing to do needs no kernel: an idle rank must not compile, nor be refused in a capture.
  if (arguments.rows == 0)
    return {};
  if (Result<void> checked = checkRows(arguments.rows); !checked)
    return checked;
  int64_t rows = expectedRows < 0 ? arguments.rows : expectedRows;
  if (const State::Ready *ready = state->find(rows))
    return ready->kernel->launch(arguments, stream);
  if (Result<void> refused = state->refuseInCapture(stream); !refused)
    return refused;
  Result<std::shared_ptr<Kernel>> kernel = state->get(rows);
  if (!kernel)
    return kernel.error();
  return (*kernel)->launch(arguments, stream);
}

Jit::Jit(JitOptions options) : shared(std::make_shared<Shared>(std::move(options))) {}

Jit::~Jit() {
  // Handles and what they share point at each other; handles that callers still hold live on.
  decltype(shared->handles) dropped;
  std::lock_guard guard(shared->mutex);
  dropped.swap(shared->handles);
}

const JitOptions &Jit::options() const { return shared->options; }

JitHandle Jit::handle(const Spec &spec) {
  std::string text = canonicalText(spec);
  std::lock_guard guard(shared->mutex);
  std::shared_ptr<JitHandle::State> &state = shared->handles[text];
  if (!state) {
    state = std::make_shared<JitHandle::State>();
    state->spec = spec;
    state->lookupKey = lookupKeyText(spec, shared->options.target, shared->options.plan);
    state->jit = shared;
  }
  return JitHandle(state);
}

Result<std::shared_ptr<Kernel>> Jit::get(const Spec &spec, int64_t rows) {
  return handle(spec).kernel(rows);
}

Result<std::shared_ptr<Kernel>> Jit::get(const Spec &spec, int64_t rows, cu::Stream stream) {
  JitHandle found = handle(spec);
  if (const JitHandle::State::Ready *ready = found.state->find(rows))
    return ready->kernel;
  if (Result<void> refused = found.state->refuseInCapture(stream); !refused)
    return refused.error();
  return found.kernel(rows);
}

Result<void> Jit::build(const Spec &spec) {
  for (const PlannedRange &range : planRanges(spec, shared->options.target, shared->options.plan))
    if (Result<std::shared_ptr<Kernel>> built = get(spec, range.minRows); !built)
      return built.error();
  return {};
}

Result<void> Jit::prepare(const Spec &spec, int64_t rows) {
  Result<std::shared_ptr<Kernel>> kernel = get(spec, rows);
  if (!kernel)
    return kernel.error();
  return (*kernel)->load();
}

Result<uint64_t> Jit::workspaceBytes(const Spec &spec, int64_t maxRows) {
  if (Result<void> checked = checkRows(maxRows); !checked)
    return checked.error();
  uint64_t bytes = 0;
  int64_t rows = 0;
  JitHandle found = handle(spec);
  // What is built ahead may be for some rows only: no launch over others gets far enough to need
  // anything.
  std::vector<IndexedRange> known;
  if (shared->options.cache && shared->neverCompiles())
    known = shared->options.cache->ranges(shared->servedKey(spec, found.state->lookupKey));
  if (!known.empty() && known.front().minRows <= maxRows)
    rows = known.front().minRows;
  while (rows <= maxRows) {
    Result<std::shared_ptr<Kernel>> kernel = found.kernel(rows);
    if (!kernel)
      return kernel.error();
    bytes = std::max(bytes, (*kernel)->workspaceBytes(maxRows));
    int64_t last = found.state->find(rows)->maxRows;
    if (last >= maxRows)
      break;
    rows = last + 1;
    if (known.empty())
      continue;
    auto next = std::find_if(known.begin(), known.end(),
                             [&](const IndexedRange &range) { return range.maxRows >= rows; });
    if (next == known.end())
      break;
    rows = std::max(rows, next->minRows);
  }
  return bytes;
}

} // namespace moejit
