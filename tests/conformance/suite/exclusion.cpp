// Contracts 1, 2 and 4: two leases on one name are never both held at one instant; a lease says until when it is safe,
// and carries a token greater than that of every earlier lease of the name.
#include <array>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "suite/contract.hpp"

namespace dlock::conformance {

DLOCK_CONFORMANCE_TESTS(exclusion)

namespace {

constexpr std::size_t contenders = 100;

// More than the margin of long_lease() for clocks that run at different rates, which would hide it.
constexpr std::chrono::milliseconds answer_delay(200);

double milliseconds_past(TimePoint time, TimePoint limit) {
  return std::chrono::duration<double, std::milli>(time - limit).count();
}

// Requests of a client beside those of the lock that is looked at. They show that its session lives, too, and a backend
// may count from any of them: the more there are, the closer is what it counts from to what it may count from.
class SmallTalk {
 public:
  explicit SmallTalk(std::vector<Lock*> locks) : locks_(std::move(locks)) {}

  // Takes a lock if it is free, and gives it back, without waiting for either.
  void say_something() {
    said_.emplace_back(*locks_.at(said_.size() % locks_.size()), AcquireOptions{.wait = std::chrono::nanoseconds(0)},
                       [](Lease& lease) { release_soon(std::move(lease)); });
  }

