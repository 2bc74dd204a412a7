// Acquiring, renewing, releasing: the simulation spoils each request of these; here are times, codes and limits. And
// waiting without a queue, and when a waiter asks that nothing wakes.
#include <gtest/gtest.h>

#include <chrono>
#include <set>

#include "backend_fixture.hpp"
#include "backends/redis/timing.hpp"
#include "backends/redis/waiting/check_time.hpp"

namespace dlock::redis {
namespace {

using RedisLockTest = BackendTest;
using ReleaseStatus = ReleaseOutcome::Status;
using RenewStatus = RenewOutcome::Status;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using test::failed;

// H8: from before the request of the attempt that was answered, not from the call, nor from the answer.
// Shows: known-end
// Hazard: H8 validity counted from the answer: from sending
TEST_F(RedisLockTest, Lease_CountsFromTheRequest) {
  server.dialling = FakeServer::Dialling::refuse;
  const auto attempt = contend(true, 10s);
  engine.advance(3s);
  server.dialling = FakeServer::Dialling::accept;
  TimePoint sent;
  answer_by("acquire", [&](FakeStream& from, const Words& command) -> std::string {
    sent = engine.now();
    const std::string granted = bytes_of(model.run(command));
    (void)engine.schedule(engine.now() + 1500ms, [&from, granted] { from.reply(granted); });
    return "";
  });
  engine.advance(3s);
  ASSERT_TRUE(attempt->grant);
  EXPECT_EQ(attempt->grant->valid_until, lease_valid_until(sent, 10s));
}

// H3
// Hazard: H3 one value for several acquires: new owners
TEST_F(RedisLockTest, Acquire_HasItsOwnValueWhichARetryKeeps) {
  hold();
  answer_by("script", [this](FakeStream&, const Words& command) -> std::string {
    (void)model.run(command);
    return "";
  });
  const auto first = contend(true);
  const auto second = contend(true);
  engine.advance(10s);
  EXPECT_GT(asked(), 4U) << "each request is carried out, none is answered";
  EXPECT_EQ(queue().size(), 2U);
}

// H13: the broken connection may deliver an acquire after the release.
TEST_F(RedisLockTest, AcquireArrivesAfterItsRelease_IsTakenBack) {
  for (const char* strategy : {"queue", "broadcast", "poll"}) {
    SCOPED_TRACE(strategy);
    backend = make(std::string("redis://localhost?strategy=") + strategy);
    Words late;
    answer_by("script", [&](FakeStream&, const Words& command) -> std::string {
      late = command;
      return "";
    });
    const auto attempt = contend(true);
    serve();
    server.cut();
    engine.advance(2s);
    ASSERT_TRUE(attempt->grant);
    attempt->contention.reset();
    EXPECT_EQ(release(*attempt), ReleaseStatus::released);
    (void)model.run(late);
    EXPECT_NE(holder(), "");
    engine.advance(2s);
    EXPECT_EQ(holder(), "");
  }
}

// H5
// Hazard: H5 zero, negative, overflowing leases: bounds
TEST_F(RedisLockTest, Lease_IsSentInMillisecondsRoundedUp) {
  const auto attempt = contend(false, 20ms + 1ns);
  EXPECT_EQ(model.run({"PTTL", "dlock:lock"}).integer, 21);
}

TEST_F(RedisLockTest, SenselessAnswer_IsFinalAndTakenBack) {
  answer_by("acquire", [this](FakeStream&, const Words& command) -> std::string {
    (void)model.run(command);
    return "+OK\r\n";
  });
  for (const bool wait : {false, true}) {
    auto attempt = contend(wait);
    ASSERT_TRUE(failed(*attempt, errc::protocol));
    attempt.reset();
    engine.run();
    EXPECT_EQ(holder(), "");
  }
}

// Hazard: H8 validity counted from the answer: from sending
TEST_F(RedisLockTest, Renewal_CountsFromTheRequest) {
  const auto attempt = contend(false);
  engine.advance(10s);
  const TimePoint sent = engine.now();
  EXPECT_EQ(renew(*attempt), RenewStatus::renewed);
  EXPECT_EQ(renewed->valid_until, lease_valid_until(sent, 30s));
}

// H18: its time limit is its own; others go on using the connection.
TEST_F(RedisLockTest, RenewalUnanswered_EndsInAQuarterOfTheLease) {
  const auto attempt = contend(false, 2s);
  answer_instead("script", "");
  EXPECT_EQ(renew(*attempt, 500ms - 1ms), std::nullopt);
  engine.advance(1ms);
  ASSERT_TRUE(renewed);
  EXPECT_EQ(renewed->status, RenewStatus::failed);
  const auto next = take_another();
  server.connections.front()->reply(number(1) + bulk("8"));
  engine.run();
  ASSERT_TRUE(next->grant);
  EXPECT_EQ(next->grant->token, FencingToken(8));
  EXPECT_EQ(server.dialled, 1);
}

TEST_F(RedisLockTest, RequestNeverDone_EndsInTime) {
  const auto attempt = contend(false);
  answer_by("script", [&](FakeStream& from, const Words& command) -> std::string {
    const std::string more = is(command, "release") ? "*3|:1|:1|:1|" : "*5|:0|:-2|:-1|:0|:0|";
    (void)engine.schedule(engine.now() + 100ms, [&from, more] { from.reply(lines(more)); });
    return "";
  });
  (void)release(*attempt);
  const auto other = contend(false);
  engine.advance(2s);
  EXPECT_EQ(released, ReleaseStatus::released);
  EXPECT_TRUE(other->reported());
  EXPECT_EQ(asked_within(10s), 0U);
}

TEST_F(RedisLockTest, ReleaseCutOffWhileItGoesOn_IsARelease) {
  const auto attempt = contend(false);
  answer_by("release", [calls = 0](FakeStream&, const Words&) mutable -> std::string {
    return ++calls == 1 ? lines("*3|:1|:1|:1|") : "";
  });
  (void)release(*attempt);
  server.cut();
  engine.run();
  EXPECT_EQ(released, ReleaseStatus::released);
}

// H32
// Hazard: H32 destructors: bounded, never throw
TEST_F(RedisLockTest, ReleaseWithoutAConnection_IsSentAtTheEnd) {
  const auto attempt = contend(false);
  serve([this](FakeStream&, const Words& command) -> std::optional<std::string> {
    // It introduces itself, and ends before it is answered.
    if (command.front() == "CLIENT") engine.post([this] { backend.reset(); });
    if (command.front() == "CLIENT" || server.calls("release").size() == 1) return "";
    return std::nullopt;
  });
  server.cut();
  (void)release(*attempt, 1s);
  ASSERT_FALSE(backend);
  EXPECT_EQ(holder(), "") << "it was not carried out on the connection that broke, but at the end";
}

// H19. A lock that could not be taken back may be held without a holder that knows. The answer to WAIT may be lost with
// the connection, which is ambiguous, until the lock is taken back.
// Hazard: H19 a failover loses locks: `replicas_ack`, fencing
TEST_F(RedisLockTest, TooFewReplicas_LockIsTakenBackFirst) {
  struct Row {
    bool loses_answer;
    bool releases;
    errc code;
    const char* words;
  };
  for (const Row& row : {Row{false, true, errc::unavailable, "1 of 2"}, Row{true, true, errc::unavailable, ""},
                         Row{false, false, errc::ambiguous, "1 of 2"}}) {
    backend = make("redis://localhost?replicas_ack=2");
    serve([&](FakeStream&, const Words& command) -> std::optional<std::string> {
      if (is(command, "release") && !row.releases) return "";
      if (command.front() != "WAIT") return std::nullopt;
      if (row.loses_answer) engine.post([this] { server.cut(); });
      return row.loses_answer ? "" : number(1);
    });
    const auto attempt = contend(false);
    EXPECT_TRUE(row.releases || !attempt->failure) << "while it is being taken back";
    engine.advance(2s);
    EXPECT_EQ(holder().empty(), row.releases);
    EXPECT_TRUE(failed(*attempt, row.code, row.words));
  }
}

// H18: WAIT blocks its connection, so nothing else goes over it.
// Hazard: H18 head-of-line blocking: a connection for `WAIT`
TEST_F(RedisLockTest, WaitForReplicas_DelaysNoOtherRequest) {
  const FakeStream* waiting = nullptr;
  serve([&](FakeStream& from, const Words& command) -> std::optional<std::string> {
    if (command.front() == "WAIT") waiting = &from;
    return &from == waiting ? std::optional(std::string()) : std::nullopt;
  });
  backend = make("redis://localhost?replicas_ack=1");
  const auto attempt = contend(false);
  ASSERT_NE(waiting, nullptr);
  attempt->grant = Grant{"lock", attempt->request.owner, FencingToken(7), {}, 30s};
  EXPECT_EQ(release(*attempt), ReleaseStatus::released);
}

using RedisStrategyTest = BackendTest;

// Shows: waiters-woken
TEST_F(RedisStrategyTest, Broadcast_WakesAllWatchers) {
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
  (first->grant ? first : second).reset();
  engine.run();
  EXPECT_EQ(sent("UNSUBSCRIBE"), 0);
  (first ? first : second).reset();
  engine.run();
  EXPECT_GE(sent("UNSUBSCRIBE"), 1) << "the last one ends the subscription";
}

TEST_F(RedisStrategyTest, Poll_NeedsNoSubscription) {
  hold();
  backend = make("redis://localhost?strategy=poll");
  const auto attempt = contend(true);
  EXPECT_GE(asked_within(1s), 5U);
  EXPECT_EQ(server.dialled, 1);
}

TEST_F(RedisStrategyTest, EachStrategy_HasItsKinds) {
  for (const std::string strategy : {"queue", "broadcast", "poll"}) {
    const Capabilities caps = make("redis://h?strategy=" + strategy)->capabilities();
    for (const LockKind kind : {LockKind::read_write, LockKind::semaphore}) {
      EXPECT_EQ(caps.has(kind), strategy != "broadcast") << strategy;
    }
    EXPECT_TRUE(caps.has(LockKind::election)) << strategy;
  }
}

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

TEST_F(RedisLockTest, ManyDeadWaiters_ReleaseAndTryGoOnUntilTheyAreRemoved) {
  for (const char* url : {"redis://localhost", "redis://localhost?strategy=poll"}) {
    SCOPED_TRACE(url);
    backend = make(url);
    queue_others(300, true);
    auto before = asked();
    const auto attempt = contend(false);
    ASSERT_TRUE(attempt->grant);
    EXPECT_EQ(attempt->busy_reports, 0) << "nobody has the lock";
    EXPECT_GT(asked(), before + 1);
    queue_others(300, true);
    before = server.calls("release").size();
    EXPECT_EQ(release(*attempt), ReleaseStatus::released);
    EXPECT_GT(server.calls("release").size(), before + 1);
    EXPECT_TRUE(queue().empty());
  }
}

}  // namespace
}  // namespace dlock::redis
