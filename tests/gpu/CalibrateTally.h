// What two outputs of one launch have in common, element by element, and the tables made of it.
// Launches nothing.
#pragma once

#include "runtime/Spec.h"
#include "tests/gpu/CalibrateSums.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace moejit::gpu {

/// Sums over the launches of one family.
struct Tally {
  int64_t launches = 0;
  int64_t elements = 0;
  int64_t equal = 0;     ///< bit for bit, or both NaN
  int64_t nanBits = 0;   ///< of `equal`: NaN of another sign or payload
  double worstRatio = 0; ///< |GPU - emulator| / bound of docs/numerics.md, where there is a bound
  int64_t worstUlps = 0; ///< units in the last place of the output type; 0 where there are none
  int64_t modelElements = 0, modelEqual = 0; ///< GPU beside the model of docs/numerics.md
  std::string first;                         ///< the first difference, or why there was no launch
  int64_t failures = 0;                      ///< launches that ended in an error on either side

  void add(const Tally &other);
  bool isEqual() const { return equal == elements && failures == 0; }
};

/// Which table a family stands in, and what is asked of it.
enum class Section {
  Specified, ///< every bit is specified: all must be equal
  Exact,     ///< sums that the tensor cores give exactly: all must be equal
  Random     ///< within twice the bound, as each side may be off by it
};

/// Tallies by section and family. Thread-safe.
class Tallies {
public:
  void add(Section section, const std::string &family, const Tally &tally);
  std::map<std::pair<Section, std::string>, Tally> all() const;
  /// Families that do not do what their section asks.
  std::vector<std::string> failures() const;

private:
  mutable std::mutex mutex;
  std::map<std::pair<Section, std::string>, Tally> sums;
};

/// Tallies `count` elements of `type`: fp8 codes, bf16, f16, f32; other types are compared as
/// bytes. `bounds` is empty, or has an entry for each element. `place` names element i for people.
struct Elements {
  ElementType type = ElementType::I32;
  const uint8_t *gpu = nullptr, *emulator = nullptr;
  int64_t count = 0;
};
void compareElements(const Elements &elements, const double *bounds, const std::string &place,
                     Tally &tally);
/// Tallies bytes: everything that is no number.
void compareBytes(const uint8_t *gpu, const uint8_t *emulator, int64_t count,
                  const std::string &place, Tally &tally);

/// A row of the table of probes: what each of three sums does with a small term.
struct ProbeRow {
  std::string name;
  int exactTo[3] = {};   ///< GPU, emulator, model: the sum is exact up to this shift
  int noticedTo[3] = {}; ///< and differs from that of the large terms alone up to this one
  std::string lostSum;   ///< what the GPU gives at the first shift that is not exact
};

/// What besides tallies stands on the page.
struct PageParts {
  std::string where;  ///< device and host, in a line
  std::string notRun; ///< what was left out, or nothing
  std::vector<ProbeRow> probes;
  std::vector<SumScore> sums; ///< best first; the page has the first few, and the model of
                              ///< docs/numerics.md
};
std::string calibrationPage(const std::map<std::pair<Section, std::string>, Tally> &tallies,
                            const PageParts &parts);

} // namespace moejit::gpu
