// A server that stands still: connections stay, nothing is answered, and what was sent is carried out later.
#include "network/room.hpp"

namespace dlock::test {

namespace {

class FrozenTest : public Room {
 protected:
  template <class Ask>
  void expect_end_in_time_and_nothing_left(Ask ask) {
    Contender ours(steady(impatient()), "frozen");
    warm_up(ours.client);
    service.freeze();
    const auto start = std::chrono::steady_clock::now();
    std::error_code error;
    ask(ours.lock, error);
    expect_unanswered(error);
    EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
    service.thaw();
    expect_free_and_clean("frozen");
  }
};

TEST_P(FrozenTest, Try_EndsInTimeAndLeavesNothing) {
  expect_end_in_time_and_nothing_left(
      [](DistributedLock& lock, std::error_code& error) { EXPECT_FALSE(lock.try_acquire({}, error).has_value()); });
}

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

TEST_P(FrozenTest, Wait_EndsAtItsDeadlineAndLeavesNothing) {
  expect_end_in_time_and_nothing_left(
      [](DistributedLock& lock, std::error_code& error) { (void)lock.acquire({.wait = 700ms}, error); });
}

TEST_P(FrozenTest, WaitInProgress_EndsAtItsDeadlineAndLeavesNothing) {
  Contender holder(steady(), "frozen");
  Contender ours(steady(impatient()), "frozen");
  Lease lease = take(holder.lock);
  Pending waiting(ours.lock, {.wait = 3s});
  await_waiter("frozen");
  service.freeze();
  const auto start = std::chrono::steady_clock::now();
  // "Busy" may be said as well: it was when the server was last heard of.
  EXPECT_TRUE(waiting.get().error);
  EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  service.thaw();
  EXPECT_TRUE(lease.release());
  expect_free_and_clean("frozen");
}

TEST_P(FrozenTest, WaitOfAThawedServer_EndsWithTheLock) {
  const Client client = steady(impatient());
  warm_up(client);
  DistributedLock lock = client.make_lock("frozen");
  DistributedLock another = client.make_lock("warm");
  service.freeze();
  Pending waiting(lock, {});
  std::error_code error;
  (void)another.try_acquire({}, error);  // as long as this takes
  EXPECT_FALSE(waiting.done());
  service.thaw();
  Lease lease = waiting.lease();
  EXPECT_TRUE(lease.held());
  EXPECT_EQ(steady().inspect("frozen").token, lease.token());
  EXPECT_TRUE(lease.release());
  await_no_residue("frozen");
}

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

TEST_P(FrozenTest, NoCloseTimeout_ReleasesLater) {
  ClientOptions options = impatient();
  options.close_timeout = 0s;
  const Client client = steady(options);
  std::optional<Lease> lease = client.make_lock("frozen").acquire();
  service.freeze();
  lease.reset();
  service.thaw();
  expect_free_and_clean("frozen");
}

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

INSTANTIATE_TEST_SUITE_P(, FrozenTest, ::testing::ValuesIn(tested_strategies()), Room::strategy_name);

}  // namespace

}  // namespace dlock::test
