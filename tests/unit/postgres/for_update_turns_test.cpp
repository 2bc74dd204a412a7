// More who wait for locks of strategy=for-update than there are connections.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "for_update_fixture.hpp"
#include "reports.hpp"
#include "tests/unit/support/reports.hpp"

namespace dlock::postgres {

namespace {

class ForUpdateTurns : public ForUpdateTest {
 protected:
  static constexpr auto step = 50ms;

  ForUpdateTurns() {
    rows.now = [this] { return engine.now(); };
    rows.when_freed = [this] { engine.post([this] { server.release(); }); };
  }

  // The server looks at those whom it keeps waiting as often as this.
  void pass(std::chrono::nanoseconds time) {
    for (std::chrono::nanoseconds passed{}; passed < time; passed += step) {
      engine.advance(step);
      server.release();
      engine.run();
    }
  }
  // False: not within that time.
  [[nodiscard]] bool comes_true(const std::function<bool()>& condition, std::chrono::nanoseconds within) {
    for (std::chrono::nanoseconds passed{}; passed < within && !condition(); passed += step) pass(step);
    return condition();
  }
  [[nodiscard]] std::vector<std::unique_ptr<test::Attempt>> wait_for_names_held_elsewhere(int count) {
    std::vector<std::unique_ptr<test::Attempt>> waiting;
    for (int i = 0; i < count; ++i) {
      const std::string name = "elsewhere/" + std::to_string(i);
      rows.rows.insert(name);
      take_elsewhere(name);
      waiting.push_back(wait_for(name));
    }
    return waiting;
  }
  void release_soon(const Grant& grant) {
    locks->release(grant, [](const ReleaseOutcome&) {});
  }
};

// Takes its locks one inside the other, gives them all back, and begins again.
struct Nest {
  std::vector<std::unique_ptr<test::Attempt>> attempts;
  int rounds = 0;
};

class NestedForUpdate : public ForUpdateTurns, public testing::WithParamInterface<std::vector<std::string>> {
 protected:
  void go_on(Nest& nest) {
    const std::vector<std::string>& names = GetParam();
    if (!nest.attempts.empty() && !nest.attempts.back()->grant) return;
    if (nest.attempts.size() == names.size()) {
      while (!nest.attempts.empty()) {
        release_soon(*nest.attempts.back()->grant);
        nest.attempts.pop_back();
      }
      ++nest.rounds;
    }
    nest.attempts.push_back(contend(names[nest.attempts.size()], true));
  }
};

TEST_P(NestedForUpdate, LocksOfMoreThanThereAreConnectionsGoOn) {
  constexpr int rounds = 3;
  std::vector<Nest> nests(8);  // over three connections
  const bool done = comes_true(
      [&] {
        for (Nest& nest : nests) go_on(nest);
        return std::all_of(nests.begin(), nests.end(), [](const Nest& nest) { return nest.rounds >= rounds; });
      },
      10min);
  EXPECT_TRUE(done);
  EXPECT_LE(server.open(), options.max_connections);
  EXPECT_TRUE(host.losses.empty());
}

INSTANTIATE_TEST_SUITE_P(, NestedForUpdate,
                         testing::Values(std::vector<std::string>{"a", "b"}, std::vector<std::string>{"a", "b", "c"}),
                         [](const auto& parameter) { return std::to_string(parameter.param.size()) + "deep"; });

TEST_F(ForUpdateTurns, AFreeLockIsTakenHoweverManyWaitForOthers) {
  const auto waiting = wait_for_names_held_elsewhere(12);
  const auto free = wait_for("a");
  EXPECT_TRUE(comes_true([&] { return free->grant.has_value(); }, 1s));
}

TEST_F(ForUpdateTurns, ATryFindsAConnectionHoweverManyWait) {
  const auto waiting = wait_for_names_held_elsewhere(12);
  const auto free = contend("a", false);
  EXPECT_TRUE(comes_true([&] { return free->grant.has_value(); }, 1s));
  const auto busy = contend("elsewhere/11", false);
  EXPECT_TRUE(comes_true([&] { return busy->busy_reports == 1; }, 1s));
}

TEST_F(ForUpdateTurns, EachOfThoseThatWaitGetsItsLockWhenItIsFree) {
  const auto waiting = wait_for_names_held_elsewhere(12);
  for (const auto& attempt : waiting) {
    rows.locked.erase(attempt->request.name);
    ASSERT_TRUE(comes_true([&] { return attempt->grant.has_value(); }, 30s)) << attempt->request.name;
    release_soon(*attempt->grant);
  }
}

// A lock that somebody else always waits for is never free when it is tried.
TEST_F(ForUpdateTurns, EachOfThoseThatWaitStandsInTheServersQueueNowAndThen) {
  const auto waiting = wait_for_names_held_elsewhere(12);
  pass(5min);
  for (const auto& attempt : waiting) {
    const auto waits = std::count_if(server.queries.begin(), server.queries.end(), [&](const FakeQuery& query) {
      return query.uses(locks->statements().lock) && query.param(0) == attempt->request.name;
    });
    EXPECT_GT(waits, 5) << attempt->request.name;
  }
  EXPECT_LT(server.dialled, 20) << "a slice that ends needs no new connection";
}

TEST_F(ForUpdateTurns, WhoeverHasHadItsTurnTriesWithoutStandingInTheQueue) {
  const auto waiting = wait_for_names_held_elsewhere(6);
  pass(2min);
  const std::size_t before = server.count(locks->statements().try_lock);
  pass(30s);
  EXPECT_GT(server.count(locks->statements().try_lock) - before, 20U);
}

TEST_F(ForUpdateTurns, ManyWhoWaitDoNotAskAllTheTime) {
  const auto waiting = wait_for_names_held_elsewhere(200);
  pass(2s);
  const std::size_t before = server.queries.size();
  pass(4s);
  // One of those without a connection at a time, a hundred times a second; each asks, and takes it back.
  EXPECT_LT(server.queries.size() - before, 2000U);
}

TEST_F(ForUpdateTurns, WhoeverGivesUpMakesRoomForTheNext) {
  const auto waiting = wait_for_names_held_elsewhere(3);
  const Statement& lock = locks->statements().lock;
  ASSERT_EQ(server.count(lock), 2U);
  waiting[0]->contention.reset();
  engine.run();
  EXPECT_EQ(server.count(lock), 3U);
}

TEST_F(ForUpdateTurns, WhoeverFailsMakesRoomForTheNext) {
  const auto waiting = wait_for_names_held_elsewhere(3);
  const Statement& lock = locks->statements().lock;
  ASSERT_EQ(server.count(lock), 2U);
  server.reply = [&](const FakeQuery& query) {
    const bool first = query.uses(lock) && query.param(0) == waiting[0]->request.name;
    return first ? FakeReply::refused("42501", 3) : rows.reply(query);
  };
  server.release();
  engine.run();
  ASSERT_TRUE(failed(*waiting[0], errc::access_denied));
  EXPECT_EQ(std::count_if(
                server.queries.begin(), server.queries.end(),
                [&](const FakeQuery& query) { return query.uses(lock) && query.param(0) == waiting[2]->request.name; }),
            1);
}

TEST_F(ForUpdateTurns, WaitersOfALockAreServedInTheirOrder) {
  take_elsewhere("a");
  std::vector<std::unique_ptr<test::Attempt>> waiting;
  for (int i = 0; i < 7; ++i) waiting.push_back(wait_for("a"));
  free_elsewhere("a");
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    ASSERT_TRUE(comes_true([&] { return waiting[i]->grant.has_value(); }, 2s)) << i;
    for (std::size_t later = i + 1; later < waiting.size(); ++later) EXPECT_FALSE(waiting[later]->grant);
    release_soon(*waiting[i]->grant);
  }
}

TEST_F(ForUpdateTurns, AReleaseOfOursIsSeenAtOnceByWhoeverWaitsWithoutAConnection) {
  const auto a = try_lock("a");
  const auto b = try_lock("b");
  const auto waiting = wait_for("a");
  ASSERT_FALSE(waiting->grant);
  release_soon(*a->grant);
  engine.run();
  EXPECT_TRUE(waiting->grant);
}

TEST_F(ForUpdateTurns, WhoeverWaitsWithoutAConnectionKnowsThatTheLockIsBusy) {
  const auto waiting = wait_for_names_held_elsewhere(12);
  take_elsewhere("b");
  LastReport sink;
  const auto contention = locks->contend(
      {.name = "b", .owner = host.new_owner_id(), .holder = "host:1:test", .lease = 10s, .wait = true}, sink);
  pass(1s);
  EXPECT_EQ(sink.word, "busy");
}

TEST_F(ForUpdateTurns, WhoeverFindsNoConnectionToWaitOnIsToldOfTheLimit) {
  const auto waiting = wait_for_names_held_elsewhere(3);  // and one connection is left for questions
  EXPECT_TRUE(waiting[1]->unreachable_reports.empty());
  ASSERT_EQ(waiting[2]->unreachable_reports.size(), 1U);
  EXPECT_EQ(waiting[2]->unreachable_reports[0].code, errc::unavailable);
  EXPECT_NE(waiting[2]->unreachable_reports[0].detail.find("max_connections=3"), std::string::npos);
}

TEST_F(ForUpdateTurns, ALockThatIsHeldIsBusyInTheFirstPlace) {
  const auto waiting = wait_for_names_held_elsewhere(2);  // and one connection is left for questions
  take_elsewhere("b");
  FirstReport sink;
  const auto contention = locks->contend(
      {.name = "b", .owner = host.new_owner_id(), .holder = "host:1:test", .lease = 10s, .wait = true}, sink);
  engine.run();
  EXPECT_EQ(sink.word, "busy");
}

TEST_F(ForUpdateTurns, AReleaseNeedsNoOtherConnection) {
  const auto a = try_lock("a");
  const auto waiting = wait_for_names_held_elsewhere(12);
  std::optional<ReleaseOutcome> outcome;
  locks->release(*a->grant, [&](ReleaseOutcome o) { outcome = std::move(o); });
  engine.run();
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->status, ReleaseOutcome::Status::released);
}

