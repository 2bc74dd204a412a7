#include <memory>
#include <string>
#include <utility>

#include <dlock/conformance/suite.hpp>
#include <dlock/lock_kind.hpp>

#include "etcd/etcd_fixture.hpp"
#include "untested.hpp"

int main(int argc, char** argv) {
  using namespace dlock::conformance;
  using dlock::LockKind;
  const auto add = [](const std::string& name, EtcdSetup setup) {
    auto untested = untested_without_stepped_clock();
    if (setup == EtcdSetup::tls) {
      // The proxy cannot tell an acquire in an encrypted stream, so it has no answer to lose.
      untested.emplace_back("Contract.C09_ATryWhoseAnswerIsLostIsNeverHeldOnAGuess");
      untested.emplace_back("Contract.C09_AWaitWhoseAnswerIsLostEndsWithTheLock");
    }
    add_subject({.name = "etcd_" + name,
                 .make = [=] { return std::make_unique<EtcdFixture>(setup); },
                 .client_tests = false,
                 .kinds = {LockKind::lock, LockKind::election, LockKind::read_write, LockKind::semaphore},
                 .untested = std::move(untested)});
  };
  add("single", EtcdSetup::single);
  add("cluster", EtcdSetup::cluster);
  add("login", EtcdSetup::login);
  add("tls", EtcdSetup::tls);
  return run(argc, argv);
}
