#include "core/client/renewal_schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <dlock/duration.hpp>
#include <dlock/spi/backend.hpp>

namespace dlock::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using Action = RenewalSchedule::Action;
using Retry = RenewalSchedule::Retry;
using Step = RenewalSchedule::Step;

constexpr TimePoint kGrantedAt{std::chrono::hours(1)};
constexpr nanoseconds kLease = 30s;

// A lease that is kept by a schedule.
class Keeper {
 public:
  Keeper(nanoseconds lease, bool renew, TimePoint granted, TimePoint end, std::uint64_t seed)
      : schedule_(lease, renew, granted, end, seed), granted_(granted), end_(end) {}

  [[nodiscard]] TimePoint valid_until() const { return end_; }
  [[nodiscard]] bool lost() const { return lost_; }
  [[nodiscard]] Step start() const { return schedule_.start(granted_, end_); }
  Step due(TimePoint now) { return follow(schedule_.due(now, end_)); }
  Step renewed(TimePoint now, TimePoint until) { return follow(schedule_.renewed(now, end_, until)); }
  Step renewal_failed(TimePoint now, Retry retry = Retry::soon) {
    return follow(schedule_.renewal_failed(now, end_, retry));
  }
  Step extended(TimePoint now, TimePoint until) { return follow(schedule_.extended(now, end_, until)); }
  Step reconnected(TimePoint now) { return follow(schedule_.reconnected(now, end_)); }

 private:
  Step follow(Step step) {
    end_ = step.valid_until.value_or(end_);
    lost_ = lost_ || step.action == Action::lose;
    return step;
  }

  RenewalSchedule schedule_;
  const TimePoint granted_;
  TimePoint end_;
  bool lost_ = false;
};

Keeper keeper_for(nanoseconds lease = kLease, bool renew = true, std::uint64_t seed = 1) {
  return {lease, renew, kGrantedAt, lease_valid_until(kGrantedAt, lease), seed};
}

// Hazard: renewals that never end, or end early
TEST(RenewalSchedule, Renewal_BeginsAtAboutAThirdOfTheLease) {
  std::set<TimePoint> times;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    auto keeper = keeper_for(kLease, true, seed);
    const auto first = keeper.start();
    EXPECT_EQ(first.action, Action::none);
    ASSERT_TRUE(first.wake);
    const TimePoint at = *first.wake;
    times.insert(at);
    EXPECT_GE(at, kGrantedAt + 9s);
    EXPECT_LE(at, kGrantedAt + 11s);
    const auto early = keeper.due(kGrantedAt + 1s);
    EXPECT_EQ(early.action, Action::none);
    EXPECT_EQ(early.wake, at) << "a wake-up too early only waits on";
    EXPECT_EQ(keeper.due(at).action, Action::renew);
    EXPECT_EQ(keeper.due(at + 1s).action, Action::none);
    EXPECT_EQ(keeper.due(at + 5s).action, Action::none);
    const auto step = keeper.renewed(at + 10ms, lease_valid_until(at, kLease));
    EXPECT_EQ(step.action, Action::none);
    EXPECT_EQ(keeper.valid_until(), lease_valid_until(at, kLease));
    ASSERT_TRUE(step.wake);
    EXPECT_GE(*step.wake, at + 8s);
    EXPECT_LE(*step.wake, at + 12s);
  }
  EXPECT_GT(times.size(), 100U);
}

// The event loop may be left alone for a millisecond, a busy machine keeps a thread waiting for longer, and the
// program has to hear of the loss in time.
// Shows: known-end, loss-signal
TEST(RenewalSchedule, Loss_ComesALittleBeforeTheEnd) {
  for (const auto& [lease, lead] :
       {std::pair<nanoseconds, nanoseconds>(10ms, 1500us), {20ms, 1500us}, {60ms, 3ms}, {100ms, 5ms}, {30s, 5ms}}) {
    auto keeper = keeper_for(lease, false);
    const TimePoint end = keeper.valid_until() - lead;
    EXPECT_EQ(keeper.start().wake, end) << lease.count();
    EXPECT_EQ(keeper.due(kGrantedAt + lease / 2).action, Action::none) << "a fixed length is never renewed";
    EXPECT_EQ(keeper.due(end - 1ns).action, Action::none);
    EXPECT_EQ(keeper.due(end).action, Action::lose);
    EXPECT_TRUE(keeper.lost());
  }
  // A lease that is hardly longer than that keeps three quarters.
  Keeper brief(1ms, false, kGrantedAt, kGrantedAt + 1ms, 1);
  EXPECT_EQ(brief.start().wake, kGrantedAt + 750us);
  Keeper endless(kLease, false, kGrantedAt, TimePoint::max(), 1);
  EXPECT_EQ(endless.start().wake, std::nullopt);
  EXPECT_EQ(endless.due(TimePoint::max() - 1ns).action, Action::none);
}

TEST(RenewalSchedule, FailedRenewal_IsRetriedFasterUntilTheEnd) {
  auto keeper = keeper_for();
  TimePoint now = *keeper.start().wake;
  nanoseconds last_pause = nanoseconds::max();
  int tries = 0;
  for (;; ++tries) {
    ASSERT_LT(tries, 100000);
    auto step = keeper.due(now);
    if (step.action == Action::lose) break;
    ASSERT_EQ(step.action, Action::renew);
    step = keeper.renewal_failed(now);
    if (step.action == Action::lose) break;
    ASSERT_TRUE(step.wake);
    const nanoseconds pause = *step.wake - now;
    EXPECT_GT(pause, 0ns) << "no busy loop";
    if (tries > 0) {
      EXPECT_LE(pause, last_pause * 5 / 4) << "retries do not slow down, give or take the jitter";
    }
    last_pause = pause;
    now = *step.wake;
  }
  EXPECT_GE(tries, 8);
  EXPECT_LT(tries, 200) << "and they do not swamp a service in trouble";
  EXPECT_LT(now, keeper.valid_until());
}

