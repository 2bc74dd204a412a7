// Contract 9: busy is not an error, a failure is not busy, and an unknown outcome is resolved.
#include <optional>

#include "suite/contract.hpp"

namespace dlock::conformance {

DLOCK_CONFORMANCE_TESTS(outcomes)

namespace {

using namespace std::chrono_literals;

}  // namespace

TEST_P(Contract, C09_BusyIsNotAnError) {
  auto [lock, others] = two_locks();
  const Lease lease = take(lock);
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
