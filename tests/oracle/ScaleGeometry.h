// Where the scale of each data element lies in a stored scale tensor: granules, parts, phase,
// order, strides. Derived from Spec alone and on its own, so that it can disagree with the
// compiler's idea of a layout.
#pragma once

#include "runtime/Spec.h"

#include <cstdint>

namespace moejit::oracle {

/// Maps one coordinate of the data to one coordinate of the scale tensor.
struct ScaleAxis {
  int64_t granule = 0; ///< data elements of one scale; 0: all of them (of a part)
  int64_t phase = 0;   ///< how far inside its first granule the data starts
  int64_t parts = 1;
  int64_t partExtent = 0; ///< data elements of one part
  bool interleaved = false;
  int64_t count = 1;  ///< extent of the scale tensor on this axis
  int64_t period = 0; ///< coordinates are counted flat and repeat after this many (rows of masked
                      ///< x); 0: they do not

  static ScaleAxis make(Granule granule, int64_t extent, int64_t phase = 0, int64_t parts = 1,
                        bool interleaved = false);
  int64_t index(int64_t coordinate) const;
};

/// The stored scales of x [S, K] or w [E, N, K]: three axes and their strides. x has an expert axis
/// only when its rows are scaled per expert.
///
/// parts: the N rows are `parts` tensors of N/parts rows, each with its own ceil-divided scale rows
/// (a `*` granule gives one row a part). Stacked: the scale rows of part 0, then of part 1.
/// Interleaved: data row n belongs to part n % parts, and the scale rows alternate the same way.
///
/// packing: along K, so many scales lie in one stored word, the first in its lowest byte; rows, or
/// K words in mn_major order, are whole words. Positions and strides count scales all the same.
struct ScaleGeometry {
  ScaleAxis expert, mn, k;
  int64_t packing = 1;
  int64_t expertStride = 0, mnStride = 0, kStride = 0; ///< in scales; of K, from word to word
  int64_t stride = 0; ///< words between rows (row_major) or between words along K (mn_major)

  /// `stride`: as the member; 0 takes the least legal one.
  static ScaleGeometry ofX(const Spec &spec, int64_t rows, int64_t stride = 0);
  static ScaleGeometry ofW(const Spec &spec);

  /// Scales that are meant, and scales that are stored (padding between rows counted).
  int64_t logicalSize() const { return expert.count * mn.count * k.count; }
  int64_t storedSize() const;
  /// Position of one scale, by its indices on the three axes.
  int64_t position(int64_t e, int64_t mnIndex, int64_t kIndex) const {
    return e * expertStride + mnIndex * mnStride + kIndex / packing * kStride + kIndex % packing;
  }
  /// Position of the scale of data element (e, mn, k); `e` counts only where scales differ by
  /// expert.
  int64_t index(int64_t e, int64_t mnCoordinate, int64_t kCoordinate) const {
    return position(expert.index(e), mn.index(mnCoordinate), k.index(kCoordinate));
  }

  int64_t matrices = 1, matrixSize = 0; ///< [mn][k] matrices stored, and scales stored of each
};

} // namespace moejit::oracle
