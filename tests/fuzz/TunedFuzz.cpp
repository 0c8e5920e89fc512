// Tables of measured plans.
#include "runtime/Tuned.h"
#include "tests/fuzz/Fuzz.h"

using namespace moejit;

const char *const fuzz::dictionary[] = {"\"format\": 1",
                                        "\"specs\": [",
                                        "\"ranges\": [",
                                        "\"minRows\": ",
                                        "\"maxRows\": ",
                                        "\"us\": ",
                                        "\"plan\": ",
                                        "\"spec\": ",
                                        "\\u0000",
                                        "\\ud800\\udc00",
                                        "9007199254740992",
                                        "sm_90a",
                                        "null",
                                        "true",
                                        "[]",
                                        "{}",
                                        nullptr};

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Result<TunedTable> table = parseTunedTable(fuzz::textOf(data, size));
  if (!table) {
    fuzz::require(table.error().code == ErrorCode::ParseError, "a refusal is a ParseError");
    return 0;
  }
  std::string json = tunedTableJson(*table);
  Result<TunedTable> again = parseTunedTable(json);
  fuzz::require(bool(again), "what is written can be read");
  fuzz::require(tunedTableJson(*again) == json, "what is written reads as it was");
  TunedTable merged = *table;
  fuzz::require(bool(mergeTuned(merged, *table)), "a table takes itself in");
  Target target;
  target.arch = table->arch;
  target.profile.smCount = table->smCount;
  for (const TunedSpec &tuned : table->specs) {
    Result<Spec> spec = parseSpec(tuned.spec);
    fuzz::require(bool(spec), "tables hold specs");
    PlannedRange all;
    all.maxRows = INT64_MAX;
    int64_t next = 0;
    for (const PlannedRange &range : withTuned({all}, *table, *spec, target)) {
      fuzz::require(range.minRows == next && range.maxRows >= next, "ranges follow");
      next = range.maxRows == INT64_MAX ? -1 : range.maxRows + 1;
    }
    fuzz::require(next == -1, "ranges cover every row count");
  }
  return 0;
}
