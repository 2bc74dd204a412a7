// Advisory locks of a real PostgreSQL server: keys, errors after which a session may have a lock that is not held, rows
// that other transactions have locked, readers.
#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "backends/postgres/sql/advisory_key.hpp"
#include "network/hostile_names.hpp"
#include "postgres/postgres_test.hpp"

namespace dlock::test {

namespace {

class AdvisoryTest : public PostgresTest {
 protected:
  AdvisoryTest() { (void)client().initialize(); }

  [[nodiscard]] Client client(const std::string& more = {}, ClientOptions options = patient()) const {
    return steady(std::move(options), with(Strategy::advisory, more));
  }
  [[nodiscard]] static std::string key_of(const std::string& name) {
    return std::to_string(postgres::advisory_key({}, "dlock", name).number);
  }
  static std::string locks(bool granted) {
    return std::string("(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND ") +
           (granted ? "granted)" : "NOT granted)");
  }
  void await_count(bool granted, int number) { await_in_server(locks(granted) + " = " + std::to_string(number)); }
  void expect_none_left() { EXPECT_EQ(server.value("SELECT " + locks(true)), "0"); }
  static std::size_t held_in(const std::vector<LockInfo>& all, const std::string& name, FencingToken token) {
    return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&](const LockInfo& each) {
      return each.held && each.name == name && each.token == token;
    }));
  }
  // From now on the server refuses new tokens, after it has granted their locks.
  void refuse(const std::string& condition, const std::string& sqlstate, const std::string& message) {
    server.run("CREATE FUNCTION dlock.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF " + condition +
               " THEN RAISE EXCEPTION '" + message + "' USING ERRCODE = '" + sqlstate +
               "'; END IF; RETURN NEW; END $$; CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON dlock.fence FOR EACH "
               "ROW EXECUTE FUNCTION dlock.refuse()");
  }
  void admit() { server.run("DROP TRIGGER refuse ON dlock.fence"); }
};

// --- Keys ------------------------------------------------------------------------------------------------------------

// Parameters, and the arguments of the same lock in SQL. Row 'b' of the default key is locked meanwhile, which is not
// the row of other keys.
TEST_F(AdvisoryTest, EachKey_IsTheLockOfPlainSqlWithARowOfItsOwn) {
  Contender plain(client(), "b");
  EXPECT_TRUE(take(plain.lock).release());
  PostgresConnection locker(server.admin_conninfo());
  locker.run("BEGIN; SELECT FROM dlock.fence WHERE name = 'b' FOR UPDATE");
  std::deque<Client> clients;
  std::vector<Lease> of_all;
  for (const auto& [key, arguments] :
       {std::pair{"int64:42", "42"}, std::pair{"pair:0,42", "0, 42"}, std::pair{"pair:-1,2", "-1, 2"},
        std::pair{"hashtextextended", "hashtextextended('b', 0)"}, std::pair{"crc32pair", "1908338681, 0"},
        std::pair{"medallion", ""}}) {
    SCOPED_TRACE(key);
    clients.push_back(client("key=" + std::string(key)));
    const Client& ours = clients.back();
    DistributedLock lock = ours.make_lock("b");
    PostgresConnection sql(server.admin_conninfo());
    Lease lease = take(lock);
    EXPECT_EQ(ours.inspect("b").token, lease.token());
    EXPECT_TRUE(ours.inspect("b").held);
    EXPECT_EQ(held_in(ours.list(), "b", lease.token()), 1U);
    if (*arguments != '\0') {
      const std::string call = std::string("(") + arguments + ")";
      EXPECT_EQ(sql.value("SELECT pg_try_advisory_lock" + call), "f");
      EXPECT_TRUE(lease.release());
      EXPECT_EQ(sql.value("SELECT pg_try_advisory_lock" + call), "t");
      EXPECT_FALSE(lock.try_acquire());
      server.run("UPDATE dlock.fence SET token = 1 WHERE name LIKE 'b' || chr(9) || '%'");
      EXPECT_TRUE(ours.forget_idle(1min).empty()) << "another program has it";
      Pending waiting(lock, {});
      await_count(false, 1);
      sql.run("SELECT pg_advisory_unlock" + call);
      lease = waiting.lease();
    }
    of_all.push_back(std::move(lease));  // none of them is another's
  }
  locker.run("ROLLBACK");
  of_all.clear();
  await_count(true, 0);
  EXPECT_EQ(server.value("SELECT string_agg(name, ' ' ORDER BY name) FROM dlock.fence WHERE strpos(name, chr(9)) = 0"),
            "b")
      << "the layout of the default key";
}

