// Contracts 6 and 9: an acquire that failed, timed out or was cancelled leaves nothing behind that delays others; busy
// is not an error, a failure is not busy, and an unknown outcome is resolved.
//
// And contracts 1, 3 and 6 for several locks at once: a MultiLock holds all or none, and knows when one is lost.
//
// Where time can be stepped it stands still after the failed acquire, so that whatever would only run out in time
// shows.
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

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

// Shows: deadlines
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

// Shows: crash-safety
TEST_P(Contract, C06_AWaiterThatWasCancelledOrClosedLeavesNothing) {
  step_time_if_possible();
  for (const bool closed : {false, true}) {
    SCOPED_TRACE(closed ? "closed" : "cancelled");
    Lock& lock = lock_of(client());
    Client& quitter = client();
    Lease lease = take(lock);
    Pending waiting(lock_of(quitter), {});
    closed ? close(quitter) : waiting.cancel();
    EXPECT_EQ(waiting.get().error, closed ? errc::closed : errc::cancelled);
    expect_untouched(lease);
    expect_nothing_left(lock);
  }
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

TEST_P(ClientContract, C09_BusyIsCountedAndATimeOutWhereAnAcquireMustNotWait) {
  Lock& lock = lock_of(client());
  Client& counting = client();
  Lock& others = lock_of(counting);
  std::error_code error = make_error_code(errc::protocol);
  std::optional<Lease> lease = lock.try_acquire({}, error);
  EXPECT_TRUE(lease.has_value());
  EXPECT_FALSE(error) << "a grant clears it";
  (void)others.try_acquire();
  EXPECT_EQ(counting.stats().busy, 1U);
  EXPECT_EQ(counting.stats().failed, 0U);
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

// Shows: release-reports
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

// Hazard: a transaction's answer is lost: the same request again, to any member
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

// Shows: several-locks
TEST_P(Contract, C06_SeveralLocksOfWhichOneIsHeldLeaveNothing) {
  DLOCK_APPLIES_IF(kind().kind == LockKind::lock, "it is said of plain locks");
  const std::vector<std::string> names{name("c"), name("a"), name("b")};
  MultiLock all = client().make_multi_lock(names);
  Lock& others = lock_of(client(), name("c"));
  {
    const Lease last = take(others);
    EXPECT_FALSE(all.try_acquire().has_value());
    std::error_code error;
    EXPECT_FALSE(all.acquire({.wait = std::chrono::milliseconds(1)}, error).has_value());
    EXPECT_EQ(error, errc::timed_out);
    EXPECT_TRUE(last.held());
  }
  for (const std::string& each : names) {
    await_no_residue(each);
    EXPECT_TRUE(is_free(each));
  }
  MultiLease leases = all.acquire({.wait = guard()});
  EXPECT_TRUE(leases.held());
  for (const std::string& each : names) EXPECT_FALSE(is_free(each));
  EXPECT_TRUE(leases.release());
  for (const std::string& each : names) await_no_residue(each);
}

// Shows: several-locks
TEST_P(Contract, C01_SeveralLocksInAnyOrderExcludeEachOtherAndEndInNoCircle) {
  DLOCK_APPLIES_IF(kind().kind == LockKind::lock, "it is said of plain locks");
  constexpr std::size_t programs = 4;
  constexpr int times = 10;
  Client& one = client();
  Client& two = client();
  Room room;
  run_threads(programs, [&](std::size_t i) {
    MultiLock both =
        i % 2 == 0 ? one.make_multi_lock({name("a"), name("b")}) : two.make_multi_lock({name("b"), name("a")});
    for (int round = 0; round < times; ++round) {
      const MultiLease leases = both.acquire({.wait = guard()});
      room.visit();
    }
  });
  EXPECT_EQ(room.counter(), static_cast<int>(programs) * times);
}

// Shows: several-locks
TEST_P(Contract, C03_TheLossOfOneOfSeveralLocksIsSignalledAndTheOthersAreGivenBack) {
  DLOCK_APPLIES_IF(kind().kind == LockKind::lock, "it is said of plain locks");
  DLOCK_NEEDS(kill_hold);
  step_time_if_possible();
  MultiLock both = client().make_multi_lock({name("a"), name("b")});
  struct Ended {
    MultiLease leases;
    Event event;
  };
  const auto ended = std::make_shared<Ended>();
  both.async_acquire(renewed(), [ended](std::error_code error, MultiLease got) {
    EXPECT_FALSE(error);
    ended->leases = std::move(got);
    ended->event.set();
  });
  ended->event.wait("two free locks are not acquired");
  MultiLease leases = std::move(ended->leases);
  ASSERT_TRUE(leases.held());
  const auto lost = std::make_shared<Event>();
  const std::stop_callback on_loss(leases.lost(), [lost] { lost->set(); });
  fixture().kill_hold(LockKind::lock, name("a"));
  pass_until(*lost, "the loss of one of several locks is not signalled");
  EXPECT_FALSE(leases.held());
  EXPECT_FALSE(leases.release());
  await_no_residue(name("b"));
  EXPECT_TRUE(is_free(name("b")));
}

}  // namespace dlock::conformance
