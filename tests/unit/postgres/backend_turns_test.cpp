// More who wait for locks of sessions than there are connections.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend_fixture.hpp"

namespace dlock::postgres {

namespace {

class BackendTurns : public BackendTest {
 protected:
  static constexpr auto step = 50ms;
  using Attempts = std::vector<std::unique_ptr<Attempt>>;

  BackendTurns() : BackendTest(3) {}

  [[nodiscard]] bool comes_true(const std::function<bool()>& condition, std::chrono::nanoseconds within) {
    for (std::chrono::nanoseconds passed{}; passed < within && !condition(); passed += step) engine.advance(step);
    return condition();
  }
  [[nodiscard]] bool is_granted(const Attempt& attempt, std::chrono::nanoseconds within) {
    return comes_true([&] { return attempt.grant.has_value(); }, within);
  }
  [[nodiscard]] static std::string elsewhere(int i) { return "elsewhere/" + std::to_string(i); }
  [[nodiscard]] Attempts wait_for_names_held_elsewhere(int count) {
    Attempts waiting;
    for (int i = 0; i < count; ++i) {
      held.push_back(taken_by_others(elsewhere(i)));
      waiting.push_back(acquire(elsewhere(i), true));
    }
    return waiting;
  }

  Attempts held;  // by others
};
INSTANTIATE_TEST_SUITE_P(, BackendTurns, testing::Values(Strategy::advisory, Strategy::for_update), name_of_strategy);

TEST_P(BackendTurns, NestedLocksOfMoreThanThereAreConnectionsGoOn) {
  for (const std::size_t depth : {2U, 3U}) {
    struct Nest {
      Attempts attempts;
      int rounds = 0;
    };
    std::vector<Nest> nests(8);
    const auto go_on = [&](Nest& nest) {
      if (!nest.attempts.empty() && !nest.attempts.back()->grant) return;
      if (nest.attempts.size() == depth) {
        while (!nest.attempts.empty()) {
          EXPECT_NE(release(*ours, *nest.attempts.back(), 0s), "not ours");
          nest.attempts.pop_back();
        }
        ++nest.rounds;
      }
      nest.attempts.push_back(ours->contend(std::string(1, static_cast<char>('a' + nest.attempts.size())), true));
    };
    EXPECT_TRUE(comes_true(
        [&] {
          std::for_each(nests.begin(), nests.end(), go_on);
          return std::all_of(nests.begin(), nests.end(), [](const Nest& nest) { return nest.rounds >= 3; });
        },
        10min));
    EXPECT_TRUE(ours->host.losses.empty());
    for (Nest& nest : nests) std::erase_if(nest.attempts, [](const auto& each) { return !each->grant; });
    for (Nest& nest : nests) {
      for (auto& each : nest.attempts) (void)release(*ours, *each, 0s);
    }
  }
}

TEST_P(BackendTurns, AFreeLockIsTakenAndATryIsAnsweredHoweverManyWait) {
  const Attempts waiting = wait_for_names_held_elsewhere(12);
  EXPECT_TRUE(is_granted(*acquire("a", true), 1s));
  EXPECT_TRUE(is_granted(*acquire("b"), 1s));
  const auto busy = acquire(elsewhere(11));
  EXPECT_TRUE(comes_true([&] { return busy->busy_reports == 1; }, 1s));
}

TEST_P(BackendTurns, EachOfThoseThatWaitGetsItsLockWhenItIsFree) {
  const Attempts waiting = wait_for_names_held_elsewhere(12);
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    (void)release(*others, *held[i], 0s);
    ASSERT_TRUE(is_granted(*waiting[i], 30s)) << i;
    EXPECT_EQ(release(*ours, *waiting[i], 1s), "released");
  }
}

// A lock that somebody else always waits for is never free when it is tried, and who wants it may hold what everybody
// here waits for.
TEST_P(BackendTurns, EachOfThoseThatWaitStandsInTheServersQueueNowAndThen) {
  const Attempts waiting = wait_for_names_held_elsewhere(12);
  for (int minute = 0; minute < 3; ++minute) {
    std::vector<bool> stood(12);
    for (int i = 0; i < 120; ++i) {
      engine.advance(500ms);
      for (std::size_t n = 0; n < stood.size(); ++n) {
        stood[n] = stood[n] || owners(elsewhere(static_cast<int>(n))) > 1;
      }
    }
    EXPECT_EQ(std::count(stood.begin(), stood.end(), true), 12) << "in minute " << minute;
  }
  EXPECT_LT(server.wire().dialled, 12 + 25) << "a slice that ends needs no new connection";
  for (const auto& each : waiting) EXPECT_LE(each->busy_reports, 400);
}

TEST_P(BackendTurns, ManyWhoWaitDoNotAskAllTheTime) {
  const Attempts waiting = wait_for_names_held_elsewhere(99);
  engine.advance(2s);
  sent.clear();
  engine.advance(4s);
  EXPECT_LT(sent.size(), 2000U);
  EXPECT_GT(sent.size(), 40U);
}

TEST_P(BackendTurns, WaitersOfALockAreServedInTheirOrder) {
  const auto holder = taken_by_others("a");
  Attempts waiting;
  for (int i = 0; i < 7; ++i) waiting.push_back(acquire("a", true));
  (void)release(*others, *holder, 0s);
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    ASSERT_TRUE(is_granted(*waiting[i], 2s)) << i;
    for (std::size_t later = i + 1; later < waiting.size(); ++later) EXPECT_FALSE(waiting[later]->grant);
    EXPECT_EQ(release(*ours, *waiting[i], 100ms), "released");
  }
}

