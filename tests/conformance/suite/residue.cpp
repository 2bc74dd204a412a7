// Contract 6: an acquire that failed, timed out or was cancelled leaves nothing behind that delays others.
//
// Where time can be stepped it stands still after the failed acquire, so that whatever would only run out in time
// shows.
#include <deque>
#include <optional>

#include "suite/contract.hpp"

namespace dlock::conformance {

DLOCK_CONFORMANCE_TESTS(residue)

TEST_P(Contract, C06_AReleasedLockLeavesNothing) {
  step_time_if_possible();
  Lock& lock = lock_of(client());
  EXPECT_TRUE(take(lock).release());
  await_no_residue(name());
  EXPECT_TRUE(is_free(name()));
}

TEST_P(Contract, C06_ARefusedTryLeavesNothing) {
  step_time_if_possible();
  auto [lock, others] = two_locks();
  {
    const Lease lease = take(lock);
    EXPECT_FALSE(others.try_acquire().has_value());
  }
  await_no_residue(name());
  EXPECT_TRUE(take(lock).held());
}

TEST_P(Contract, C06_AWaiterThatTimedOutLeavesNothing) {
  step_time_if_possible();
  auto [lock, others] = two_locks();
  {
    const Lease lease = take(lock);
    Pending waiting(others, {.wait = this->lease() / 10});
    pass_until(waiting.event(), "a wait does not end at its deadline");
    EXPECT_EQ(waiting.get().error, errc::timed_out);
  }
  EXPECT_TRUE(take(lock).release());
  await_no_residue(name());
}

TEST_P(Contract, C06_AWaiterThatWasCancelledLeavesNothing) {
  step_time_if_possible();
  auto [lock, others] = two_locks();
  {
    const Lease lease = take(lock);
    Pending waiting(others, {});
    waiting.cancel();
    EXPECT_EQ(waiting.get().error, errc::cancelled);
  }
  EXPECT_TRUE(take(lock).release());
  await_no_residue(name());
}

TEST_P(Contract, C06_AWaiterBehindOneThatGaveUpIsServed) {
  Lock& lock = lock_of(client());
  Lock& quitter = lock_of(client());
  Lock& patient = lock_of(client());
  std::optional<Lease> lease = take(lock);
  Pending first(quitter, {});
  Pending second(patient, {});
  first.cancel();
  EXPECT_EQ(first.get().error, errc::cancelled);
  lease.reset();
  EXPECT_TRUE(second.lease().held());
}

TEST_P(Contract, C06_AWaiterOfAClosedClientLeavesNothing) {
  step_time_if_possible();
  Lock& lock = lock_of(client());
  std::optional<Lease> lease = take(lock);
  Client& gone = client();
  Lock& others = lock_of(gone);
  Pending waiting(others, {});
  close(gone);
  EXPECT_EQ(waiting.get().error, errc::closed);
  lease.reset();
  EXPECT_TRUE(take(lock).release());
  await_no_residue(name());
}

TEST_P(Contract, C06_ACancelThatMeetsTheGrantLeavesNothing) {
  auto [lock, others] = two_locks();
  for (int round = 0; round < 40; ++round) {
    std::optional<Lease> lease = take(lock);
    Pending waiting(others, {});
    Pending next(lock, {});  // the hand-over goes on either way
    Thread canceller([&] { waiting.cancel(); });
    lease.reset();
    {
      const Outcome outcome = waiting.get();
      ASSERT_TRUE(!outcome.error || outcome.error == errc::cancelled) << outcome.error.message();
      ASSERT_EQ(outcome.lease.held(), !outcome.error);
    }
    ASSERT_TRUE(next.lease().release());
  }
  EXPECT_TRUE(take(lock).release());
  await_no_residue(name());
}

TEST_P(Contract, C06_AThousandWaitersThatGiveUpLeaveNothing) {
  auto [lock, others] = two_locks();
  {
    const Lease lease = take(lock);
    std::deque<Pending> waiters;
    for (int i = 0; i < 1000; ++i) waiters.emplace_back(others, AcquireOptions{});
    for (Pending& each : waiters) each.cancel();
    for (Pending& each : waiters) ASSERT_EQ(each.get().error, errc::cancelled);
  }
  EXPECT_TRUE(take(lock).release());
  await_no_residue(name());
}

TEST_P(Contract, C06_AWaiterCancelledWhileUnreachableLeavesNothing) {
  DLOCK_NEEDS(cut);
  Lock& lock = lock_of(client());
  Lock& others = lock_of(client({}, Link::disturbed));
  std::optional<Lease> lease = take(lock);
  Pending waiting(others, {});
  // The waiter is known to have reached the service when a second one of the same client has.
  EXPECT_FALSE(others.try_acquire().has_value());
  fixture().cut();
  waiting.cancel();
  EXPECT_EQ(waiting.get().error, errc::cancelled);
  settle();
  fixture().heal();
  lease.reset();
  EXPECT_TRUE(take(lock).release());
  await_no_residue(name());
}

TEST_P(Contract, C06_AWaiterCancelledWhileTheServiceIsStalledLeavesNothing) {
  DLOCK_NEEDS(stall);
  Lock& lock = lock_of(client());
  Lock& others = lock_of(client({}, Link::disturbed));
  std::optional<Lease> lease = take(lock);
  fixture().stall();
  Pending waiting(others, {});
  waiting.cancel();
  EXPECT_EQ(waiting.get().error, errc::cancelled);
  settle();
  fixture().resume();
  lease.reset();
  EXPECT_TRUE(take(lock).release());
  await_no_residue(name());
}

TEST_P(Contract, C06_ATryThatWasNotAnsweredLeavesNothing) {
  DLOCK_NEEDS(stall);
  step_time_if_possible();
  Lock& lock = lock_of(client());
  Lock& others = lock_of(client(impatient(), Link::disturbed));
  fixture().stall();
  Pending trying(others, {.wait = std::chrono::seconds(0)});
  pass_until(trying.event(), "a try of a stalled service does not end");
  EXPECT_TRUE(trying.get().error);
  fixture().resume();
  Pending next(lock, {});
  pass_until(next.event(), "a try that was not answered blocks others");
  EXPECT_TRUE(next.lease().release());
  await_no_residue(name());
}

}  // namespace dlock::conformance
