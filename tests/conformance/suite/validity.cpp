// Contract 2: a lease says until when it is safe.
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "suite/contract.hpp"

namespace dlock::conformance {

DLOCK_CONFORMANCE_TESTS(validity)

namespace {

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

}  // namespace

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

TEST_P(ClientContract, C02_AReleasedLeaseIsNotHeld) {
  Lock& lock = lock_of(client());
  Lease lease = take(lock);
  EXPECT_TRUE(lease.release());
  EXPECT_FALSE(lease.held());
}

TEST_P(ClientContract, C02_AnEmptyLeaseIsNotHeld) {
  Lock& lock = lock_of(client());
  Lease lease = take(lock);
  const Lease moved = std::move(lease);
  EXPECT_TRUE(moved.held());
  EXPECT_FALSE(lease.held());  // NOLINT(bugprone-use-after-move): documented as empty
  EXPECT_FALSE(Lease().held());
}

TEST_P(ClientContract, C02_ALeaseKnowsItsName) {
  Lock& lock = lock_of(client());
  const Lease lease = take(lock);
  EXPECT_EQ(lease.name(), name());
  EXPECT_EQ(lock.name(), name());
}

}  // namespace dlock::conformance
