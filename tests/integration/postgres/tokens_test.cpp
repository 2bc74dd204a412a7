// Fencing tokens grow, whatever became of the rows that remember them.
#include "postgres/postgres_test.hpp"

namespace dlock::test {

namespace {

// What was committed without waiting for the disk stays in memory for long, so that a crash loses it.
PostgresConfig lazy() {
  return {.lines = {"wal_writer_delay = 10s", "wal_writer_flush_after = 0"}};
}

class TokensTest : public PostgresStrategyTest {
 protected:
  TokensTest() : PostgresStrategyTest(lazy()) {}

  // The table that remembers tokens.
  [[nodiscard]] static std::string table() {
    switch (GetParam()) {
      case Strategy::table:
        return "dlock.lease";
      case Strategy::optimistic:
        return "dlock.optimistic";
      case Strategy::for_update:
        return "dlock.row_token";
      case Strategy::advisory:
        return "dlock.fence";
    }
    return {};
  }
  void crash() {
    server.kill();
    server.start();
  }
};

TEST_P(TokensTest, GrowWhenRowsAreDeleted) {
  const Client client = steady(patient());
  DistributedLock lock = client.make_lock("counted");
  FencingToken last = take(lock).token();
  await_no_residue("counted");
  server.run("DELETE FROM " + table());
  EXPECT_GT(take(lock).token(), last);
}

TEST_P(TokensTest, GrowWhenTablesAreEmptied) {
  const Client client = steady(patient());
  DistributedLock lock = client.make_lock("counted");
  FencingToken last = take(lock).token();
  for (int i = 0; i < 3; ++i) {
    await_no_residue("counted");
    server.run("TRUNCATE dlock.lease, dlock.optimistic, dlock.row_lock, dlock.row_token, dlock.fence");
    const FencingToken token = take(lock).token();
    EXPECT_GT(token, last);
    last = token;
  }
}

TEST_P(TokensTest, GrowWhenTheSchemaIsMadeAnew) {
  const Client client = steady(patient());
  DistributedLock lock = client.make_lock("counted");
  const FencingToken last = take(lock).token();
  await_no_residue("counted");
  server.run("DROP SCHEMA dlock CASCADE");
  EXPECT_GT(take(lock).token(), last);
}

TEST_P(TokensTest, GrowAlthoughTheClockStandsBack) {
  const Client client = steady(patient());
  DistributedLock lock = client.make_lock("counted");
  (void)take(lock).release();
  await_no_residue("counted");
  server.run("UPDATE " + table() + " SET token = 9000000000000000000");
  EXPECT_EQ(take(lock).token().value(), 9'000'000'000'000'000'001U);
}

TEST_P(TokensTest, GrowAcrossACrash) {
  const Client client = steady(impatient(short_lease));
  DistributedLock lock = client.make_lock("counted");
  FencingToken last;
  for (int i = 0; i < 20; ++i) last = take(lock).token();
  crash();
  EXPECT_GT(take(lock).token(), last);
}

TEST_P(TokensTest, GrowAcrossACrashThatForgetsThem) {
  const Client client = steady(impatient(short_lease), "durability=async");
  DistributedLock lock = client.make_lock("counted");
  FencingToken last = take(lock).token();
  server.run("CREATE TABLE flushed()");  // what went before is on disk with it
  for (int i = 0; i < 20; ++i) last = take(lock).token();
  crash();
  EXPECT_GT(take(lock).token(), last);
}

TEST_P(TokensTest, GrowAcrossACrashThatEmptiesTheTables) {
  const Client client = steady(impatient(short_lease), "durability=unlogged");
  DistributedLock lock = client.make_lock("counted");
  FencingToken last;
  for (int i = 0; i < 20; ++i) last = take(lock).token();
  await_no_residue("counted");
  EXPECT_EQ(server.value("SELECT count(*) FROM " + table()), "1");
  server.kill();
  server.start();
  EXPECT_EQ(server.value("SELECT count(*) FROM " + table() + " WHERE token <= " + std::to_string(last.value())), "0")
      << "this durability is to forget";
  EXPECT_GT(take(lock).token(), last);
}

// Whoever holds while a crash forgets it goes on holding until the lease ends; the next one has the greater token.
TEST_P(TokensTest, GrowWhereAHolderWasForgotten) {
  const Client holder = steady(impatient(short_lease), "durability=unlogged");
  const Client other = steady(patient(), "durability=unlogged");
  DistributedLock lock = holder.make_lock("counted");
  DistributedLock others = other.make_lock("counted");
  const Lease lease = take(lock);
  const LossEvent loss(lease);
  crash();
  EXPECT_GT(take(others).token(), lease.token());
  loss.event().wait("a holder that was forgotten is not told");
}

INSTANTIATE_TEST_SUITE_P(, TokensTest, testing::ValuesIn(tested()), strategy_name);

}  // namespace

}  // namespace dlock::test
