// Specs, artifacts, folders and a driver for the unit tests of the runtime.
#pragma once

#include "runtime/Artifact.h"
#include "runtime/Driver.h"
#include "runtime/Keys.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace moejit::samples {

/// Grouped, 4 experts, 256 x 512, 128x128 weight blocks and 1x128 activations, m contiguous and
/// aligned.
inline Spec spec() {
  Spec spec;
  spec.dispatch = Dispatch::Grouped;
  spec.numExperts = 4;
  spec.n = 256;
  spec.k = 512;
  spec.xScales.granule = {Granule::of(1), Granule::of(128)};
  spec.xScales.source = ScaleSource::Dynamic;
  spec.xScales.order = ScaleOrder::MnMajor;
  spec.xScales.alignBytes = 16;
  spec.wScales.granule = {Granule::of(1), Granule::of(128), Granule::of(128)};
  return spec;
}

/// 64 bytes that pass for a cubin: an ELF header without sections.
inline std::string cubin(char fill = 0) {
  std::string bytes(64, '\0');
  bytes.replace(0, 4,
                "\x7f"
                "ELF");
  bytes[8] = fill; // padding of e_ident
  return bytes;
}

inline LaunchData launchData() {
  LaunchData launch;
  launch.grid = {.tileM = 128, .tileN = 256, .n = 256, .numExperts = 4, .blocksPerSm = 1};
  launch.threads = 384;
  launch.sharedBytes = 200000;
  TensorMapRecipe x;
  x.operand = Operand::X;
  x.extents = {{LaunchValue::Kind::Constant, 512, Operand::X},
               {LaunchValue::Kind::Rows, 0, Operand::X}};
  x.strideBytes = {{LaunchValue::Kind::StrideBytes, 0, Operand::X}};
  x.box = {128, 64};
  x.swizzle = Swizzle::B128;
  TensorMapRecipe w;
  w.operand = Operand::W;
  w.extents = {{LaunchValue::Kind::Constant, 512, Operand::X},
               {LaunchValue::Kind::Constant, 256, Operand::X},
               {LaunchValue::Kind::Constant, 4, Operand::X}};
  w.strideBytes = {{LaunchValue::Kind::Constant, 512, Operand::X},
                   {LaunchValue::Kind::Constant, 512 * 256, Operand::X}};
  w.box = {128, 256, 1};
  w.swizzle = Swizzle::B128;
  launch.tensorMaps = {x, w};
  using Kind = KernelParameter::Kind;
  launch.parameters = {{Kind::TensorMap, 0, Operand::X},     {Kind::TensorMap, 1, Operand::W},
                       {Kind::Pointer, 0, Operand::XScales}, {Kind::Pointer, 0, Operand::WScales},
                       {Kind::Pointer, 0, Operand::Offsets}, {Kind::Pointer, 0, Operand::Y},
                       {Kind::Rows, 0, Operand::X},          {Kind::Stride, 0, Operand::Y},
                       {Kind::Stride, 0, Operand::XScales}};
  return launch;
}

/// A launch that counts, and quantizes x for itself.
inline Artifact quantizingArtifact() {
  Artifact artifact;
  artifact.spec = spec();
  artifact.spec.quantizeFrom = ElementType::BF16;
  LaunchData &launch = artifact.launch;
  launch = launchData();
  launch.workspace = {{Operand::Workspace, 4, 0, true},
                      {Operand::Counters, 8, 0, true},
                      {Operand::XQuantized, 0, 512, false},
                      {Operand::XQuantizedScales, 0, 16, false}};
  launch.tensorMaps.push_back(launch.tensorMaps[0]);
  launch.tensorMaps.back().operand = Operand::XQuantized;
  launch.tensorMaps.back().strideBytes[0].operand = Operand::XQuantized;
  using Kind = KernelParameter::Kind;
  launch.parameters = {{Kind::TensorMap, 2, Operand::XQuantized},
                       {Kind::Pointer, 0, Operand::X},
                       {Kind::Pointer, 0, Operand::Counters},
                       {Kind::Pointer, 0, Operand::XQuantizedScales},
                       {Kind::Stride, 0, Operand::XQuantizedScales}};
  return artifact;
}

/// A whole artifact; `variant` makes another build key of the same lookup key.
inline Artifact artifact(int variant = 0) {
  Artifact artifact;
  artifact.spec = spec();
  artifact.lookupKey = lookupKeyText(artifact.spec, Target());
  artifact.arch = "sm_90a";
  artifact.planText = "tileM=" + std::to_string(64 + variant);
  artifact.buildKey =
      buildKeyText(artifact.lookupKey, artifact.planText, {"fingerprint", "13.0", "--fmad=false"});
  artifact.nvrtcVersion = "13.0";
  artifact.minDriver = 13000;
  artifact.launch = launchData();
  artifact.resources = {168, 1, 2, 3, 4};
  artifact.cubin = cubin();
  artifact.ptx = ".version 9.0\n.target sm_90a\n";
  artifact.source = "extern \"C\" __global__ void moejit_kernel() {}\n";
  artifact.compileLog = "ptxas info\n";
  return artifact;
}

/// An empty folder of its own, removed at the end.
class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "moejit-XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;
  std::string path;
};

/// Names of the files in `folder` that end in `suffix`.
inline std::vector<std::string> filesIn(const std::string &folder, std::string_view suffix = "") {
  std::vector<std::string> names;
  for (const auto &entry : std::filesystem::directory_iterator(folder)) {
    std::string name = entry.path().filename().string();
    if (name.size() >= suffix.size() && name.substr(name.size() - suffix.size()) == suffix)
      names.push_back(name);
  }
  return names;
}

} // namespace moejit::samples