TEST(RenewalSchedule, RefusedRenewal_IsRetriedAFewTimes) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    auto keeper = keeper_for(kLease, true, seed);
    TimePoint now = *keeper.start().wake;
    int tries = 0;
    for (auto step = keeper.due(now); step.action != Action::lose; step = keeper.due(now)) {
      if (step.action == Action::renew) {
        ++tries;
        step = keeper.renewal_failed(now, Retry::seldom);
      }
      ASSERT_TRUE(step.wake);
      EXPECT_GE(*step.wake, std::min(now + kLease / 8, keeper.valid_until() - 10ms)) << "seldom";
      now = *step.wake;
    }
    EXPECT_GE(tries, 4) << "what refused it may be mended while the lease lasts";
    EXPECT_LE(tries, 5);
    EXPECT_LT(now, keeper.valid_until());
  }
}

// A program that is notified of the loss at that instant has the truth: nothing that arrives then takes it back.
// Shows: renewal
TEST(RenewalSchedule, EventAtTheLossOrLater_RevivesNothing) {
  const TimePoint end = lease_valid_until(kGrantedAt, kLease);
  for (const TimePoint at : {*keeper_for(kLease, false).start().wake, end, end + 1s}) {
    const TimePoint later = lease_valid_until(at, kLease);
    const std::vector<std::function<Step(Keeper&)>> events = {
        [&](Keeper& keeper) { return keeper.renewed(at, later); },
        [&](Keeper& keeper) { return keeper.renewal_failed(at); },
        [&](Keeper& keeper) { return keeper.extended(at, later); },
        [&](Keeper& keeper) { return keeper.reconnected(at); }};
    for (const auto& event : events) {
      for (const bool renew : {false, true}) {
        auto keeper = keeper_for(kLease, renew);
        if (renew) (void)keeper.due(*keeper.start().wake);
        EXPECT_EQ(event(keeper).action, Action::lose);
        EXPECT_TRUE(keeper.lost());
        EXPECT_EQ(keeper.valid_until(), end);
      }
    }
  }
}

TEST(RenewalSchedule, LateAnswer_IsFollowedByARenewalInTime) {
  constexpr nanoseconds brief = 3s;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const TimePoint answered = kGrantedAt + 2s;  // sent at kGrantedAt
    TimePoint end = lease_valid_until(kGrantedAt, brief);
    Keeper late(brief, true, answered, end, seed);
    TimePoint wake = late.start().wake.value();
    EXPECT_LT(wake, answered + (end - answered) * 3 / 4) << "time for the request must be left";
    EXPECT_EQ(late.due(wake).action, Action::renew);
    auto keeper = keeper_for(brief, true, seed);
    const TimePoint sent = keeper.start().wake.value();
    ASSERT_EQ(keeper.due(sent).action, Action::renew);
    end = lease_valid_until(sent, brief);
    wake = keeper.renewed(sent + 1800ms, end).wake.value();
    EXPECT_LT(wake, sent + 1800ms + (end - sent - 1800ms) * 3 / 4);
    EXPECT_EQ(keeper.due(wake).action, Action::renew);
  }
}

TEST(RenewalSchedule, Reconnection_IsFollowedByARenewal) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    auto keeper = keeper_for(kLease, true, seed);
    (void)keeper.start();
    const auto step = keeper.reconnected(kGrantedAt + 1s);
    EXPECT_EQ(step.action, Action::none);
    ASSERT_TRUE(step.wake);
    EXPECT_LE(*step.wake, kGrantedAt + 1s + kLease / 50);
    EXPECT_EQ(keeper.due(*step.wake).action, Action::renew);
    (void)keeper.reconnected(*step.wake);
    EXPECT_EQ(keeper.due(*step.wake + kLease / 50).action, Action::none) << "it is asking already";
  }
  auto fixed = keeper_for(kLease, false);
  EXPECT_EQ(fixed.reconnected(kGrantedAt + 1s).wake, fixed.start().wake) << "not renewed, connected or not";
}

TEST(RenewalSchedule, ExtremeLease_DoesNotOverflowOrLoop) {
  for (const nanoseconds lease : {nanoseconds::max(), nanoseconds(std::chrono::hours(24 * 365 * 200)),
                                  nanoseconds(10ms), nanoseconds(1ms), nanoseconds(1), nanoseconds(0)}) {
    for (const TimePoint end : {TimePoint::max(), lease_valid_until(kGrantedAt, lease), TimePoint::min()}) {
      Keeper keeper(lease, true, kGrantedAt, end, 7);
      auto wake = keeper.start().wake;
      TimePoint now = kGrantedAt;
      for (int i = 0; i < 10 && wake; ++i) {
        const TimePoint before = now;
        now = std::max(now, *wake);
        auto step = keeper.due(now);
        if (step.action == Action::renew) {
          EXPECT_TRUE(i == 0 || now > before) << "renewals follow each other without a pause";
          step = keeper.renewed(now, std::max(end, lease_valid_until(now, lease)));
        }
        wake = step.wake;
      }
    }
  }
}

}  // namespace
}  // namespace dlock::detail
