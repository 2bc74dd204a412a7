// Contract 8: deadlines hold, whatever the service does. And what contracts 8, 9, 10 and 14 say of options and
// questions: wrong ones are refused, before anything is sent.
#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <string>

#include "suite/contract.hpp"

namespace dlock::conformance {

DLOCK_CONFORMANCE_TESTS(deadlines)

namespace {

using namespace std::chrono_literals;

using Seconds = std::chrono::duration<double>;

// The same complaint in every form of acquire.
void expect_refused(Lock& lock, const AcquireOptions& options) {
  std::error_code error;
  (void)lock.acquire(options, error);
  EXPECT_EQ(error, errc::invalid_argument);
  EXPECT_THROW((void)lock.acquire(options), Error);
  EXPECT_EQ(Pending(lock, options).get().error, errc::invalid_argument);
}

}  // namespace

TEST_P(Contract, C08_AWaitEndsAtItsDeadline) {
  step_time_if_possible();
  auto [lock, others] = two_locks();
  const Lease lease = take(lock);
  const TimePoint start = now();
  const auto wait = this->lease() / 3;
  Pending waiting(others, {.wait = wait});
  pass_until(waiting.event(), "a wait does not end at its deadline");
  EXPECT_EQ(waiting.get().error, errc::timed_out);
  EXPECT_GE(now() - start, wait);
  expect_within(wait, start, "a wait");
}

TEST_P(Contract, C08_AWaitEndsExactlyAtItsDeadline) {
  DLOCK_NEEDS(step_clock);
  step_time_if_possible();
  auto [lock, others] = two_locks();
  const Lease lease = take(lock);
  Pending waiting(others, {.wait = 5s});
  settle();
  step(5s - 1ns);
  EXPECT_FALSE(waiting.done());
  step(1ns);
  EXPECT_EQ(waiting.get().error, errc::timed_out);
}

TEST_P(Contract, C08_ACancelEndsAWait) {
  step_time_if_possible();
  auto [lock, others] = two_locks();
  const Lease lease = take(lock);
  Pending waiting(others, {});
  settle();
  EXPECT_FALSE(waiting.done());
  waiting.cancel();
  EXPECT_EQ(waiting.get().error, errc::cancelled);
}

TEST_P(ClientContract, C08_ACancelEndsAWaitingThread) {
  auto [lock, others] = two_locks();
  const Lease lease = take(lock);
  std::error_code error;
  {
    const Thread waiting(
        [&](const std::stop_token& stop) { (void)others.acquire({.wait = guard(), .cancel = stop}, error); });
  }
  EXPECT_EQ(error, errc::cancelled);
}

TEST_P(ClientContract, C08_WhatIsCancelledBeforehandIsNotTried) {
  Lock& lock = lock_of(client());
  std::stop_source cancelled;
  cancelled.request_stop();
  std::error_code error;
  const Lease lease = lock.acquire({.cancel = cancelled.get_token()}, error);
  EXPECT_EQ(error, errc::cancelled);
  EXPECT_FALSE(lease.has_value());
  EXPECT_TRUE(is_free(name()));
}

TEST_P(ClientContract, C08_ACancelAfterTheGrantHasNoEffect) {
  Lock& lock = lock_of(client());
  Pending granted(lock, {});
  Lease lease = granted.lease();
  granted.cancel();
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(lease.release());
}

TEST_P(Contract, C08_ATryOfAStalledServiceEnds) {
  DLOCK_NEEDS(stall);
  Client& trying = client(impatient(), Link::disturbed);
  Lock& lock = lock_of(trying);
  (void)take(lock_of(trying, name("first")));  // it is connected
  fixture().stall();
  const TimePoint start = now();
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  EXPECT_TRUE(error == errc::unavailable || error == errc::ambiguous) << error.message();
  expect_within(impatience, start, "a try of a stalled service");
  fixture().resume();
}

TEST_P(Contract, C08_AWaitForAStalledServiceEndsAtItsDeadline) {
  DLOCK_NEEDS(stall);
  expect_wait_to_end([this] { fixture().stall(); });
  fixture().resume();
}

TEST_P(Contract, C08_AWaitForAServiceCutOffEndsAtItsDeadline) {
  DLOCK_NEEDS(cut);
  expect_wait_to_end([this] { fixture().cut(); });
  fixture().heal();
}

TEST_P(Contract, C08_AWaiterThatIsCutOffEndsAtItsDeadline) {
  DLOCK_NEEDS(cut);
  step_time_if_possible();
  Lock& holding = lock_of(client());
  const Lease lease = take(holding, renewed());
  Lock& lock = lock_of(client({}, Link::disturbed));
  const TimePoint start = now();
  Pending waiting(lock, {.wait = several_attempts});
  settle();
  fixture().cut();
  pass_until(waiting.event(), "a waiter that is cut off does not end at its deadline");
  EXPECT_TRUE(waiting.get().error);
  // It may have been cut off before the first answer, which it waits for.
  const std::chrono::nanoseconds answer = ClientOptions().response_timeout.value();
  expect_within(std::max<std::chrono::nanoseconds>(several_attempts, answer), start, "a waiter that is cut off");
  fixture().heal();
}

TEST_P(Contract, C08_AReleaseToAStalledServiceEnds) {
  DLOCK_NEEDS(stall);
  Lease lease = take(lock_of(client(impatient(), Link::disturbed)));
  expect_bounded_while_stalled("a release to a stalled service", [&] {
    std::error_code error;
    EXPECT_FALSE(lease.release(error));
    EXPECT_TRUE(error == errc::unavailable || error == errc::ambiguous) << error.message();
    EXPECT_FALSE(lease.held());
  });
}

TEST_P(Contract, C08_AQuestionToAStalledServiceEnds) {
  DLOCK_NEEDS(stall);
  DLOCK_APPLIES_IF(caps().can_inspect, "the backend does not answer questions");
  Client& asking = client(impatient(), Link::disturbed);
  (void)take(lock_of(asking));  // it is connected
  fixture().stall();
  const TimePoint start = now();
  EXPECT_THROW((void)asking.inspect(name(), kind().kind), Error);
  expect_within(impatience, start, "a question to a stalled service");
  EXPECT_THROW(asking.ping(impatience), Error);
  fixture().resume();
  EXPECT_NO_THROW(asking.ping(guard()));
}

// Shows: waiters-woken
TEST_P(Contract, C08_AnUnlimitedWaitSurvivesACutAndAHandOverThatItMissed) {
  DLOCK_NEEDS(cut);
  step_time_if_possible();
  for (const bool missed : {false, true}) {
    SCOPED_TRACE(missed ? "the hand-over was missed" : "the hand-over came later");
    const std::string its_name = name(missed ? "missed" : "later");
    std::optional<Lease> lease = take(lock_of(client(), its_name), renewed());
    Pending waiting(lock_of(client({}, Link::disturbed), its_name), {});
    settle();
    fixture().cut();
    if (missed) lease.reset();
    if (stepping()) step(this->lease() / 10);
    fixture().heal();
    lease.reset();
    pass_until(waiting.event(), "a waiter that was cut off never gets the lock");
    EXPECT_TRUE(waiting.lease().held());
  }
}

TEST_P(ClientContract, C08_WaitsThatMakeNoSenseAreRefused) {
  Lock& lock = lock_of(client());
  expect_refused(lock, {.wait = -1ns});
  expect_refused(lock, {.wait = std::chrono::hours::min()});
  expect_refused(lock, {.wait = Seconds(std::numeric_limits<double>::quiet_NaN())});
  expect_refused(lock, {.wait = Seconds(-std::numeric_limits<double>::infinity())});
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire_for(-1ns, error).has_value());
  EXPECT_EQ(error, errc::invalid_argument);
  EXPECT_TRUE(is_free(name()));
}