TEST_F(AdvisoryTest, TwoNamesWithOneKey_AreOneLock) {
  const Client ours = client("key=int64:42");
  DistributedLock one = ours.make_lock("one");
  DistributedLock other = ours.make_lock("other");
  Lease lease = take(one);
  EXPECT_FALSE(other.try_acquire());
  Pending waiting(other, {});
  await_count(false, 1);
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(waiting.lease().release());
}

TEST_F(AdvisoryTest, KeysOfHostileNames_LockTheNamesOnly) {
  const std::vector<std::string> names = hostile_names();
  for (const char* const scheme : {"key=medallion", "key=crc32pair:7", "key=hashtextextended"}) {
    const Client ours = client(scheme);
    const Client other = client(scheme);
    std::deque<DistributedLock> locks_of_names;
    std::deque<Pending> all;
    for (const std::string& name : names) {
      locks_of_names.push_back(ours.make_lock(name));
      all.emplace_back(locks_of_names.back(), AcquireOptions{});
    }
    std::deque<Lease> leases;
    for (Pending& each : all) leases.push_back(each.lease());
    const std::vector<LockInfo> listed = other.list();
    for (Lease& lease : leases) {
      EXPECT_EQ(held_in(listed, lease.name(), lease.token()), 1U) << scheme << ' ' << lease.name();
      EXPECT_EQ(other.inspect(lease.name()).token, lease.token()) << scheme << ' ' << lease.name();
      EXPECT_FALSE(other.make_lock(lease.name()).try_acquire()) << scheme << ' ' << lease.name();
      EXPECT_TRUE(lease.release());
    }
  }
}

// Whether or not dlock has ever been used in that database.
TEST_F(AdvisoryTest, AnotherProgramsLock_IsSeenWithoutTables) {
  server.run("DROP SCHEMA dlock CASCADE");
  const Client asking = client("key=int64:4711");
  EXPECT_FALSE(asking.inspect("lock").held);
  PostgresConnection other(server.admin_conninfo());
  other.run("SET application_name TO 'migration'; SELECT pg_advisory_lock(4711)");
  const LockInfo info = asking.inspect("lock");
  EXPECT_TRUE(info.held);
  EXPECT_EQ(info.holder, "migration");
  EXPECT_EQ(info.waiters, 0U);
}

// --- Errors ----------------------------------------------------------------------------------------------------------

// Other products speak PostgreSQL's protocol, and have the functions so that programs run.
TEST_F(AdvisoryTest, FunctionsThatLockNothing_AreRefused) {
  PostgresServer product;
  (void)connect_patiently(product.url()).initialize();
  product.run("SET allow_system_table_mods = on");
  product.run("ALTER FUNCTION pg_catalog.pg_try_advisory_lock(bigint) RENAME TO pg_try_real_advisory_lock");
  product.run(
      "CREATE FUNCTION pg_catalog.pg_try_advisory_lock(bigint) RETURNS boolean LANGUAGE sql VOLATILE AS 'SELECT true'");
  for (const AcquireOptions& how : {AcquireOptions{.wait = 0s}, AcquireOptions{}}) {
    Contender ours(connect_patiently(product.url(with(Strategy::advisory))), "x");
    std::error_code error;
    (void)ours.lock.acquire(how, error);
    EXPECT_EQ(error, errc::unsupported);
  }
}

