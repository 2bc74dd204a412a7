// More who wait for advisory locks than there are connections to wait on.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "advisory_fixture.hpp"
#include "reports.hpp"

namespace dlock::postgres {

namespace {

class PostgresAdvisoryTurns : public PostgresAdvisory {
 protected:
  static constexpr auto step = 50ms;

  PostgresAdvisoryTurns() { table.ends_slices = true; }

  void pass(std::chrono::nanoseconds time) {
    for (std::chrono::nanoseconds passed{}; passed < time; passed += step) {
      engine.advance(step);
      server.release();
      engine.run();
    }
  }
  [[nodiscard]] bool comes_true(const std::function<bool()>& condition, std::chrono::nanoseconds within) {
    for (std::chrono::nanoseconds passed{}; passed < within && !condition(); passed += step) pass(step);
    return condition();
  }
  void wait_for_names_held_elsewhere(int count) {
    for (int i = 0; i < count; ++i) {
      table.seize(key("elsewhere/" + std::to_string(i)));
      (void)wait_for("elsewhere/" + std::to_string(i));
    }
  }
  [[nodiscard]] std::ptrdiff_t waits_for(const std::string& name) const {
    return std::count_if(server.queries.begin(), server.queries.end(), [&](const FakeQuery& query) {
      return query.uses(sql().lock_slice) && query.param(1) == name;
    });
  }
};

// A lock that others always wait for is never free when it is tried, and who wants it may hold what everybody here
// waits for.
TEST_F(PostgresAdvisoryTurns, EachOfThoseThatWaitStandsInTheServersQueueNowAndThen) {
  wait_for_names_held_elsewhere(6);  // over two connections
  pass(5min);
  for (int i = 0; i < 6; ++i) EXPECT_GT(waits_for("elsewhere/" + std::to_string(i)), 5) << i;
  EXPECT_LT(server.dialled, 10) << "a slice that ends needs no new connection";
}

TEST_F(PostgresAdvisoryTurns, WhoeverHasHadItsTurnTriesNowAndThen) {
  wait_for_names_held_elsewhere(6);
  pass(2min);
  const std::size_t before = count(sql().try_lock);
  pass(30s);
  EXPECT_GT(count(sql().try_lock) - before, 20U);
}

TEST_F(PostgresAdvisoryTurns, TheFirstWaiterOfALockGoesBeforeTheOthersOfAnother) {
  options.max_connections = 4;
  start();
  table.seize(key("a"));
  table.seize(key("b"));
  for (int i = 0; i < 6; ++i) (void)wait_for("a");
  EXPECT_EQ(waits_for("a"), 4) << "all connections, as long as nobody else needs one";
  (void)wait_for("b");
  EXPECT_EQ(waits_for("b"), 1);
}

TEST_F(PostgresAdvisoryTurns, WaitersOfALockAreServedInTheirOrder) {
  options.max_connections = 4;
  start();
  table.seize(key("a"));
  std::vector<Attempt*> waiting;
  for (int i = 0; i < 9; ++i) waiting.push_back(&wait_for("a"));
  table.give_back(key("a"));
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    ASSERT_TRUE(comes_true([&] { return waiting[i]->grant.has_value(); }, 2s)) << i;
    for (std::size_t later = i + 1; later < waiting.size(); ++later) ASSERT_FALSE(waiting[later]->grant) << i;
    release_soon(*waiting[i]);
  }
}

TEST_F(PostgresAdvisoryTurns, NestedLocksOfMoreThanThereAreConnectionsGoOn) {
  struct Nest {
    Attempt* outer = nullptr;
    Attempt* inner = nullptr;
    int rounds = 0;
  };
  std::vector<Nest> nests(8);
  const auto go_on = [&](Nest& nest) {
    if (nest.outer == nullptr) nest.outer = &contend("a", true);
    if (nest.outer->grant && nest.inner == nullptr) nest.inner = &contend("b", true);
    if (nest.inner == nullptr || !nest.inner->grant) return;
    release_soon(*nest.inner);
    release_soon(*nest.outer);
    nest = {.rounds = nest.rounds + 1};
  };
  EXPECT_TRUE(comes_true(
      [&] {
        for (Nest& nest : nests) go_on(nest);
        return std::all_of(nests.begin(), nests.end(), [](const Nest& nest) { return nest.rounds >= 3; });
      },
      10min));
  EXPECT_FALSE(table.entered_twice);
}

TEST_F(PostgresAdvisoryTurns, WhoeverWaitsWithoutAConnectionKnowsThatTheLockIsBusy) {
  wait_for_names_held_elsewhere(6);
  table.seize(key("b"));
  LastReport sink;
  const auto contention =
      locks->contend({.name = "b", .owner = host.new_owner_id(), .holder = "me", .lease = 10s, .wait = true}, sink);
  pass(1s);
  EXPECT_EQ(sink.word, "busy");
}

TEST_F(PostgresAdvisoryTurns, WhoeverTakesTurnsIsNotToldAgainAndAgainThatTheLockIsBusy) {
  wait_for_names_held_elsewhere(6);
  pass(2min);
  for (std::size_t i = 0; i < attempts.size(); ++i) EXPECT_LE(attempts[i]->busy_reports, 2) << i;
}

TEST_F(PostgresAdvisoryTurns, ALockThatIsHeldIsBusyInTheFirstPlace) {
  wait_for_names_held_elsewhere(6);
  table.seize(key("b"));
  FirstReport sink;
  const auto contention =
      locks->contend({.name = "b", .owner = host.new_owner_id(), .holder = "me", .lease = 10s, .wait = true}, sink);
  engine.run();
  EXPECT_EQ(sink.word, "busy");
}

TEST_F(PostgresAdvisoryTurns, AReleaseNeedsNoConnectionOfThoseThatWait) {
  const auto& a = try_now("a");
  wait_for_names_held_elsewhere(6);
  EXPECT_EQ(release(a), ReleaseOutcome::Status::released);
}

// --- A server without connections ------------------------------------------------------------------------------------

TEST_F(PostgresAdvisoryTurns, AtAFullServerWaitersTryOverTheFirstConnection) {
  server.room = 1;
  table.seize(key("a"));
  const auto& a = wait_for("a");
  const int before = server.dialled;
  pass(20s);
  EXPECT_EQ(server.dialled, before);
  EXPECT_EQ(server.connected(), 1U);
  table.forget(0);
  pass(2s);
  EXPECT_TRUE(a.grant);
}

TEST_F(PostgresAdvisoryTurns, AtAFullServerAHolderThatWaitsForAnotherLockConnectsSoon) {
  ASSERT_TRUE(try_now("a").grant);
  table.seize(key("b"));
  server.room = 1;
  (void)wait_for("b");
  pass(5s);
  server.room = 2;
  pass(2s);
  EXPECT_EQ(waits_for("b"), 1);
}

TEST_F(PostgresAdvisoryTurns, AtAFullServerWhoeverOnlyWaitsConnectsEveryFewSeconds) {
  server.room = 0;
  for (const char* const name : {"a", "b", "c"}) (void)wait_for(name);
  pass(30s);
  const int before = server.dialled;
  pass(60s);
  EXPECT_GE(server.dialled - before, 5);
  EXPECT_LE(server.dialled - before, 13);
}

}  // namespace

}  // namespace dlock::postgres
