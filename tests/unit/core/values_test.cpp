// The values of the public interface: durations, clocks, tokens, errors, capabilities. The log of events.
#include <gtest/gtest.h>
#include <time.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <ratio>
#include <set>
#include <sstream>
#include <streambuf>
#include <string>
#include <system_error>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include <dlock/capabilities.hpp>
#include <dlock/clock.hpp>
#include <dlock/duration.hpp>
#include <dlock/error.hpp>
#include <dlock/log.hpp>
#include <dlock/spi/backend.hpp>
#include <dlock/token.hpp>

namespace dlock {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

// --- Durations -------------------------------------------------------------------------------------------------------

template <class Rep, class Period = std::ratio<1>>
using In = std::chrono::duration<Rep, Period>;

static_assert(Duration(std::chrono::hours::max()) == forever);
static_assert(Duration(5s).value() == 5s && Duration().value() == 0ns);
static_assert(Duration(1s) < Duration(1min) && Duration(60s) == Duration(1min));
static_assert(forever > Duration(std::chrono::years(100)));
static_assert(Duration(In<std::int64_t, std::ratio<1, 60>>(60)).value() == 1s);

// Each type is converted exactly, or saturates.
constexpr bool is(Duration duration, nanoseconds value) {
  return duration.value() == value;
}
constexpr nanoseconds most = nanoseconds::max();
constexpr nanoseconds least = nanoseconds::min();
constexpr auto last = std::chrono::duration_cast<std::chrono::seconds>(most);
static_assert(is(1ns, 1ns) && is(1us, 1us) && is(1ms, 1ms) && is(1min, 1min) && is(-1h, -1h) &&
              is(std::chrono::weeks(1), 168h) && is(std::chrono::months(1), std::chrono::months(1)) &&
              is(std::chrono::years(1), std::chrono::years(1)) && is(std::chrono::years(300), most) &&
              is(last, nanoseconds(last)) && is(last + 1s, most) && is(-last, nanoseconds(-last)) &&
              is(-last - 1s, least));
using UnsignedNanoseconds = In<std::uint64_t, std::nano>;
static_assert(is(In<std::uint64_t>::max(), most) && is(UnsignedNanoseconds::max(), most) &&
                  is(UnsignedNanoseconds(std::uint64_t{1} << 63U), most) && is(In<std::uint64_t>(5), 5s) &&
                  is(In<std::uint32_t>::max(), std::chrono::seconds(4294967295)),
              "unsigned counts never turn negative");
constexpr double infinity = std::numeric_limits<double>::infinity();
static_assert(is(In<double>(1.5), 1500ms) && is(In<double>(-0.25), -250ms) && is(In<double>(1e300), most) &&
                  is(In<double>(-1e300), least) && is(In<double>(infinity), most) && is(In<double>(-infinity), least) &&
                  is(In<float, std::ratio<3600>>(2.0F), 2h) && is(In<float, std::ratio<3600>>::max(), most),
              "what does not fit is the most or the least");
using Picoseconds = In<std::int64_t, std::pico>;
using Frames = In<std::int64_t, std::ratio<1, 60>>;
using Samples = In<int, std::ratio<1, 44100>>;
static_assert(is(Picoseconds(1999), 1ns) && is(Picoseconds::max(), nanoseconds(most.count() / 1000)) &&
                  is(Frames(1), 16666666ns) && is(Frames(-1), -16666666ns) && is(Samples(44100), 1s) &&
                  is(Samples(-44101), -1s - 22675ns) &&
                  is(In<std::int64_t, std::ratio<1, 3>>(3 * 9223372036), 9223372036s),
              "what is less than a nanosecond is cut off");

TEST(Duration, NotANumber_IsTheMostNegative) {
  EXPECT_TRUE(is(In<double>(std::numeric_limits<double>::quiet_NaN()), least));
}

TEST(SaturatingAdd, Sum_StopsAtBothEnds) {
  constexpr TimePoint zero{};
  constexpr TimePoint first = TimePoint::min();
  constexpr TimePoint end = TimePoint::max();
  EXPECT_EQ(saturating_add(zero, 5s), zero + 5s);
  EXPECT_EQ(saturating_add(zero, -5s), zero - 5s);
  EXPECT_EQ(saturating_add(zero + 1ns, most), end);
  EXPECT_EQ(saturating_add(end, 1ns), end);
  EXPECT_EQ(saturating_add(end, -1ns), end - 1ns);
  EXPECT_EQ(saturating_add(first, most), first + most);
  EXPECT_EQ(saturating_add(first, -1ns), first);
  for (const TimePoint at : {first, zero - 1ns, zero}) EXPECT_EQ(saturating_add(at, least), first);
}

// Shows: known-end
TEST(LeaseValidUntil, End_HasAMarginForClockDrift) {
  constexpr TimePoint sent{std::chrono::hours(1)};
  EXPECT_EQ(lease_valid_until(sent, 30s), sent + 30s - 300ms - 2ms);
  EXPECT_EQ(lease_valid_until(sent, 10ms), sent + 7900us);
  EXPECT_LT(lease_valid_until(sent, 1ms), sent) << "too short to be of any use";
  EXPECT_EQ(lease_valid_until(TimePoint::max() - 1s, 1h), TimePoint::max());
}

TEST(TimeLeft, FarDeadline_Saturates) {
  using Point = std::chrono::steady_clock::time_point;
  using Hours = std::chrono::time_point<std::chrono::steady_clock, In<std::int64_t, std::ratio<3600>>>;
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

// --- Clocks ----------------------------------------------------------------------------------------------------------

// Shows: known-end
TEST(LeaseClock, Clock_IsBoottimeAndCountsSuspend) {
  const auto read = [] {
    timespec t{};
    clock_gettime(CLOCK_BOOTTIME, &t);
    return TimePoint(std::chrono::seconds(t.tv_sec) + nanoseconds(t.tv_nsec));
  };
  const TimePoint before = read();
  const TimePoint now = LeaseClock::now();
  const TimePoint through_interface = boottime_clock()->now();
  const TimePoint after = read();
  EXPECT_LE(before, now);
  EXPECT_LE(now, through_interface);
  EXPECT_LE(through_interface, after);
  EXPECT_TRUE(boottime_clock()->runs_by_itself());
}

TEST(ManualClock, Clock_MovesForwardOnlyAndSaturates) {
  ManualClock clock;
  const auto wall = clock.wall_now();
  const TimePoint start = clock.now();
  EXPECT_EQ(start, TimePoint(24h));
  EXPECT_FALSE(clock.runs_by_itself());
  clock.advance(5s);
  EXPECT_EQ(clock.now(), start + 5s);
  clock.advance(-5s);
  clock.advance(0s);
  EXPECT_EQ(clock.now(), start + 5s);
  EXPECT_EQ(clock.wall_now(), wall + 5s);
  clock.step_wall(-1h);
  EXPECT_EQ(clock.wall_now(), wall + 5s - 1h);
  EXPECT_EQ(clock.now(), start + 5s);
  for (int i = 0; i < 3; ++i) {
    clock.advance(nanoseconds::max());
    EXPECT_EQ(clock.now(), TimePoint::max());
    clock.step_wall(nanoseconds::min());
  }
}

struct Listener final : ClockListener {
  std::uint64_t clock_moved() noexcept override {
    if (calls++ < busy_for) ++ran;
    if (clock != nullptr) seen = clock->now();
    return ran;
  }
  const ManualClock* clock = nullptr;
  int calls = 0;
  int busy_for = 0;
  std::uint64_t ran = 0;
  TimePoint seen;
};

TEST(ManualClock, Listeners_AreNotifiedUntilAllAreIdle) {
  ManualClock clock;
  const auto idle = std::make_shared<Listener>();
  const auto busy = std::make_shared<Listener>();
  auto gone = std::make_shared<Listener>();
  idle->clock = &clock;
  for (const auto& listener : {idle, busy, gone}) clock.add_listener(listener);
  gone.reset();
  clock.advance(5s);
  EXPECT_EQ(idle->calls, 1);
  EXPECT_EQ(idle->seen, TimePoint(24h) + 5s);
  clock.advance(-1s);
  EXPECT_EQ(idle->calls, 1);
  busy->busy_for = 1 + 3;
  clock.advance(1s);
  EXPECT_EQ(busy->calls, 1 + 4);
  EXPECT_EQ(idle->calls, 1 + 4) << "the busy one may have given it work";
  busy->busy_for = std::numeric_limits<int>::max();
  clock.advance(1s);  // returns all the same
  EXPECT_GT(busy->calls, 1 + 4 + 1);
}

TEST(ManualClock, SeveralThreads_MayMoveIt) {
  ManualClock clock;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&clock] {
        for (int n = 0; n < 1000; ++n) {
          clock.advance(1ns);
          (void)clock.now();
        }
      });
    }
  }
  EXPECT_EQ(clock.now(), TimePoint(24h) + 4000ns);
}

