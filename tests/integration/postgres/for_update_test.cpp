// strategy=for-update on a real server: what the statements and the server's own rules must make true. What every
// strategy must do is in the conformance suite.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dlock/dlock.hpp>

#include "held_lock.hpp"
#include "integration_test.hpp"
#include "live_connection.hpp"
#include "postgres/shared_server.hpp"
#include "tests/support/pgbouncer.hpp"
#include "tests/support/postgres_locks.hpp"
#include "torture/rig/hang_guard.hpp"
#include "torture/rig/tcp_proxy.hpp"

namespace dlock::test {

namespace {

using postgres::Strategy;

class PostgresForUpdateTest : public OnSharedServer<> {
 protected:
  void SetUp() override {
    server.run("DROP SCHEMA IF EXISTS dlock CASCADE");
    server.run("ALTER ROLE locker RESET ALL");
  }

  [[nodiscard]] static std::string with(const std::string& parameters) {
    return "strategy=for-update" + (parameters.empty() ? "" : "&" + parameters);
  }
  [[nodiscard]] Client client(const std::string& parameters = {}) const {
    return connect_patiently(server.url(with(parameters)));
  }
  // The first acquire does it.
  void make_schema() const {
    const Client first = client();
    (void)first.make_lock("name").acquire();
  }
  // Whoever waits gets a guard instead of forever.
  [[nodiscard]] static std::future<Lease> acquire_later(DistributedLock lock) {
    return std::async(std::launch::async,
                      [own = std::move(lock)]() mutable { return own.acquire({.wait = rig::hang_guard}); });
  }
  // The server does the waiting between two looks.
  void await_in_server(const std::string& condition) const {
    const auto give_up = std::chrono::steady_clock::now() + rig::hang_guard;
    while (server.value("SELECT pg_sleep(0.01) IS NULL OR (" + condition + ")") != "t") {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up) << condition;
    }
  }
  void await_waiters(const std::string& name, int count) const {
    await_in_server("(" + PostgresLock(Strategy::for_update, name).waiters() + ") = " + std::to_string(count));
  }
  [[nodiscard]] std::uint64_t microseconds_of_the_server() const {
    return std::stoull(server.value("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"));
  }
  void end_holder(const std::string& name) const { server.run(PostgresLock(Strategy::for_update, name).take_away()); }
};

// --- Exclusion -------------------------------------------------------------------------------------------------------

TEST_F(PostgresForUpdateTest, ANameThatManyUseForTheFirstTimeAtOnceIsHeldByOneAtATime) {
  constexpr int names = 10;
  constexpr int clients = 4;
  std::vector<std::atomic<int>> inside(names);
  std::vector<std::atomic<int>> entered(names);
  std::atomic<bool> two_inside = false;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < clients; ++i) {
      threads.emplace_back([&] {
        const Client own = client();
        for (int n = 0; n < names; ++n) {
          DistributedLock lock = own.make_lock("new/" + std::to_string(n));
          const Lease lease = lock.acquire({.wait = rig::hang_guard});
          const auto at = static_cast<std::size_t>(n);
          if (++inside[at] != 1) two_inside = true;
          ++entered[at];
          --inside[at];
        }
      });
    }
  }
  EXPECT_FALSE(two_inside);
  for (const auto& count : entered) EXPECT_EQ(count, clients);
  EXPECT_EQ(server.value("SELECT count(*) FROM dlock.row_lock"), std::to_string(names));
}

TEST_F(PostgresForUpdateTest, SettingsOfTheRoleDoNotMatter) {
  for (const char* const setting :
       {"default_transaction_isolation = 'serializable'", "default_transaction_read_only = 'on'",
        "statement_timeout = '50ms'", "lock_timeout = '20ms'", "idle_in_transaction_session_timeout = '100ms'",
        "idle_session_timeout = '100ms'"}) {
    server.run(std::string("ALTER ROLE locker SET ") + setting);
  }
  {
    const Client one = client();
    const Client two = client();
    const Lease lease = one.make_lock("name").acquire({.wait = rig::hang_guard});
    auto waiting = acquire_later(two.make_lock("name"));
    await_waiters("name", 1);
    server.run("SELECT pg_sleep(0.3)");  // longer than any of them
    EXPECT_TRUE(lease.held());
    await_waiters("name", 1);
    EXPECT_TRUE(one.break_lock("name"));
    EXPECT_TRUE(waiting.get().held());
  }
  server.run("ALTER ROLE locker RESET ALL");
}

