// The map of a cluster: whom a client asks for it, how often, and what becomes of nodes that have no slots any more.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/redis/cluster/cluster.hpp"
#include "backends/redis/cluster/hash_slot.hpp"
#include "cluster_fixture.hpp"

namespace dlock::redis {

namespace {

using ClusterMapTest = ClusterTest;
using Dialling = FakeServer::Dialling;

// --- Asking for it ---------------------------------------------------------------------------------------------------

TEST_F(ClusterMapTest, IsAskedForOnceForAllThatWaitForIt) {
  make("redis-cluster://c:7000,a:7000");
  node("c").silent = true;
  const auto first = ask(bar);
  const auto second = ask(bar);
  const auto third = ask(foo);
  EXPECT_EQ(maps(), 1);
  engine.advance(500ms);
  EXPECT_EQ(first->said(), "a");
  EXPECT_EQ(second->said(), "a");
  EXPECT_EQ(third->said(), "b");
  EXPECT_EQ(ask(bar)->said(), "a");
  engine.advance(10s);
  EXPECT_EQ(maps(), 2) << "nobody doubts it";
}

TEST_F(ClusterMapTest, IsAskedOfTheSecondWhereTheFirstIsDead) {
  make();
  map = all_slots_at("b");
  node("a").server.dialling = Dialling::refuse;
  EXPECT_EQ(ask(bar)->said(), "b");
  make();
  node("a").server.dialling = Dialling::silence;
  const auto asked = ask(bar);
  engine.advance(499ms);
  EXPECT_FALSE(asked->result);
  engine.advance(1ms);
  EXPECT_EQ(asked->said(), "b");
}

TEST_F(ClusterMapTest, OneThatMakesNoSenseIsAskedOfTheNext) {
  make();
  for (const Map& nonsense : {Map{{0, 16384, at("a")}}, Map{{2, 1, at("a")}}, Map{}}) {
    node("a").map = nonsense;
    EXPECT_EQ(ask(bar)->said(), "a");
    make();
  }
}

TEST_F(ClusterMapTest, WhereAllAreDeadRequestsFailAsUnavailable) {
  for (const Dialling how : {Dialling::refuse, Dialling::silence}) {
    make();
    for (const char* name : {"a", "b"}) node(name).server.dialling = how;
    const auto asked = ask(bar);
    engine.advance(2s);
    EXPECT_TRUE(asked->failed(errc::unavailable)) << asked->said();
  }
}

// The question for the map was sent; the request was not.
TEST_F(ClusterMapTest, WhereAllAreSilentRequestsFailAsUnavailable) {
  make();
  for (const char* name : {"a", "b"}) node(name).silent = true;
  const auto asked = ask(bar);
  engine.advance(2s);
  EXPECT_TRUE(asked->failed(errc::unavailable)) << asked->said();
}

TEST_F(ClusterMapTest, AServerThatIsNoNodeIsUnsupported) {
  for (const Dialling other : {Dialling::accept, Dialling::refuse, Dialling::silence}) {
    for (const bool first : {true, false}) {
      make(first ? "redis-cluster://c:7000,d:7000" : "redis-cluster://d:7000,c:7000");
      for (const char* name : {"c", "d"}) node(name).refusal = "ERR This instance has cluster support disabled";
      node("d").server.dialling = other;
      const auto asked = ask(bar);
      engine.advance(1s);
      EXPECT_TRUE(asked->failed(errc::unsupported)) << asked->said();
      EXPECT_NE(asked->said().find("redis://"), std::string::npos) << asked->said();
    }
  }
}

TEST_F(ClusterMapTest, ThatOneIsNoNodeSaysMoreThanThatAnotherIsSilent) {
  make("redis-cluster://c:7000,d:7000");
  node("c").silent = true;
  node("d").refusal = "ERR This instance has cluster support disabled";
  const auto asked = ask(bar);
  engine.advance(1s);
  EXPECT_TRUE(asked->failed(errc::unsupported)) << asked->said();
}

TEST_F(ClusterMapTest, ARequestThatIsUnderWayIsNotTakenForOneThatWaitsForIt) {
  make("redis-cluster://a:7000");
  node("a").server.dialling = Dialling::silence;
  (void)cluster->redirected(cluster->of(bar), slot_of(bar), "MOVED 5061 c:7000");
  node("c").reply = [](const Words&) { return std::string(); };
  const auto asked = ask(bar);  // so that c does not tell the map either
  EXPECT_EQ(node("c").requests().size(), 1U);
  cluster->refresh();
  engine.advance(1900ms);
  EXPECT_FALSE(asked->result) << asked->said();
  ASSERT_EQ(node("c").server.connections.size(), 1U);
  node("c").server.connections.front()->reply("+c\r\n");
  engine.run();
  EXPECT_EQ(asked->said(), "c");
}

TEST_F(ClusterMapTest, IsNotAskedForTooOften) {
  make();
  learn();
  const int before = maps();
  for (int i = 0; i < 1000; ++i) {
    cluster->refresh();
    engine.advance(10ms);
  }
  EXPECT_GE(maps() - before, 40);
  EXPECT_LE(maps() - before, 100) << "in ten seconds";
}

TEST_F(ClusterMapTest, IsAskedForAgainWhereADoubtCameWhileItWasAskedFor) {
  make();
  learn();
  engine.advance(1s);
  for (const char* name : {"a", "b"}) node(name).silent = true;
  const int before = maps();
  cluster->refresh();
  engine.run();
  EXPECT_EQ(maps(), before + 1);
  cluster->refresh();
  cluster->refresh();
  for (const char* name : {"a", "b"}) node(name).silent = false;
  engine.advance(1s);
  EXPECT_EQ(maps(), before + 3) << "the one without an answer, that of the other node, and once more";
}

TEST_F(ClusterMapTest, IsKeptFreshEverySecondWhileItIsWanted) {
  make();
  learn();
  engine.advance(1s);
  const int before = maps();
  cluster->keep_fresh(true);
  cluster->keep_fresh(true);
  engine.advance(999ms);
  EXPECT_EQ(maps(), before);
  for (int i = 1; i <= 5; ++i) {
    engine.advance(1s);
    EXPECT_EQ(maps(), before + i);
  }
  cluster->keep_fresh(false);
  engine.advance(10s);
  EXPECT_EQ(maps(), before + 5);
}

TEST_F(ClusterMapTest, IsAskedOfEachMasterInTurn) {
  make("redis-cluster://a:7000");
  learn();
  const int of_a = node("a").maps;
  for (int i = 0; i < 10; ++i) {
    cluster->refresh();
    engine.advance(1s);
  }
  EXPECT_EQ(node("a").maps - of_a, 5);
  EXPECT_EQ(node("b").maps, 5);
}

// a does not know yet that the slot is b's.
TEST_F(ClusterMapTest, RequestsFindTheirWayWithOneThatIsOld) {
  make();
  node("b").map = all_slots_at("b");
  node("a").refuse("MOVED 5061 b:7000");
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(ask(bar)->said(), "b") << i;
    engine.advance(100ms);
  }
}

// --- Whoever has to know ---------------------------------------------------------------------------------------------

TEST_F(ClusterMapTest, TellsWhoTheMastersAre) {
  make();
  std::vector<std::string> names;
  std::optional<Failure> failure;
  const auto read = [&] {
    names.clear();
    cluster->masters(saturating_add(engine.now(), 5s), [&](const Result<std::vector<common::Host>>& masters) {
      if (!masters.ok()) failure = masters.failure();
      for (const auto& each : masters.ok() ? masters.value() : std::vector<common::Host>{}) names.push_back(each.name);
    });
    EXPECT_TRUE(names.empty()) << "inside the call";
    engine.advance(2s);
  };
  read();
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b"}));
  EXPECT_NE(cluster->master_at(at("a")), nullptr);
  map = all_slots_at("c");
  read();
  EXPECT_EQ(names, std::vector<std::string>{"c"});
  EXPECT_EQ(cluster->master_at(at("a")), nullptr);
  ASSERT_EQ(cluster->ranges().size(), 1U);
  EXPECT_EQ(cluster->ranges().front().master.name, "c");
  for (const char* name : {"a", "b", "c"}) {
    node(name).server.dialling = Dialling::refuse;
    node(name).server.cut();
  }
  read();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, errc::unavailable);
}

