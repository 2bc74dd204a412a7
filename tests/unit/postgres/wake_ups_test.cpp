#include "backends/postgres/wake_ups.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rows_fixture.hpp"

namespace dlock::postgres {

namespace {

using Words = std::vector<std::string>;

class PostgresWakeUps : public RowsTest {
 protected:
  PostgresWakeUps() : RowsTest(Strategy::table) {
    for (const char* const name : {"x", "y", "z"}) rows.give_to(name, "somebody", 24h);
    start();
  }
  void start() {
    wake_ups.emplace(*line.commands, line.dialling, statements, rows.channel, [this](const Failure& why) {
      deaf.push_back(why);
      if (when_deaf) when_deaf();
    });
  }
  // A waiter called `who`, who writes down when it is told.
  [[nodiscard]] std::unique_ptr<Watch> watch(const std::string& name, const std::string& who) {
    return wake_ups->watch(name, [this, who] {
      told.push_back(who);
      if (when_told) when_told(who);
    });
  }
  [[nodiscard]] Words take_told() { return std::exchange(told, {}); }
  [[nodiscard]] const std::string listen() const { return "LISTEN \"" + rows.channel + "\""; }
  [[nodiscard]] std::size_t marks() const { return count("mark_many"); }
  [[nodiscard]] Words marked_last() const { return elements_of(last("mark_many").param(0)); }
  [[nodiscard]] int listening_connection() const {
    int connection = 0;
    for (const FakeQuery& query : server.queries) {
      if (query.purpose.word == "listen") connection = query.connection;
    }
    return connection;
  }

