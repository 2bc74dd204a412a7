// Waiting in the server's queue and on channels: wake-ups that come, that get lost, and what they cost.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "backend_fixture.hpp"
#include "backends/redis/timing.hpp"

namespace dlock::redis {

namespace {

using RedisWaitingTest = ModelBackendTest;

TEST_F(RedisWaitingTest, AFreeLockCostsOneRequestAndNoSubscription) {
  const auto attempt = contend(true);
  EXPECT_TRUE(attempt->grant);
  EXPECT_EQ(server.commands.size(), 1U);
  EXPECT_EQ(server.dialled, 1);
}

TEST_F(RedisWaitingTest, AWaiterQueuesAtOnceAndAsksAgainWhenItCanHear) {
  hold();
  const auto attempt = contend(true);
  EXPECT_EQ(asked(), 2U);
  EXPECT_TRUE(is_first(*attempt) && counts_on_messages());
  EXPECT_GE(attempt->busy_reports, 1);
  const auto second = contend(true);
  EXPECT_EQ(asked(), 3U);
  EXPECT_EQ(server.dialled, 2) << "one subscription serves all waiters";
}

TEST_F(RedisWaitingTest, AWakeUpIsConfirmedBeforeItIsBelieved) {
  hold();
  const auto attempt = contend(true);
  const auto before = asked();
  server.publish(channel(), queue().at(0));
  engine.run();
  EXPECT_EQ(asked(), before + 1);
  EXPECT_FALSE(attempt->grant);
  free();
  server.publish(channel(), queue().at(0));
  EXPECT_FALSE(attempt->grant);
  engine.run();
  EXPECT_TRUE(attempt->grant);
}

TEST_F(RedisWaitingTest, ALostWakeUpIsMadeUpForByAsking) {
  hold();
  const auto attempt = contend(true);
  free();
  engine.advance(longest_poll);
  EXPECT_TRUE(attempt->grant);
}

// Lockers in other languages tell nobody of their releases.
TEST_F(RedisWaitingTest, WhereTheKeyIsTheNameTheFirstInLineAsksOften) {
  (void)model.run({"SET", "lock", "another", "PX", "86400000"});
  backend = make("redis://localhost?prefix=");
  const auto attempt = contend(true);
  EXPECT_GE(asked_within(2500ms), 10U);
}

TEST_F(RedisWaitingTest, AWaiterThatIsWokenAsksRarely) {
  for (int i = 0; i < 100; ++i) hold("lock/" + std::to_string(i));
  const auto attempts = contend_many(100);
  const auto questions = asked_within(10s);
  EXPECT_GE(questions, 200U);
  EXPECT_LE(questions, 300U);
}

// The server tells the next in line when it grants the lock.
TEST_F(RedisWaitingTest, AWaiterThatIsToldToWatchAsksWhenTheHoldersTimeEndsAndNotBefore) {
  hold();
  for (int i = 0; i < 7; ++i) queue_another("another:" + std::to_string(i));
  const auto attempt = contend(true);
  const auto before = asked();
  server.publish(channel(), queue().back() + " 1000");
  engine.advance(1s);
  EXPECT_EQ(asked(), before);
  engine.advance(10ms);
  EXPECT_EQ(asked(), before + 1);
}

TEST_F(RedisWaitingTest, Watch_OfALongerLease_DelaysNoCheck) {
  hold("lock", 400ms);
  const auto attempt = contend(true);
  const auto before = asked();
  server.publish(channel(), queue().back() + " 30000");
  engine.advance(410ms);
  EXPECT_EQ(asked(), before + 1);
  EXPECT_TRUE(attempt->grant);
}

// Its answer may be older than the message.
TEST_F(RedisWaitingTest, Message_WhileARequestIsInFlight_IsActedOnAfterItsAnswer) {
  struct Row {
    std::string message;  // behind the waiter's value
    std::chrono::nanoseconds none_before;
    std::chrono::nanoseconds request_by;
  };
  for (const Row& row : {Row{"", 0ms, 0ms}, Row{" 1000", 1s, 1010ms}}) {
    SCOPED_TRACE(row.message);
    (void)model.run({"FLUSHALL"});
    hold();
    for (int i = 0; i < 7; ++i) queue_another("another:" + std::to_string(i));
    const auto attempt = contend(true);
    std::string answer;
    serve([&](const Words& command) -> std::optional<std::string> {
      if (script_in(command) != &acquire_script()) return std::nullopt;
      answer = bytes_of(model.run(command));
      return "";
    });
    const auto checked = asked() + 1;
    for (auto left = longest_poll; asked() < checked && left > 0ms; left -= poll_beat) engine.advance(poll_beat);
    const auto before = asked();
    server.publish(channel(), queue().back() + row.message);
    engine.run();
    EXPECT_EQ(asked(), before);
    serve();
    server.connections.front()->reply(answer);
    engine.run();
    engine.advance(row.none_before);
    EXPECT_EQ(asked() > before, row.message.empty());
    engine.advance(row.request_by - row.none_before);
    EXPECT_EQ(asked(), before + 1);
  }
}

// A wake-up may arrive after the waiter found out by asking: the lock it is about is held by then.
TEST_F(RedisWaitingTest, AWakeUpThatComesLateDoesNotReleaseWhatIsHeld) {
  hold();
  const auto attempt = contend(true);
  free();
  engine.advance(longest_poll);
  ASSERT_TRUE(attempt->grant);
  attempt->contention.reset();
  server.publish(channel(), holder());
  engine.advance(10s);
  EXPECT_TRUE(server.calls("release").empty());
}

// H23. The server may have been restarted, too, and the queue forgotten. Each asks twice: that it asks by itself from
// now on, so that it is not discarded meanwhile, and that it is reachable again.
TEST_F(RedisWaitingTest, EveryWaiterAsksAfterAResubscription) {
  hold();
  std::vector<std::unique_ptr<Attempt>> attempts;
  for (int i = 0; i < 5; ++i) attempts.push_back(contend(true));
  for (const bool subscriber : {true, false}) {
    (subscriber ? server.connections.back() : server.connections.front())->close({errc::unavailable, "cut"});
    EXPECT_EQ(asked_within(20ms), 10U) << subscriber;
    EXPECT_TRUE(counts_on_messages());
  }
}

// --- Places in the queue ---------------------------------------------------------------------------------------------

// A release discards the waiters of a client whose channel has no subscriber.
TEST_F(RedisWaitingTest, AWaiterWhoseSubscriptionWasCutClaimsItsPlace) {
  hold();
  const auto attempt = contend(true);
  queue_another();
  discard(queue().at(0));
  server.connections.back()->close({errc::unavailable, "cut"});
  engine.advance(20ms);
  EXPECT_TRUE(is_first(*attempt) && counts_on_messages());
  discard(queue().at(0));
  engine.advance(longest_poll);
  EXPECT_FALSE(is_first(*attempt)) << "it has not been cut again";
  EXPECT_EQ(queue().size(), 2U);
}

TEST_F(RedisWaitingTest, APlaceIsNotClaimedAfterALongSilence) {
  hold();
  const auto attempt = contend(true);
  server.dialling = FakeServer::Dialling::refuse;
  server.cut();
  queue_another();
  discard(queue().at(0));
  engine.advance(alive_for);
  queue_another();
  server.dialling = FakeServer::Dialling::accept;
  engine.advance(2s);
  EXPECT_EQ(queue().size(), 2U);
  EXPECT_FALSE(is_first(*attempt));
}

// It is reachable, so the client that releases the lock does not tell it, perhaps because it may not publish.
TEST_F(RedisWaitingTest, AWaiterThatLostItsPlaceThoughItIsHeardPolls) {
  hold();
  const auto attempt = contend(true);
  for (int i = 0; i < 30; ++i) queue_another("another:" + std::to_string(i));
  discard(queue().at(0));
  engine.advance(longest_poll);
  EXPECT_GE(asked_within(3s), 6U) << "often enough to notice a grant";
  server.publish(channel(), queue().back());  // somebody tells it
  engine.run();
  EXPECT_EQ(asked_within(3s), 0U);
}

// --- Where the subscriber is -----------------------------------------------------------------------------------------

// A master that was demoted keeps its subscribers, and the new one counts nobody there.
TEST_F(RedisWaitingTest, TheSubscriberFollowsTheCommandsToAnotherServer) {
  hold();
  const auto attempt = contend(true);
  ASSERT_EQ(server.connections.size(), 2U);
  model.refuses = RedisModel::Refuses::read_only;
  engine.advance(longest_poll);
  EXPECT_EQ(server.subscribers(), 0) << "it stays with the server that was left";
  model.refuses = RedisModel::Refuses::nothing;
  const auto dialled = server.dialled;
  engine.advance(2s);
  EXPECT_EQ(server.subscribers(), 1);
  EXPECT_GE(server.dialled, dialled + 2) << "one connection is an old one";
  EXPECT_TRUE(counts_on_messages());
}

// The server is asked who receives a message: nobody (0), the waiter (1), it is loading (L), this user may not (N). The
// last answer is repeated.
TEST_F(RedisWaitingTest, AWaiterIsHeardOnlyWhereTheServerOfItsCommandsCountsItsSubscriber) {
  struct Row {
    std::string answers;
    bool reachable;  // after a minute
    int at_least;    // connections that are made
    int at_most;
    std::string then{};  // after all connections were cut
    bool reachable_then = false;
  };
  for (const Row& row : {
           Row{"1", true, 0, 0},
           Row{"01", true, 2, 2},
           Row{"0", false, 2, 20, "001", true},  // that is given up, until there are new connections
           Row{"00000", false, 2, 20, "1", true},
           Row{"L", false, 0, 0},  // another connection would tell no more
           Row{"LLLL1", true, 0, 0},
           Row{"N", false, 0, 0},
       }) {
    SCOPED_TRACE(row.answers);
    std::string answers = row.answers;
    std::size_t checks = 0;
    (void)model.run({"FLUSHALL"});
    hold();
    serve([&](const Words& command) -> std::optional<std::string> {
      if (command.front() != "PUBLISH") return std::nullopt;
      switch (answers[std::min(checks++, answers.size() - 1)]) {
        case 'L':
          return "-LOADING Redis is loading the dataset in memory\r\n";
        case 'N':
          return "-NOPERM this user has no permissions to run the 'publish' command\r\n";
        case '0':
          return number(0);
        default:
          return number(1);
      }
    });
    backend = make();
    const auto attempt = contend(true);
    const int dialled = server.dialled;
    engine.advance(1min);
    EXPECT_EQ(counts_on_messages(), row.reachable);
    EXPECT_GE(server.dialled - dialled, row.at_least);
    EXPECT_LE(server.dialled - dialled, row.at_most);
    EXPECT_EQ(asked_within(1min) >= 60, !row.reachable) << "often enough to notice a grant";
    EXPECT_LE(checks, row.answers == "L" ? 60U : 10U);
    if (row.then.empty()) continue;
    answers = row.then;
    checks = 0;
    server.cut();
    engine.advance(1min);
    EXPECT_EQ(counts_on_messages(), row.reachable_then);
  }
}

// --- Rights ----------------------------------------------------------------------------------------------------------

// H28
TEST_F(RedisWaitingTest, WithoutTheRightToSubscribeItPollsAndSaysSoOnce) {
  hold();
  serve([](const Words& command) -> std::optional<std::string> {
    if (command.front() != "SUBSCRIBE") return std::nullopt;
    return "-NOPERM this user has no permissions to run the 'subscribe' command\r\n";
  });
  const auto first = contend(true);
  const auto second = contend(true);
  const int dialled = server.dialled;
  EXPECT_GE(asked_within(1500ms), 8U) << "often enough to notice a grant";
  EXPECT_EQ(host.warnings.size(), 1U);
  EXPECT_EQ(server.dialled, dialled);
  EXPECT_FALSE(counts_on_messages());
}

TEST_F(RedisWaitingTest, WithoutTheRightToPublishItSaysSoOnce) {
  model.may_publish = false;
  for (int i = 0; i < 3; ++i) {
    release(*contend(false));
    engine.run();
  }
  EXPECT_EQ(host.warnings.size(), 1U);
}

// --- Giving up -------------------------------------------------------------------------------------------------------

TEST_F(RedisWaitingTest, FirstRequest_GivenUp_IsCleanedUpIfItWasSent) {
  serve([](const Words& command) -> std::optional<std::string> {
    return script_in(command) == &acquire_script() ? std::optional(std::string()) : std::nullopt;
  });
  for (const bool sent : {false, true}) {
    backend = make();
    server.dialling = sent ? FakeServer::Dialling::accept : FakeServer::Dialling::silence;
    server.commands.clear();
    auto attempt = contend(true);
    EXPECT_EQ(asked(), sent ? 1U : 0U);
    attempt.reset();
    engine.run();
    server.dialling = FakeServer::Dialling::accept;
    engine.advance(1s);
    EXPECT_EQ(server.calls("release").size(), sent ? 1U : 0U);
  }
}

// A server that hangs carries it out when it goes on.
TEST_F(RedisWaitingTest, WhatIsNotConfirmedIsSaidOnceMoreAtTheEnd) {
  hold();
  auto attempt = contend(true);
  server.answer = nullptr;
  attempt.reset();
  engine.run();
  EXPECT_EQ(server.calls("release").size(), 1U);
  backend.reset();
  const auto releases = server.calls("release");
  EXPECT_EQ(releases.size(), 2U);
  for (const Words& each : releases) (void)model.run(each);
  EXPECT_TRUE(queue().empty());
}

// --- Without a queue -------------------------------------------------------------------------------------------------

TEST_F(RedisWaitingTest, ABroadcastWakesTheWatchers) {
  backend = make("redis://localhost?strategy=broadcast");
  const auto holder = contend(false);
  auto first = contend(true);
  auto second = contend(true);
  EXPECT_EQ(channel(), "dlock:w:lock:dlock:lock");
  const auto before = asked();
  release(*holder);
  engine.run();
  EXPECT_EQ(asked(), before + 2);
  EXPECT_TRUE(first->grant.has_value() != second->grant.has_value());
  EXPECT_TRUE(queue().empty());
  // The last one ends the subscription.
  const auto unsubscribed = [&] {
    return std::ranges::any_of(server.commands, [](const Words& command) { return command.front() == "UNSUBSCRIBE"; });
  };
  (first->grant ? first : second).reset();
  engine.run();
  EXPECT_FALSE(unsubscribed());
  (first ? first : second).reset();
  engine.run();
  EXPECT_TRUE(unsubscribed());
}

// A message that was published before that had no receiver.
TEST_F(RedisWaitingTest, AWatcherAsksOnceMoreWhenItCanHear) {
  hold();
  serve([](const Words& command) -> std::optional<std::string> {
    return command.front() == "SUBSCRIBE" ? std::optional(std::string()) : std::nullopt;
  });
  backend = make("redis://localhost?strategy=broadcast");
  const auto attempt = contend(true);
  const auto before = asked();
  server.connections.back()->reply(subscribed(channel()));
  engine.run();
  EXPECT_EQ(asked(), before + 1);
}

TEST_F(RedisWaitingTest, PollingNeedsNoSubscription) {
  hold();
  backend = make("redis://localhost?strategy=poll");
  const auto attempt = contend(true);
  EXPECT_GE(asked_within(1s), 5U);
  EXPECT_EQ(server.dialled, 1);
}

// --- Kinds of locks --------------------------------------------------------------------------------------------------

using RedisKindsTest = ModelBackendTest;

TEST_F(RedisKindsTest, OfEachStrategy) {
  for (const auto& [url, shared] : {std::pair("redis://h", true), std::pair("redis://h?strategy=poll", true),
                                    std::pair("redis://h?strategy=broadcast", false)}) {
    const Capabilities caps = make(url)->capabilities();
    EXPECT_EQ(caps.has(LockKind::read_write), shared) << url;
    EXPECT_EQ(caps.has(LockKind::semaphore), shared) << url;
    EXPECT_TRUE(caps.has(LockKind::election)) << url;
  }
}

TEST_F(RedisKindsTest, AnotherNumberOfPermitsEndsATryAndAWait) {
  const auto holder = contend({.kind = LockKind::semaphore, .permits = 3});
  ASSERT_TRUE(holder->grant);
  for (const bool wait : {false, true}) {
    const auto attempt = contend({.wait = wait, .kind = LockKind::semaphore, .permits = 5});
    ASSERT_TRUE(attempt->failure);
    EXPECT_EQ(attempt->failure->code, errc::invalid_argument);
    EXPECT_NE(attempt->failure->detail.find('3'), std::string::npos) << attempt->failure->detail;
  }
  EXPECT_TRUE(server.calls("release").empty()) << "there is nothing to take back";
}

TEST_F(RedisKindsTest, WithoutAQueueAWaitingWriterKeepsReadersOutForAWhile) {
  backend = make("redis://localhost?strategy=poll");
  const auto contend_for = [this](bool wait, Mode mode) {
    return contend({.wait = wait, .kind = LockKind::read_write, .mode = mode});
  };
  const auto reader = contend_for(false, Mode::shared);
  auto others = contend_for(false, Mode::exclusive);
  EXPECT_TRUE(contend_for(true, Mode::shared)->grant) << "a try leaves no mark";
  others = contend_for(true, Mode::exclusive);
  EXPECT_FALSE(contend_for(false, Mode::shared)->grant);
  engine.manual_clock().advance(mark_for + 1ms);
  EXPECT_TRUE(contend_for(false, Mode::shared)->grant);
}

}  // namespace

}  // namespace dlock::redis
