#include "core/client/acquire_deadline.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace dlock::detail {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{std::chrono::hours(1)};

TEST(AcquireDeadline, ASilentServiceIsGivenTheResponseTimeout) {
  AcquireDeadline deadline(kStart, 0s, 2s);
  EXPECT_EQ(deadline.wake(), kStart + 2s);
  EXPECT_FALSE(deadline.over(kStart + 2s - 1ns));
  EXPECT_TRUE(deadline.over(kStart + 2s));
  EXPECT_EQ(deadline.verdict("x").code, errc::unavailable);
  EXPECT_FALSE(deadline.was_busy());
}

TEST(AcquireDeadline, AWaitLongerThanTheResponseTimeoutEndsAtItsOwnDeadline) {
  AcquireDeadline deadline(kStart, 5s, 2s);
  EXPECT_EQ(deadline.wake(), kStart + 5s);
  EXPECT_FALSE(deadline.over(kStart + 2s));
  EXPECT_TRUE(deadline.over(kStart + 5s));
}

TEST(AcquireDeadline, AfterTheFirstAnswerOnlyTheWaitCounts) {
  AcquireDeadline deadline(kStart, 500ms, 2s);
  EXPECT_EQ(deadline.wake(), kStart + 2s);
  deadline.busy();
  EXPECT_EQ(deadline.wake(), kStart + 500ms);
  EXPECT_EQ(deadline.verdict("x").code, errc::timed_out);
  EXPECT_TRUE(deadline.was_busy());
}

TEST(AcquireDeadline, TheLastNewsDecidesWhatIsReported) {
  AcquireDeadline deadline(kStart, 1s, 2s);
  deadline.busy();
  (void)deadline.unreachable({errc::ambiguous, "the line went dead"});
  EXPECT_EQ(deadline.verdict("x").code, errc::ambiguous);
  EXPECT_EQ(deadline.verdict("x").detail, "the line went dead");
  EXPECT_FALSE(deadline.was_busy());
  deadline.busy();
  EXPECT_EQ(deadline.verdict("x").code, errc::timed_out);
}

TEST(AcquireDeadline, TellsWhatIsNewFromWhatIsKnown) {
  AcquireDeadline deadline(kStart, 1s, 2s);
  EXPECT_TRUE(deadline.unreachable({errc::unavailable, "refused"}));
  EXPECT_FALSE(deadline.unreachable({errc::unavailable, "refused"}));
  EXPECT_TRUE(deadline.unreachable({errc::unavailable, "reset"}));
  EXPECT_TRUE(deadline.unreachable({errc::ambiguous, "reset"}));
  deadline.busy();
  EXPECT_TRUE(deadline.unreachable({errc::ambiguous, "reset"})) << "it had recovered in between";
}

TEST(AcquireDeadline, TheVerdictNamesTheLock) {
  AcquireDeadline deadline(kStart, 1s, 2s);
  EXPECT_NE(deadline.verdict("orders/42").detail.find("orders/42"), std::string::npos);
  deadline.busy();
  EXPECT_NE(deadline.verdict("orders/42").detail.find("orders/42"), std::string::npos);
}

TEST(AcquireDeadline, AnUnlimitedWaitNeverEnds) {
  AcquireDeadline deadline(kStart, forever.value(), 2s);
  EXPECT_EQ(deadline.wake(), TimePoint::max());
  deadline.busy();
  EXPECT_EQ(deadline.wake(), TimePoint::max());
  EXPECT_FALSE(deadline.over(TimePoint::max() - 1ns));
}

TEST(AcquireDeadline, NothingOverflows) {
  const AcquireDeadline late(TimePoint::max() - 1ns, 1h, forever.value());
  EXPECT_EQ(late.wake(), TimePoint::max());
}

}  // namespace
}  // namespace dlock::detail
