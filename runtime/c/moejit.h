/* The C API of moejit's runtime: opens a folder of kernels that were compiled ahead of time, finds
   the kernels of an expert GEMM and launches them. It never compiles, allocates no device memory
   and never synchronises. C99; no exception and no C++ type crosses it. */
#ifndef MOEJIT_C_MOEJIT_H
#define MOEJIT_C_MOEJIT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MOEJIT_API __attribute__((visibility("default")))
#else
#define MOEJIT_API
#endif

/* What became of a call. Values are stable. */
typedef enum moejit_status {
  MOEJIT_OK = 0,
  MOEJIT_INVALID_ARGUMENT = 1, /* outside the function's contract */
  MOEJIT_RULE_VIOLATION = 2,   /* refused by a rule; the text has its id (MJ001…) */
  MOEJIT_PARSE_ERROR = 3,      /* a spec or a file that is not what it claims to be */
  MOEJIT_NOT_FOUND = 4,
  MOEJIT_NOT_IN_CACHE = 5, /* the folder has no such kernel; the text says how to build it */
  MOEJIT_CAPTURE_ACTIVE =
      6, /* the kernel is not ready and the stream is being captured; the capture stays usable */
  MOEJIT_COMPILE_ERROR = 7,
  MOEJIT_DRIVER_ERROR = 8, /* the text names the CUresult */
  MOEJIT_UNAVAILABLE = 9,  /* no driver or device on this machine */
  MOEJIT_IO_ERROR = 10,
  MOEJIT_INTERNAL = 11 /* a defect of moejit, or memory ran out */
} moejit_status;

/* Every function that can fail takes `error` and `error_bytes`: a buffer of the caller that
   receives the reason, cut to fit and always ended by a zero; empty after success. A null buffer,
   or 0 bytes, is allowed. */

/* "0.1.0". */
MOEJIT_API const char *moejit_version(void);
/* "not-in-cache". */
MOEJIT_API const char *moejit_status_name(moejit_status status);

/* A folder of kernels. Thread-safe. */
typedef struct moejit_library moejit_library;

typedef enum moejit_folder_kind {
  MOEJIT_BUNDLE = 0, /* made by `moejit aot`: has a manifest */
  MOEJIT_CACHE = 1   /* the cache of a JIT, only read */
} moejit_folder_kind;

/* Opens `folder` for kernels of `arch` ("sm_90a"; null means that). Touches no driver and no
   device. Close it with moejit_close. */
MOEJIT_API moejit_status moejit_open(const char *folder, moejit_folder_kind kind, const char *arch,
                                     moejit_library **library, char *error, size_t error_bytes);
/* Opens a bundle like moejit_open, if its manifest.json has the SHA-256 `manifest_sha256` (64 of
   0-9 and a-f; `moejit aot` prints it). The manifest has the checksum of every other file, and each
   is compared before it is used: nothing that was altered since is ever launched. Errors also:
   MOEJIT_PARSE_ERROR for another manifest, and from all functions below for an altered kernel. */
MOEJIT_API moejit_status moejit_open_pinned(const char *folder, const char *manifest_sha256,
                                            const char *arch, moejit_library **library, char *error,
                                            size_t error_bytes);
/* Null is allowed. GEMMs of the library stay valid. */
MOEJIT_API void moejit_close(moejit_library *library);

/* The kernels of one expert GEMM. Thread-safe; may be launched on any number of devices. */
typedef struct moejit_gemm moejit_gemm;

/* Finds the GEMM of `spec`, a canonical spec text: one line that names dispatch, extents, types and
   scale layouts, as canonicalText (runtime/Spec.h) writes it. Errors: MOEJIT_PARSE_ERROR,
   MOEJIT_NOT_IN_CACHE. Release it with moejit_gemm_release. */
MOEJIT_API moejit_status moejit_gemm_find(moejit_library *library, const char *spec,
                                          moejit_gemm **gemm, char *error, size_t error_bytes);
/* The same for kernels that were built with `moejit aot --checked`: they look at offsets, counts,
   ids and scales, and report what is wrong with them in `errors` of their arguments. Slower;
   results are the same. */
