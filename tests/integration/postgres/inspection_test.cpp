// Questions about locks, and breaking them, on a real server and for every strategy.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "backends/postgres/schema/layout.hpp"
#include "backends/postgres/sql/advisory_key.hpp"
#include "backends/postgres/sql/statements.hpp"
#include "explained.hpp"
#include "held_lock.hpp"
#include "live_services.hpp"
#include "postgres/shared_server.hpp"
#include "strategies.hpp"

namespace dlock::test {

namespace {

using postgres::Strategy;

class PostgresInspectionTest : public OnSharedServer<testing::TestWithParam<Strategy>> {
 protected:
  void SetUp() override { drop_schema(); }
  void drop_schema() const { server.run("DROP SCHEMA IF EXISTS dlock CASCADE"); }

  [[nodiscard]] static std::string strategy() { return "strategy=" + std::string(postgres::to_string(GetParam())); }
  [[nodiscard]] bool lives_in_session() const {
    return GetParam() == Strategy::for_update || GetParam() == Strategy::advisory;
  }
  // What is done takes a moment where a session has to end.
  void await_free(LiveServices& services, const std::string& name) const {
    const auto give_up = std::chrono::steady_clock::now() + rig::hang_guard;
    while (services.inspect(name).value().held) {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up);
      server.run("SELECT pg_sleep(0.01)");
    }
  }
};

postgres::Statement list_statement(Strategy strategy) {
  using postgres::Durability;
  switch (strategy) {
    case Strategy::table:
      return postgres::table_statements("dlock", Durability::sync).list;
    case Strategy::optimistic:
      return postgres::optimistic_statements("dlock", Durability::sync).list;
    case Strategy::for_update:
      return postgres::for_update_statements("dlock", Durability::sync).list;
    case Strategy::advisory:
      break;
  }
  return postgres::advisory_statements("dlock", Durability::sync, postgres::AdvisoryKey::KeySpace::bigint).list;
}

TEST_P(PostgresInspectionTest, NothingIsHeldWhereThereIsNoSchema) {
  LiveServices services(server.url(strategy()));
  auto info = services.inspect("lock");
  ASSERT_TRUE(info.ok()) << info.failure().detail;
  EXPECT_EQ(info.value().name, "lock");
  EXPECT_FALSE(info.value().held);
  EXPECT_TRUE(services.list().value().empty());
  EXPECT_FALSE(services.break_lock("lock").value());
  EXPECT_EQ(server.value("SELECT to_regnamespace('dlock') IS NULL"), "t") << "a question makes nothing";
}

class PostgresAdvisoryInspectionTest : public PostgresInspectionTest {};

// Whether or not dlock has ever been used in that database.
TEST_P(PostgresAdvisoryInspectionTest, AnotherProgramsLockIsSeenWithoutTables) {
  LiveServices services(server.url(strategy() + "&key=int64:4711"));
  EXPECT_FALSE(services.inspect("lock").value().held);
  PostgresConnection other(server.admin_conninfo());
  other.run("SET application_name TO 'migration'; SELECT pg_advisory_lock(4711)");
  const LockInfo info = services.inspect("lock").value();
  EXPECT_TRUE(info.held);
  EXPECT_EQ(info.holder, "migration");
  EXPECT_EQ(info.waiters, 0U);
}

TEST_P(PostgresAdvisoryInspectionTest, ListsHowManyWaitForEachOfThem) {
  LiveServices services(server.url(strategy()));
  ASSERT_FALSE(services.set_up());
  const HeldLock wanted_by_nobody(server.url(), GetParam(), "a");
  const HeldLock wanted(server.url(), GetParam(), "b");
  PostgresConnection other(server.admin_conninfo());
  other.send("SELECT pg_advisory_lock(" + std::to_string(postgres::advisory_key({}, "dlock", "b").number) + ")");
  server.await("EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)");
  const auto infos = services.list().value();
  ASSERT_EQ(infos.size(), 2U);
  EXPECT_EQ(infos[0].name, "a");
  EXPECT_EQ(infos[0].waiters, 0U);
  EXPECT_EQ(infos[1].name, "b");
  EXPECT_EQ(infos[1].waiters, 1U);
}

TEST_P(PostgresInspectionTest, SaysWhoHolds) {
  LiveServices services(server.url(strategy()));
  ASSERT_FALSE(services.set_up());
  HeldLock lock(server.url(), GetParam(), "lock");
  ASSERT_TRUE(lock.taken()) << lock.failure();
  LockInfo info = services.inspect("lock").value();
  EXPECT_TRUE(info.held);
  EXPECT_EQ(info.holder, HeldLock::holder);
  EXPECT_EQ(info.token.value(), lock.token());
  EXPECT_EQ(info.remaining.has_value(), GetParam() == Strategy::table);
  if (info.remaining) {
    EXPECT_GT(*info.remaining, 0s);
    EXPECT_LE(*info.remaining, 30s);
  }
  EXPECT_FALSE(services.inspect("Lock").value().held);

  EXPECT_TRUE(lock.release());
  info = services.inspect("lock").value();
  EXPECT_FALSE(info.held);
  EXPECT_EQ(info.holder, "");
  EXPECT_EQ(info.token.value(), lock.token()) << "the last one";
}

TEST_P(PostgresInspectionTest, ListsWhatIsHeldAndWhatWas) {
  LiveServices services(server.url(strategy()));
  ASSERT_FALSE(services.set_up());
  HeldLock was(server.url(), GetParam(), "a");
  EXPECT_TRUE(was.release());
  const HeldLock is(server.url(), GetParam(), "b");
  const auto infos = services.list().value();
  ASSERT_EQ(infos.size(), 2U);
  EXPECT_EQ(infos[0].name, "a");
  EXPECT_FALSE(infos[0].held);
  EXPECT_EQ(infos[0].token.value(), was.token());
  EXPECT_EQ(infos[1].name, "b");
  EXPECT_TRUE(infos[1].held);
  EXPECT_EQ(infos[1].token.value(), is.token());
}

TEST_P(PostgresInspectionTest, BreaksALockForGood) {
  LiveServices services(server.url(strategy()));
  ASSERT_FALSE(services.set_up());
  HeldLock lock(server.url(), GetParam(), "lock", "owner-1");
  ASSERT_TRUE(lock.taken());
  const auto broken = services.break_lock("lock");
  ASSERT_TRUE(Result<bool>(broken).ok()) << broken.failure().detail;
  EXPECT_TRUE(Result<bool>(broken).value());
  await_free(services, "lock");
  EXPECT_FALSE(services.break_lock("lock").value()) << "nobody holds it";
  EXPECT_FALSE(lock.renew());
  EXPECT_FALSE(lock.release());
  const HeldLock next(server.url(), GetParam(), "lock", "owner-2");
  ASSERT_TRUE(next.taken());
  EXPECT_GT(next.token(), lock.token());
}

TEST_P(PostgresInspectionTest, BreaksNothingButThatLock) {
  LiveServices services(server.url(strategy()));
  ASSERT_FALSE(services.set_up());
  HeldLock one(server.url(), GetParam(), "one");
  HeldLock two(server.url(), GetParam(), "two");
  EXPECT_TRUE(services.break_lock("one").value());
  await_free(services, "one");
  EXPECT_TRUE(two.renew());
  EXPECT_TRUE(services.inspect("two").value().held);
}

// The others break by ending the session.
class PostgresRowInspectionTest : public PostgresInspectionTest {};

TEST_P(PostgresRowInspectionTest, ARowThatSomebodyKeepsLockedHoldsUpNobodyElse) {
  LiveServices services(server.url(strategy()), 2s);
  ASSERT_FALSE(services.set_up());
  HeldLock lock(server.url(), GetParam(), "lock");
  PostgresConnection other(server.admin_conninfo());
  other.run("BEGIN; SELECT * FROM dlock." + std::string(GetParam() == Strategy::table ? "lease" : "optimistic") +
            " FOR UPDATE");
  auto broken = services.break_lock("lock");
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.failure().code, errc::unavailable);
  EXPECT_TRUE(services.inspect("lock").ok()) << "over the same connection";
  other.run("COMMIT");
  EXPECT_TRUE(services.break_lock("lock").value());
}