TEST_F(ClusterMapTest, WhoIsToldOfItMayWithdrawWhatWaitsForIt) {
  make();
  node("a").server.dialling = Dialling::silence;
  const auto asked = ask(foo);
  bool withdrawn = false;
  cluster->masters(saturating_add(engine.now(), 5s),
                   [&](const Result<std::vector<common::Host>>&) { withdrawn = cluster->withdraw(asked->id); });
  engine.advance(1s);
  EXPECT_TRUE(withdrawn);
  EXPECT_FALSE(asked->result);
  EXPECT_TRUE(node("b").requests().empty());
}

TEST_F(ClusterMapTest, AChangeIsTold) {
  make();
  learn();
  engine.advance(1s);
  const int before = moves;
  cluster->refresh();
  engine.advance(1s);
  EXPECT_EQ(moves, before) << "nothing has changed";
  map = {{0, 100, at("b")}, {101, 8191, at("a")}, {8192, 16383, at("b")}};
  cluster->refresh();
  engine.advance(1s);
  EXPECT_EQ(moves, before + 1);
}

// Whoever listens in that slot has to move, too.
TEST_F(ClusterMapTest, AChangeThatARequestFoundFirstIsTold) {
  make();
  learn();
  engine.advance(1s);
  const int before = moves;
  map = {{0, 5060, at("a")}, {5061, 5061, at("b")}, {5062, 8191, at("a")}, {8192, 16383, at("b")}};
  node("a").refuse("MOVED 5061 b:7000");
  EXPECT_EQ(ask(bar)->said(), "b");
  engine.advance(1s);
  EXPECT_EQ(moves, before + 1);
}

