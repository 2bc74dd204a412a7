#include "backends/postgres/session_locks/turns.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/postgres/session_locks/snapshot_watch.hpp"
#include "tests/support/manual_engine.hpp"

namespace dlock::postgres {

namespace {

using namespace std::chrono_literals;
using Place = Turns::Place;
using Names = std::vector<std::string>;

class PostgresTurns : public testing::Test {
 protected:
  struct Waiter final : Turns::Waiter {
    Waiter(PostgresTurns& owner, std::string name) : test(owner), who(std::move(name)) {}
    ~Waiter() { test.turns->leave(*this); }
    void turn_came() override { test.let_in.push_back(who); }
    void worth_a_try() override { test.tries.push_back(who); }
    [[nodiscard]] bool has_connection() const noexcept override { return connected; }
    void give_way() override { test.sent_out.push_back(who); }
    PostgresTurns& test;
    const std::string who;
    bool connected = true;
  };

  void start(std::size_t limit, std::size_t spare) {
    turns = std::make_unique<Turns>(
        engine, limit, Turns::Spare{.by_all = spare, .by_others = limit / 2}, WaitSlices{},
        [this, limit] { return static_cast<std::int64_t>(limit) - held - static_cast<std::int64_t>(turns->inside()); });
  }
  [[nodiscard]] std::unique_ptr<Waiter> waiter(const std::string& who) { return std::make_unique<Waiter>(*this, who); }
  // Somebody of that name who waits for the lock.
  [[nodiscard]] std::unique_ptr<Waiter> wait_for(const std::string& lock, const std::string& who) {
    auto added = waiter(who);
    place = turns->enter(lock, *added);
    engine.run();
    return added;
  }
  [[nodiscard]] static Names take(Names& names) { return std::exchange(names, {}); }

