// Roles whose transactions are stricter than the statements are written for, as administrators set them.
#include <atomic>
#include <thread>

#include "postgres/postgres_test.hpp"
#include "tests/support/pgbouncer.hpp"

namespace dlock::test {

namespace {

// Several clients, each with several threads, at one lock. Nobody may notice anything but that it is busy.
void expect_no_error_under_contention(const std::string& url) {
  constexpr int clients = 3;
  constexpr int threads_each = 2;
  constexpr int rounds = 15;
  std::atomic<bool> inside = false;
  std::vector<Client> all;
  for (int i = 0; i < clients; ++i) all.push_back(connect_patiently(url, patient()));
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < clients * threads_each; ++i) {
      threads.emplace_back([&, i] {
        DistributedLock lock = all[static_cast<std::size_t>(i % clients)].make_lock("contended");
        for (int round = 0; round < rounds; ++round) {
          std::error_code error;
          Lease lease = lock.acquire({}, error);
          ASSERT_FALSE(error) << error.message();
          EXPECT_FALSE(inside.exchange(true));
          inside = false;
          EXPECT_TRUE(lease.release(error)) << error.message();
        }
      });
    }
  }
  for (const Client& client : all) EXPECT_EQ(client.stats().failed, 0U);
}

class IsolationTest : public PostgresStrategyTest {
 protected:
  void isolate(const std::string& level) {
    server.run(std::string("ALTER ROLE ") + PostgresServer::user + " SET default_transaction_isolation = '" + level +
               "'");
  }
};

TEST_P(IsolationTest, SerializableMakesNoErrors) {
  isolate("serializable");
  expect_no_error_under_contention(server.url(strategy()));
}

TEST_P(IsolationTest, RepeatableReadMakesNoErrors) {
  isolate("repeatable read");
  expect_no_error_under_contention(server.url(strategy()));
}

// Settings that end or fail what takes long, or what changes anything.
TEST_P(IsolationTest, OtherSettingsOfTheRoleDoNotMatter) {
  for (const char* setting :
       {"default_transaction_read_only = on", "statement_timeout = '20ms'", "lock_timeout = '20ms'",
        "idle_session_timeout = '50ms'", "idle_in_transaction_session_timeout = '50ms'", "search_path = 'nowhere'",
        "default_transaction_deferrable = on", "standard_conforming_strings = off", "datestyle = 'SQL, DMY'",
        "intervalstyle = 'sql_standard'", "timezone = 'Asia/Kabul'", "bytea_output = 'escape'",
        "synchronous_commit = off"}) {
    server.run(std::string("ALTER ROLE ") + PostgresServer::user + " SET " + setting);
  }
  const Client holder = steady(patient());
  const Client other = steady(patient());
  DistributedLock lock = holder.make_lock("held");
  DistributedLock others = other.make_lock("held");
  Lease lease = take(lock);
  Pending waiting(others, {});
  await_waiter("held");
  server.run("SELECT pg_sleep(0.3)");  // longer than any of the limits
  EXPECT_TRUE(lease.held());
  EXPECT_FALSE(waiting.done());
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(waiting.lease().release());
  EXPECT_EQ(holder.stats().failed + other.stats().failed, 0U);
}

INSTANTIATE_TEST_SUITE_P(, IsolationTest, testing::ValuesIn(tested()), strategy_name);

// Behind a pooler nothing can be set for the session.
class PooledIsolationTest : public IsolationTest {};

TEST_P(PooledIsolationTest, SerializableMakesNoErrors) {
  isolate("serializable");
  const PgBouncer pooler(server);
  expect_no_error_under_contention(server.url_at(pooler.port(), strategy("pooler=transaction")));
}

INSTANTIATE_TEST_SUITE_P(, PooledIsolationTest, ::testing::ValuesIn(tested({Strategy::table, Strategy::optimistic})),
                         strategy_name);

}  // namespace

}  // namespace dlock::test
