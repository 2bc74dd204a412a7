#include "backends/common/sql/observed_versions.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include <dlock/clock.hpp>

#include "backend_rows_fixture.hpp"

namespace dlock::postgres {

namespace {

using namespace std::chrono_literals;

class PostgresObservedVersions : public testing::Test {
 protected:
  std::chrono::nanoseconds note(std::int64_t version, std::chrono::nanoseconds lease = 30s,
                                const std::string& owner = "a") {
    return observed.note("x", {.owner = owner, .version = version}, lease, now);
  }
  [[nodiscard]] bool over() const { return !observed.over("x", now).owner.empty(); }

  TimePoint now = TimePoint() + 1h;
  ObservedVersions observed;
};

// Ten thousand waiters are ordinary, and the holders of all their locks may have died together.
TEST_F(PostgresObservedVersions, AwaitedLocks_HaveNoLimit) {
  constexpr int names = 25'000;
  const auto look_at_all = [&] {
    std::chrono::nanoseconds left{};
    for (int i = 0; i < names; ++i) {
      left = std::max(left, observed.note("x" + std::to_string(i), {.owner = "a", .version = i}, 10s, now));
    }
    return left;
  };
  for (int second = 10; second >= 0; --second) {
    ASSERT_EQ(look_at_all(), std::chrono::seconds(second));
    now += 1s;
  }
  for (int i = 0; i < names; ++i) ASSERT_FALSE(observed.over("x" + std::to_string(i), now).owner.empty()) << i;
}

// One that is tried for from time to time stays, and is dropped after long once there is much else.
TEST_F(PostgresObservedVersions, RecentVersions_AreKept) {
  for (const auto& [apart, kept] : {std::pair<std::chrono::nanoseconds, bool>(9min, true), {1h, false}}) {
    (void)note(5);
    now += apart;
    for (int i = 0; i < 60'000; ++i) {
      (void)observed.note(std::to_string(apart.count() + i), {.owner = "a", .version = 1}, 30s, now);
    }
    EXPECT_EQ(over(), kept);
  }
}

// A lock whose version stays the same for its lease is taken over.
class BackendRowsOfOptimistic : public BackendRowsTest {};
INSTANTIATE_TEST_SUITE_P(, BackendRowsOfOptimistic, testing::Values(Strategy::optimistic), name_of_strategy);

// Shows: hole postgresql-unwatched
TEST_P(BackendRowsOfOptimistic, VersionUnchangedForOneLease_LockIsTakenOver) {
  const auto held = taken_by_others("x");
  engine.advance(4s);
  const TimePoint first_seen = engine.now();
  const auto waiting = ours->contend("x", true, 60s);
  engine.advance(10s - 1ns);
  EXPECT_FALSE(waiting->grant) << "one lease of the holder's, from when it was first seen";
  engine.advance(10ms);
  ASSERT_TRUE(waiting->grant);
  EXPECT_GT(waiting->grant->token, held->grant->token);
  EXPECT_LE(queries("acquire").back()->sent, first_seen + 10s + 5ms);
  renew(*others, *held);
  engine.run();
  EXPECT_EQ(take_answers(), Words{"x lost"});
}

// Shows: hole postgresql-unwatched
TEST_P(BackendRowsOfOptimistic, SeparateTries_UseTheVersionsThatTheClientSaw) {
  const auto held = taken_by_others("x");
  spoil(".acquire", Fate::hold, 1);
  const auto first = acquire("x");
  engine.advance(2s);
  heal();
  engine.run();
  EXPECT_EQ(said(*first), "busy") << "it stands still from when the answer that showed it arrived";
  engine.advance(10s - 1ns);
  EXPECT_EQ(said(*acquire("x")), "busy");
  engine.advance(1ns);
  const auto theirs = others->contend("x", false);
  engine.run();
  EXPECT_EQ(said(*theirs), "busy");
  EXPECT_EQ(said(*acquire("x")), "granted");
}

// Shows: one-holder
TEST_P(BackendRowsOfOptimistic, TakeOver_ComesAfterTheHoldersLoss) {
  for (const auto late : {0ms, 1ms, 500ms, 2000ms}) {
    const std::string name = "x" + std::to_string(late.count());
    spoil(".acquire", Fate::hold, 1);
    const auto held = ours->contend(name, false, 5s);
    engine.advance(late);
    heal();
    engine.run();
    ASSERT_TRUE(held->grant);
    const auto waiting = others->contend(name, true);
    for (int ms = 0; ms < 10'000 && !waiting->grant; ++ms) engine.advance(1ms);
    ASSERT_TRUE(waiting->grant);
    EXPECT_GE(engine.now(), held->grant->valid_until);
  }
}

TEST_P(BackendRowsOfOptimistic, Renewal_RestartsTheObservation) {
  const auto held = taken_by_others("x");
  const auto waiting = acquire("x", true);
  for (int i = 0; i < 5; ++i) {
    engine.advance(9s);
    renew(*others, *held);
    engine.run();
    EXPECT_EQ(take_answers(), Words{"x renewed"});
  }
  engine.advance(10s - 1ns);
  EXPECT_FALSE(waiting->grant);
  engine.advance(3s);
  EXPECT_TRUE(waiting->grant);
}

}  // namespace

}  // namespace dlock::postgres
