// A transaction that was prepared for two-phase commit keeps its locks although no session has it.
#include "postgres/postgres_test.hpp"

namespace dlock::test {

namespace {

class PreparedTransactionTest : public PostgresStrategyTest {
 protected:
  PreparedTransactionTest() : PostgresStrategyTest({.lines = {"max_prepared_transactions = 4"}}) {}

  // Somebody has taken the lock in a transaction of a program's own, and has prepared that.
  void prepare(const std::string& transaction, const std::string& lock) {
    const std::string key = std::to_string(postgres::advisory_key({}, "dlock", lock).number);
    PostgresConnection other(server.admin_conninfo());
    other.run("BEGIN");
    other.run(GetParam() == Strategy::advisory ? "SELECT pg_advisory_xact_lock(" + key + ")"
                                               : "SELECT FROM dlock.row_lock WHERE name = '" + lock + "' FOR UPDATE");
    other.run("PREPARE TRANSACTION '" + transaction + "'");
  }
};

TEST_P(PreparedTransactionTest, Holds) {
  const Client client = steady(patient());
  DistributedLock lock = client.make_lock("lock");
  EXPECT_TRUE(take(lock).release());
  DistributedLock other = client.make_lock("another");
  EXPECT_TRUE(take(other).release());
  EXPECT_FALSE(client.inspect("lock").held);
  prepare("daily", "another");
  prepare("nightly", "lock");

  EXPECT_FALSE(lock.try_acquire());
  EXPECT_TRUE(client.inspect("lock").held);
  EXPECT_EQ(client.inspect("lock").holder, "prepared transaction nightly");
  const auto all = client.list();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all.front().holder, "prepared transaction daily");
  EXPECT_TRUE(all.back().held);
  EXPECT_EQ(all.back().holder, "prepared transaction nightly");
  try {
    client.break_lock("lock");
    ADD_FAILURE() << "no session has it that could be ended";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), errc::unsupported);
    EXPECT_NE(e.detail().find("ROLLBACK PREPARED 'nightly'"), std::string::npos) << e.what();
  }

  server.stop();
  server.start();
  const Client later = steady(patient());  // the other may have met a server that is not ready
  EXPECT_EQ(later.inspect("lock").holder, "prepared transaction nightly");
  EXPECT_FALSE(later.make_lock("lock").try_acquire());
  server.run("ROLLBACK PREPARED 'nightly'");
  EXPECT_FALSE(later.inspect("lock").held);
  EXPECT_FALSE(later.break_lock("lock"));
  EXPECT_TRUE(take(lock).release());
}

INSTANTIATE_TEST_SUITE_P(Of, PreparedTransactionTest,
                         testing::ValuesIn(tested({Strategy::for_update, Strategy::advisory})), strategy_name);

}  // namespace

}  // namespace dlock::test
