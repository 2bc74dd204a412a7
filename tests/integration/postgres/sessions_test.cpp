// The strategies whose locks live in sessions, for-update and advisory: what the server's rules must make true, keys,
// an error after which a session may have a lock that is not held, rows that other transactions have locked, readers.
#include <algorithm>
#include <deque>
#include <string>
#include <system_error>
#include <vector>

#include "postgres/postgres_test.hpp"

namespace dlock::test {

namespace {

class PostgresSessionsTest : public PostgresStrategyTest {};
INSTANTIATE_TEST_SUITE_P(, PostgresSessionsTest, testing::ValuesIn(tested(session_strategies)), strategy_name);

TEST_P(PostgresSessionsTest, Holder_KeepsNoSnapshot) {
  Contender ours(steady(), "a");
  const Lease lease = take(ours.lock);
  server.await("0 = (SELECT count(backend_xmin) FROM pg_stat_activity WHERE usename = 'locker')");
  EXPECT_EQ(server.value("SELECT count(backend_xid) FROM pg_stat_activity WHERE usename = 'locker'"),
            GetParam() == Strategy::advisory ? "0" : "1");
}

// It waits for the snapshots of those who wait for the lock, and they wait for it.
// Hazard: `CREATE INDEX CONCURRENTLY` under the lock waits for waiters
TEST_P(PostgresSessionsTest, IndexConcurrentlyUnderTheLock_IsCreated) {
  server.run("DROP TABLE IF EXISTS public.data; CREATE TABLE public.data (x int)");
  Contender holder(steady(), "x");
  Lease lease = take(holder.lock);
  PostgresConnection sql(server.admin_conninfo());
  sql.run("SET statement_timeout = '20s'");  // a slice of a wait lasts longer
  sql.run("CREATE INDEX CONCURRENTLY ON public.data (x)");
  Contender other(steady(), "x");
  Pending waiting(other.lock, {});
  await_waiter("x");
  sql.run("CREATE INDEX CONCURRENTLY ON public.data (x)");
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(waiting.lease().held());
}

class PreparedTransactionTest : public PostgresStrategyTest {
 protected:
  PreparedTransactionTest() : PostgresStrategyTest({.lines = {"max_prepared_transactions = 4"}}) {}

  // A program has taken the lock in a transaction of its own, and has prepared that.
  void prepare(const std::string& transaction, const std::string& lock) {
    const std::string key = std::to_string(postgres::advisory_key({}, "dlock", lock).number);
    PostgresConnection other(server.admin_conninfo());
    other.run("BEGIN");
    other.run(GetParam() == Strategy::advisory ? "SELECT pg_advisory_xact_lock(" + key + ")"
                                               : "SELECT FROM dlock.row_lock WHERE name = '" + lock + "' FOR UPDATE");
    other.run("PREPARE TRANSACTION '" + transaction + "'");
  }
};
INSTANTIATE_TEST_SUITE_P(, PreparedTransactionTest, testing::ValuesIn(tested(session_strategies)), strategy_name);

// Hazard: a prepared transaction holds a lock without a session
TEST_P(PreparedTransactionTest, PreparedTransaction_HoldsTheLock) {
  const Client client = steady();
  for (const char* const name : {"lock", "another"}) {
    DistributedLock lock = client.make_lock(name);
    EXPECT_TRUE(take(lock).release());
  }
  EXPECT_FALSE(client.inspect("lock").held);
  prepare("daily", "another");
  prepare("nightly", "lock");
  const auto all = client.list();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all.front().holder, "prepared transaction daily");
  EXPECT_TRUE(all.back().held);
  EXPECT_EQ(all.back().holder, "prepared transaction nightly");
  expect_failure(errc::unsupported, "ROLLBACK PREPARED 'nightly'", [&] { client.break_lock("lock"); });
  EXPECT_EQ(client.inspect("lock").holder, "prepared transaction nightly");
  EXPECT_FALSE(client.make_lock("lock").try_acquire());
  server.run("ROLLBACK PREPARED 'nightly'");
  server.run("ROLLBACK PREPARED 'daily'");
  EXPECT_FALSE(client.inspect("lock").held);
  EXPECT_FALSE(client.break_lock("lock"));
  DistributedLock lock = client.make_lock("lock");
  EXPECT_TRUE(take(lock).release());
}

class PostgresForUpdateTest : public PostgresTest {
 protected:
  PostgresForUpdateTest() { (void)client().initialize(); }

