#include "bench/scenarios/collector.hpp"

#include <gtest/gtest.h>

#include "tests/unit/bench/scenarios/test_target.hpp"

namespace dlock::bench {
namespace {

using std::chrono::microseconds;

const Subject subject{scenario::contention, {{parameter::waiters, 8}}};

Samples two_samples() {
  Samples samples;
  samples.add(microseconds(10));
  samples.add(microseconds(30));
  return samples;
}

TEST(Collector, GivesEachFigureAValueARepeat) {
  const TestTarget target;
  Collector collector(target, subject, Who::by_hand);
  for (const double value : {3.0, 1.0}) {
    collector.add(quantity::hand_offs, value);
    collector.add(two_samples(), {quantity::p50, quantity::longest});
  }
  const auto measurement = collector.finish();
  ASSERT_TRUE(measurement);
  EXPECT_EQ(measurement->scenario, scenario::contention);
  EXPECT_EQ(measurement->service, "the service");
  EXPECT_EQ(measurement->who, Who::by_hand);
  EXPECT_EQ(measurement->parameters, subject.parameters);
  ASSERT_EQ(measurement->figures.size(), 3U);
  const Figure& hand_offs = measurement->figures[0];
  EXPECT_EQ(hand_offs.name, figure::hand_offs);
  EXPECT_EQ(hand_offs.unit, "1/s");
  EXPECT_EQ(hand_offs.better, Better::higher);
  EXPECT_EQ(hand_offs.repeats, (std::vector<double>{3, 1}));
  EXPECT_EQ(measurement->figures[1].name, figure::p50);
  EXPECT_EQ(measurement->figures[1].unit, "us");
  EXPECT_EQ(measurement->figures[1].better, Better::lower);
  EXPECT_EQ(measurement->figures[1].repeats, (std::vector<double>{10, 10}));
  EXPECT_EQ(measurement->figures[2].repeats, (std::vector<double>{30, 30}));
  EXPECT_TRUE(measurement->cdf.empty());
}

TEST(Collector, TheDistributionIsOfAllRepeats) {
  const TestTarget target;
  Collector collector(target, subject, Who::dlock);
  collector.add(quantity::hand_offs, 1);
  collector.keep(two_samples());
  Samples slow;
  slow.add(microseconds(500));
  collector.keep(slow);
  const auto measurement = collector.finish();
  ASSERT_TRUE(measurement);
  ASSERT_EQ(measurement->cdf.size(), 3U);
  EXPECT_DOUBLE_EQ(measurement->cdf.back().microseconds, 500);
}

TEST(Collector, WithoutRepeatsThereIsNoMeasurement) {
  const TestTarget target;
  std::vector<Collector> collectors = {{target, subject, Who::dlock}, {target, subject, Who::by_hand}};
  collectors[1].add(quantity::hand_offs, 1);
  const auto measurements = measurements_of(collectors);
  ASSERT_EQ(measurements.size(), 1U);
  EXPECT_EQ(measurements[0].who, Who::by_hand);
}

}  // namespace
}  // namespace dlock::bench
