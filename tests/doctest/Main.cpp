// The entry point of test programs that bring none of their own.
#include <doctest/doctest.h>

int main(int argc, char **argv) { return doctest::Context(argc, argv).run(); }
