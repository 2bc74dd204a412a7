#include <dlock/duration.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <ratio>

#include <dlock/clock.hpp>
#include <dlock/spi/backend.hpp>

namespace dlock {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

static_assert(Duration(std::chrono::hours::max()) == forever);
static_assert(Duration(5s).value() == 5s);
static_assert(Duration().value() == 0ns);

template <class D>
void expect_saturates() {
  EXPECT_EQ(Duration(D::max()).value(), nanoseconds::max());
  EXPECT_EQ(Duration(D::min()).value(), nanoseconds::min());
  EXPECT_EQ(Duration(D::zero()).value(), 0ns);
}

TEST(Duration, CoarseDurationsSaturateAtBothEnds) {
  expect_saturates<std::chrono::microseconds>();
  expect_saturates<std::chrono::milliseconds>();
  expect_saturates<std::chrono::seconds>();
  expect_saturates<std::chrono::duration<std::int64_t, std::ratio<60>>>();
  expect_saturates<std::chrono::duration<std::int64_t, std::ratio<3600>>>();
  expect_saturates<std::chrono::duration<std::int64_t, std::ratio<86400>>>();
  expect_saturates<std::chrono::nanoseconds>();
}

TEST(Duration, EveryStandardTypeConvertsExactlyWithinRange) {
  EXPECT_EQ(Duration(1ns).value(), 1ns);
  EXPECT_EQ(Duration(1us).value(), 1us);
  EXPECT_EQ(Duration(1ms).value(), 1ms);
  EXPECT_EQ(Duration(1min).value(), 1min);
  EXPECT_EQ(Duration(1h).value(), 1h);
  EXPECT_EQ(Duration(std::chrono::days(1)).value(), 24h);
  EXPECT_EQ(Duration(std::chrono::weeks(1)).value(), 168h);
  EXPECT_EQ(Duration(std::chrono::months(1)).value(), std::chrono::months(1));
  EXPECT_EQ(Duration(std::chrono::years(1)).value(), std::chrono::years(1));
  EXPECT_EQ(Duration(std::chrono::years(300)), forever);
  EXPECT_EQ(Duration(-1h).value(), -1h);
}

TEST(Duration, TheLastValueThatFitsDoesNotSaturate) {
  const auto last = std::chrono::duration_cast<std::chrono::seconds>(nanoseconds::max());
  EXPECT_EQ(Duration(last).value(), nanoseconds(last));
  EXPECT_EQ(Duration(last + 1s), forever);
  EXPECT_EQ(Duration(-last).value(), nanoseconds(-last));
  EXPECT_EQ(Duration(-last - 1s).value(), nanoseconds::min());
}

TEST(Duration, UnsignedCountsNeverTurnNegative) {
  using UnsignedSeconds = std::chrono::duration<std::uint64_t>;
  using UnsignedNanoseconds = std::chrono::duration<std::uint64_t, std::nano>;
  using ShortSeconds = std::chrono::duration<std::uint32_t>;
  EXPECT_EQ(Duration(UnsignedSeconds::max()), forever);
  EXPECT_EQ(Duration(UnsignedNanoseconds::max()), forever);
  EXPECT_EQ(Duration(UnsignedNanoseconds(std::uint64_t{1} << 63U)), forever);
  EXPECT_EQ(Duration(UnsignedSeconds(5)).value(), 5s);
  EXPECT_EQ(Duration(ShortSeconds::max()).value(), std::chrono::seconds(4294967295));
}

TEST(Duration, FloatingPointSaturatesAndNaNIsTheMostNegative) {
  using Seconds = std::chrono::duration<double>;
  using FloatHours = std::chrono::duration<float, std::ratio<3600>>;
  EXPECT_EQ(Duration(Seconds(1.5)).value(), 1500ms);
  EXPECT_EQ(Duration(Seconds(-0.25)).value(), -250ms);
  EXPECT_EQ(Duration(Seconds(1e300)), forever);
  EXPECT_EQ(Duration(Seconds(-1e300)).value(), nanoseconds::min());
  EXPECT_EQ(Duration(Seconds(std::numeric_limits<double>::infinity())), forever);
  EXPECT_EQ(Duration(Seconds(-std::numeric_limits<double>::infinity())).value(), nanoseconds::min());
  EXPECT_EQ(Duration(Seconds(std::numeric_limits<double>::quiet_NaN())).value(), nanoseconds::min());
  EXPECT_EQ(Duration(FloatHours(2.0F)).value(), 2h);
  EXPECT_EQ(Duration(FloatHours(std::numeric_limits<float>::max())), forever);
}

TEST(Duration, FinerThanNanosecondsIsCutOff) {
  using Picoseconds = std::chrono::duration<std::int64_t, std::pico>;
  EXPECT_EQ(Duration(Picoseconds(1999)).value(), 1ns);
  EXPECT_EQ(Duration(Picoseconds::max()).value(), nanoseconds(std::numeric_limits<std::int64_t>::max() / 1000));
}

TEST(Duration, PeriodsThatAreNoWholeNumberOfNanosecondsConvertToo) {
  using Frames = std::chrono::duration<std::int64_t, std::ratio<1, 60>>;
  using Samples = std::chrono::duration<int, std::ratio<1, 44100>>;
  using Thirds = std::chrono::duration<std::int64_t, std::ratio<1, 3>>;
  constexpr Duration one_second(Frames(60));
  EXPECT_EQ(one_second.value(), 1s);
  EXPECT_EQ(Duration(Frames(1)).value(), 16666666ns);
  EXPECT_EQ(Duration(Frames(-1)).value(), -16666666ns);
  EXPECT_EQ(Duration(Samples(44100)).value(), 1s);
  EXPECT_EQ(Duration(Samples(-44101)).value(), -1s - 22675ns);
  EXPECT_EQ(Duration(Thirds(3 * 9223372036)).value(), 9223372036s);
  expect_saturates<Frames>();
  expect_saturates<Thirds>();
}

TEST(Duration, Compares) {
  EXPECT_LT(Duration(1s), Duration(1min));
  EXPECT_EQ(Duration(60s), Duration(1min));
  EXPECT_GT(forever, Duration(std::chrono::years(100)));
}

TEST(SaturatingAdd, StopsAtBothEnds) {
  constexpr TimePoint zero{};
  EXPECT_EQ(saturating_add(zero, 5s), zero + 5s);
  EXPECT_EQ(saturating_add(zero, -5s), zero - 5s);
  EXPECT_EQ(saturating_add(zero + 1ns, nanoseconds::max()), TimePoint::max());
  EXPECT_EQ(saturating_add(TimePoint::max(), 1ns), TimePoint::max());
  EXPECT_EQ(saturating_add(TimePoint::max(), -1ns), TimePoint::max() - 1ns);
  EXPECT_EQ(saturating_add(TimePoint::min(), -1ns), TimePoint::min());
  EXPECT_EQ(saturating_add(TimePoint::min(), nanoseconds::min()), TimePoint::min());
  EXPECT_EQ(saturating_add(zero - 1ns, nanoseconds::min()), TimePoint::min());
  EXPECT_EQ(saturating_add(zero, nanoseconds::min()), TimePoint::min());
  EXPECT_EQ(saturating_add(TimePoint::min(), nanoseconds::max()), TimePoint::min() + nanoseconds::max());
}

TEST(LeaseValidUntil, LeavesAMarginForClocksThatDrift) {
  constexpr TimePoint sent{std::chrono::hours(1)};
  EXPECT_EQ(lease_valid_until(sent, 30s), sent + 30s - 300ms - 2ms);
  EXPECT_EQ(lease_valid_until(sent, 10ms), sent + 7900us);
  EXPECT_LT(lease_valid_until(sent, 1ms), sent) << "too short to be of any use";
  EXPECT_EQ(lease_valid_until(TimePoint::max() - 1s, 1h), TimePoint::max());
}

TEST(TimeLeft, SaturatesForDeadlinesThatNanosecondsCannotCount) {
  using Point = std::chrono::steady_clock::time_point;
  using Hours =
      std::chrono::time_point<std::chrono::steady_clock, std::chrono::duration<std::int64_t, std::ratio<3600>>>;
  const Point now(5s);
  EXPECT_EQ(detail::time_left(Point(7s), now), Duration(2s));
  EXPECT_EQ(detail::time_left(Point(5s), now), Duration());
  EXPECT_EQ(detail::time_left(Point(3s), now), Duration());
  EXPECT_EQ(detail::time_left(Point::max(), now), forever);
  EXPECT_EQ(detail::time_left(Hours::max(), now), forever);
  EXPECT_EQ(detail::time_left(Hours::min(), now), Duration());
  EXPECT_EQ(detail::time_left(Point::max() - 1s, Point(-5s)), forever);
  EXPECT_EQ(detail::time_left(Point(1s), Point(-5s)), Duration(6s));
}

}  // namespace
}  // namespace dlock
