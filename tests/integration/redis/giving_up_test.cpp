// Many who give up at once, while the lock goes from hand to hand.
#include <deque>
#include <list>
#include <thread>

#include "redis/redis_test.hpp"
#include "tests/support/sanitizers.hpp"

namespace dlock::test {

namespace {

constexpr int client_count = 4;
constexpr int waiters_of_each = 16;

class GivingUpTest : public RedisStrategyTest {};

TEST_P(GivingUpTest, ThreadsThatAreStoppedWhileTheyTakeTurnsLeaveNothing) {
  for (int round = 0; round < (dlock::test::sanitized ? 2 : 10); ++round) {
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
      turns.wait("nobody gets the lock", 20);
      for (std::jthread& each : threads) each.request_stop();
    }
    await_no_residue("storm");
  }
}

TEST_P(GivingUpTest, WaitersThatAreCancelledAsTheLockIsReleasedLeaveNothing) {
  const Client holding = steady({}, strategy());
  DistributedLock lock = holding.make_lock("storm");
  for (int round = 0; round < (dlock::test::sanitized ? 4 : 20); ++round) {
    std::optional<Lease> lease = take(lock, {.lease = long_lease});
    {
      std::list<Client> clients;
      std::deque<DistributedLock> locks;
      std::deque<Pending> waiting;
      for (int i = 0; i < client_count; ++i) {
        clients.push_back(steady({.lease = long_lease}, strategy()));
        locks.push_back(clients.back().make_lock("storm"));
        for (int j = 0; j < waiters_of_each; ++j) waiting.emplace_back(locks.back(), AcquireOptions{});
        EXPECT_FALSE(locks.back().try_acquire().has_value());
      }
      const std::jthread releasing([&] { lease.reset(); });
      for (Pending& each : waiting) each.cancel();
      // Whoever is quick is granted the lock, and lets go of it here.
      for (Pending& each : waiting) (void)each.get();
    }
    await_no_residue("storm");
  }
}

// The argument: whether the client has noticed that the server hangs, and given the connection up.
class HangingServerTest : public RedisTest, public ::testing::WithParamInterface<bool> {};

TEST_P(HangingServerTest, AClientThatEndsMeanwhileLeavesNoLockBehind) {
  for (int round = 0; round < 3; ++round) {
    const auto log = std::make_shared<EventLog>();
    ClientOptions options = impatient();
    options.observer = log;
    {
      const Client client = steady(std::move(options));
      DistributedLock lock = client.make_lock("orphan");
      const Lease lease = take(lock, {.lease = long_lease});
      server.freeze();
      if (GetParam()) log->reconnecting.wait("the client does not notice");
    }
    server.thaw();
    await_no_residue("orphan");
  }
}

INSTANTIATE_TEST_SUITE_P(, HangingServerTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Noticed" : "Unnoticed"; });

INSTANTIATE_TEST_SUITE_P(, GivingUpTest, all_strategies(), Room::strategy_name);

}  // namespace

}  // namespace dlock::test
