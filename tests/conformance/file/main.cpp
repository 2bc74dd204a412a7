#include <memory>
#include <string>
#include <vector>

#include <dlock/conformance/suite.hpp>

#include "file/file_fixture.hpp"

int main(int argc, char** argv) {
  namespace conformance = dlock::conformance;
  conformance::add_subject({.name = "file",
                            .make = [] { return std::make_unique<conformance::FileFixture>(); },
                            .client_tests = false,
                            .kinds = {dlock::LockKind::lock, dlock::LockKind::read_write, dlock::LockKind::semaphore,
                                      dlock::LockKind::election},
                            .untested = std::vector<std::string>()});
  return conformance::run(argc, argv);
}
