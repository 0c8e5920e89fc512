// Scale shapes by ceil-division and element → scale indices.
#include "tests/oracle/ScaleGeometry.h"

#include "tests/oracle/Fp8.h"

#include <algorithm>
#include <cassert>

namespace moejit::oracle {

namespace {

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t phaseOf(const ScaleLayout &layout, size_t dimension) {
  return dimension < layout.phase.size() ? layout.phase[dimension] : 0;
}

/// Lays the axes out in memory; `stride` 0 takes the least stride that `layout` allows.
/// `expertsAreRows`: one scale an expert stands where others have one a row.
void setStrides(ScaleGeometry &geometry, const ScaleLayout &layout, int64_t stride,
                bool expertsAreRows = false) {
  bool mnMajor = layout.order == ScaleOrder::MnMajor;
  int64_t mn = expertsAreRows ? geometry.expert.count : geometry.mn.count;
  int64_t packing = layout.packing, words = ceilDiv(geometry.k.count, packing);
  int64_t inner = mnMajor ? mn : words;
  int64_t outer = mnMajor ? words : mn;
  if (stride == 0) {
    int64_t step = std::max<int64_t>(1, layout.alignBytes / (bytesOf(layout.type) * packing));
    stride = outer > 1 || geometry.expert.count > 1 ? ceilDiv(inner, step) * step : inner;
  }
  assert(stride >= inner);
  geometry.packing = packing;
  geometry.stride = stride;
  int64_t mnStride = (mnMajor ? 1 : stride) * packing;
  geometry.kStride = (mnMajor ? stride : 1) * packing;
  geometry.mnStride = mnStride;
  geometry.expertStride = expertsAreRows ? mnStride : stride * outer * packing;
  geometry.matrices = expertsAreRows ? 1 : geometry.expert.count;
  geometry.matrixSize = stride * outer * packing;
}

} // namespace

ScaleAxis ScaleAxis::make(Granule granule, int64_t extent, int64_t phase, int64_t parts,
                          bool interleaved) {
  assert(extent % parts == 0 && "parts are of one size");
  ScaleAxis axis;
  axis.granule = granule.kind == Granule::Kind::Extent ? granule.extent : 0;
  axis.phase = phase;
  axis.parts = parts;
  axis.partExtent = extent / parts;
  axis.interleaved = interleaved;
  axis.count = parts * (axis.granule ? ceilDiv(phase + axis.partExtent, axis.granule) : 1);
  return axis;
}

int64_t ScaleAxis::index(int64_t coordinate) const {
  if (period)
    coordinate %= period;
  if (parts == 1)
    return granule ? (coordinate + phase) / granule : 0;
  int64_t part = interleaved ? coordinate % parts : coordinate / partExtent;
  int64_t inside = interleaved ? coordinate / parts : coordinate % partExtent;
  int64_t local = granule ? (inside + phase) / granule : 0;
  return interleaved ? local * parts + part : part * (count / parts) + local;
}

ScaleGeometry ScaleGeometry::ofX(const Spec &spec, int64_t rows, int64_t stride) {
  const ScaleLayout &layout = spec.xScales;
  size_t first = layout.granule.size() - 2; // index of the row entry
  assert(layout.granule.size() == (spec.dispatch == Dispatch::Masked ? 3 : 2));
  ScaleGeometry geometry;
  if (first == 1) {
    geometry.expert = ScaleAxis::make(layout.granule[0], spec.numExperts, phaseOf(layout, 0));
    geometry.mn = ScaleAxis::make(layout.granule[1], spec.maxRows, phaseOf(layout, 1));
    geometry.mn.period = spec.maxRows;
  } else if (layout.granule[0].kind == Granule::Kind::Expert) {
    geometry.expert = ScaleAxis::make(Granule::of(1), spec.numExperts);
  } else {
    geometry.mn = ScaleAxis::make(layout.granule[0], rows, phaseOf(layout, 0));
  }
  geometry.k = ScaleAxis::make(layout.granule[first + 1], spec.k, phaseOf(layout, first + 1));
  setStrides(geometry, layout, stride,
             first == 0 && layout.granule[0].kind == Granule::Kind::Expert);
  return geometry;
}

ScaleGeometry ScaleGeometry::ofW(const Spec &spec) {
  const ScaleLayout &layout = spec.wScales;
  assert(layout.granule.size() == 2 || layout.granule.size() == 3);
  size_t first = layout.granule.size() - 2; // index of the N entry
  ScaleGeometry geometry;
  if (first == 1) {
    bool perExpert = layout.granule[0].kind == Granule::Kind::Expert;
    geometry.expert = ScaleAxis::make(perExpert ? Granule::of(1) : layout.granule[0],
                                      spec.numExperts, phaseOf(layout, 0));
  }
  geometry.mn = ScaleAxis::make(layout.granule[first], spec.n, phaseOf(layout, first), layout.parts,
                                layout.interleaved);
  geometry.k = ScaleAxis::make(layout.granule[first + 1], spec.k, phaseOf(layout, first + 1));
  setStrides(geometry, layout, 0);
  return geometry;
}

int64_t ScaleGeometry::storedSize() const { return matrices * matrixSize; }

} // namespace moejit::oracle
