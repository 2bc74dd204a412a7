// Roles with just the rights that locks need, and with one of them missing.
#include "postgres/postgres_test.hpp"

namespace dlock::test {

namespace {

class GrantsTest : public PostgresStrategyTest {
 protected:
  GrantsTest() {
    // The owner makes the schema by taking a lock.
    const Client owner = steady(patient());
    DistributedLock lock = owner.make_lock("first");
    EXPECT_TRUE(take(lock).release());
    server.run("CREATE ROLE runtime LOGIN PASSWORD 'runtime'");
    server.run("GRANT USAGE ON SCHEMA dlock TO runtime");
    server.run("GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA dlock TO runtime");
  }
  // What an acquire that waits for its turn, as long as it takes, says at once.
  [[nodiscard]] Failure refusal(const std::string& name) const {
    const Client client = as("runtime", patient());
    DistributedLock lock = client.make_lock(name);
    const auto start = std::chrono::steady_clock::now();
    Failure failure;
    try {
      (void)lock.acquire({.wait = 1min});
    } catch (const Error& error) {
      failure = {error.code(), error.detail()};
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long) << "it is tried again and again";
    return failure;
  }
};

TEST_P(GrantsTest, TheDocumentedOnesSuffice) {
  const auto log = std::make_shared<EventLog>();
  const Client holder = as("runtime", {.lease = 12s, .observer = log});
  const Client other = as("runtime", {.lease = 12s, .observer = log});
  DistributedLock lock = holder.make_lock("held");
  DistributedLock others = other.make_lock("held");
  Lease lease = take(lock);
  EXPECT_FALSE(others.try_acquire().has_value());
  Pending waiting(others, {});
  await_waiter("held");
  await_renewal(lease);
  EXPECT_TRUE(lease.release());
  const Lease next = waiting.lease();
  EXPECT_GT(next.token(), lease.token());
  const LockInfo info = other.inspect("held");
  EXPECT_TRUE(info.held);
  EXPECT_EQ(info.token, next.token());
  EXPECT_EQ(info.holder, other.holder());
  EXPECT_EQ(other.list().size(), 2U);
  const LossEvent loss(next);
  EXPECT_TRUE(holder.break_lock("held"));
  loss.event().wait("a lock that was broken is not lost");
  EXPECT_EQ(log->warned.count(), 0U);
}

TEST_P(GrantsTest, AMissingOneIsNamedAndNotTriedAgain) {
  const struct {
    const char* revoke;
    const char* word;
  } missing[] = {
      {"USAGE ON SCHEMA", "USAGE"},
      {"SELECT ON ALL TABLES IN SCHEMA", "SELECT"},
      {"INSERT ON ALL TABLES IN SCHEMA", "INSERT"},
      {"UPDATE ON ALL TABLES IN SCHEMA", "UPDATE"},
  };
  for (const auto& [right, word] : missing) {
    server.run(std::string("REVOKE ") + right + " dlock FROM runtime");
    const Failure failure = refusal("refused");
    EXPECT_EQ(failure.code, errc::access_denied) << right << ": " << failure.code.message() << ": " << failure.detail;
    EXPECT_NE(failure.detail.find("GRANT"), std::string::npos) << failure.detail;
    EXPECT_NE(failure.detail.find(word), std::string::npos) << failure.detail;
    EXPECT_NE(failure.detail.find("dlock"), std::string::npos) << failure.detail;
    server.run(std::string("GRANT ") + right + " dlock TO runtime");
  }
  const Client client = as("runtime", patient());
  DistributedLock lock = client.make_lock("refused");
  EXPECT_TRUE(take(lock).release());
}

TEST_P(GrantsTest, ToForgetNamesTakesOneMore) {
  server.run(
      "UPDATE dlock.lease SET token = 1; UPDATE dlock.optimistic SET token = 1; UPDATE dlock.row_token SET "
      "token = 1; UPDATE dlock.fence SET token = 1");
  const Client client = as("runtime", patient());
  try {
    (void)client.forget("first");
    FAIL() << "without a right to delete";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), errc::access_denied) << error.what();
    EXPECT_NE(error.detail().find("GRANT DELETE"), std::string::npos) << error.what();
  }
  server.run("GRANT DELETE ON ALL TABLES IN SCHEMA dlock TO runtime");
  EXPECT_TRUE(client.forget("first"));
  EXPECT_TRUE(client.list().empty());
}

TEST_P(GrantsTest, ARoleThatMayNotCreateTheSchemaIsToldHowToGetOne) {
  server.run("DROP SCHEMA dlock CASCADE");
  const Failure failure = refusal("nowhere");
  EXPECT_TRUE(failure.code == errc::access_denied || failure.code == errc::invalid_argument) << failure.code.message();
  EXPECT_NE(failure.detail.find("dlock init"), std::string::npos) << failure.detail;
  // Once somebody has made it, it is found without more ado.
  const Client owner = steady(patient());
  DistributedLock first = owner.make_lock("first");
  EXPECT_TRUE(take(first).release());
  server.run("GRANT USAGE ON SCHEMA dlock TO runtime");
  server.run("GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA dlock TO runtime");
  const Client client = as("runtime", patient());
  DistributedLock lock = client.make_lock("nowhere");
  EXPECT_TRUE(take(lock).release());
}

INSTANTIATE_TEST_SUITE_P(, GrantsTest, testing::ValuesIn(tested()), strategy_name);

}  // namespace

}  // namespace dlock::test
