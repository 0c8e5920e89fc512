// The C API over Jit: converts arguments and errors, decides nothing. The one place of the runtime
// that is compiled with exceptions, so that none gets out (memory may run out inside the standard
// library).
#include "runtime/c/moejit.h"

#include "runtime/Checks.h"
#include "runtime/Jit.h"

#include <cstring>
#include <exception>
#include <new>
#include <string_view>

using namespace moejit;

struct moejit_library {
  std::shared_ptr<Jit> jit, checkedJit; ///< over the same cache
};

struct moejit_gemm {
  std::shared_ptr<Jit> jit; ///< workspaceBytes and prepare ask it
  JitHandle handle;
};

namespace {

moejit_status statusOf(ErrorCode code) {
  switch (code) {
  case ErrorCode::InvalidArgument:
    return MOEJIT_INVALID_ARGUMENT;
  case ErrorCode::RuleViolation:
    return MOEJIT_RULE_VIOLATION;
  case ErrorCode::ParseError:
    return MOEJIT_PARSE_ERROR;
  case ErrorCode::NotFound:
    return MOEJIT_NOT_FOUND;
  case ErrorCode::NotInCache:
    return MOEJIT_NOT_IN_CACHE;
  case ErrorCode::CaptureActive:
    return MOEJIT_CAPTURE_ACTIVE;
  case ErrorCode::CompileError:
    return MOEJIT_COMPILE_ERROR;
  case ErrorCode::DriverError:
    return MOEJIT_DRIVER_ERROR;
  case ErrorCode::Unavailable:
    return MOEJIT_UNAVAILABLE;
  case ErrorCode::IoError:
    return MOEJIT_IO_ERROR;
  case ErrorCode::Internal:
    break;
  }
  return MOEJIT_INTERNAL;
}

/// The caller's buffer for the reason of a failure.
struct ErrorBuffer {
  char *text;
  size_t bytes;

  void set(std::string_view reason) const {
    if (!text || bytes == 0)
      return;
    size_t length = std::min(reason.size(), bytes - 1);
    // A UTF-8 character is kept whole or left out.
    while (length < reason.size() && length > 0 && (uint8_t(reason[length]) & 0xc0) == 0x80)
      --length;
    std::memcpy(text, reason.data(), length);
    text[length] = '\0';
  }
};

/// Runs `body`, a function that gives a Result<void>, and turns whatever comes out into a status.
template <typename Body> moejit_status guarded(ErrorBuffer error, Body body) noexcept {
  try {
    error.set("");
    Result<void> result = body();
    if (result)
      return MOEJIT_OK;
    error.set(result.error().text());
    return statusOf(result.error().code);
  } catch (const std::bad_alloc &) {
    error.set("out of memory");
  } catch (const std::exception &problem) {
    error.set(problem.what());
  } catch (...) {
    error.set("an unknown exception");
  }
  return MOEJIT_INTERNAL;
}

Error missing(const char *what) {
  return {ErrorCode::InvalidArgument, std::string(what) + " is null", {}};
}

TensorArgument tensor(const moejit_tensor &given) { return {given.data, given.row_stride}; }

} // namespace

const char *moejit_version(void) { return MOEJIT_VERSION; }

const char *moejit_status_name(moejit_status status) {
  if (status == MOEJIT_OK)
    return "ok";
  for (int code = 0; code <= int(ErrorCode::Internal); ++code)
    if (statusOf(ErrorCode(code)) == status)
      return errorCodeName(ErrorCode(code));
  return "unknown";
}

/// Opens `folder`; a null `manifestSha256` pins nothing.
static moejit_status openLibrary(const char *folder, CacheMode mode, const char *manifestSha256,
                                 const char *arch, moejit_library **library, ErrorBuffer error) {
  return guarded(error, [&]() -> Result<void> {
    if (!library)
      return missing("library");
    *library = nullptr;
    if (!folder)
      return missing("folder");
    if (!*folder)
      return Error{ErrorCode::InvalidArgument, "folder is empty: name a folder of kernels", {}};
    Result<Target> target = parseTarget(arch ? arch : Target().arch);
    if (!target)
      return target.error();
    CacheOptions cacheOptions;
    cacheOptions.folder = folder;
    cacheOptions.mode = mode;
    if (manifestSha256)
      cacheOptions.manifestSha256 = manifestSha256;
    Result<std::shared_ptr<Cache>> cache = Cache::open(std::move(cacheOptions));
    if (!cache)
      return cache.error();
    // Without compiling, a cache whose folder cannot be read is of no use.
    if (const std::optional<Error> &problem = (*cache)->diskProblem())
      return *problem;
    JitOptions options;
    options.cache = *cache;
    options.target = *target;
    auto jit = std::make_shared<Jit>(options);
    options.plan.checked = true;
    *library = new moejit_library{std::move(jit), std::make_shared<Jit>(std::move(options))};
    return {};
  });
}

moejit_status moejit_open(const char *folder, moejit_folder_kind kind, const char *arch,
                          moejit_library **library, char *error, size_t error_bytes) {
  if (kind != MOEJIT_BUNDLE && kind != MOEJIT_CACHE)
    return guarded({error, error_bytes}, [&]() -> Result<void> {
      if (library)
        *library = nullptr;
      return Error{ErrorCode::InvalidArgument,
                   "kind " + std::to_string(int(kind)) + " is neither bundle nor cache",
                   {}};
    });
  CacheMode mode = kind == MOEJIT_BUNDLE ? CacheMode::Bundle : CacheMode::ReadOnly;
  return openLibrary(folder, mode, nullptr, arch, library, {error, error_bytes});
}

