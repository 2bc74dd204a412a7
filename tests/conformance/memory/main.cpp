#include <memory>
#include <string>

#include <dlock/conformance/suite.hpp>

#include "memory/memory_fixture.hpp"

int main(int argc, char** argv) {
  namespace conformance = dlock::conformance;
  for (const std::string strategy : {"queue", "watch", "poll"}) {
    conformance::add_subject(
        {"memory_" + strategy, [strategy] { return std::make_unique<conformance::MemoryFixture>(strategy); }});
  }
  return conformance::run(argc, argv);
}
