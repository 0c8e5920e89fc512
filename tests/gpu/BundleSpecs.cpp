// The kernels of the GPU tests: the matrix of layouts, a few kernels of other kinds, and the
// catalogue.
#include "tests/gpu/BundleSpecs.h"

#include "compiler/Compile.h"
#include "runtime/Rules.h"
#include "tests/gpu/QuantizeSpecs.h"
#include "tests/pipeline/MatrixCensus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace moejit::gpu {
namespace {

struct NamedLayout {
  const char *name;
  ScaleLayout layout;
};

ScaleLayout layoutOf(std::vector<Granule> granule, ScaleSource source,
                     ScaleOrder order = ScaleOrder::RowMajor, int64_t alignBytes = 0) {
  ScaleLayout layout;
  layout.granule = std::move(granule);
  layout.source = source;
  layout.order = order;
  layout.alignBytes = alignBytes;
  return layout;
}

std::vector<NamedLayout> activationLayouts(Dispatch dispatch) {
  Granule whole = Granule::whole(), one = Granule::of(1), group = Granule::of(128);
  if (dispatch == Dispatch::Masked) // buffers [E, Mmax, K]
    return {
        {"x-tensor", layoutOf({whole, whole, whole}, ScaleSource::Static)},
        {"x-expert", layoutOf({one, whole, whole}, ScaleSource::Static)},
        {"x-token", layoutOf({one, one, whole}, ScaleSource::Dynamic)},
        {"x-group", layoutOf({one, one, group}, ScaleSource::Dynamic)},
        {"x-group-mn", layoutOf({one, one, group}, ScaleSource::Dynamic, ScaleOrder::MnMajor, 16)},
    };
  return {
      {"x-tensor", layoutOf({whole, whole}, ScaleSource::Static)},
      {"x-expert", layoutOf({Granule::expert(), whole}, ScaleSource::Static)},
      {"x-token", layoutOf({one, whole}, ScaleSource::Dynamic)},
      {"x-group", layoutOf({one, group}, ScaleSource::Dynamic)},
      {"x-group-mn", layoutOf({one, group}, ScaleSource::Dynamic, ScaleOrder::MnMajor, 16)},
  };
}

std::vector<NamedLayout> weightLayouts(Dispatch dispatch) {
  Granule whole = Granule::whole(), one = Granule::of(1), block = Granule::of(128);
  if (dispatch == Dispatch::Eager)
    return {{"w-tensor", layoutOf({whole, whole}, ScaleSource::Static)},
            {"w-channel", layoutOf({one, whole}, ScaleSource::Static)},
            {"w-block", layoutOf({block, block}, ScaleSource::Static)}};
  return {{"w-tensor", layoutOf({whole, whole, whole}, ScaleSource::Static)},
          {"w-expert", layoutOf({one, whole, whole}, ScaleSource::Static)},
          {"w-channel", layoutOf({one, one, whole}, ScaleSource::Static)},
          {"w-block", layoutOf({one, block, block}, ScaleSource::Static)}};
}

struct Extents {
  int64_t numExperts, n, k;
};
constexpr Extents aligned = {6, 512, 1024};
constexpr Extents ragged = {6, 328, 720};

Spec specOf(Dispatch dispatch, const NamedLayout &w, const NamedLayout &x, ElementType out,
            Extents extents) {
  Spec spec;
  spec.dispatch = dispatch;
  spec.numExperts = dispatch == Dispatch::Eager ? 1 : extents.numExperts;
  spec.n = extents.n;
  spec.k = extents.k;
  // 2 tiles of 64 rows and a bit, or whole tiles.
  if (dispatch == Dispatch::Masked)
    spec.maxRows = extents.n % 128 == 0 ? 256 : 150;
  spec.outType = out;
  spec.xScales = x.layout;
  spec.wScales = w.layout;
  return spec;
}

std::string nameOf(const Spec &spec, const char *w, const char *x) {
  return fmt::format("{}.{}.{}.{}.{}x{}", dispatchName(spec.dispatch), w, x,
                     elementTypeName(spec.outType), spec.n, spec.k);
}

/// Adds `spec` unless a rule refuses it.
void add(std::vector<BundleEntry> &entries, std::string name, std::string groups,
         const Spec &spec) {
  if (checkSpec(spec, Target()).empty())
    entries.push_back({std::move(name), std::move(groups), spec});
}

/// Every legal layout: ragged extents with each output type (masked: one of them in turn), aligned
/// ones with one of them in turn.
void addMatrix(std::vector<BundleEntry> &entries, Dispatch dispatch) {
  const ElementType outs[] = {ElementType::BF16, ElementType::F16, ElementType::F32};
  int turn = 0;
  for (const NamedLayout &w : weightLayouts(dispatch))
    for (const NamedLayout &x : activationLayouts(dispatch)) {
      for (ElementType out : outs) {
        if (dispatch == Dispatch::Masked && out != outs[(turn + 1) % 3])
          continue;
        Spec spec = specOf(dispatch, w, x, out, ragged);
        std::string name = nameOf(spec, w.name, x.name);
        // One kernel of each way scales take, and each output type, under the memory checker.
        static const char *const quick[] = {
            "grouped.w-tensor.x-tensor.bf16",  "grouped.w-expert.x-expert.f16",
            "grouped.w-channel.x-token.bf16",  "grouped.w-block.x-group.f32",
            "grouped.w-block.x-group-mn.bf16", "eager.w-block.x-group-mn.bf16",
            "eager.w-channel.x-token.f32",     "masked.w-block.x-group-mn.f32"};
        bool isQuick = std::any_of(std::begin(quick), std::end(quick), [&](const char *prefix) {
          return name.rfind(std::string(prefix) + ".", 0) == 0;
        });
        add(entries, name, isQuick ? "matrix quick" : "matrix", spec);
      }
      Spec spec = specOf(dispatch, w, x, outs[turn++ % 3], aligned);
      add(entries, nameOf(spec, w.name, x.name), "matrix", spec);
    }
}

/// Granules other than those of the matrix: [1, xk] of x, [1, wn, wk] of w, 0 for a whole
/// dimension.
void addGranules(std::vector<BundleEntry> &entries) {
  struct Granules {
    int64_t xk, wn, wk;
    ScaleOrder order;
    ElementType out;
  };
  constexpr ScaleOrder rowMajor = ScaleOrder::RowMajor, mnMajor = ScaleOrder::MnMajor;
  const Granules table[] = {
      {32, 32, 32, mnMajor, ElementType::F32},     // one scale for each instruction
      {64, 128, 128, rowMajor, ElementType::BF16}, // x varies faster along K than w
      {128, 128, 32, mnMajor, ElementType::BF16},  // and slower
      {96, 64, 96, rowMajor, ElementType::F32},    // steps that do not divide a stage
      {256, 256, 256, mnMajor, ElementType::BF16}, // scales of several stages
      {128, 64, 128, mnMajor, ElementType::F16},   // several rows of scales in a tile
      {128, 1, 128, rowMajor, ElementType::BF16},  // groups of each channel
      {128, 512, 128, mnMajor, ElementType::F32},  // one row of scales for several tiles
      {0, 16, 0, rowMajor, ElementType::BF16},     // groups of channels
      {0, 128, 128, rowMajor, ElementType::F32},   // w alone varies along K
      {128, 0, 0, mnMajor, ElementType::F32},      // x alone does
  };
  auto granule = [](int64_t extent) { return extent ? Granule::of(extent) : Granule::whole(); };
  for (const Granules &row : table) {
    NamedLayout x = {"", layoutOf({Granule::of(1), granule(row.xk)}, ScaleSource::Dynamic,
                                  row.xk ? row.order : rowMajor,
                                  row.xk && row.order == mnMajor ? 16 : 0)};
    NamedLayout w = {
        "", layoutOf({Granule::of(1), granule(row.wn), granule(row.wk)}, ScaleSource::Static)};
    Spec spec = specOf(Dispatch::Grouped, w, x, row.out, ragged);
    std::string name = nameOf(spec, fmt::format("w-{}x{}", row.wn, row.wk).c_str(),
                              fmt::format("x-{}", row.xk).c_str());
    add(entries, name, "matrix", spec);
  }
  NamedLayout x = {"x-tensor-dynamic",
                   layoutOf({Granule::whole(), Granule::whole()}, ScaleSource::Dynamic)};
  NamedLayout w = weightLayouts(Dispatch::Grouped)[2];
  Spec spec = specOf(Dispatch::Grouped, w, x, ElementType::BF16, ragged);
  add(entries, nameOf(spec, w.name, x.name), "matrix", spec);
}

/// Scales that are stored, or cut, in other ways than those of the matrix: powers of two, padded
/// rows, blocks that divide no tile, parts and shards.
void addStorage(std::vector<BundleEntry> &entries) {
  constexpr ElementType ue8m0 = ElementType::F8E8M0FNU;
  constexpr ScaleOrder rowMajor = ScaleOrder::RowMajor, mnMajor = ScaleOrder::MnMajor;
  struct Side {
    Granule mn, k; ///< of rows or of N, and of K
    ElementType type = ElementType::F32;
    int64_t packing = 1;
    ScaleOrder order = ScaleOrder::RowMajor;
    int64_t alignBytes = 0;
    int64_t mnPhase = 0, kPhase = 0;
  };
  struct Layout {
    const char *name;
    Side x, w;
    int64_t parts = 1;
    bool isInterleaved = false;
  };
  const Granule one = Granule::of(1), whole = Granule::whole();
  auto of = [](int64_t extent) { return Granule::of(extent); };
  const Side groups = {one, of(128)}, blocks = {of(128), of(128)};
  const Layout table[] = {
      {"mx", {one, of(32), ue8m0}, {one, of(32), ue8m0}},
      {"mx-words", {one, of(32), ue8m0, 4, mnMajor, 16}, {one, of(32), ue8m0, 4, mnMajor}},
      {"mx-bytes-mn", {one, of(32), ue8m0, 1, mnMajor, 16}, {one, of(32), ue8m0, 1, mnMajor, 16}},
      {"words", {one, of(128), ue8m0, 4, mnMajor, 16}, {of(128), of(128), ue8m0, 4, rowMajor}},
      {"words-expanded", {one, of(128), ue8m0, 4, mnMajor, 16}, {one, of(128), ue8m0, 4, mnMajor}},
      {"bytes", {one, of(128), ue8m0}, {of(128), of(128), ue8m0}},
      {"bytes-unvaried", {one, whole, ue8m0}, {one, whole, ue8m0, 4, mnMajor}},
      {"padded",
       {one, of(128), ElementType::F32, 1, rowMajor, 64},
       {of(128), of(128), ElementType::F32, 1, mnMajor, 16}},
      {"padded-unvaried",
       {one, whole, ElementType::F32, 1, rowMajor, 16},
       {one, whole, ElementType::F32, 1, rowMajor, 16}},
      {"w-96", groups, {of(96), of(128)}},
      {"w-24", groups, {of(24), of(64)}},
      {"w-320", groups, {of(320), of(128)}},
      {"k-alone", {whole, of(128)}, {whole, of(128)}},
      {"x-4x128", {of(4), of(128)}, blocks},
      {"x-3x64-inside", {of(3), of(64), ElementType::F32, 1, mnMajor, 16, 2}, blocks},
      {"parts", groups, blocks, 2},
      {"parts-interleaved", groups, blocks, 2, true},
      {"parts-one-each", groups, {whole, whole}, 2},
      {"inside",
       {one, of(128), ElementType::F32, 1, mnMajor, 16, 0, 96},
       {of(128), of(128), ElementType::F32, 1, rowMajor, 0, 32, 96}},
      {"inside-apart",
       {one, of(128), ElementType::F32, 1, rowMajor, 0, 0, 96},
       {of(128), of(64), ElementType::F32, 1, rowMajor, 0, 100, 32},
       2},
      {"inside-words",
       {one, of(32), ue8m0, 4, mnMajor, 16, 0, 16},
       {of(64), of(64), ue8m0, 4, mnMajor, 16, 8, 48}},
  };
  auto layoutFrom = [&](const Side &side, ScaleSource source) {
    ScaleLayout layout = layoutOf({side.mn, side.k}, source, side.order, side.alignBytes);
    layout.type = side.type;
    layout.packing = side.packing;
    if (side.mnPhase != 0 || side.kPhase != 0)
      layout.phase = {side.mnPhase, side.kPhase};
    return layout;
  };
  // Grouped, and masked, whose activations have a dimension more.
  auto withExperts = [&](ScaleLayout layout) {
    layout.granule.insert(layout.granule.begin(), Granule::of(1));
    if (!layout.phase.empty())
      layout.phase.insert(layout.phase.begin(), 0);
    return layout;
  };
  const ElementType outs[] = {ElementType::BF16, ElementType::F32};
  int turn = 0;
  for (const Layout &row : table)
    for (Dispatch dispatch : {Dispatch::Grouped, Dispatch::Masked}) {
      NamedLayout x = {"", layoutFrom(row.x, ScaleSource::Dynamic)};
      NamedLayout w = {"", withExperts(layoutFrom(row.w, ScaleSource::Static))};
      if (dispatch == Dispatch::Masked)
        x.layout = withExperts(x.layout);
      w.layout.parts = row.parts;
      w.layout.interleaved = row.isInterleaved;
      Spec spec = specOf(dispatch, w, x, outs[(turn++ + 1) / 2 % 2], ragged);
      // One of each way that scales take, under the memory checker.
      bool isQuick = dispatch == Dispatch::Grouped &&
                     (row.name == std::string("mx") || row.name == std::string("words-expanded") ||
                      row.name == std::string("inside-apart"));
      add(entries, nameOf(spec, row.name, "scales"), isQuick ? "matrix quick" : "matrix", spec);
    }
}

/// Rows in any order, with ids of their own or through a map; activations that the launch
/// quantizes, in every dispatch.
void addBatched(std::vector<BundleEntry> &entries) {
  std::vector<NamedLayout> x = activationLayouts(Dispatch::Batched),
                           w = weightLayouts(Dispatch::Batched);
  const NamedLayout &token = x[2], &group = x[3], &channel = w[2], &block = w[3];
  struct Row {
    const NamedLayout &w, &x;
    ElementType out;
    Extents extents;
    int64_t map;
    bool isQuick;
  };
  const Row rows[] = {{block, group, ElementType::BF16, ragged, 0, true},
                      {channel, token, ElementType::F32, ragged, 9, true},
                      {block, group, ElementType::F16, aligned, 6, false},
                      {block, token, ElementType::BF16, {256, 192, 272}, 300, false}};
  for (const Row &row : rows) {
    Spec spec = specOf(Dispatch::Batched, row.w, row.x, row.out, row.extents);
    spec.expertMapSize = row.map;
    std::string name = nameOf(spec, row.w.name, row.x.name) + (row.map ? ".map" : "");
    add(entries, name, row.isQuick ? "matrix quick" : "matrix", spec);
  }
  constexpr ElementType sources[] = {ElementType::BF16, ElementType::F16, ElementType::F32};
  int turn = 0;
  for (Dispatch dispatch :
       {Dispatch::Batched, Dispatch::Grouped, Dispatch::Masked, Dispatch::Eager}) {
    std::vector<NamedLayout> activations = activationLayouts(dispatch),
                             weights = weightLayouts(dispatch);
    for (int layout : {2, 3}) { // a scale a token, a scale a group
      Spec spec = specOf(dispatch, weights.back(), activations[size_t(layout)], ElementType::BF16,
                         turn % 2 ? aligned : ragged);
      spec.quantizeFrom = sources[turn++ % 3];
      std::string name =
          fmt::format("{}.from-{}", nameOf(spec, weights.back().name, activations[layout].name),
                      elementTypeName(*spec.quantizeFrom));
      add(entries, name, layout == 3 ? "matrix quick" : "matrix", spec);
    }
  }
}

/// What a decode step of DeepSeek-V3 launches on one of eight ranks, for speed.
void addDecode(std::vector<BundleEntry> &entries) {
  NamedLayout w = weightLayouts(Dispatch::Batched)[3], x = activationLayouts(Dispatch::Batched)[3];
  const std::pair<const char *, Extents> projections[] = {{"gate_up", {32, 4096, 7168}},
                                                          {"down", {32, 7168, 2048}}};
  for (const auto &[name, extents] : projections) {
    Spec spec = specOf(Dispatch::Batched, w, x, ElementType::BF16, extents);
    add(entries, fmt::format("decode.{}", name), "decode", spec);
    spec.quantizeFrom = ElementType::BF16;
    add(entries, fmt::format("decode.{}.from-bf16", name), "decode", spec);
  }
}

/// Both fp8 types on both sides; gate and up as parts.
void addTypes(std::vector<BundleEntry> &entries) {
  std::vector<NamedLayout> x = activationLayouts(Dispatch::Grouped),
                           w = weightLayouts(Dispatch::Grouped);
  constexpr ElementType e4m3 = ElementType::F8E4M3FN, e5m2 = ElementType::F8E5M2;
  const std::pair<ElementType, ElementType> types[] = {{e5m2, e4m3}, {e4m3, e5m2}, {e5m2, e5m2}};
  for (const auto &[xType, wType] : types)
    for (int layout : {2, 3}) {
      const NamedLayout &weights = w[size_t(layout)], &activations = x[layout == 2 ? 2 : 4];
      ElementType out = layout == 2 ? ElementType::F32 : ElementType::BF16;
      Spec spec = specOf(Dispatch::Grouped, weights, activations, out, ragged);
      spec.xType = xType;
      spec.wType = wType;
      add(entries,
          fmt::format("{}.{}-{}", nameOf(spec, weights.name, activations.name),
                      xType == e5m2 ? "e5m2" : "e4m3", wType == e5m2 ? "e5m2" : "e4m3"),
          "matrix", spec);
    }
  for (int layout : {2, 3}) {
    NamedLayout weights = w[size_t(layout)];
    weights.layout.parts = 2;
    const NamedLayout &activations = x[layout == 2 ? 2 : 4];
    Spec spec = specOf(Dispatch::Grouped, weights, activations, ElementType::BF16, aligned);
    add(entries, nameOf(spec, weights.name, activations.name) + ".parts2", "matrix", spec);
  }
}

/// Kernels that differ in something other than the layout.
void addOthers(std::vector<BundleEntry> &entries) {
  std::vector<NamedLayout> x = activationLayouts(Dispatch::Grouped),
                           w = weightLayouts(Dispatch::Grouped);
  const std::pair<NamedLayout, NamedLayout> unscaledAlongK[] = {{w[0], x[0]}, {w[2], x[2]}};
  for (const auto &[weights, activations] : unscaledAlongK)
    for (Extents extents : {aligned, ragged}) {
      Spec spec = specOf(Dispatch::Grouped, weights, activations, ElementType::BF16, extents);
      spec.accumulate = Accumulate::Fast;
      add(entries, nameOf(spec, weights.name, activations.name) + ".fast", "matrix", spec);
    }
  Spec untouched = specOf(Dispatch::Grouped, w[3], x[4], ElementType::BF16, ragged);
  untouched.skipped = Skipped::Untouched;
  add(entries, nameOf(untouched, w[3].name, x[4].name) + ".untouched", "matrix", untouched);
  // More experts than a warp, and than a warpgroup, has threads.
  const std::pair<NamedLayout, NamedLayout> manyLayouts[] = {{w[3], x[4]}, {w[2], x[2]}};
  for (const auto &[weights, activations] : manyLayouts) {
    Spec spec = specOf(Dispatch::Grouped, weights, activations, ElementType::BF16, {256, 192, 272});
    add(entries, nameOf(spec, weights.name, activations.name) + ".e256", "matrix many", spec);
  }
  addGranules(entries);
  addStorage(entries);
  addBatched(entries);
  addTypes(entries);
  addDecode(entries);
}

/// Kernels that cover every pair of values of the matrix of tests/pipeline that is legal together.
void addGenerated(std::vector<BundleEntry> &entries) {
  std::string problem;
  test::matrix::Census census = test::matrix::takeCensus(0, 53, problem);
  int index = 0;
  for (const test::matrix::Choice &choice : test::matrix::coveringSet(census.legal)) {
    Spec spec = test::matrix::specOf(choice);
    add(entries,
        fmt::format("generated.{}.{}{}", index++, dispatchName(spec.dispatch),
                    spec.quantizeFrom ? ".quantized" : ""),
        "matrix generated", spec);
  }
}

/// The plans of `large` in clusters along either side, on the extents of `small`: three narrow
/// tiles of columns, of which the last has no neighbour, or two wide ones.
void addClusters(std::vector<BundleEntry> &entries, TunedTable &table, const Spec &large,
                 const Spec &small, const std::string &name) {
  TunedSpec tuned = {canonicalText(small), {}};
  for (ClusterSide side : {ClusterSide::Columns, ClusterSide::Rows})
    for (const PlannedRange &range : planRanges(large, Target())) {
      const int64_t first = 100 * int64_t(tuned.ranges.size());
      KernelPlan plan = range.plan;
      plan.cluster = 2;
      plan.splitK = 1;
      plan.clusterSide = side;
      tuned.ranges.push_back({first, first + 99, first, plan, 0, 0});
    }
  tuned.ranges.back().maxRows = INT64_MAX;
  table.specs.push_back(tuned);
  add(entries, name + ".clusters", "matrix quick", small);
}

/// `small` under each of `plans`, texts that alter `base`.
void addPlans(std::vector<BundleEntry> &entries, TunedTable &table, const Spec &small,
              const std::string &name, const char *groups, const KernelPlan &base,
              std::initializer_list<const char *> plans) {
  TunedSpec tuned = {canonicalText(small), {}};
  for (const char *text : plans) {
    const int64_t first = 100 * int64_t(tuned.ranges.size());
    tuned.ranges.push_back({first, first + 99, first, *parsePlan(text, base), 0, 0});
  }
  tuned.ranges.back().maxRows = INT64_MAX;
  table.specs.push_back(tuned);
  add(entries, name, groups, small);
}

/// Plans that multiply the other way round, tiles of few rows and many, widths that fit and one for
/// all, results through shared memory and not.
void addSwapped(std::vector<BundleEntry> &entries, TunedTable &table, const Spec &small,
                const std::string &name, const char *groups) {
  KernelPlan base;
  base.swapOperands = true;
  addPlans(entries, table, small, name + ".swapped", groups, base,
           {"tileM=64,tileN=128,stages=8,fitRows=16,weightPolicy=evict_first",
            "tileM=128,tileN=128,stages=6,fitRows=32,unrollSlots=true",
            "tileM=192,tileN=128,fitRows=32,scheduler=static", "tileM=128,tileN=256,fitRows=64",
            "tileM=192,tileN=128,split=rows,store=direct"});
}

/// Plans whose last tiles take rows past whole ones.
void addTails(std::vector<BundleEntry> &entries, TunedTable &table, const Spec &small,
              const std::string &name, const char *groups) {
  addPlans(entries, table, small, name + ".tails", groups, KernelPlan(),
           {"tailRows=16,unrollSlots=true", "tailRows=8,scheduler=static,store=direct",
            "tileM=64,tailRows=24,tileN=128,stages=6", "tailRows=16,cluster=2,stages=3"});
}

/// Plans of which two blocks share an SM.
void addShared(std::vector<BundleEntry> &entries, TunedTable &table, const Spec &small,
               const std::string &name, const char *groups) {
  KernelPlan base;
  base.blocksPerSm = 2;
  base.warpgroups = 1;
  base.consumerRegs = 216;
  addPlans(entries, table, small, name + ".shared", groups, base,
           {"tileM=128,tileN=128,stages=3,unrollSlots=true",
            "tileM=64,tileN=128,stages=4,scheduler=static,weightPolicy=evict_first",
            "tileM=64,tileN=64,stages=5,specializeWarps=false"});
}

/// Plans whose clusters share the steps along K of one tile.
void addSplit(std::vector<BundleEntry> &entries, TunedTable &table, const Spec &small,
              const std::string &name, const char *groups) {
  KernelPlan base;
  base.tileM = 64;
  addPlans(entries, table, small, name + ".split", groups, base,
           {"splitK=2,tileN=128,stages=4",
            "splitK=4,tileN=64,warpgroups=1,stages=6,scheduler=static",
            "splitK=2,tileN=256,stages=3,store=direct",
            "splitK=2,tileN=128,stages=4,swapOperands=true,fitRows=16"});
}

/// What kernels of the matrix are too small for: every plan that large ones are given, on small
/// extents. Enters into `table` which plans those are.
void addFamilies(std::vector<BundleEntry> &entries, TunedTable &table) {
  const Target target;
  table.arch = target.arch;
  table.smCount = target.profile.smCount;
  for (Dispatch dispatch : {Dispatch::Grouped, Dispatch::Masked, Dispatch::Batched}) {
    const bool isBatched = dispatch == Dispatch::Batched;
    const NamedLayout w = weightLayouts(dispatch)[3],
                      x = activationLayouts(dispatch)[isBatched ? 3 : 4];
    Spec large = specOf(dispatch, w, x, ElementType::BF16, {256, 4096, 7168});
    Spec small = specOf(dispatch, w, x, ElementType::BF16, {7, 392, 720});
    TunedSpec tuned = {canonicalText(small), {}};
    int64_t first = 0;
    for (const PlannedRange &range : planRanges(large, target)) {
      const bool isLast = range.maxRows == INT64_MAX;
      tuned.ranges.push_back({first, isLast ? INT64_MAX : first + 99, first, range.plan, 0, 0});
      first += 100;
    }
    table.specs.push_back(tuned);
    add(entries, nameOf(small, w.name, x.name) + ".families",
        dispatch == Dispatch::Grouped ? "matrix quick" : "matrix", small);
    addSwapped(entries, table, specOf(dispatch, w, x, ElementType::BF16, {5, 456, 720}),
               nameOf(small, w.name, x.name),
               dispatch == Dispatch::Grouped ? "matrix quick" : "matrix");
    addShared(entries, table, specOf(dispatch, w, x, ElementType::BF16, {5, 584, 720}),
              nameOf(small, w.name, x.name),
              dispatch == Dispatch::Grouped ? "matrix quick" : "matrix");
    addSplit(entries, table, specOf(dispatch, w, x, ElementType::BF16, {5, 648, 720}),
             nameOf(small, w.name, x.name),
             dispatch == Dispatch::Grouped ? "matrix quick" : "matrix");
    if (!isBatched)
      addTails(entries, table, specOf(dispatch, w, x, ElementType::BF16, {5, 520, 720}),
               nameOf(small, w.name, x.name),
               dispatch == Dispatch::Grouped ? "matrix quick" : "matrix");
    if (!isBatched)
      addClusters(entries, table, large, specOf(dispatch, w, x, ElementType::BF16, {6, 328, 720}),
                  nameOf(small, w.name, x.name));
  }
}

/// Kernels of launch tests alone: checked ones, tensors past 2^31 elements; 1024 experts.
void addEdges(std::vector<BundleEntry> &entries) {
  for (BundleEntry &entry : entries)
    if (entry.name == "grouped.w-block.x-group-mn.bf16.328x720" ||
        entry.name == "grouped.w-channel.x-token.bf16.328x720")
      entry.groups += " checked";
  std::vector<NamedLayout> x = activationLayouts(Dispatch::Grouped),
                           w = weightLayouts(Dispatch::Grouped);
  add(entries, "wide.rows", "wide",
      specOf(Dispatch::Grouped, w[2], x[2], ElementType::BF16, {2, 2048, 2048}));
  add(entries, "wide.experts", "wide",
      specOf(Dispatch::Grouped, w[3], x[4], ElementType::BF16, {512, 2048, 4096}));
  Spec spec = specOf(Dispatch::Grouped, w[2], x[2], ElementType::BF16, {1024, 64, 144});
  add(entries, nameOf(spec, w[2].name, x[2].name) + ".e1024", "matrix many", spec);
}

Result<void> addCatalogue(std::vector<BundleEntry> &entries, const std::string &folder) {
  std::vector<std::filesystem::path> files;
  std::error_code problem;
  for (const auto &file : std::filesystem::directory_iterator(folder, problem))
    if (file.path().extension() == ".mlir")
      files.push_back(file.path());
  if (problem || files.empty())
    return Error{ErrorCode::NotFound, fmt::format("{}: no .mlir files", folder), {}};
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path &file : files) {
    std::ifstream in(file);
    std::stringstream text;
    text << in.rdbuf();
    Result<Spec> spec = parseMlir(text.str(), file.string(), "", [](const std::string &diagnostic) {
      std::fputs(diagnostic.c_str(), stderr);
    });
    if (!spec)
      return spec.error();
    bool isGemm = spec->computation == Computation::Gemm;
    entries.push_back({file.stem().string(), isGemm ? "catalogue" : "quantize-speed quick", *spec});
  }
  return {};
}