moejit_status moejit_open_pinned(const char *folder, const char *manifest_sha256, const char *arch,
                                 moejit_library **library, char *error, size_t error_bytes) {
  if (!manifest_sha256)
    return guarded({error, error_bytes}, [&]() -> Result<void> {
      if (library)
        *library = nullptr;
      return missing("manifest_sha256");
    });
  return openLibrary(folder, CacheMode::Bundle, manifest_sha256, arch, library,
                     {error, error_bytes});
}

void moejit_close(moejit_library *library) { delete library; }

static_assert(MOEJIT_ERROR_WORDS == errorWords);

/// The GEMM of `spec` in the kernels of `jit`, a member of `library`.
static moejit_status findIn(moejit_library *library, std::shared_ptr<Jit> moejit_library::*jit,
                            const char *spec, moejit_gemm **gemm, ErrorBuffer error) {
  return guarded(error, [&]() -> Result<void> {
    if (!gemm)
      return missing("gemm");
    *gemm = nullptr;
    if (!library)
      return missing("library");
    if (!spec)
      return missing("spec");
    Result<Spec> parsed = parseSpec(spec);
    if (!parsed)
      return parsed.error();
    const std::shared_ptr<Jit> &kernels = library->*jit;
    const JitOptions &options = kernels->options();
    // A folder may hold some row ranges only; with none at all, the refusal is due now.
    std::vector<IndexedRange> known =
        options.cache->ranges(lookupKeyText(*parsed, options.target, options.plan));
    JitHandle handle = kernels->handle(*parsed);
    Result<std::shared_ptr<Kernel>> kernel = handle.kernel(known.empty() ? 0 : known[0].minRows);
    if (!kernel)
      return kernel.error();
    *gemm = new moejit_gemm{kernels, std::move(handle)};
    return {};
  });
}

moejit_status moejit_gemm_find(moejit_library *library, const char *spec, moejit_gemm **gemm,
                               char *error, size_t error_bytes) {
  return findIn(library, &moejit_library::jit, spec, gemm, {error, error_bytes});
}

moejit_status moejit_gemm_find_checked(moejit_library *library, const char *spec,
                                       moejit_gemm **gemm, char *error, size_t error_bytes) {
  return findIn(library, &moejit_library::checkedJit, spec, gemm, {error, error_bytes});
}

moejit_status moejit_describe_checks(moejit_gemm *gemm, const int64_t *errors, char *text,
                                     size_t text_bytes) {
  std::string found;
  moejit_status status = guarded({text, text_bytes}, [&]() -> Result<void> {
    if (!gemm)
      return missing("gemm");
    if (!errors)
      return missing("errors");
    found = describeChecks(gemm->handle.spec(), {errors, size_t(errorWords)});
    return {};
  });
  if (status == MOEJIT_OK)
    ErrorBuffer{text, text_bytes}.set(found);
  return status;
}

void moejit_gemm_release(moejit_gemm *gemm) { delete gemm; }

moejit_status moejit_gemm_workspace_bytes(moejit_gemm *gemm, int64_t max_rows, uint64_t *bytes,
                                          char *error, size_t error_bytes) {
  return guarded({error, error_bytes}, [&]() -> Result<void> {
    if (!gemm)
      return missing("gemm");
    if (!bytes)
      return missing("bytes");
    *bytes = 0;
    Result<uint64_t> needed = gemm->jit->workspaceBytes(gemm->handle.spec(), max_rows);
    if (!needed)
      return needed.error();
    *bytes = *needed;
    return {};
  });
}

moejit_status moejit_gemm_prepare(moejit_gemm *gemm, int64_t rows, char *error,
                                  size_t error_bytes) {
  return guarded({error, error_bytes}, [&]() -> Result<void> {
    if (!gemm)
      return missing("gemm");
    return gemm->jit->prepare(gemm->handle.spec(), rows);
  });
}

moejit_status moejit_gemm_launch(moejit_gemm *gemm, const moejit_gemm_arguments *arguments,
                                 void *stream, char *error, size_t error_bytes) {
  return guarded({error, error_bytes}, [&]() -> Result<void> {
    if (!gemm)
      return missing("gemm");
    if (!arguments)
      return missing("arguments");
    // Later versions may know more fields, never fewer.
    if (arguments->struct_bytes != sizeof(moejit_gemm_arguments))
      return Error{ErrorCode::InvalidArgument,
                   "struct_bytes is " + std::to_string(arguments->struct_bytes) +
                       ", this library's arguments have " +
                       std::to_string(sizeof(moejit_gemm_arguments)) + " bytes",
                   {"set struct_bytes = sizeof(moejit_gemm_arguments); rebuild against the "
                    "library's own header"}};
    if (arguments->expected_rows < 0)
      return Error{ErrorCode::InvalidArgument,
                   "expected_rows: " + std::to_string(arguments->expected_rows) + " is negative",
                   {"0 means the same as rows"}};
    GemmArguments launch;
    launch.x = tensor(arguments->x);
    launch.xScales = tensor(arguments->x_scales);
    launch.w = tensor(arguments->w);
    launch.wScales = tensor(arguments->w_scales);
    launch.offsets = tensor(arguments->offsets);
    launch.expertIds = tensor(arguments->expert_ids);
    launch.counts = tensor(arguments->counts);
    launch.expertMap = tensor(arguments->expert_map);
    launch.y = tensor(arguments->y);
    launch.errors = tensor(arguments->errors);
    launch.rows = arguments->rows;
    launch.workspace = arguments->workspace;
    launch.workspaceBytes = size_t(arguments->workspace_bytes);
    launch.smLimit = arguments->sm_limit;
    launch.workspaceIsClean = arguments->workspace_is_clean != 0;
    int64_t expectedRows = arguments->expected_rows > 0 ? arguments->expected_rows : -1;
    return gemm->handle.launch(launch, static_cast<cu::Stream>(stream), expectedRows);
  });
}