  test::ManualEngine engine;
  std::int64_t held = 0;  // connections of locks
  std::unique_ptr<Turns> turns;
  Place place{};
  Names let_in;
  Names tries;
  Names sent_out;
};

TEST_F(PostgresTurns, TheFirstWaiterOfEachLockIsInsideAsFarAsConnectionsAreLeft) {
  start(3, 1);
  const auto a = wait_for("a", "a");
  EXPECT_EQ(place, Place::inside);
  const auto b = wait_for("b", "b");
  EXPECT_EQ(place, Place::inside);
  const auto c = wait_for("c", "c");
  EXPECT_EQ(place, Place::no_room);
  EXPECT_EQ(turns->inside(), 2U);
}

TEST_F(PostgresTurns, TheOthersOfALockLeaveHalfOfTheConnections) {
  start(6, 1);
  std::vector<std::unique_ptr<Waiter>> waiters;
  for (int i = 0; i < 5; ++i) waiters.push_back(wait_for("a", std::to_string(i)));
  EXPECT_EQ(place, Place::behind_others);
  EXPECT_EQ(turns->inside(), 3U);
  waiters.push_back(wait_for("b", "b"));
  EXPECT_EQ(place, Place::inside);
}

// Two that come in at the same time, over two connections, might change places.
TEST_F(PostgresTurns, TheNextOfALockComesInWhenTheOthersHaveLeft) {
  start(4, 1);
  auto first = wait_for("a", "first");
  auto second = wait_for("a", "second");
  const auto third = wait_for("a", "third");
  const auto fourth = wait_for("a", "fourth");
  EXPECT_EQ(turns->inside(), 2U);
  EXPECT_EQ(turns->outside("a"), 2U);
  first.reset();
  engine.run();
  EXPECT_EQ(let_in, Names{});
  second.reset();
  engine.run();
  EXPECT_EQ(let_in, Names{"third"});
  EXPECT_EQ(turns->outside("a"), 1U);
}

TEST_F(PostgresTurns, TheFirstOfALockTakesThePlaceOfOneWhoIsNot) {
  start(4, 1);
  const auto first = wait_for("a", "first");
  const auto second = wait_for("a", "second");
  const auto b = wait_for("b", "b");
  ASSERT_EQ(turns->inside(), 3U);
  const auto c = wait_for("c", "c");
  EXPECT_EQ(sent_out, Names{"second"});
  turns->room();  // its connection is closed
  engine.run();
  EXPECT_EQ(let_in, Names{"c"});
}

TEST_F(PostgresTurns, WhoeverHasToAskTakesThePlaceOfOneInside) {
  start(3, 1);
  const auto first = wait_for("a", "first");
  engine.advance(1s);
  const auto other = wait_for("b", "other");
  EXPECT_TRUE(turns->make_room());
  EXPECT_EQ(take(sent_out), Names{"first"}) << "who has waited longest";
  EXPECT_TRUE(turns->make_room());
  EXPECT_EQ(take(sent_out), Names{"other"});
  EXPECT_FALSE(turns->make_room());
}

TEST_F(PostgresTurns, AfterThatMoreConnectionsStayFreeForAWhile) {
  start(4, 1);
  const auto a = wait_for("a", "a");
  held = 3;
  EXPECT_TRUE(turns->make_room());
  held = 2;
  turns->room();
  engine.run();
  EXPECT_TRUE(let_in.empty()) << "it would be sent out again";
  held = 1;
  turns->room();
  engine.run();
  EXPECT_EQ(let_in, Names{"a"});
  const auto b = wait_for("b", "b");
  EXPECT_EQ(place, Place::no_room);
  engine.advance(11s);
  EXPECT_EQ(let_in.back(), "b");
  EXPECT_EQ(turns->inside(), 2U);
}

TEST_F(PostgresTurns, OneWhoHasNoConnectionCannotGiveItUp) {
  start(3, 1);
  const auto a = wait_for("a", "a");
  a->connected = false;
  EXPECT_FALSE(turns->make_room());
  EXPECT_EQ(turns->connected(), 0U);
}

// --- Slices ----------------------------------------------------------------------------------------------------------

TEST_F(PostgresTurns, SlicesAreLongWhileNobodyIsKeptOut) {
  start(3, 1);
  const auto a = wait_for("a", "a");
  const auto second = wait_for("a", "second");
  for (int i = 0; i < 20; ++i) {
    const auto slice = turns->slice(*a);
    EXPECT_GE(slice, 30s);
    EXPECT_LE(slice, 60s);
  }
  EXPECT_TRUE(turns->stays(*a));
}

TEST_F(PostgresTurns, WhereNotEachLockHasAConnectionSlicesAreShortAndTurnsAreTaken) {
  start(2, 1);
  const auto a = wait_for("a", "a");
  const auto b = wait_for("b", "b");
  const auto c = wait_for("c", "c");
  Waiter* inside = a.get();
  Names order;
  for (int i = 0; i < 5; ++i) {
    const auto slice = turns->slice(*inside);
    EXPECT_GE(slice, 1s);
    EXPECT_LE(slice, 2s);
    engine.advance(slice);
    ASSERT_FALSE(turns->stays(*inside));
    engine.run();
    ASSERT_EQ(let_in.size(), 1U);
    order.push_back(let_in[0]);
    inside = let_in[0] == "a" ? a.get() : let_in[0] == "b" ? b.get() : c.get();
    let_in.clear();
  }
  for (std::size_t i = 1; i < order.size(); ++i) EXPECT_NE(order[i], order[i - 1]);
  for (const char* const who : {"a", "b", "c"}) EXPECT_NE(std::find(order.begin(), order.end(), who), order.end());
}

TEST_F(PostgresTurns, ALongSliceIsCutShortWhereOthersWait) {
  start(2, 1);
  const auto a = wait_for("a", "a");
  EXPECT_GE(turns->slice(*a), 30s);
  const auto b = wait_for("b", "b");
  engine.advance(3s);
  EXPECT_TRUE(sent_out.empty());
  engine.advance(3s);
  EXPECT_EQ(sent_out, Names{"a"});
  EXPECT_EQ(let_in, Names{"b"});
}

TEST_F(PostgresTurns, WhoeverIsSentOutGoesBeforeTheOthersOfItsLock) {
  start(2, 1);
  auto first = wait_for("a", "first");
  const auto second = wait_for("a", "second");
  const auto b = wait_for("b", "b");
  EXPECT_FALSE(turns->stays(*first));
  engine.run();
  EXPECT_EQ(take(let_in), Names{"b"});
  EXPECT_FALSE(turns->stays(*b));
  engine.run();
  EXPECT_EQ(take(let_in), Names{"first"});
}

// --- Outside ---------------------------------------------------------------------------------------------------------

TEST_F(PostgresTurns, WhoeverIsFirstOutsideIsToldNowAndThenThatATryMayBeWorthIt) {
  start(1, 1);
  held = 1;
  const auto a = wait_for("a", "a");
  const auto second = wait_for("a", "second");
  engine.advance(10s);
  EXPECT_GE(tries.size(), 10U);
  EXPECT_LE(tries.size(), 20U);
  for (const std::string& who : tries) EXPECT_EQ(who, "a");
}

TEST_F(PostgresTurns, ManyLocksAreTriedForOneAfterTheOther) {
  start(1, 1);
  held = 1;
  std::vector<std::unique_ptr<Waiter>> waiters;
  for (int i = 0; i < 500; ++i) waiters.push_back(wait_for(std::to_string(i), std::to_string(i)));
  tries.clear();
  engine.advance(5s);
  EXPECT_GE(tries.size(), 500U);
  EXPECT_LE(tries.size(), 1000U);
  for (int i = 0; i < 500; ++i) {
    EXPECT_NE(std::find(tries.begin(), tries.end(), std::to_string(i)), tries.end()) << i;
  }
}

TEST_F(PostgresTurns, NothingIsDoneWhileNobodyIsOutside) {
  start(3, 1);
  const auto a = wait_for("a", "a");
  EXPECT_FALSE(engine.next_timer());
}

TEST_F(PostgresTurns, ALockThatThisClientLetsGoOfIsTriedForAtOnce) {
  start(2, 1);
  held = 2;
  const auto a = wait_for("a", "a");
  EXPECT_EQ(turns->outside("b"), 0U);
  turns->freed("b");
  turns->freed("a");
  EXPECT_EQ(tries, Names{"a"});
}

TEST_F(PostgresTurns, WhereSomebodyIsInsideTheServerWakesThat) {
  start(3, 1);
  const auto a = wait_for("a", "a");
  const auto second = wait_for("a", "second");
  const auto outside = wait_for("a", "outside");
  ASSERT_EQ(turns->outside("a"), 1U);
  turns->freed("a");
  EXPECT_TRUE(tries.empty());
  engine.advance(10s);
  EXPECT_TRUE(tries.empty());
}

// --- Snapshots -------------------------------------------------------------------------------------------------------

class PostgresSnapshotWatch : public PostgresTurns {
 protected:
  PostgresSnapshotWatch() { start(4, 0); }

