// Waiters that die, are cut off or give up, one by one and in crowds, and what waiting costs the server.
#include <deque>
#include <list>
#include <thread>

#include "backends/redis/timing.hpp"
#include "redis/redis_test.hpp"
#include "tests/support/sanitizers.hpp"

namespace dlock::test {

namespace {

// --- Crowds that die or stop -----------------------------------------------------------------------------------------

// By the strategy of the waiters that live.
class CrowdTest : public RedisStrategyTest {
 protected:
  explicit CrowdTest(RedisConfig config = {}) : RedisStrategyTest(std::move(config)) {}

  // Waiters behind the proxy, in the queue.
  void gather(int count) {
    crowd_client_.emplace(disturbed({.response_timeout = 30s, .close_timeout = 300ms}));
    crowd_lock_.emplace(crowd_client_->make_lock("crowded"));
    for (int i = 0; i < count; ++i) crowd_.emplace_back(*crowd_lock_, AcquireOptions{.lease = long_lease});
    await_waiters("crowded", count);
  }
  void kill_crowd(std::size_t living_subscribers = 0) {
    kill_disturbed();
    await("the crowd does not go", [&] { return subscribers(server) <= living_subscribers; });
  }

 private:
  std::optional<Client> crowd_client_;
  std::optional<DistributedLock> crowd_lock_;
  std::deque<Pending> crowd_;
};

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

TEST_P(CrowdTest, HolderAndAllWaitersKilled_TryIsGranted) {
  Contender ours(steady({}, strategy()), "crowded");
  const Lease lease = take(ours.lock, {.lease = long_lease, .renew = false});
  const int count = sanitized ? 600 : 3'000;
  gather(count);
  await_reachable(server, "crowded", count);
  kill_crowd();
  (void)server.command({"DEL", keys("crowded").lock});  // its holder died, too
  EXPECT_TRUE(ours.lock.try_acquire().has_value());
}

// As SIGSTOP of their process, or the loss of its machine.
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

RedisConfig without_publishing() {
  RedisConfig config{.password = "administrator", .user = RedisUser{}};
  std::erase(config.user->rights, "+publish");
  return config;
}

// Without the right to publish the server cannot find out which waiters are dead.
class SilentCrowdTest : public CrowdTest {
 protected:
  SilentCrowdTest() : CrowdTest(without_publishing()) {}
};

TEST_P(SilentCrowdTest, KilledWaiters_AreGrantedTheLockOnce) {
  Contender living(steady(), "crowded");
  const Client holding = steady();
  Lease lease = take(holding, "crowded", {.lease = long_lease});
  gather(40);
  Pending waiting(living.lock, {.lease = long_lease});
  await_waiters("crowded", 41);
  kill_disturbed();
  server.reset_counts();
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(waiting.lease().held());
  // Each grant sets the lock's key, and so does a record of a token.
  EXPECT_LE(server.calls_of({"set"}), 5);
}

INSTANTIATE_TEST_SUITE_P(, SilentCrowdTest, ::testing::Values("queue"));

// --- What waiting costs ----------------------------------------------------------------------------------------------

class WaitingCostTest : public RedisTest {};

TEST_F(WaitingCostTest, ReachableWaiters_AskRarelyOnOneSubscription) {
  constexpr std::size_t count = 200;
  constexpr double most_a_second = 0.3;  // of each
  const Client holding = steady({.lease = long_lease});
  const Client waiting = steady({.lease = long_lease});
  std::deque<DistributedLock> locks;
  std::deque<Lease> leases;
  std::deque<Pending> pending;
  const auto name = [](std::size_t i) { return "idle/" + std::to_string(i); };
  for (std::size_t i = 0; i < count; ++i) {
    leases.push_back(take(holding, name(i)));
    pending.emplace_back(locks.emplace_back(waiting.make_lock(name(i))), AcquireOptions{});
  }
  for (std::size_t i = 0; i < count; ++i) await_reachable(server, name(i), 1);
  EXPECT_LE(server.command({"PUBSUB", "CHANNELS"}).elements.size(), 2U);
  EXPECT_LE(std::stoi(server.info("clients", "connected_clients")), 2 + 2 + 1);
  server.reset_counts();
  const auto start = std::chrono::steady_clock::now();
  constexpr std::int64_t asked = count * 3 / 4;
  await("the waiters do not ask any more", [&] { return server.calls_of({"evalsha"}) >= asked; });
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_GE(took.count(), asked / (most_a_second * count));
  leases.clear();
  for (Pending& each : pending) EXPECT_TRUE(each.lease().held());
}

// No message says that a lease has ended. The next in line was far behind when it last asked.
TEST_F(WaitingCostTest, HolderKilled_FirstInLineAsksWhenItsLeaseEnds) {
  const Client holding = steady();
  Contender passing(steady(), "watched");
  const auto clock = std::make_shared<ManualClock>();
  Contender living(steady({.clock = clock}), "watched");
  Lease lease = take(holding, "watched", {.lease = long_lease});
  std::deque<Pending> before;
  for (int i = 0; i < 24; ++i) before.emplace_back(passing.lock, AcquireOptions{.lease = long_lease});
  await_waiters("watched", 24);
  Contender dying(disturbed({.close_timeout = 300ms}), "watched");
  Pending doomed(dying.lock, {.lease = 1s});
  await_waiters("watched", 25);
  Pending waiting(living.lock, {.lease = long_lease});
  await_reachable(server, "watched", 26);
  EXPECT_TRUE(lease.release());
  for (Pending& each : before) EXPECT_TRUE(each.lease().release());
  const Lease lost = doomed.lease();
  kill_disturbed();
  await("its lease does not end", [&] { return server.command({"EXISTS", keys("watched").lock}).integer == 0; });
  // By its own clock, on which it would not have asked by itself before three quarters of the longest pause.
  static_assert(redis::longest_poll * 3 / 4 > 3s);
  clock->advance(2s);
  for (int i = 0; i < 10 && !waiting.event().wait_for(2s); ++i) clock->advance(100ms);
  EXPECT_TRUE(waiting.done());
}

TEST_F(WaitingCostTest, AllRequests_NeitherBlockNorWalkAllKeys) {
  {
    const Client client = steady();
    Contender other(steady(), "watched");
    Lease lease = take(client, "watched");
    Pending waiting(other.lock, {});
    await_waiters("watched", 1);
    EXPECT_TRUE(lease.release());
    EXPECT_TRUE(waiting.lease().release());
    (void)client.list();
    (void)client.inspect("watched");
    (void)client.diagnose();
  }
  const std::string stats = server.command({"INFO", "commandstats"}).text;
  for (const char* command : {"keys", "blpop", "flushall", "flushdb", "setnx"}) {
    EXPECT_EQ(stats.find("cmdstat_" + std::string(command) + ":"), std::string::npos) << command;
  }
}

// A read-write lock as one is read.
struct ToRead {
  ReadWriteLock& lock;
  [[nodiscard]] const std::string& name() const noexcept { return lock.name(); }
  template <class Handler>
  void async_acquire(const AcquireOptions& options, Handler&& handler) const {
    lock.async_acquire_shared(options, std::forward<Handler>(handler));
  }
};

// A crowd that waits behind a writer comes in by waves of what one call of a script does.
TEST_F(WaitingCostTest, CrowdOfReadersBehindAWriter_EntersTogether) {
  const Client writing = steady();
  const Client reading = steady();
  ReadWriteLock lock = writing.make_read_write_lock("x");
  ReadWriteLock others = reading.make_read_write_lock("x");
  ToRead to_read{others};
  Lease writer = lock.acquire({.wait = conformance::guard()});
  std::deque<Pending> crowd;
  for (int i = 0; i < 200; ++i) crowd.emplace_back(to_read, AcquireOptions{});
  const auto queue = redis::keys_of("dlock:", "x", LockKind::read_write).queue;
  await("readers do not arrive", [&] { return server.command({"ZCARD", queue}).integer == 200; });
  EXPECT_TRUE(writer.release());
  std::deque<Lease> inside;
  for (Pending& each : crowd) inside.push_back(each.lease());
  for (const Lease& each : inside) EXPECT_TRUE(each.held());
}

// --- Waiters that are cut off ----------------------------------------------------------------------------------------

// With a password, so that every new connection has to authenticate again.
class ReconnectionTest : public RedisStrategyTest {
 protected:
  ReconnectionTest() : RedisStrategyTest({.password = "administrator", .user = RedisUser{}}) {}
};

TEST_P(ReconnectionTest, SubscriberCutOff_WaiterMissesNoRelease) {
  const Client holding = steady({}, strategy());
  Contender waiting_client(disturbed({}, strategy()), "waited-for");
  for (int i = 0; i < 5; ++i) {
    Lease lease = take(holding, "waited-for");
    Pending waiting(waiting_client.lock, {});
    EXPECT_FALSE(waiting_client.lock.try_acquire().has_value());
    (void)server.command({"CLIENT", "KILL", "TYPE", "pubsub"});
    EXPECT_TRUE(lease.release());
    EXPECT_TRUE(waiting.lease().release());
  }
}

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

// As while passwords are being changed. The connection for commands stays meanwhile.
TEST(RefusedSubscriber, PasswordAcceptedAgain_Resubscribes) {
  RedisServer server({.password = "administrator", .user = RedisUser{}});
  const auto set_password = [&](const std::string& password) {
    (void)server.command({"ACL", "SETUSER", RedisUser().name, "resetpass", ">" + password});
  };
  const Client holding = connect_patiently(server.url());
  Contender waiting_client(connect_patiently(server.url()), "waited-for");
  Lease lease = take(holding, "waited-for");
  Pending waiting(waiting_client.lock, {});
  await("there is no subscriber", [&] { return subscribers(server) == 1; });
  set_password("another");
  (void)server.command({"ACL", "LOG", "RESET"});
  (void)server.command({"CLIENT", "KILL", "TYPE", "pubsub"});
  await("the password is not refused", [&] { return !server.command({"ACL", "LOG"}).elements.empty(); });
  set_password(RedisUser().password);
  await("it does not subscribe again", [&] { return subscribers(server) == 1; });
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(waiting.lease().release());
}

// In the queue. A release counts it as dead while it is cut off.
class CutWaiterTest : public RedisTest {};

TEST_F(CutWaiterTest, Reconnected_GetsItsPlaceBack) {
  Contender holding(steady(), "waited-for");
  Contender cut(disturbed(), "waited-for");
  Lease lease = take(holding.lock, {.lease = long_lease});
  Pending first(cut.lock, {.lease = long_lease});
  await_waiters("waited-for", 1);
  Pending second(holding.lock, {.lease = long_lease});
  await_waiters("waited-for", 2);
  Pending third(holding.lock, {.lease = long_lease});
  await_reachable(server, "waited-for", 3);
  kill_disturbed();
  await("the subscriber does not go", [&] { return subscribers(server) == 1; });
  EXPECT_TRUE(lease.release());
  Lease next = second.lease();
  await_waiters("waited-for", 1);
  proxy.refuse(false);
  await_waiters("waited-for", 2);
  EXPECT_TRUE(next.release());
  const Lease back = first.lease();
  EXPECT_TRUE(back.held());
  EXPECT_FALSE(third.done());
}

// --- Waiters that give up --------------------------------------------------------------------------------------------

constexpr int client_count = 4;
constexpr int waiters_of_each = 16;

class GivingUpTest : public RedisStrategyTest {};

TEST_P(GivingUpTest, ThreadsStoppedWhileTheLockGoesRound_LeaveNothing) {
  for (int round = 0; round < (sanitized ? 2 : 10); ++round) {
    {
      std::list<Client> clients;
      for (int i = 0; i < client_count; ++i) clients.push_back(steady({.lease = long_lease}, strategy()));
      Event turns;
      std::vector<std::jthread> threads;
      for (Client& client : clients) {
        for (int i = 0; i < waiters_of_each; ++i) {
          threads.emplace_back([&](const std::stop_token& stop) {
            DistributedLock lock = client.make_lock("storm");
            std::error_code error;
            while (!error) {
              Lease lease = lock.acquire({.cancel = stop}, error);
              if (lease.has_value()) turns.set();
            }
          });
        }
      }
      turns.wait("the lock is not granted", 20);
      for (std::jthread& each : threads) each.request_stop();
    }
    await_no_residue("storm");
  }
}

INSTANTIATE_TEST_SUITE_P(, GivingUpTest, all_strategies(), Room::strategy_name);

// The argument: whether the client has noticed that the server is frozen, and given the connection up.
class FrozenServerTest : public RedisTest, public ::testing::WithParamInterface<bool> {};

TEST_P(FrozenServerTest, ClientClosedMeanwhile_LeavesNoLock) {
  for (int round = 0; round < 3; ++round) {
    const auto log = std::make_shared<EventLog>();
    ClientOptions options = impatient();
    options.observer = log;
    {
      const Client client = steady(std::move(options));
      const Lease lease = take(client, "orphan", {.lease = long_lease});
      server.freeze();
      if (GetParam()) log->reconnecting.wait("the client does not notice");
    }
    server.thaw();
    await_no_residue("orphan");
  }
}

INSTANTIATE_TEST_SUITE_P(, FrozenServerTest, ::testing::Bool(),
                         [](const auto& row) { return row.param ? "Noticed" : "Unnoticed"; });

}  // namespace

}  // namespace dlock::test
