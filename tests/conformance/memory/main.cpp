#include <memory>
#include <string>
#include <vector>

#include <dlock/conformance/suite.hpp>

#include "memory/memory_fixture.hpp"

int main(int argc, char** argv) {
  namespace conformance = dlock::conformance;
  for (const std::string strategy : {"queue", "watch", "poll"}) {
    conformance::add_subject({.name = "memory_" + strategy,
                              .make = [strategy] { return std::make_unique<conformance::MemoryFixture>(strategy); },
                              .client_tests = strategy == "queue",
                              .kinds = {dlock::LockKind::lock, dlock::LockKind::read_write, dlock::LockKind::semaphore,
                                        dlock::LockKind::election},
                              .untested = std::vector<std::string>()});
  }
  return conformance::run(argc, argv);
}
