// pgbouncer in front of the server, which lends server connections by the transaction. Exclusion behind it is for the
// conformance suite.
#include <string>

#include "postgres/postgres_test.hpp"
#include "tests/support/pgbouncer.hpp"

namespace dlock::test {

namespace {

class PoolerTest : public PostgresStrategyTest {
 protected:
  [[nodiscard]] Client pooled(const std::string& more = {}) const {
    return connect_patiently(server.url_at(pooler.port(), strategy(more)), patient());
  }
  PgBouncer pooler{server};
};

class RowsBehindAPoolerTest : public PoolerTest {};
INSTANTIATE_TEST_SUITE_P(, RowsBehindAPoolerTest, testing::ValuesIn(tested(row_strategies)), strategy_name);

// Hazard: behind a pooler, settings reach others and prepared statements disappear
TEST_P(RowsBehindAPoolerTest, ServerSessions_KeepNoSettings) {
  {
    Contender ours(pooled("pooler=transaction"), "shared");
    EXPECT_TRUE(take(ours.lock).release());
  }
  PostgresConnection stranger(server.url_at(pooler.port()));
  EXPECT_EQ(stranger.value("SELECT count(*) FROM pg_prepared_statements"), "0");
  EXPECT_EQ(stranger.value("SHOW search_path"), "\"$user\", public");
  EXPECT_EQ(stranger.value("SHOW synchronous_commit"), "on");
  EXPECT_EQ(stranger.value("SHOW idle_session_timeout"), "0");
}

// Hazard: behind a pooler, read-only transactions look like a standby
TEST_P(RowsBehindAPoolerTest, ReadOnlyByDefault_IsNotTakenForAStandby) {
  server.run("ALTER ROLE locker SET default_transaction_read_only = on");
  {
    Contender direct(steady(), "shared");
    EXPECT_TRUE(take(direct.lock).release()) << "switched off in sessions of its own";
  }
  Contender ours(pooled("pooler=transaction"), "shared");
  const Failure failure = failure_of([&] { (void)ours.lock.acquire({.wait = 1min}); });
  EXPECT_EQ(failure.code, errc::access_denied) << failure.detail;
  EXPECT_NE(failure.detail.find("default_transaction_read_only"), std::string::npos) << failure.detail;
  EXPECT_EQ(failure.detail.find("standby"), std::string::npos) << failure.detail;
}

class SessionsBehindAPoolerTest : public PoolerTest {};
INSTANTIATE_TEST_SUITE_P(, SessionsBehindAPoolerTest, testing::ValuesIn(tested(session_strategies)), strategy_name);

// Shows: hole postgresql-pooler
// Hazard: a pooler lends one session to two clients
TEST_P(SessionsBehindAPoolerTest, DetectedPooler_IsRefused) {
  Contender ours(pooled(), "shared");
  for (const auto wait : {Duration(0s), Duration(1min)}) {
    const auto start = std::chrono::steady_clock::now();
    expect_failure(errc::unsupported, "pooler=session", [&] { (void)ours.lock.acquire({.wait = wait}); });
    EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  }
  EXPECT_TRUE(mentions(ours.client.diagnose(), Finding::Severity::error, "pooler"));
  server.await("NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory')");
  server.await("NOT EXISTS (SELECT FROM pg_stat_activity WHERE state LIKE 'idle in transaction%')");
}

// While it waits, none of its queries may be answered, or pgbouncer keeps the session.
TEST_P(SessionsBehindAPoolerTest, WaiterGoneWhileTheServerHasItWait_LeavesTheQueue) {
  const PgBouncer keeping(server, {.pool_mode = "session", .pool_size = 20});
  const std::string url = server.url_at(keeping.port(), strategy("pooler=session"));
  Contender ours(connect_patiently(url, patient()), "shared");
  Contender other(connect_patiently(url, patient()), "shared");
  const Lease lease = take(ours.lock);
  Pending waiting(other.lock, {});
  await_waiter("shared");
  const auto start = std::chrono::steady_clock::now();
  waiting.cancel();
  server.await("(" + PostgresLock(GetParam(), "shared").waiters() + ") = 0");
  EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
}

}  // namespace

}  // namespace dlock::test
