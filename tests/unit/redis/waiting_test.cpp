// Waiting in the server's queue and on channels: wake-ups that come, that get lost, what they cost, and when a waiter
// that nothing wakes asks again.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backend_fixture.hpp"
#include "backends/redis/timing.hpp"
#include "backends/redis/waiting/check_time.hpp"
#include "tests/support/manual_engine.hpp"

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
};

TEST_F(RedisWaitingTest, FreeLock_CostsOneRequest) {
  EXPECT_TRUE(contend(true)->grant);
  EXPECT_EQ(server.commands.size(), 1U);
  EXPECT_EQ(server.dialled, 1);
}

TEST_F(RedisWaitingTest, HeldLock_WaiterQueuesAndAsksAgainOnceReachable) {
  hold();
  const auto attempt = contend(true);
  EXPECT_EQ(asked(), 2U);
  EXPECT_TRUE(is_first(*attempt) && counts_on_messages());
  EXPECT_GE(attempt->busy_reports, 1);
  const auto second = contend(true);
  EXPECT_EQ(asked(), 3U);
  EXPECT_EQ(server.dialled, 2) << "one subscription serves all waiters";
}

TEST_F(RedisWaitingTest, WakeUp_IsConfirmed) {
  hold();
  const auto attempt = contend(true);
  const auto before = asked();
  wake_last();
  EXPECT_EQ(asked(), before + 1);
  EXPECT_FALSE(attempt->grant);
  free();
  server.publish(channel(), queue().at(0));
  EXPECT_FALSE(attempt->grant);
  engine.run();
  EXPECT_TRUE(attempt->grant);
}

TEST_F(RedisWaitingTest, WakeUpLost_WaiterAsks) {
  hold();
  const auto attempt = contend(true);
  free();
  engine.advance(longest_poll);
  EXPECT_TRUE(attempt->grant);
}

// Lockers in other languages publish nothing when they release. They know no semaphores of dlock.
TEST_F(RedisWaitingTest, NoPrefix_FirstInLineAsksOften) {
  backend = make("redis://localhost?prefix=");
  const auto holder = contend({.name = "permits", .kind = LockKind::semaphore});
  const auto waiter = contend({.name = "permits", .wait = true, .kind = LockKind::semaphore});
  EXPECT_EQ(asked_within(2500ms), 0U);
  (void)model.run({"SET", "lock", "another", "PX", "86400000"});
  const auto attempt = contend(true);
  EXPECT_GE(asked_within(2500ms), 10U);
}

TEST_F(RedisWaitingTest, ReachableWaiters_AskRarely) {
  const auto attempts = contend_many(100);
  const auto questions = asked_within(10s);
  EXPECT_GE(questions, 200U);
  EXPECT_LE(questions, 300U);
}

// The server sends the next in line a message when it grants the lock.
TEST_F(RedisWaitingTest, ToldToWatch_WaiterAsksWhenTheLeaseEnds) {
  struct Row {
    const char* name;
    std::chrono::milliseconds lease;  // what is left of it
    std::vector<const char*> messages;
    bool loses_its_place;
    std::chrono::milliseconds none_before;
    std::chrono::milliseconds one_by;
    std::chrono::milliseconds none_then_before;
    std::chrono::milliseconds another_by;
  };
  for (const Row& row : {
           Row{"the holder renews: it watches that lease, too", 3s, {" 1000"}, false, 1s, 1010ms, 3s, 3010ms},
           Row{"a longer lease delays no check", 3s, {" 30000"}, false, 3600ms, 5s, 0s, 15s},
           Row{"nor does a later message", 3s, {" 500", " 1000"}, false, 500ms, 510ms, 0s, 15s},
           Row{"behind seven others again, it watches nobody", 3s, {" 30000"}, true, 3600ms, 5s, 0s, 15s},
       }) {
    SCOPED_TRACE(row.name);
    (void)model.run({"FLUSHALL"});
    hold("lock", row.lease);
    queue_others(7);
    const auto attempt = contend(true);
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
    engine.advance(std::max<std::chrono::nanoseconds>(0ns, begin + row.none_then_before - engine.now()));
    EXPECT_EQ(asked(), before + 1);
    engine.advance(begin + row.another_by - engine.now());
    EXPECT_GE(asked(), before + 2);
  }
}