  CommandLine line{engine, server, row_options(Strategy::table)};
  const RowStatements statements = table_statements("dlock", Durability::sync);
  Words told;
  std::function<void(const std::string&)> when_told;
  std::vector<Failure> deaf;
  std::function<void()> when_deaf;
  std::optional<WakeUps> wake_ups;
};

// --- Listening and marking -------------------------------------------------------------------------------------------

TEST_F(PostgresWakeUps, NobodyListensWhileNobodyWaits) {
  engine.advance(1h);
  EXPECT_EQ(server.dialled, 0);
}

TEST_F(PostgresWakeUps, ListensBeforeItMarks) {
  const auto waiting = watch("x", "a");
  reply_to(listen(), FakeReply::held());
  engine.advance(1s);
  EXPECT_EQ(count(listen()), 1U);
  EXPECT_EQ(marks(), 0U) << "whoever releases a marked lock notifies only those who listen";
  heal();
  server.release();
  engine.run();
  EXPECT_EQ(marks(), 1U);
  EXPECT_EQ(last("mark_many").purpose.word, "commands");
  EXPECT_GT(rows.rows["x"].waiting_until, engine.now());
  EXPECT_TRUE(told.empty());
}

TEST_F(PostgresWakeUps, OneConnectionListensForAll) {
  const auto first = watch("x", "a");
  const auto second = watch("y", "b");
  engine.run();
  const auto third = watch("z", "c");
  engine.run();
  EXPECT_EQ(count(listen()), 1U);
  EXPECT_EQ(server.open(), 2U) << "the commands have another";
  EXPECT_EQ(marks(), 2U);
  EXPECT_EQ(marked_last(), Words{"z"});
}

TEST_F(PostgresWakeUps, AReleaseTellsTheOneThatHasWaitedLongest) {
  const auto first = watch("x", "a");
  const auto second = watch("x", "b");
  const auto other = watch("y", "c");
  engine.run();
  rows.free("x");
  engine.run();
  EXPECT_EQ(take_told(), Words{"a"});
  rows.give_to("x", "somebody", 24h);
  rows.free("x");
  engine.run();
  EXPECT_EQ(take_told(), Words{"a"}) << "it is still the first";
}

TEST_F(PostgresWakeUps, OthersNotificationsAreIgnored) {
  const auto waiting = watch("x", "a");
  engine.run();
  server.notify("something else", "x");
  server.notify(rows.channel, "nobody waits for this");
  server.notify(rows.channel, "");
  engine.run();
  EXPECT_TRUE(told.empty());
}

TEST_F(PostgresWakeUps, WhoJoinsAfterTheMarkCostsNothing) {
  const auto first = watch("x", "a");
  engine.run();
  std::vector<std::unique_ptr<Watch>> others;
  for (int i = 0; i < 100; ++i) {
    others.push_back(watch("x", "b"));
    engine.run();
  }
  EXPECT_EQ(marks(), 1U);
}

TEST_F(PostgresWakeUps, AMarkIsRenewedBeforeItRunsOutWhileSomebodyWaits) {
  const auto waiting = watch("x", "a");
  engine.run();
  for (int second = 0; second < 120; ++second) {
    engine.advance(1s);
    ASSERT_GT(rows.rows["x"].waiting_until, engine.now()) << second;
  }
  EXPECT_LE(marks(), 1U + 120U / 7U);
  EXPECT_TRUE(told.empty());
  EXPECT_EQ(count(listen()), 1U);
}

// What was marked by others is good for less than what we would have marked ourselves.
TEST_F(PostgresWakeUps, AMarkOfSomebodyElseIsGoneByForAsLongAsItIsSureToLast) {
  rows.rows["x"].waiting_until = engine.now() + 8s;
  const auto waiting = watch("x", "a");
  reply_to("mark_many", FakeReply::held());
  engine.run();
  (void)engine.schedule(engine.now() + 3s, [this] {
    // The server was quick, its answer was not.
    next_reply = [](const FakeQuery&) { return FakeReply::of({{"x", "t"}}); };
    server.release();
    (void)engine.schedule(engine.now(), [this] { heal(); });
  });
  engine.advance(8s - 1ns);
  EXPECT_GT(rows.rows["x"].waiting_until, engine.now() + 1ns);
  EXPECT_EQ(marks(), 2U);
}

TEST_F(PostgresWakeUps, WhatCannotBeMarkedMayBeFree) {
  rows.free("x");
  const auto first = watch("x", "a");
  const auto second = watch("x", "b");
  const auto never_seen = watch("nobody has ever had this", "c");
  engine.run();
  std::sort(told.begin(), told.end());
  EXPECT_EQ(take_told(), (Words{"a", "c"}));
}

TEST_F(PostgresWakeUps, ARowThatIsBeingChangedIsMarkedSoon) {
  rows.rows["x"].locked = true;
  const auto waiting = watch("x", "a");
  engine.run();
  EXPECT_EQ(take_told(), Words{"a"});
  rows.rows["x"].locked = false;
  engine.advance(10ms);
  EXPECT_GT(rows.rows["x"].waiting_until, engine.now());
  EXPECT_TRUE(told.empty());
}

TEST_F(PostgresWakeUps, WhatStaysUnmarkedIsAskedForSeldomerAndSeldomer) {
  rows.rows["x"].locked = true;
  const auto waiting = watch("x", "a");
  engine.advance(60s);
  EXPECT_LT(marks(), 60U);
  EXPECT_GT(marks(), 40U);
  EXPECT_EQ(told.size(), marks());
  // And soon again, the next time.
  rows.rows["x"].locked = false;
  engine.advance(2s);
  rows.rows["x"].waiting_until = TimePoint::min();
  rows.rows["x"].locked = true;
  const std::size_t before = marks();
  engine.advance(7s + 100ms);
  EXPECT_GE(marks(), before + 3);
}

TEST_F(PostgresWakeUps, WhoJoinsWhileItIsUnmarkedHasItMarkedAtOnce) {
  rows.rows["x"].locked = true;
  const auto first = watch("x", "a");
  engine.advance(30s);
  rows.rows["x"].locked = false;
  const std::size_t before = marks();
  const auto second = watch("x", "b");
  engine.run();
  EXPECT_EQ(marks(), before + 1);
  EXPECT_GT(rows.rows["x"].waiting_until, engine.now());
}

TEST_F(PostgresWakeUps, AMarkThatFailsIsTriedAgain) {
  const auto waiting = watch("x", "a");
  for (const FakeReply& reply : {FakeReply::refused("42501"), FakeReply::refused("XX000"), FakeReply::lost()}) {
    reply_to("mark_many", reply);
    engine.advance(1s);
    rows.rows["x"].waiting_until = TimePoint::min();
  }
  EXPECT_GE(marks(), 3U);
  EXPECT_LE(marks(), 6U);
  heal();
  engine.advance(1100ms);
  EXPECT_GT(rows.rows["x"].waiting_until, engine.now());
  EXPECT_TRUE(told.empty());
}

TEST_F(PostgresWakeUps, VeryManyAreMarkedInSeveralQueries) {
  std::vector<std::unique_ptr<Watch>> waiting;
  for (int i = 0; i < 1200; ++i) {
    const std::string name = "n" + std::to_string(i);
    rows.give_to(name, "somebody", 24h);
    waiting.push_back(watch(name, name));
  }
  engine.run();
  EXPECT_EQ(marks(), 3U);
  engine.advance(7s);
  EXPECT_EQ(marks(), 6U);
  for (int i = 0; i < 1200; ++i) ASSERT_GE(rows.rows["n" + std::to_string(i)].waiting_until, engine.now() + 8s);
}

// --- Breaking --------------------------------------------------------------------------------------------------------

TEST_F(PostgresWakeUps, AfterABreakItListensAndMarksAgain) {
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

TEST_F(PostgresWakeUps, HoweverLongItWasGoneItMarksAgain) {
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

TEST_F(PostgresWakeUps, WhatIsReleasedWhileNobodyListensIsToldAfterwards) {
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

TEST_F(PostgresWakeUps, AListenThatIsRefusedIsTriedOverAnotherConnection) {
  const auto waiting = watch("x", "a");
  reply_to(listen(), FakeReply::refused("53200"), 2);
  engine.advance(1s);
  EXPECT_EQ(count(listen()), 3U);
  EXPECT_EQ(marks(), 1U);
}

TEST_F(PostgresWakeUps, AListenThatIsNotAnsweredIsTriedOverAnotherConnection) {
  const auto waiting = watch("x", "a");
  reply_to(listen(), FakeReply::held(), 1);
  engine.advance(response_timeout + 100ms);
  EXPECT_EQ(count(listen()), 2U);
  EXPECT_EQ(marks(), 1U);
}

TEST_F(PostgresWakeUps, AfterAFinalRefusalTheNextWhoWaitsTriesAgain) {
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

// --- Who is told -----------------------------------------------------------------------------------------------------

TEST_F(PostgresWakeUps, WhenWhoWasToldLeavesTheNextIsTold) {
  auto first = watch("x", "a");
  auto second = watch("x", "b");
  const auto third = watch("x", "c");
  engine.run();
  rows.free("x");
  engine.run();
  EXPECT_EQ(take_told(), Words{"a"});
  first.reset();
  EXPECT_TRUE(told.empty()) << "not inside the call";
  engine.run();
  EXPECT_EQ(take_told(), Words{"b"});
  second.reset();
  engine.run();
  EXPECT_EQ(take_told(), Words{"c"});
}

TEST_F(PostgresWakeUps, WhenWhoWasNotToldLeavesNobodyIsTold) {
  auto first = watch("x", "a");
  auto second = watch("x", "b");
  const auto third = watch("x", "c");
  engine.run();
  first.reset();
  engine.run();
  EXPECT_TRUE(told.empty());
  rows.free("x");
  engine.run();
  EXPECT_EQ(take_told(), Words{"b"});
}

TEST_F(PostgresWakeUps, AnotherThanTheFirstMayLeave) {
  const auto first = watch("x", "a");
  auto second = watch("x", "b");
  engine.run();
  rows.free("x");
  engine.run();
  EXPECT_EQ(take_told(), Words{"a"});
  second.reset();
  engine.run();
  EXPECT_TRUE(told.empty());
}

TEST_F(PostgresWakeUps, WhoGotTheLockLeavesWithoutTellingAnybody) {
  auto first = watch("x", "a");
  const auto second = watch("x", "b");
  engine.run();
  rows.free("x");
  engine.run();
  EXPECT_EQ(take_told(), Words{"a"});
  wake_ups->taken("x");
  first.reset();
  engine.advance(1s);
  EXPECT_TRUE(told.empty());
}

TEST_F(PostgresWakeUps, NobodyIsToldTwiceByOneNotification) {
  const auto first = watch("x", "a");
  engine.run();
  // Whoever is told looks, and may wait again at once, under another watch.
  std::unique_ptr<Watch> another;
  when_told = [&](const std::string&) {
    if (!another) another = watch("x", "b");
  };
  server.notify(rows.channel, "x");
  engine.run();
  EXPECT_EQ(take_told(), Words{"a"});
}

// --- Nobody waits any more -------------------------------------------------------------------------------------------

TEST_F(PostgresWakeUps, WhenTheLastOneLeavesNothingMoreIsSent) {
  auto first = watch("x", "a");
  auto second = watch("y", "b");
  engine.advance(5s);
  first.reset();
  second.reset();
  const std::size_t sent = server.queries.size();
  engine.advance(59s);
  EXPECT_EQ(server.open(), 2U);
  engine.advance(1h);
  EXPECT_EQ(server.queries.size(), sent);
  EXPECT_EQ(server.open(), 1U) << "the connection for listening is closed";
  EXPECT_EQ(server.dialled, 2);
}

TEST_F(PostgresWakeUps, WhoComesWithinAMinuteFindsItListening) {
  auto waiting = watch("x", "a");
  engine.run();
  waiting.reset();
  engine.advance(59s);
  waiting = watch("x", "b");
  engine.advance(5min);
  EXPECT_EQ(count(listen()), 1U);
  EXPECT_EQ(server.open(), 2U);
  rows.free("x");
  engine.run();
  EXPECT_EQ(take_told(), Words{"b"});
}

TEST_F(PostgresWakeUps, WhoComesLaterHasItListenAgain) {
  auto waiting = watch("x", "a");
  engine.run();
  waiting.reset();
  engine.advance(5min);
  waiting = watch("x", "b");
  engine.run();
  EXPECT_EQ(count(listen()), 2U);
  rows.free("x");
  engine.run();
  EXPECT_EQ(take_told(), Words{"b"});
}

TEST_F(PostgresWakeUps, WhoLeavesWhileItIsMarkedIsForgotten) {
  auto waiting = watch("x", "a");
  rows.free("x");
  reply_to("mark_many", FakeReply::held());
  engine.run();
  waiting.reset();
  heal();
  server.release();
  engine.advance(30s);
  EXPECT_TRUE(told.empty());
  EXPECT_EQ(marks(), 1U);
}

TEST_F(PostgresWakeUps, WhoComesBackWhileItIsMarkedHasItMarkedForHimself) {
  auto waiting = watch("x", "a");
  reply_to("mark_many", FakeReply::held(), 1);
  engine.run();
  waiting.reset();
  waiting = watch("x", "b");
  heal();
  server.release();
  engine.run();
  EXPECT_EQ(marks(), 2U);
}

// --- Poolers ---------------------------------------------------------------------------------------------------------

TEST_F(PostgresWakeUps, BehindAPoolerNobodyIsWoken) {
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

TEST_F(PostgresWakeUps, APoolerMayBeFoundOutByListening) {
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

// --- The end ---------------------------------------------------------------------------------------------------------

TEST_F(PostgresWakeUps, WhoeverIsToldMayEndThem) {
  const auto end = [this] {
    wake_ups.reset();
    line.commands.reset();
  };
  std::vector<std::unique_ptr<Watch>> waiting;
  when_told = [&](const std::string&) {
    waiting.clear();
    end();
  };
  rows.free("x");
  rows.free("y");
  waiting.push_back(watch("x", "a"));
  waiting.push_back(watch("y", "b"));
  engine.advance(10s);
  EXPECT_EQ(told.size(), 1U);
  EXPECT_EQ(server.open(), 0U);
}

TEST_F(PostgresWakeUps, WhoeverIsToldByANotificationMayEndThem) {
  std::unique_ptr<Watch> waiting = watch("x", "a");
  engine.run();
  when_told = [&](const std::string&) {
    waiting.reset();
    wake_ups.reset();
  };
  rows.free("x");
  engine.advance(10s);
  EXPECT_EQ(told.size(), 1U);
  EXPECT_EQ(server.open(), 1U);
}

TEST_F(PostgresWakeUps, WhoeverHearsThatNobodyIsWokenMayEndThem) {
  server.info.pooled = true;
  auto waiting = watch("x", "a");
  when_deaf = [&] {
    waiting.reset();
    wake_ups.reset();
  };
  engine.advance(10s);
  EXPECT_FALSE(wake_ups);
}

TEST_F(PostgresWakeUps, EndWhileSomethingIsUnderWay) {
  for (const std::string& words : {listen(), std::string("mark_many")}) {
    reply_to(words, FakeReply::held());
    auto waiting = watch("x", "a");
    engine.run();
    waiting.reset();
    wake_ups.reset();
    heal();
    server.release();
    engine.advance(10s);
    start();
  }
  EXPECT_TRUE(told.empty());
}

}  // namespace

}  // namespace dlock::postgres
