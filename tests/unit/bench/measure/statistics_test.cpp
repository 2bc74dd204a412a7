#include "bench/measure/statistics.hpp"

#include <gtest/gtest.h>

namespace dlock::bench {
namespace {

TEST(Median, IsTheMiddleOneOrTheMeanOfTheTwo) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({}), 0);
}

TEST(FairnessOfTurns, IsJainsIndexRelativeToTheMostEvenDivision) {
  const struct {
    std::vector<std::uint64_t> turns;
    double expected;
  } rows[] = {
      {{5, 5, 5, 5}, 1},
      {{1, 0, 1, 0}, 1},  // a queue, however few turns there were
      {{3, 2, 3, 2, 2}, 1},
      {{0, 0, 0}, 1},
      {{}, 1},
      {{8, 0, 0, 0}, 0.25},
      {{2, 4, 6}, 36.0 / 42},
      {{2, 0, 0, 0}, 0.5},
      {{9, 0, 0, 0}, 0.25 / (81.0 / 84)},
  };
  for (const auto& row : rows)
    EXPECT_DOUBLE_EQ(fairness_of_turns(row.turns), row.expected) << testing::PrintToString(row.turns);
}

}  // namespace
}  // namespace dlock::bench