TEST_P(ClientContract, C08_WaitsBeyondAllBoundsAreUnlimited) {
  auto [lock, others] = two_locks();
  const Duration infinity = Seconds(std::numeric_limits<double>::infinity());
  for (const Duration wait : {Duration(std::chrono::hours::max()), infinity, Duration(Seconds(1e300)), forever}) {
    std::optional<Lease> lease = take(lock);
    Pending waiting(others, {.wait = wait});
    EXPECT_FALSE(is_free(name()));
    EXPECT_FALSE(waiting.done());
    lease.reset();
    EXPECT_TRUE(waiting.lease().held());
  }
}

TEST_P(ClientContract, C10_LeasesOutsideTheBoundsAreRefused) {
  Lock& lock = lock_of(client());
  expect_refused(lock, {.lease = 0ns});
  expect_refused(lock, {.lease = -1s});
  expect_refused(lock, {.lease = Seconds(std::numeric_limits<double>::quiet_NaN())});
  if (caps().min_lease > 0ns) expect_refused(lock, {.lease = caps().min_lease - 1ns});
  if (caps().max_lease < std::chrono::nanoseconds::max()) expect_refused(lock, {.lease = caps().max_lease + 1ns});
  EXPECT_TRUE(is_free(name()));
}

TEST_P(Contract, C10_LeasesAtTheBoundsAndOfFixedLengthAreAccepted) {
  step_time_if_possible();
  Lock& lock = lock_of(client());
  EXPECT_FALSE(Pending(lock, {.lease = caps().min_lease}).get().error);
  Pending longest(lock, {.lease = caps().max_lease});
  pass_until(longest.event(), "the shortest lease keeps the lock");
  EXPECT_FALSE(longest.get().error);
  const auto length = std::clamp<std::chrono::nanoseconds>(30s, caps().min_lease, caps().max_lease);
  Lease fixed_lease = take(lock, {.lease = length, .renew = false});
  EXPECT_TRUE(fixed_lease.held());
  EXPECT_TRUE(fixed_lease.release());
  EXPECT_TRUE(is_free(name()));
}

