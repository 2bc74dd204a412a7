// Contract 7: the death of a holder frees the lock within its lease; the death of a waiter delays nobody by more.
#include <signal.h>

#include <optional>

#include "suite/contract.hpp"

namespace dlock::conformance {

DLOCK_CONFORMANCE_TESTS(crash)

TEST_P(Contract, C07_AKilledHolderFreesTheLock) {
  DLOCK_NEEDS(processes);
  Worker holder = worker();
  (void)holder.acquire(name(), lease());
  Lock& lock = lock_of(client());
  ASSERT_FALSE(lock.try_acquire().has_value());
  Pending waiting(lock, {});
  const auto kept = kept_for();
  const TimePoint killed = now();
  holder.kill();
  EXPECT_TRUE(waiting.lease().held());
  expect_within(kept, killed, "a lock whose holder was killed");
}

TEST_P(Contract, C07_AKilledHolderFreesTheLockForWhoComesLater) {
  DLOCK_NEEDS(processes);
  Worker holder = worker();
  (void)holder.acquire(name(), lease());
  const auto kept = kept_for();
  Lock& lock = lock_of(client());
  const TimePoint killed = now();
  holder.kill();
  EXPECT_TRUE(take(lock).held());
  expect_within(kept, killed, "a lock whose holder was killed");
}

TEST_P(Contract, C07_AKilledWaiterDelaysNobody) {
  DLOCK_NEEDS(processes);
  Lock& lock = lock_of(client());
  Lock& others = lock_of(client());
  std::optional<Lease> lease = take(lock);
  Worker killed = worker();
  (void)killed.acquire(name("ready"), this->lease());  // it is up and connected
  killed.send("acquire " + name() + " " +
              std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(this->lease()).count()));
  if (caps().counts_waiters) await_waiters(name(), 1);
  Pending behind(others, {});
  const auto kept = kept_for();
  const TimePoint start = now();
  killed.kill();
  lease.reset();
  EXPECT_TRUE(behind.lease().held());
  expect_within(kept, start, "a lock that a killed waiter waited for");
}

TEST_P(Contract, C07_AKilledSessionFreesItsLocksForWaiters) {
  DLOCK_NEEDS(kill_session);
  step_time_if_possible();
  Client& doomed = client({.lease = lease(), .close_timeout = std::chrono::milliseconds(100)});
  Lock& lock = lock_of(doomed);
  const Lease lease = take(lock);
  Lock& others = lock_of(client());
  Pending waiting(others, {});
  const auto kept = kept_for(doomed, this->lease());
  fixture().kill_session(doomed);
  const TimePoint killed = now();
  pass_until(waiting.event(), "a killed session keeps its lock");
  EXPECT_TRUE(waiting.lease().held());
  expect_within(kept, killed, "a lock of a killed session");
}

TEST_P(Contract, C07_AKilledSessionThatWaitedDelaysNobody) {
  DLOCK_NEEDS(kill_session);
  step_time_if_possible();
  Lock& lock = lock_of(client());
  std::optional<Lease> lease = take(lock, renewed());
  Client& doomed = client({.lease = this->lease(), .close_timeout = std::chrono::milliseconds(100)});
  Lock& dying_lock = lock_of(doomed);
  Pending dying(dying_lock, {});
  Lock& others = lock_of(client());
  Pending behind(others, {});
  const auto kept = kept_for(doomed, this->lease());
  fixture().kill_session(doomed);
  const TimePoint killed = now();
  lease.reset();
  pass_until(behind.event(), "a waiter of a killed session delays others");
  EXPECT_TRUE(behind.lease().held());
  expect_within(kept, killed, "a lock that a killed session waited for");
}

TEST_P(Contract, C07_AChildThatWasForkedAndExecutedKeepsNothing) {
  DLOCK_NEEDS(processes);
  Worker holder = worker();
  (void)holder.acquire(name(), lease());
  const pid_t child = std::stoi(holder.ask("spawn", "spawned "));
  const auto kept = kept_for();
  Lock& lock = lock_of(client());
  const TimePoint killed = now();
  holder.kill();
  EXPECT_TRUE(take(lock).held());
  expect_within(kept, killed, "a lock whose holder was killed");
  EXPECT_EQ(::kill(child, 0), 0) << "the child was to be alive all the while";
}

TEST_P(Contract, C07_AReleaseFreesTheLockWhileAChildLives) {
  DLOCK_NEEDS(processes);
  Worker holder = worker();
  (void)holder.acquire(name(), lease());
  (void)holder.ask("spawn", "spawned ");
  EXPECT_EQ(holder.ask("release", "released "), "1");
  EXPECT_TRUE(is_free(name()));
}

}  // namespace dlock::conformance
