#include "backends/postgres/rows/observed_versions.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include <dlock/clock.hpp>

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

TEST_F(PostgresObservedVersions, WhatNobodyHasSeenIsNotOver) {
  EXPECT_FALSE(over());
}

TEST_F(PostgresObservedVersions, ALeaseIsOverWhenItsVersionStoodStillForAsLong) {
  EXPECT_EQ(note(5), 30s);
  now += 30s - 1ns;
  EXPECT_FALSE(over());
  now += 1ns;
  EXPECT_TRUE(over());
  EXPECT_EQ(observed.over("x", now).owner, "a");
  EXPECT_EQ(observed.over("x", now).version, 5);
  EXPECT_TRUE(observed.over("y", now).owner.empty());
}

TEST_F(PostgresObservedVersions, SeeingTheSameAgainDoesNotStartItAgain) {
  (void)note(5);
  now += 10s;
  EXPECT_EQ(note(5), 20s);
  now += 19s;
  EXPECT_EQ(note(5), 1s);
  now += 1s;
  EXPECT_TRUE(over());
  EXPECT_EQ(note(5), 0s);
  now += 1h;
  EXPECT_EQ(note(5), 0s) << "never negative";
}

TEST_F(PostgresObservedVersions, ARenewalStartsItAgain) {
  (void)note(5);
  now += 29s;
  EXPECT_EQ(note(6), 30s);
  now += 29s;
  EXPECT_FALSE(over());
  now += 1s;
  EXPECT_EQ(observed.over("x", now).version, 6);
}

TEST_F(PostgresObservedVersions, AnotherOwnerOfTheSameVersionStartsItAgain) {
  (void)note(5, 30s, "a");
  now += 29s;
  EXPECT_EQ(note(5, 30s, "b"), 30s);
  now += 1s;
  EXPECT_FALSE(over());
}

TEST_F(PostgresObservedVersions, TheHoldersLeaseCounts) {
  (void)note(5, 10s);
  now += 5s;
  EXPECT_EQ(note(6, 60s), 60s);
  now += 59s;
  EXPECT_FALSE(over());
}

TEST_F(PostgresObservedVersions, WhatIsForgottenIsLookedAtForAWholeLease) {
  (void)note(5);
  now += 30s;
  observed.forget("x");
  EXPECT_FALSE(over());
  EXPECT_EQ(note(5), 30s);
}

// Somebody who only tries from time to time.
TEST_F(PostgresObservedVersions, LooksMayBeFarApart) {
  (void)note(5, 30s);
  now += 9min;
  for (int i = 0; i < 20'000; ++i) {
    (void)observed.note("other" + std::to_string(i), {.owner = "a", .version = 1}, 30s, now);
  }
  EXPECT_TRUE(over());
}

// Ten thousand waiters are ordinary, and the holders of all their locks may have died together.
TEST_F(PostgresObservedVersions, AnyNumberOfLocksCanBeWaitedFor) {
  constexpr int names = 25'000;
  const auto look_at_all = [&] {
    std::chrono::nanoseconds left{};
    for (int i = 0; i < names; ++i) {
      left = std::max(left, observed.note("x" + std::to_string(i), {.owner = "a", .version = i}, 10s, now));
    }
    return left;
  };
  EXPECT_EQ(look_at_all(), 10s);
  for (int second = 9; second >= 0; --second) {
    now += 1s;
    ASSERT_EQ(look_at_all(), std::chrono::seconds(second));
  }
  for (int i = 0; i < names; ++i) ASSERT_FALSE(observed.over("x" + std::to_string(i), now).owner.empty()) << i;
}

// What nobody has asked about for long is dropped once there is much of it.
TEST_F(PostgresObservedVersions, DoesNotKeepEveryNameThereEverWas) {
  (void)note(5, 30s);
  now += 1h;
  for (int i = 0; i < 20'000; ++i) {
    (void)observed.note("other" + std::to_string(i), {.owner = "a", .version = 1}, 30s, now);
  }
  EXPECT_FALSE(over());
}

}  // namespace

}  // namespace dlock::postgres
