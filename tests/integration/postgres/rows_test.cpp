// The strategies whose locks are rows on a real server: wake-ups, and rows that other transactions have locked, insert
// or commit late.
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "event_log.hpp"
#include "postgres/postgres_test.hpp"

namespace dlock::test {

namespace {

class PostgresRowsTest : public PostgresStrategyTest {
 protected:
  PostgresRowsTest() { (void)steady().initialize(); }

  [[nodiscard]] static bool optimistic() { return GetParam() == Strategy::optimistic; }
  [[nodiscard]] static std::string table() { return token_table(GetParam()); }
  [[nodiscard]] std::string is_held(const std::string& name) {
    return server.value("SELECT (" + PostgresLock(GetParam(), name).residue() + ") = 1");
  }
  // A release of it is going to notify for long enough.
  [[nodiscard]] static std::string marked(const std::string& name) {
    return "EXISTS (SELECT FROM " + table() + " WHERE name = '" + name +
           "' AND waiting_until > clock_timestamp() + interval '5 s')";
  }
};
INSTANTIATE_TEST_SUITE_P(, PostgresRowsTest, testing::ValuesIn(tested(row_strategies)), strategy_name);

// --- Wake-ups --------------------------------------------------------------------------------------------------------

// Time stands still for both clients, so that neither asks again by itself: a waiter is woken, or waits for ever.
TEST_P(PostgresRowsTest, Release_WakesAWaiterWithoutPolling) {
  const auto clock = std::make_shared<ManualClock>();
  const Client one = steady({.clock = clock});
  const Client other = steady({.clock = clock});
  DistributedLock locks[] = {one.make_lock("x"), other.make_lock("x")};
  std::optional<Lease> lease = take(locks[0], {.lease = 10min});
  for (std::size_t turn = 1; turn <= 20; ++turn) {
    Pending next(locks[turn % 2], {.lease = 10min});
    await_in_server(marked("x"));
    ASSERT_FALSE(next.done());
    const FencingToken token = lease->token();
    EXPECT_TRUE(lease->release());
    lease = next.lease();
    EXPECT_GT(lease->token(), token);
    server.run("UPDATE " + table() + " SET waiting_until = '-infinity'");
  }
}

TEST_P(PostgresRowsTest, ReleaseWithoutWaiters_NotifiesNoClient) {
  Contender locker(steady(), "x");
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(take(locker.lock).release());
  EXPECT_EQ(server.value("SELECT waiting_until = '-infinity' FROM " + table() + " WHERE name = 'x'"), "t");
  EXPECT_EQ(server.value("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE '% listen'"), "0");
}

// Marking a lock that is waited for locks its row for a moment.
TEST_P(PostgresRowsTest, ArrivingWaiters_FailNoRelease) {
  constexpr int names = 300;
  const Client holder = steady();
  const Client waiter = steady();
  std::vector<DistributedLock> held;
  std::vector<DistributedLock> wanted;
  for (int i = 0; i < names; ++i) {
    held.push_back(holder.make_lock(std::to_string(i)));
    wanted.push_back(waiter.make_lock(std::to_string(i)));
  }
  for (int round = 0; round < 3; ++round) {
    std::vector<Pending> granted;
    for (DistributedLock& lock : held) granted.emplace_back(lock, AcquireOptions{});
    std::vector<Lease> leases;
    for (Pending& each : granted) leases.push_back(each.lease());
    Event released;
    std::atomic<int> failures{0};
    std::vector<Pending> waiting;
    for (DistributedLock& lock : wanted) waiting.emplace_back(lock, AcquireOptions{});
    for (Lease& lease : leases) {
      lease.async_release([&](std::error_code error, bool was_ours) {
        if (error || !was_ours) failures.fetch_add(1);
        released.set();
      });
      std::this_thread::yield();
    }
    released.wait("releases", names);
    EXPECT_EQ(failures.load(), 0);
    for (Pending& each : waiting) EXPECT_TRUE(each.lease().release());
  }
}

// A full queue of notifications: a session listens and takes none, because its transaction does not end. To fill the
// server's takes 8 GB. So this one refuses as that would: at the commit, with its SQLSTATE.
TEST_P(PostgresRowsTest, RefusedNotifications_DelayNoReleaseOrBreak) {
  PostgresServer full;
  const auto client = [&] { return connect_patiently(full.url(strategy()), patient()); };
  const Client holder = client();
  const Client other = client();
  std::vector<DistributedLock> locks;
  std::vector<DistributedLock> others;
  std::vector<Lease> leases;
  std::vector<Pending> waiting;
  for (int i = 0; i < 5; ++i) {
    locks.push_back(holder.make_lock("lock/" + std::to_string(i)));
    others.push_back(other.make_lock("lock/" + std::to_string(i)));
    leases.push_back(take(locks.back()));
  }
  for (DistributedLock& lock : others) waiting.emplace_back(lock, AcquireOptions{});
  for (int i = 0; i < 5; ++i) {
    full.await("(" + PostgresLock(GetParam(), "lock/" + std::to_string(i)).waiters() + ") > 0");
  }
  full.run("CREATE TABLE public.notified (payload text)");
  full.run(
      "CREATE FUNCTION public.full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "RAISE EXCEPTION 'too many notifications in the NOTIFY queue' USING ERRCODE = '54000'; END $$");
  full.run(
      "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON public.notified DEFERRABLE INITIALLY DEFERRED "
      "FOR EACH ROW EXECUTE FUNCTION public.full()");
  full.run("ALTER FUNCTION pg_catalog.pg_notify(text, text) RENAME TO pg_notify_as_it_was");
  full.run(
      "CREATE FUNCTION pg_catalog.pg_notify(text, text) RETURNS void LANGUAGE sql SECURITY DEFINER AS $$ "
      "INSERT INTO public.notified VALUES ($2) $$");
  EXPECT_THROW(full.run("SELECT pg_catalog.pg_notify('some', 'thing')"), std::runtime_error);
  EXPECT_TRUE(other.break_lock("lock/0"));
  for (std::size_t i = 1; i < leases.size(); ++i) EXPECT_TRUE(leases[i].release());
  // The waiters try again now and then.
  for (Pending& each : waiting) EXPECT_TRUE(each.lease().held());
}

// --- Rows that another transaction has -------------------------------------------------------------------------------

TEST_P(PostgresRowsTest, RowLockedByOthers_DelaysNoOtherLock) {
  const auto log = std::make_shared<EventLog>();
  const Client locker = steady({.response_timeout = 3s, .observer = log});
  DistributedLock stuck = locker.make_lock("stuck");
  DistributedLock other = locker.make_lock("other");
  std::optional<Lease> stuck_lease = take(stuck, {.lease = 10min});
  PostgresConnection foreign(server.admin_conninfo());
  foreign.run("BEGIN");
  ASSERT_EQ(foreign.value("SELECT name FROM " + table() + " WHERE name = 'stuck' FOR UPDATE"), "stuck");

  const Lease other_lease = take(other, {.lease = 6s});
  Contender second(steady(), "stuck");
  EXPECT_FALSE(second.lock.try_acquire().has_value()) << "busy, without a wait for the row";
  Pending waiting(second.lock, {});
  await_renewals(*log, 3);
  EXPECT_TRUE(other_lease.held());
  for (const char* const name : {"new", "stuck too", "other too"}) {
    DistributedLock lock = locker.make_lock(name);
    EXPECT_TRUE(lock.try_acquire().has_value()) << name;
  }
  const Client impatient_one = steady({.response_timeout = 2s});
  expect_failure(errc::unavailable, "", [&] { (void)impatient_one.break_lock("stuck"); });
  EXPECT_EQ(impatient_one.inspect("stuck").token, stuck_lease->token()) << "over the same connection";
  stuck_lease.reset();  // cannot be released just now; goes on in the background
  EXPECT_EQ(is_held("stuck"), "t");
  EXPECT_FALSE(waiting.done());
  foreign.run("ROLLBACK");
  EXPECT_TRUE(waiting.lease().held());
}

// A client that inserts the same row has to wait for it; but not for long, because renewals come behind.
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
  await_in_server("EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND usename = 'locker')");
  await_renewals(*log, 3 * leases.size());
  for (const Lease& lease : leases) EXPECT_TRUE(lease.held());
  EXPECT_FALSE(waiting.done());
  foreign.run("ROLLBACK");
  EXPECT_TRUE(waiting.lease().held());
}

// --- Commits that take longer than their client waits, as where a standby has to confirm them ------------------------

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

TEST_P(PostgresLateCommitTest, CommitAfterTheDeadline_IsUndone) {
  const auto& [strategy, kind] = GetParam();
  {
    const Client client = steady(patient(), with(strategy));
    (void)client.initialize();
    (void)try_acquire(client).value().release();  // the row is there
  }
  await_in_server(asking(0));
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
  await_in_server(asking(2));  // its release, over another connection
  slow.run("SELECT pg_advisory_unlock(1)");
  await_in_server(asking(1));
  client.reset();
  EXPECT_EQ(server.value(PostgresLock(strategy, "x", kind).residue()), "0");
}

// --- Encodings -------------------------------------------------------------------------------------------------------

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

  // A waiter for such a name is woken, too.
  Contender waiter(connect_patiently(url, {.clock = std::make_shared<ManualClock>()}), locks[5].name());
  Pending waiting(waiter.lock, {.lease = 10min});
  PostgresConnection sql(latin.admin_conninfo("latin"));
  sql.run("SET client_encoding = 'UTF8'");
  await("the lock is not marked", [&] { return sql.value("SELECT " + marked(locks[5].name())) == "t"; });
  ASSERT_FALSE(waiting.done());
  EXPECT_TRUE(outcomes[5].lease.release());
  EXPECT_TRUE(waiting.lease().held());
}

}  // namespace

}  // namespace dlock::test
