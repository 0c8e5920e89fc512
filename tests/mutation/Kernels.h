// The kernels whose faults are proved to be found: one of each family of plans, layouts and
// dispatch forms.
#pragma once

#include "tests/mutation/Campaign.h"

#include <string>
#include <vector>

namespace moejit::mutation {

/// Names, in a fixed order.
const std::vector<std::string> &subjectNames();
/// Builds the kernel `name` and the launches that try it; `golden` is the file of the kernel in
/// tests/golden. Needs a running doctest case.
Subject makeSubject(const std::string &name, const std::string &golden);

} // namespace moejit::mutation
