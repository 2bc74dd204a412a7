// Networks that swallow everything, or one direction of it, and tell nobody.
#include <atomic>

#include "postgres/postgres_test.hpp"

namespace dlock::test {

namespace {

constexpr rig::Traffic black_hole = {.mode = rig::Traffic::Mode::hold};

class NetworkTest : public PostgresStrategyTest {
 protected:
  // A holder behind the proxy, to which this is done, and somebody else who waits.
  template <class Disturbance>
  void expect_told_before_anybody_enters(Disturbance disturb) {
    const Client holder = disturbed({.lease = short_lease, .close_timeout = 300ms});
    const Client other = steady(patient());
    DistributedLock lock = holder.lock("held");
    DistributedLock others = other.lock("held");
    const Lease lease = take(lock);
    const LossEvent loss(lease);
    std::atomic<bool> told = false;
    // Whoever looks is told, also where the engine thread has not been let run in time.
    Pending waiting(others, {}, [&](Lease& /*granted*/) { told = !lease.held() && loss.happened(); });
    await_waiter("held");
    disturb();
    Lease next = waiting.lease();
    EXPECT_TRUE(told);
    EXPECT_GT(next.token(), lease.token());
    // What arrives late does the next holder no harm.
    proxy.pass();
    EXPECT_TRUE(next.held());
    DistributedLock again = holder.lock("again");
    EXPECT_TRUE(take(again).release());
    EXPECT_TRUE(next.release());
    await_no_residue("held");
  }
};

TEST_P(NetworkTest, AHolderInABlackHoleIsToldBeforeAnybodyEnters) {
  expect_told_before_anybody_enters([this] { proxy.set(black_hole); });
}

TEST_P(NetworkTest, AHolderWhoIsNotHeardIsToldBeforeAnybodyEnters) {
  expect_told_before_anybody_enters([this] { proxy.set(rig::Direction::to_server, black_hole); });
}

TEST_P(NetworkTest, AHolderWhoDoesNotHearIsToldBeforeAnybodyEnters) {
  expect_told_before_anybody_enters([this] { proxy.set(rig::Direction::to_client, black_hole); });
}

TEST_P(NetworkTest, AWaiterInABlackHoleDelaysNobodyForLong) {
  const Client holder = steady(patient());
  const Client lost = disturbed({.lease = short_lease, .close_timeout = 300ms});
  const Client other = steady(patient());
  DistributedLock lock = holder.lock("waited-for");
  DistributedLock first = lost.lock("waited-for");
  DistributedLock second = other.lock("waited-for");
  Lease lease = take(lock);
  Pending before(first, {});
  await_waiter("waited-for");
  proxy.set(black_hole);
  Pending behind(second, {});
  EXPECT_TRUE(lease.release());
  EXPECT_GT(behind.lease().token(), lease.token());
  EXPECT_FALSE(before.done());
  // It is not forgotten either.
  proxy.pass();
  EXPECT_TRUE(before.lease().release());
  await_no_residue("waited-for");
}

TEST_P(NetworkTest, AWaiterInABlackHoleEndsAtItsDeadline) {
  const Client holder = steady(patient());
  const Client lost = disturbed(impatient(short_lease));
  DistributedLock lock = holder.lock("waited-for");
  DistributedLock others = lost.lock("waited-for");
  Lease lease = take(lock);
  Pending waiting(others, {.wait = 5s});
  await_waiter("waited-for");
  proxy.set(black_hole);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(waiting.get().error);
  EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  EXPECT_TRUE(lease.release());
  // Nothing is heard of it any more, and still it is cleaned up.
  EXPECT_TRUE(take(lock).release());
  await_no_residue("waited-for");
}

TEST_P(NetworkTest, ATryIntoABlackHoleEndsInTimeAndLeavesNothing) {
  const Client lost = disturbed(impatient(short_lease));
  DistributedLock warm = lost.lock("warm");
  EXPECT_TRUE(take(warm).release());
  DistributedLock lock = lost.lock("tried");
  proxy.set(rig::Direction::to_client, black_hole);  // it is carried out, but not answered
  const auto start = std::chrono::steady_clock::now();
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  EXPECT_TRUE(error == errc::ambiguous || error == errc::unavailable) << error.message();
  EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  const Client other = steady(patient());
  DistributedLock others = other.lock("tried");
  EXPECT_TRUE(take(others).release());
  proxy.pass();
  EXPECT_TRUE(take(lock).release());
  await_no_residue("tried");
}

TEST_P(NetworkTest, ASlowNetworkCostsNobodyTheLock) {
  proxy.set({.delay = 50ms, .drip_bytes = 70, .drip_interval = 1ms});
  const auto log = std::make_shared<EventLog>();
  const Client slow = disturbed({.lease = 9s, .connect_timeout = 30s, .observer = log});
  DistributedLock lock = slow.lock("held");
  Lease lease = take(lock);
  await_renewal(lease);
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(lease.release());
  EXPECT_EQ(log->losses.count(), 0U);
}

INSTANTIATE_TEST_SUITE_P(, NetworkTest, testing::ValuesIn(all_strategies), strategy_name);

}  // namespace

}  // namespace dlock::test