/// Whether a quick entry does little that others do not: the light group, which runs on the
/// emulator too, goes without. tests/pipeline runs every kind there, and every family of plans.
bool resemblesAnother(const std::string &name) {
  for (const char *part : {"w-tensor", "w-expert", "words-expanded", "inside-apart", "mx-words",
                           "token-f32", "eager.w-block.x-group-mn", "512x1024.from-bf16",
                           "512x1024.from-f32", "batched.w-block.x-group.bf16.512"})
    if (name.find(part) != std::string::npos)
      return true;
  return false;
}

} // namespace

Result<BundleSpecs> bundleSpecs(const std::string &kernels) {
  BundleSpecs specs;
  std::vector<BundleEntry> &entries = specs.entries;
  // The catalogue first: its kernels take longest.
  if (Result<void> added = addCatalogue(entries, kernels); !added)
    return added.error();
  addMatrix(entries, Dispatch::Grouped);
  addMatrix(entries, Dispatch::Eager);
  addMatrix(entries, Dispatch::Masked);
  addOthers(entries);
  addGenerated(entries);
  addEdges(entries);
  for (const QuantizeSpec &quantization : quantizeSpecs())
    add(entries, quantization.name, quantization.isQuick ? "quantize quick" : "quantize",
        quantization.spec);
  for (BundleEntry &entry : entries)
    if (entry.groups.find("quick") != std::string::npos && !resemblesAnother(entry.name))
      entry.groups += " light";
  addFamilies(entries, specs.families);
  return specs;
}

} // namespace moejit::gpu
