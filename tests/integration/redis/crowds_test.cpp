// Many waiters of one client that die or stand still together.
#include <algorithm>
#include <deque>

#include "backends/redis/timing.hpp"
#include "redis/redis_test.hpp"
#include "tests/support/sanitizers.hpp"

namespace dlock::test {

namespace {

// By the strategy of those who live.
class CrowdTest : public RedisStrategyTest {
 protected:
  // Waiters behind the proxy, in the queue, and known to hear.
  void gather(const std::string& name, int count) {
    crowd_client_.emplace(disturbed({.response_timeout = 30s, .close_timeout = 300ms}));
    crowd_lock_.emplace(crowd_client_->make_lock(name));
    for (int i = 0; i < count; ++i) crowd_.emplace_back(*crowd_lock_, AcquireOptions{.lease = long_lease});
    await_waiters(name, count);
    await("the crowd is not known", [&] {
      return server.command({"ZCOUNT", keys(name).alive, "-inf", "(0"}).integer == 0;
    });
  }
  // As kill -9 of their process does to the server: their connections end, and no others come.
  void kill_crowd() {
    proxy.refuse(true);
    proxy.drop();
    await("the crowd does not go", [&] {
      return server.command({"PUBSUB", "CHANNELS", "dlock:w:*"}).elements.size() <= living_channels_;
    });
  }
  // As SIGSTOP of their process, or the loss of its machine.
  void stop_crowd() { proxy.set({.mode = rig::Traffic::Mode::hold}); }
  void let_crowd_go_on() { proxy.pass(); }

  // A living waiter with a subscription of its own, where its strategy has one.
  void subscribe_living() { living_channels_ = GetParam() == "poll" ? 0 : 1; }

