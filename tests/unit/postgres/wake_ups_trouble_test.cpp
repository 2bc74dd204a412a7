// Wake-ups where connections break, nobody can be woken, or everything goes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "wake_ups_fixture.hpp"

namespace dlock::postgres {

namespace {

using Words = std::vector<std::string>;

class PostgresWakeUpsTrouble : public WakeUpsTest {};

// --- Breaking --------------------------------------------------------------------------------------------------------

TEST_F(PostgresWakeUpsTrouble, AfterABreakItListensAndMarksAgain) {
  const auto first = watch("x", "a");
  const auto second = watch("y", "b");
  engine.run();
  server.break_connections("gone", listening_connection());
  engine.run();
  rows.free("x");
  rows.free("y");
  rows.give_to("y", "somebody", 24h);
  engine.advance(100ms);
  EXPECT_EQ(count(listen()), 2U);
  EXPECT_GT(rows.rows["y"].waiting_until, engine.now());
  EXPECT_EQ(std::count(told.begin(), told.end(), "a"), static_cast<std::ptrdiff_t>(told.size()));
  EXPECT_FALSE(take_told().empty()) << "was released meanwhile";
  rows.free("y");
  engine.run();
  EXPECT_EQ(take_told(), Words{"b"});
}

TEST_F(PostgresWakeUpsTrouble, HoweverLongItWasGoneItMarksAgain) {
  for (const auto outage : {1s, 6s, 8s, 20s, 600s}) {
    start();
    rows.rows["x"].waiting_until = TimePoint::min();
    if (!rows.held("x")) rows.give_to("x", "somebody", 24h);
    const auto waiting = watch("x", "a");
    engine.advance(1s);
    ASSERT_GT(rows.rows["x"].waiting_until, engine.now());
    server.dialling = FakeServer::Dialling::fail;
    server.break_connections("gone", listening_connection());
    engine.advance(outage);
    server.dialling = FakeServer::Dialling::accept;
    engine.advance(2s);
    EXPECT_GT(rows.rows["x"].waiting_until, engine.now()) << outage.count();
    EXPECT_TRUE(told.empty());
    rows.free("x");
    engine.run();
    EXPECT_EQ(take_told(), Words{"a"}) << outage.count();
  }
}

TEST_F(PostgresWakeUpsTrouble, WhatIsReleasedWhileNobodyListensIsToldAfterwards) {
  const auto waiting = watch("x", "a");
  engine.run();
  server.dialling = FakeServer::Dialling::fail;
  server.break_connections("gone", listening_connection());
  engine.advance(20s);
  rows.free("x");
  engine.advance(20s);
  EXPECT_TRUE(told.empty());
  server.dialling = FakeServer::Dialling::accept;
  engine.advance(2s);
  EXPECT_FALSE(told.empty());
}

TEST_F(PostgresWakeUpsTrouble, AListenThatIsRefusedIsTriedOverAnotherConnection) {
  const auto waiting = watch("x", "a");
  reply_to(listen(), FakeReply::refused("53200"), 2);
  engine.advance(1s);
  EXPECT_EQ(count(listen()), 3U);
  EXPECT_EQ(marks(), 1U);
}

TEST_F(PostgresWakeUpsTrouble, AfterAFinalRefusalTheNextWhoWaitsTriesAgain) {
  server.dialling = FakeServer::Dialling::refuse_password;
  const auto first = watch("x", "a");
  engine.advance(1h);
  EXPECT_EQ(server.dialled, 1);
  server.dialling = FakeServer::Dialling::accept;
  const auto second = watch("y", "b");
  engine.advance(100ms);
  EXPECT_EQ(count(listen()), 1U);
  EXPECT_EQ(marked_last().size(), 2U);
}

// --- Poolers ---------------------------------------------------------------------------------------------------------

TEST_F(PostgresWakeUpsTrouble, BehindAPoolerNobodyIsWoken) {
  server.info.pooled = true;
  line.commands->run({.commands = {{.text = "a"}}}, engine.now() + 1s);
  engine.run();
  EXPECT_EQ(watch("x", "a"), nullptr);
  EXPECT_EQ(watch("x", "a"), nullptr);
  EXPECT_TRUE(deaf.empty()) << "not inside the call";
  engine.run();
  EXPECT_EQ(watch("x", "a"), nullptr);
  engine.advance(1h);
  ASSERT_EQ(deaf.size(), 1U) << "said once";
  EXPECT_EQ(deaf[0].code, errc::unsupported);
  EXPECT_EQ(server.dialled, 1);
}

TEST_F(PostgresWakeUpsTrouble, APoolerMayBeFoundOutByListening) {
  server.info.pooled = true;
  auto waiting = watch("x", "a");
  EXPECT_NE(waiting, nullptr) << "nobody knows yet";
  engine.run();
  EXPECT_EQ(deaf.size(), 1U);
  EXPECT_EQ(count(listen()), 0U);
  EXPECT_EQ(watch("x", "b"), nullptr);
  waiting.reset();
  engine.advance(1h);
  EXPECT_EQ(deaf.size(), 1U);
  EXPECT_EQ(server.open(), 0U);
}

}  // namespace

}  // namespace dlock::postgres
