// Client::ping(): what it proves, and that it leaves nothing behind.
#include "network/room.hpp"

namespace dlock::test {

namespace {

class PingTest : public Room {
 protected:
  static void expect_failure(const Client& client, Duration wait, errc code) {
    const auto start = std::chrono::steady_clock::now();
    try {
      client.ping(wait);
      ADD_FAILURE() << "it succeeds";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), code) << e.what();
      EXPECT_FALSE(e.detail().empty());
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  }
};

TEST_P(PingTest, RunningServer_AnswersAndKeepsNothing) {
  const Client client = steady();
  client.ping(1min);
  EXPECT_TRUE(client.list().empty());
  warm_up(client);
  client.ping(1min);
  client.ping(1min, "warm");
  for (const LockInfo& lock : client.list()) EXPECT_EQ(lock.name, "warm");
  EXPECT_FALSE(client.inspect("warm").held);
}

TEST_P(PingTest, MissingServer_IsUnavailableAtTheDeadline) {
  cut();
  expect_failure(disturbed(impatient()), 700ms, errc::unavailable);
}

TEST_P(PingTest, FrozenServer_IsUnavailableAtTheDeadline) {
  const Client fresh = steady(impatient());
  const Client connected = steady(impatient());
  warm_up(connected);
  service.freeze();
  expect_failure(fresh, 700ms, errc::unavailable);
  expect_failure(connected, 700ms, errc::unavailable);
  service.thaw();
  connected.ping(1min);
}

TEST_P(PingTest, MissingServer_IsAwaited) {
  cut();
  const Client client = disturbed(impatient());
  expect_failure(client, 100ms, errc::unavailable);
  heal();
  client.ping(1min);
}

TEST_P(PingTest, WrongPassword_IsDeniedAtOnce) {
  expect_failure(connect_patiently(service.url_of_stranger("hidden-word", strategy()), impatient()), forever,
                 errc::access_denied);
}

INSTANTIATE_TEST_SUITE_P(, PingTest, ::testing::ValuesIn(tested_strategies()), Room::strategy_name);

}  // namespace

}  // namespace dlock::test
