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
    const Client client = disturbed({.lease = renews ? outlasting : patient().lease});
    const Client other = disturbed();
    DistributedLock lock = client.make_lock("held");
    DistributedLock others = other.make_lock("held");
    Lease lease = take(lock);
    const LossEvent loss(lease);
    end(how);
    if (ends_with_connection()) {
      loss.event().wait("the loss is not signalled");
      start();
      EXPECT_FALSE(lease.release());
      EXPECT_GT(take(lock).token(), lease.token());
    } else {
      EXPECT_TRUE(lease.held());
      start();
      EXPECT_EQ(steady().inspect("held").token, lease.token());
      await("the other client does not come back", [&] {
        std::error_code error;
        EXPECT_FALSE(others.try_acquire({}, error).has_value());
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
    const Client holder = disturbed();
    const Client other = disturbed();
    DistributedLock lock = holder.make_lock("waited-for");
    DistributedLock others = other.make_lock("waited-for");
    Lease lease = take(lock);
    Pending waiting(others, {});
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

TEST_P(RestartTest, Crash_IsALossOrKeepsTheLock) {
  expect_holder_told_or_kept(&Service::kill);
}

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
  const Client client = disturbed(impatient());
  DistributedLock lock = client.make_lock("patient");
  Pending waiting(lock, {});
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::unavailable);
  EXPECT_TRUE(mentions(client.diagnose(), Finding::Severity::error, ""));
  EXPECT_FALSE(waiting.done());
  start();
  EXPECT_TRUE(waiting.lease().held());
}

TEST_P(RestartTest, Restarts_AreFollowedByGreaterTokens) {
  const Client client = disturbed();
  DistributedLock lock = client.make_lock("tokens");
  FencingToken last;
  for (const End how : {End(&Service::kill), End(&Service::stop)}) {
    const FencingToken token = take(lock).token();
    EXPECT_GT(token, last);
    last = token;
    end(how);
    start();
  }
  EXPECT_GT(take(lock).token(), last);
}

// The client hears of nothing but silence, and of nothing at all while no server is there.
TEST_P(RestartTest, OutageLongerThanTheLease_IsALoss) {
  const Client client = disturbed({.lease = service_kind().short_lease});
  DistributedLock lock = client.make_lock("long");
  const Lease lease = take(lock);
  const LossEvent loss(lease);
  end(&Service::kill);
  loss.event().wait("the loss is not signalled");
  start();
  const Lease next = take(lock);
  EXPECT_TRUE(next.held());
  EXPECT_GT(next.token(), lease.token());
  EXPECT_FALSE(lease.held());
}

INSTANTIATE_TEST_SUITE_P(, RestartTest, ::testing::ValuesIn(tested_strategies()), Room::strategy_name);

}  // namespace

}  // namespace dlock::test