TEST_P(PostgresInspectionTest, SomebodyElsesSessionIsNotEndedWithoutTheRight) {
  server.run("DROP ROLE IF EXISTS guest");
  server.run("CREATE ROLE guest LOGIN PASSWORD 'secret'");
  LiveServices owner(server.url(strategy()));
  ASSERT_FALSE(owner.set_up());
  server.run("GRANT USAGE ON SCHEMA dlock TO guest");
  server.run("GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA dlock TO guest");
  const HeldLock lock(server.url(), GetParam(), "lock");
  LiveServices guest(server.url_as("guest", "secret", strategy()));
  auto broken = guest.break_lock("lock");
  if (lives_in_session()) {
    ASSERT_FALSE(broken.ok());
    EXPECT_EQ(broken.failure().code, errc::access_denied);
    EXPECT_NE(broken.failure().detail.find("pg_signal_backend"), std::string::npos) << broken.failure().detail;
    server.run("GRANT pg_signal_backend TO guest");
    broken = guest.break_lock("lock");
  }
  ASSERT_TRUE(broken.ok()) << broken.failure().detail;
  EXPECT_TRUE(broken.value());
  drop_schema();
  server.run("DROP ROLE guest");
}

// The grants that failures and documents name are enough to hold, renew and release.
TEST_P(PostgresInspectionTest, TheNamedGrantsSuffice) {
  server.run("DROP ROLE IF EXISTS worker");
  server.run("CREATE ROLE worker LOGIN PASSWORD 'secret'");
  server.run("REVOKE CREATE ON DATABASE locks FROM PUBLIC");
  LiveServices owner(server.url(strategy()));
  ASSERT_FALSE(owner.set_up());
  const std::string url = server.url_as("worker", "secret", strategy());
  {
    const HeldLock refused(url, GetParam(), "lock");
    EXPECT_EQ(refused.sqlstate(), "42501");
  }
  std::string grants = postgres::needed_grants("dlock");
  for (auto at = grants.find("<role>"); at != std::string::npos; at = grants.find("<role>")) {
    grants.replace(at, 6, "worker");
  }
  server.run(grants);
  LiveServices worker(url);
  EXPECT_FALSE(worker.set_up());
  HeldLock lock(url, GetParam(), "lock");
  ASSERT_TRUE(lock.taken()) << lock.failure();
  EXPECT_TRUE(worker.inspect("lock").value().held);
  EXPECT_EQ(worker.list().value().size(), 1U);
  EXPECT_TRUE(lock.renew());
  EXPECT_TRUE(lock.release());
  drop_schema();
  server.run("DROP ROLE worker");
}

