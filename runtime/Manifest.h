// The contents of a bundle: every kernel with what it is and needs, and the checksum of every file.
// Touches no file.
#pragma once

#include "runtime/Artifact.h"
#include "runtime/CacheIndex.h"
#include "runtime/Result.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace moejit {

inline constexpr std::string_view manifestName = "manifest.json";

/// One kernel of a bundle.
struct ManifestKernel {
  std::string name;   ///< keyName of the build key; the file is `<name>.kernel`
  std::string lookup; ///< keyName of the lookup key; its index is `<lookup>.index`
  std::vector<std::pair<int64_t, int64_t>> rows; ///< closed ranges it serves, ascending
  std::string arch;
  std::string spec; ///< canonical text
  std::string plan; ///< planText
  std::string nvrtc;
  uint32_t minDriver = 0; ///< as Artifact::minDriver
  ResourceUsage resources;
  uint64_t sharedBytes = 0; ///< static and dynamic
  uint64_t threads = 0;
  bool operator==(const ManifestKernel &) const = default;
};

/// A file of a bundle, as it was when the manifest was written.
struct ManifestFile {
  uint64_t bytes = 0;
  std::string sha256; ///< 64 lower-case hexadecimal characters
  bool operator==(const ManifestFile &) const = default;
};

struct Manifest {
  std::vector<ManifestKernel> kernels;       ///< by name
  std::map<std::string, ManifestFile> files; ///< all but the manifest, by file name
  /// Least CUDA driver version that takes every kernel's cubin; 0 for no kernels.
  uint32_t minDriver() const;
  bool operator==(const Manifest &) const = default;
};

/// What a manifest says of `artifact`, which serves `ranges` of its lookup key.
ManifestKernel manifestKernel(const Artifact &artifact, const std::vector<IndexedRange> &ranges);

/// JSON of `manifest`; equal manifests give equal text.
std::string manifestJson(const Manifest &manifest);
/// Reads what manifestJson wrote. Never crashes on hostile bytes. Errors: ParseError: no JSON,
/// another format, a missing or mistyped field, a file name that is a path, a kernel without its
/// files.
Result<Manifest> parseManifest(std::string_view text);

/// Whether `text` is a SHA-256 as manifests spell it.
bool isSha256(std::string_view text);

} // namespace moejit
