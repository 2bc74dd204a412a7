// A server that stands still: connections stay, nothing is answered, and what was sent is carried out later.
#include "network/room.hpp"

namespace dlock::test {

namespace {

class FrozenTest : public Room {};

// Hazard: a lost answer: repeat, or undo
TEST_P(FrozenTest, TryBeforeTheFirstConnection_EndsInTime) {
  Contender own(steady(impatient()), "frozen");
  service.freeze();
  const auto start = std::chrono::steady_clock::now();
  std::error_code error;
  EXPECT_FALSE(own.lock.try_acquire({}, error).has_value());
  expect_unanswered(error);
  EXPECT_TRUE(mentions(own.client.diagnose(), Finding::Severity::error, ""));
  EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  service.thaw();
}

// Shows: release-reports
TEST_P(FrozenTest, Release_EndsInTimeAndIsDoneLater) {
  Contender ours(steady(impatient()), "frozen");
  Lease lease = take(ours.lock);
  service.freeze();
  const auto start = std::chrono::steady_clock::now();
  std::error_code error;
  EXPECT_FALSE(lease.release(error));
  expect_unanswered(error);
  EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  service.thaw();
  expect_free_and_clean("frozen");
}

TEST_P(FrozenTest, NoCloseTimeout_DestroysClientsAtOnce) {
  ClientOptions options = impatient(service_kind().short_lease);
  options.close_timeout = 0s;
  std::optional<Client> client(steady(options));
  std::vector<Lease> leases;
  // With the default timeout they would take longer than far_too_long.
  for (int i = 0; i < 10; ++i) leases.push_back(client->make_lock("frozen" + std::to_string(i)).acquire());
  service.freeze();
  const auto start = std::chrono::steady_clock::now();
  leases.clear();
  client.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  service.thaw();
  expect_free_and_clean("frozen9");
}

// Shows: loss-signal, hole zookeeper-unresponsive-server
// Hazard: a paused holder: a local timer
TEST_P(FrozenTest, Holder_IsNotifiedOfTheLoss) {
  Contender ours(steady({.lease = service_kind().short_lease}), "frozen");
  const Lease lease = take(ours.lock);
  const LossEvent loss(lease);
  service.freeze();
  loss.event().wait("the loss is not signalled");
  EXPECT_FALSE(lease.held());
  service.thaw();
  Contender other(steady(), "frozen");
  EXPECT_GT(take(other.lock).token(), lease.token());
  EXPECT_FALSE(lease.held());
}

// Shows: one-holder
TEST_P(FrozenTest, ShortFreeze_LosesNoLock) {
  const auto log = std::make_shared<EventLog>();
  Contender own(steady({.lease = 9s, .observer = log}), "frozen");
  Contender other(steady(impatient()), "frozen");
  warm_up(other.client);
  Lease lease = take(own.lock);
  service.freeze();
  std::error_code error;
  (void)other.lock.acquire({.wait = 1s}, error);  // as long as this takes
  service.thaw();
  await_renewal(lease);
  EXPECT_TRUE(lease.held());
  EXPECT_EQ(log->losses.count(), 0U);
  EXPECT_TRUE(lease.release());
  await_no_residue("frozen");
}

TEST_P(FrozenTest, Ping_IsUnavailableAtTheDeadline) {
  const Client fresh = steady(impatient());
  const Client connected = steady(impatient());
  warm_up(connected);
  service.freeze();
  const auto start = std::chrono::steady_clock::now();
  for (const Client* each : {&fresh, &connected}) expect_failure(errc::unavailable, "", [&] { each->ping(700ms); });
  EXPECT_TRUE(mentions(fresh.diagnose(), Finding::Severity::error, ""));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 2 * far_too_long);
  service.thaw();
  connected.ping(1min);
}

INSTANTIATE_TEST_SUITE_P(, FrozenTest, ::testing::ValuesIn(tested_strategies()), Room::strategy_name);

}  // namespace

}  // namespace dlock::test
