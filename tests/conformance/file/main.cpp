#include <memory>

#include <dlock/conformance/suite.hpp>

#include "file/file_fixture.hpp"

int main(int argc, char** argv) {
  namespace conformance = dlock::conformance;
  conformance::add_subject(
      {.name = "file", .make = [] { return std::make_unique<conformance::FileFixture>(); }, .client_tests = false});
  return conformance::run(argc, argv);
}
