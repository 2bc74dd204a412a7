// Waiting in the server's queue and on channels: wake-ups that come, that get lost, and what they cost.
#include <gtest/gtest.h>

#include <chrono>

#include "backend_fixture.hpp"
#include "backends/redis/timing.hpp"

namespace dlock::redis {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

class RedisWaitingTest : public BackendTest {
 protected:
  // A subscriber receives it, and wakes the last in line.
  void wake_last(const std::string& rest = "") {
    server.publish(channel(), queue().back() + rest);
    engine.run();
  }
  void cut_subscriber() { server.connections.back()->close({errc::unavailable, "cut"}); }
  // Behind another client.
  std::unique_ptr<Attempt> wait(int others = 0) {
    (void)model.run({"FLUSHALL"});
    hold("lock", lease_of_another);
    queue_others(others);
    return contend(true);
  }

  std::chrono::milliseconds lease_of_another = 24h;
};

TEST_F(RedisWaitingTest, FreeLock_CostsOneRequest) {
  EXPECT_TRUE(contend(true)->grant);
  EXPECT_EQ(server.commands.size(), 1U);
  EXPECT_EQ(server.dialled, 1);
}

TEST_F(RedisWaitingTest, HeldLock_WaiterQueuesAndAsksAgainOnceReachable) {
  const auto attempt = wait();
  EXPECT_EQ(asked(), 2U);
  EXPECT_TRUE(is_first(*attempt) && counts_on_messages());
  EXPECT_GE(attempt->busy_reports, 1);
  const auto second = contend(true);
  EXPECT_EQ(asked(), 3U);
  EXPECT_EQ(server.dialled, 2) << "one subscription serves all waiters";
}

// Lockers in other languages publish nothing when they release. They know no semaphores of dlock.
TEST_F(RedisWaitingTest, NoPrefix_FirstInLineAsksOften) {
  backend = make("redis://localhost?prefix=");
  const auto holder = contend({.name = "permits", .wait = false, .kind = LockKind::semaphore});
  const auto waiter = contend({.name = "permits", .kind = LockKind::semaphore});
  EXPECT_EQ(asked_within(2500ms), 0U);
  (void)model.run({"SET", "lock", "another", "PX", "86400000"});
  const auto attempt = contend(true);
  EXPECT_GE(asked_within(2500ms), 10U);
}

// Hazard: H25 the herd, costly waiting: one is woken, polls are rare
TEST_F(RedisWaitingTest, ReachableWaiters_AskRarely) {
  const auto attempts = contend_many(100);
  const auto questions = asked_within(10s);
  EXPECT_GE(questions, 200U);
  EXPECT_LE(questions, 300U);
}

// The server sends the next in line a message when it grants the lock.
// Hazard: H23, H24 lost messages, expiry sends none: waiters ask
TEST_F(RedisWaitingTest, ToldToWatch_WaiterAsksWhenTheLeaseEnds) {
  struct Row {
    const char* name;
    std::vector<const char*> messages;
    bool loses_its_place;
    nanoseconds none_before, one_by, none_then_before, another_by;
  };
  for (const Row& row : {
           Row{"the holder renews: it watches that lease, too", {" 1000"}, false, 1s, 1010ms, 3s, 3010ms},
           Row{"a longer lease delays no check", {" 30000"}, false, 3600ms, 5s, 0s, 15s},
           Row{"nor does a later message", {" 500", " 1000"}, false, 500ms, 510ms, 0s, 15s},
           Row{"behind seven others again, it watches no holder", {" 30000"}, true, 3600ms, 5s, 0s, 15s},
       }) {
    SCOPED_TRACE(row.name);
    lease_of_another = 3s;
    const auto attempt = wait(7);
    for (const char* message : row.messages) wake_last(message);
    if (row.loses_its_place) {
      discard(queue().back());
      cut_subscriber();
      engine.advance(20ms);
    }
    const auto begin = engine.now();
    const auto before = asked();
    engine.advance(row.none_before);
    EXPECT_EQ(asked(), before);
    engine.advance(row.one_by - row.none_before);
    EXPECT_EQ(asked(), before + 1);
    if (attempt->grant) continue;
    engine.advance(std::max<nanoseconds>(0ns, begin + row.none_then_before - engine.now()));
    EXPECT_EQ(asked(), before + 1);
    engine.advance(begin + row.another_by - engine.now());
    EXPECT_GE(asked(), before + 2);
  }
}

// Its answer may be older than the message.
TEST_F(RedisWaitingTest, MessageDuringARequest_CountsAfterItsAnswer) {
  for (const auto& [message, pause] : {std::pair("", 0ms), std::pair(" 1000", 1000ms)}) {
    SCOPED_TRACE(message);
    const auto attempt = wait(7);
    std::string answer;
    answer_by("acquire", [&](FakeStream&, const Words& command) -> std::string {
      answer = bytes_of(model.run(command));
      return "";
    });
    const auto checked = asked() + 1;
    for (auto left = longest_poll; asked() < checked && left > 0ms; left -= poll_beat) engine.advance(poll_beat);
    const auto before = asked();
    wake_last(message);
    EXPECT_EQ(asked(), before);
    serve();
    server.connections.front()->reply(answer);
    engine.run();
    engine.advance(pause);
    EXPECT_EQ(asked() > before, pause == 0ms);
    engine.advance(10ms);
    EXPECT_EQ(asked(), before + 1);
  }
}

TEST_F(RedisWaitingTest, GrantToAnAbandonedAcquire_IsReleased) {
  std::optional<Words> late;
  hold();
  const auto others = contend_many(1);
  serve([&](FakeStream&, const Words& command) -> std::optional<std::string> {
    if (late || !is(command, "acquire")) return std::nullopt;
    late = command;
    return "";
  });
  auto attempt = contend(true);
  server.cut();
  engine.run();
  attempt.reset();
  engine.advance(1s);
  ASSERT_TRUE(queue().empty());
  (void)model.run(*late);
  ASSERT_EQ(queue().size(), 1U);
  for (const char* message : {" 1000", ""}) {
    const auto before = server.calls("release").size();
    server.publish(channel(), queue().at(0) + message);
    engine.run();
    EXPECT_EQ(server.calls("release").size(), before + (*message == 0 ? 1 : 0)) << message;
  }
  EXPECT_TRUE(queue().empty());
}

// H23. The server may have been restarted, too, and the queue forgotten. Each asks twice: that it asks by itself from
// now on, so that it is not discarded meanwhile, and that it is reachable again.
// Hazard: H23, H24 lost messages, expiry sends none: waiters ask
TEST_F(RedisWaitingTest, Resubscribed_EachWaiterAsks) {
  hold();
  std::vector<std::unique_ptr<Attempt>> attempts;
  for (int i = 0; i < 5; ++i) attempts.push_back(contend(true));
  for (const bool subscriber : {true, false}) {
    (subscriber ? server.connections.back() : server.connections.front())->close({errc::unavailable, "cut"});
    EXPECT_EQ(asked_within(20ms), 10U) << subscriber;
    EXPECT_TRUE(counts_on_messages());
  }
}

TEST_F(RedisWaitingTest, SubscriberThatReceivedAMessage_IsReplacedAtOnce) {
  const auto attempt = wait();
  for (int i = 0; i < 10; ++i) {
    wake_last();
    cut_subscriber();
    engine.advance(20ms);
    ASSERT_EQ(server.subscribers(), 1) << i;
  }
}

// --- Places in the queue ---------------------------------------------------------------------------------------------

// A release discards the waiters of a client whose channel has no subscriber.
// Hazard: a waiter is cut off during a release: it claims its place
TEST_F(RedisWaitingTest, SubscriptionCut_WaiterClaimsItsPlace) {
  const auto attempt = wait();
  queue_another();
  discard(queue().at(0));
  cut_subscriber();
  engine.advance(20ms);
  EXPECT_TRUE(is_first(*attempt) && counts_on_messages());
  discard(queue().at(0));
  engine.advance(longest_poll);
  EXPECT_FALSE(is_first(*attempt)) << "it has not been cut again";
  EXPECT_EQ(queue().size(), 2U);
}

TEST_F(RedisWaitingTest, LongSilence_PlaceIsNotClaimed) {
  const auto attempt = wait();
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

TEST_F(RedisWaitingTest, FirstRequestLost_IsNoLostPlace) {
  const auto others = contend_many(1);  // so that the channel is reachable
  hold();
  answer_instead("acquire", "-ERR something new\r\n");
  const auto attempt = contend(true);
  serve();
  engine.advance(2s);
  EXPECT_TRUE(is_first(*attempt) && counts_on_messages());
  EXPECT_LE(asked_within(3s), 2U);
}

// Its channel is reachable, so releases do not wake it, perhaps because their clients may not publish.
TEST_F(RedisWaitingTest, PlaceLostWhileReachable_WaiterPollsUntilAMessage) {
  for (const char* message : {"", " 86400000"}) {
    const auto attempt = wait();
    queue_others(30);
    discard(queue().at(0));
    engine.advance(longest_poll);
    EXPECT_GE(asked_within(3s), 6U) << "often enough to notice a grant";
    wake_last(message);
    engine.advance(longest_blind_poll);
    EXPECT_EQ(asked_within(3s), 0U);
  }
}

// --- Where the subscriber is -----------------------------------------------------------------------------------------

// The server is asked how many receive a message: nobody (0), the waiter's subscriber (1), it is loading (L), this user
// may not (N). The last answer is repeated.
TEST_F(RedisWaitingTest, SubscribersCounted_WaiterIsReachable) {
  enum class Event { none, cut, outage, lost_place };
  struct Row {
    std::string answers;
    bool reachable;  // after a minute
    int dialled;
    std::size_t probes;  // at most
    Event event = Event::none;
    std::string answers_then{};
    bool reachable_then = false;
  };
  for (const Row& row : {
           Row{"1", true, 0, 1},
           Row{"01", true, 2, 2},
           Row{"000001", true, 10, 6},
           Row{"0000001", false, 10, 6},  // that is given up, until there are new connections
           Row{"0", false, 10, 6, Event::cut, "000001", true},
           Row{"0", false, 10, 6, Event::cut, "0000001", false},
           Row{"0", false, 10, 6, Event::outage, "1", true},
           Row{"000001", true, 10, 6, Event::lost_place, "000001", true},
           Row{"L", false, 0, 6},  // another connection would not help
           Row{"LLLL1", true, 0, 5},
           Row{"N", false, 0, 1},
           Row{"N", false, 0, 1, Event::outage, "1", true},
       }) {
    SCOPED_TRACE(row.answers + " then " + row.answers_then);
    std::string answers = row.answers;
    std::size_t probes = 0;
    bool loads = false;
    serve([&](FakeStream&, const Words& command) -> std::optional<std::string> {
      if (loads && is(command, "acquire")) return "-LOADING Redis is loading the dataset in memory\r\n";
      if (command.front() != "PUBLISH") return std::nullopt;
      switch (answers[std::min(probes++, answers.size() - 1)]) {
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
    const auto attempt = wait();
    EXPECT_EQ(dialled_within(1min), row.dialled);
    EXPECT_EQ(counts_on_messages(), row.reachable);
    EXPECT_EQ(asked_within(1min) >= 60, !row.reachable) << "often enough to notice a grant";
    EXPECT_LE(probes, row.probes);
    if (row.event == Event::none) continue;
    answers = row.answers_then;
    probes = 0;
    if (row.event == Event::cut) server.cut();
    if (row.event == Event::lost_place) discard(queue().at(0));
    loads = row.event == Event::outage;
    engine.advance(10s);
    loads = false;
    engine.advance(1min);
    EXPECT_EQ(counts_on_messages(), row.reachable_then);
  }
}

// The waiters of a lock have a channel, in its slot, while there are some.
TEST_F(RedisWaitingTest, Cluster_ChannelIsSubscribedWhileALockHasWaiters) {
  backend = make("redis-cluster://localhost");
  hold("other");
  const auto other = contend({.name = "other"});
  hold();
  for (int i = 1; i <= 2; ++i) {
    auto first = contend(true);
    auto second = contend(true);
    EXPECT_EQ(sent("SSUBSCRIBE"), 1 + i) << "one for each lock";
    EXPECT_TRUE(counts_on_messages());
    first.reset();
    engine.run();
    EXPECT_EQ(sent("SUNSUBSCRIBE"), i - 1);
    second.reset();
    engine.run();
    EXPECT_EQ(sent("SUNSUBSCRIBE"), i);
  }
}

}  // namespace
}  // namespace dlock::redis
