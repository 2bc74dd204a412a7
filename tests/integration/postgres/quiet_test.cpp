// What finds a lock busy, and what only asks, writes nothing: no WAL, and no transaction that would have to be
// committed to disk.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "backends/postgres/sql/statements.hpp"
#include "held_lock.hpp"
#include "live_services.hpp"
#include "postgres/shared_server.hpp"

namespace dlock::test {

namespace {

using postgres::Durability;

constexpr const char* one_try = "'lock', 'me', 'holder', 30000, 'somebody', 7, 0, 'channel'";
constexpr const char* tries =
    "ARRAY['lock', 'Lock'], ARRAY['me', 'I'], ARRAY['holder', 'holder'], ARRAY[30000, 30000], ARRAY['', 'somebody'], "
    "ARRAY[0, 7], ARRAY[0, 0], 'channel'";

class PostgresQuietTest : public OnSharedServer<> {
 protected:
  void SetUp() override {
    server.run("DROP SCHEMA IF EXISTS dlock CASCADE");
    ASSERT_FALSE(LiveServices(server.url()).set_up());
    sql = std::make_unique<PostgresConnection>(server.admin_conninfo());
  }

  struct Written {
    std::int64_t wal_bytes = 0;
    bool transaction = false;  // one that has an id, and so a commit record

    friend bool operator==(const Written&, const Written&) = default;
  };
  // By one execution, as the server's own accounts of its plan have it: what else goes on does not count.
  Written written(const std::string& statement, const std::string& arguments) {
    sql->run("DEALLOCATE ALL");
    sql->run("PREPARE s AS " + statement);
    sql->run("BEGIN");
    const PostgresReply plan =
        sql->query("EXPLAIN (ANALYZE, WAL, TIMING OFF, FORMAT JSON) EXECUTE s(" + arguments + ")");
    if (plan.is_error()) throw std::runtime_error(plan.error);
    Written result{.wal_bytes = sum_of("\"WAL Bytes\": ", plan.rows.at(0).at(0).value_or("")),
                   .transaction = sql->value("SELECT pg_current_xact_id_if_assigned() IS NOT NULL") == "t"};
    sql->run("ROLLBACK");
    return result;
  }
  static std::int64_t sum_of(const std::string& key, const std::string& text) {
    std::int64_t sum = 0;
    for (auto at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) {
      sum += std::stoll(text.substr(at + key.size()));
    }
    return sum;
  }
  void expect_silence(const std::string& what, const postgres::Statement& statement, const std::string& arguments) {
    const Written by_it = written(statement.sql, arguments);
    EXPECT_EQ(by_it, Written{}) << what << " wrote " << by_it.wal_bytes << " bytes";
  }
  void expect_noise(const std::string& what, const std::string& statement, const std::string& arguments) {
    const Written by_it = written(statement, arguments);
    EXPECT_GT(by_it.wal_bytes, 0) << what;
    EXPECT_TRUE(by_it.transaction) << what;
  }

  // "lock" and "Lock" are somebody else's.
  void expect_silence_while_busy(const postgres::RowStatements& s) {
    expect_silence("tries", s.acquire, tries);
    expect_silence("a try", s.acquire_one, one_try);
    expect_silence("a renewal alone of what is lost", s.renew_one, "'lock', 'me', 30000");
    expect_silence("a release alone of what is lost", s.release_one, "'lock', 'me', 0, 'channel'");
    expect_silence("a renewal of what is lost", s.renew, "ARRAY['lock'], ARRAY['me'], ARRAY[30000]");
    expect_silence("a release of what is lost", s.release, "ARRAY['lock'], ARRAY['me'], ARRAY[0], 'channel'");
    expect_silence("an inspection", s.inspect, "'lock'");
    expect_silence("a list", s.list, "100");
    expect_silence("a break of nothing", s.break_lock, "'free', 'channel'");
  }

