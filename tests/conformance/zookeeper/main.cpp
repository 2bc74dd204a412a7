#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dlock/conformance/suite.hpp>
#include <dlock/lock_kind.hpp>

#include "untested.hpp"
#include "zookeeper/zookeeper_fixture.hpp"

int main(int argc, char** argv) {
  using namespace dlock::conformance;
  using dlock::LockKind;
  const auto add = [](const std::string& name, ZooKeeperSetup setup, const std::string& strategy) {
    std::vector<LockKind> kinds{LockKind::lock, LockKind::election};
    if (strategy == "sequential") kinds.insert(kinds.end(), {LockKind::read_write, LockKind::semaphore});
    add_subject({.name = "zookeeper_" + name,
                 .make = [=] { return std::make_unique<ZooKeeperFixture>(setup, strategy); },
                 .client_tests = false,
                 .kinds = std::move(kinds),
                 .untested = untested_without_stepped_clock()});
  };
  add("sequential", ZooKeeperSetup::standalone, "sequential");
  add("herd", ZooKeeperSetup::standalone, "sequential-herd");
  add("ephemeral", ZooKeeperSetup::standalone, "ephemeral");
  add("ensemble", ZooKeeperSetup::ensemble, "sequential");
  return run(argc, argv);
}
