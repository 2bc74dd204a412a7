// The strategies whose locks live in sessions, for-update above all: what the server's rules must make true.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backends/postgres/sql/statements.hpp"
#include "live_connection.hpp"
#include "postgres/postgres_test.hpp"

namespace dlock::test {

namespace {

class PostgresSessionsTest : public PostgresStrategyTest {};
INSTANTIATE_TEST_SUITE_P(, PostgresSessionsTest, testing::ValuesIn(tested(session_strategies)), strategy_name);

TEST_P(PostgresSessionsTest, WaitLongerThanTheLease_EndsWithASafeLease) {
  Contender ours(steady({.lease = short_lease}), "a");
  Contender other(steady(), "a");
  Lease lease = take(other.lock);
  Pending waiting(ours.lock, {});
  await_in_server(
      "EXISTS (SELECT FROM pg_stat_activity WHERE usename = 'locker' AND wait_event_type = 'Lock' AND query_start < "
      "clock_timestamp() - interval '4 s')");
  const auto before = std::stoull(server.value("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"));
  EXPECT_TRUE(lease.release());
  Lease granted = waiting.lease();
  EXPECT_TRUE(granted.held());
  EXPECT_GT(granted.token().value(), before);
  EXPECT_TRUE(granted.release());
  await_no_residue("a");
}

TEST_P(PostgresSessionsTest, CutOffHolder_LosesItsLocksBeforeTheyAreFree) {
  const Client silent = disturbed({.lease = short_lease, .response_timeout = 300ms, .close_timeout = 100ms});
  const Client other = steady();
  DistributedLock tried = silent.make_lock("tried");
  DistributedLock waited = silent.make_lock("waited");
  DistributedLock others_tried = other.make_lock("tried");
  DistributedLock others_waited = other.make_lock("waited");
  Lease before = take(others_waited);
  Pending waiting(waited, {});
  await_waiter("waited");
  const Lease lease = take(tried);
  EXPECT_TRUE(before.release());
  const Lease on_other_connection = waiting.lease();
  const LossEvent loss(lease);
  const LossEvent other_loss(on_other_connection);
  Pending next(others_tried, {}, [&](Lease&) { EXPECT_FALSE(lease.held()); });
  Pending next_too(others_waited, {}, [&](Lease&) { EXPECT_FALSE(on_other_connection.held()); });
  await_waiter("tried");
  await_waiter("waited");
  proxy.set(black_hole);
  EXPECT_TRUE(next.lease().release());
  EXPECT_TRUE(next_too.lease().release());
  loss.event().wait("the loss is not signalled");
  other_loss.event().wait("the loss is not signalled");
}

TEST_P(PostgresSessionsTest, Holder_KeepsNoSnapshot) {
  Contender ours(steady(), "a");
  const Lease lease = take(ours.lock);
  await_in_server("0 = (SELECT count(backend_xmin) FROM pg_stat_activity WHERE usename = 'locker')");
  EXPECT_EQ(server.value("SELECT count(backend_xid) FROM pg_stat_activity WHERE usename = 'locker'"),
            GetParam() == Strategy::advisory ? "0" : "1");
}

// It waits for the snapshots of those who wait for the lock, and they wait for it.
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

TEST_P(PreparedTransactionTest, PreparedTransaction_HoldsTheLock) {
  const std::optional<Client> client = steady();
  for (const char* const name : {"lock", "another"}) {
    DistributedLock lock = client->make_lock(name);
    EXPECT_TRUE(take(lock).release());
  }
  EXPECT_FALSE(client->inspect("lock").held);
  prepare("daily", "another");
  prepare("nightly", "lock");
  const auto all = client->list();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all.front().holder, "prepared transaction daily");
  EXPECT_TRUE(all.back().held);
  EXPECT_EQ(all.back().holder, "prepared transaction nightly");
  expect_failure(errc::unsupported, "ROLLBACK PREPARED 'nightly'", [&] { client->break_lock("lock"); });
  for (int starts = 0; starts < 2; ++starts) {
    if (starts > 0) {
      server.stop();
      server.start();
    }
    const Client later = steady();
    EXPECT_EQ(later.inspect("lock").holder, "prepared transaction nightly");
    EXPECT_FALSE(later.make_lock("lock").try_acquire());
  }
  server.run("ROLLBACK PREPARED 'nightly'");
  server.run("ROLLBACK PREPARED 'daily'");
  Contender last(steady(), "lock");
  EXPECT_FALSE(last.client.inspect("lock").held);
  EXPECT_FALSE(last.client.break_lock("lock"));
  EXPECT_TRUE(take(last.lock).release());
}

// --- for-update ------------------------------------------------------------------------------------------------------

class PostgresForUpdateTest : public PostgresTest {
 protected:
  PostgresForUpdateTest() { (void)client().initialize(); }

