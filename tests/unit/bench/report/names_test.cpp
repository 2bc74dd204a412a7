#include "bench/report/names.hpp"

#include <gtest/gtest.h>

#include "tests/unit/bench/report/sample.hpp"

namespace dlock::bench {
namespace {

TEST(Names, SayTheScenarioAndItsParameters) {
  EXPECT_EQ(name_of(latency("file", {})), "latency");
  EXPECT_EQ(name_of(latency("file", {}, Who::by_hand)), "latency, by hand");
  EXPECT_EQ(name_of(latency("file", {}, Who::same_requests)), "latency, same requests");
  EXPECT_EQ(name_of(throughput("file", 64, {})), "throughput, 64 callers");
  EXPECT_EQ(name_of(measurement("throughput", "file", {{"outstanding", 10'000}}, {})), "throughput, 10 000 under way");
  EXPECT_EQ(name_of(measurement("distance", "file", {{"round_trip_ms", 5}, {"waiters", 8}}, {})),
            "distance, 5 ms round trip, 8 waiters");
  EXPECT_EQ(name_of(measurement("mix", "file", {{"callers", 64}, {"names", 1000}, {"hold_us", 500}}, {})),
            "mix, 64 callers, held for 500 µs, 1000 names");
  EXPECT_EQ(name_of(sharing("file", 95, 8, {})), "sharing, 8 callers, 95 % reads");
  EXPECT_EQ(name_of(writers_wait("file", {}, {})), "sharing, a writer among 8 readers");
  EXPECT_EQ(name_of(permits("file", 4, 64, {})), "sharing, 64 callers, 4 permits");
  EXPECT_EQ(name_of(measurement("recovery", "file", {{"lease_ms", 0}}, {})), "recovery, no lease");
  EXPECT_EQ(name_of(measurement("recovery", "file", {{"lease_ms", 2000}}, {})), "recovery, lease of 2 s");
  EXPECT_EQ(name_of(measurement("latency", "file", {{"rate", 100}}, {})), "latency, 100 arrivals/s");
  EXPECT_EQ(name_of(measurement("latency", "file", {{"colour", 3}}, {})), "latency, colour 3");
}

}  // namespace
}  // namespace dlock::bench