TEST_P(Contract, C09_WhatTheBackendCannotDoIsUnsupported) {
  Client& asked = client();
  const auto expect_unsupported = [](bool supported, const auto& call) {
    if (supported) {
      EXPECT_NO_THROW(call());
      return;
    }
    try {
      call();
      ADD_FAILURE() << "the backend does what it says it cannot";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), errc::unsupported);
    }
  };
  expect_unsupported(caps().can_inspect, [&] { (void)asked.inspect(name(), kind().kind); });
  expect_unsupported(caps().can_list, [&] { (void)asked.list(kind().kind); });
  expect_unsupported(caps().can_break, [&] { (void)asked.break_lock(name(), kind().kind); });
  expect_unsupported(caps().can_forget, [&] { (void)asked.forget(name(), kind().kind); });
  expect_unsupported(caps().can_forget_idle, [&] { (void)asked.forget_idle(forever, kind().kind); });
  EXPECT_NO_THROW((void)asked.diagnose());
}

TEST_P(ClientContract, C06_APingSucceedsAndLeavesNothing) {
  DLOCK_APPLIES_IF(caps().can_inspect, "the backend does not answer questions");
  const Client& asking = client();
  asking.ping(guard(), name());
  if (caps().can_list) {
    for (const LockInfo& known : asking.list()) EXPECT_NE(known.name, name());
  }
  await_no_residue(name());
  EXPECT_TRUE(is_free(name()));
  const Lease held = lock_of(client()).acquire({.wait = guard()});
  asking.ping(guard(), name());
  EXPECT_TRUE(held.held());
}

TEST_P(Contract, C09_BreakingALockSaysWhetherItWasHeld) {
  DLOCK_APPLIES_IF(caps().can_break, "the backend cannot break locks");
  Client& breaker = client();
  EXPECT_FALSE(breaker.break_lock(name(), kind().kind));
  Lock& lock = lock_of(client());
  const Lease lease = take(lock);
  EXPECT_TRUE(breaker.break_lock(name(), kind().kind));
  EXPECT_TRUE(is_free(name()));
}

// Shows: forgetting
TEST_P(Contract, C05_ForgettingANameNeverFreesItsLock) {
  DLOCK_APPLIES_IF(caps().can_forget && caps().can_inspect, "the backend cannot forget names, or not say why");
  Client& other = client();
  EXPECT_FALSE(other.forget(name(), kind().kind));
  Lock& lock = lock_of(client());
  Lease lease = take(lock);
  try {
    (void)other.forget(name(), kind().kind);
    ADD_FAILURE() << "a lock that is held was forgotten";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), errc::timed_out) << e.what();
    EXPECT_NE(e.detail().find("held by"), std::string::npos) << e.what();
  }
  EXPECT_TRUE(lease.held());
  EXPECT_FALSE(is_free(name()));
  const FencingToken token = lease.token();
  EXPECT_TRUE(lease.release());
  try {
    (void)other.forget(name(), kind().kind);  // what remembers the last token keeps it for a while
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), errc::timed_out) << e.what();
  }
  EXPECT_GT(take(lock).token(), token);
}

TEST_P(Contract, C09_CapabilitiesAreConstant) {
  const Capabilities first = client().capabilities();
  const Capabilities second = client().capabilities();
  EXPECT_EQ(first.backend, second.backend);
  EXPECT_EQ(first.strategy, second.strategy);
  EXPECT_FALSE(first.backend.empty());
  EXPECT_GT(first.min_lease, 0ns);
  EXPECT_LE(first.min_lease, first.max_lease);
}

}  // namespace dlock::conformance
