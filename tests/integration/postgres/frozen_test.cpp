// A server that stands still (SIGSTOP of all its processes): connections stay, nothing is answered.
#include "postgres/postgres_test.hpp"

namespace dlock::test {

namespace {

class FrozenTest : public PostgresStrategyTest {
 protected:
  // What a wait, or a try, of a server that stands still may end with: never the lock, and never "busy".
  static void expect_failure(std::error_code error) {
    EXPECT_TRUE(error == errc::ambiguous || error == errc::unavailable) << error.message();
  }
  void expect_free_and_clean(const std::string& name) {
    const Client other = steady(patient());
    DistributedLock others = other.lock(name);
    EXPECT_TRUE(take(others).release());
    await_no_residue(name);
  }
};

TEST_P(FrozenTest, ATryEndsInTimeAndLeavesNothing) {
  const Client client = steady(impatient());
  DistributedLock warm = client.lock("warm");
  EXPECT_TRUE(take(warm).release());
  DistributedLock lock = client.lock("frozen");
  server.freeze();
  const auto start = std::chrono::steady_clock::now();
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  expect_failure(error);
  EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  server.thaw();
  expect_free_and_clean("frozen");
}

TEST_P(FrozenTest, ATryOfOneWhoIsNotConnectedYetEndsInTime) {
  const Client client = steady(impatient());
  DistributedLock lock = client.lock("frozen");
  server.freeze();
  const auto start = std::chrono::steady_clock::now();
  std::error_code error;
  (void)lock.try_acquire({}, error);
  EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  server.thaw();
}

TEST_P(FrozenTest, AWaitEndsAtItsDeadlineAndLeavesNothing) {
  const Client client = steady(impatient());
  DistributedLock warm = client.lock("warm");
  EXPECT_TRUE(take(warm).release());
  DistributedLock lock = client.lock("frozen");
  server.freeze();
  const auto start = std::chrono::steady_clock::now();
  std::error_code error;
  (void)lock.acquire({.wait = 700ms}, error);
  expect_failure(error);
  EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  server.thaw();
  expect_free_and_clean("frozen");
}

TEST_P(FrozenTest, AWaiterInTheMiddleOfItEndsAtItsDeadlineAndLeavesNothing) {
  const Client holder = steady(patient());
  const Client client = steady(impatient());
  DistributedLock held = holder.lock("frozen");
  DistributedLock lock = client.lock("frozen");
  Lease lease = take(held);
  Pending waiting(lock, {.wait = 5s});
  await_waiter("frozen");
  server.freeze();
  const auto start = std::chrono::steady_clock::now();
  // "Busy" may be said as well: it was when the server was last heard of.
  EXPECT_TRUE(waiting.get().error);
  EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  server.thaw();
  EXPECT_TRUE(lease.release());
  expect_free_and_clean("frozen");
}

TEST_P(FrozenTest, AWaitEndsWithTheLockOnceTheServerGoesOn) {
  const Client client = steady(impatient());
  DistributedLock warm = client.lock("warm");
  EXPECT_TRUE(take(warm).release());
  DistributedLock lock = client.lock("frozen");
  server.freeze();
  Pending waiting(lock, {});
  std::error_code error;
  (void)warm.try_acquire({}, error);  // as long as this takes
  EXPECT_FALSE(waiting.done());
  server.thaw();
  Lease lease = waiting.lease();
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(lease.release());
  await_no_residue("frozen");
}

TEST_P(FrozenTest, AReleaseEndsInTimeAndIsCarriedOutLater) {
  const Client client = steady(impatient());
  DistributedLock lock = client.lock("frozen");
  Lease lease = take(lock);
  server.freeze();
  const auto start = std::chrono::steady_clock::now();
  std::error_code error;
  EXPECT_FALSE(lease.release(error));
  expect_failure(error);
  EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  server.thaw();
  expect_free_and_clean("frozen");
}

TEST_P(FrozenTest, AHolderIsToldOfTheLossWithoutTheServer) {
  const Client client = steady({.lease = short_lease});
  DistributedLock lock = client.lock("frozen");
  const Lease lease = take(lock);
  const LossEvent loss(lease);
  server.freeze();
  loss.event().wait("the loss is not signalled");
  EXPECT_FALSE(lease.held());
  server.thaw();
  const Client other = steady(patient());
  DistributedLock others = other.lock("frozen");
  EXPECT_GT(take(others).token(), lease.token());
  EXPECT_FALSE(lease.held());
}

TEST_P(FrozenTest, AShortFreezeCostsNobodyTheLock) {
  const auto log = std::make_shared<EventLog>();
  const Client client = steady({.lease = 12s, .observer = log});
  const Client other = steady(impatient());
  DistributedLock lock = client.lock("frozen");
  DistributedLock others = other.lock("frozen");
  Lease lease = take(lock);
  server.freeze();
  std::error_code error;
  (void)others.acquire({.wait = 1s}, error);  // as long as this takes
  server.thaw();
  await_renewal(lease);
  EXPECT_TRUE(lease.held());
  EXPECT_EQ(log->losses.count(), 0U);
  EXPECT_TRUE(lease.release());
  await_no_residue("frozen");
}

INSTANTIATE_TEST_SUITE_P(, FrozenTest, testing::ValuesIn(all_strategies), strategy_name);

}  // namespace

}  // namespace dlock::test