 private:
  std::size_t living_channels_ = 0;
  std::optional<Client> crowd_client_;
  std::optional<DistributedLock> crowd_lock_;
  std::deque<Pending> crowd_;
};

TEST_P(CrowdTest, ALivingWaiterBehindTenThousandKilledOnesGetsTheLockWithTheRelease) {
  const Client holding = steady({}, strategy());
  const Client living = steady({}, strategy());
  DistributedLock lock = holding.make_lock("crowded");
  DistributedLock others = living.make_lock("crowded");
  Lease lease = take(lock, {.lease = long_lease});
  gather("crowded", dlock::test::sanitized ? 2'000 : 10'000);
  subscribe_living();
  Pending waiting(others, {});
  EXPECT_FALSE(others.try_acquire().has_value());
  kill_crowd();
  server.reset_counts();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(lease.release());
  Lease next = waiting.lease();
  const auto took = std::chrono::steady_clock::now() - start;
  // A call removes 500 waiters. The rest is what the living waiter asks meanwhile.
  EXPECT_LE(server.calls_of({"eval", "evalsha"}), 200);
  EXPECT_LE(server.calls_of({"publish"}), 60);
  RecordProperty("milliseconds", static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(took).count()));
  EXPECT_TRUE(next.release());
}

TEST_P(CrowdTest, ATryOfALockThatOnlyKilledWaitersWantSucceeds) {
  const Client client = steady({}, strategy());
  DistributedLock lock = client.make_lock("crowded");
  const Lease lease = take(lock, {.lease = long_lease, .renew = false});
  gather("crowded", dlock::test::sanitized ? 600 : 3'000);
  kill_crowd();
  (void)server.command({"DEL", keys("crowded").lock});  // its holder died, too
  EXPECT_TRUE(lock.try_acquire().has_value());
}

TEST_P(CrowdTest, WaitersOfAClientThatStandsStillAreNotGrantedTheLockOneByOne) {
  const Client holding = steady({}, strategy());
  const Client living = steady({}, strategy());
  DistributedLock lock = holding.make_lock("crowded");
  DistributedLock others = living.make_lock("crowded");
  Lease lease = take(lock, {.lease = long_lease});
  gather("crowded", 40);
  stop_crowd();
  Pending waiting(others, {});
  EXPECT_FALSE(others.try_acquire().has_value());
  server.reset_counts();
  EXPECT_TRUE(lease.release());
  // That the time of a grant is over is noticed by whoever asks.
  std::error_code error;
  await("nobody gets the lock", [&] { return others.try_acquire({}, error).has_value() || waiting.done(); });
  EXPECT_TRUE(waiting.lease().held());
  // One is granted the lock and does not confirm it. The living one, a watcher's message, and subscriptions' checks.
  EXPECT_LE(server.calls_of({"publish"}), 6);
  let_crowd_go_on();
}

INSTANTIATE_TEST_SUITE_P(, CrowdTest, all_strategies(), Room::strategy_name);

RedisConfig without_publishing() {
  RedisConfig config;
  config.password = "administrator";
  config.user = RedisUser{};
  std::erase(config.user->rights, "+publish");
  return config;
}

// Nobody can find out by a channel that nobody hears who is dead.
class SilentCrowdTest : public RedisTest {
 protected:
  SilentCrowdTest() : RedisTest(without_publishing()) {}
};

TEST_F(SilentCrowdTest, KilledWaitersAreNotGrantedTheLockOneByOne) {
  const Client holding = steady();
  const Client living = steady();
  DistributedLock lock = holding.make_lock("crowded");
  DistributedLock others = living.make_lock("crowded");
  Lease lease = take(lock, {.lease = long_lease});
  std::optional<Client> dying = disturbed({.close_timeout = 300ms});
  DistributedLock theirs = dying->make_lock("crowded");
  std::deque<Pending> crowd;
  for (int i = 0; i < 40; ++i) crowd.emplace_back(theirs, AcquireOptions{.lease = long_lease});
  await_waiters("crowded", 40);
  Pending waiting(others, {.lease = long_lease});
  await_waiters("crowded", 41);
  proxy.refuse(true);
  proxy.drop();
  server.reset_counts();
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(waiting.lease().held());
  // Each grant sets the lock's key, and so does a record of a token.
  EXPECT_LE(server.calls_of({"set"}), 5);
}

// Those who wait long must not cost the server anything to speak of.
class IdleTest : public RedisTest {};

TEST_F(IdleTest, WaitersThatAreWokenAskRarely) {
  constexpr std::size_t count = 200;
  constexpr double most_a_second = 0.3;  // of each
  const Client holding = steady({.lease = long_lease});
  const Client waiting = steady({.lease = long_lease});
  std::deque<DistributedLock> locks;
  std::deque<Lease> leases;
  std::deque<Pending> pending;
  const auto name = [](std::size_t i) { return "idle/" + std::to_string(i); };
  for (std::size_t i = 0; i < count; ++i) {
    leases.push_back(take(locks.emplace_back(holding.make_lock(name(i)))));
    pending.emplace_back(locks.emplace_back(waiting.make_lock(name(i))), AcquireOptions{});
  }
  for (std::size_t i = 0; i < count; ++i) {
    await("a waiter is not heard", [&] {
      return server.command({"ZCOUNT", keys(name(i)).alive, "(0", "+inf"}).integer == 1;
    });
  }
  server.reset_counts();
  const auto start = std::chrono::steady_clock::now();
  constexpr std::int64_t asked = count * 3 / 4;
  await("the waiters do not ask any more", [&] { return server.calls_of({"evalsha"}) >= asked; });
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_GE(took.count(), asked / (most_a_second * count));
}

// Nobody tells of a lease that ends. The next in line was far behind when it last asked.
class WatchTest : public RedisTest {};

TEST_F(WatchTest, WhoeverBecameTheFirstInLineLooksWhenTheKilledHoldersLeaseEnds) {
  const Client holding = steady();
  const Client passing = steady();
  const Client living = steady();
  DistributedLock lock = holding.make_lock("watched");
  Lease lease = take(lock, {.lease = long_lease});
  DistributedLock quick = passing.make_lock("watched");
  std::deque<Pending> before;
  for (int i = 0; i < 24; ++i) before.emplace_back(quick, AcquireOptions{.lease = long_lease});
  await_waiters("watched", 24);
  const Client dying = disturbed({.close_timeout = 300ms});
  DistributedLock theirs = dying.make_lock("watched");
  Pending doomed(theirs, {.lease = 1s});
  await_waiters("watched", 25);
  const auto start = std::chrono::steady_clock::now();
  DistributedLock others = living.make_lock("watched");
  Pending waiting(others, {.lease = long_lease});
  await_waiters("watched", 26);
  await("a waiter is not heard", [&] {
    return server.command({"ZCOUNT", keys("watched").alive, "-inf", "(0"}).integer == 0;
  });
  EXPECT_TRUE(lease.release());
  for (Pending& each : before) EXPECT_TRUE(each.lease().release());
  const Lease lost = doomed.lease();
  proxy.refuse(true);
  proxy.drop();
  EXPECT_TRUE(waiting.lease().held());
  // By itself, it would not have asked before.
  EXPECT_LT(std::chrono::steady_clock::now() - start, redis::longest_poll * 3 / 4);
}

}  // namespace

}  // namespace dlock::test
