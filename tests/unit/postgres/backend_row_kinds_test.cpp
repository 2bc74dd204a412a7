// Locks in rows that are no plain locks. Requests for what several may hold are one statement, whatever they want. Who
// observes an election is told of each change. With strategy=optimistic, a client takes over what it sees stand still.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend_rows_fixture.hpp"
#include "backends/common/sql/observed_versions.hpp"

namespace dlock::postgres {

namespace {

class BackendSharing : public BackendRowsTest {
 protected:
  using BackendRowsTest::BackendRowsTest;

  [[nodiscard]] std::unique_ptr<Attempt> ask(bool wait, Mode mode = Mode::exclusive) {
    auto attempt = ours->contend(request("x", wait, mode));
    engine.run();
    return attempt;
  }
  [[nodiscard]] std::vector<std::string> last(std::size_t index) { return column(*queries("change").back(), index); }
};
class BackendSemaphores : public BackendSharing {
 protected:
  BackendSemaphores() : BackendSharing(LockKind::semaphore) {}
};
INSTANTIATE_TEST_SUITE_P(, BackendSemaphores, testing::Values(Strategy::table), name_of_strategy);
class BackendReadWriteLocks : public BackendSharing {
 protected:
  BackendReadWriteLocks() : BackendSharing(LockKind::read_write) {}
};
INSTANTIATE_TEST_SUITE_P(, BackendReadWriteLocks, testing::Values(Strategy::table), name_of_strategy);
class BackendElections : public BackendRowsTest {
 protected:
  BackendElections() : BackendRowsTest(LockKind::election) {}
};
INSTANTIATE_TEST_SUITE_P(, BackendElections, testing::ValuesIn(row_strategies), name_of_strategy);

TEST_P(BackendSemaphores, RequestsOfOneTask_ShareAStatementOfUpTo100) {
  const auto first = ours->contend(request("x", true));
  const auto second = ask(true);
  ASSERT_TRUE(first->grant && second->grant);
  EXPECT_EQ(second->grant->kind, LockKind::semaphore);
  EXPECT_GT(second->grant->token, first->grant->token);
  give_back(*first);
  renew(*second);
  EXPECT_EQ(said(*ask(true)), "granted");
  EXPECT_EQ(take_answers(), (Words{"x released", "x renewed"}));
  EXPECT_EQ(last(2), (Words{"0", "1", "2"}));
  EXPECT_EQ(last(6), (Words{"1", "1", "2"}));
  EXPECT_EQ(take_sent(), (Words{"change", "change"}));
  (void)contend_for(150);
  EXPECT_EQ(sizes("change"), (std::vector<std::size_t>{100, 50}));
}

// A renewal finds that the leases of others have expired, and notifies, too.
TEST_P(BackendSemaphores, NotificationQueueFull_RequestsSucceed) {
  refuse_notifications(".change");
  const auto attempt = ask(false);
  ASSERT_TRUE(attempt->grant);
  engine.advance(1s);
  renew(*attempt);
  engine.run();
  EXPECT_EQ(take_answers(), Words{"x renewed"});
  EXPECT_EQ(count("change"), 4U);
}

// Half of its mark is never more than its lease, and it looks before that is over.
TEST_P(BackendReadWriteLocks, WaitingWriter_KeepsReadersOut) {
  for (const bool gives_up : {false, true}) {
    const auto reader = ask(true, Mode::shared);
    const auto another = ask(true, Mode::shared);
    ASSERT_TRUE(reader->grant && another->grant);
    EXPECT_EQ(reader->grant->mode, Mode::shared);
    EXPECT_EQ(said(*ask(false)), "busy");
    EXPECT_EQ(last(5), last(6)) << "all permits";
    EXPECT_EQ(last(7), Words{"0"}) << "it does not wait";
    const auto writer = ask(true);
    EXPECT_EQ(last(7), Words{"6000"});
    const std::size_t before = count("change");
    engine.advance(3s);
    EXPECT_GT(count("change"), before);
    EXPECT_EQ(row("x").writer, writer->request.owner.to_string());
    EXPECT_EQ(said(*ask(false, Mode::shared)), "busy");
    if (gives_up) {
      writer->contention.reset();
      engine.run();
      EXPECT_TRUE(row("x").writer.empty());
      EXPECT_EQ(said(*ask(false, Mode::shared)), "granted");
      continue;
    }
    EXPECT_EQ(release(*ours, *reader, 0s), "released");
    EXPECT_EQ(release(*ours, *another, 0s), "released");
    engine.advance(3s);
    ASSERT_TRUE(writer->grant);
    EXPECT_TRUE(row("x").writer.empty());
    const std::size_t entered = count("change");
    writer->contention.reset();
    engine.advance(1s);
    EXPECT_EQ(count("change"), entered) << "there is nothing to take away";
    EXPECT_EQ(release(*ours, *writer), "released");
  }
}

TEST_P(BackendElections, Observers_AreNotifiedOfGrantAndEnd) {
  int changes = 0;
  const auto holder = held_by_others("x");
  EXPECT_EQ(release(*others, *holder, 0s), "released");
  const auto watch = ours->backend->watch(kind, "x", [&changes] { ++changes; });
  engine.advance(100ms);
  EXPECT_EQ(changes, 1) << "it may have changed before anybody listened";
  engine.advance(1min);
  EXPECT_EQ(std::exchange(changes, 0), 1);
  break_listening_connection();
  engine.advance(1s);
  EXPECT_EQ(changes, 1) << "or while nobody listened";
  const auto leading = held_by_others("x");
  EXPECT_EQ(changes, 2);
  LockRequest standing = request("x", true);
  standing.value = "10.0.0.7:80";
  const auto next = ours->contend(standing);
  engine.run();
  changes = 0;
  EXPECT_EQ(release(*others, *leading, 0s), "released");
  EXPECT_GE(changes, 1) << "who only looks does not keep it from those who want to lead";
  ASSERT_TRUE(next->grant);
  EXPECT_EQ(next->grant->kind, LockKind::election);
  EXPECT_EQ(row("x").holder, "host:1:test\n10.0.0.7:80");
}

TEST_P(BackendElections, NotificationQueueFull_GrantSucceeds) {
  refuse_notifications(".acquire");
  const auto leading = ours->contend(request("x", false));
  engine.run();
  EXPECT_TRUE(leading->grant);
  EXPECT_EQ(count("acquire"), 2U);
}

// --- Holders that are seen to stand still ----------------------------------------------------------------------------

class PostgresObservedVersions : public testing::Test {
 protected:
  std::chrono::nanoseconds note(std::int64_t version, std::chrono::nanoseconds lease = 30s,
                                const std::string& owner = "a") {
    return observed.note("x", {.owner = owner, .version = version}, lease, now);
  }
  [[nodiscard]] bool over() const { return !observed.over("x", now).owner.empty(); }