  int asked = 0;
  Rows answer{.rows = {{"3", std::nullopt}}};
  std::optional<SnapshotWatch> watch;
  void begin() {
    watch.emplace(engine, *turns, [this](const Query& query) {
      ++asked;
      engine.post([done = query.done, rows = answer] { done({}, {rows}); });
    });
  }
};

TEST_F(PostgresSnapshotWatch, WhereATransactionWaitsForThemWaitsBeginAnewOnce) {
  begin();
  const auto first = wait_for("a", "first");
  const auto second = wait_for("a", "second");
  const auto other = wait_for("b", "other");
  engine.advance(4s);
  EXPECT_GE(asked, 2);
  EXPECT_LE(asked, 4);
  EXPECT_EQ(take(sent_out), Names{});
  answer = {.rows = {{"4", "7/21"}}};
  engine.advance(2s);
  EXPECT_EQ(take(sent_out), (Names{"second", "first", "other"}));
  EXPECT_EQ(take(let_in), (Names{"first", "other"})) << "the others of a lock follow when its first waiter has left";
  engine.advance(20s);
  EXPECT_EQ(take(sent_out), Names{}) << "it does not wait for what began later";
  answer.rows = {{"4", "7/22"}};
  engine.advance(2s);
  EXPECT_EQ(take(sent_out), (Names{"first", "other"}));
}

TEST_F(PostgresSnapshotWatch, AWaiterThatDoesNotWaitInTheServerYetHasNoSnapshotToGiveUp) {
  begin();
  const auto waiter = wait_for("a", "a");
  waiter->connected = false;
  answer = {.rows = {{"1", "7/21"}}};
  engine.advance(4s);
  EXPECT_GE(asked, 1);
  EXPECT_EQ(take(sent_out), Names{});
}

TEST_F(PostgresSnapshotWatch, AsksOnlyWhileTheServerKeepsWaitersAndLessOftenWhereThereAreMany) {
  begin();
  engine.advance(1min);
  EXPECT_EQ(asked, 0);
  answer.rows = {{"500", std::nullopt}};
  auto waiting = wait_for("a", "a");
  engine.advance(1min);
  EXPECT_GE(asked, 5);
  EXPECT_LE(asked, 7);
  waiting.reset();
  engine.advance(1min);
  EXPECT_LE(asked, 7);
}

}  // namespace

}  // namespace dlock::postgres