TEST_P(BackendTurns, AHoldersLeaseAndReleaseNeedNoConnectionOfThoseThatWait) {
  const auto a = acquire("a");
  const Attempts waiting = wait_for_names_held_elsewhere(12);
  const auto second = acquire("a", true);
  engine.advance(3 * options.lease);
  EXPECT_TRUE(ours->host.losses.empty());
  EXPECT_GT(ours->host.extensions.size(), 6U);
  EXPECT_EQ(release(*ours, *a, 100ms), "released");
  EXPECT_TRUE(is_granted(*second, 100ms)) << "who waits for it in the same client learns of it at once";
}

TEST_P(BackendTurns, WhoeverWaitsWithoutAConnectionKnowsThatTheLockIsBusy) {
  const Attempts waiting = wait_for_names_held_elsewhere(6);
  const auto holder = taken_by_others("b");
  for (const auto& each : {acquire("b", true), acquire("b", true)}) {
    engine.advance(1s);
    EXPECT_EQ(said(*each), "busy");
    EXPECT_TRUE(each->unreachable_reports.empty());
  }
}

TEST_P(BackendTurns, WhoeverGivesUpOrFailsMakesRoomForTheNext) {
  Attempts waiting = wait_for_names_held_elsewhere(6);
  for (std::size_t i = 0; i < 4; ++i) waiting[i].reset();
  engine.advance(3s);
  EXPECT_EQ(owners(elsewhere(4)), 2U);
}

TEST_P(BackendTurns, ATryThatIsUnderWayWhenTheWaitIsGrantedLeavesNothing) {
  Attempts waiting = wait_for_names_held_elsewhere(6);
  const auto holder = taken_by_others("x");
  const auto x = acquire("x", true);
  engine.advance(500ms);
  spoil(try_word(), Fate::hold, 1);
  const auto hasty = acquire("x");
  for (auto& each : waiting) each.reset();
  engine.advance(1s);
  EXPECT_EQ(owners("x"), 2U) << "it waits in the server";
  (void)release(*others, *holder, 0s);
  EXPECT_TRUE(is_granted(*x, 1s));
  heal();
  engine.run();
  EXPECT_FALSE(hasty->grant);
  EXPECT_EQ(release(*ours, *x, 1s), "released");
  EXPECT_EQ(owners("x"), 0U);
}

class BackendTurnsOfForUpdate : public BackendTurns {};
INSTANTIATE_TEST_SUITE_P(, BackendTurnsOfForUpdate, testing::Values(Strategy::for_update), name_of_strategy);

TEST_P(BackendTurnsOfForUpdate, WhoeverGaveItsConnectionUpStandsInNoQueueUntilItsTurn) {
  const Attempts waiting = wait_for_names_held_elsewhere(2);
  const auto in_queue = [this] { return owners(elsewhere(0)) + owners(elsewhere(1)) - 2; };
  ASSERT_EQ(in_queue(), 2U);
  const auto a = acquire("a");
  const auto b = acquire("b", true);
  ASSERT_TRUE(is_granted(*b, 1s)) << "a connection of one that waits";
  EXPECT_EQ(in_queue(), 1U);
  EXPECT_EQ(release(*ours, *b, 3s), "released");
  EXPECT_EQ(in_queue(), 1U) << "it would have to give it up again";
  EXPECT_EQ(release(*ours, *a, 0s), "released");
  EXPECT_TRUE(comes_true([&] { return in_queue() == 2; }, 15s));
}

// A transaction waits until those end that are older than itself, which a wait in the server is.
TEST_P(BackendTurns, WhereATransactionWaitsForSnapshotsWaitsBeginAnewOnce) {
  const Attempts waiting = wait_for_names_held_elsewhere(2);
  engine.advance(4s);
  const int before = server.wire().dialled;
  for (const char* const transaction : {"7/21", "7/22"}) {
    server.waits_for_snapshots = transaction;
    const int dialled = server.wire().dialled;
    engine.advance(4s);
    EXPECT_GT(server.wire().dialled, dialled);
    const int after = server.wire().dialled;
    engine.advance(20s);
    EXPECT_EQ(server.wire().dialled, after) << "it does not wait for what began later";
  }
  EXPECT_LE(server.wire().dialled, before + 4);
  EXPECT_EQ(owners(elsewhere(0)), 2U);
}

// --- A server without connections ------------------------------------------------------------------------------------

TEST_P(BackendTurns, AtAFullServerWhoeverOnlyWaitsConnectsEveryFewSeconds) {
  server.wire().room = 0;
  Attempts waiting;
  for (const char* const name : {"a", "b", "c", "a", "b"}) waiting.push_back(acquire(name, true));
  engine.advance(30s);
  const int before = server.wire().dialled;
  engine.advance(60s);
  EXPECT_GE(server.wire().dialled - before, 5);
  EXPECT_LE(server.wire().dialled - before, 13);
  server.wire().room.reset();
  EXPECT_TRUE(comes_true([&] { return waiting[0]->grant || waiting[3]->grant; }, 60s));
}

TEST_P(BackendTurns, AtAFullServerAHolderThatWantsAnotherLockConnectsSoon) {
  const auto a = acquire("a");
  const auto holder = taken_by_others("b");
  server.wire().room = server.wire().connected();
  const auto b = acquire("b", true);
  engine.advance(5s);
  server.wire().room = *server.wire().room + 1;
  (void)release(*others, *holder, 0s);
  EXPECT_TRUE(is_granted(*b, 2s));
}

}  // namespace

}  // namespace dlock::postgres
