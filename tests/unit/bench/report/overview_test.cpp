#include "bench/report/overview.hpp"

#include <gtest/gtest.h>

#include "tests/unit/bench/report/sample.hpp"

namespace dlock::bench {
namespace {

Measurement contention(const std::string& service, double waiters, double p50, double operations) {
  return measurement(scenario::contention, service, {{parameter::waiters, waiters}},
                     {lower(figure::p50, {p50}), lower(figure::operations, {operations}, "")});
}

TEST(Overview, HasTheFiguresOfEachService) {
  Report report;
  report.services = {service("redis", "queue"), service("file", "")};
  report.measurements = {
      measurement(scenario::latency, "redis queue", {}, {lower(figure::p50, {60}), lower(figure::p99, {90})}),
      throughput("redis queue", 8, {100}),
      throughput("redis queue", 64, {200}),
      contention("redis queue", 2, 50, 2),
      contention("redis queue", 8, 55, 3),
      contention("redis queue", 256, 70, 4),
      measurement(scenario::recovery, "redis queue", {{parameter::lease_ms, 2000}}, {lower(figure::p50, {1.7e6})})};
  const Overview overview = overview_of(report);
  EXPECT_EQ(overview.callers, 64);
  EXPECT_EQ(overview.few, 2);
  EXPECT_EQ(overview.many, 256);
  ASSERT_EQ(overview.rows.size(), 2U);
  const OverviewRow& redis = overview.rows[0];
  EXPECT_EQ(redis.service, "redis queue");
  EXPECT_EQ(redis.p50, 60);
  EXPECT_EQ(redis.p99, 90);
  EXPECT_EQ(redis.throughput->value, 200);
  EXPECT_EQ(redis.hand_off_few->value, 50);
  EXPECT_EQ(redis.hand_off_many->value, 70);
  EXPECT_EQ(redis.operations->value, 4);
  EXPECT_EQ(redis.recovery, 1.7e6);
  const OverviewRow& file = overview.rows[1];
  EXPECT_EQ(file.service, "file");
  EXPECT_FALSE(file.p50 || file.p99 || file.throughput || file.hand_off_few || file.operations || file.recovery);
}

TEST(Overview, SaysWhereAServiceTookFewer) {
  EXPECT_EQ(counted_text(Counted{64, 1500}, "1/s", 64), "1.50 k/s");
  EXPECT_EQ(counted_text(Counted{32, 1500}, "1/s", 64), "1.50 k/s @32");
  EXPECT_EQ(counted_text(std::nullopt, "1/s", 64), "-");
}

}  // namespace
}  // namespace dlock::bench
