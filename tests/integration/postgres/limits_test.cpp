// Servers that have no connections left, and clients with fewer connections than threads that nest locks.
#include <atomic>
#include <deque>
#include <stdexcept>
#include <string>
#include <thread>

#include "postgres/postgres_test.hpp"

namespace dlock::test {

namespace {

class FullServerTest : public PostgresStrategyTest {
 protected:
  // Three of them are the superuser's.
  FullServerTest() : PostgresStrategyTest({.max_connections = 8}) {
    await_in_server("NOT EXISTS (SELECT FROM pg_stat_activity WHERE usename = 'locker')");  // those of the test before
  }

  // Until no connection is left.
  void fill() {
    try {
      for (int i = 0; i < 5; ++i) others_.push_back(std::make_unique<PostgresConnection>(server.url()));
    } catch (const std::runtime_error&) {
    }
  }
  void empty() { others_.clear(); }

 private:
  std::vector<std::unique_ptr<PostgresConnection>> others_;
};
INSTANTIATE_TEST_SUITE_P(, FullServerTest, testing::ValuesIn(tested()), strategy_name);

TEST_P(FullServerTest, Try_IsUnavailableAndWaitOutlastsIt) {
  fill();
  Contender ours(steady(impatient()), "full");
  Pending waiting(ours.lock, {});
  expect_failure(errc::unavailable, "53300", [&] { (void)ours.lock.try_acquire(); });
  EXPECT_FALSE(waiting.done()) << "a wait outlasts it";
  empty();
  EXPECT_TRUE(waiting.lease().release());
}

TEST_P(FullServerTest, Holder_KeepsRenewing) {
  Contender own(steady({.lease = 12s}), "held");
  Lease lease = take(own.lock);
  fill();
  await_renewal(lease);
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(lease.release());
}

// Of its connections three are kept for superusers, of whom the test is one more. One is the holder's, and two each of
// the first four of those that wait.
class CrowdedServerTest : public PostgresTest {
 protected:
  CrowdedServerTest() : PostgresTest({.max_connections = 13}) { make_role("holder"); }

  std::shared_ptr<EventLog> add_waiter() {
    auto log = std::make_shared<EventLog>();
    clients_.push_back(disturbed({.close_timeout = 300ms, .observer = log}));
    locks_.push_back(clients_.back().make_lock("held"));
    waiting_.emplace_back(locks_.back(), AcquireOptions{});
    return log;
  }
  void fill() {
    for (int i = 1; i <= 4; ++i) {
      (void)add_waiter();
      await_in_server("(SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE '% listen') = " +
                      std::to_string(i));
    }
    std::vector<std::shared_ptr<EventLog>> logs;
    while (clients_.size() < crowd) logs.push_back(add_waiter());
    for (const auto& log : logs) log->reconnecting.wait("a client is let into a full server");
  }

  static constexpr std::size_t crowd = 40;

 private:
  std::deque<Client> clients_;
  std::deque<DistributedLock> locks_;
  std::deque<Pending> waiting_;
};

TEST_F(CrowdedServerTest, Holder_ReconnectsAndWaitersConnectRarely) {
  Contender holder(as("holder", {.lease = 6s}), "held");
  Lease lease = take(holder.lock);
  const auto begin = std::chrono::steady_clock::now();
  fill();
  for (int times = 0; times < 2; ++times) {
    EXPECT_GE(terminate("holder"), 1);
    await_renewal(lease);
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begin);
  // Pauses of a second and more grow to ten.
  EXPECT_LE(proxy.counters().accepted, crowd * (4 + static_cast<std::size_t>(seconds.count()) / 2));
  EXPECT_TRUE(lease.release());
}

// --- Locks within locks ----------------------------------------------------------------------------------------------

class NestedTest : public PostgresStrategyTest {
 protected:
  // So many threads of each client take the locks one inside the other, several times.
  static void nest(const std::vector<Client>& clients, int threads, int rounds, const std::vector<std::string>& names) {
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
    EXPECT_EQ(held, threads * rounds * static_cast<int>(clients.size()));
  }
};
INSTANTIATE_TEST_SUITE_P(, NestedTest, testing::ValuesIn(tested(session_strategies)), strategy_name);

TEST_P(NestedTest, MoreThreadsThanConnections_FinishTheirRounds) {
  std::vector<Client> clients;
  clients.push_back(steady());  // ten connections
  nest(clients, 12, 5, {"outer", "inner"});
  clients.clear();
  for (int i = 0; i < 2; ++i) clients.push_back(steady(patient(), "max_connections=4"));
  nest(clients, 6, 3, {"outer", "middle", "inner"});
}

TEST_P(NestedTest, ManyWaits_LeaveRoomForAFreeLock) {
  const Client holder = steady(patient(), "max_connections=40");
  Contender ours(steady(), "free");
  std::vector<Lease> held;
  std::vector<DistributedLock> locks;
  for (int i = 0; i < 14; ++i) {
    locks.push_back(holder.make_lock("held/" + std::to_string(i)));
    held.push_back(take(locks.back()));
  }
  std::deque<Pending> waiting;
  std::deque<DistributedLock> others;
  for (int i = 0; i < 13; ++i) {
    others.push_back(ours.client.make_lock("held/" + std::to_string(i)));
    waiting.emplace_back(others.back(), AcquireOptions{},
                         [](Lease& granted) { conformance::release_soon(std::move(granted)); });
  }
  EXPECT_TRUE(take(ours.lock).release());
  EXPECT_TRUE(ours.lock.try_acquire().has_value());
  EXPECT_FALSE(ours.client.make_lock("held/13").try_acquire().has_value());
  EXPECT_FALSE(ours.client.make_lock("held/13").try_acquire_for(50ms).has_value())
      << "busy, whatever the connections do";
  for (Lease& lease : held) EXPECT_TRUE(lease.release());
  for (Pending& each : waiting) EXPECT_FALSE(each.get().error);
}

}  // namespace

}  // namespace dlock::test