TEST_F(AdvisoryTest, ErrorAfterTheGrant_LeavesNothingAndCostsNoOtherLock) {
  refuse("NEW.name LIKE 'bad%'", "53100", "no room");
  const Client ours = client();
  std::vector<DistributedLock> tried;
  std::vector<Pending> all;
  tried.reserve(20);
  all.reserve(20);
  for (int i = 0; i < 20; ++i) {
    tried.push_back(ours.make_lock((i % 4 == 1 ? "bad/" : "good/") + std::to_string(i)));
    all.emplace_back(tried.back(), AcquireOptions{.wait = 0s});  // most of them in one statement
  }
  std::vector<Lease> leases;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Outcome outcome = all[i].get();
    EXPECT_EQ(outcome.error, i % 4 == 1 ? make_error_code(errc::unavailable) : std::error_code()) << i;
    if (!outcome.error) leases.push_back(std::move(outcome.lease));
  }
  await_count(true, 15);
  admit();
  EXPECT_TRUE(take(tried[1]).release());
  for (Lease& lease : leases) EXPECT_TRUE(lease.release());
  await_count(true, 0);
}

// The server is made to say so; a table that is really full would keep all other clients out, too.
TEST_F(AdvisoryTest, FullLockTable_FailsTriesAndDelaysWaits) {
  refuse("true", "53200", "out of shared memory");
  Contender ours(client(), "a");
  expect_failure(errc::unavailable, "max_locks_per_transaction", [&] { (void)ours.lock.try_acquire(); });
  Pending waiting(ours.lock, {});
  admit();
  EXPECT_TRUE(waiting.lease().release());
  await_count(true, 0);
}

// The server ends a wait in the same way when a slice is over.
TEST_F(AdvisoryTest, CancelAtTheGrant_LeavesNothing) {
  Contender ours(client(), "a");
  PostgresConnection sql(server.admin_conninfo());
  // The lock gets free again and again, about when the wait for it is cancelled.
  for (int i = 0; i < 100; ++i) {
    sql.run("SELECT pg_advisory_lock(" + key_of("a") + ")");
    Pending waiting(ours.lock, {});
    await_count(false, 1);
    EXPECT_EQ(sql.value("SELECT pg_cancel_backend(pid) AND pg_sleep(0.0002 * random()) IS NOT NULL AND "
                        "pg_advisory_unlock(" +
                        key_of("a") + ") FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"),
              "t");
    EXPECT_TRUE(waiting.lease().release());
    ASSERT_EQ(sql.value("SELECT " + locks(true)), "0") << i;
  }
}

// A waiter gets the lock, and then waits for its row, which another transaction has.
class AdvisoryRowTest : public AdvisoryTest {
 protected:
  void start(const std::string& setting) {
    EXPECT_TRUE(take(ours.lock).release());
    sql.run(setting);
    sql.run("SELECT pg_advisory_lock(" + key_of("a") + ")");
    waiting.emplace(ours.lock, AcquireOptions{});
    await_count(false, 1);
    sql.run("BEGIN; SELECT FROM dlock.fence WHERE name = 'a' FOR UPDATE");
    sql.run("SELECT pg_advisory_unlock(" + key_of("a") + ")");
    await_in_server(
        "EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND "
        "wait_event IN ('transactionid', 'tuple') AND usename = 'locker')");
  }
  void end(PostgresConnection& holder) {
    EXPECT_FALSE(waiting->done());
    sql.run("COMMIT");
    holder.run("SELECT pg_advisory_unlock(" + key_of("a") + ")");
    EXPECT_TRUE(waiting->lease().release());
    expect_none_left();
  }

  PostgresConnection sql{server.admin_conninfo()};
  Contender ours{client(), "a"};
  std::optional<Pending> waiting;
};

TEST_F(AdvisoryRowTest, TimeoutAfterTheGrant_LeavesNothing) {
  PostgresConnection other(server.admin_conninfo());
  start("SELECT 1");
  EXPECT_EQ(other.value("SELECT pg_advisory_lock(" + key_of("a") + ")"), "") << "else it would never be free";
  end(other);
}

