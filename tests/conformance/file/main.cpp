#include <memory>
#include <string>
#include <vector>

#include <dlock/conformance/suite.hpp>

#include "file/file_fixture.hpp"

int main(int argc, char** argv) {
  namespace conformance = dlock::conformance;
  conformance::add_subject(
      {.name = "file",
       .make = [] { return std::make_unique<conformance::FileFixture>(); },
       .client_tests = false,
       .spaces = {dlock::Space::lock, dlock::Space::read_write, dlock::Space::semaphore, dlock::Space::election},
       .untested = std::vector<std::string>()});
  return conformance::run(argc, argv);
}
