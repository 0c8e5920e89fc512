// --routing: how rows are shared among experts.
#pragma once

#include "runtime/Spec.h"
#include "tests/oracle/Routing.h"

#include <string>

namespace moejit::tool {

/// "uniform, skewed, exact, one-expert, empty".
std::string routingNames();

/// The routing that `text` names, for `rows` rows of `spec`: one of routingNames(), or a file whose
/// name ends in .json or has a slash. `exact` gives every expert the same number of rows, the first
/// ones one more where they do not divide. Errors: InvalidArgument, those of readFile.
Result<oracle::Routing> readRouting(const std::string &text, const Spec &spec, int64_t rows);

} // namespace moejit::tool
