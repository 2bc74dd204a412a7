// Elections: an exclusive lock with a value, in every strategy, and whoever looks on.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "backend_fixture.hpp"

namespace dlock::zookeeper {

namespace {

class ElectionTest : public BackendTest, public testing::WithParamInterface<const char*> {
 protected:
  ElectionTest() { backend = make(std::string("strategy=") + GetParam()); }

  static constexpr auto place = "/dlock.elect/lock";

  std::unique_ptr<Attempt> campaign(const std::string& value, bool wait = true) {
    return contend(*backend, {.kind = LockKind::election, .value = value, .wait = wait});
  }
  LockInfo look() {
    std::optional<Result<LockInfo>> info;
    backend->inspect(LockKind::election, "lock", [&](Result<LockInfo> result) { info = std::move(result); });
    engine.run();
    return info.value().value();
  }
  // Whoever looks on; how often it was told.
  std::unique_ptr<Watch> observe(int& told) {
    auto watch = backend->watch(LockKind::election, "lock", [&told] { ++told; });
    engine.run();
    return watch;
  }
  // Since the last time.
  static bool was_told(int& told) { return std::exchange(told, 0) > 0; }
};

INSTANTIATE_TEST_SUITE_P(Strategies, ElectionTest, testing::Values("sequential", "sequential-herd", "ephemeral"),
                         [](const auto& strategy) {
                           std::string name = strategy.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST_P(ElectionTest, OneLeadsAndItsValueIsSeen) {
  EXPECT_TRUE(backend->capabilities().elections);
  const auto first = campaign("10.0.0.7:80\nand more");
  const auto second = campaign("10.0.0.8:80");
  ASSERT_TRUE(first->grant);
  EXPECT_FALSE(second->grant);
  EXPECT_EQ(first->grant->kind, LockKind::election);
  LockInfo info = look();
  EXPECT_EQ(info.kind, LockKind::election);
  EXPECT_EQ(info.holder, "host:1:test");
  EXPECT_EQ(info.value, "10.0.0.7:80\nand more");
  EXPECT_EQ(info.token, first->grant->token);
  (void)release(*backend, *first);
  ASSERT_TRUE(second->grant);
  info = look();
  EXPECT_EQ(info.value, "10.0.0.8:80");
  (void)release(*backend, *second);
  info = look();
  EXPECT_FALSE(info.held);
  EXPECT_EQ(info.value, "");
}

TEST_P(ElectionTest, ATryOfOneWithALeaderIsBusy) {
  const auto leader = campaign("x");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(campaign("y", false)->busy_reports, 1);
  (void)release(*backend, *leader);
  EXPECT_TRUE(campaign("y", false)->grant);
}

TEST_P(ElectionTest, WhatOthersWroteIsNoName) {
  const std::string node = std::string(GetParam()) == "ephemeral" ? ensemble.put(place, "\x01\nvalue", 77).path
                                                                  : put_node(place, "-lock-", "\x01\nvalue");
  EXPECT_EQ(look().holder, "");
  EXPECT_EQ(look().value, "");
  ensemble.set_data(node, "theirs");
  EXPECT_EQ(look().holder, "theirs");
  EXPECT_EQ(look().value, "");
}

TEST_P(ElectionTest, BreakingEndsALeadership) {
  const auto first = campaign("one");
  const auto second = campaign("two");
  engine.advance(1s);
  std::optional<Result<bool>> broken;
  backend->break_lock(LockKind::election, "lock", [&](Result<bool> result) { broken = std::move(result); });
  engine.run();
  ASSERT_TRUE(broken && broken->ok());
  EXPECT_TRUE(broken->value());
  ASSERT_EQ(host.losses.size(), 1U);
  EXPECT_TRUE(second->grant);
  EXPECT_EQ(look().value, "two");
}

TEST_P(ElectionTest, WhoeverLooksOnHearsOfEveryChangeWithoutAskingAgain) {
  int told = 0;
  const auto watch = observe(told);
  told = 0;
  for (const char* value : {"one", "two"}) {
    const auto leader = campaign(value);
    ASSERT_TRUE(leader->grant);
    EXPECT_TRUE(was_told(told)) << value;
    (void)release(*backend, *leader);
    EXPECT_TRUE(was_told(told)) << value;
  }
  ensemble.remove(place);  // its container is reaped
  engine.run();
  told = 0;
  const std::size_t before = ensemble.requests.size();
  engine.advance(2min);
  for (const Kind kind : {Kind::get, Kind::exists, Kind::children, Kind::create}) {
    EXPECT_EQ(requests_since(before, kind), 0U) << "nothing is asked while nothing happens";
  }
  EXPECT_EQ(told, 0);
  EXPECT_TRUE(campaign("three")->grant);
  EXPECT_TRUE(was_told(told));
}

// What is asked when one is told is sent behind the next watch.
TEST_P(ElectionTest, NothingHappensBetweenAnAnswerAndTheNextWatch) {
  const auto leader = campaign("one");
  std::size_t told_at = 0;
  const auto watch = backend->watch(LockKind::election, "lock", [&] { told_at = ensemble.requests.size(); });
  engine.run();
  const std::size_t before = ensemble.requests.size();
  (void)release(*backend, *leader);
  ASSERT_GT(told_at, before);
  bool set = false;
  for (std::size_t i = before; i < told_at; ++i) set = set || ensemble.requests[i].watch != 0;
  EXPECT_TRUE(set);
}

TEST_P(ElectionTest, AnObserverSurvivesBrokenConnectionsAndLostSessions) {
  int told = 0;
  const auto watch = observe(told);
  const auto others = make(std::string("strategy=") + GetParam());
  const auto lead = [&] { return contend(*others, {.kind = LockKind::election, .value = "x"}); };
  ensemble.disconnect();
  engine.run();
  told = 0;
  ensemble.reconnect();
  engine.run();
  EXPECT_TRUE(was_told(told)) << "whatever happened meanwhile";
  (void)release(*others, *lead());
  EXPECT_TRUE(was_told(told));
  ensemble.expire();
  engine.advance(5s);
  EXPECT_TRUE(was_told(told));
  EXPECT_TRUE(lead()->grant);
  EXPECT_TRUE(was_told(told));
}

TEST_P(ElectionTest, WhoeverDoesNotLookOnAnyMoreHearsNothing) {
  int told = 0;
  auto watch = observe(told);
  watch.reset();
  told = 0;
  EXPECT_TRUE(campaign("one")->grant);
  EXPECT_EQ(told, 0);
}

TEST_P(ElectionTest, WhoeverLooksOnConnects) {
  int told = 0;
  const auto watch = observe(told);
  EXPECT_EQ(ensemble.dialled, 1);
  EXPECT_FALSE(backend->unused());
}

}  // namespace

}  // namespace dlock::zookeeper