// --- Tokens and owners -----------------------------------------------------------------------------------------------

static_assert(FencingToken().value() == 0 && FencingToken(2) > FencingToken(1));
static_assert(std::uint64_t{FencingToken(42)} == 42U && FencingToken(42) == FencingToken(42));
static_assert(OwnerId(1, 2) == OwnerId(1, 2) && OwnerId(1, 2) != OwnerId(2, 1));

TEST(OwnerId, Text_Is32HexadecimalDigits) {
  constexpr auto ones = std::numeric_limits<std::uint64_t>::max();
  const std::vector<std::pair<OwnerId, std::string>> rows = {
      {OwnerId(), std::string(32, '0')},
      {OwnerId(0x0123456789abcdefU, 0xfedcba9876543210U), "0123456789abcdeffedcba9876543210"},
      {OwnerId(1, ones), "0000000000000001ffffffffffffffff"}};
  for (const auto& [id, text] : rows) {
    EXPECT_EQ(id.to_string(), text);
    EXPECT_EQ(OwnerId::parse(text), id);
    EXPECT_TRUE((std::unordered_set<OwnerId>{OwnerId(7, 7), id}.contains(id)));
  }
  const std::string good = OwnerId(1, 2).to_string();
  for (const std::string& bad :
       {std::string(), good.substr(1), good + "0", " " + good.substr(1), "0x" + good.substr(2), "-" + good.substr(1),
        std::string(32, 'g'), std::string(32, 'A'), std::string(31, '0') + '\0', std::string(31, '0') + "\xff"}) {
    EXPECT_EQ(OwnerId::parse(bad), std::nullopt) << bad;
  }
}

