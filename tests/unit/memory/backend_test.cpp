// The memory backend over its store: strategies, URLs, names, and children made by fork().
#include "backends/memory/memory_backend.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dlock/dlock.hpp>
#include <dlock/spi/backend.hpp>

#include "tests/support/forked_child.hpp"
#include "tests/support/manual_engine.hpp"
#include "tests/support/recording_host.hpp"
#include "tests/support/refusals.hpp"

// A child that starts an engine is the subject of one of these tests.
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() {  // NOLINT(bugprone-reserved-identifier): TSan's name for it
  return "die_after_fork=0";
}

namespace dlock::memory {
namespace {

using namespace std::chrono_literals;
using Status = ReleaseOutcome::Status;

// Shows: waiters-woken
TEST(MemoryBackendTest, OtherStrategies_WakeAllOrPoll) {
  test::ManualEngine engine;
  test::RecordingHost host{engine};
  const auto store = std::make_shared<MemoryStore>();
  const auto make = [&](Strategy strategy) { return std::make_unique<MemoryBackend>(host, store, strategy); };
  const auto contend = [&](MemoryBackend& backend) {
    auto attempt = std::make_unique<test::Attempt>();
    attempt->request = {.name = "lock", .owner = host.new_owner_id(), .holder = "h", .lease = 30s, .wait = true};
    attempt->contention = backend.contend(attempt->request, *attempt);
    engine.run();
    return attempt;
  };
  const auto release = [&](MemoryBackend& backend, const Grant& grant) {
    std::optional<Status> status;
    backend.release(grant, [&](const ReleaseOutcome& outcome) { status = outcome.status; });
    engine.run();
    return status.value();
  };
  const auto a = make(Strategy::queue);
  const auto watcher = make(Strategy::watch);
  const auto poller = make(Strategy::poll);
  const auto holder = contend(*a);
  const auto watching = contend(*watcher);
  const auto polling = contend(*poller);
  EXPECT_EQ(release(*a, *holder->grant), Status::released);
  ASSERT_TRUE(watching->grant) << "no time has passed: a notification woke it";
  EXPECT_EQ(release(*watcher, *watching->grant), Status::released);
  EXPECT_FALSE(polling->grant);
  engine.advance(40ms);
  EXPECT_TRUE(polling->grant);
  EXPECT_TRUE(a->capabilities().fair);
  EXPECT_EQ(a->capabilities().strategy, "queue");
  EXPECT_FALSE(watcher->capabilities().fair || watcher->capabilities().counts_waiters);
  EXPECT_EQ(watcher->capabilities().strategy, "watch");
  bool closed = false;
  a->close([&] { closed = true; });
  EXPECT_TRUE(closed) << "nothing is left to do";
}

TEST(MemoryUrl, OffendingPart_IsNamed) {
  test::expect_refused([](const std::string& url) { return connect(url); }, {{"memory://a?strategy=fifo", "strategy"},
                                                                             {"memory://a?strategy=", "strategy"},
                                                                             {"memory://a?colour=red", "colour"},
                                                                             {"memory://a/b", "path"},
                                                                             {"memory:///b", "path"},
                                                                             {"memory://a:80", "port"},
                                                                             {"memory://a,b", "list"},
                                                                             {"memory://user:hidden@a", "user"}});
}

TEST(MemoryName, Clients_ShareTheLocksOfOneName) {
  const Client one = connect("memory://shared");
  const Lease lease = one.make_lock("x").acquire();
  for (const auto& [url, is_free] :
       {std::pair("memory://shared?strategy=watch", false), {"memory://other", true}, {"memory://", true}}) {
    const Client client = connect(url);
    EXPECT_EQ(client.make_lock("x").try_acquire().has_value(), is_free) << url;
  }
  EXPECT_EQ(connect("memory://shared?strategy=poll").inspect("x").waiters, std::nullopt);
  EXPECT_EQ(connect("memory://shared?strategy=poll").list().at(0).waiters, std::nullopt);
  EXPECT_EQ(one.list().at(0).waiters, 0U);
}

// Shows: growing-tokens
TEST(MemoryName, Tokens_GrowThoughTheStoreWasForgotten) {
  FencingToken last;
  for (int i = 0; i < 10; ++i) {
    const Client client = connect("memory://forgotten");
    const Lease lease = client.make_lock("x").acquire();
    EXPECT_GT(lease.token(), std::exchange(last, lease.token()));
  }
}

// Even if another thread was inside of named() at the fork: util/process_test.cpp.
TEST(MemoryFork, Child_HasStoresOfItsOwn) {
  const auto store = MemoryStore::named("fork");
  const ManualClock clock;
  LockRequest request{.name = "x", .owner = OwnerId(0, 1), .holder = "parent", .lease = 30s};
  ASSERT_TRUE(store->try_acquire(request, 0s, clock).granted);
  request.owner = OwnerId(0, 2);
  int notified = 0;
  const auto notify = [&](const MemoryStore::Answer&) { ++notified; };
  ASSERT_FALSE(store->enqueue(request, notify, clock).granted);
  EXPECT_EQ(test::ForkedChild::run([&](test::ForkedChild& child) {
              const auto own = MemoryStore::named("fork");
              child.check(own != store);
              child.check(own == MemoryStore::named("fork"));
              const Client client = connect("memory://fork");
              auto lease = client.make_lock("x").try_acquire();
              child.check(lease && lease->release());
              child.check(notified == 0);
            }),
            "good");
  EXPECT_EQ(store->residue("x", clock), 2U);
  EXPECT_EQ(MemoryStore::named("fork"), store);
}

}  // namespace
}  // namespace dlock::memory
