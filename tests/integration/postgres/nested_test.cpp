// Locks inside locks, of more threads than a client has connections.
#include <atomic>
#include <deque>
#include <thread>

#include "postgres/postgres_test.hpp"

namespace dlock::test {

namespace {

class NestedTest : public PostgresStrategyTest {
 protected:
  // So many threads of each client take the locks one inside the other, several times. Answers how often all of them
  // were held.
  [[nodiscard]] static int nest(const std::vector<Client>& clients, int threads, int rounds,
                                const std::vector<std::string>& names) {
    std::atomic<int> held = 0;
    std::vector<std::jthread> running;
    for (int i = 0; i < threads * static_cast<int>(clients.size()); ++i) {
      running.emplace_back([&, &client = clients[static_cast<std::size_t>(i) % clients.size()]] {
        for (int round = 0; round < rounds; ++round) {
          std::vector<Lease> leases;
          for (const std::string& name : names) {
            std::error_code error;
            leases.push_back(client.make_lock(name).acquire({.wait = conformance::guard()}, error));
            EXPECT_FALSE(error) << name << ": " << error.message();
            if (error) return;
          }
          if (leases.front().held()) ++held;
          while (!leases.empty()) leases.pop_back();  // the inner ones first
        }
      });
    }
    running.clear();
    return held;
  }
};

TEST_P(NestedTest, ThreadsOfAClientFinishTheirRounds) {
  std::vector<Client> clients;
  clients.push_back(steady(patient()));  // ten connections
  EXPECT_EQ(nest(clients, 12, 5, {"outer", "inner"}), 12 * 5);
}

TEST_P(NestedTest, ThreadsOfSeveralClientsWithFewConnectionsFinishTheirRounds) {
  std::vector<Client> clients;
  for (int i = 0; i < 2; ++i) clients.push_back(steady(patient(), "max_connections=4"));
  EXPECT_EQ(nest(clients, 6, 3, {"outer", "middle", "inner"}), 2 * 6 * 3);
}

TEST_P(NestedTest, WhoeverWaitsForManyLocksStillGetsTheOneThatIsFree) {
  const Client holder = steady(patient(), "max_connections=40");
  const Client client = steady(patient());
  std::vector<Lease> held;
  std::vector<DistributedLock> locks;
  for (int i = 0; i < 14; ++i) {
    locks.push_back(holder.make_lock("held/" + std::to_string(i)));
    held.push_back(take(locks.back()));
  }
  std::deque<Pending> waiting;
  std::deque<DistributedLock> others;
  for (int i = 0; i < 13; ++i) {
    others.push_back(client.make_lock("held/" + std::to_string(i)));
    waiting.emplace_back(others.back(), AcquireOptions{}, [](Lease& granted) {
      granted.async_release([](std::error_code /*ec*/, bool /*was_ours*/) {});
    });
  }
  EXPECT_TRUE(client.make_lock("free").acquire({.wait = conformance::guard()}).release());
  EXPECT_TRUE(client.make_lock("free").try_acquire().has_value());
  EXPECT_FALSE(client.make_lock("held/13").try_acquire().has_value());
  EXPECT_FALSE(client.make_lock("held/13").try_acquire_for(50ms).has_value()) << "busy, whatever the connections do";
  for (Lease& lease : held) EXPECT_TRUE(lease.release());
  for (Pending& each : waiting) EXPECT_FALSE(each.get().error);
}

INSTANTIATE_TEST_SUITE_P(, NestedTest, testing::Values(Strategy::for_update, Strategy::advisory), strategy_name);

}  // namespace

}  // namespace dlock::test