// Two wait, the first of them for a lock that somebody else has, and all connections hold locks but the one that comes
// free in the end. The first one had its turn before, and lost its connection.
class ForUpdateTurnsOfTwo : public ForUpdateTurns {
 protected:
  ForUpdateTurnsOfTwo() {
    const Statement& lock = locks->statements().lock;
    take_elsewhere("d");
    first = wait_for("d");
    server.reply = [&](const FakeQuery& query) {
      if (!query.uses(lock)) return rows.reply(query);
      rows.forget(query.connection);
      return FakeReply::refused("40P01", 3);
    };
    server.release();
    engine.run();
    server.reply = [this](const FakeQuery& query) { return rows.reply(query); };
    holding = take_all();
    pass(1s);
    second = wait_for("e");
    EXPECT_FALSE(second->grant);
    release_soon(*holding[0]->grant);
    engine.run();
  }

  std::unique_ptr<test::Attempt> first;
  std::unique_ptr<test::Attempt> second;
  std::array<std::unique_ptr<test::Attempt>, 3> holding;
};

TEST_F(ForUpdateTurnsOfTwo, WhoeverStandsInTheServersQueueGivesItsConnectionToWhoeverHasNone) {
  EXPECT_TRUE(second->grant);
  EXPECT_FALSE(first->failure);
}