  std::unique_ptr<PostgresConnection> sql;
  const HeldLock::Strategy table = HeldLock::Strategy::table;
};

TEST_F(PostgresQuietTest, TheUsualUpsertWritesWhenItIsBusy) {
  const HeldLock lock(server.url(), table, "lock");
  expect_noise(
      "an upsert",
      "INSERT INTO dlock.lease AS l (name, owner, holder, token, expires_at) VALUES ($1::text, $2::text, '', 1, "
      "clock_timestamp()) ON CONFLICT (name) DO UPDATE SET owner = $2::text WHERE l.expires_at <= "
      "clock_timestamp()",
      "'lock', 'me'");
}

TEST_F(PostgresQuietTest, BusyTriesForARowWithAnExpiryWriteNothing) {
  const auto s = postgres::table_statements("dlock", Durability::sync);
  const HeldLock lock(server.url(), table, "lock");
  const HeldLock other(server.url(), table, "Lock");
  expect_silence_while_busy(s);
  expect_noise("a mark", s.mark.sql, "ARRAY['lock'], 60000, 30000");
  server.run("UPDATE dlock.lease SET waiting_until = 'infinity'");
  expect_silence("a mark on what is marked", s.mark, "ARRAY['lock'], 60000, 30000");
  server.run("UPDATE dlock.lease SET expires_at = '-infinity'");
  expect_noise("grants", s.acquire.sql, tries);
  expect_noise("a grant", s.acquire_one.sql, "'Lock', 'I', 'holder', 30000, '', 0, 0, 'channel'");
}

TEST_F(PostgresQuietTest, BusyTriesForARowWithAVersionWriteNothing) {
  const auto s = postgres::optimistic_statements("dlock", Durability::sync);
  const HeldLock lock(server.url(), HeldLock::Strategy::optimistic, "lock");
  const HeldLock other(server.url(), HeldLock::Strategy::optimistic, "Lock");
  expect_silence_while_busy(s);
  server.run("UPDATE dlock.optimistic SET waiting_until = 'infinity'");
  expect_silence("a mark on what is marked", s.mark, "ARRAY['lock'], 60000, 30000");
  server.run("UPDATE dlock.optimistic SET owner = NULL");
  expect_noise("grants", s.acquire.sql, tries);
  expect_noise("a grant", s.acquire_one.sql, "'Lock', 'I', 'holder', 30000, '', 0, 0, 'channel'");
}

TEST_F(PostgresQuietTest, BusyTriesForWhatSeveralMayHoldWriteNothing) {
  const auto s = postgres::sharing_statements("dlock", Durability::sync, LockKind::read_write);
  const auto asked = [](const std::string& what, const std::string& weight, const std::string& mark) {
    return "ARRAY['lock'], ARRAY['me'], ARRAY[" + what + "], ARRAY[30000], ARRAY['holder'], ARRAY[" + weight +
           "], ARRAY[9], ARRAY[" + mark + "], 'channel'";
  };
  const std::string reader = asked("2", "1", "0");
  server.run(
      "INSERT INTO dlock.lease_rw (name, token, permits, holders) VALUES ('lock', 1, 9, '{\"writer\": "
      "[9000000000000000, "
      "1, 9, \"\"]}')");
  expect_silence("a reader", s.change, reader);
  expect_silence("a writer", s.change, asked("2", "9", "0"));
  expect_silence("a renewal of what is lost", s.change, asked("1", "9", "0"));
  expect_silence("a release of what is lost", s.change, asked("0", "9", "0"));
  expect_silence("an inspection", s.inspect, "'lock'");
  expect_silence("a list", s.list, "100");
  expect_silence("a break of nothing", s.break_lock, "'free', 'channel'");
  expect_noise("a writer who waits", s.change.sql, asked("2", "9", "60000"));
  server.run("UPDATE dlock.lease_rw SET writer = 'me', marked_until = 'infinity'");
  expect_silence("a writer who waits already", s.change, asked("2", "9", "60000"));
  server.run("UPDATE dlock.lease_rw SET holders = '{\"reader\": [9000000000000000, 1, 1, \"\"]}'");
  expect_silence("a reader while a writer waits", s.change, reader);
  server.run("UPDATE dlock.lease_rw SET marked_until = '-infinity'");
  expect_noise("a grant", s.change.sql, reader);
}

// A row that another transaction has locked is as busy as one that is held.
TEST_F(PostgresQuietTest, TriesForARowThatIsBeingChangedWriteNothing) {
  const auto s = postgres::table_statements("dlock", Durability::sync);
  server.run("INSERT INTO dlock.lease (name, holder, token, expires_at) VALUES ('lock', '', 1, '-infinity')");
  PostgresConnection other(server.admin_conninfo());
  other.run("BEGIN; SELECT FROM dlock.lease FOR UPDATE");
  expect_silence("a try", s.acquire, "ARRAY['lock'], ARRAY['me'], ARRAY['holder'], ARRAY[30000], '{}', '{}', '{}', ''");
}

TEST_F(PostgresQuietTest, BusyTriesForSessionsLocksWriteNothing) {
  const auto a = postgres::advisory_statements("dlock", Durability::sync, postgres::AdvisoryKey::KeySpace::bigint);
  server.run("SELECT pg_advisory_lock(5)");
  expect_silence("a try", a.try_lock, "5, 'lock', 'holder'");
  expect_silence("tries", a.try_many, "ARRAY['5'], ARRAY['lock'], ARRAY['holder']");
  expect_silence("an inspection", a.inspect, "5, 'lock'");
  expect_silence("a list", a.list, "100");
  const auto rw = postgres::advisory_statements("dlock", Durability::sync, postgres::AdvisoryKey::KeySpace::bigint,
                                                LockKind::read_write, Mode::shared);
  expect_silence("a reader's try", rw.try_lock, "5, 'lock', 'holder', 1");
  server.run("SELECT pg_advisory_unlock(5)");
  expect_noise("a grant", a.try_lock.sql, "5, 'lock', 'holder'");

  const auto f = postgres::for_update_statements("dlock", Durability::sync);
  const HeldLock lock(server.url(), HeldLock::Strategy::for_update, "lock");
  expect_silence("the row is there", f.ensure, "'lock'");
  expect_silence("a try in a transaction", f.try_in_transaction, "'lock', 'holder'");
  expect_silence("an inspection", f.inspect, "'lock'");
  expect_silence("a list", f.list, "100");
}

}  // namespace

}  // namespace dlock::test
