#include "backends/common/health.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>

#include "tests/support/manual_engine.hpp"

namespace dlock::common {

namespace {

using namespace std::chrono_literals;

class HealthTest : public testing::Test, private Health::User {
 protected:
  test::ManualEngine engine;
  Health health{engine, 1s, *this};
  int asked = 0;
  int dead = 0;
  std::function<void()> when_catching_up = [] {};

 private:
  void health_ask() override { ++asked; }
  void health_catch_up() override { when_catching_up(); }
  void health_dead() override { ++dead; }
};

TEST_F(HealthTest, AsksAfterASilenceAndGivesUpAfterAnother) {
  health.start();
  engine.advance(999ms);
  EXPECT_EQ(asked, 0);
  engine.advance(1ms);
  EXPECT_EQ(asked, 1);
  engine.advance(999ms);
  EXPECT_EQ(dead, 0);
  engine.advance(1ms);
  EXPECT_EQ(dead, 1);
  engine.advance(1h);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(dead, 1) << "once";
}

TEST_F(HealthTest, WhoAnswersIsAskedAgain) {
  health.start();
  for (int i = 1; i <= 100; ++i) {
    engine.advance(1s);
    EXPECT_EQ(asked, i);
    health.heard();
  }
  EXPECT_EQ(dead, 0);
}

TEST_F(HealthTest, WhoTalksIsNotAsked) {
  health.start();
  for (int i = 0; i < 100; ++i) {
    engine.advance(900ms);
    health.heard();
  }
  EXPECT_EQ(asked, 0);
}

TEST_F(HealthTest, WhatHasArrivedWhileWeWereAsleepCounts) {
  when_catching_up = [this] { health.heard(); };
  health.start();
  engine.advance(1s);
  engine.sleep_through(1h);
  EXPECT_EQ(dead, 0);
  when_catching_up = [] {};
  engine.advance(2s);
  EXPECT_EQ(dead, 1);
}

TEST_F(HealthTest, AConnectionThatEndsWhileCatchingUpIsNotFoundDead) {
  when_catching_up = [this] { health.stop(); };
  health.start();
  engine.advance(1h);
  EXPECT_EQ(dead, 0);
}

TEST_F(HealthTest, NothingIsAskedOfAConnectionThatIsGone) {
  health.start();
  health.stop();
  engine.advance(1h);
  EXPECT_EQ(asked, 0);
}

}  // namespace

}  // namespace dlock::common
