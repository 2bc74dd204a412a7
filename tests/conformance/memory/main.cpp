#include <memory>
#include <string>
#include <vector>

#include <dlock/conformance/suite.hpp>

#include "memory/memory_fixture.hpp"

int main(int argc, char** argv) {
  namespace conformance = dlock::conformance;
  for (const std::string strategy : {"queue", "watch", "poll"}) {
    conformance::add_subject(
        {.name = "memory_" + strategy,
         .make = [strategy] { return std::make_unique<conformance::MemoryFixture>(strategy); },
         .client_tests = strategy == "queue",
         .spaces = {dlock::Space::lock, dlock::Space::read_write, dlock::Space::semaphore, dlock::Space::election},
         .untested = std::vector<std::string>()});
  }
  return conformance::run(argc, argv);
}
