// The table behind the bundle's quantizations.
#include "tests/gpu/QuantizeSpecs.h"

#include <fmt/format.h>

#include <string_view>

namespace moejit::gpu {

std::vector<QuantizeSpec> quantizeSpecs() {
  constexpr ElementType bf16 = ElementType::BF16, f16 = ElementType::F16, f32 = ElementType::F32;
  constexpr ElementType e4m3 = ElementType::F8E4M3FN, e5m2 = ElementType::F8E5M2;
  constexpr ElementType ue8m0 = ElementType::F8E8M0FNU;
  constexpr ScaleOrder rowMajor = ScaleOrder::RowMajor, mnMajor = ScaleOrder::MnMajor;
  const Granule one = Granule::of(1), whole = Granule::whole();
  struct Row {
    const char *name;
    int64_t k;
    ElementType from, to;
    Granule mn, along;
    ElementType type = ElementType::F32;
    int64_t packing = 1;
    ScaleOrder order = ScaleOrder::RowMajor;
    int64_t alignBytes = 0;
    ScaleSource source = ScaleSource::Dynamic;
  };
  auto of = [](int64_t extent) { return Granule::of(extent); };
  const Row table[] = {
      {"group-mn", 2064, bf16, e4m3, one, of(128), f32, 1, mnMajor, 16},
      {"group", 720, f16, e4m3, one, of(128)},
      {"group-f32", 1040, f32, e5m2, one, of(128), f32, 1, rowMajor, 64},
      {"mx", 1072, bf16, e4m3, one, of(32), ue8m0},
      {"mx-words", 2064, bf16, e4m3, one, of(32), ue8m0, 4, mnMajor, 16},
      {"group-words", 1168, f32, e4m3, one, of(128), ue8m0, 4, rowMajor},
      {"group-64", 336, f16, e5m2, one, of(64), ue8m0, 1, mnMajor, 16},
      {"group-96", 1200, bf16, e4m3, one, of(96)},
      {"group-512", 3184, f16, e4m3, one, of(512), f32, 1, mnMajor, 16},
      {"token", 7168, bf16, e4m3, one, whole},
      {"token-f32", 1360, f32, e5m2, one, whole, f32, 1, rowMajor, 16},
      {"token-long", 33040, f16, e4m3, one, whole, ue8m0},
      {"tensor", 2064, bf16, e4m3, whole, whole},
      {"tensor-f16", 720, f16, e5m2, whole, whole, ue8m0},
      {"given", 2064, bf16, e4m3, whole, whole, f32, 1, rowMajor, 0, ScaleSource::Static},
      {"given-bf16", 2064, bf16, e5m2, whole, whole, f32, 1, rowMajor, 0, ScaleSource::Static},
      {"given-f16", 2064, f16, e4m3, whole, whole, f32, 1, rowMajor, 0, ScaleSource::Static},
      {"given-f16-e5m2", 2064, f16, e5m2, whole, whole, f32, 1, rowMajor, 0, ScaleSource::Static},
      {"given-f32", 720, f32, e5m2, whole, whole, ue8m0, 4, rowMajor, 0, ScaleSource::Static},
  };
  std::vector<QuantizeSpec> specs;
  for (const Row &row : table) {
    ScaleLayout layout;
    layout.granule = {row.mn, row.along};
    layout.type = row.type;
    layout.source = row.source;
    layout.order = row.order;
    layout.alignBytes = row.alignBytes;
    layout.packing = row.packing;
    // One of each way that scales are made.
    bool isQuick = false;
    for (const char *name : {"group-mn", "mx-words", "group-96", "token-f32", "tensor", "given"})
      isQuick |= std::string_view(name) == row.name;
    specs.push_back({fmt::format("quantize.{}.{}.{}.{}", row.name, elementTypeName(row.from),
                                 elementTypeName(row.to), row.k),
                     quantizeSpec(row.k, row.from, row.to, layout), isQuick});
  }
  return specs;
}

} // namespace moejit::gpu
