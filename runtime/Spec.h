// What one expert GEMM is: dispatch form, types, extents and the layout of its scales. Knows
// nothing of schedules, MLIR or devices. The canonical text of a Spec is stable: keys of cached
// kernels are made of it.
#pragma once

#include "runtime/Result.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace moejit {

enum class ElementType { F8E4M3FN, F8E5M2, F8E8M0FNU, BF16, F16, F32, I32 };

/// MLIR's spelling of `type`, such as "f8E4M3FN".
const char *elementTypeName(ElementType type);
std::optional<ElementType> parseElementType(std::string_view name);
/// Bytes of one element.
int64_t elementBytes(ElementType type);

/// Most rows of a batched launch: every block sorts them in shared memory.
inline constexpr int64_t batchedRowLimit = 4096;

/// Shared memory of a block that the sums of other blocks pass through, at most, and where a thread
/// has room for one vector of each.
inline constexpr int64_t splitKBufferBytes = 48 << 10;

/// How a row finds its expert (DESIGN "Three small dialects").
enum class Dispatch { Eager, Batched, Grouped, Masked };
const char *dispatchName(Dispatch dispatch);
std::optional<Dispatch> parseDispatch(std::string_view name);

/// `Static`: calibrated ahead and stored in the checkpoint. `Dynamic`: computed from the live
/// activations.
enum class ScaleSource { Static, Dynamic };
const char *scaleSourceName(ScaleSource source);
std::optional<ScaleSource> parseScaleSource(std::string_view name);
/// Storage order of a scale tensor: `RowMajor` keeps the tensor's own order; `MnMajor` has the row
/// (or N) index contiguous, the K index outermost of the last two.
enum class ScaleOrder { RowMajor, MnMajor };
const char *scaleOrderName(ScaleOrder order);
std::optional<ScaleOrder> parseScaleOrder(std::string_view name);
/// exact: promote to fp32 at least every 128 of K. fast: leave sums in the tensor core's own
/// accumulator.
enum class Accumulate { Exact, Fast };
const char *accumulateName(Accumulate accumulate);
std::optional<Accumulate> parseAccumulate(std::string_view name);
/// What happens to rows no expert owns.
enum class Skipped { Zeroed, Untouched };
const char *skippedName(Skipped skipped);
std::optional<Skipped> parseSkipped(std::string_view name);

/// The extent one scale covers on one dimension of the data.
struct Granule {
  enum class Kind { Extent, Whole, Expert };
  Kind kind = Kind::Whole;
  int64_t extent = 0; ///< elements, for Kind::Extent

  static Granule of(int64_t extent) { return {Kind::Extent, extent}; }
  static Granule whole() { return {Kind::Whole, 0}; }
  static Granule expert() { return {Kind::Expert, 0}; }
  bool operator==(const Granule &) const = default;
};

/// What one launch computes. `Gemm`: an expert GEMM. `Quantize`: fp8 data and scales of plain
/// values.
enum class Computation { Gemm, Quantize };
const char *computationName(Computation computation);
std::optional<Computation> parseComputation(std::string_view name);

/// The layout of the scales of one data tensor; one granule entry for each dimension of the data.
struct ScaleLayout {
  std::vector<Granule> granule;
  ElementType type = ElementType::F32; ///< f32 or f8E8M0FNU
  ScaleSource source = ScaleSource::Static;
  ScaleOrder order = ScaleOrder::RowMajor;
  int64_t alignBytes = 0; ///< every stride of the scale tensor is a multiple of this; 0: packed
  int64_t packing = 1;    ///< scales in one stored word: 4 = four ue8m0 in an i32
  int64_t parts =
      1; ///< stacked parts of N (gate and up), each with its own ceil-divided scale rows
  bool interleaved = false; ///< the parts alternate row by row instead of being stacked
  std::vector<int64_t> phase =
      {}; ///< per dimension, elements inside the first granule at which data starts; empty: 0
  bool operator==(const ScaleLayout &) const = default;

