// Contract 8: deadlines hold, whatever the service does.
#include <algorithm>
#include <chrono>
#include <optional>

#include "suite/contract.hpp"

namespace dlock::conformance {

DLOCK_CONFORMANCE_TESTS(deadlines)

namespace {

using namespace std::chrono_literals;

// Long enough for several attempts of an impatient client.
constexpr auto several_attempts = 500ms;

}  // namespace

TEST_P(Contract, C08_ATryOfABusyLockReturns) {
  auto [lock, others] = two_locks();
  const Lease lease = take(lock);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(others.try_acquire().has_value());
}

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

TEST_P(ClientContract, C08_AWaitThatOverflowsWaits) {
  auto [lock, others] = two_locks();
  std::optional<Lease> lease = take(lock);
  Pending waiting(others, {.wait = std::chrono::hours::max()});
  EXPECT_FALSE(is_free(name()));
  EXPECT_FALSE(waiting.done());
  lease.reset();
  EXPECT_TRUE(waiting.lease().held());
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
  step_time_if_possible();
  Lock& lock = lock_of(client(impatient(), Link::disturbed));
  fixture().stall();
  const TimePoint start = now();
  Pending waiting(lock, {.wait = several_attempts});
  pass_until(waiting.event(), "a wait for a stalled service does not end");
  const auto error = waiting.get().error;
  EXPECT_TRUE(error == errc::unavailable || error == errc::ambiguous) << error.message();
  EXPECT_GE(now() - start, several_attempts);
  expect_within(several_attempts + impatience, start, "a wait for a stalled service");
  fixture().resume();
}

TEST_P(Contract, C08_AWaitForAServiceCutOffEndsAtItsDeadline) {
  DLOCK_NEEDS(cut);
  step_time_if_possible();
  Lock& lock = lock_of(client(impatient(), Link::disturbed));
  fixture().cut();
  const TimePoint start = now();
  Pending waiting(lock, {.wait = several_attempts});
  pass_until(waiting.event(), "a wait for a service that is cut off does not end");
  const auto error = waiting.get().error;
  EXPECT_TRUE(error == errc::unavailable || error == errc::ambiguous) << error.message();
  EXPECT_GE(now() - start, several_attempts);
  expect_within(several_attempts + impatience, start, "a wait for a service that is cut off");
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
  Lock& lock = lock_of(client(impatient(), Link::disturbed));
  Lease lease = take(lock);
  fixture().stall();
  const TimePoint start = now();
  std::error_code error;
  EXPECT_FALSE(lease.release(error));
  EXPECT_TRUE(error == errc::unavailable || error == errc::ambiguous) << error.message();
  EXPECT_FALSE(lease.held());
  expect_within(impatience, start, "a release to a stalled service");
  fixture().resume();
  Lock& next = lock_of(client());
  EXPECT_TRUE(take(next).held()) << "the release is to be repeated until it has arrived";
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

TEST_P(Contract, C08_AnUnlimitedWaitSurvivesABrokenConnection) {
  DLOCK_NEEDS(cut);
  step_time_if_possible();
  Lock& holding = lock_of(client());
  std::optional<Lease> lease = take(holding, renewed());
  Lock& lock = lock_of(client({}, Link::disturbed));
  Pending waiting(lock, {});
  settle();
  fixture().cut();
  if (stepping()) step(this->lease() / 10);
  fixture().heal();
  lease.reset();
  pass_until(waiting.event(), "a wait does not survive a broken connection");
  EXPECT_TRUE(waiting.lease().held());
}

TEST_P(Contract, C08_AnUnlimitedWaitSurvivesAHandOverThatItMissed) {
  DLOCK_NEEDS(cut);
  step_time_if_possible();
  Lock& holding = lock_of(client());
  std::optional<Lease> lease = take(holding, renewed());
  Lock& lock = lock_of(client({}, Link::disturbed));
  Pending waiting(lock, {});
  settle();
  fixture().cut();
  lease.reset();
  if (stepping()) step(this->lease() / 10);
  fixture().heal();
  pass_until(waiting.event(), "a waiter that was cut off while the lock was released never gets it");
  EXPECT_TRUE(waiting.lease().held());
}

}  // namespace dlock::conformance
