// Rows of names that are no longer used, as only PostgreSQL has them; what all services have in common is in the rooms.
#include "postgres/postgres_test.hpp"

namespace dlock::test {

namespace {

class PostgresForgettingTest : public PostgresStrategyTest {
 protected:
  // Names 1, 2, ... that were locked long ago.
  void plant(int count) {
    const std::string numbers = " FROM generate_series(1, " + std::to_string(count) + ") AS n";
    switch (GetParam()) {
      case Strategy::table:
        return server.run("INSERT INTO dlock.lease SELECT n, NULL, 'h', 1, '-infinity'" + numbers);
      case Strategy::optimistic:
        return server.run("INSERT INTO dlock.optimistic SELECT n, NULL, 'h', 1, 1, 1000" + numbers);
      case Strategy::for_update:
        return server.run("INSERT INTO dlock.row_lock SELECT n" + numbers +
                          "; INSERT INTO dlock.row_token SELECT n, 'h', 1" + numbers);
      case Strategy::advisory:
        return server.run("INSERT INTO dlock.fence SELECT n, n, 1, 0, 'h', 1" + numbers);
    }
  }
  // Locks those of them, in a transaction.
  [[nodiscard]] std::string hold(const std::string& which) const {
    switch (GetParam()) {
      case Strategy::table:
        return "BEGIN; SELECT FROM dlock.lease WHERE name " + which + " FOR UPDATE";
      case Strategy::optimistic:
        return "BEGIN; SELECT FROM dlock.optimistic WHERE name " + which + " FOR UPDATE";
      case Strategy::for_update:
        return "BEGIN; SELECT FROM dlock.row_lock WHERE name " + which + " FOR UPDATE";
      case Strategy::advisory:
        return "BEGIN; SELECT pg_advisory_xact_lock(key) FROM dlock.fence WHERE name " + which;
    }
    return {};
  }
  static std::size_t forget_idle(const Client& client) {
    std::size_t all = 0;
    for (auto some = client.forget_idle(1h); !some.empty(); some = client.forget_idle(1h)) all += some.size();
    return all;
  }
};

TEST_P(PostgresForgettingTest, RowsThatAreLockedHideNoOthersAndHoldUpNobody) {
  const Client client = steady(patient());
  (void)client.initialize();
  plant(2500);
  PostgresConnection other(server.admin_conninfo());
  other.run(hold("<= '2'"));  // as texts: 1, 10 to 19, 100 to 199, 1000 to 1999, 2
  EXPECT_EQ(forget_idle(client), 2500U - 1112U);
  EXPECT_EQ(client.list().size(), 1112U);
  EXPECT_THROW((void)client.forget("1"), Error);
  other.run("ROLLBACK");
  EXPECT_TRUE(client.forget("1"));
  EXPECT_EQ(forget_idle(client), 1111U);
  EXPECT_TRUE(client.list().empty());
}

TEST_P(PostgresForgettingTest, ATokenThatSomebodyHasLockedIsNotWaitedFor) {
  const Client client = steady(patient());
  (void)client.initialize();
  plant(3);
  const std::string table = GetParam() == Strategy::table        ? "lease"
                            : GetParam() == Strategy::optimistic ? "optimistic"
                            : GetParam() == Strategy::for_update ? "row_token"
                                                                 : "fence";
  PostgresConnection other(server.admin_conninfo());
  other.run("BEGIN; SELECT FROM dlock." + table + " WHERE name = '2' FOR UPDATE");
  EXPECT_EQ(client.forget_idle(1h), (std::vector<std::string>{"1", "3"}));
  EXPECT_EQ(client.list().size(), 1U);
  other.run("ROLLBACK");
  EXPECT_EQ(client.forget_idle(1h), std::vector<std::string>{"2"});
}

INSTANTIATE_TEST_SUITE_P(, PostgresForgettingTest, testing::ValuesIn(tested()), strategy_name);

class PostgresForgettingOneTest : public PostgresTest {};

// The first holder of a name has died: its token was rolled back, the row to lock was not. Or somebody has just
// inserted it, and is about to lock it.
TEST_F(PostgresForgettingOneTest, ARowWithoutATokenGoesByItsNameOnly) {
  const Client client = steady(patient(), "strategy=for-update");
  (void)client.initialize();
  server.run("INSERT INTO dlock.row_lock VALUES ('a'), ('b')");
  EXPECT_TRUE(client.forget("a"));
  EXPECT_TRUE(client.forget_idle(1h).empty());
  EXPECT_TRUE(client.forget("b"));
  EXPECT_TRUE(client.list().empty());
}

// The lock is the one of the key, whatever rule led to it.
TEST_F(PostgresForgettingOneTest, AnAdvisoryLockStaysWhileAnotherProgramHasIt) {
  for (const auto& [key, lock] : {std::pair{"int64:4711", "4711"}, std::pair{"pair:-1,2", "-1, 2"}}) {
    const Client client = steady(patient(), std::string("strategy=advisory&key=") + key);
    DistributedLock mine = client.make_lock("mine");
    EXPECT_TRUE(take(mine).release());
    server.run("UPDATE dlock.fence SET token = 1");
    PostgresConnection other(server.admin_conninfo());
    other.run("SELECT pg_advisory_lock(" + std::string(lock) + ")");
    EXPECT_TRUE(client.forget_idle(1min).empty());
    EXPECT_THROW((void)client.forget("mine"), Error);
    other.run("SELECT pg_advisory_unlock(" + std::string(lock) + ")");
    EXPECT_TRUE(client.forget("mine"));
  }
}

}  // namespace

}  // namespace dlock::test
