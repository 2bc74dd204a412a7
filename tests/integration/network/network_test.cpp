// Networks that swallow everything, or one direction of it, and tell nobody; connections that break; slow ones.
#include <atomic>

#include "network/room.hpp"

namespace dlock::test {

namespace {

class NetworkTest : public Room {};

// Both ways, or one of them.
// Shows: one-holder
// Hazard: `tcp_user_timeout` detects nothing on an idle connection
// Hazard: a cut-off holder keeps its lock, or is notified late
TEST_P(NetworkTest, HolderInABlackHole_IsNotifiedBeforeTheNextGrant) {
  const std::pair<const char*, std::function<void()>> holes[] = {
      {"neither direction passes", [this] { proxy.set(black_hole); }},
      {"it cannot send", [this] { proxy.set(rig::Direction::to_server, black_hole); }},
      {"it receives nothing", [this] { proxy.set(rig::Direction::to_client, black_hole); }}};
  for (const auto& [name, disturb] : holes) {
    SCOPED_TRACE(name);
    const Client holder = disturbed({.lease = service_kind().short_lease, .close_timeout = 300ms});
    Contender other(steady(), "held");
    DistributedLock lock = holder.make_lock("held");
    const Lease lease = take(lock);
    const LossEvent loss(lease);
    std::atomic<bool> told = false;
    // Whoever looks is told, also where the engine thread has not been let run in time.
    Pending waiting(other.lock, {}, [&](Lease& /*granted*/) {
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
}

// Shows: crash-safety
TEST_P(NetworkTest, WaiterInABlackHole_DelaysNoOtherForLong) {
  Contender holder(steady(), "waited-for");
  Contender lost(disturbed({.lease = service_kind().short_lease, .close_timeout = 300ms}), "waited-for");
  Contender other(steady(), "waited-for");
  Lease lease = take(holder.lock);
  Pending before(lost.lock, {});
  await_waiter("waited-for");
  proxy.set(black_hole);
  Pending behind(other.lock, {});
  EXPECT_TRUE(lease.release());
  EXPECT_GT(behind.lease().token(), lease.token());
  EXPECT_FALSE(before.done());
  // It is not forgotten either.
  proxy.pass();
  EXPECT_TRUE(before.lease().release());
  await_no_residue("waited-for");
}

TEST_P(NetworkTest, SlowNetwork_LosesNoLock) {
  proxy.set({.delay = 50ms, .drip_bytes = 70, .drip_interval = 1ms});
  const auto log = std::make_shared<EventLog>();
  Contender slow(disturbed({.lease = 12s, .connect_timeout = 30s, .observer = log}), "held");
  Lease lease = take(slow.lock);
  await_renewal(lease);
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(lease.release());
  EXPECT_EQ(log->losses.count(), 0U);
}

TEST_P(NetworkTest, BrokenConnection_IsALossOrKeepsTheLock) {
  const auto log = std::make_shared<EventLog>();
  Contender ours(disturbed({.lease = 9s, .observer = log}), "held");
  Lease lease = take(ours.lock);
  for (const rig::Ending ending : {rig::Ending::close, rig::Ending::reset}) {
    const auto connected = log->connected.count();
    const auto reconnecting = log->reconnecting.count();
    cut(ending);
    log->reconnecting.wait("a cut is not told", reconnecting + 1);
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

// Shows: release-reports
// Hazard: an orphan of a cancelled acquire or failed release: removals are repeated until certain
TEST_P(NetworkTest, ReleaseWhileCutOff_IsDoneLater) {
  Contender party(disturbed(impatient()), "release");
  Contender other(steady(), "release");
  Lease lease = take(party.lock);
  cut();
  std::error_code error;
  EXPECT_FALSE(lease.release(error));
  if (!ends_with_connection()) {
    expect_unanswered(error);
    EXPECT_FALSE(other.lock.try_acquire().has_value());
  }
  heal();
  EXPECT_TRUE(take(other.lock).release());
  await_no_residue("release");
}

// Shows: release-reports
TEST_P(NetworkTest, LateReleaseWithALostAnswer_ReportsNoLoss) {
  Contender own(disturbed({.lease = service_kind().short_lease}), "release");
  Lease lease = take(own.lock);
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

INSTANTIATE_TEST_SUITE_P(, NetworkTest, ::testing::ValuesIn(tested_strategies()), Room::strategy_name);

// --- A service or a proxy that accepts connections and hangs up at the first request about locks ---

class HungUpTest : public Room {
 protected:
  ~HungUpTest() override { proxy.pass(); }

  // Ends all connections at each request about a lock.
  void hang_up() {
    proxy.before_request(service_kind().lock_request, [this] {
      proxy.drop(rig::Ending::close);
      hang_up();
    });
  }
  // So many further connections are made, and each of them is ended at its first request.
  void await_attempts(std::size_t count) {
    const std::size_t before = proxy.counters().accepted;
    ASSERT_TRUE(proxy.wait_until([&](const auto& counters) { return counters.accepted >= before + count; }));
  }
};

TEST_P(HungUpTest, WaiterWithoutAnAnswer_IsReportedOnce) {
  hang_up();
  const auto log = std::make_shared<EventLog>();
  ClientOptions options = impatient();
  options.observer = log;
  Contender ours(disturbed(options), "refused");
  Pending waiting(ours.lock, {});
  await_attempts(6);
  EXPECT_EQ(log->connected.count(), 0U);
  EXPECT_LE(log->reconnecting.count(), 2U) << "the break, and that nothing was answered";
  EXPECT_FALSE(waiting.done());
  proxy.pass();
  EXPECT_TRUE(waiting.lease().release());
  log->connected.wait("a grant is no answer");
  EXPECT_EQ(log->connected.count(), 1U);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(HungUpTest);
INSTANTIATE_TEST_SUITE_P(, HungUpTest, ::testing::ValuesIn(tested_strategies(!service_kind().lock_request.empty())),
                         Room::strategy_name);

}  // namespace

}  // namespace dlock::test
