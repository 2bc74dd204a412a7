#include "util/duration_text.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include <dlock/spi/url.hpp>

namespace dlock {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

TEST(ParseDuration, AcceptsANumberWithAUnit) {
  const std::pair<const char*, nanoseconds> good[] = {
      {"0", 0ns},
      {"0s", 0ns},
      {"250ms", 250ms},
      {"1.5s", 1500ms},
      {"2m", 2min},
      {"12h", 12h},
      {"1d", 24h},
      {"7ns", 7ns},
      {"3us", 3us},
      {"0.25s", 250ms},
      {"007s", 7s},
      {"9223372036854775807ns", nanoseconds::max()},
      {"9223372036s", 9223372036s},
      {"0.5ns", 1ns},
      {"1.000000001s", 1s + 1ns},
  };
  for (const auto& [text, value] : good) {
    const auto parsed = parse_duration(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(parsed->value(), value) << text;
  }
}

TEST(ParseDuration, ForeverHasTwoNames) {
  EXPECT_EQ(parse_duration("forever"), forever);
  EXPECT_EQ(parse_duration("inf"), forever);
}

TEST(ParseDuration, RefusesEverythingElse) {
  for (const char* text : {"",
                           " ",
                           "5",
                           "1.5",
                           "5 sec",
                           "5 s",
                           " 5s",
                           "5s ",
                           "5sec",
                           "5S",
                           "s",
                           ".5s",
                           ".",
                           "..",
                           "1..5s",
                           "1.2.3s",
                           "-1s",
                           "+1s",
                           "-0",
                           "nan",
                           "NaN",
                           "infinity",
                           "-inf",
                           "1e3s",
                           "1e400",
                           "0x10s",
                           "1,5s",
                           "5s5s",
                           "9223372036854775808ns",
                           "9223372037s",
                           "106752d",
                           "99999999999999999999999d",
                           "1e400s",
                           "99999999999999999999999.5d",
                           "5\xc2\xb5s"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << '"' << text << '"';
  }
  EXPECT_EQ(parse_duration(std::string_view("5s\0", 3)), std::nullopt);
  EXPECT_EQ(parse_duration(std::string(100000, '9') + "s"), std::nullopt);
  EXPECT_EQ(parse_duration(std::string(100000, '9') + ".5s"), std::nullopt);
}

TEST(ToText, UsesTheLargestUnitThatIsExact) {
  EXPECT_EQ(util::to_text(0ns), "0");
  EXPECT_EQ(util::to_text(30s), "30s");
  EXPECT_EQ(util::to_text(90s), "90s");
  EXPECT_EQ(util::to_text(1500ms), "1500ms");
  EXPECT_EQ(util::to_text(2min), "2m");
  EXPECT_EQ(util::to_text(24h), "1d");
  EXPECT_EQ(util::to_text(1ns), "1ns");
  EXPECT_EQ(util::to_text(-5s), "-5s");
  EXPECT_EQ(util::to_text(forever.value()), "forever");
  EXPECT_EQ(util::to_text(nanoseconds::min()), "-9223372036854775808ns");
}

TEST(ToText, IsReadBackByParseDuration) {
  for (const nanoseconds d : {nanoseconds(0), nanoseconds(1), nanoseconds(1500ms), nanoseconds(30s), nanoseconds(36h),
                              nanoseconds(123456789), nanoseconds::max() - 1ns, nanoseconds::max()}) {
    EXPECT_EQ(parse_duration(util::to_text(d)), Duration(d)) << d.count();
  }
}

}  // namespace
}  // namespace dlock
