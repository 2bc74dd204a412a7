// Errors after which a session of a real PostgreSQL server may have an advisory lock that nobody holds.
#include <string>
#include <vector>

#include "postgres/advisory_test.hpp"

namespace dlock::test {

namespace {

using AdvisoryErrorsTest = AdvisoryTest;

// Other products speak PostgreSQL's protocol, and have the functions so that programs run.
TEST_F(AdvisoryErrorsTest, AServerWhoseFunctionsLockNothingIsRefused) {
  make_schema();
  server.run("SET allow_system_table_mods = on");
  server.run("ALTER FUNCTION pg_catalog.pg_try_advisory_lock(bigint) RENAME TO pg_try_real_advisory_lock");
  server.run(
      "CREATE FUNCTION pg_catalog.pg_try_advisory_lock(bigint) RETURNS boolean LANGUAGE sql VOLATILE AS 'SELECT true'");
  for (const AcquireOptions& how : {AcquireOptions{.wait = 0s}, AcquireOptions{}}) {
    const Client ours = client();
    DistributedLock lock = ours.make_lock("x");
    std::error_code error;
    (void)lock.acquire(how, error);
    EXPECT_EQ(error, errc::unsupported);
  }
}

TEST_F(AdvisoryErrorsTest, AnErrorAfterTheGrantLeavesNothingAndHarmsNobodyElse) {
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
    locks.push_back(ours.make_lock((i % 4 == 1 ? "bad/" : "good/") + std::to_string(i)));
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

// The server ends a wait in the same way when a slice is over.
TEST_F(AdvisoryErrorsTest, ACancelInTheMomentOfTheGrantLeavesNothing) {
  make_schema();
  const Client ours = client();
  DistributedLock lock = ours.make_lock("a");
  PostgresConnection sql(server.admin_conninfo());
  // The lock gets free again and again, about when the wait for it is cancelled.
  for (int i = 0; i < 100; ++i) {
    sql.run("SELECT pg_advisory_lock(" + key_of("a") + ")");
    Pending waiting(lock, {});
    await_count(false, 1);
    EXPECT_EQ(sql.value("SELECT pg_cancel_backend(pid) AND pg_sleep(0.0002 * random()) IS NOT NULL AND "
                        "pg_advisory_unlock(" +
                        key_of("a") +
                        ") FROM pg_locks WHERE locktype = 'advisory' AND "
                        "NOT granted"),
              "t");
    EXPECT_TRUE(waiting.lease().release());
    ASSERT_EQ(sql.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"), "0") << i;
  }
}

TEST_F(AdvisoryErrorsTest, ATimeoutAfterTheGrantLeavesNothing) {
  make_schema();
  const Client ours = client();
  DistributedLock lock = ours.make_lock("a");
  DistributedLock free = ours.make_lock("free");
  EXPECT_TRUE(take(lock).release());
  PostgresConnection sql(server.admin_conninfo());
  PostgresConnection other(server.admin_conninfo());
  sql.run("SELECT pg_advisory_lock(" + key_of("a") + ")");
  Pending waiting(lock, {});
  await_count(false, 1);
  // The client that is granted the lock waits for its row, and gives up soon.
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

TEST_F(AdvisoryErrorsTest, ADeadlocksVictimLetsTheOtherGoOnAndGetsTheLockInTheEnd) {
  make_schema();
  server.run("ALTER ROLE locker SET deadlock_timeout = '1s'");  // so that the victim is ours
  const Client ours = client();
  DistributedLock lock = ours.make_lock("a");
  EXPECT_TRUE(take(lock).release());
  PostgresConnection sql(server.admin_conninfo());
  sql.run("SET deadlock_timeout = '1h'");
  sql.run("SELECT pg_advisory_lock(" + key_of("a") + ")");
  Pending waiting(lock, {});
  await_count(false, 1);
  sql.run("BEGIN; SELECT FROM dlock.fence WHERE name = 'a' FOR UPDATE");
  sql.run("SELECT pg_advisory_unlock(" + key_of("a") + ")");  // whoever waits gets the lock, and waits for its row
  await_in_server(
      "EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND "
      "wait_event IN ('transactionid', 'tuple') AND usename = 'locker')");
  sql.send("SELECT pg_advisory_lock(" + key_of("a") + ")");
  EXPECT_FALSE(sql.receive().is_error());
  EXPECT_FALSE(waiting.done());
  sql.run("COMMIT");
  sql.run("SELECT pg_advisory_unlock(" + key_of("a") + ")");
  EXPECT_TRUE(waiting.lease().release());
  EXPECT_EQ(count(true), "0");
}

TEST_F(AdvisoryErrorsTest, AWaitThatIsCancelledInTheServerGoesOn) {
  const Client ours = client();
  const Client other = client();
  DistributedLock lock = ours.make_lock("a");
  DistributedLock others = other.make_lock("a");
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

TEST_F(AdvisoryErrorsTest, TheServersTableOfLocksIsFullForAWhile) {
  make_schema();
  const Client ours = client();
  DistributedLock lock = ours.make_lock("a");
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

}  // namespace

}  // namespace dlock::test