  [[nodiscard]] Client client(ClientOptions options = patient()) const {
    return steady(std::move(options), with(Strategy::for_update));
  }
  const PostgresLock lock{Strategy::for_update, "name"};
};

// Hazard: a token that is undone with its transaction, and handed out again
TEST_F(PostgresForUpdateTest, UndoneToken_IsNotGrantedAgain) {
  Contender one(client(), "name");
  Lease committed = take(one.lock);
  EXPECT_TRUE(committed.release());
  const Lease undone = take(one.lock);
  server.run(lock.take_away());
  EXPECT_EQ(server.value("SELECT token FROM dlock.row_token WHERE name = 'name'"),
            std::to_string(committed.token().value()))
      << "the transaction of the second one is gone, and its token with it";
  Contender two(client(), "name");
  EXPECT_GT(take(two.lock).token(), undone.token());
}

class AdvisoryTest : public PostgresTest {
 protected:
  AdvisoryTest() { (void)client().initialize(); }

  [[nodiscard]] Client client(const std::string& more = {}, ClientOptions options = patient()) const {
    return steady(std::move(options), with(Strategy::advisory, more));
  }
  static std::string locks(bool granted) {
    return std::string("(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND ") +
           (granted ? "granted)" : "NOT granted)");
  }
  void await_count(bool granted, int number) { server.await(locks(granted) + " = " + std::to_string(number)); }
  static std::size_t held_in(const std::vector<LockInfo>& all, const std::string& name, FencingToken token) {
    return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&](const LockInfo& each) {
      return each.held && each.name == name && each.token == token;
    }));
  }
};

// Parameters, and the arguments of the same lock in SQL. Row 'b' of the default key is locked meanwhile, which is not
// the row of other keys.
// Shows: hole different-urls
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

// Shows: hole postgresql-key-collision
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

// Shows: nothing-guessed
// Hazard: an advisory lock stays held after an error, timeout or cancel
TEST_F(AdvisoryTest, ErrorAfterTheGrant_LeavesNothingAndCostsNoOtherLock) {
  // From now on the server refuses some new tokens, after it has granted their locks.
  server.run(
      "CREATE FUNCTION dlock.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.name LIKE 'bad%' THEN "
      "RAISE EXCEPTION 'no room' USING ERRCODE = '53100'; END IF; RETURN NEW; END $$;"
      "CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON dlock.fence FOR EACH ROW EXECUTE FUNCTION dlock.refuse()");
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
  server.run("DROP TRIGGER refuse ON dlock.fence");
  EXPECT_TRUE(take(tried[1]).release());
  for (Lease& lease : leases) EXPECT_TRUE(lease.release());
  await_count(true, 0);
}

// One lock is held for longer than its lease, another one is tried and waited for.
// Hazard: a locked row or `CREATE INDEX` delays a session
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
    server.await("clock_timestamp() > '" + start + "'::timestamptz + interval '7 s'");
    for (const Lease& lease : leases) EXPECT_TRUE(lease.held()) << blocker;
    EXPECT_FALSE(waiting.done());
    sql.run("ROLLBACK");
    EXPECT_TRUE(waiting.lease().release());
    for (Lease& lease : leases) EXPECT_TRUE(lease.release());
    await_count(true, 0);
  }
}

}  // namespace

}  // namespace dlock::test