// --- Errors ----------------------------------------------------------------------------------------------------------

TEST(Error, Code_HasAMessageAndAStandardCondition) {
  const std::error_condition none;
  const std::vector<std::pair<errc, std::error_condition>> rows = {
      {errc::timed_out, std::errc::timed_out},
      {errc::cancelled, std::errc::operation_canceled},
      {errc::lost, none},
      {errc::not_owner, std::errc::operation_not_permitted},
      {errc::unavailable, none},
      {errc::ambiguous, none},
      {errc::access_denied, std::errc::permission_denied},
      {errc::invalid_argument, std::errc::invalid_argument},
      {errc::unsupported, std::errc::not_supported},
      {errc::closed, none},
      {errc::protocol, std::errc::protocol_error}};
  std::set<std::string> messages{""};
  for (const auto& [e, condition] : rows) {
    const std::error_code code = e;
    EXPECT_STREQ(code.category().name(), "dlock");
    EXPECT_TRUE(code);
    EXPECT_TRUE(messages.insert(code.message()).second) << code.message();
    if (condition) {
      EXPECT_EQ(code, condition);
      continue;
    }
    EXPECT_EQ(&code.default_error_condition().category(), &error_category());
    EXPECT_EQ(code, code.default_error_condition());
    EXPECT_EQ(code == make_error_code(errc::lost).default_error_condition(), e == errc::lost);
  }
  EXPECT_EQ(std::error_code(999, error_category()).message(), "unknown error 999");
}

TEST(Error, What_HasTheDetailAndTheMessage) {
  const Error error(errc::unavailable, "redis at localhost: connection refused");
  EXPECT_STREQ(error.what(), "redis at localhost: connection refused: the lock service is unavailable");
  EXPECT_EQ(error.detail(), "redis at localhost: connection refused");
  EXPECT_EQ(error.code(), errc::unavailable);
  EXPECT_STREQ(Error(errc::lost).what(), "the lock was lost");
  EXPECT_EQ(Error(errc::lost).detail(), "");
  const Error other(Failure{std::make_error_code(std::errc::no_space_on_device), "/run/lock"});
  EXPECT_EQ(other.code(), std::errc::no_space_on_device);
  EXPECT_EQ(other.detail(), "/run/lock");
  EXPECT_THROW(throw Error(errc::closed), std::system_error);
}

// --- Capabilities ----------------------------------------------------------------------------------------------------

