#include <dlock/spi/backoff.hpp>

#include <gtest/gtest.h>

#include <chrono>

#include "tests/support/manual_engine.hpp"

namespace dlock {

namespace {

using namespace std::chrono_literals;

TEST(Backoff, PausesDoubleUpToTheLongestAndAreDrawnFromTheUpperHalf) {
  test::ManualEngine engine;
  Backoff backoff(100ms);
  for (const auto at_most : {20ms, 40ms, 80ms, 100ms, 100ms}) {
    const auto pause = backoff.next(engine);
    EXPECT_GE(pause, at_most / 2);
    EXPECT_LT(pause, at_most);
  }
  backoff.reset();
  EXPECT_LT(backoff.next(engine), 20ms);
}

TEST(Backoff, WhatIsDrawnStaysWithinItsBounds) {
  test::ManualEngine engine;
  EXPECT_EQ(random_between(5ms, 5ms, engine), 5ms);
  EXPECT_EQ(random_between(6ms, 5ms, engine), 6ms) << "there is nothing between them";
  bool differ = false;
  const auto first = random_between(0s, 1h, engine);
  for (int i = 0; i < 100; ++i) {
    const auto drawn = random_between(0s, 1h, engine);
    EXPECT_GE(drawn, 0s);
    EXPECT_LT(drawn, 1h);
    differ = differ || drawn != first;
  }
  EXPECT_TRUE(differ);
}

}  // namespace

}  // namespace dlock
