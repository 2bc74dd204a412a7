// When a session is safe, by our own clock: events and times in, times out.
#include "backends/zookeeper/connection/liveness.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace dlock::zookeeper {

namespace {

using std::chrono::milliseconds;

// With a timeout of 8 s, requested at 0. Times are in ms.
struct Event {
  enum class Kind { begin, acknowledged, end } kind;
  int sent;
  int now;
};
struct Row {
  std::string what;
  std::vector<Event> events;
  // Of which request a timeout counts; -1: none.
  int valid_from;
  int expires_at;  // 0: as valid_until()
  int probe_at;
};

TimePoint at(int ms) {
  return TimePoint() + std::chrono::hours(1) + milliseconds(ms);
}

TEST(LivenessTest, ValidityCountsFromAWriteThatTheLeaderKnewOf) {
  using enum Event::Kind;
  constexpr milliseconds timeout{8000};
  // The margin of a lease: 1 % and 2 ms.
  constexpr int rest_of_new_session = 8000 - 82 - 2000;
  const std::vector<Row> rows = {
      {"there is no session", {}, -1, 0, -1},
      {"a session that came at once", {{begin, 0, 0}}, 0, 0, 2000},
      {"one that came late gets the time for its first heartbeat",
       {{begin, 0, 3000}},
       0,
       3000 + rest_of_new_session,
       2000},
      {"one write says only that the session lived", {{begin, 0, 0}, {acknowledged, 1000, 1001}}, 0, 0, 3000},
      {"nor do two that are close",
       {{begin, 0, 0}, {acknowledged, 1000, 1001}, {acknowledged, 2999, 3000}},
       0,
       0,
       4999},
      {"a quarter later the leader knew",
       {{begin, 0, 0}, {acknowledged, 1000, 1001}, {acknowledged, 3000, 3001}},
       1000,
       0,
       5000},
      {"after a gap it need not have known", {{begin, 0, 0}, {acknowledged, 6000, 6000}}, 0, 0, 8000},
      {"of several the newest that it knew counts",
       {{begin, 0, 0}, {acknowledged, 500, 500}, {acknowledged, 1000, 1000}, {acknowledged, 3100, 3100}},
       1000,
       0,
       5100},
      {"too many are not kept apart",
       {{begin, 0, 0}, {acknowledged, 1000, 1000}, {acknowledged, 1100, 1100}, {acknowledged, 3110, 3110}},
       1000,
       0,
       5110},
      {"a sixteenth of the quarter is",
       {{begin, 0, 0}, {acknowledged, 1000, 1000}, {acknowledged, 1125, 1125}, {acknowledged, 3125, 3125}},
       1125,
       0,
       5125},
      {"an answer that comes late counts from its request",
       {{begin, 0, 0}, {acknowledged, 2000, 5000}, {acknowledged, 4000, 5500}},
       2000,
       0,
       6000},
      {"an older answer takes nothing back",
       {{begin, 0, 0}, {acknowledged, 1000, 1000}, {acknowledged, 3000, 3000}, {acknowledged, 2000, 3100}},
       1000,
       0,
       5000},
      {"until the deadline it can be extended",
       {{begin, 0, 0}, {acknowledged, 2000, 2000}, {acknowledged, 7900, 7917}},
       2000,
       0,
       9900},
      {"from the deadline on nothing is brought back to life",
       {{begin, 0, 0}, {acknowledged, 2000, 2000}, {acknowledged, 7900, 7918}},
       0,
       0,
       4000},
      {"an extension moves the deadline",
       {{begin, 0, 0}, {acknowledged, 2000, 2000}, {acknowledged, 4000, 4000}, {acknowledged, 9000, 9900}},
       4000,
       0,
       11000},
      {"the time for the first heartbeat is not taken away",
       {{begin, 0, 7000}, {acknowledged, 7001, 7001}, {acknowledged, 9001, 9001}},
       7001,
       0,
       11001},
      {"after its end there is none", {{begin, 0, 0}, {acknowledged, 1000, 1000}, {end, 0, 0}}, -1, 0, -1},
      {"nor does an answer bring it back", {{begin, 0, 0}, {end, 0, 0}, {acknowledged, 1, 1}}, -1, 0, -1},
      {"the next one knows nothing of the one before",
       {{begin, 0, 0},
        {acknowledged, 1000, 1000},
        {begin, 1050, 1050},
        {acknowledged, 1100, 1100},
        {acknowledged, 3100, 3100}},
       1100,
       0,
       5100},
  };
  for (const Row& row : rows) {
    Liveness liveness;
    for (const Event& event : row.events) {
      if (event.kind == begin) liveness.begin(at(event.sent), at(event.now), timeout);
      if (event.kind == acknowledged) liveness.acknowledged(at(event.sent), at(event.now));
      if (event.kind == end) liveness.end();
    }
    const bool stands = row.valid_from >= 0;
    const TimePoint valid_until = stands ? lease_valid_until(at(row.valid_from), timeout) : TimePoint::min();
    const TimePoint expires_at = row.expires_at == 0 ? valid_until : at(row.expires_at);
    EXPECT_EQ(liveness.valid_until(), valid_until) << row.what;
    EXPECT_EQ(liveness.expires_at(), expires_at) << row.what;
    EXPECT_TRUE(liveness.is_over(expires_at)) << row.what;
    EXPECT_EQ(liveness.timeout(), stands ? timeout : milliseconds(0)) << row.what;
    if (!stands) continue;
    EXPECT_FALSE(liveness.is_over(expires_at - std::chrono::nanoseconds(1))) << row.what;
    EXPECT_EQ(liveness.probe_at(), at(row.probe_at)) << row.what;
  }
}

}  // namespace

}  // namespace dlock::zookeeper
