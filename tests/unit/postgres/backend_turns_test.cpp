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

// A lock that somebody else always waits for is never free when it is tried, and who wants it may hold what everybody
// here waits for.
TEST_P(BackendTurns, MoreWaitersThanConnections_EachQueuesInTurn) {
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

TEST_P(BackendTurns, ManyWaiters_RequestsAreSpaced) {
  const Attempts waiting = wait_for_names_held_elsewhere(99);
  engine.advance(2s);
  sent.clear();
  engine.advance(4s);
  EXPECT_LT(sent.size(), 2000U);
  EXPECT_GT(sent.size(), 40U);
}

TEST_P(BackendTurns, AllConnectionsWait_HolderRenewsAndReleases) {
  const auto a = acquire("a");
  const Attempts waiting = wait_for_names_held_elsewhere(12);
  const auto second = acquire("a", true);
  engine.advance(3 * options.lease);
  EXPECT_TRUE(ours->host.losses.empty());
  EXPECT_GT(ours->host.extensions.size(), 6U);
  EXPECT_EQ(release(*ours, *a, 100ms), "released");
  EXPECT_TRUE(is_granted(*second, 100ms)) << "who waits for it in the same client learns of it at once";
}

TEST_P(BackendTurns, TryPendingAtGrant_LeavesNothing) {
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

TEST_P(BackendTurnsOfForUpdate, WaiterWithoutConnection_IsInNoQueueUntilItsTurn) {
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
TEST_P(BackendTurns, SnapshotsAwaited_WaitsRestartOnce) {
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

TEST_P(BackendTurns, ServerFull_WaitersConnectEveryFewSeconds) {
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

TEST_P(BackendTurns, ServerFull_HolderConnectsSoon) {
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
