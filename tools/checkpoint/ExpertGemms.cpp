// From a checkpoint and a split over ranks to the GEMMs of one rank, as Specs.
#include "tools/checkpoint/Checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace moejit::checkpoint {
namespace {

/// "1, 2, 4, 8": the divisors of `value` up to 64.
std::string divisorsText(int64_t value) {
  std::vector<int64_t> divisors;
  for (int64_t i = 1; i <= 64 && i <= value; ++i)
    if (value % i == 0)
      divisors.push_back(i);
  return fmt::format("{}", fmt::join(divisors, ", "));
}

/// Which part of an expert a rank has, in elements of I.
struct Shard {
  int64_t size = 0;
  /// First element inside a block of scales, along N of gate and up, along K of down.
  int64_t phase = 0;
  std::vector<int64_t> ranks;
};

/// The ranks of `tp`, together where they begin at the same place of a block of `block` elements.
/// 0: no blocks.
std::vector<Shard> shardsOf(int64_t intermediate, int64_t tp, int64_t block) {
  std::map<int64_t, Shard> byPhase;
  int64_t size = intermediate / tp;
  for (int64_t rank = 0; rank < tp; ++rank) {
    Shard &shard = byPhase[block > 0 ? rank * size % block : 0];
    shard.size = size;
    shard.phase = block > 0 ? rank * size % block : 0;
    shard.ranks.push_back(rank);
  }
  std::vector<Shard> shards;
  for (auto &[phase, shard] : byPhase)
    shards.push_back(std::move(shard));
  return shards;
}

enum class Side { Up, Down };

/// Builds the launches of one GEMM.
class LaunchBuilder {
public:
  LaunchBuilder(const Experts &experts, const Scheme &scheme, Side side, const Parallelism &split,
                const GemmOptions &options)
      : experts(experts), scheme(scheme), side(side), split(split), options(options) {}

  std::vector<ExpertLaunch> build() const {
    std::vector<ExpertLaunch> launches;
    int64_t block = scheme.weights != Strategy::Block ? 0
                    : side == Side::Up                ? scheme.blockN
                                                      : scheme.blockK;
    std::vector<Dispatch> dispatches = {Dispatch::Eager, Dispatch::Batched, Dispatch::Grouped};
    if (experts.isShared)
      dispatches = {Dispatch::Eager}; // one expert that all rows visit
    else if (options.maskedRows > 0)
      dispatches.push_back(Dispatch::Masked);
    for (const Shard &shard : shardsOf(experts.intermediate, split.tp, block))
      for (Dispatch dispatch : dispatches)
        for (Input input : {Input::Fp8, Input::Bf16}) {
          if (input == Input::Bf16 && scheme.source == ScaleSource::Static)
            continue;
          ExpertLaunch launch;
          launch.dispatch = dispatch;
          launch.input = input;
          launch.ranks = shard.ranks;
          launch.spec = specOf(shard, dispatch, input);
          launch.violations = checkSpec(launch.spec, options.target);
          launches.push_back(std::move(launch));
        }
    return launches;
  }

  int64_t n() const {
    int64_t part = experts.intermediate / split.tp;
    return side == Side::Down ? experts.input : experts.isGated ? 2 * part : part;
  }
  int64_t k() const { return side == Side::Down ? experts.intermediate / split.tp : experts.input; }
  int64_t count() const { return experts.isShared ? 1 : experts.count / split.ep; }

private:
  Spec specOf(const Shard &shard, Dispatch dispatch, Input input) const {
    Spec spec;
    spec.dispatch = dispatch;
    spec.numExperts = dispatch == Dispatch::Eager ? 1 : count();
    spec.n = n();
    spec.k = k();
    spec.maxRows = dispatch == Dispatch::Masked ? options.maskedRows : 0;
    spec.wType = scheme.weightType;
    if (input == Input::Bf16)
      spec.quantizeFrom = ElementType::BF16;
    // Ids of batched rows are global; with every expert here they are local too.
    if (dispatch == Dispatch::Batched && split.ep > 1 && !experts.isShared)
      spec.expertMapSize = experts.count;
    spec.xScales = xScales(shard, dispatch, input);
    spec.wScales = wScales(shard, dispatch);
    return spec;
  }

  ScaleLayout xScales(const Shard &shard, Dispatch dispatch, Input input) const {
    ScaleLayout layout;
    layout.source = scheme.source;
    bool isOfExpert = scheme.source == ScaleSource::Static && dispatch != Dispatch::Eager;
    bool isMasked = dispatch == Dispatch::Masked;
    bool isPerRow = scheme.activations != Strategy::Tensor;
    bool isGrouped = scheme.activations == Strategy::Group;
    layout.granule = {isPerRow                  ? Granule::of(1)
                      : isOfExpert && !isMasked ? Granule::expert()
                                                : Granule::whole(),
                      isGrouped ? Granule::of(scheme.group) : Granule::whole()};
    if (isMasked)
      layout.granule.insert(layout.granule.begin(),
                            isPerRow || isOfExpert ? Granule::of(1) : Granule::whole());
    if (!isGrouped)
      return layout;
    layout.type = scaleTypeOf();
    // The order bulk copies want, where the caller quantizes; a launch that quantizes keeps rows.
    if (input == Input::Fp8 && dispatch != Dispatch::Batched && layout.type == ElementType::F32) {
      layout.order = ScaleOrder::MnMajor;
      layout.alignBytes = 16;
    }
    // Groups of x begin with the rank's own columns; where that would put a boundary inside one
    // wgmma, they begin where the blocks of the weights do.
    if (side == Side::Down && shard.phase % 32 != 0 && shard.phase < scheme.group) {
      layout.phase.assign(layout.granule.size(), 0);
      layout.phase.back() = shard.phase;
    }
    return layout;
  }

