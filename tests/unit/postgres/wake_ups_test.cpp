#include "backends/postgres/rows/wake_ups.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "wake_ups_fixture.hpp"

namespace dlock::postgres {

namespace {

using Words = std::vector<std::string>;
using PostgresWakeUps = WakeUpsTest;

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
  EXPECT_EQ(last("mark").purpose.word, "commands");
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
  reply_to("mark", FakeReply::held());
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
    reply_to("mark", reply);
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

TEST_F(PostgresWakeUps, OneQueryMarksAtATimeAndWhatComesMeanwhileGoesTogether) {
  const auto first = watch("x", "a");
  reply_to("mark", FakeReply::held());
  engine.run();
  const auto second = watch("y", "b");
  engine.run();
  const auto third = watch("z", "c");
  engine.run();
  EXPECT_EQ(marks(), 1U);
  heal();
  server.release();
  engine.run();
  EXPECT_EQ(marks(), 2U);
  EXPECT_EQ(marked_last(), (Words{"y", "z"}));
}

TEST_F(PostgresWakeUps, WhatComesWhileAnotherIsMarkedIsMarkedAlsoIfNobodyWaitsForTheOtherAnyMore) {
  auto first = watch("x", "a");
  reply_to("mark", FakeReply::held());
  engine.run();
  const auto second = watch("y", "b");
  engine.run();
  first.reset();
  heal();
  server.release();
  engine.run();
  EXPECT_GT(rows.rows["y"].waiting_until, engine.now());
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
  rows.give_to("x", "a", 24h);
  wake_ups->taken("x");
  first.reset();
  engine.advance(1s);
  EXPECT_TRUE(told.empty());
}

// --- Several clients -------------------------------------------------------------------------------------------------

// Else all of a crowd would ask for it at once.
TEST_F(PostgresWakeUps, TheMoreReleasesItHeardOfTheLaterItLooks) {
  const auto watching = watch("x", "a");
  engine.run();
  for (int releases = 1; releases < 40; ++releases) {
    const TimePoint start = engine.now();
    server.notify(rows.channel, "x");
    engine.run();
    EXPECT_EQ(told.empty(), releases > 2) << releases;
    while (told.empty()) {
      server.notify(rows.channel, "x");  // who got it meanwhile has released it
      engine.advance(1ms);
    }
    EXPECT_LE(engine.now() - start, std::min(releases + 1, 20) * 1ms) << releases;
    EXPECT_EQ(take_told(), Words{"a"});
    engine.advance(50ms);
    EXPECT_TRUE(told.empty());
  }
}

TEST_F(PostgresWakeUps, WhoGotTheLockLooksAtOnceTheNextTime) {
  const auto watching = watch("x", "a");
  const auto other = watch("x", "b");
  engine.run();
  for (int releases = 0; releases < 10; ++releases) server.notify(rows.channel, "x");
  engine.run();
  (void)take_told();
  wake_ups->taken("x");
  engine.advance(1s);
  EXPECT_TRUE(told.empty());
  server.notify(rows.channel, "x");
  engine.run();
  EXPECT_EQ(take_told(), Words{"a"});
}

TEST_F(PostgresWakeUps, AnOlderDlockNamesAClientInFrontOfTheName) {
  rows.give_to("tab\there", "somebody", 24h);
  const auto watching = watch("x", "a");
  const auto tab = watch("tab\there", "b");
  engine.run();
  server.notify(rows.channel, "another\tx");
  server.notify(rows.channel, "tab\there");
  server.notify(rows.channel, "another\tnobody waits for this");
  engine.run();
  EXPECT_EQ(take_told(), (Words{"a", "b"}));
}

TEST_F(PostgresWakeUps, WhoLeavesIsNotToldLate) {
  auto watching = watch("x", "a");
  engine.run();
  for (int releases = 0; releases < 5; ++releases) server.notify(rows.channel, "x");
  engine.run();
  (void)take_told();
  watching.reset();
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
  reply_to("mark", FakeReply::held());
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
  reply_to("mark", FakeReply::held(), 1);
  engine.run();
  waiting.reset();
  waiting = watch("x", "b");
  heal();
  server.release();
  engine.run();
  EXPECT_EQ(marks(), 2U);
}

}  // namespace

}  // namespace dlock::postgres
