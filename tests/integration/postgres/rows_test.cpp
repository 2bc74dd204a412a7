// The strategies whose locks are rows on a real server: wake-ups, rows that other transactions have locked, insert or
// commit late, locks of several holders, and races for a row.
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "backends/postgres/sql/statements.hpp"
#include "event_log.hpp"
#include "postgres/postgres_test.hpp"

namespace dlock::test {

namespace {

class PostgresRowsTest : public PostgresStrategyTest {
 protected:
  PostgresRowsTest() { (void)steady().initialize(); }

  [[nodiscard]] static bool optimistic() { return GetParam() == Strategy::optimistic; }
  [[nodiscard]] static std::string table() { return token_table(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(, PostgresRowsTest, testing::ValuesIn(tested(row_strategies)), strategy_name);

// Time stands still for both clients, so that neither asks again by itself: a waiter is woken, or waits for ever.
// Shows: waiters-woken
TEST_P(PostgresRowsTest, Release_WakesAWaiterWithoutPolling) {
  const auto clock = std::make_shared<ManualClock>();
  const Client clients[] = {steady({.clock = clock}), steady({.clock = clock})};
  DistributedLock locks[] = {clients[0].make_lock("x"), clients[1].make_lock("x")};
  Lease lease = take(locks[0], {.lease = 10min});
  for (std::size_t turn = 1; turn <= 20; ++turn) {
    Pending next(locks[turn % 2], {.lease = 10min});
    await_waiter("x");
    EXPECT_TRUE(lease.release());
    lease = next.lease();
    server.run("UPDATE " + table() + " SET waiting_until = '-infinity'");
  }
}

// Hazard: `NOTIFY` makes commits wait for each other
TEST_P(PostgresRowsTest, ReleaseWithoutWaiters_NotifiesNoClient) {
  Contender locker(steady(), "x");
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(take(locker.lock).release());
  EXPECT_EQ(server.value("SELECT waiting_until = '-infinity' FROM " + table() + " WHERE name = 'x'"), "t");
  EXPECT_EQ(server.value("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE '% listen'"), "0");
}

// A client that inserts the same row has to wait for it; but not for long, because renewals come behind.
// Hazard: a row that another transaction inserts delays other locks
TEST_P(PostgresRowsTest, RowInsertedByOthers_DelaysNoOtherLockForLong) {
  const auto log = std::make_shared<EventLog>();
  const Client locker = steady({.response_timeout = 10s, .observer = log});
  std::vector<Lease> leases;  // on each of the client's connections
  for (const char* const name : {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}) {
    DistributedLock lock = locker.make_lock(std::string("held/") + name);
    leases.push_back(take(lock, {.lease = 6s}));
  }
  PostgresConnection foreign(server.admin_conninfo());
  foreign.run("BEGIN; INSERT INTO " + table() + " (name, owner, holder, token, " +
              (optimistic() ? "version, lease_ms) VALUES ('stuck', 'foreign', '', 1, 1, 1000)"
                            : "expires_at) VALUES ('stuck', 'foreign', '', 1, 'infinity')"));
  DistributedLock stuck = locker.make_lock("stuck");
  Pending waiting(stuck, {});
  server.await("EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND usename = 'locker')");
  await_renewals(*log, 3 * leases.size());
  for (const Lease& lease : leases) EXPECT_TRUE(lease.held());
  EXPECT_FALSE(waiting.done());
  foreign.run("ROLLBACK");
  EXPECT_TRUE(waiting.lease().held());
}

// Commits that take longer than their client waits, as where a standby has to confirm them.
class PostgresLateCommitTest : public PostgresTest, public testing::WithParamInterface<std::pair<Strategy, LockKind>> {
 protected:
  // So many sessions have sent a statement about the row, and have their answer or wait for it.
  [[nodiscard]] static std::string asking(int sessions) {
    return std::to_string(sessions) +
           " = (SELECT count(*) FROM pg_stat_activity WHERE usename = 'locker' AND query LIKE "
           "'%WITH _ AS%MATERIALIZED%' AND (state = 'idle' OR wait_event_type = 'Lock'))";
  }
  static std::optional<Lease> try_acquire(const Client& client) {
    std::error_code error;
    return GetParam().second == LockKind::semaphore ? client.make_semaphore("x", 2).try_acquire({.lease = 10min}, error)
                                                    : client.make_lock("x").try_acquire({.lease = 10min}, error);
  }
};
INSTANTIATE_TEST_SUITE_P(, PostgresLateCommitTest,
                         testing::Values(std::pair(Strategy::table, LockKind::lock),
                                         std::pair(Strategy::optimistic, LockKind::lock),
                                         std::pair(Strategy::table, LockKind::semaphore)),
                         [](const auto& row) {
                           return std::string(postgres::to_string(row.param.first)) +
                                  (row.param.second == LockKind::semaphore ? "_semaphore" : "");
                         });

// Hazard: a commit succeeds after its client has gone
TEST_P(PostgresLateCommitTest, CommitAfterTheDeadline_IsUndone) {
  const auto& [strategy, kind] = GetParam();
  {
    const Client client = steady(patient(), with(strategy));
    (void)client.initialize();
    (void)try_acquire(client).value().release();  // the row is there
  }
  server.await(asking(0));
  // The session's client is gone by then, for which the server would roll the transaction back.
  server.run(
      "CREATE FUNCTION dlock.late() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0 "
      "SET client_connection_check_interval = 0 AS $$ BEGIN "
      "PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END $$;"
      "GRANT EXECUTE ON FUNCTION dlock.late() TO PUBLIC;"
      "CREATE CONSTRAINT TRIGGER late AFTER INSERT OR UPDATE ON dlock." +
      postgres::table_of(strategy == Strategy::table ? "lease" : "optimistic", kind) +
      " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION dlock.late()");
  std::optional<Client> client = steady({.response_timeout = 300ms, .close_timeout = 1min}, with(strategy));
  PostgresConnection slow(server.admin_conninfo());
  slow.run("SELECT pg_advisory_lock(1)");
  EXPECT_FALSE(try_acquire(*client)) << "no answer in time";
  server.await(asking(2));  // its release, over another connection
  slow.run("SELECT pg_advisory_unlock(1)");
  server.await(asking(1));
  client.reset();
  EXPECT_EQ(server.value(PostgresLock(strategy, "x", kind).residue()), "0");
}

// Hazard: a text that is read in another encoding
TEST_P(PostgresRowsTest, NameOutsideTheEncoding_FailsAlone) {
  PostgresServer latin;
  // A database has an encoding of its own only with a template of this name.
  if (latin.value("SELECT count(*) FROM pg_database WHERE datname = 'template0'") == "0") {
    latin.run("CREATE DATABASE template0 TEMPLATE template1");
  }
  latin.run("CREATE DATABASE latin OWNER locker ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0");
  std::string url = latin.url(strategy());
  url.replace(url.find("/locks"), std::string("/locks").size(), "/latin");
  Contender locker(connect_patiently(url, patient()), "caf\xc3\xa9");
  ASSERT_FALSE(locker.client.initialize().empty());
  EXPECT_TRUE(take(locker.lock).release());

  // All of them are sent together, when the answer to the first one comes.
  std::vector<DistributedLock> locks;
  std::vector<Pending> all;
  for (int i = 0; i < 100; ++i) {
    locks.push_back(locker.client.make_lock(i == 64 ? "\xe6\x97\xa5\xe6\x9c\xac" : "\xc3\xa9" + std::to_string(i)));
  }
  latin.freeze();
  for (DistributedLock& lock : locks) all.emplace_back(lock, AcquireOptions{});
  latin.thaw();
  std::vector<Outcome> outcomes;
  for (Pending& each : all) outcomes.push_back(each.get());
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    EXPECT_EQ(outcomes[i].error, i == 64 ? make_error_code(errc::invalid_argument) : std::error_code()) << i;
  }
}

// Locks of several holders, with strategy=table: one row, whose newest version decides.
class PostgresSharingTest : public PostgresTest {
 protected:
  PostgresSharingTest() { (void)client().initialize(); }

  [[nodiscard]] Client client(ClientOptions options = patient()) const { return steady(std::move(options)); }
};

// It retries after half of the time, by its own clock.
TEST_F(PostgresSharingTest, WriterThatRetries_KeepsItsMark) {
  PostgresConnection sql(server.admin_conninfo());
  sql.run("PREPARE change AS " +
          postgres::sharing_statements("dlock", postgres::Durability::async, LockKind::semaphore).change.sql);
  server.run(
      "INSERT INTO dlock.lease_sem (name, token, permits, holders, writer, marked_until) VALUES ('x', 1, 9, "
      "'{\"a\": [9000000000000000, 1, 1, \"h\"]}', 'w', clock_timestamp() + interval '32 s')");
  sql.run("EXECUTE change('{x}', '{w}', '{2}', '{60000}', '{h}', '{9}', '{9}', '{60000}', 'c')");
  EXPECT_EQ(server.value("SELECT marked_until > clock_timestamp() + interval '40 s' FROM dlock.lease_sem"), "t");
}

// Hazard: rows of several holders that are skipped during a change: renewals fail
TEST_F(PostgresSharingTest, FiftyReadersOfOneRow_Renew) {
  constexpr int clients = 5;
  constexpr int readers = 10;
  const auto log = std::make_shared<EventLog>();
  std::deque<Client> all;
  std::deque<Lease> leases;
  for (int i = 0; i < clients; ++i) {
    all.push_back(client({.observer = log}));
    for (int k = 0; k < readers; ++k) {
      leases.push_back(all.back().make_read_write_lock("x").acquire_shared({.wait = 1min, .lease = 3s}));
    }
  }
  // Another client changes the row all the time.
  std::atomic<bool> done{false};
  std::thread passer_by([&, other = client()] {
    ReadWriteLock lock = other.make_read_write_lock("x");
    while (!done) {
      const auto reading = lock.try_acquire_shared();
      EXPECT_TRUE(reading);
    }
  });
  await_renewals(*log, 3 * clients * readers);
  done = true;
  passer_by.join();
  EXPECT_FALSE(log->losses.happened());
  for (const Lease& each : leases) EXPECT_TRUE(each.held());
  EXPECT_EQ(all.front().inspect("x", LockKind::read_write).holders.size(), leases.size());
}

TEST_F(PostgresSharingTest, RowOfAnotherLayout_IsRefused) {
  server.run("INSERT INTO dlock.lease_sem (name, token, permits, holders) VALUES ('x', 1, 1, '{\"a\": \"b\"}')");
  const Client asking = client();
  expect_failure(errc::protocol, "", [&] { (void)asking.make_semaphore("x", 1).try_acquire(); });
}

// Statements, of one request or many, that meet others at the same row.
class PostgresOurRaceTest : public PostgresTest, public testing::WithParamInterface<std::tuple<Strategy, bool>> {
 protected:
  PostgresOurRaceTest() {
    (void)steady(patient()).initialize();
    const auto use = postgres::row_statements(strategy, "dlock", postgres::Durability::sync, LockKind::lock);
    for (PostgresConnection* each : {&slow, &quick}) {
      each->run("PREPARE take AS " + (many() ? use.acquire : use.acquire_one).sql);
    }
  }

  [[nodiscard]] static bool many() { return std::get<1>(GetParam()); }
  [[nodiscard]] static std::string take(const std::string& owner) {
    return "EXECUTE take(" + (many() ? "'{lock}', '{" + owner + "}', '{holder}', '{60000}', '{\"\"}', '{0}', '{0}', '')"
                                     : "'lock', '" + owner + "', 'holder', 60000, '', 0, 0, '')");
  }
  // nullopt: busy.
  [[nodiscard]] static std::optional<std::int64_t> token_in(const PostgresReply& reply) {
    if (reply.is_error()) throw std::runtime_error(reply.error);
    if (reply.rows.empty() || !reply.rows[0].at(1)) return std::nullopt;
    return std::stoll(*reply.rows[0][1]);
  }

  const Strategy strategy = std::get<0>(GetParam());
  const std::string table = token_table(strategy);
  PostgresConnection slow{server.admin_conninfo()};
  PostgresConnection quick{server.admin_conninfo()};
};
INSTANTIATE_TEST_SUITE_P(, PostgresOurRaceTest, testing::Combine(testing::ValuesIn(row_strategies), testing::Bool()),
                         [](const auto& test) {
                           return strategy_word(std::get<0>(test.param)) + (std::get<1>(test.param) ? "_many" : "");
                         });

// A trigger runs after the values were evaluated, as everything else that makes a server slow: the row stays locked
// meanwhile, so nothing is granted in between.
// Shows: growing-tokens
// Hazard: two get a free row: read first, then update
// Hazard: a time or token from before the wait for a row
TEST_P(PostgresOurRaceTest, SlowGrant_KeepsOthersOutAndTokensInOrder) {
  const bool optimistic = strategy == Strategy::optimistic;
  server.run(optimistic
                 ? "INSERT INTO dlock.optimistic (name, holder, version, token, lease_ms) VALUES ('lock', '', 1, 1, 1)"
                 : "INSERT INTO dlock.lease (name, holder, token, expires_at) VALUES ('lock', '', 1, '-infinity')");
  server.run(
      "CREATE FUNCTION dlock.dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "PERFORM pg_advisory_xact_lock_shared(7); RETURN NEW; END $$");
  server.run("CREATE TRIGGER dawdle BEFORE UPDATE ON " + table + " FOR EACH ROW EXECUTE FUNCTION dlock.dawdle()");
  PostgresConnection brake(server.admin_conninfo());
  brake.run("SELECT pg_advisory_lock(7)");
  slow.send(take("slow"));
  server.await("EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pid = " + std::to_string(slow.backend_pid()) + ")");
  EXPECT_FALSE(token_in(quick.query(take("quick")))) << "busy, at once";
  brake.run("SELECT pg_advisory_unlock(7)");
  const auto first = token_in(slow.receive());
  ASSERT_TRUE(first);
  EXPECT_FALSE(token_in(quick.query(take("quick"))));
  server.run("UPDATE " + table + " SET owner = NULL" + (optimistic ? "" : ", expires_at = '-infinity'"));
  const auto second = token_in(quick.query(take("quick")));
  ASSERT_TRUE(second);
  EXPECT_GT(*second, *first);
}

}  // namespace

}  // namespace dlock::test
