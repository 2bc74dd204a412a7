// Servers that have no connections left.
#include <stdexcept>

#include "postgres/postgres_test.hpp"

namespace dlock::test {

namespace {

class FullServerTest : public PostgresStrategyTest {
 protected:
  // Three of them are the superuser's.
  FullServerTest() : PostgresStrategyTest({.max_connections = 8}) {}

  void fill() {
    for (int i = 0; i < 5; ++i) others_.push_back(std::make_unique<PostgresConnection>(server.url()));
  }
  void empty() { others_.clear(); }

 private:
  std::vector<std::unique_ptr<PostgresConnection>> others_;
};

TEST_P(FullServerTest, ATryIsUnavailableAndSaysWhy) {
  fill();
  const Client client = steady(patient());
  DistributedLock lock = client.lock("full");
  try {
    (void)lock.try_acquire();
    ADD_FAILURE() << "there is no connection to be had";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), errc::unavailable) << error.what();
    EXPECT_NE(error.detail().find("53300"), std::string::npos) << error.what();
  }
}

TEST_P(FullServerTest, AWaitOutlastsIt) {
  fill();
  const Client client = steady(patient());
  DistributedLock lock = client.lock("full");
  Pending waiting(lock, {});
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::unavailable) << error.message();
  EXPECT_FALSE(waiting.done());
  empty();
  EXPECT_TRUE(waiting.lease().release());
}

TEST_P(FullServerTest, WhoHoldsAlreadyIsNotDisturbed) {
  const Client client = steady({.lease = 6s});
  DistributedLock lock = client.lock("held");
  Lease lease = take(lock);
  std::vector<std::unique_ptr<PostgresConnection>> rest;
  while (rest.size() < 5) {
    try {
      rest.push_back(std::make_unique<PostgresConnection>(server.url()));
    } catch (const std::runtime_error&) {
      break;  // full
    }
  }
  await_renewal(lease);
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(lease.release());
}

INSTANTIATE_TEST_SUITE_P(, FullServerTest, testing::ValuesIn(all_strategies), strategy_name);

}  // namespace

}  // namespace dlock::test
