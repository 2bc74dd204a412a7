#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dlock/conformance/suite.hpp>

#include "memory/memory_fixture.hpp"

int main(int argc, char** argv) {
  namespace conformance = dlock::conformance;
  using enum dlock::memory::Strategy;
  const auto add = [](std::string name, bool client_tests,
                      std::function<std::unique_ptr<conformance::Fixture>()> make) {
    conformance::add_subject({.name = std::move(name),
                              .make = std::move(make),
                              .client_tests = client_tests,
                              .kinds = {dlock::LockKind::lock, dlock::LockKind::read_write, dlock::LockKind::semaphore,
                                        dlock::LockKind::election},
                              .untested = std::vector<std::string>()});
  };
  add("memory_queue", true, [] { return std::make_unique<conformance::MemoryFixture>(queue); });
  add("memory_watch", false, [] { return std::make_unique<conformance::MemoryFixture>(watch); });
  add("memory_poll", false, [] { return std::make_unique<conformance::MemoryFixture>(poll); });
  for (const auto& [name, strategy] : {std::pair("messages_queue", queue), std::pair("messages_watch", watch)}) {
    add(name, false,
        [strategy] { return std::make_unique<conformance::MemoryFixture>(strategy, dlock::mutants::Mutation::none); });
  }
  return conformance::run(argc, argv);
}
