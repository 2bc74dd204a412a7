#include "cli/lease_watch.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace dlock::cli {
namespace {

using namespace std::chrono_literals;
using Action = LeaseWatch::Action;
using Time = std::chrono::nanoseconds;  // since the lease was granted

constexpr Time never = Time::max();
constexpr Action none = Action::none;
constexpr Action terminate = Action::terminate;
constexpr Action kill = Action::kill;

// A look at the lease, and what the watch says.
struct Look {
  Time at;
  Time valid_until;
  bool lost;
  Action action;
  std::optional<Time> wake = std::nullopt;
  std::optional<Time> deadline = std::nullopt;
};

struct LeaseRow {
  const char* name;
  Time grace;
  Time lease;
  std::vector<Look> looks;
};
void PrintTo(const LeaseRow& row, std::ostream* out) {
  *out << row.name;
}

TimePoint point(Time time) {
  return time == never ? TimePoint::max() : TimePoint(24h) + time;
}

class LeaseWatchTest : public testing::TestWithParam<LeaseRow> {};

TEST_P(LeaseWatchTest, Step_ReturnsActionAndTimes) {
  const auto& [name, grace, lease, looks] = GetParam();
  LeaseWatch watch(grace, point(0s), point(lease));
  for (const Look& look : looks) {
    SCOPED_TRACE(look.at.count());
    const auto step = watch.step(point(look.at), point(look.valid_until), look.lost);
    EXPECT_EQ(step.action, look.action);
    if (look.wake) {
      EXPECT_EQ(step.wake, point(*look.wake));
    }
    if (look.deadline) {
      EXPECT_EQ(step.deadline, point(*look.deadline));
    }
  }
}

const std::vector<LeaseRow> lease_rows{
    {"EndlessLease_DoesNothing", 5s, never, {{1000h, never, false, none, never, never}}},
    {"LongLease_WakesWhenTheNoticeBegins", 5s, 30s, {{0s, 30s, false, none, 25s, 30s}}},
    {"Renewal_MovesTheNextStep", 5s, 30s, {{0s, 30s, false, none}, {25s, 50s, false, none, 45s, 50s}}},
    {"EndingLease_Terminates", 5s, 30s, {{25s, 30s, false, terminate, 30s, 30s}}},
    {"EndOfTheLease_Kills",
     5s,
     30s,
     {{26s, 30s, false, terminate}, {30s - 1ns, 30s, false, none}, {30s, 30s, true, kill}}},
    {"AfterTheKill_DoesNothing", 5s, 30s, {{31s, 30s, true, kill}, {32s, 30s, true, none, never, 30s}}},
    {"ShortLease_LimitsTheNoticeToAThird", 10s, 6s, {{4s - 1ns, 6s, false, none}, {4s, 6s, false, terminate}}},
    {"LateRenewal_DoesNotRevokeTheTermination",
     5s,
     30s,
     {{25s, 30s, false, terminate}, {26s, 56s, false, none, 30s}, {30s, 56s, false, kill}}},
    {"LostLock_TerminatesAndKillsAfterTheGrace",
     5s,
     never,
     {{7s, never, true, terminate, 12s, 12s}, {12s - 1ns, never, true, none}, {12s, never, true, kill}}},
    {"LostLock_LimitsTheGraceToTheLease", 5s, 30s, {{20s, 22s, true, terminate, 22s}}},
    {"ExpiredLease_KillsAtOnce", 5s, 30s, {{300s, 30s, false, kill}}},
    {"NoGrace_KillsAtOnce", 0s, never, {{0s, never, true, kill}}},
    {"EndlessGrace_HasNoDeadline", forever.value(), never, {{0s, never, true, terminate, never}}},
    {"EndlessGrace_EndsWithTheLease", forever.value(), 30s, {{0s, 30s, true, terminate, 30s}}},
    {"NegativeGrace_CountsAsNone", -1s, 30s, {{0s, 30s, false, none, 30s}}},
};

INSTANTIATE_TEST_SUITE_P(Of, LeaseWatchTest, testing::ValuesIn(lease_rows),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

}  // namespace
}  // namespace dlock::cli