 private:
  std::vector<Lock*> locks_;
  std::deque<Pending> said_;
};

// Fits a signed 64-bit column.
constexpr std::uint64_t token_limit = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

}  // namespace

TEST_P(Contract, C01_WhileOneHoldsNobodyElseEnters) {
  auto [mine, others] = two_locks();
  const Lease lease = take(mine);
  EXPECT_EQ(lease.name(), name());
  EXPECT_EQ(mine.name(), name());
  EXPECT_TRUE(lease.held());
  EXPECT_FALSE(others.try_acquire().has_value());
  EXPECT_TRUE(lease.held());
}

TEST_P(Contract, C01_LocksOfOneClientExcludeEachOtherToo) {
  Client& both = client();
  Lock& mine = lock_of(both);
  const Lease lease = take(mine);
  EXPECT_FALSE(mine.try_acquire().has_value());
  EXPECT_FALSE(lock_of(both).try_acquire().has_value());
}

// Hazard: one statement inserts a row and locks it: it does not see another transaction's row
TEST_P(Contract, C01_AHundredThreadsCountWithoutLosingOne) {
  const std::array<Lock*, 4> locks{&lock_of(client()), &lock_of(client()), &lock_of(client()), &lock_of(client())};
  Room room;
  run_threads(contenders, [&](std::size_t i) {
    const Lease lease = locks.at(i % locks.size())->acquire({.wait = guard()});
    room.visit();
  });
  EXPECT_EQ(room.meetings(), 0);
  EXPECT_EQ(room.counter(), static_cast<int>(contenders));
}

TEST_P(Contract, C01_AHundredAsynchronousContendersCountWithoutLosingOne) {
  const std::array<Lock*, 4> locks{&lock_of(client()), &lock_of(client()), &lock_of(client()), &lock_of(client())};
  Room room;
  std::vector<Pending> all;
  for (std::size_t i = 0; i < contenders; ++i) {
    all.emplace_back(*locks.at(i % locks.size()), AcquireOptions{}, [&room](Lease& lease) {
      room.visit();
      release_soon(std::move(lease));
    });
  }
  for (Pending& each : all) EXPECT_FALSE(each.get().error);
  EXPECT_EQ(room.meetings(), 0);
  EXPECT_EQ(room.counter(), static_cast<int>(contenders));
}

// Hazard: two get a free row: read first, then update
TEST_P(Contract, C01_ProcessesCountWithoutLosingOne) {
  DLOCK_NEEDS(processes);
  constexpr int processes = 4;
  constexpr int times = 25;
  std::string directory = (std::filesystem::temp_directory_path() / "dlock-conformance-XXXXXX").string();
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  const std::string file = directory + "/counter";
  std::ofstream(file) << 0;
  {
    std::vector<Worker> workers;
    for (int i = 0; i < processes; ++i) workers.push_back(worker());
    for (Worker& each : workers) each.send("count " + name() + " " + file + " " + std::to_string(times));
    for (Worker& each : workers) EXPECT_EQ(each.receive(), "counted");
  }
  int counted = 0;
  std::ifstream(file) >> counted;
  std::filesystem::remove_all(directory);
  EXPECT_EQ(counted, processes * times);
}

// Hazard: the session expires under a holder or during a wait: dlock compares with its own clock
TEST_P(Contract, C01_ALeaseThatRanOutIsNotHeldWhenTheNextHolderEnters) {
  bool both_held = false;
  const auto [stale, next] =
      after_expiry([&](const Lease& first, const Lease& second) { both_held = second.held() && first.held(); });
  EXPECT_FALSE(both_held);
  EXPECT_FALSE(stale.held());
  EXPECT_TRUE(next.held());
}

TEST_P(Contract, C01_AHolderCutOffIsNotHeldWhenTheNextHolderEnters) {
  DLOCK_NEEDS(cut);
  DLOCK_APPLIES_IF(caps().lease_kind != LeaseKind::process, "leases do not run out by time");
  step_time_if_possible();
  Lock& first_lock = lock_of(client({.lease = lease()}, Link::disturbed));
  Lock& next_lock = lock_of(client());
  const Lease first = take(first_lock);
  fixture().cut();
  bool both_held = false;
  Pending next(next_lock, {}, [&](Lease& lease) { both_held = lease.held() && first.held(); });
  pass_until(next.event(), "nobody enters after the holder was cut off for a whole lease");
  EXPECT_FALSE(both_held);
  EXPECT_FALSE(first.held());
  EXPECT_TRUE(next.lease().held());
  fixture().heal();
}

TEST_P(Contract, C02_ValidityIsCountedFromBeforeTheAnswer) {
  DLOCK_APPLIES_IF(caps().lease_kind != LeaseKind::process, "leases do not run out by time");
  step_time_if_possible();
  Lock& lock = lock_of(client());
  const TimePoint before = now();
  const Lease lease = take(lock, fixed());
  EXPECT_GT(lease.valid_until(), before);
  // Strictly less: there is a margin for clocks that run at different rates.
  EXPECT_LT(lease.valid_until(), now() + this->lease());
}

TEST_P(Contract, C02_ValidityIsCountedFromBeforeTheRequestEvenIfTheAnswerIsLate) {
  DLOCK_NEEDS(delay_answers);
  DLOCK_APPLIES_IF(caps().lease_kind != LeaseKind::process, "leases do not run out by time");
  step_time_if_possible();
  Client& late = client({.lease = long_lease()}, Link::disturbed);
  EXPECT_TRUE(take(lock_of(late, name("first"))).held());  // it is connected
  const auto delay = stepping() ? long_lease() / 20 : answer_delay;
  fixture().delay_answers(delay);
  TimePoint answered;
  TimePoint valid_until;
  Pending pending(lock_of(late), {}, [&](const Lease& lease) {
    answered = now();
    valid_until = lease.valid_until();
  });
  pass_until(pending.event(), "an acquire whose answers are late does not end");
  EXPECT_TRUE(pending.lease().held());
  // However many requests it took, the answer to the last one was so late.
  EXPECT_LE(milliseconds_past(valid_until, answered - delay + kept_for(late, long_lease())), 0);
}

TEST_P(Contract, C02_ARenewalIsCountedFromBeforeItsRequestEvenIfTheAnswerIsLate) {
  DLOCK_NEEDS(delay_answers);
  DLOCK_APPLIES_IF(caps().lease_kind != LeaseKind::process, "leases do not run out by time");
  step_time_if_possible();
  const auto observer = std::make_shared<RecordingObserver>();
  Client& late = client({.lease = long_lease(), .observer = observer}, Link::disturbed);
  const std::chrono::nanoseconds length = kept_for(late, long_lease());
  const Lease lease = take(lock_of(late));
  const LossEvent loss(lease);
  std::vector<Lock*> others;
  for (int i = 0; i < 16; ++i) others.push_back(&lock_of(late, name(std::to_string(i))));
  SmallTalk talk(others);
  const auto delay = stepping() ? long_lease() / 20 : answer_delay;
  fixture().delay_answers(delay);
  // An answer counts from a request that is at least so old.
  const auto age = delay + fixture().age_of_renewals();
  // Not those that were on their way before.
  const TimePoint from = now() + age;
  const TimePoint to = from + age;
  TimePoint before = lease.valid_until();
  for (int extensions = 0; extensions < 2 || now() < to;) {
    if (caps().lease_kind == LeaseKind::session) talk.say_something();
    if (stepping()) {
      step(delay / 4);
    } else {
      (void)loss.event().wait_for(std::chrono::milliseconds(10));
    }
    ASSERT_FALSE(loss.happened()) << observer->last_loss().reason.detail;
    const TimePoint valid_until = lease.valid_until();
    const TimePoint seen = now();
    if (seen < from || valid_until == before) continue;
    before = valid_until;
    ++extensions;
    ASSERT_LE(milliseconds_past(valid_until, seen - age + length), 0) << "of extension " << extensions;
  }
}

TEST_P(Contract, C02_HeldEndsAtValidUntilWithoutBeingTold) {
  DLOCK_NEEDS(step_clock);
  step_time_if_possible();
  Lock& lock = lock_of(client());
  const Lease lease = take(lock, fixed());
  ASSERT_NE(lease.valid_until(), TimePoint::max());
  EXPECT_TRUE(lease.held());
  fixture().clock()->advance(lease.valid_until() - now());
  EXPECT_FALSE(lease.held());
}

TEST_P(ClientContract, C02_AnEmptyLeaseIsNotHeld) {
  Lock& lock = lock_of(client());
  Lease lease = take(lock);
  const FencingToken token = lease.token();
  Lease moved = std::move(lease);
  EXPECT_TRUE(moved.held());
  EXPECT_EQ(moved.token(), token);
  EXPECT_FALSE(is_free(name()));
  EXPECT_FALSE(lease.held());  // NOLINT(bugprone-use-after-move): documented as empty
  EXPECT_TRUE(moved.release());
  Lease empty;
  EXPECT_FALSE(empty.held());
  EXPECT_FALSE(empty.lost().stop_requested());
  EXPECT_EQ(empty.token().value(), 0U);
  EXPECT_FALSE(empty.release());
}

TEST_P(Contract, C04_TokensGrowWithEveryLease) {
  auto [one, two] = two_locks();
  FencingToken last;
  for (int i = 0; i < 200; ++i) {
    auto lease = (i % 2 == 0 ? one : two).try_acquire();
    ASSERT_TRUE(lease.has_value());
    ASSERT_GT(lease->token(), last);
    ASSERT_LE(lease->token().value(), token_limit);
    last = lease->token();
    ASSERT_TRUE(lease->release());
  }
}

TEST_P(Contract, C04_TokensGrowAcrossProcesses) {
  DLOCK_NEEDS(processes);
  Lock& lock = lock_of(client());
  std::uint64_t last = take(lock).token();
  for (int i = 0; i < 3; ++i) {
    Worker other = worker();
    std::istringstream tokens(other.ask("cycle " + name() + " 20", "tokens"));
    int leases = 0;
    for (std::uint64_t token = 0; tokens >> token; ++leases) {
      EXPECT_GT(token, last);
      last = token;
    }
    EXPECT_EQ(leases, 20);
  }
  EXPECT_GT(take(lock).token(), last);
}

// Shows: hole broken-by-hand
TEST_P(Contract, C04_TokensGrowAfterAKilledHold) {
  DLOCK_NEEDS(kill_hold);
  const auto [killed, next] = after_kill();
  EXPECT_GT(next.token(), killed.token());
}

TEST_P(Contract, C04_TokensGrowAfterALeaseRanOut) {
  const auto [expired, next] = after_expiry();
  EXPECT_GT(next.token(), expired.token());
}

TEST_P(Contract, C04_WaitersGetTokensInTheOrderOfTheirGrants) {
  Lock& lock = lock_of(client());
  std::optional<Lease> first = take(lock);
  FencingToken last = first->token();
  bool grew = true;  // written by one holder after the other
  std::vector<Pending> waiters;
  for (int i = 0; i < 20; ++i) {
    waiters.emplace_back(lock, AcquireOptions{}, [&](Lease& lease) {
      grew = grew && lease.token() > last;
      last = lease.token();
      release_soon(std::move(lease));
    });
  }
  first.reset();
  for (Pending& each : waiters) EXPECT_FALSE(each.get().error);
  EXPECT_TRUE(grew);
}

TEST_P(Contract, C04_ALeaseKeepsItsTokenWhenItIsRenewed) {
  DLOCK_APPLIES_IF(caps().lease_kind == LeaseKind::per_lock, "leases are not renewed one by one");
  step_time_if_possible();
  const auto observer = std::make_shared<RecordingObserver>();
  Lock& lock = lock_of(client({.observer = observer}));
  const Lease lease = take(lock, {.lease = long_lease()});
  const FencingToken token = lease.token();
  pass_renewals(*observer, name(), 2);
  EXPECT_EQ(lease.token(), token);
}

TEST_P(Contract, C04_TokensGrowWhenTheWallClockIsSetBack) {
  DLOCK_NEEDS(step_clock);
  step_time_if_possible();
  Lock& lock = lock_of(client());
  const FencingToken before = take(lock).token();
  fixture().clock()->step_wall(-std::chrono::hours(24));
  Lock& later = lock_of(client());
  EXPECT_GT(take(later).token(), before);
}

}  // namespace dlock::conformance