  TimePoint now = TimePoint() + 1h;
  ObservedVersions observed;
};

// Ten thousand waiters are ordinary, and the holders of all their locks may have died together.
TEST_F(PostgresObservedVersions, AwaitedLocks_HaveNoLimit) {
  constexpr int names = 25'000;
  const auto look_at_all = [&] {
    std::chrono::nanoseconds left{};
    for (int i = 0; i < names; ++i) {
      left = std::max(left, observed.note("x" + std::to_string(i), {.owner = "a", .version = i}, 10s, now));
    }
    return left;
  };
  for (int second = 10; second >= 0; --second) {
    ASSERT_EQ(look_at_all(), std::chrono::seconds(second));
    now += 1s;
  }
  for (int i = 0; i < names; ++i) ASSERT_FALSE(observed.over("x" + std::to_string(i), now).owner.empty()) << i;
}

// One that is tried for from time to time stays, and is dropped after long once there is much else.
TEST_F(PostgresObservedVersions, RecentVersions_AreKept) {
  for (const auto& [apart, kept] : {std::pair<std::chrono::nanoseconds, bool>(9min, true), {1h, false}}) {
    (void)note(5);
    now += apart;
    for (int i = 0; i < 60'000; ++i) {
      (void)observed.note(std::to_string(apart.count() + i), {.owner = "a", .version = 1}, 30s, now);
    }
    EXPECT_EQ(over(), kept);
  }
}

// A lock whose version stays the same for its lease is taken over.
class BackendRowsOfOptimistic : public BackendRowsTest {};
INSTANTIATE_TEST_SUITE_P(, BackendRowsOfOptimistic, testing::Values(Strategy::optimistic), name_of_strategy);

// Shows: hole postgresql-unwatched
TEST_P(BackendRowsOfOptimistic, VersionUnchangedForOneLease_LockIsTakenOver) {
  const auto held = taken_by_others("x");
  engine.advance(4s);
  const TimePoint first_seen = engine.now();
  const auto waiting = ours->contend("x", true, 60s);
  engine.advance(10s - 1ns);
  EXPECT_FALSE(waiting->grant) << "one lease of the holder's, from when it was first seen";
  engine.advance(10ms);
  ASSERT_TRUE(waiting->grant);
  EXPECT_GT(waiting->grant->token, held->grant->token);
  EXPECT_LE(queries("acquire").back()->sent, first_seen + 10s + 5ms);
  renew(*others, *held);
  engine.run();
  EXPECT_EQ(take_answers(), Words{"x lost"});
}

// Shows: hole postgresql-unwatched
TEST_P(BackendRowsOfOptimistic, SeparateTries_UseTheVersionsThatTheClientSaw) {
  const auto held = taken_by_others("x");
  spoil(".acquire", Fate::hold, 1);
  const auto first = acquire("x");
  engine.advance(2s);
  heal();
  engine.run();
  EXPECT_EQ(said(*first), "busy") << "it stands still from when the answer that showed it arrived";
  engine.advance(10s - 1ns);
  EXPECT_EQ(said(*acquire("x")), "busy");
  engine.advance(1ns);
  const auto theirs = others->contend("x", false);
  engine.run();
  EXPECT_EQ(said(*theirs), "busy");
  EXPECT_EQ(said(*acquire("x")), "granted");
}

}  // namespace

}  // namespace dlock::postgres