TEST(Capabilities, EachValue_HasItsName) {
  const auto names = [](auto... values) { return ((std::string(to_string(values)) + ' ') + ...); };
  EXPECT_EQ(names(Scope::process, Scope::machine, Scope::network, Scope(99)), "process machine network unknown ");
  EXPECT_EQ(names(LeaseKind::per_lock, LeaseKind::session, LeaseKind::process, LeaseKind(99)),
            "per_lock session process unknown ");
  EXPECT_EQ(
      names(FencingDurability::none, FencingDurability::wall_clock, FencingDurability::service, FencingDurability(99)),
      "none wall_clock service unknown ");
}

// --- The log ---------------------------------------------------------------------------------------------------------

const Failure silent{errc::unavailable, "h:1: no answer"};

TEST(LogTest, EachEvent_IsALine) {
  std::ostringstream stream;
  const auto log = log_to(stream);
  log->acquired({"job", FencingToken(7), 412us});
  log->renewed({"job", FencingToken(7), 1ms});
  log->released({"job", FencingToken(7), 1h + 1500ms, true});
  log->released({"job", FencingToken(7), 2s, false});
  log->lost({"job", FencingToken(7), {errc::lost, "taken away"}});
  log->connection({ConnectionEvent::State::connected, {}});
  log->connection({ConnectionEvent::State::reconnecting, silent});
  log->warning({"job", silent});
  log->warning({"", {errc::unsupported, {}}});
  EXPECT_EQ(stream.str(),
            "dlock: acquired \"job\", token 7, after 0.000412 s\n"
            "dlock: renewed \"job\", token 7, answered after 0.001000 s\n"
            "dlock: released \"job\", token 7, after 3601.500000 s\n"
            "dlock: released \"job\", token 7, after 2.000000 s, unconfirmed\n"
            "dlock: lost \"job\", token 7: taken away: the lock was lost\n"
            "dlock: connected\n"
            "dlock: reconnecting: h:1: no answer: the lock service is unavailable\n"
            "dlock: warning about \"job\": h:1: no answer: the lock service is unavailable\n"
            "dlock: warning: not supported by this backend\n");
}

TEST(LogTest, NamesAndReasons_CannotForgeLines) {
  std::ostringstream stream;
  const auto log = log_to(stream);
  log->lost({"a\nb", FencingToken(1), {errc::lost, "\033[2Jgone\ndlock: connected"}});
  log->warning({"\u202ejob\u202c", {errc::protocol, "\r"}});
  log->connection({ConnectionEvent::State::reconnecting, {errc::unavailable, "x\ny"}});
  EXPECT_EQ(stream.str(),
            "dlock: lost \"a\\x0ab\", token 1: \\x1b[2Jgone\\x0adlock: connected: the lock was lost\n"
            "dlock: warning about \"\\xe2\\x80\\xaejob\\xe2\\x80\\xac\": \\x0d: unexpected data from the lock service\n"
            "dlock: reconnecting: x\\x0ay: the lock service is unavailable\n");
}

// Counts flushes, and refuses characters when it is told to.
class Sink final : public std::stringbuf {
 public:
  int flushes = 0;
  bool broken = false;

 protected:
  int sync() override {
    ++flushes;
    return broken ? -1 : 0;
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    return broken ? 0 : std::stringbuf::xsputn(text, size);
  }
};

TEST(LogTest, EachLine_IsFlushedAndErrorsAreIgnored) {
  Sink sink;
  std::ostream stream(&sink);
  stream.exceptions(std::ios::badbit | std::ios::failbit);
  const auto log = log_to(stream);
  sink.broken = true;
  EXPECT_NO_THROW(log->connection({ConnectionEvent::State::connected, {}}));
  sink.broken = false;
  sink.flushes = 0;
  for (int i = 0; i < 2; ++i) log->connection({ConnectionEvent::State::connected, {}});
  EXPECT_EQ(sink.str(), "dlock: connected\ndlock: connected\n");
  EXPECT_EQ(sink.flushes, 2);
}

TEST(LogTest, ObserversOfOneStream_WriteWholeLines) {
  std::ostringstream stream;
  {
    std::vector<std::jthread> clients;
    for (char client = 'a'; client < 'e'; ++client) {
      clients.emplace_back([&stream, name = std::string(50, client)] {
        const auto log = log_to(stream);
        for (int i = 0; i < 500; ++i) log->renewed({name, FencingToken(1), 1ms});
      });
    }
  }
  std::map<std::string, int> lines;
  std::istringstream written(stream.str());
  for (std::string line; std::getline(written, line);) ++lines[line];
  ASSERT_EQ(lines.size(), 4U);
  for (const auto& [line, times] : lines) EXPECT_EQ(times, 500) << line;
}

}  // namespace
}  // namespace dlock
