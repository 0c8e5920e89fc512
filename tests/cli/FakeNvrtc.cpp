// A stand-in for NVRTC: hands every call to the real one, whose path is in REAL_NVRTC, and appends
// a line to the file NVRTC_LOG for each compilation. FAKE_NVRTC_FAILS makes compilations fail,
// FAKE_NVRTC_SLEEP_MS slow; FAKE_NVRTC_VERSION is the major version it claims to be.
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <thread>

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
FORWARD(nvrtcGetPTXSize, (Program program, size_t *size), (program, size))
FORWARD(nvrtcGetPTX, (Program program, char *ptx), (program, ptx))
FORWARD(nvrtcGetCUBINSize, (Program program, size_t *size), (program, size))
FORWARD(nvrtcGetCUBIN, (Program program, char *cubin), (program, cubin))

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
  if (std::getenv("FAKE_NVRTC_FAILS"))
    return 6; // NVRTC_ERROR_COMPILATION
  return real<int (*)(Program, int, const char *const *)>("nvrtcCompileProgram")(
      program, numOptions, options);
}

const char *nvrtcGetErrorString(int status) {
  return real<const char *(*)(int)>("nvrtcGetErrorString")(status);
}
}