// Its answer may be older than the message.
TEST_F(RedisWaitingTest, MessageDuringARequest_CountsAfterItsAnswer) {
  for (const auto& [message, pause] : {std::pair("", 0ms), std::pair(" 1000", 1000ms)}) {
    SCOPED_TRACE(message);
    (void)model.run({"FLUSHALL"});
    hold();
    queue_others(7);
    const auto attempt = contend(true);
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

// A wake-up may arrive after the waiter found out by asking: the lock it is about is held by then.
TEST_F(RedisWaitingTest, WakeUpArrivesLate_ReleasesNothing) {
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
  hold();
  const auto attempt = contend(true);
  for (int i = 0; i < 10; ++i) {
    wake_last();
    cut_subscriber();
    engine.advance(20ms);
    ASSERT_EQ(server.subscribers(), 1) << i;
  }
}

// One request finds out whether the server is usable again.
TEST_F(RedisWaitingTest, NewConnection_OneWaiterAsks) {
  const auto attempts = contend_many(5);
  answer_instead("acquire", "");
  server.connections.front()->close({errc::unavailable, "cut"});
  std::size_t reports = 0;
  EXPECT_EQ(asked_within(20ms), 1U);
  for (const auto& each : attempts) reports += each->unreachable_reports.size();
  EXPECT_EQ(reports, 0U) << "the others ask nothing";
}

// --- Places in the queue ---------------------------------------------------------------------------------------------

// A release discards the waiters of a client whose channel has no subscriber.
TEST_F(RedisWaitingTest, SubscriptionCut_WaiterClaimsItsPlace) {
  hold();
  const auto attempt = contend(true);
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
    (void)model.run({"FLUSHALL"});
    hold();
    const auto attempt = contend(true);
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

// A master that was demoted keeps its subscribers, and the new one counts nobody there.
TEST_F(RedisWaitingTest, CommandsMove_SubscriberFollows) {
  hold();
  const auto attempt = contend(true);
  ASSERT_EQ(server.connections.size(), 2U);
  model.refuses = RedisModel::Refuses::read_only;
  engine.advance(longest_poll);
  EXPECT_EQ(server.subscribers(), 0) << "it stays with the server that was left";
  model.refuses = RedisModel::Refuses::nothing;
  EXPECT_GE(dialled_within(2s), 2) << "one connection is an old one";
  EXPECT_EQ(server.subscribers(), 1);
  EXPECT_TRUE(counts_on_messages());
}

// The server is asked how many receive a message: nobody (0), the waiter's subscriber (1), it is loading (L), this user
// may not (N). The last answer is repeated.
TEST_F(RedisWaitingTest, SubscribersCounted_WaiterIsReachable) {
  enum class Event { none, cut, outage, lost_place };
  struct Row {
    std::string answers;
    bool reachable;  // after a minute
    int at_least;    // connections that are made
    int at_most;
    std::size_t probes;  // at most
    Event event = Event::none;
    std::string answers_then{};
    bool reachable_then = false;
  };
  for (const Row& row : {
           Row{"1", true, 0, 0, 1},
           Row{"01", true, 2, 2, 2},
           Row{"000001", true, 10, 10, 6},
           Row{"0000001", false, 10, 10, 6},  // that is given up, until there are new connections
           Row{"0", false, 10, 10, 6, Event::cut, "000001", true},
           Row{"0", false, 10, 10, 6, Event::cut, "0000001", false},
           Row{"0", false, 10, 10, 6, Event::outage, "1", true},
           Row{"000001", true, 10, 10, 6, Event::lost_place, "000001", true},
           Row{"L", false, 0, 0, 6},  // another connection would not help
           Row{"LLLL1", true, 0, 0, 5},
           Row{"N", false, 0, 0, 1},
           Row{"N", false, 0, 0, 1, Event::outage, "1", true},
       }) {
    SCOPED_TRACE(row.answers + " then " + row.answers_then);
    std::string answers = row.answers;
    std::size_t probes = 0;
    bool loads = false;
    (void)model.run({"FLUSHALL"});
    hold();
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
    const auto attempt = contend(true);
    const int dialled = dialled_within(1min);
    EXPECT_EQ(counts_on_messages(), row.reachable);
    EXPECT_GE(dialled, row.at_least);
    EXPECT_LE(dialled, row.at_most);
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

// --- Rights ----------------------------------------------------------------------------------------------------------

// H28
TEST_F(RedisWaitingTest, NoRightToSubscribe_PollsAndWarnsOnce) {
  hold();
  int probes = 0;
  serve([&probes](FakeStream&, const Words& command) -> std::optional<std::string> {
    if (command.front() == "PUBLISH") ++probes;
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
  EXPECT_EQ(probes, 0) << "it is not subscribed to";
}

TEST_F(RedisWaitingTest, NoRightToPublish_IsWarnedOfOnce) {
  model.may_publish = false;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(release(*contend(false)), ReleaseOutcome::Status::released);
  EXPECT_EQ(host.warnings.size(), 1U);
}

// --- Giving up -------------------------------------------------------------------------------------------------------

TEST_F(RedisWaitingTest, FirstRequestGivenUp_IsUndoneIfItWasSent) {
  answer_instead("acquire", "");
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
TEST_F(RedisWaitingTest, ReleaseUnconfirmed_IsSentOnceMoreAtTheEnd) {
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

// --- In a cluster ----------------------------------------------------------------------------------------------------

// The waiters of a lock have a channel, in its slot, while there are some.
TEST_F(RedisWaitingTest, Cluster_ChannelIsSubscribedWhileALockHasWaiters) {
  const auto sent = [this](const std::string& verb) {
    return std::ranges::count_if(server.commands, [&](const Words& command) { return command.front() == verb; });
  };
  backend = make("redis-cluster://localhost");
  hold("other");
  const auto other = contend({.name = "other", .wait = true});
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

// --- Without a queue -------------------------------------------------------------------------------------------------

TEST_F(RedisWaitingTest, Broadcast_WakesAllWatchers) {
  backend = make("redis://localhost?strategy=broadcast");
  const auto holder = contend(false);
  auto first = contend(true);
  auto second = contend(true);
  EXPECT_EQ(channel(), "dlock:w:lock:dlock:lock");
  const auto before = asked();
  (void)release(*holder);
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
TEST_F(RedisWaitingTest, Subscribed_WatcherAsksOnceMore) {
  hold();
  answer_instead("SUBSCRIBE", "");
  backend = make("redis://localhost?strategy=broadcast");
  const auto attempt = contend(true);
  const auto before = asked();
  server.connections.back()->reply(about_channel("subscribe", channel()));
  engine.run();
  EXPECT_EQ(asked(), before + 1);
  serve();
  cut_subscriber();
  EXPECT_EQ(asked_within(20ms), 1U) << "again";
}

TEST_F(RedisWaitingTest, Poll_NeedsNoSubscription) {
  hold();
  backend = make("redis://localhost?strategy=poll");
  const auto attempt = contend(true);
  EXPECT_GE(asked_within(1s), 5U);
  EXPECT_EQ(server.dialled, 1);
}

// --- Kinds of locks --------------------------------------------------------------------------------------------------

using RedisKindsTest = BackendTest;

TEST_F(RedisKindsTest, EachStrategy_HasItsKinds) {
  for (const auto& [url, shared] : {std::pair("redis://h", true), std::pair("redis://h?strategy=poll", true),
                                    std::pair("redis://h?strategy=broadcast", false)}) {
    const Capabilities caps = make(url)->capabilities();
    EXPECT_EQ(caps.has(LockKind::read_write), shared) << url;
    EXPECT_EQ(caps.has(LockKind::semaphore), shared) << url;
    EXPECT_TRUE(caps.has(LockKind::election)) << url;
  }
}

TEST_F(RedisKindsTest, OtherNumberOfPermits_EndsATryAndAWait) {
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

TEST_F(RedisKindsTest, NoQueue_WaitingWriterKeepsReadersOut) {
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

// --- When a waiter asks ----------------------------------------------------------------------------------------------

constexpr CheckBasis reachable{.reachable = true};
constexpr CheckBasis watching{.reachable = true, .watches_holder = true};
constexpr CheckBasis beside_foreigners{.reachable = true, .foreign_lockers = true};
constexpr CheckBasis unreachable{};

AcquireAnswer held_answer(std::uint64_t rank, std::optional<milliseconds> free_in = 30s, bool more = false) {
  return {.free_in = free_in, .rank = rank, .more = more};
}

TEST(RedisCheckTime, Answer_LeadsToATimeWithinBounds) {
  struct Row {
    std::string what;
    AcquireAnswer answer;
    CheckBasis basis;
    nanoseconds from;  // from now on
    nanoseconds to;
  };
  const std::vector<Row> rows = {
      {"the first, lease ends soon: just after it", held_answer(0, 40ms), reachable, 41ms, 43ms},
      {"the lease ends later than the safety net", held_answer(0), reachable, longest_poll * 3 / 4 - poll_beat,
       longest_poll},
      {"further back, too", held_answer(100), reachable, longest_poll * 3 / 4 - poll_beat, longest_poll},
      {"far back, the lease ends soon: not all at once", held_answer(5, 1s), reachable, 1s + 5 * head_poll,
       1s + 5 * head_poll + 3ms},
      {"unless it is to watch the holder", held_answer(7, 1s), watching, 1s + 1ms, 1s + 3ms},
      {"free, behind dead waiters", held_answer(9'000, 0ms, true), reachable, 1ms, 3ms},
      {"no end of the lease is known, foreign lockers", held_answer(0, std::nullopt), beside_foreigners,
       head_poll * 3 / 4, head_poll},
      {"foreign lockers, one place further back", held_answer(1), beside_foreigners, head_poll * 3 / 2, 2 * head_poll},
      {"foreign lockers, far back", held_answer(1'000'000'000), beside_foreigners, longest_poll * 3 / 4, longest_poll},
      {"no wake-up comes, the first", held_answer(0), unreachable, head_poll * 3 / 4, head_poll},
      {"no wake-up comes: before a grant runs out", held_answer(100), unreachable, longest_blind_poll * 3 / 4,
       longest_blind_poll},
      {"without a place in the queue", {.free_in = 30s}, unreachable, head_poll * 3 / 4, head_poll},
  };
  test::ManualEngine engine;
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    for (int i = 0; i < 20; ++i) {
      engine.manual_clock().advance(7ms);
      const nanoseconds pause = time_to_check(row.answer, row.basis, engine) - engine.now();
      EXPECT_GE(pause, row.from);
      EXPECT_LE(pause, row.to);
    }
  }
}

// The server answers many requests that arrive together for little more than one. But a thousand waiters that began at
// one moment must not all send at one moment.
TEST(RedisCheckTime, RarePolls_AreSpreadOverBeats) {
  test::ManualEngine engine;
  std::set<TimePoint> times;
  for (int i = 0; i < 100; ++i) times.insert(time_to_check(held_answer(0), reachable, engine));
  EXPECT_GT(*times.rbegin() - *times.begin(), longest_poll / 10);
  for (const TimePoint& time : times) EXPECT_EQ(time.time_since_epoch() % poll_beat, 0ns);
}

}  // namespace

}  // namespace dlock::redis
