// Waiters that die, stop or are cut off, in crowds, and what they cost the server.
#include <deque>
#include <optional>

#include "redis/redis_test.hpp"
#include "tests/support/sanitizers.hpp"

namespace dlock::test {

namespace {

// By the strategy of the waiters that live.
class CrowdTest : public RedisStrategyTest {
 protected:
  // Waiters behind the proxy, in the queue.
  void gather(int count) {
    crowd_client_.emplace(disturbed({.response_timeout = 30s, .close_timeout = 300ms}));
    crowd_lock_.emplace(crowd_client_->make_lock("crowded"));
    for (int i = 0; i < count; ++i) crowd_.emplace_back(*crowd_lock_, AcquireOptions{.lease = long_lease});
    await_waiters("crowded", count);
  }
  void kill_crowd(std::size_t living_subscribers) {
    kill_disturbed();
    await("the crowd does not go", [&] { return subscribers(server) <= living_subscribers; });
  }

 private:
  std::optional<Client> crowd_client_;
  std::optional<DistributedLock> crowd_lock_;
  std::deque<Pending> crowd_;
};

// Shows: crash-safety
// Hazard: many dead or stopped waiters: one check per client
TEST_P(CrowdTest, ManyWaitersKilled_LivingOneGetsTheLockWithTheRelease) {
  Contender living(steady({}, strategy()), "crowded");
  const Client holding = steady({}, strategy());
  Lease lease = take(holding, "crowded", {.lease = long_lease});
  const int count = sanitized ? 2'000 : 10'000;
  gather(count);
  await_reachable(server, "crowded", count);
  Pending waiting(living.lock, {});
  EXPECT_FALSE(living.lock.try_acquire().has_value());
  kill_crowd(GetParam() == "poll" ? 0 : 1);
  server.reset_counts();
  EXPECT_TRUE(lease.release());
  Lease next = waiting.lease();
  // A call removes 500 waiters. The rest is what the living waiter asks meanwhile.
  EXPECT_LE(server.calls_of({"eval", "evalsha"}), 200);
  EXPECT_LE(server.calls_of({"publish"}), 60);
  EXPECT_TRUE(next.release());
}

// As SIGSTOP of their process, or the loss of its machine.
// Shows: crash-safety
TEST_P(CrowdTest, WaitersOfAStoppedClient_AreGrantedTheLockOnce) {
  Contender living(steady({}, strategy()), "crowded");
  const Client holding = steady({}, strategy());
  Lease lease = take(holding, "crowded", {.lease = long_lease});
  gather(40);
  await_reachable(server, "crowded", 40);
  proxy.set({.mode = rig::Traffic::Mode::hold});
  Pending waiting(living.lock, {});
  EXPECT_FALSE(living.lock.try_acquire().has_value());
  server.reset_counts();
  EXPECT_TRUE(lease.release());
  // That the time of a grant is over is noticed by the next request.
  std::error_code error;
  await("the lock is not granted", [&] { return living.lock.try_acquire({}, error).has_value() || waiting.done(); });
  EXPECT_TRUE(waiting.lease().held());
  // One is granted the lock and does not confirm it. The living one, a watcher's message, and subscriptions' checks.
  EXPECT_LE(server.calls_of({"publish"}), 6);
  proxy.pass();
}

INSTANTIATE_TEST_SUITE_P(, CrowdTest, all_strategies(), Room::strategy_name);

// With a password, so that every new connection has to authenticate again.
class ReconnectionTest : public RedisStrategyTest {
 protected:
  ReconnectionTest() : RedisStrategyTest({.password = "administrator", .user = RedisUser{}}) {}
};

// Hazard: H23, H24 lost messages, expiry sends none: waiters ask
TEST_P(ReconnectionTest, SubscriberReceivesNothing_WaiterStillGetsTheLock) {
  const Client holding = steady({}, strategy());
  Contender waiting_client(disturbed({.response_timeout = 500ms}, strategy()), "waited-for");
  Lease lease = take(holding, "waited-for");
  Pending waiting(waiting_client.lock, {});
  EXPECT_FALSE(waiting_client.lock.try_acquire().has_value());
  // Half-open: the server takes the connections after the first for reachable.
  for (std::size_t number = 1; number < proxy.counters().accepted; ++number) {
    proxy.set(number, rig::Direction::to_client, {.mode = rig::Traffic::Mode::swallow});
  }
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(waiting.lease().release());
}

INSTANTIATE_TEST_SUITE_P(, ReconnectionTest, all_strategies(), Room::strategy_name);

}  // namespace

}  // namespace dlock::test
