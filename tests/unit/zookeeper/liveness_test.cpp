// When a session is safe, by our own clock: events and times in, times out.
#include "backends/zookeeper/connection/liveness.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace dlock::zookeeper {

namespace {

using std::chrono::milliseconds;

TimePoint at(int ms) {
  return TimePoint() + std::chrono::hours(1) + milliseconds(ms);
}

// With a timeout of 8 s. Times are in ms.
struct LivenessRow {
  const char* what;
  const char* events;  // "begin REQUESTED NOW", "ack SENT NOW", "end 0 0"
  int valid_from;      // of which request a timeout counts; -1: none
  int probe_at = 0;
  int expires_at = 0;  // 0: as valid_until()
};

constexpr LivenessRow liveness_rows[] = {
    {"there is no session", "", -1},
    {"a session that came at once", "begin 0 0", 0, 2000},
    // The margin of a lease: 1 % and 2 ms.
    {"one that came late gets the time for its first heartbeat", "begin 0 3000", 0, 2000, 3000 + 8000 - 82 - 2000},
    {"one write says only that the session lived", "begin 0 0 ack 1000 1001", 0, 3000},
    {"nor do two that are close", "begin 0 0 ack 1000 1001 ack 2999 3000", 0, 4999},
    {"a quarter later the leader knew", "begin 0 0 ack 1000 1001 ack 3000 3001", 1000, 5000},
    {"after a gap it need not have known", "begin 0 0 ack 6000 6000", 0, 8000},
    {"of several the newest that it knew counts", "begin 0 0 ack 500 500 ack 1000 1000 ack 3100 3100", 1000, 5100},
    {"too many are not kept apart", "begin 0 0 ack 1000 1000 ack 1100 1100 ack 3110 3110", 1000, 5110},
    {"a sixteenth of the quarter is", "begin 0 0 ack 1000 1000 ack 1125 1125 ack 3125 3125", 1125, 5125},
    {"an answer that comes late counts from its request", "begin 0 0 ack 2000 5000 ack 4000 5500", 2000, 6000},
    {"an older answer takes nothing back", "begin 0 0 ack 1000 1000 ack 3000 3000 ack 2000 3100", 1000, 5000},
    {"until the deadline it can be extended", "begin 0 0 ack 2000 2000 ack 7900 7917", 2000, 9900},
    {"from the deadline on nothing is brought back to life", "begin 0 0 ack 2000 2000 ack 7900 7918", 0, 4000},
    {"an extension moves the deadline", "begin 0 0 ack 2000 2000 ack 4000 4000 ack 9000 9900", 4000, 11000},
    {"the time for the first heartbeat is not taken away", "begin 0 7000 ack 7001 7001 ack 9001 9001", 7001, 11001},
    {"after its end there is none", "begin 0 0 ack 1000 1000 end 0 0", -1},
    {"nor does an answer bring it back", "begin 0 0 end 0 0 ack 1 1", -1},
    {"the next one knows nothing of the one before",
     "begin 0 0 ack 1000 1000 begin 1050 1050 ack 1100 1100 ack 3100 3100", 1100, 5100},
};

TEST(LivenessTest, Validity_CountsFromAWriteKnownToTheLeader) {
  constexpr milliseconds timeout{8000};
  for (const LivenessRow& row : liveness_rows) {
    SCOPED_TRACE(row.what);
    Liveness liveness;
    std::istringstream events(row.events);
    std::string event;
    for (int sent = 0, now = 0; events >> event >> sent >> now;) {
      if (event == "begin") liveness.begin(at(sent), at(now), timeout);
      if (event == "ack") liveness.acknowledged(at(sent), at(now));
      if (event == "end") liveness.end();
    }
    const bool stands = row.valid_from >= 0;
    const TimePoint valid_until = stands ? lease_valid_until(at(row.valid_from), timeout) : TimePoint::min();
    const TimePoint expires_at = row.expires_at == 0 ? valid_until : at(row.expires_at);
    EXPECT_EQ(liveness.valid_until(), valid_until);
    EXPECT_EQ(liveness.expires_at(), expires_at);
    EXPECT_TRUE(liveness.is_over(expires_at));
    EXPECT_EQ(liveness.timeout(), stands ? timeout : milliseconds(0));
    if (!stands) continue;
    EXPECT_FALSE(liveness.is_over(expires_at - std::chrono::nanoseconds(1)));
    EXPECT_EQ(liveness.probe_at(), at(row.probe_at));
  }
}

}  // namespace

}  // namespace dlock::zookeeper
