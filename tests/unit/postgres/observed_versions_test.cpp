#include "backends/postgres/rows/observed_versions.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

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

}  // namespace

}  // namespace dlock::postgres
