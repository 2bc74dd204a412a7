// Servers that have no connections left.
#include <deque>
#include <functional>
#include <stdexcept>
#include <string>

#include "postgres/postgres_test.hpp"

namespace dlock::test {

namespace {

class FullServerTest : public PostgresStrategyTest {
 protected:
  // Three of them are the superuser's.
  FullServerTest() : PostgresStrategyTest({.max_connections = 8}) {}

  void fill() {
    for (int i = 0; i < 5; ++i) others_.push_back(std::make_unique<PostgresConnection>(server.url()));
  }
  void empty() { others_.clear(); }

 private:
  std::vector<std::unique_ptr<PostgresConnection>> others_;
};

TEST_P(FullServerTest, ATryIsUnavailableAndSaysWhy) {
  fill();
  const Client client = steady(impatient());
  DistributedLock lock = client.make_lock("full");
  try {
    (void)lock.try_acquire();
    ADD_FAILURE() << "there is no connection to be had";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), errc::unavailable) << error.what();
    EXPECT_NE(error.detail().find("53300"), std::string::npos) << error.what();
  }
}

TEST_P(FullServerTest, AWaitOutlastsIt) {
  fill();
  const Client client = steady(impatient());
  DistributedLock lock = client.make_lock("full");
  Pending waiting(lock, {});
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::unavailable) << error.message();
  EXPECT_FALSE(waiting.done());
  empty();
  EXPECT_TRUE(waiting.lease().release());
}

TEST_P(FullServerTest, WhoHoldsAlreadyIsNotDisturbed) {
  const Client client = steady({.lease = 12s});
  DistributedLock lock = client.make_lock("held");
  Lease lease = take(lock);
  std::vector<std::unique_ptr<PostgresConnection>> rest;
  while (rest.size() < 5) {
    try {
      rest.push_back(std::make_unique<PostgresConnection>(server.url()));
    } catch (const std::runtime_error&) {
      break;  // full
    }
  }
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
    locks_.push_back(clients_.back().make_lock(name));
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
  // False: it is lost.
  [[nodiscard]] bool is_renewed(const Lease& lease) {
    const TimePoint before = lease.valid_until();
    while (lease.held() && lease.valid_until() <= before) server.run("SELECT pg_sleep(0.01)");
    return lease.held();
  }

  static constexpr std::size_t crowd = 40;
  const std::string name = "held";

 private:
  std::deque<Client> clients_;
  std::deque<DistributedLock> locks_;
  std::deque<Pending> waiting_;
};

TEST_F(CrowdedServerTest, AHolderComesBackAndThoseThatWaitDoNotStormIt) {
  const Client holder = as("holder", {.lease = 6s});
  DistributedLock lock = holder.make_lock(name);
  Lease lease = take(lock);
  const auto begin = std::chrono::steady_clock::now();
  fill();
  for (int times = 0; times < 2; ++times) {
    EXPECT_GE(terminate("holder"), 1);
    ASSERT_TRUE(is_renewed(lease)) << times;
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begin);
  // Pauses of a second and more grow to ten.
  EXPECT_LE(proxy.counters().accepted, crowd * (4 + static_cast<std::size_t>(seconds.count()) / 2));
  EXPECT_TRUE(lease.release());
}

INSTANTIATE_TEST_SUITE_P(, FullServerTest, testing::ValuesIn(tested()), strategy_name);

}  // namespace

}  // namespace dlock::test
