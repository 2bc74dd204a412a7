// A server that is killed, or shut down in good order, and comes back with its data.
#include "network/room.hpp"

namespace dlock::test {

namespace {

class RestartTest : public Room {
 protected:
  using End = void (Service::*)();
  // A lease that is renewed soon, and outlasts the start of a server on a busy machine.
  static constexpr Duration outlasting = 18s;

  // New connections are refused until it serves.
  void end(End how) {
    proxy.refuse(true);
    (service.*how)();
  }
  void start() {
    service.start();
    heal();
  }

  void expect_holder_told_or_kept(End how) {
    const bool renews = steady().capabilities().lease_kind == LeaseKind::per_lock;
    Contender ours(disturbed({.lease = renews ? outlasting : patient().lease}), "held");
    Contender other(disturbed(), "held");
    Lease lease = take(ours.lock);
    const LossEvent loss(lease);
    end(how);
    if (ends_with_connection()) {
      loss.event().wait("the loss is not signalled");
      start();
      EXPECT_FALSE(lease.release());
      EXPECT_GT(take(ours.lock).token(), lease.token());
    } else {
      EXPECT_TRUE(lease.held());
      start();
      EXPECT_EQ(steady().inspect("held").token, lease.token());
      await("the other client does not come back", [&] {
        std::error_code error;
        EXPECT_FALSE(other.lock.try_acquire({}, error).has_value());
        return !error;
      });
      if (renews) await_renewal(lease);
      EXPECT_TRUE(lease.held());
      EXPECT_FALSE(loss.happened());
      EXPECT_TRUE(lease.release());
    }
    await_no_residue("held");
  }

  void expect_waiter_served(End how) {
    Contender holder(disturbed(), "waited-for");
    Contender other(disturbed(), "waited-for");
    Lease lease = take(holder.lock);
    Pending waiting(other.lock, {});
    await_waiter("waited-for");
    end(how);
    start();
    if (!ends_with_connection()) {
      EXPECT_FALSE(waiting.done());
      std::error_code error;
      (void)lease.release(error);  // may be too early for its connection; the release is repeated then
    }
    Lease next = waiting.lease();
    EXPECT_FALSE(lease.held());
    EXPECT_GT(next.token(), lease.token());
    EXPECT_TRUE(next.release());
    await_no_residue("waited-for");
  }
};

// Shows: one-holder, hole postgresql-connection-ends
TEST_P(RestartTest, Crash_IsALossOrKeepsTheLock) {
  expect_holder_told_or_kept(&Service::kill);
}

// Shows: hole postgresql-connection-ends
TEST_P(RestartTest, Shutdown_IsALossOrKeepsTheLock) {
  expect_holder_told_or_kept(&Service::stop);
}

TEST_P(RestartTest, Crash_IsFollowedByTheWaitersGrant) {
  expect_waiter_served(&Service::kill);
}

TEST_P(RestartTest, Shutdown_IsFollowedByTheWaitersGrant) {
  expect_waiter_served(&Service::stop);
}

TEST_P(RestartTest, ServerThatIsDown_IsOutlastedByAWait) {
  end(&Service::stop);
  Contender ours(disturbed(impatient()), "patient");
  Pending waiting(ours.lock, {});
  std::error_code error;
  EXPECT_FALSE(ours.lock.try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::unavailable);
  EXPECT_TRUE(mentions(ours.client.diagnose(), Finding::Severity::error, ""));
  EXPECT_FALSE(waiting.done());
  start();
  EXPECT_TRUE(waiting.lease().held());
}

// The client hears of nothing but silence, and of nothing at all while no server is there.
// Shows: loss-signal
TEST_P(RestartTest, OutageLongerThanTheLease_IsALoss) {
  Contender ours(disturbed({.lease = service_kind().short_lease}), "long");
  const Lease lease = take(ours.lock);
  const LossEvent loss(lease);
  end(&Service::kill);
  loss.event().wait("the loss is not signalled");
  start();
  const Lease next = take(ours.lock);
  EXPECT_TRUE(next.held());
  EXPECT_GT(next.token(), lease.token());
  EXPECT_FALSE(lease.held());
}

INSTANTIATE_TEST_SUITE_P(, RestartTest, ::testing::ValuesIn(tested_strategies()), Room::strategy_name);

}  // namespace

}  // namespace dlock::test
