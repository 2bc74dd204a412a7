// Contracts 6 and 9: an acquire that failed, timed out or was cancelled leaves nothing behind that delays others; busy
// is not an error, a failure is not busy, and an unknown outcome is resolved.
//
// Where time can be stepped it stands still after the failed acquire, so that whatever would only run out in time
// shows.
#include <deque>
#include <optional>

#include "suite/contract.hpp"

namespace dlock::conformance {

DLOCK_CONFORMANCE_TESTS(residue)

namespace {

using namespace std::chrono_literals;

}  // namespace

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
  expect_nothing_left(lock);
}

TEST_P(Contract, C06_AWaiterThatWasCancelledOrClosedLeavesNothing) {
  step_time_if_possible();
  for (const bool closed : {false, true}) {
    SCOPED_TRACE(closed ? "closed" : "cancelled");
    Lock& lock = lock_of(client());
    Client& quitter = client();
    std::optional<Lease> lease = take(lock);
    Pending waiting(lock_of(quitter), {});
    closed ? close(quitter) : waiting.cancel();
    EXPECT_EQ(waiting.get().error, closed ? errc::closed : errc::cancelled);
    lease.reset();
    expect_nothing_left(lock);
  }
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
  expect_nothing_left(lock);
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
  expect_nothing_left(lock);
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
  expect_nothing_left(lock);
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
  expect_nothing_left(lock);
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

TEST_P(Contract, C09_BusyIsNotAnError) {
  auto [lock, others] = two_locks();
  Lease lease = take(lock);
  std::error_code error = make_error_code(errc::protocol);
  EXPECT_FALSE(others.try_acquire({}, error).has_value());
  EXPECT_FALSE(error) << error.message();
  EXPECT_FALSE(others.try_acquire_for(1ms, error).has_value());
  EXPECT_FALSE(error) << error.message();
  EXPECT_NO_THROW((void)others.try_acquire());
}

TEST_P(ClientContract, C09_AnAcquireThatMustNotWaitTimesOutWhenBusy) {
  auto [lock, others] = two_locks();
  const Lease lease = take(lock);
  std::error_code error;
  const Lease none = others.acquire({.wait = 0ns}, error);
  EXPECT_EQ(error, errc::timed_out);
  EXPECT_FALSE(none.has_value());
  try {
    (void)others.acquire({.wait = 0ns});
    ADD_FAILURE() << "an acquire of a busy lock must throw";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), errc::timed_out);
  }
}

TEST_P(ClientContract, C09_AGrantClearsTheErrorCode) {
  Lock& lock = lock_of(client());
  std::error_code error = make_error_code(errc::protocol);
  const auto lease = lock.try_acquire({}, error);
  EXPECT_TRUE(lease.has_value());
  EXPECT_FALSE(error);
}

TEST_P(Contract, C09_AServiceThatIsCutOffIsAnErrorNotBusy) {
  DLOCK_NEEDS(cut);
  Lock& lock = lock_of(client(impatient(), Link::disturbed));
  fixture().cut();
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  EXPECT_TRUE(error == errc::unavailable || error == errc::ambiguous) << error.message();
  EXPECT_THROW((void)lock.try_acquire(), Error);
  EXPECT_FALSE(lock.try_acquire_for(1ms, error).has_value());
  EXPECT_TRUE(error == errc::unavailable || error == errc::ambiguous) << error.message();
  fixture().heal();
}

TEST_P(Contract, C09_AReleaseThatCannotBeConfirmedSaysSo) {
  DLOCK_NEEDS(cut);
  Lock& lock = lock_of(client(impatient(), Link::disturbed));
  Lease lease = take(lock, {.lease = this->lease()});
  fixture().cut();
  if (caps().lease_kind == LeaseKind::session) {
    // Where a lock ends with its connection, it may be known already that it is lost.
    try {
      EXPECT_FALSE(lease.release());
    } catch (const Error&) {
    }
  } else {
    EXPECT_THROW((void)lease.release(), Error);
  }
  EXPECT_FALSE(lease.held());
  fixture().heal();
  Lock& next = lock_of(client());
  EXPECT_TRUE(take(next).held());
}

TEST_P(Contract, C09_ATryWhoseAnswerIsLostIsNeverHeldOnAGuess) {
  DLOCK_NEEDS(lose_answer);
  step_time_if_possible();
  Lock& lock = lock_of(client({}, Link::disturbed));
  Lock& others = lock_of(client());
  fixture().lose_next_answer();
  Pending trying(lock, {.wait = 0ns});
  pass_until(trying.event(), "a try whose answer is lost does not end");
  Outcome outcome = trying.get();
  if (!outcome.error) {
    EXPECT_TRUE(outcome.lease.held());
    EXPECT_FALSE(is_free(name()));
    EXPECT_TRUE(outcome.lease.release());
  }
  Pending next(others, {});
  pass_until(next.event(), "a grant whose answer was lost is not cleaned up");
  EXPECT_TRUE(next.lease().release());
  await_no_residue(name());
}

TEST_P(Contract, C09_AWaitWhoseAnswerIsLostEndsWithTheLock) {
  DLOCK_NEEDS(lose_answer);
  step_time_if_possible();
  Lock& lock = lock_of(client({}, Link::disturbed));
  fixture().lose_next_answer();
  Pending waiting(lock, {});
  pass_until(waiting.event(), "an acquire whose answer is lost waits for itself");
  Lease lease = waiting.lease();
  EXPECT_TRUE(lease.held());
  EXPECT_FALSE(is_free(name()));
  EXPECT_TRUE(lease.release());
  await_no_residue(name());
}

TEST_P(ClientContract, C09_BusyLocksAreCountedAsBusyNotAsFailures) {
  Lock& lock = lock_of(client());
  Client& counting = client();
  Lock& others = lock_of(counting);
  const Lease lease = take(lock);
  (void)others.try_acquire();
  EXPECT_EQ(counting.stats().busy, 1U);
  EXPECT_EQ(counting.stats().failed, 0U);
}

}  // namespace dlock::conformance
