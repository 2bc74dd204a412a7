#include "bench/report/units.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/bench/report/sample.hpp"

namespace dlock::bench {
namespace {

struct QuantityRow {
  double value;
  const char* unit;
  const char* text;
};

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

const QuantityRow quantity_rows[] = {
    {0, "", "0"},
    {0.00002, "", "2e-05"},
    {0.0123, "", "0.012"},
    {1, "", "1.00"},
    {9.996, "", "10.0"},
    {12.34, "", "12.3"},
    {-12.34, "", "-12.3"},
    {99.96, "", "100"},
    {1234.5, "", "1234"},
    {0.5, "us", "0.500 µs"},
    {999.4, "us", "999 µs"},
    {999.7, "us", "1.00 ms"},
    {1304, "us", "1.30 ms"},
    {2e6, "us", "2.00 s"},
    {3600e6, "us", "3600 s"},
    {512, "1/s", "512 /s"},
    {84'213, "1/s", "84.2 k/s"},
    {1.4e6, "1/s", "1.40 M/s"},
    {1430, "B", "1.43 kB"},
    {12, "%", "12.0 %"},
    {nan, "us", "-"},
    {std::numeric_limits<double>::infinity(), "", "-"},
};

TEST(Units, QuantitiesHaveThreeDigitsAndTheUnitThatFits) {
  for (const auto& [value, unit, text] : quantity_rows) EXPECT_EQ(quantity_text(value, unit), text);
  EXPECT_EQ(round_text(200, "us"), "200 µs");
  EXPECT_EQ(round_text(1000, "us"), "1 ms");
  EXPECT_EQ(round_text(0.5, "us"), "0.5 µs");
}

TEST(Units, ArePlainForTerminals) {
  EXPECT_EQ(plain_units("p50 45.1 µs  p99 1.30 ms  max 9.00 µs"), "p50 45.1 us  p99 1.30 ms  max 9.00 us");
}

TEST(Units, Counts) {
  EXPECT_EQ(count_text(1, "waiter"), "1 waiter");
  EXPECT_EQ(count_text(256, "waiter"), "256 waiters");
  EXPECT_EQ(count_text(1000, ""), "1000");
  EXPECT_EQ(count_text(10'000, "caller"), "10 000 callers");
  EXPECT_EQ(count_text(1'234'567, ""), "1 234 567");
}

TEST(Units, Durations) {
  EXPECT_EQ(duration_text(59.4), "59 s");
  EXPECT_EQ(duration_text(1085), "18 min 5 s");
  EXPECT_EQ(duration_text(7260), "2 h 1 min");
}

TEST(Units, NamesOfMeasurementsHaveTheirParameters) {
  EXPECT_EQ(name_of(latency("file", {})), "latency");
  EXPECT_EQ(name_of(latency("file", {}, Who::by_hand)), "latency, by hand");
  const std::pair<Parameters, const char*> rows[] = {
      {{{"callers", 64}}, "x, 64 callers"},
      {{{"outstanding", 10'000}}, "x, 10 000 under way"},
      {{{"round_trip_ms", 5}, {"waiters", 8}}, "x, 5 ms round trip, 8 waiters"},
      {{{"callers", 64}, {"names", 1000}}, "x, 64 callers, 1000 names"},
      {{{"callers", 8}, {"reads", 95}}, "x, 8 callers, 95 % reads"},
      {{{"readers", 8}}, "x, a writer among 8 readers"},
      {{{"callers", 64}, {"permits", 4}}, "x, 64 callers, 4 permits"},
      {{{"held", 1000}}, "x, 1000 names held"},
      {{{"rate", 100}}, "x, 100 arrivals/s"},
      {{{"colour", 3}}, "x, colour 3"},
  };
  for (const auto& [parameters, name] : rows) EXPECT_EQ(name_of("x", parameters), name);
}

TEST(Units, TextsForTerminalsHaveNoControlCharacters) {
  EXPECT_EQ(printable("a\x1b[2Jb\nc\x7f"), "a [2Jb c ");
  EXPECT_EQ(printable("a\xC2\x9B"
                      "2Jb\xC2\xA7"),
            "a 2Jb\xC2\xA7");
}

}  // namespace
}  // namespace dlock::bench
