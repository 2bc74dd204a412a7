#include "torture/dice.hpp"

#include <gtest/gtest.h>

#include <map>

namespace dlock::torture {
namespace {

using namespace std::chrono_literals;

constexpr int rolls = 10'000;

TEST(DiceTest, SizesStayWithinTheirBounds) {
  Dice dice(1);
  for (int i = 0; i < rolls; ++i) {
    const auto size = dice.of_any_size(1ms, 3s);
    ASSERT_GE(size, 1ms);
    ASSERT_LT(size, 3s);
  }
}

TEST(DiceTest, NoOrderOfMagnitudeIsPreferred) {
  Dice dice(2);
  std::map<int, int> count;
  for (int i = 0; i < rolls; ++i) {
    int doublings = 0;
    for (auto size = dice.of_any_size(1ms, 1024ms); size >= 2ms; size /= 2) ++doublings;
    ++count[doublings];
  }
  ASSERT_EQ(count.size(), 10U);
  for (const auto& [doublings, times] : count) {
    EXPECT_NEAR(times, rolls / 10, rolls / 50) << "between " << (1 << doublings) << " ms and twice that";
  }
}

TEST(DiceTest, BoundsMayBeNextToEachOther) {
  Dice dice(3);
  for (int i = 0; i < rolls; ++i) {
    const auto size = dice.of_any_size(1000ns, 1001ns);
    ASSERT_EQ(size, 1000ns);
  }
}

}  // namespace
}  // namespace dlock::torture
