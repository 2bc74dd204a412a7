// strategy=optimistic: when a lock whose holder is not heard of changes hands.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "rows_fixture.hpp"

namespace dlock::postgres {

namespace {

using RenewStatus = RenewOutcome::Status;

class PostgresTakingOver : public RowsTest {
 protected:
  PostgresTakingOver() : RowsTest(Strategy::optimistic) {}
};

TEST_F(PostgresTakingOver, ADeadHoldersLockIsTakenOverWhenItStoodStillForOneLease) {
  const auto holder = make();
  const auto held = holder->contend("x", true, 10s);
  engine.advance(4s);
  const TimePoint first_seen = engine.now();
  const auto waiting = client->contend("x", true, 60s);
  engine.advance(10s - 1ns);
  EXPECT_FALSE(waiting->grant) << "one lease of the holder's, from when it was first seen";
  engine.advance(10ms);
  ASSERT_TRUE(waiting->grant);
  EXPECT_GT(waiting->grant->token, held->grant->token);
  EXPECT_GE(last("acquire").sent, first_seen + 10s);
  EXPECT_LE(last("acquire").sent, first_seen + 10s + 5ms);
}

TEST_F(PostgresTakingOver, ItStandsStillFromWhenTheAnswerThatShowedItArrived) {
  const auto holder = make();
  const auto held = holder->contend("x", true, 10s);
  engine.run();
  // The server looked early, and its answer is under way for long.
  next_reply = [](const FakeQuery&) { return FakeReply::held(); };
  const auto waiting = client->contend("x");
  engine.advance(1s);
  holder->renew(*held->grant);
  const FakeReply as_it_was = rows.carry_out(last("acquire"));
  engine.advance(1s);
  next_reply = [&](const FakeQuery& query) -> std::optional<FakeReply> {
    if (rows.words_for(query) == "acquire") return as_it_was;
    return std::nullopt;
  };
  server.release();
  engine.run();
  const TimePoint arrived = engine.now();
  ASSERT_EQ(holder->renewals.size(), 1U);
  EXPECT_EQ(waiting->busy_reports, 2);
  heal();
  engine.advance(10s - 1ns);
  EXPECT_FALSE(waiting->grant);
  EXPECT_LT(holder->renewals[0].valid_until, arrived + 10s);
}

TEST_F(PostgresTakingOver, NobodyTakesOverBeforeTheHolderKnowsThatItIsOver) {
  for (const auto late : {0ms, 1ms, 500ms, 2000ms}) {
    const std::string name = "x" + std::to_string(late.count());
    const auto holder = make();
    reply_to("acquire", FakeReply::held());
    const auto held = holder->contend(name, true, 5s);
    engine.advance(late);
    heal();
    server.release();
    engine.run();
    ASSERT_TRUE(held->grant);
    client = make();
    const auto waiting = client->contend(name);
    while (!waiting->grant) {
      engine.advance(1ms);
      if (waiting->grant) {
        EXPECT_GE(engine.now(), held->grant->valid_until);
      }
    }
  }
}

TEST_F(PostgresTakingOver, ARenewalStartsItAgain) {
  const auto holder = make();
  const auto held = holder->contend("x", true, 10s);
  engine.run();
  const auto waiting = client->contend("x");
  for (int i = 0; i < 5; ++i) {
    engine.advance(9s);
    holder->renew(*held->grant);
    engine.run();
    ASSERT_EQ(holder->renewals.back().status, RenewStatus::renewed);
  }
  const TimePoint renewed = engine.now();
  engine.advance(10s - 1ns);
  EXPECT_FALSE(waiting->grant);
  engine.advance(3s);
  ASSERT_TRUE(waiting->grant);
  EXPECT_GE(last("acquire").sent, renewed + 10s);
  holder->renew(*held->grant);
  engine.run();
  EXPECT_EQ(holder->renewals.back().status, RenewStatus::lost);
}

TEST_F(PostgresTakingOver, WhatOneClientSawIsNotAnothers) {
  rows.give_to("x", "somebody", 10s);
  const auto first = make();
  const auto early = first->contend("x");
  engine.advance(9s);
  const auto second = make();
  auto late = second->contend("x", false);
  engine.advance(500ms);
  EXPECT_EQ(late->busy_reports, 1);
  late = second->contend("x", false);
  engine.advance(400ms);
  EXPECT_EQ(late->busy_reports, 1);
  EXPECT_FALSE(early->grant);
  engine.advance(200ms);
  EXPECT_TRUE(early->grant);
}

// Tries that do not wait take over, too, when they are far enough apart.
TEST_F(PostgresTakingOver, TriesFromTimeToTimeTakeOver) {
  rows.give_to("x", "somebody", 10s);
  const auto first = client->contend("x", false);
  engine.advance(10s);
  const auto second = client->contend("x", false);
  engine.run();
  EXPECT_FALSE(first->grant);
  EXPECT_TRUE(second->grant);
}

TEST_F(PostgresTakingOver, OneOfTwoTakesOver) {
  rows.give_to("x", "somebody", 10s);
  const auto first = make();
  const auto second = make();
  const auto a = first->contend("x", true, 60s);
  const auto b = second->contend("x", true, 60s);
  engine.advance(15s);
  EXPECT_NE(a->grant.has_value(), b->grant.has_value());
}

}  // namespace

}  // namespace dlock::postgres