// What a replica or a stranger says about a slot is no reason to believe it.
TEST_F(ClusterMapTest, OnlyTheMasterOfASlotGivesItAway) {
  make();
  learn();
  (void)cluster->redirected(cluster->of(foo), slot_of(bar), "MOVED 5061 c:7000");
  EXPECT_EQ(cluster->of(bar).options().host.name, "a");
  (void)cluster->redirected(cluster->of(bar), slot_of(bar), "ASK 5061 c:7000");
  EXPECT_EQ(cluster->of(bar).options().host.name, "a");
  (void)cluster->redirected(cluster->of(bar), slot_of(bar), "MOVED 5061 c:7000");
  EXPECT_EQ(cluster->of(bar).options().host.name, "c");
  EXPECT_EQ(cluster->of(foo).options().host.name, "b");
}

// --- Nodes that have no slots any more -------------------------------------------------------------------------------

TEST_F(ClusterMapTest, AMasterThatLosesAllItsSlotsIsLeft) {
  make();
  learn();
  node("a").reply = [](const Words&) { return std::string(); };
  const auto asked = ask(bar);
  map = all_slots_at("b");
  cluster->refresh();
  engine.advance(1s);  // a may be the first to be asked, and says nothing
  EXPECT_TRUE(asked->failed(errc::ambiguous)) << asked->said();
  EXPECT_NE(asked->said().find("a:7000"), std::string::npos) << asked->said();
  EXPECT_EQ(gone, std::vector<std::string>{"a"});
  EXPECT_TRUE(node("a").server.connections.empty());
  EXPECT_EQ(ask(bar)->said(), "b");
  const int dialled = node("a").server.dialled;
  engine.advance(1min);
  EXPECT_EQ(node("a").server.dialled, dialled);
}

TEST_F(ClusterMapTest, AMasterThatComesBackIsConnectedAgain) {
  make();
  learn();
  const auto before = map;
  map = all_slots_at("b");
  cluster->refresh();
  engine.advance(500ms);
  map = before;
  cluster->refresh();
  engine.advance(500ms);
  EXPECT_EQ(ask(bar)->said(), "a");
}

TEST_F(ClusterMapTest, ANodeThatSlotsAreOnTheirWayToIsKeptWhileItIsAsked) {
  make();
  learn();
  engine.advance(1s);
  node("a").refuse("ASK 5061 c:7000");
  node("c").reply = [](const Words&) { return std::string(); };
  const auto asked = ask(bar);
  cluster->refresh();
  engine.advance(500ms);
  EXPECT_FALSE(asked->result) << asked->said();
  ASSERT_EQ(node("c").server.connections.size(), 1U);
  node("c").server.connections.front()->reply("+c\r\n");
  engine.run();
  EXPECT_EQ(asked->said(), "c");
  cluster->refresh();
  engine.advance(500ms);
  EXPECT_TRUE(node("c").server.connections.empty());
  EXPECT_EQ(gone, std::vector<std::string>{"c"});
}

TEST_F(ClusterMapTest, AnAnswerMayEndAll) {
  make();
  learn();
  node("a").reply = [](const Words&) { return std::string(); };
  (void)cluster->run(Line::common, bar, {nullptr, {"GET", bar}}, saturating_add(engine.now(), 2s),
                     [this](Server*, const Result<Reply>&, TimePoint) { cluster.reset(); });
  const auto other = ask(bar);
  map = all_slots_at("b");
  cluster->refresh();
  engine.advance(5s);
  EXPECT_FALSE(cluster);
  EXPECT_TRUE(gone.empty());
}

}  // namespace

}  // namespace dlock::redis
