// Contract 7: the death of a holder frees the lock within its lease; the death of a waiter delays nobody by more. And
// what contracts 2 and 4 say of holders that are stopped or killed, and of a service that is restarted.
//
// These wait until the service is back, or until a session or a lease has ended, so each has several kinds of locks: of
// processes, the plain lock and one other.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "suite/contract.hpp"

namespace dlock::conformance {

DLOCK_CONFORMANCE_TESTS(crash)

class CrashContract : public SubjectContract {
 protected:
  // Another process with a session of its own: a short one, if the URL lets its client choose.
  struct Doomed {
    std::reference_wrapper<const Kind> kind;
    Worker process;
    FencingToken token;  // of what it holds
  };
  // The kinds of the subject; the plain lock is the first.
  [[nodiscard]] std::vector<std::reference_wrapper<const Kind>> tested_kinds() const;
  // One for each of two kinds, of those that the subject has.
  [[nodiscard]] std::vector<Doomed> doomed();
  // They hold name(), each of its kind.
  [[nodiscard]] std::vector<Doomed> doomed_holders();

  // How long the service keeps the lock of a process of which it hears no more. Services look for sessions that have
  // ended in steps, and may do so only every half session.
  [[nodiscard]] std::chrono::nanoseconds kept_for(const Worker& holder);
  // Kills them, and fails unless each lock can be held again in time, with a greater token; by the waiters, where there
  // are any, in the same order.
  void expect_free_after_death(std::vector<Doomed>& holders, std::vector<Pending> waiters = {});
};

INSTANTIATE_TEST_SUITE_P(, CrashContract, ::testing::ValuesIn(all_subjects()), name_of_subject);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CrashContract);

std::vector<std::reference_wrapper<const Kind>> CrashContract::tested_kinds() const {
  std::vector<std::reference_wrapper<const Kind>> some(kinds().begin(), kinds().end());
  std::erase_if(some, [this](const Kind& each) {
    return std::ranges::find(subject().kinds, each.kind) == subject().kinds.end();
  });
  return some;
}

std::vector<CrashContract::Doomed> CrashContract::doomed() {
  // How a service ends the leases and sessions of a dead process is the same for all kinds, as far as two of them show.
  constexpr std::size_t most_kinds = 2;
  const auto session = std::clamp<std::chrono::nanoseconds>(short_session(), caps().min_lease, caps().max_lease);
  std::vector<Doomed> all;
  for (const Kind& each : tested_kinds()) {
    if (all.size() < most_kinds) all.push_back({each, Worker(fixture().url(), "doomed", each, session), {}});
  }
  return all;
}

std::vector<CrashContract::Doomed> CrashContract::doomed_holders() {
  std::vector<Doomed> all = doomed();
  for (Doomed& each : all) {
    each.token = FencingToken(each.process.acquire(name(), lease()));
    allow_for(kept_for(each.process));
  }
  return all;
}

std::chrono::nanoseconds CrashContract::kept_for(const Worker& holder) {
  switch (caps().lease_kind) {
    case LeaseKind::per_lock:
      return lease();
    case LeaseKind::session:
      return holder.valid_for() + holder.valid_for() / 2;
    case LeaseKind::process:
      break;
  }
  return std::chrono::nanoseconds(0);
}

void CrashContract::expect_free_after_death(std::vector<Doomed>& holders, std::vector<Pending> waiters) {
  Client& next = client();
  const TimePoint killed = now();
  for (Doomed& each : holders) each.process.kill();
  for (std::size_t i = waiters.size(); i < holders.size(); ++i) {
    waiters.emplace_back(lock_of(holders[i].kind, next, name()), AcquireOptions{});
  }
  for (std::size_t i = 0; i < holders.size(); ++i) {
    SCOPED_TRACE(::testing::PrintToString(holders[i].kind.get()));
    const Lease lease = waiters[i].lease();
    EXPECT_TRUE(lease.held());
    EXPECT_GT(lease.token(), holders[i].token);
    expect_within(kept_for(holders[i].process), killed, "a lock of a process that was killed");
  }
}

TEST_P(CrashContract, C02_AHolderThatWasStoppedPastItsLeaseSeesThatFirst) {
  DLOCK_NEEDS(processes);
  DLOCK_APPLIES_IF(caps().lease_kind != LeaseKind::process, "a stopped holder keeps the lock");
  std::vector<Doomed> holders = doomed_holders();
  for (Doomed& each : holders) each.process.stop();
  Client& next = client();
  std::vector<Pending> waiters;
  for (const Doomed& each : holders) waiters.emplace_back(lock_of(each.kind, next, name()), AcquireOptions{});
  for (std::size_t i = 0; i < holders.size(); ++i) {
    SCOPED_TRACE(::testing::PrintToString(holders[i].kind.get()));
    const Lease lease = waiters[i].lease();
    holders[i].process.send("held");
    holders[i].process.resume();
    EXPECT_EQ(holders[i].process.receive(), "held 0");
    EXPECT_TRUE(lease.held());
  }
}

