// Networks that swallow everything, or one direction of it, and tell nobody; connections that break; slow ones.
#include <atomic>

#include "network/room.hpp"

namespace dlock::test {

namespace {

class NetworkTest : public Room {
 protected:
  // A holder behind the proxy, to which this is done, and somebody else who waits.
  template <class Disturbance>
  void expect_told_before_anybody_enters(Disturbance disturb) {
    const Client holder = disturbed({.lease = service_kind().short_lease, .close_timeout = 300ms});
    const Client other = steady();
    DistributedLock lock = holder.make_lock("held");
    DistributedLock others = other.make_lock("held");
    const Lease lease = take(lock);
    const LossEvent loss(lease);
    std::atomic<bool> told = false;
    // Whoever looks is told, also where the engine thread has not been let run in time.
    Pending waiting(others, {}, [&](Lease& /*granted*/) {
      told = !lease.held() && lease.lost().stop_requested() && loss.happened();
    });
    await_waiter("held");
    disturb();
    Lease next = waiting.lease();
    EXPECT_TRUE(told);
    EXPECT_GT(next.token(), lease.token());
    // What arrives late does the next holder no harm.
    proxy.pass();
    EXPECT_TRUE(next.held());
    DistributedLock again = holder.make_lock("again");
    EXPECT_TRUE(take(again).release());
    EXPECT_TRUE(next.release());
    await_no_residue("held");
  }
};

TEST_P(NetworkTest, HolderInABlackHole_IsNotifiedBeforeTheNextGrant) {
  expect_told_before_anybody_enters([this] { proxy.set(black_hole); });
}

TEST_P(NetworkTest, HolderThatCannotSend_IsNotifiedBeforeTheNextGrant) {
  expect_told_before_anybody_enters([this] { proxy.set(rig::Direction::to_server, black_hole); });
}

TEST_P(NetworkTest, HolderThatReceivesNothing_IsNotifiedBeforeTheNextGrant) {
  expect_told_before_anybody_enters([this] { proxy.set(rig::Direction::to_client, black_hole); });
}

TEST_P(NetworkTest, WaiterInABlackHole_DelaysNoOtherForLong) {
  const Client holder = steady();
  const Client lost = disturbed({.lease = service_kind().short_lease, .close_timeout = 300ms});
  const Client other = steady();
  DistributedLock lock = holder.make_lock("waited-for");
  DistributedLock first = lost.make_lock("waited-for");
  DistributedLock second = other.make_lock("waited-for");
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

TEST_P(NetworkTest, WaiterInABlackHole_EndsAtItsDeadline) {
  const Client holder = steady();
  const Client lost = disturbed(impatient(service_kind().short_lease));
  DistributedLock lock = holder.make_lock("waited-for");
  DistributedLock others = lost.make_lock("waited-for");
  Lease lease = take(lock);
  Pending waiting(others, {.wait = 3s});
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

TEST_P(NetworkTest, TryIntoABlackHole_EndsInTimeAndLeavesNothing) {
  const Client lost = disturbed(impatient(service_kind().short_lease));
  warm_up(lost);
  DistributedLock lock = lost.make_lock("tried");
  proxy.set(rig::Direction::to_client, black_hole);  // it is carried out, but not answered
  const auto start = std::chrono::steady_clock::now();
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  expect_unanswered(error);
  EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  const Client other = steady();
  DistributedLock others = other.make_lock("tried");
  EXPECT_TRUE(take(others).release());
  proxy.pass();
  EXPECT_TRUE(take(lock).release());
  await_no_residue("tried");
}

TEST_P(NetworkTest, SlowNetwork_LosesNoLock) {
  proxy.set({.delay = 50ms, .drip_bytes = 70, .drip_interval = 1ms});
  const auto log = std::make_shared<EventLog>();
  const Client slow = disturbed({.lease = 12s, .connect_timeout = 30s, .observer = log});
  DistributedLock lock = slow.make_lock("held");
  Lease lease = take(lock);
  await_renewal(lease);
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(lease.release());
  EXPECT_EQ(log->losses.count(), 0U);
}

TEST_P(NetworkTest, BrokenConnection_IsALossOrKeepsTheLock) {
  const auto log = std::make_shared<EventLog>();
  const Client client = disturbed({.lease = 9s, .observer = log});
  DistributedLock lock = client.make_lock("held");
  Lease lease = take(lock);
  for (const rig::Ending ending : {rig::Ending::close, rig::Ending::reset}) {
    const auto connected = log->connected.count();
    cut(ending);
    log->reconnecting.wait("a cut is not told");
    EXPECT_EQ(lease.held(), !ends_with_connection()) << "suspended is not lost";
    heal();
    if (ends_with_connection()) break;
    log->connected.wait("the connection does not come back", connected + 1);
    await_renewal(lease);
  }
  if (ends_with_connection()) log->losses.wait("the loss is not told");
  EXPECT_EQ(log->losses.count(), ends_with_connection() ? 1U : 0U);
  EXPECT_EQ(lease.release(), !ends_with_connection());
}

TEST_P(NetworkTest, ReleaseWhileAWaiterIsCutOff_IsNotMissed) {
  const Client holding = steady();
  const Client client = disturbed();
  DistributedLock lock = holding.make_lock("waited-for");
  DistributedLock others = client.make_lock("waited-for");
  Lease lease = take(lock);
  Pending waiting(others, {});
  await_waiter("waited-for");
  cut();
  EXPECT_TRUE(lease.release());
  EXPECT_FALSE(waiting.done());
  heal();
  EXPECT_TRUE(waiting.lease().release());
  await_no_residue("waited-for");
}

TEST_P(NetworkTest, WaiterCancelledWhileCutOff_DelaysNoOther) {
  const Client client = disturbed(impatient());
  const Client other = steady();
  DistributedLock lock = client.make_lock("orphan");
  DistributedLock others = other.make_lock("orphan");
  Lease lease = take(others);
  Pending orphan(lock, {});
  await_waiter("orphan");
  Pending behind(others, {});
  cut();
  orphan.cancel();
  EXPECT_EQ(orphan.get().error, errc::cancelled);
  EXPECT_TRUE(lease.release());
  heal();
  EXPECT_TRUE(behind.lease().release());
  await_no_residue("orphan");
}

TEST_P(NetworkTest, ClientBeforeItsServer_ConnectsLater) {
  proxy.refuse(true);
  const Client client = disturbed(impatient());
  DistributedLock lock = client.make_lock("late");
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::unavailable) << error.message();
  Pending waiting(lock, {});
  proxy.refuse(false);
  EXPECT_TRUE(waiting.lease().release());
}

TEST_P(NetworkTest, ReleaseWhileCutOff_IsDoneLater) {
  const Client client = disturbed(impatient());
  const Client other = steady();
  DistributedLock lock = client.make_lock("release");
  DistributedLock others = other.make_lock("release");
  Lease lease = take(lock);
  cut();
  std::error_code error;
  EXPECT_FALSE(lease.release(error));
  if (!ends_with_connection()) {
    expect_unanswered(error);
    EXPECT_FALSE(others.try_acquire().has_value());
  }
  heal();
  EXPECT_TRUE(take(others).release());
  await_no_residue("release");
}

TEST_P(NetworkTest, ReleaseWithALostAnswer_FreesTheLock) {
  const Client client = disturbed(impatient());
  const Client other = steady();
  DistributedLock lock = client.make_lock("release");
  DistributedLock others = other.make_lock("release");
  Lease lease = take(lock);
  Pending waiting(others, {});
  await_waiter("release");
  proxy.cut_after(rig::Direction::to_client, 0);
  std::error_code error;
  (void)lease.release(error);  // it may have been repeated in time
  EXPECT_FALSE(lease.held());
  EXPECT_TRUE(waiting.lease().release());
  await_no_residue("release");
}

TEST_P(NetworkTest, LateReleaseWithALostAnswer_ReportsNoLoss) {
  const Client client = disturbed({.lease = service_kind().short_lease});
  DistributedLock lock = client.make_lock("release");
  Lease lease = take(lock);
  const TimePoint first_end = lease.valid_until();
  await("the first lease period does not end", [&] { return LeaseClock::now() >= first_end; });
  ASSERT_TRUE(lease.held());
  proxy.cut_after(rig::Direction::to_client, 0);
  std::error_code error;
  const bool ours = lease.release(error);
  // Without an error, false means that another owner could have had the lock.
  EXPECT_TRUE(ours || error || ends_with_connection());
  await_no_residue("release");
}

TEST_P(NetworkTest, ClosedClient_FreesItsLocksAtOnce) {
  const Client other = steady();
  std::optional<Client> client = disturbed();
  DistributedLock one = client->make_lock("one");
  DistributedLock two = client->make_lock("two");
  const Lease held = take(one);
  DistributedLock others = other.make_lock("two");
  Lease elsewhere = take(others);
  Pending waiting(two, {});
  await_waiter("two");
  client.reset();
  EXPECT_EQ(waiting.get().error, errc::closed);
  await_no_residue("one");
  EXPECT_TRUE(elsewhere.release());
  await_no_residue("two");
}

// The server cannot be told, so it keeps the lock as if its holder had died.
TEST_P(NetworkTest, ClientClosedWhileCutOff_LeavesItsLockForTheLease) {
  const Client other = steady();
  std::optional<Client> client = disturbed(impatient(service_kind().short_lease));
  DistributedLock lock = client->make_lock("closed");
  const Lease lease = take(lock);
  cut();
  const auto start = std::chrono::steady_clock::now();
  client.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  EXPECT_FALSE(lease.held());
  DistributedLock others = other.make_lock("closed");
  EXPECT_GT(take(others).token(), lease.token());
}

INSTANTIATE_TEST_SUITE_P(, NetworkTest, ::testing::ValuesIn(tested_strategies()), Room::strategy_name);

}  // namespace

}  // namespace dlock::test
