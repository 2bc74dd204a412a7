// More waiters for locks of sessions than there are connections, and servers that have no connections left.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend_rows_fixture.hpp"

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
  for (const char* const name : {"a", "b", "c"}) {
    held.push_back(acquire(name, true));
    EXPECT_TRUE(is_granted(*held.back(), 1s));
  }
  EXPECT_TRUE(test::failed(*acquire("d"), errc::unavailable, "max_connections=3"));
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

// Hazard: waiters take the connection that a holder needs
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

// Locks in rows: a client that holds a lock connects several times a second, a client that only waits makes room.
class BackendAtAFullServer : public BackendRowsTest {
 protected:
  [[nodiscard]] std::unique_ptr<Attempt> contend(Client& client, const std::string& name, bool wait = true) {
    auto attempt = client.contend(name, wait, 1h);
    engine.run();
    return attempt;
  }
  [[nodiscard]] bool renews(Client& client, const Attempt& held) {
    renew(client, held);
    engine.run();
    return take_answers() == Words{held.request.name + " renewed"};
  }
  [[nodiscard]] int dialled_within(std::chrono::nanoseconds time) {
    const int before = server.wire().dialled;
    engine.advance(time);
    return server.wire().dialled - before;
  }
  // Room for so many more connections than there are.
  void set_room(std::size_t more) { server.wire().room = server.wire().connected() + more; }
};

TEST_P(BackendAtAFullServer, OnlyWaiting_ConnectsEveryFewSeconds) {
  set_room(0);
  Attempts waiting;
  for (int i = 0; i < 50; ++i) waiting.push_back(contend(*ours, "x" + std::to_string(i)));
  (void)dialled_within(10s);
  const int dialled = dialled_within(60s);
  EXPECT_GE(dialled, 5);
  EXPECT_LE(dialled, 13);
  EXPECT_FALSE(waiting[0]->failure);
  const auto& reports = waiting[0]->unreachable_reports;
  EXPECT_TRUE(std::any_of(reports.begin(), reports.end(),
                          [](const Failure& why) { return why.detail.find("53300") != std::string::npos; }));
  const auto attempt = contend(*ours, "y", false);
  EXPECT_GE(dialled_within(60ms), 1) << "a try does not wait";
  EXPECT_EQ(said(*attempt), "unavailable");
}

TEST_P(BackendAtAFullServer, Holder_ConnectsSoonUntilItHasReleased) {
  const auto held = contend(*ours, "x", false);
  ASSERT_TRUE(held->grant);
  server.wire().room = 0;
  server.wire().break_connections();
  EXPECT_GE(dialled_within(10s), 40);
  set_room(1);
  engine.advance(250ms);
  EXPECT_TRUE(renews(*ours, *held));
  EXPECT_EQ(release(*ours, *held, 0s), "released");
  server.wire().room = 0;
  server.wire().break_connections();
  (void)dialled_within(20s);
  EXPECT_LE(dialled_within(60s), 13);
}

TEST_P(BackendAtAFullServer, RefusedWaiter_TriesItsLocksAndLeaves) {
  const auto holder = contend(*others, "x", false);
  set_room(0);
  const auto waiting = contend(*ours, "x");
  set_room(1);
  const std::size_t connected = server.wire().connected();
  for (int times = 0; times < 3; ++times) {
    const std::size_t before = server.wire().queries.size();
    engine.advance(10s);
    EXPECT_GT(server.wire().queries.size(), before);
    EXPECT_EQ(server.wire().connected(), connected) << times;
    server.wire().room = connected;
    engine.advance(10s);  // refused again
    server.wire().room = connected + 1;
  }
  EXPECT_EQ(release(*others, *holder, 30s), "released");
  EXPECT_TRUE(waiting->grant);
  EXPECT_EQ(server.wire().connected(), connected + 1) << "a holder keeps its connection";
}

INSTANTIATE_TEST_SUITE_P(, BackendAtAFullServer, testing::ValuesIn(row_strategies), name_of_strategy);

}  // namespace

}  // namespace dlock::postgres