// Shows: hole file-stopped-holder
TEST_P(CrashContract, C02_AStoppedHolderKeepsALeaseThatDoesNotRunOut) {
  DLOCK_NEEDS(processes);
  DLOCK_APPLIES_IF(caps().lease_kind == LeaseKind::process, "leases run out by time");
  Client& other = client();
  for (Doomed& each : doomed_holders()) {
    SCOPED_TRACE(::testing::PrintToString(each.kind.get()));
    Lock& lock = lock_of(each.kind, other, name());
    each.process.stop();
    EXPECT_FALSE(lock.try_acquire().has_value());
    each.process.send("held");
    each.process.resume();
    EXPECT_EQ(each.process.receive(), "held 1");
    EXPECT_EQ(each.process.ask("release", "released "), "1");
    EXPECT_TRUE(lock.try_acquire().has_value());
  }
}

TEST_P(CrashContract, C04_TokensGrowAcrossARestartOfTheService) {
  DLOCK_NEEDS(restart);
  Client& taking = client();
  std::vector<std::pair<Lock*, FencingToken>> before;
  for (const Kind& each : tested_kinds()) {
    Lock& lock = lock_of(each, taking, name());
    before.emplace_back(&lock, take(lock).token());
  }
  fixture().restart();
  for (const auto& [lock, token] : before) EXPECT_GT(take(*lock).token(), token);
}

// Shows: growing-tokens
TEST_P(CrashContract, C07_AKilledHolderFreesTheLock) {
  DLOCK_NEEDS(processes);
  std::vector<Doomed> holders = doomed_holders();
  Client& next = client();
  std::vector<Pending> waiters;
  for (const Doomed& each : holders) {
    Lock& lock = lock_of(each.kind, next, name());
    ASSERT_FALSE(lock.try_acquire().has_value()) << ::testing::PrintToString(each.kind.get());
    waiters.emplace_back(lock, AcquireOptions{});
  }
  expect_free_after_death(holders, std::move(waiters));
}

TEST_P(CrashContract, C07_AKilledHolderFreesTheLockForWhoComesLater) {
  DLOCK_NEEDS(processes);
  std::vector<Doomed> holders = doomed_holders();
  expect_free_after_death(holders);
}

TEST_P(CrashContract, C07_AKilledWaiterDelaysNobody) {
  DLOCK_NEEDS(processes);
  Client& holding = client();
  Client& behind = client();
  std::vector<Doomed> killed = doomed();
  std::vector<Lease> leases;
  std::vector<Pending> waiters;
  for (Doomed& each : killed) {
    leases.push_back(take(lock_of(each.kind, holding, name())));
    each.process.acquire(name("ready"), lease());  // it is up and connected
    allow_for(kept_for(each.process));
    each.process.send("acquire " + name() + " " + milliseconds(lease()));
    if (caps().counts_waiters) await_waiters(each.kind.get().kind, name(), 1);
    waiters.emplace_back(lock_of(each.kind, behind, name()), AcquireOptions{});
  }
  const TimePoint start = now();
  for (Doomed& each : killed) each.process.kill();
  leases.clear();
  for (std::size_t i = 0; i < killed.size(); ++i) {
    SCOPED_TRACE(::testing::PrintToString(killed[i].kind.get()));
    EXPECT_TRUE(waiters[i].lease().held());
    expect_within(kept_for(killed[i].process), start, "a lock that a killed process waited for");
  }
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

TEST_P(CrashContract, C07_AChildThatWasForkedAndExecutedKeepsNothing) {
  DLOCK_NEEDS(processes);
  std::vector<Doomed> holders = doomed_holders();
  std::vector<pid_t> children;
  for (Doomed& each : holders) children.push_back(std::stoi(each.process.ask("spawn", "spawned ")));
  expect_free_after_death(holders);
  for (const pid_t child : children) EXPECT_EQ(::kill(child, 0), 0) << "the child was to be alive all the while";
}

TEST_P(Contract, C07_AReleaseFreesTheLockWhileAChildLives) {
  DLOCK_NEEDS(processes);
  Worker holder = worker();
  holder.acquire(name(), lease());
  (void)holder.ask("spawn", "spawned ");
  EXPECT_EQ(holder.ask("release", "released "), "1");
  EXPECT_TRUE(is_free(name()));
}

}  // namespace dlock::conformance
