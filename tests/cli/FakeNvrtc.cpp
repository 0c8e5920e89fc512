// A stand-in for NVRTC: hands every call to the real one, whose path is in REAL_NVRTC, and appends
// a line to the file NVRTC_LOG for each compilation. FAKE_NVRTC_FAILS makes compilations fail,
// FAKE_NVRTC_SLEEP_MS slow; FAKE_NVRTC_VERSION is the major version it claims to be.
// FAKE_NVRTC_CRASHES ends the process in the middle of a compilation; what comes of one is
// FAKE_NVRTC_GIVES: "nothing", or "half" of a cubin.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <thread>
#include <vector>

using Program = void *;

/// A function of the real library.
template <typename Function> static Function real(const char *name) {
  static void *library = dlopen(std::getenv("REAL_NVRTC"), RTLD_NOW | RTLD_LOCAL);
  void *found = library ? dlsym(library, name) : nullptr;
  if (!found) {
    std::fprintf(stderr, "fake NVRTC: %s: no %s\n", std::getenv("REAL_NVRTC"), name);
    std::abort();
  }
  return reinterpret_cast<Function>(found);
}

static bool gives(const char *what) {
  const char *given = std::getenv("FAKE_NVRTC_GIVES");
  return given && std::strcmp(given, what) == 0;
}

#define FORWARD(name, parameters, arguments)                                                       \
  __attribute__((visibility("default"))) int name parameters {                                     \
    return real<int(*) parameters>(#name) arguments;                                               \
  }

extern "C" {
FORWARD(nvrtcCreateProgram,
        (Program * program, const char *source, const char *name, int numHeaders,
         const char *const *headers, const char *const *includes),
        (program, source, name, numHeaders, headers, includes))
FORWARD(nvrtcDestroyProgram, (Program * program), (program))
FORWARD(nvrtcGetProgramLogSize, (Program program, size_t *size), (program, size))
FORWARD(nvrtcGetProgramLog, (Program program, char *log), (program, log))

int nvrtcGetPTXSize(Program program, size_t *size) {
  int status = real<int (*)(Program, size_t *)>("nvrtcGetPTXSize")(program, size);
  *size = gives("nothing") ? 0 : *size;
  return status;
}
int nvrtcGetPTX(Program program, char *ptx) {
  return gives("nothing") ? 0 : real<int (*)(Program, char *)>("nvrtcGetPTX")(program, ptx);
}
int nvrtcGetCUBINSize(Program program, size_t *size) {
  int status = real<int (*)(Program, size_t *)>("nvrtcGetCUBINSize")(program, size);
  *size = gives("nothing") ? 0 : gives("half") ? *size / 2 : *size;
  return status;
}
int nvrtcGetCUBIN(Program program, char *cubin) {
  size_t size = 0;
  int status = real<int (*)(Program, size_t *)>("nvrtcGetCUBINSize")(program, &size);
  std::vector<char> whole(size);
  if (status == 0)
    status = real<int (*)(Program, char *)>("nvrtcGetCUBIN")(program, whole.data());
  nvrtcGetCUBINSize(program, &size);
  std::copy_n(whole.begin(), size, cubin);
  return status;
}

int nvrtcVersion(int *major, int *minor) {
  int status = real<int (*)(int *, int *)>("nvrtcVersion")(major, minor);
  if (const char *claimed = std::getenv("FAKE_NVRTC_VERSION"))
    *major = std::atoi(claimed);
  return status;
}

int nvrtcCompileProgram(Program program, int numOptions, const char *const *options) {
  if (std::FILE *log = std::fopen(std::getenv("NVRTC_LOG"), "a")) {
    std::fputs("compile\n", log);
    std::fclose(log);
  }
  if (const char *ms = std::getenv("FAKE_NVRTC_SLEEP_MS"))
    std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(ms)));
  if (std::getenv("FAKE_NVRTC_CRASHES"))
    raise(SIGKILL);
  if (std::getenv("FAKE_NVRTC_FAILS"))
    return 6; // NVRTC_ERROR_COMPILATION
  return real<int (*)(Program, int, const char *const *)>("nvrtcCompileProgram")(
      program, numOptions, options);
}

const char *nvrtcGetErrorString(int status) {
  return real<const char *(*)(int)>("nvrtcGetErrorString")(status);
}
}
