// A server that stands still after a command was sent: the outcome is unknown until it goes on.
#include "redis/redis_test.hpp"

namespace dlock::test {

namespace {

class FrozenTest : public RedisStrategyTest {
 protected:
  // The server stands still when the next request for this lock arrives.
  void freeze_at_request_for(const std::string& name) {
    proxy.before_request(name, [this] { server.freeze(); });
  }
};

void expect_unknown_or_unavailable(std::error_code error) {
  EXPECT_TRUE(error == errc::ambiguous || error == errc::unavailable) << error.message();
}

TEST_P(FrozenTest, ATryEndsInTimeAndIsCleanedUpLater) {
  const Client client = disturbed(impatient(), strategy());
  DistributedLock warm = client.lock("warm");
  (void)take(warm).release();
  DistributedLock lock = client.lock("frozen");
  freeze_at_request_for("frozen");
  const auto start = std::chrono::steady_clock::now();
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({.lease = long_lease}, error).has_value());
  expect_unknown_or_unavailable(error);
  EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  server.thaw();
  const Client other_client = steady({}, strategy());
  DistributedLock others = other_client.lock("frozen");
  EXPECT_TRUE(take(others).release());
  await_no_residue("frozen");
}

TEST_P(FrozenTest, AWaitEndsWithTheLockOnceTheServerGoesOn) {
  const Client client = disturbed(impatient(), strategy());
  DistributedLock warm = client.lock("warm");
  (void)take(warm).release();
  DistributedLock lock = client.lock("frozen");
  Event frozen;
  proxy.before_request("frozen", [&] {
    server.freeze();
    frozen.set();
  });
  Pending waiting(lock, {.lease = long_lease});
  frozen.wait("the request is not sent");
  EXPECT_FALSE(waiting.done());
  server.thaw();
  Lease lease = waiting.lease();
  EXPECT_TRUE(is_held_by("frozen", lease));
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(lease.release());
  await_no_residue("frozen");
}

TEST_P(FrozenTest, AWaitEndsAtItsDeadlineAndLeavesNothing) {
  const Client client = disturbed(impatient(), strategy());
  DistributedLock lock = client.lock("frozen");
  freeze_at_request_for("frozen");
  const auto start = std::chrono::steady_clock::now();
  std::error_code error;
  (void)lock.acquire({.wait = 700ms, .lease = long_lease}, error);
  expect_unknown_or_unavailable(error);
  EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  server.thaw();
  const Client other_client = steady({}, strategy());
  DistributedLock others = other_client.lock("frozen");
  EXPECT_TRUE(take(others).release());
  await_no_residue("frozen");
}

TEST_P(FrozenTest, AReleaseEndsInTimeAndIsCarriedOutLater) {
  const Client client = disturbed(impatient(), strategy());
  DistributedLock lock = client.lock("frozen");
  Lease lease = take(lock, {.lease = long_lease});
  freeze_at_request_for("frozen");
  std::error_code error;
  EXPECT_FALSE(lease.release(error));
  expect_unknown_or_unavailable(error);
  server.thaw();
  const Client other_client = steady({}, strategy());
  DistributedLock others = other_client.lock("frozen");
  EXPECT_TRUE(take(others).release());
  await_no_residue("frozen");
}

TEST_P(FrozenTest, AHolderIsToldOfTheLossWithoutTheServer) {
  const Client client = disturbed(impatient(), strategy());
  DistributedLock lock = client.lock("frozen");
  const Lease lease = take(lock, {.lease = 500ms});
  const LossEvent loss(lease);
  freeze_at_request_for("frozen");  // its renewal
  loss.event().wait("the loss is not signalled");
  EXPECT_FALSE(lease.held());
  server.thaw();
  const Client other_client = steady({}, strategy());
  DistributedLock others = other_client.lock("frozen");
  EXPECT_GT(take(others).token(), lease.token());
  EXPECT_FALSE(lease.held());
}

TEST_P(FrozenTest, AShortFreezeCostsNobodyTheLock) {
  const auto log = std::make_shared<EventLog>();
  ClientOptions options = impatient();
  options.observer = log;
  const Client client = disturbed(options, strategy());
  DistributedLock lock = client.lock("frozen");
  Lease lease = take(lock, {.lease = 6s});
  Event frozen;
  proxy.before_request("frozen", [&] {
    server.freeze();
    frozen.set();
  });
  frozen.wait("no renewal is sent");
  server.thaw();
  log->renewals.wait("the renewal is not repeated");
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(is_held_by("frozen", lease));
  EXPECT_TRUE(lease.release());
}

INSTANTIATE_TEST_SUITE_P(, FrozenTest, all_strategies(), strategy_name);

}  // namespace

}  // namespace dlock::test