  bool
  isPerTensor() const; ///< one scale for everything: every granule is `*`, and there are no parts
  /// Extent of one scale along K (the last dimension), or 0 when scales do not vary along K.
  int64_t kGranule() const;
  bool hasPhase() const; ///< some phase is not 0
  /// The phase of dimension `dimension`; 0 where none is given.
  int64_t phaseAt(size_t dimension) const;
  /// The phase of K, the last dimension.
  int64_t kPhase() const { return granule.empty() ? 0 : phaseAt(granule.size() - 1); }
  /// What one scale covers, as text: "[1, 128]", "[expert, *]".
  std::string granuleText() const;
  /// Type of one stored word: `type`, or i32 for four packed f8E8M0FNU.
  ElementType storedType() const;
};

/// One launch. Gemm: y[S, N] = x[S, K] · w[e(row), N, K]^T, both sides scaled. Quantize: y[S, K] of
/// xType, with scales of layout xScales, from x[S, K] of quantizeFrom; only those fields and k are
/// used then, all others keep their defaults and dispatch is Eager (see quantizeSpec).
struct Spec {
  Computation computation = Computation::Gemm;
  Dispatch dispatch = Dispatch::Grouped;
  int64_t numExperts = 1; ///< E, local experts; 1 for eager
  int64_t n = 0;
  int64_t k = 0;
  int64_t maxRows = 0; ///< Mmax of masked; 0 elsewhere
  ElementType xType = ElementType::F8E4M3FN;
  /// The type x is given in where the launch itself quantizes it to xType (bf16, f16 or f32); none:
  /// x is given in xType, with its scales.
  std::optional<ElementType> quantizeFrom = std::nullopt;
  ElementType wType = ElementType::F8E4M3FN;
  ElementType outType = ElementType::BF16;
  ScaleLayout xScales; ///< granule has two entries [S, K]; three [E, Mmax, K] for masked
  ScaleLayout wScales; ///< granule has three entries [E, N, K]; two for eager
  Accumulate accumulate = Accumulate::Exact;
  Skipped skipped = Skipped::Zeroed;
  /// batched: global experts, the length of the i32 global→local map; 0: ids are local, no map; -1:
  /// a map whose length is not static (which a rule refuses).
  int64_t expertMapSize = 0;
  bool operator==(const Spec &) const = default;
};

/// The Spec of a launch that quantizes [S, k] of type `from` to `to` with scales of layout
/// `scales`.
Spec quantizeSpec(int64_t k, ElementType from, ElementType to, ScaleLayout scales);

/// The GEMM that a launch with quantizeFrom runs on what its own quantization made of x: x is given
/// in xType, its scales row-major, packed, a word each. Other specs stay as they are.
Spec quantizedGemm(const Spec &spec);
/// The layout of those scales, where `scales` is that of the spec.
ScaleLayout quantizedScales(ScaleLayout scales);

/// The one spelling of `spec`: every field, fixed order, no spaces that could vary. Equal specs
/// give equal text; a phase that is 0 everywhere is spelled as an empty one.
std::string canonicalText(const Spec &spec);
/// Reads what canonicalText wrote, and nothing else. Errors: ParseError with position and what was
/// expected.
Result<Spec> parseSpec(std::string_view text);

/// Extents of the stored scale tensor of data with extents `dataShape` (-1 = not static, which
/// stays -1), one for each dimension of the data, by ceil-division by the granule. A `*` dimension
/// gives extent 1; `expert` gives numExperts.
/// * parts: N (the last dimension but one) is divided by `parts`, each part is ceil-divided on its
/// own, and their
///   scale rows are stacked, or alternate as the data rows do where those are interleaved; a `*`
///   gives one scale a part.
/// * phase: counted in front of the extent, in every part.
/// * packing: the last dimension (K) counts words of `packing` scales.
/// * mn_major: the last two extents are swapped, as they are in memory.
/// Needs one granule entry for each dimension (else the answer is empty); an extent below 1 gives
/// 0.
std::vector<int64_t> scaleShape(const ScaleLayout &layout, const std::vector<int64_t> &dataShape,
                                int64_t numExperts);
/// The same in `shape`, of the extents of the data that lie there; false where it would be empty.
bool makeScaleShape(const ScaleLayout &layout, std::span<int64_t> shape, int64_t numExperts);
/// Extents of x and w of `spec`, -1 for a row count: [S, K] or [E, Mmax, K], and [E, N, K] or [N,
/// K].
std::vector<int64_t> xShape(const Spec &spec);
std::vector<int64_t> wShape(const Spec &spec);

} // namespace moejit
