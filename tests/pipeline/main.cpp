// The test program's entry point; --matrix-report runs the whole matrix instead of the tests.
#include <doctest/doctest.h>

#include "tests/pipeline/MatrixReport.h"

#include <string_view>

int main(int argc, char **argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--matrix-report")
    return moejit::test::matrix::runReport(argc, argv);
  return doctest::Context(argc, argv).run();
}
