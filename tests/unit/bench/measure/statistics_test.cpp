#include "bench/measure/statistics.hpp"

#include <gtest/gtest.h>

namespace dlock::bench {
namespace {

using Turns = std::vector<std::uint64_t>;

TEST(Median, IsTheMiddleOneOrTheMeanOfTheTwo) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(median({}), 0);
}

TEST(JainIndex, SaysHowEvenlyItWasDivided) {
  EXPECT_DOUBLE_EQ(jain_index(std::vector<double>{5, 5, 5, 5}), 1);
  EXPECT_DOUBLE_EQ(jain_index(std::vector<double>{5, 0, 0, 0}), 0.25);
  EXPECT_DOUBLE_EQ(jain_index(std::vector<double>{1, 2, 3}), 36.0 / 42);
  EXPECT_DOUBLE_EQ(jain_index(std::vector<double>{0, 0}), 1);
  EXPECT_DOUBLE_EQ(jain_index({}), 1);
}

TEST(FairnessOfTurns, OfAQueueIsOneHoweverFewTurnsThereWere) {
  EXPECT_DOUBLE_EQ(fairness_of_turns(Turns{1, 0, 1, 0}), 1);
  EXPECT_DOUBLE_EQ(fairness_of_turns(Turns{3, 2, 3, 2, 2}), 1);
  EXPECT_DOUBLE_EQ(fairness_of_turns(Turns{0, 0, 0}), 1);
  EXPECT_DOUBLE_EQ(fairness_of_turns(Turns{}), 1);
}

TEST(FairnessOfTurns, IsJainsIndexWhereTheTurnsCouldBeDividedEvenly) {
  EXPECT_DOUBLE_EQ(fairness_of_turns(Turns{8, 0, 0, 0}), 0.25);
  EXPECT_DOUBLE_EQ(fairness_of_turns(Turns{2, 4, 6}), 36.0 / 42);
}

TEST(FairnessOfTurns, IsLowWhereOneHadThemAll) {
  EXPECT_DOUBLE_EQ(fairness_of_turns(Turns{2, 0, 0, 0}), 0.5);
  EXPECT_LT(fairness_of_turns(Turns{9, 0, 0, 0}), 0.3);
}

}  // namespace
}  // namespace dlock::bench