MOEJIT_API moejit_status moejit_gemm_find_checked(moejit_library *library, const char *spec,
                                                  moejit_gemm **gemm, char *error,
                                                  size_t error_bytes);
/* Null is allowed. Launches in flight and captured graphs stay valid. */
MOEJIT_API void moejit_gemm_release(moejit_gemm *gemm);

/* Bytes of device memory that each launch in flight needs as its workspace, where `rows` and
 * `expected_rows` are both up to `max_rows`; 0 is possible. */
MOEJIT_API moejit_status moejit_gemm_workspace_bytes(moejit_gemm *gemm, int64_t max_rows,
                                                     uint64_t *bytes, char *error,
                                                     size_t error_bytes);

/* Loads the kernel planned for `rows` rows into the calling thread's current context, so that a
 * capture may launch it. */
MOEJIT_API moejit_status moejit_gemm_prepare(moejit_gemm *gemm, int64_t rows, char *error,
                                             size_t error_bytes);

/* A tensor in device memory, not owned. `row_stride` counts elements from one row to the next; 0:
 * packed. */
typedef struct moejit_tensor {
  void *data;
  int64_t row_stride;
} moejit_tensor;

/* Words of i64 that a checked launch reports in. */
#define MOEJIT_ERROR_WORDS 8

/* What one launch works on. Fill it with zeros, then set `struct_bytes` and what the spec has. */
typedef struct moejit_gemm_arguments {
  size_t struct_bytes; /* sizeof(moejit_gemm_arguments) */
  moejit_tensor x; /* [rows, K], of the type the spec quantizes from, if it does; any stride that
                      is a multiple of 16 bytes */
  moejit_tensor x_scales; /* as the spec lays them out; mn_major: the stride from one K group to the
                             next; none where a GEMM quantizes x; a quantization of its own writes
                             computed ones and reads a given one */
  moejit_tensor w;        /* [E, N, K], contiguous */
  moejit_tensor w_scales; /* as the spec lays them out */
  moejit_tensor offsets;  /* grouped: i32 [E + 1] */
  moejit_tensor expert_ids; /* batched: i32 [rows] */
  moejit_tensor counts;     /* masked: i32 [E] */
  moejit_tensor expert_map; /* batched with a map: i32, as many as the spec says */
  moejit_tensor y;          /* [rows, N]; the codes [rows, K] of a quantization of its own; any
                               stride that is a multiple of 16 bytes */
  moejit_tensor errors;     /* checked kernels: i64 [MOEJIT_ERROR_WORDS], zeroed by the caller */
  int64_t rows;             /* 0 launches nothing, and needs no pointers and no driver */
  int64_t expected_rows;    /* chooses the kernel, changes speed only; 0: the same as rows */
  void *workspace; /* moejit_gemm_workspace_bytes bytes, 16-byte aligned, for this launch alone */
  uint64_t workspace_bytes;
  int64_t sm_limit;           /* most SMs the launch may occupy; 0: all */
  int64_t workspace_is_clean; /* not 0: you zeroed the workspace once, and only launches of kernels
                                 that leave its counters zero (of format 2.1 and later, but of plans
                                 with cleanWorkspace=false) used it since, one after the other:
                                 nothing is zeroed before this one */
} moejit_gemm_arguments;

/* Launches on `stream` (a CUstream or cudaStream_t; null: the legacy default stream) in the calling
   thread's current context, and returns at once. Finds and loads the kernel at the first launch,
   except while `stream` is being captured. */
MOEJIT_API moejit_status moejit_gemm_launch(moejit_gemm *gemm,
                                            const moejit_gemm_arguments *arguments, void *stream,
                                            char *error, size_t error_bytes);

/* Says in `text`, cut to `text_bytes` and ended by a zero, what a checked launch of `gemm` has
   found: a sentence for each kind, with the first index of it; empty when nothing is wrong.
   `errors`: MOEJIT_ERROR_WORDS words, copied to the host after the launch has finished. */
MOEJIT_API moejit_status moejit_describe_checks(moejit_gemm *gemm, const int64_t *errors,
                                                char *text, size_t text_bytes);

#ifdef __cplusplus
}
#endif

#endif
