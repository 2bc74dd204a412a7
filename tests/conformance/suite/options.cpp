// What contracts 8, 10 and 14 say of options: wrong ones are invalid_argument, before anything is sent.
#include <chrono>
#include <limits>

#include "suite/contract.hpp"

namespace dlock::conformance {

DLOCK_CONFORMANCE_TESTS(options)

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
  Lock& lock = lock_of(client());
  EXPECT_TRUE(take(lock, {.wait = std::chrono::hours::max()}).held());
  EXPECT_TRUE(take(lock, {.wait = Seconds(std::numeric_limits<double>::infinity())}).held());
  EXPECT_TRUE(take(lock, {.wait = Seconds(1e300)}).held());
  EXPECT_TRUE(take(lock, {.wait = forever}).held());
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

TEST_P(Contract, C10_LeasesAtTheBoundsAreAccepted) {
  step_time_if_possible();
  Lock& lock = lock_of(client());
  EXPECT_FALSE(Pending(lock, {.lease = caps().min_lease}).get().error);
  Pending longest(lock, {.lease = caps().max_lease});
  pass_until(longest.event(), "the shortest lease keeps the lock");
  EXPECT_FALSE(longest.get().error);
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