TEST_F(AdvisoryRowTest, DeadlockVictim_FreesTheLockAndGetsItLater) {
  server.run("ALTER ROLE locker SET deadlock_timeout = '1s'");  // so that the victim is ours
  start("SET deadlock_timeout = '1h'");
  sql.send("SELECT pg_advisory_lock(" + key_of("a") + ")");
  EXPECT_FALSE(sql.receive().is_error());
  end(sql);
}

// One lock is held for longer than its lease, another one is tried and waited for.
TEST_F(AdvisoryTest, RowOrTableLockedByOthers_CostsNoOtherLock) {
  for (const std::string blocker :
       {"CREATE INDEX ON dlock.fence (pid)", "SELECT FROM dlock.fence WHERE name = 'b' FOR UPDATE"}) {
    // Long enough for a busy machine; a session that is held up loses its locks within it.
    const Client ours = client({}, {.lease = 6s});
    DistributedLock blocked = ours.make_lock("b");
    EXPECT_TRUE(take(blocked).release());
    std::vector<Lease> leases;  // on each of the client's sessions
    for (const char* const name : {"a/1", "a/2", "a/3", "a/4", "a/5", "a/6"}) {
      DistributedLock lock = ours.make_lock(name);
      leases.push_back(take(lock));
    }
    PostgresConnection sql(server.admin_conninfo());
    sql.run("BEGIN");
    sql.run(blocker);
    const std::string start = server.value("SELECT clock_timestamp()");
    expect_failure(errc::unavailable, "", [&] { (void)blocked.try_acquire(); });
    Pending waiting(blocked, {});
    await_in_server("clock_timestamp() > '" + start + "'::timestamptz + interval '7 s'");
    for (const Lease& lease : leases) EXPECT_TRUE(lease.held()) << blocker;
    EXPECT_FALSE(waiting.done());
    sql.run("ROLLBACK");
    EXPECT_TRUE(waiting.lease().release());
    for (Lease& lease : leases) EXPECT_TRUE(lease.release());
    await_count(true, 0);
  }
}

// --- Sessions --------------------------------------------------------------------------------------------------------

TEST_F(AdvisoryTest, EndOfAConnection_LosesItsLocksAndNoOther) {
  const Client ours = client();
  Contender other(client(), "waited");
  DistributedLock tried = ours.make_lock("tried");
  DistributedLock waited = ours.make_lock("waited");
  Lease before = take(other.lock);
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

// The readers' session would get the lock again, past the writer that waits for it in the server.
TEST_F(AdvisoryTest, WaitingWriter_KeepsReadersFromJoiningOthers) {
  const Client readers = client();
  const Client writers = client();
  ReadWriteLock lock = readers.make_read_write_lock("x");
  ReadWriteLock writer = writers.make_read_write_lock("x");
  Lease one = lock.acquire_shared({.wait = 1min});
  std::optional<Lease> two = lock.try_acquire_shared();
  ASSERT_TRUE(two);
  EXPECT_EQ(server.value("SELECT " + locks(true)), "1") << "they share the lock of one session";
  EXPECT_NE(one.token(), two->token());
  Pending writing(writer, {});
  await_count(false, 1);
  EXPECT_FALSE(lock.try_acquire_shared());
  EXPECT_TRUE(one.release());
  EXPECT_FALSE(writing.done());
  EXPECT_TRUE(two->release());
  Lease written = writing.lease();
  EXPECT_GT(written.token(), two->token());
  EXPECT_FALSE(lock.try_acquire_shared());
  EXPECT_TRUE(written.release());
  // Breaking it ends the sessions of all readers.
  const Lease first = lock.acquire_shared({.wait = 1min});
  const Lease second = writer.acquire_shared({.wait = 1min});
  const Client breaker = client();
  EXPECT_TRUE(breaker.break_lock("x", LockKind::read_write));
  ReadWriteLock next = breaker.make_read_write_lock("x");
  EXPECT_TRUE(take(next).held());
}

}  // namespace

}  // namespace dlock::test