  ScaleLayout wScales(const Shard &shard, Dispatch dispatch) const {
    ScaleLayout layout;
    layout.source = ScaleSource::Static;
    layout.type = scaleTypeOf();
    bool isBlock = scheme.weights == Strategy::Block;
    layout.granule = {Granule::of(1),
                      isBlock                               ? Granule::of(scheme.blockN)
                      : scheme.weights == Strategy::Channel ? Granule::of(1)
                                                            : Granule::whole(),
                      isBlock ? Granule::of(scheme.blockK) : Granule::whole()};
    // Gate and up have scales of their own: one each, or a last block each that is not whole.
    bool isStacked = side == Side::Up && experts.isGated;
    bool isRagged = isBlock && (shard.size % scheme.blockN != 0 || shard.phase != 0);
    if (isStacked && (scheme.weights == Strategy::Tensor || isRagged))
      layout.parts = 2;
    if (shard.phase != 0) {
      layout.phase = {0, 0, 0};
      layout.phase[side == Side::Up ? 1 : 2] = shard.phase;
    }
    if (dispatch == Dispatch::Eager) {
      layout.granule.erase(layout.granule.begin());
      if (!layout.phase.empty())
        layout.phase.erase(layout.phase.begin());
    }
    return layout;
  }

  /// Powers of two are f32 as well, exactly, and that is how Hopper's kernels take them; scales for
  /// 32 of K (MX) stay the bytes they are.
  ElementType scaleTypeOf() const {
    bool isMx = scheme.weights == Strategy::Block && scheme.blockK == 32;
    return isMx ? scheme.scaleType : ElementType::F32;
  }

  const Experts &experts;
  const Scheme &scheme;
  Side side;
  const Parallelism &split;
  const GemmOptions &options;
};

/// Why a scheme has no launches; empty when it has some.
std::string whyNone(const Scheme &scheme) {
  if (!scheme.isFp8)
    return fmt::format("not FP8: {}", scheme.name);
  bool isKnownWeight = scheme.weights == Strategy::Tensor || scheme.weights == Strategy::Channel ||
                       scheme.weights == Strategy::Block;
  if (!isKnownWeight)
    return fmt::format("weights of strategy \"{}\" have no layout of scales", scheme.weightText);
  bool isKnownActivation = scheme.activations == Strategy::Tensor ||
                           scheme.activations == Strategy::Token ||
                           scheme.activations == Strategy::Group;
  if (!isKnownActivation)
    return fmt::format("activations of strategy \"{}\" have no layout of scales",
                       scheme.activationText);
  return "";
}

} // namespace

Result<std::vector<ExpertGemm>> expertGemms(const Checkpoint &checkpoint, const Parallelism &split,
                                            const GemmOptions &options) {
  constexpr int64_t mostRanks = 1 << 16;
  if (split.tp < 1 || split.tp > mostRanks || split.ep < 1 || split.ep > mostRanks)
    return Error{
        ErrorCode::InvalidArgument,
        fmt::format("tp is {} and ep is {}, expected 1 to {} each", split.tp, split.ep, mostRanks),
        {}};
  if (checkpoint.routed.count > 0 && checkpoint.routed.count % split.ep != 0)
    return Error{
        ErrorCode::InvalidArgument,
        fmt::format("{} experts cannot be split over ep {}", checkpoint.routed.count, split.ep),
        {fmt::format("ep that divides them: {}", divisorsText(checkpoint.routed.count))}};
  std::vector<ExpertGemm> gemms;
  auto add = [&](const Experts &experts) -> Result<void> {
    if (experts.count == 0)
      return {};
    if (experts.intermediate % split.tp != 0)
      return Error{ErrorCode::InvalidArgument,
                   fmt::format("the {}intermediate size {} cannot be split over tp {}",
                               experts.isShared ? "shared experts' " : "", experts.intermediate,
                               split.tp),
                   {fmt::format("tp that divides it: {}", divisorsText(experts.intermediate))}};
    for (Side side : {Side::Up, Side::Down}) {
      const Scheme &scheme = side == Side::Up ? experts.up : experts.down;
      LaunchBuilder builder(experts, scheme, side, split, options);
      ExpertGemm gemm;
      gemm.projection = fmt::format("{}{}", experts.isShared ? "shared " : "",
                                    side == Side::Down ? "down"
                                    : experts.isGated  ? "gate_up"
                                                       : "up");
      gemm.n = builder.n();
      gemm.k = builder.k();
      gemm.experts = builder.count();
      gemm.scheme = scheme;
      gemm.why = whyNone(scheme);
      if (gemm.why.empty())
        gemm.launches = builder.build();
      gemms.push_back(std::move(gemm));
    }
    return {};
  };
  if (Result<void> added = add(checkpoint.routed); !added)
    return added.error();
  if (checkpoint.shared)
    if (Result<void> added = add(*checkpoint.shared); !added)
      return added.error();
  return gemms;
}

} // namespace moejit::checkpoint
