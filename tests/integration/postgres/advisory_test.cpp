// Advisory locks of a real PostgreSQL server: what is known to go wrong with them.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "postgres/advisory_backend.hpp"
#include "postgres/postgres_test.hpp"
#include "tests/support/postgres_connection.hpp"

namespace dlock::test {

namespace {

using postgres::AdvisoryLocks;

constexpr const char* advisory = "strategy=advisory";
constexpr AdvisoryLocks::Limits short_slices{.slices = {20ms, 40ms}};

class AdvisoryTest : public PostgresTest {
 protected:
  [[nodiscard]] Client client(const std::string& more = {}) const {
    return steady(patient(), more.empty() ? advisory : std::string(advisory) + "&" + more);
  }
  [[nodiscard]] Client client_with(AdvisoryLocks::Limits limits) const {
    return connect_advisory(server.url(advisory), patient(), limits);
  }
  [[nodiscard]] static std::string key_of(const std::string& name) {
    return std::to_string(postgres::advisory_key({}, "dlock", name).number);
  }
  [[nodiscard]] std::string count(bool granted) {
    return server.value(std::string("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND ") +
                        (granted ? "granted" : "NOT granted"));
  }
  void await_count(bool granted, int number) {
    await_in_server(std::string("(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND ") +
                    (granted ? "granted" : "NOT granted") + ") = " + std::to_string(number));
  }
  // The tables are there from then on.
  void make_schema() {
    const Client first = client();
    DistributedLock lock = first.lock("first");
    EXPECT_TRUE(take(lock).release());
  }
};

// --- What the lock is ------------------------------------------------------------------------------------------------

TEST_F(AdvisoryTest, IsTheLockOfPlainSql) {
  const Client ours = client("key=int64:42");
  DistributedLock lock = ours.lock("any name");
  PostgresConnection sql(server.admin_conninfo());
  Lease lease = take(lock);
  EXPECT_EQ(sql.value("SELECT pg_try_advisory_lock(42)"), "f");
  EXPECT_TRUE(lease.release());
  EXPECT_EQ(sql.value("SELECT pg_try_advisory_lock(42)"), "t");
  EXPECT_FALSE(lock.try_acquire());
  Pending waiting(lock, {});
  await_count(false, 1);
  sql.run("SELECT pg_advisory_unlock(42)");
  EXPECT_TRUE(waiting.lease().release());
  EXPECT_EQ(count(true), "0");
}

TEST_F(AdvisoryTest, KeysOfASpaceOfPairsAreOthersThanThoseOfOneNumber) {
  const Client pairs = client("key=pair:0,42");
  const Client numbers = client("key=int64:42");
  DistributedLock of_pairs = pairs.lock("any name");
  DistributedLock of_numbers = numbers.lock("any other name");
  PostgresConnection sql(server.admin_conninfo());
  const Lease one = take(of_pairs);
  const Lease other = take(of_numbers);
  EXPECT_EQ(sql.value("SELECT pg_try_advisory_lock(0, 42)"), "f");
  EXPECT_EQ(count(true), "2");
}

TEST_F(AdvisoryTest, ANameWhoseKeyTheServerComputesIsTheLockOfThatHash) {
  const Client ours = client("key=hashtextextended");
  DistributedLock one = ours.lock("one");
  DistributedLock other = ours.lock("other");
  PostgresConnection sql(server.admin_conninfo());
  Lease lease = take(one);
  Lease second = take(other);
  EXPECT_FALSE(one.try_acquire());
  EXPECT_EQ(sql.value("SELECT pg_try_advisory_lock(hashtextextended('one', 0))"), "f");
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(second.release());
  EXPECT_EQ(count(true), "0");
}

TEST_F(AdvisoryTest, TwoNamesWithOneKeyAreOneLock) {
  const Client ours = client("key=int64:42");
  DistributedLock one = ours.lock("one");
  DistributedLock other = ours.lock("other");
  Lease lease = take(one);
  EXPECT_FALSE(other.try_acquire());
  Pending waiting(other, {});
  await_count(false, 1);
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(waiting.lease().release());
}

TEST_F(AdvisoryTest, ASessionNeverHasALockTwice) {
  const Client ours = client();
  DistributedLock lock = ours.lock("a");
  Lease lease = take(lock);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(lock.try_acquire());
  EXPECT_TRUE(lease.release());
  EXPECT_EQ(count(true), "0");  // one unlock was enough
}

TEST_F(AdvisoryTest, AHolderDoesNotKeepTheServerFromCleaningUp) {
  const Client ours = client();
  DistributedLock lock = ours.lock("a");
  const Lease lease = take(lock);
  EXPECT_EQ(server.value("SELECT count(*) FROM pg_stat_activity WHERE usename = 'locker' AND "
                         "(backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)"),
            "0");
}

TEST_F(AdvisoryTest, WaitersOfSeveralClientsAreServedInTheOrderInWhichTheyCame) {
  const Client ours = client();
  DistributedLock lock = ours.lock("a");
  Lease lease = take(lock);
  std::vector<Client> clients;
  std::vector<DistributedLock> locks;
  std::vector<Pending> waiting;
  constexpr int waiters = 6;
  clients.reserve(waiters);
  locks.reserve(waiters);
  waiting.reserve(waiters);
  for (int i = 0; i < waiters; ++i) {
    clients.push_back(client());
    locks.push_back(clients.back().lock("a"));
    waiting.emplace_back(locks.back(), AcquireOptions{});
    await_count(false, i + 1);
  }
  FencingToken last = lease.token();
  EXPECT_TRUE(lease.release());
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    Lease next = waiting[i].lease();
    EXPECT_GT(next.token(), last);
    last = next.token();
    for (std::size_t later = i + 1; later < waiting.size(); ++later) EXPECT_FALSE(waiting[later].done());
    EXPECT_FALSE(locks[i].try_acquire());  // nor does a try overtake
    EXPECT_TRUE(next.release());
  }
}

// --- Errors after which a session may have the lock ------------------------------------------------------------------

TEST_F(AdvisoryTest, AnErrorAfterTheGrantLeavesNothingAndHarmsNobodyElse) {
  make_schema();
  server.run(
      "CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "IF NEW.name LIKE 'bad%' THEN RAISE EXCEPTION 'no room' USING ERRCODE = '53100'; END IF; RETURN NEW; END $$");
  server.run("CREATE TRIGGER fail BEFORE INSERT OR UPDATE ON dlock.fence FOR EACH ROW EXECUTE FUNCTION public.fail()");
  const Client ours = client();
  std::vector<DistributedLock> locks;
  std::vector<Pending> all;
  locks.reserve(20);
  all.reserve(20);
  for (int i = 0; i < 20; ++i) {
    locks.push_back(ours.lock((i % 4 == 1 ? "bad/" : "good/") + std::to_string(i)));
    all.emplace_back(locks.back(), AcquireOptions{.wait = 0s});  // most of them in one statement
  }
  std::vector<Lease> leases;
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto outcome = all[i].get();
    if (i % 4 == 1) {
      EXPECT_EQ(outcome.error, errc::unavailable) << i;
    } else {
      EXPECT_FALSE(outcome.error) << i << ": " << outcome.error.message();
      leases.push_back(std::move(outcome.lease));
    }
  }
  await_count(true, 15);
  server.run("DROP TRIGGER fail ON dlock.fence");
  EXPECT_TRUE(take(locks[1]).release());
  for (Lease& lease : leases) EXPECT_TRUE(lease.release());
  await_count(true, 0);
}

TEST_F(AdvisoryTest, ATimeoutInTheMomentOfTheGrantLeavesNothing) {
  make_schema();
  const Client ours = client_with({.slices = {1ms, 3ms}});
  DistributedLock lock = ours.lock("a");
  PostgresConnection sql(server.admin_conninfo());
  // The lock gets free again and again, about when a slice ends.
  for (int i = 0; i < 100; ++i) {
    sql.run("SELECT pg_advisory_lock(" + key_of("a") + ")");
    Pending waiting(lock, {});
    await_in_server("true");
    EXPECT_EQ(sql.value("SELECT pg_sleep(0.001 * random()) IS NOT NULL AND pg_advisory_unlock(" + key_of("a") + ")"),
              "t");
    EXPECT_TRUE(waiting.lease().release());
    ASSERT_EQ(sql.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"), "0") << i;
  }
}

TEST_F(AdvisoryTest, ATimeoutAfterTheGrantLeavesNothing) {
  make_schema();
  const Client ours = client_with(short_slices);
  DistributedLock lock = ours.lock("a");
  DistributedLock free = ours.lock("free");
  EXPECT_TRUE(take(lock).release());
  PostgresConnection sql(server.admin_conninfo());
  PostgresConnection other(server.admin_conninfo());
  sql.run("SELECT pg_advisory_lock(" + key_of("a") + ")");
  Pending waiting(lock, {});
  await_count(false, 1);
  // Whoever is granted the lock has to wait for its row, until the slice is over.
  sql.run("BEGIN; SELECT FROM dlock.fence WHERE name = 'a' FOR UPDATE");
  sql.run("SELECT pg_advisory_unlock(" + key_of("a") + ")");
  await_in_server(
      "EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND "
      "wait_event IN ('transactionid', 'tuple') AND usename = 'locker')");
  // Were it left held, nobody would ever get it.
  EXPECT_EQ(other.value("SELECT pg_advisory_lock(" + key_of("a") + ")"), "");
  EXPECT_FALSE(waiting.done());
  sql.run("COMMIT");
  other.run("SELECT pg_advisory_unlock(" + key_of("a") + ")");
  EXPECT_TRUE(waiting.lease().release());
  EXPECT_EQ(count(true), "0");
}

TEST_F(AdvisoryTest, ADeadlocksVictimLetsTheOtherGoOnAndGetsTheLockInTheEnd) {
  make_schema();
  server.run("ALTER ROLE locker SET deadlock_timeout = '1s'");  // so that the victim is ours
  const Client ours = client();
  DistributedLock lock = ours.lock("a");
  EXPECT_TRUE(take(lock).release());
  PostgresConnection sql(server.admin_conninfo());
  sql.run("SET deadlock_timeout = '1h'");
  sql.run("BEGIN; SELECT FROM dlock.fence WHERE name = 'a' FOR UPDATE");
  Pending waiting(lock, {});  // gets the lock, and waits for its row
  await_in_server("EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND usename = 'locker')");
  sql.send("SELECT pg_advisory_lock(" + key_of("a") + ")");
  EXPECT_FALSE(sql.receive().is_error());
  EXPECT_FALSE(waiting.done());
  sql.run("COMMIT");
  sql.run("SELECT pg_advisory_unlock(" + key_of("a") + ")");
  EXPECT_TRUE(waiting.lease().release());
  EXPECT_EQ(count(true), "0");
}

TEST_F(AdvisoryTest, AWaitThatIsCancelledInTheServerGoesOn) {
  const Client ours = client();
  const Client other = client();
  DistributedLock lock = ours.lock("a");
  DistributedLock others = other.lock("a");
  Lease lease = take(others);
  Pending waiting(lock, {});
  for (int i = 0; i < 3; ++i) {
    await_count(false, 1);
    EXPECT_EQ(server.value("SELECT bool_and(pg_cancel_backend(pid)) FROM pg_locks WHERE NOT granted"), "t");
  }
  EXPECT_FALSE(waiting.done());
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(waiting.lease().release());
  EXPECT_EQ(count(true), "0");
}

// --- Waiting ---------------------------------------------------------------------------------------------------------

TEST_F(AdvisoryTest, WhoGivesUpLeavesTheServersQueue) {
  const Client ours = client();
  const Client other = client();
  DistributedLock lock = ours.lock("a");
  DistributedLock others = other.lock("a");
  Lease lease = take(others);
  Pending waiting(lock, {});
  await_count(false, 1);
  waiting.cancel();
  EXPECT_EQ(waiting.get().error, errc::cancelled);
  await_count(false, 0);
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(lease.release());
  EXPECT_EQ(count(true), "0");
}

TEST_F(AdvisoryTest, OneThatIsGrantedAfterAWaitLongerThanItsLeaseIsSafe) {
  const Client ours = connect(server.url(advisory), {.lease = 1s});
  const Client other = client();
  DistributedLock lock = ours.lock("a");
  DistributedLock others = other.lock("a");
  Lease lease = take(others);
  Pending waiting(lock, {});
  await_count(false, 1);
  await_in_server(
      "EXISTS (SELECT FROM pg_stat_activity AS a JOIN pg_locks AS l ON a.pid = l.pid WHERE "
      "NOT l.granted AND a.query_start < clock_timestamp() - interval '1500 ms')");
  EXPECT_TRUE(lease.release());
  Lease granted = waiting.lease();
  EXPECT_TRUE(granted.held());
  EXPECT_EQ(server.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"), "1");
  EXPECT_TRUE(granted.release());
}

TEST_F(AdvisoryTest, MoreMayWaitThanThereAreConnections) {
  const Client ours = client("max_connections=2");
  const Client other = client();
  constexpr int waiters = 8;
  DistributedLock others = other.lock("a");
  Lease lease = take(others);
  DistributedLock lock = ours.lock("a");
  std::vector<Pending> waiting;
  waiting.reserve(waiters);
  for (int i = 0; i < waiters; ++i) {
    waiting.emplace_back(lock, AcquireOptions{}, [](Lease& granted) { conformance::release_soon(std::move(granted)); });
  }
  await_count(false, 2);
  EXPECT_TRUE(lease.release());
  for (Pending& each : waiting) EXPECT_FALSE(each.get().error);
  await_count(true, 0);
}

TEST_F(AdvisoryTest, WhoWaitsBeyondTheConnectionsIsNotLeftOutWhenItsLockIsFree) {
  const Client ours = client("max_connections=1");
  const Client other = client();
  DistributedLock a = other.lock("a");
  DistributedLock b = other.lock("b");
  Lease lease_a = take(a);
  Lease lease_b = take(b);
  DistributedLock our_a = ours.lock("a");
  DistributedLock our_b = ours.lock("b");
  Pending waits_for_a(our_a, {});
  await_count(false, 1);
  Pending waits_for_b(our_b, {});
  EXPECT_TRUE(lease_b.release());
  EXPECT_TRUE(waits_for_b.lease().release());  // though the connection waits for the other
  EXPECT_FALSE(waits_for_a.done());
  EXPECT_TRUE(lease_a.release());
  EXPECT_TRUE(waits_for_a.lease().release());
}

TEST_F(AdvisoryTest, TheReasonOfAWaitInVainBeyondTheConnectionsIsTheirNumber) {
  const Client ours = client("max_connections=1");
  const Client other = client();
  DistributedLock others = other.lock("a");
  const Lease lease = take(others);
  DistributedLock lock = ours.lock("a");
  Pending first(lock, {});
  await_count(false, 1);
  try {
    (void)lock.acquire({.wait = 50ms});
    ADD_FAILURE() << "acquired";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), errc::unavailable);
    EXPECT_NE(e.detail().find("max_connections=1"), std::string::npos) << e.detail();
  }
}

// --- The sessions ----------------------------------------------------------------------------------------------------

TEST_F(AdvisoryTest, TheServerFreesWhatIsHeldByAClientThatItDoesNotHearOf) {
  const Client silent = connect(server.url_at(proxy.port(), advisory),
                                {.lease = short_lease, .response_timeout = 300ms, .close_timeout = 100ms});
  const Client other = client();
  DistributedLock tried = silent.lock("tried");
  DistributedLock waited = silent.lock("waited");
  DistributedLock others_tried = other.lock("tried");
  DistributedLock others_waited = other.lock("waited");
  Lease before = take(others_waited);
  Pending waiting(waited, {});
  await_count(false, 1);
  const Lease lease = take(tried);
  EXPECT_TRUE(before.release());
  const Lease on_other_connection = waiting.lease();
  const LossEvent loss(lease);
  const LossEvent other_loss(on_other_connection);
  Pending next(others_tried, {}, [&](Lease&) { EXPECT_FALSE(lease.held()); });
  Pending next_too(others_waited, {}, [&](Lease&) { EXPECT_FALSE(on_other_connection.held()); });
  await_count(false, 2);
  proxy.set({.mode = Traffic::Mode::hold});
  EXPECT_TRUE(next.lease().release());
  EXPECT_TRUE(next_too.lease().release());
  loss.event().wait("the loss is not signalled");
  other_loss.event().wait("the loss is not signalled");
}

TEST_F(AdvisoryTest, ALockIsLostWithItsConnectionAndNoOther) {
  const Client ours = client();
  const Client other = client();
  DistributedLock tried = ours.lock("tried");
  DistributedLock waited = ours.lock("waited");
  DistributedLock others = other.lock("waited");
  Lease before = take(others);
  Pending waiting(waited, {});
  await_count(false, 1);
  EXPECT_TRUE(before.release());
  const Lease on_its_own = waiting.lease();
  Lease lease = take(tried);
  server.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '% waiting'");
  LossEvent(on_its_own).event().wait("the loss is not signalled");
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(lease.release());
}

TEST_F(AdvisoryTest, TheServersTableOfLocksIsFullForAWhile) {
  make_schema();
  const Client ours = client();
  DistributedLock lock = ours.lock("a");
  PostgresConnection sql(server.admin_conninfo());
  // The server is made to say so; a table that is really full would keep everybody else out, too.
  server.run(
      "CREATE FUNCTION public.full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "RAISE EXCEPTION 'out of shared memory' USING ERRCODE = '53200'; END $$");
  server.run(
      "CREATE TRIGGER full_table BEFORE INSERT OR UPDATE ON dlock.fence FOR EACH ROW "
      "EXECUTE FUNCTION public.full()");
  try {
    (void)lock.try_acquire();
    ADD_FAILURE() << "acquired";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), errc::unavailable);
    EXPECT_NE(e.detail().find("max_locks_per_transaction"), std::string::npos) << e.detail();
  }
  Pending waiting(lock, {});
  server.run("DROP TRIGGER full_table ON dlock.fence");
  EXPECT_TRUE(waiting.lease().release());
  await_count(true, 0);
}

TEST_F(AdvisoryTest, AClientHoldsOnlySoManyLocks) {
  const Client ours = client_with({.locks = 15});  // ten of which may be on connections of their own
  std::vector<DistributedLock> locks;
  std::vector<Lease> leases;
  for (int i = 0; i < 6; ++i) locks.push_back(ours.lock(std::to_string(i)));
  for (std::size_t i = 0; i < 5; ++i) leases.push_back(take(locks[i]));
  std::error_code ec;
  EXPECT_FALSE(locks[5].try_acquire({}, ec));
  EXPECT_EQ(ec, errc::unavailable);
  Pending waiting(locks[5], {});
  EXPECT_TRUE(leases[0].release());
  EXPECT_TRUE(waiting.lease().release());
}

}  // namespace

}  // namespace dlock::test
