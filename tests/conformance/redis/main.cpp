#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dlock/conformance/suite.hpp>

#include "redis/redis_fixture.hpp"
#include "untested.hpp"

int main(int argc, char** argv) {
  using dlock::LockKind;
  using dlock::conformance::RedisFixture;
  using dlock::conformance::RedisSetup;
  const auto add = [](const std::string& name, RedisSetup setup, const std::string& strategy) {
    auto untested = dlock::conformance::untested_without_stepped_clock();
    if (setup == RedisSetup::tls) {
      // The proxy cannot tell an acquire in an encrypted stream, so it has no answer to lose.
      untested.emplace_back("Contract.C09_ATryWhoseAnswerIsLostIsNeverHeldOnAGuess");
      untested.emplace_back("Contract.C09_AWaitWhoseAnswerIsLostEndsWithTheLock");
    }
    std::vector<LockKind> kinds{LockKind::lock, LockKind::election};
    if (strategy != "broadcast") kinds.insert(kinds.end(), {LockKind::read_write, LockKind::semaphore});
    dlock::conformance::add_subject({.name = "redis_" + name,
                                     .make = [=] { return std::make_unique<RedisFixture>(setup, strategy); },
                                     .client_tests = false,
                                     .kinds = std::move(kinds),
                                     .untested = std::move(untested)});
  };
  for (const std::string strategy : {"queue", "broadcast", "poll"}) add(strategy, RedisSetup::plain, strategy);
  add("tls", RedisSetup::tls, "queue");
  add("acl", RedisSetup::acl, "queue");
  add("sentinel", RedisSetup::sentinel, "queue");
  add("cluster", RedisSetup::cluster, "queue");
  return dlock::conformance::run(argc, argv);
}