TEST_F(PostgresForUpdateTest, AnErrorInTheHoldersTransactionFreesTheRowAtOnce) {
  make_schema();
  const auto use = postgres::for_update_statements("dlock", postgres::Durability::sync);
  LiveConnection holder(server.url());
  ASSERT_TRUE(holder.open());
  const auto taken =
      holder.ask({.commands = {{.statement = &use.begin}, {.statement = &use.try_lock, .params = {"name", "holder"}}}});
  ASSERT_FALSE(taken->results().empty());
  const Client other = client();
  EXPECT_FALSE(other.make_lock("name").try_acquire());
  EXPECT_EQ(holder.ask("SELECT 1 / 0")->outcome().sqlstate, "22012");
  EXPECT_TRUE(other.make_lock("name").try_acquire()) << "before any ROLLBACK";
}

// --- Tokens ----------------------------------------------------------------------------------------------------------

TEST_F(PostgresForUpdateTest, TheTokenIsDrawnAfterTheWait) {
  const Client one = client();
  const Client two = client();
  Lease lease = one.make_lock("name").acquire();
  auto waiting = acquire_later(two.make_lock("name"));
  await_waiters("name", 1);
  const std::uint64_t before = microseconds_of_the_server();
  EXPECT_TRUE(lease.release());
  const Lease next = waiting.get();
  EXPECT_GT(next.token().value(), before);
  EXPECT_GT(next.token(), lease.token());
}

TEST_F(PostgresForUpdateTest, ATokenThatWasUndoneIsNotHandedOutAgain) {
  const Client one = client();
  Lease committed = one.make_lock("name").acquire();
  EXPECT_TRUE(committed.release());
  const Lease undone = one.make_lock("name").acquire();
  end_holder("name");
  EXPECT_EQ(server.value("SELECT token FROM dlock.row_token WHERE name = 'name'"),
            std::to_string(committed.token().value()))
      << "the transaction of the second one is gone, and its token with it";
  const Client two = client();
  EXPECT_GT(two.make_lock("name").acquire({.wait = rig::hang_guard}).token(), undone.token());
}

TEST_F(PostgresForUpdateTest, TokensGrowWhenTheTablesWereEmptied) {
  const Client one = client();
  Lease lease = one.make_lock("name").acquire();
  EXPECT_TRUE(lease.release());
  server.run("TRUNCATE dlock.row_lock, dlock.row_token");
  EXPECT_GT(one.make_lock("name").acquire().token(), lease.token());
}

// --- Waiting ---------------------------------------------------------------------------------------------------------

TEST_F(PostgresForUpdateTest, WaitersThatOnlyLockTheRowAreServedInTheirOrder) {
  constexpr int count = 8;
  make_schema();
  const auto use = postgres::for_update_statements("dlock", postgres::Durability::sync);
  HeldLock first(server.url(), Strategy::for_update, "name");
  ASSERT_TRUE(first.taken());
  std::vector<std::unique_ptr<LiveConnection>> connections;
  std::vector<LiveConnection::Answer> answers;
  for (int i = 0; i < count; ++i) {
    connections.push_back(std::make_unique<LiveConnection>(server.url()));
    ASSERT_TRUE(connections.back()->open());
    answers.push_back(connections.back()->ask({.commands = {{.statement = &use.begin},
                                                            {.statement = &use.set_patience, .params = {"60000"}},
                                                            {.statement = &use.lock, .params = {"name", "holder"}}}}));
    (void)connections.back()->ask(use.commit);
    await_waiters("name", i + 1);
  }
  EXPECT_TRUE(first.release());
  std::int64_t last = static_cast<std::int64_t>(first.token());
  for (const auto& answer : answers) {
    ASSERT_FALSE(answer->results().empty()) << answer->outcome().failure.detail;
    const auto token = answer->results().back().number(0, 0);
    ASSERT_TRUE(token);
    EXPECT_GT(*token, last);
    last = *token;
  }
}

TEST_F(PostgresForUpdateTest, AWaiterThatGaveUpDoesNotStayInTheServersQueue) {
  const Client one = client();
  const Client two = client();
  Lease lease = one.make_lock("name").acquire();
  std::stop_source cancel;
  auto waiting = std::async(std::launch::async, [&] {
    std::error_code error;
    (void)two.make_lock("name").acquire({.wait = rig::hang_guard, .cancel = cancel.get_token()}, error);
    return error;
  });
  await_waiters("name", 1);
  cancel.request_stop();
  EXPECT_EQ(waiting.get(), errc::cancelled);
  await_waiters("name", 0);
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(two.make_lock("name").try_acquire());
}

