// When a waiter of the queue sends its next request if nothing wakes it.
#include "backends/redis/waiting/check_time.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backends/redis/timing.hpp"
#include "tests/support/manual_engine.hpp"

namespace dlock::redis {

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr CheckBasis reachable{.reachable = true};
constexpr CheckBasis watching{.reachable = true, .watches_holder = true};
constexpr CheckBasis beside_foreigners{.reachable = true, .foreign_lockers = true};
constexpr CheckBasis unreachable{};

AcquireAnswer held_answer(std::uint64_t rank, std::optional<milliseconds> free_in = 30s, bool more = false) {
  return {.free_in = free_in, .rank = rank, .more = more};
}

TEST(RedisCheckTime, IsWithinTheseBounds) {
  struct Row {
    std::string what;
    AcquireAnswer answer;
    CheckBasis basis;
    nanoseconds from;  // from now on
    nanoseconds to;
  };
  const std::vector<Row> rows = {
      {"the first, lease ends soon: just after it", held_answer(0, 40ms), reachable, 41ms, 43ms},
      {"the lease ends later than the safety net", held_answer(0), reachable, longest_poll * 3 / 4 - poll_beat,
       longest_poll},
      {"further back, too", held_answer(100), reachable, longest_poll * 3 / 4 - poll_beat, longest_poll},
      {"far back, the lease ends soon: not all at once", held_answer(5, 1s), reachable, 1s + 5 * head_poll,
       1s + 5 * head_poll + 3ms},
      {"unless it is to watch the holder", held_answer(7, 1s), watching, 1s + 1ms, 1s + 3ms},
      {"free, behind dead waiters", held_answer(9'000, 0ms, true), reachable, 1ms, 3ms},
      {"no end of the lease is known, foreign lockers", held_answer(0, std::nullopt), beside_foreigners,
       head_poll * 3 / 4, head_poll},
      {"foreign lockers, one place further back", held_answer(1), beside_foreigners, head_poll * 3 / 2, 2 * head_poll},
      {"foreign lockers, far back", held_answer(1'000'000'000), beside_foreigners, longest_poll * 3 / 4, longest_poll},
      {"no wake-up comes, the first", held_answer(0), unreachable, head_poll * 3 / 4, head_poll},
      {"no wake-up comes: before a grant runs out", held_answer(100), unreachable, longest_blind_poll * 3 / 4,
       longest_blind_poll},
      {"without a place in the queue", {.free_in = 30s}, unreachable, head_poll * 3 / 4, head_poll},
  };
  test::ManualEngine engine;
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    for (int i = 0; i < 20; ++i) {
      engine.manual_clock().advance(7ms);
      const nanoseconds pause = time_to_check(row.answer, row.basis, engine) - engine.now();
      EXPECT_GE(pause, row.from);
      EXPECT_LE(pause, row.to);
    }
  }
}

// The server answers many requests that arrive together for little more than one. But a thousand waiters that began at
// one moment must not all send at one moment.
TEST(RedisCheckTime, OfTheSafetyNetIsOnABeatAndSpread) {
  test::ManualEngine engine;
  std::set<TimePoint> times;
  for (int i = 0; i < 100; ++i) times.insert(time_to_check(held_answer(0), reachable, engine));
  EXPECT_GT(*times.rbegin() - *times.begin(), longest_poll / 10);
  for (const TimePoint& time : times) EXPECT_EQ(time.time_since_epoch() % poll_beat, 0ns);
}

}  // namespace

}  // namespace dlock::redis
