// pgbouncer in front of the server, which hands out server connections by the transaction.
#include <atomic>

#include "postgres/postgres_test.hpp"
#include "tests/support/pgbouncer.hpp"

namespace dlock::test {

namespace {

PostgresConfig with_statements_counted() {
  return {.lines = {"shared_preload_libraries = 'pg_stat_statements'"}};
}

class PoolerTest : public PostgresStrategyTest {
 protected:
  PoolerTest() : PostgresStrategyTest(with_statements_counted()), pooler(server) {
    server.run("CREATE EXTENSION pg_stat_statements");
  }

  [[nodiscard]] Client pooled(const std::string& more = {}, ClientOptions options = patient()) const {
    return connect_patiently(server.url_at(pooler.port(), strategy(more)), std::move(options));
  }
  [[nodiscard]] std::string calls_of(const std::string& start) {
    return server.value("SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE query ILIKE '" + start + "%'");
  }

  PgBouncer pooler;
};

class RowsBehindAPoolerTest : public PoolerTest {
 protected:
  void expect_exclusion(const Client& one, const Client& two) {
    DistributedLock lock = one.make_lock("shared");
    DistributedLock others = two.make_lock("shared");
    FencingToken last;
    for (int round = 0; round < 3; ++round) {
      Lease lease = take(lock);
      EXPECT_GT(lease.token(), last);
      EXPECT_FALSE(others.try_acquire().has_value());
      Pending waiting(others, {});
      EXPECT_FALSE(others.try_acquire().has_value());
      EXPECT_FALSE(waiting.done());
      EXPECT_TRUE(lease.release());
      Lease next = waiting.lease();
      EXPECT_GT(next.token(), lease.token());
      EXPECT_FALSE(lock.try_acquire().has_value());
      last = next.token();
      EXPECT_TRUE(next.release());
    }
    await_no_residue("shared");
  }
};

TEST_P(RowsBehindAPoolerTest, TwoClientsExcludeEachOther) {
  expect_exclusion(pooled("pooler=transaction"), pooled("pooler=transaction"));
  EXPECT_EQ(calls_of("LISTEN"), "0");
}

TEST_P(RowsBehindAPoolerTest, APoolerIsNoticedWithoutBeingTold) {
  expect_exclusion(pooled(), pooled());
  EXPECT_EQ(calls_of("LISTEN"), "0");
}

TEST_P(RowsBehindAPoolerTest, OneBehindItAndOneBesideItExcludeEachOther) {
  expect_exclusion(pooled("pooler=transaction"), steady(patient()));
  expect_exclusion(steady(patient()), pooled("pooler=transaction"));
}

TEST_P(RowsBehindAPoolerTest, WaitersPollAndSaySo) {
  EXPECT_FALSE(pooled("pooler=transaction").capabilities().wakes_waiters);
  EXPECT_TRUE(steady(patient()).capabilities().wakes_waiters);
}

TEST_P(RowsBehindAPoolerTest, NothingStaysBehindInTheServersSessions) {
  {
    const Client client = pooled("pooler=transaction");
    DistributedLock lock = client.make_lock("shared");
    EXPECT_TRUE(take(lock).release());
  }
  PostgresConnection stranger(server.url_at(pooler.port()));
  EXPECT_EQ(stranger.value("SELECT count(*) FROM pg_prepared_statements"), "0");
  EXPECT_EQ(stranger.value("SHOW search_path"), "\"$user\", public");
  EXPECT_EQ(stranger.value("SHOW synchronous_commit"), "on");
  EXPECT_EQ(stranger.value("SHOW idle_session_timeout"), "0");
}

TEST_P(RowsBehindAPoolerTest, AServerThatIsRestartedBehindItIsFoundAgain) {
  const Client client = pooled("pooler=transaction");
  DistributedLock lock = client.make_lock("shared");
  Lease lease = take(lock);
  server.kill();
  server.start();
  std::error_code error;
  (void)lease.release(error);  // may be too early; the release is repeated then
  EXPECT_GT(take(lock).token(), lease.token());
}

TEST_P(RowsBehindAPoolerTest, TransactionsThatAreReadOnlyByDefaultAreNoStandby) {
  server.run("ALTER ROLE locker SET default_transaction_read_only = on");
  {
    const Client direct = steady(patient());
    DistributedLock lock = direct.make_lock("shared");
    EXPECT_TRUE(take(lock).release()) << "switched off in sessions of its own";
  }
  const Client client = pooled("pooler=transaction");
  DistributedLock lock = client.make_lock("shared");
  try {
    (void)lock.acquire({.wait = 1min});
    ADD_FAILURE() << "nothing can be written";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), errc::access_denied) << error.what();
    EXPECT_NE(error.detail().find("default_transaction_read_only"), std::string::npos) << error.what();
    EXPECT_EQ(error.detail().find("standby"), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(, RowsBehindAPoolerTest, ::testing::ValuesIn(tested({Strategy::table, Strategy::optimistic})),
                         strategy_name);

class SessionsBehindAPoolerTest : public PoolerTest {
 protected:
  void expect_nothing_taken() {
    EXPECT_EQ(server.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), "0");
    EXPECT_EQ(server.value("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"), "0");
  }
};

TEST_P(SessionsBehindAPoolerTest, AreRefusedWhenTheUserSaysThatThereIsOne) {
  try {
    const Client client = pooled("pooler=transaction");
    ADD_FAILURE() << "a session's lock behind a pooler is nobody's";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), errc::invalid_argument) << error.what();
    EXPECT_NE(error.detail().find("pooler"), std::string::npos) << error.what();
  }
}

TEST_P(SessionsBehindAPoolerTest, AreRefusedWhenOneIsNoticed) {
  const Client client = pooled();
  DistributedLock lock = client.make_lock("shared");
  for (const auto wait : {Duration(0s), Duration(1min)}) {
    const auto start = std::chrono::steady_clock::now();
    try {
      (void)lock.acquire({.wait = wait});
      ADD_FAILURE() << "a session's lock behind a pooler is nobody's";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), errc::unsupported) << error.what();
      EXPECT_NE(error.detail().find("pooler"), std::string::npos) << error.what();
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  }
  expect_nothing_taken();
}

TEST_P(SessionsBehindAPoolerTest, AreFineWhereThePoolerKeepsSessions) {
  const PgBouncer sessions(server, {.pool_mode = "session", .pool_size = 20});
  const std::string url = server.url_at(sessions.port(), strategy("pooler=session"));
  const Client one = connect_patiently(url, patient());
  const Client two = connect_patiently(url, patient());
  DistributedLock lock = one.make_lock("shared");
  DistributedLock others = two.make_lock("shared");
  Lease lease = take(lock);
  EXPECT_FALSE(others.try_acquire().has_value());
  Pending waiting(others, {});
  await_waiter("shared");
  EXPECT_TRUE(lease.release());
  EXPECT_GT(waiting.lease().token(), lease.token());
  await_no_residue("shared");
}

INSTANTIATE_TEST_SUITE_P(, SessionsBehindAPoolerTest, ::testing::Values(Strategy::for_update, Strategy::advisory),
                         strategy_name);

}  // namespace

}  // namespace dlock::test