// However many names and locks there are, the server looks through neither of them for each of the other.
TEST_P(PostgresInspectionTest, ListingTakesTimeInProportion) {
  constexpr std::size_t names = 20'000;
  LiveServices services(server.url(strategy()));
  ASSERT_FALSE(services.set_up());
  server.run(
      "INSERT INTO dlock.lease (name, holder, token, expires_at) SELECT i, '', 1, '-infinity' "
      "FROM generate_series(1, 20000) AS i");
  server.run(
      "INSERT INTO dlock.optimistic (name, holder, version, token, lease_ms) SELECT i, '', 1, 1, 1 "
      "FROM generate_series(1, 20000) AS i");
  server.run("INSERT INTO dlock.row_lock (name) SELECT i FROM generate_series(1, 20000) AS i");
  server.run("INSERT INTO dlock.row_token (name, holder, token) SELECT i, '', 1 FROM generate_series(1, 20000) AS i");
  server.run(
      "INSERT INTO dlock.fence (name, key, space, pid, holder, token) SELECT i, i, 1, 0, '', 1 "
      "FROM generate_series(1, 20000) AS i");
  server.run("ANALYZE");
  PostgresConnection other(server.admin_conninfo());
  other.run("SELECT pg_advisory_lock(i) FROM generate_series(1, 1000) AS i");
  other.run("PREPARE listing AS " + list_statement(GetParam()).sql);
  const PostgresReply plan = other.query("EXPLAIN (ANALYZE, TIMING OFF) EXECUTE listing(100001)");
  EXPECT_LT(rows_looked_at(plan), 20 * names) << "each of them a few times";
  EXPECT_EQ(services.list().value().size(), names);
}

INSTANTIATE_TEST_SUITE_P(Every, PostgresInspectionTest, testing::ValuesIn(tested()), strategy_name);
INSTANTIATE_TEST_SUITE_P(Of, PostgresAdvisoryInspectionTest, testing::Values(Strategy::advisory), strategy_name);
INSTANTIATE_TEST_SUITE_P(Every, PostgresRowInspectionTest,
                         testing::ValuesIn(tested({Strategy::table, Strategy::optimistic})), strategy_name);

}  // namespace

}  // namespace dlock::test