TEST_F(ForUpdateTurnsOfTwo, WhoeverGaveItsConnectionUpStandsInNoQueueUntilItsTurn) {
  ASSERT_TRUE(second->grant);
  release_soon(*second->grant);
  const std::size_t tries = server.count(locks->statements().try_lock);
  const std::size_t waits = server.count(locks->statements().lock);
  pass(3s);
  EXPECT_GT(server.count(locks->statements().try_lock), tries);
  EXPECT_EQ(server.count(locks->statements().lock), waits);
}

// --- A server without connections ------------------------------------------------------------------------------------

TEST_F(ForUpdateTurns, AtAFullServerItIsOneOfThoseThatWaitThatConnects) {
  server.room = 0;
  std::vector<std::unique_ptr<test::Attempt>> waiting;
  for (const char* const name : {"a", "b", "c", "d", "e", "a", "b", "c"}) waiting.push_back(wait_for(name));
  pass(30s);
  const int before = server.dialled;
  pass(60s);
  EXPECT_GE(server.dialled - before, 5);
  EXPECT_LE(server.dialled - before, 13);  // every 5 to 10 s
  server.room.reset();
  pass(60s);
  EXPECT_TRUE(std::any_of(waiting.begin(), waiting.end(), [](const auto& each) { return each->grant.has_value(); }));
}

TEST_F(ForUpdateTurns, AtAFullServerAHolderThatWantsAnotherLockTriesAgainSoon) {
  const auto a = try_lock("a");
  server.room = 1;
  const auto b = wait_for("b");
  pass(5s);
  EXPECT_FALSE(b->grant);
  server.room = 2;
  pass(1s);
  EXPECT_TRUE(b->grant);
}

TEST_F(ForUpdateTurns, AtAFullServerThoseInsideGiveTheirConnectionsUp) {
  take_elsewhere("a");
  take_elsewhere("b");
  const auto a = wait_for("a");
  const auto b = wait_for("b");
  ASSERT_EQ(server.connected(), 2U);
  server.room = 2;
  const auto c = wait_for("c");
  pass(70s);
  EXPECT_LE(server.connected(), 1U);
}

// --- Holders ---------------------------------------------------------------------------------------------------------

TEST_F(ForUpdateTurns, HoldersAreHeardOfHoweverManyWait) {
  const auto a = try_lock("a");
  const auto waiting = wait_for_names_held_elsewhere(12);
  pass(3 * lease);
  EXPECT_TRUE(host.losses.empty());
  EXPECT_GT(host.extensions.size(), 6U);
}

}  // namespace

}  // namespace dlock::postgres