TEST_F(PostgresForUpdateTest, ConnectionsAreLimitedAndWaitersGetTheNextOneThatIsFree) {
  const Client one = client("max_connections=2");
  Lease a = one.make_lock("a").acquire();
  const Lease b = one.make_lock("b").acquire();
  try {
    (void)one.make_lock("c").try_acquire();
    ADD_FAILURE() << "a third connection";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), errc::unavailable);
    EXPECT_NE(e.detail().find("max_connections=2"), std::string::npos) << e.detail();
  }
  auto waiting = acquire_later(one.make_lock("c"));
  EXPECT_TRUE(a.release());
  EXPECT_TRUE(waiting.get().held());
  EXPECT_TRUE(b.held());
}

// --- Loss ------------------------------------------------------------------------------------------------------------

TEST_F(PostgresForUpdateTest, AHolderThatIsNotHeardOfLosesItsLockBeforeTheServerFreesIt) {
  rig::TcpProxy proxy(rig::Endpoint::loopback(server.port()));
  const Client silent = connect_patiently(server.url_at(proxy.port(), with("lease=2s")));
  const Client other = client();
  const Lease lease = silent.make_lock("name").acquire();
  auto waiting = std::async(std::launch::async, [&] {
    const Lease next = other.make_lock("name").acquire({.wait = rig::hang_guard});
    return lease.held();
  });
  await_waiters("name", 1);
  proxy.set({.mode = rig::Traffic::Mode::hold});
  EXPECT_FALSE(waiting.get()) << "two holders at once";
}

TEST_F(PostgresForUpdateTest, AHolderWhoseSessionIsEndedIsToldAtOnce) {
  const Client one = client("lease=1h");
  const Lease lease = one.make_lock("name").acquire();
  std::promise<void> lost;
  const std::stop_callback told(lease.lost(), [&] { lost.set_value(); });
  end_holder("name");
  ASSERT_EQ(lost.get_future().wait_for(rig::hang_guard), std::future_status::ready);
  EXPECT_FALSE(lease.held());
  EXPECT_TRUE(one.make_lock("name").try_acquire());
}

// --- Who holds -------------------------------------------------------------------------------------------------------

TEST_F(PostgresForUpdateTest, AHolderWithALongNameIsShownShortened) {
  const Client one = connect_patiently(server.url(with("")), {.label = std::string(64, 'x')});
  const Lease lease = one.make_lock("name").acquire();
  const Client other = client();
  const LockInfo info = other.inspect("name");
  EXPECT_TRUE(info.held);
  EXPECT_EQ(info.token, lease.token());
  EXPECT_FALSE(info.holder.empty());
  EXPECT_TRUE(one.holder().starts_with(info.holder)) << info.holder;
  EXPECT_LT(info.holder.size(), one.holder().size());
}

TEST_F(PostgresForUpdateTest, ASessionThatPretendsToBeAHolderDoesNotBreakTheQuestion) {
  make_schema();
  PostgresConnection somebody(server.admin_conninfo());
  somebody.run("SET application_name = 'dlock#99999999999999999999999999:nobody'");
  somebody.run("BEGIN");
  somebody.run("SELECT name FROM dlock.row_lock WHERE name = 'name' FOR UPDATE");
  const LockInfo info = client().inspect("name");
  EXPECT_TRUE(info.held);
  EXPECT_EQ(info.holder, "nobody");
}

// --- Poolers ---------------------------------------------------------------------------------------------------------

TEST_F(PostgresForUpdateTest, APoolerIsRefusedUnlessTheUserVouchesForIt) {
  const PgBouncer transactions(server);
  try {
    const Client unvouched = connect_patiently(server.url_at(transactions.port(), with("")));
    (void)unvouched.make_lock("name").acquire({.wait = rig::hang_guard});
    ADD_FAILURE() << "a lock through a pooler";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), errc::unsupported);
    EXPECT_NE(e.detail().find("pooler=session"), std::string::npos) << e.detail();
  }
  const PgBouncer sessions(server, {.pool_mode = "session", .pool_size = 5});
  const Client one = connect_patiently(server.url_at(sessions.port(), with("pooler=session")));
  const Client two = connect_patiently(server.url_at(sessions.port(), with("pooler=session")));
  Lease lease = one.make_lock("name").acquire({.wait = rig::hang_guard});
  EXPECT_FALSE(two.make_lock("name").try_acquire());
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(two.make_lock("name").try_acquire());
}

}  // namespace

}  // namespace dlock::test