  [[nodiscard]] Client client(ClientOptions options = patient()) const {
    return steady(std::move(options), with(Strategy::for_update));
  }
  const PostgresLock lock{Strategy::for_update, "name"};
};

TEST_F(PostgresForUpdateTest, NewNameUsedByMany_HasOneHolderAtATime) {
  constexpr std::size_t names = 10;
  constexpr int clients = 4;
  std::vector<std::atomic<int>> inside(names);
  std::vector<std::atomic<int>> entered(names);
  std::atomic<bool> two_inside = false;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < clients; ++i) {
      threads.emplace_back([&] {
        const Client own = client();
        for (std::size_t n = 0; n < names; ++n) {
          DistributedLock each = own.make_lock("new/" + std::to_string(n));
          const Lease lease = take(each);
          if (++inside[n] != 1) two_inside = true;
          ++entered[n];
          --inside[n];
        }
      });
    }
  }
  EXPECT_FALSE(two_inside);
  for (const auto& count : entered) EXPECT_EQ(count, clients);
  EXPECT_EQ(server.value("SELECT count(*) FROM dlock.row_lock"), std::to_string(names));
}

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

TEST_F(PostgresForUpdateTest, WaitersThatOnlyLockTheRow_AreServedInOrder) {
  const auto use = postgres::for_update_statements("dlock", postgres::Durability::sync);
  Contender first(client(), "name");
  Lease lease = take(first.lock);
  std::vector<std::unique_ptr<LiveConnection>> connections;
  std::vector<LiveConnection::Answer> answers;
  for (int i = 0; i < 8; ++i) {
    connections.push_back(std::make_unique<LiveConnection>(server.url()));
    ASSERT_TRUE(connections.back()->open());
    answers.push_back(connections.back()->ask({.commands = {{.statement = &use.begin},
                                                            {.statement = &use.set_patience, .params = {"60000"}},
                                                            {.statement = &use.lock, .params = {"name", "holder"}}}}));
    (void)connections.back()->ask(use.commit);
    await_in_server("(" + lock.waiters() + ") = " + std::to_string(i + 1));
  }
  auto last = static_cast<std::int64_t>(lease.token().value());
  EXPECT_TRUE(lease.release());
  for (const auto& answer : answers) {
    ASSERT_FALSE(answer->results().empty()) << answer->outcome().failure.detail;
    const auto token = answer->results().back().number(0, 0);
    ASSERT_TRUE(token);
    EXPECT_GT(*token, last);
    last = *token;
  }
}

TEST_F(PostgresForUpdateTest, ApplicationName_ShowsTheHolder) {
  Contender one(client({.label = std::string(64, 'x'), .lease = 10min}), "long");
  const Lease lease = take(one.lock);
  const Client other = client();
  const LockInfo shortened = other.inspect("long");
  EXPECT_TRUE(shortened.held);
  EXPECT_EQ(shortened.token, lease.token());
  EXPECT_FALSE(shortened.holder.empty());
  EXPECT_TRUE(one.client.holder().starts_with(shortened.holder)) << shortened.holder;
  EXPECT_LT(shortened.holder.size(), one.client.holder().size());
  // A session that only pretends.
  server.run("INSERT INTO dlock.row_lock VALUES ('name')");
  PostgresConnection foreign(server.admin_conninfo());
  foreign.run("SET application_name = 'dlock#99999999999999999999999999:nobody'");
  foreign.run("BEGIN; SELECT FROM dlock.row_lock WHERE name = 'name' FOR UPDATE");
  const LockInfo pretended = other.inspect("name");
  EXPECT_TRUE(pretended.held);
  EXPECT_EQ(pretended.holder, "nobody");
}

TEST_F(PostgresForUpdateTest, MoreLocksThanConnections_AreUnavailableOrWait) {
  const Client limited = steady(patient(), with(Strategy::for_update, "max_connections=2"));
  DistributedLock a = limited.make_lock("a");
  DistributedLock b = limited.make_lock("b");
  DistributedLock c = limited.make_lock("c");
  Lease first = take(a);
  const Lease second = take(b);
  expect_failure(errc::unavailable, "max_connections=2", [&] { (void)c.try_acquire(); });
  Pending waiting(c, {});
  EXPECT_TRUE(first.release());
  EXPECT_TRUE(waiting.lease().held());
  EXPECT_TRUE(second.held());
}

// The first holder of a name has died: its token was rolled back, the row to lock was not. Or another client has just
// inserted it, and is about to lock it.
TEST_F(PostgresForUpdateTest, RowWithoutAToken_IsForgottenByItsNameOnly) {
  const Client own = client();
  server.run("INSERT INTO dlock.row_lock VALUES ('a'), ('b')");
  EXPECT_TRUE(own.forget("a"));
  EXPECT_TRUE(own.forget_idle(1h).empty());
  EXPECT_TRUE(own.forget("b"));
  EXPECT_TRUE(own.list().empty());
}

}  // namespace

}  // namespace dlock::test
