// Requests to a cluster: where they go, how far they follow when a node says that another one has the slot, and what
// they end with where none answers.
#include "backends/redis/cluster/cluster.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/redis/requests/scripts.hpp"
#include "cluster_fixture.hpp"

namespace dlock::redis {

namespace {

using ClusterRequestTest = ClusterTest;

TEST_F(ClusterRequestTest, GoesToTheMasterOfItsSlot) {
  make();
  const auto to_a = ask(bar);
  const auto to_b = ask(foo);
  EXPECT_EQ(to_a->said(), "a");
  EXPECT_EQ(to_a->from, "a");
  EXPECT_EQ(to_b->said(), "b");
  EXPECT_EQ(to_b->from, "b");
  EXPECT_EQ(ask("{foo}else")->said(), "b");
}

// --- Redirections ----------------------------------------------------------------------------------------------------

TEST_F(ClusterRequestTest, FollowsAMoveAtOnceAndTheMapIsReadAgain) {
  make();
  learn();
  const int before = maps();
  map = all_slots_at("b");
  node("a").refuse("MOVED 5061 b:7000");
  const auto asked = ask(bar);
  EXPECT_EQ(asked->said(), "b");
  EXPECT_EQ(asked->from, "b");
  engine.advance(1s);
  EXPECT_EQ(maps(), before + 1);
  const std::size_t at_a = node("a").requests().size();
  EXPECT_EQ(ask(bar)->said(), "b");
  EXPECT_EQ(node("a").requests().size(), at_a) << "it is known now";
}

TEST_F(ClusterRequestTest, FollowsAMoveToANodeThatWasNotKnown) {
  make();
  learn();
  map = {{0, 8191, at("c")}, {8192, 16383, at("b")}};
  node("a").refuse("MOVED 5061 c:7000");
  EXPECT_EQ(ask(bar)->said(), "c");
}

TEST_F(ClusterRequestTest, AsksOnlyOnceWhereASlotIsOnItsWay) {
  make();
  learn();
  const int before = maps();
  node("a").refuse("ASK 5061 c:7000");
  EXPECT_EQ(ask(bar)->said(), "c");
  EXPECT_EQ(node("c").requests(), (std::vector<Words>{{"ASKING"}, {"GET", bar}}));
  node("a").reply = nullptr;
  EXPECT_EQ(ask(bar)->said(), "a");
  engine.advance(1s);
  EXPECT_EQ(maps(), before) << "the slot has not moved yet";
  EXPECT_EQ(node("c").requests().size(), 2U);
}

// ASKING counts for the next command only: what is sent again needs another.
TEST_F(ClusterRequestTest, AScriptThatIsSentAgainWhereASlotIsOnItsWayIsAskedForAgain) {
  make();
  learn();
  bool asking = false;
  bool has_script = false;
  int times = 0;
  node("a").refuse("ASK 5061 c:7000");
  node("c").server.answer = [&](FakeWire&, const Words& command) -> std::string {
    const bool asked = std::exchange(asking, command.front() == "ASKING");
    if (command.front() == "ASKING") return "+OK\r\n";
    if (command.front() != "EVAL" && command.front() != "EVALSHA") return "";
    if (!asked) return "-MOVED 5061 a:7000\r\n";
    if (++times == 1) return "-TRYAGAIN Multiple keys request during rehashing of slot\r\n";  // so it was not taken in
    has_script = has_script || command.front() == "EVAL";
    return has_script ? "+c\r\n" : "-NOSCRIPT No matching script.\r\n";
  };
  const auto asked = ask(bar, {&renew_script(), {"1", bar}});
  engine.advance(1s);
  EXPECT_EQ(asked->said(), "c");
  EXPECT_TRUE(has_script);
}

TEST_F(ClusterRequestTest, FollowsFiveTimesAtMost) {
  make();
  learn();
  node("a").server.commands.clear();
  node("a").refuse("MOVED 5061 b:7000");
  node("b").refuse("MOVED 5061 a:7000");
  const auto asked = ask(bar);
  EXPECT_TRUE(asked->failed(errc::unavailable)) << asked->said();
  EXPECT_EQ(node("a").requests().size() + node("b").requests().size(), 6U);
}

TEST_F(ClusterRequestTest, FollowsFiveTimesAtMostWhereASlotIsOnItsWay) {
  make();
  learn();
  node("a").server.commands.clear();
  node("a").refuse("ASK 5061 a:7000");
  EXPECT_TRUE(ask(bar)->failed(errc::unavailable));
  EXPECT_LE(node("a").requests().size(), 11U) << "six requests, and ASKING before five";
}

TEST_F(ClusterRequestTest, ARedirectionThatMakesNoSenseIsNotFollowed) {
  make();
  learn();
  for (const std::string error : {"MOVED 5062 b:7000", "MOVED 16384 b:7000", "MOVED", "MOVED 5061", "MOVED 5061 b",
                                  "MOVED 5061 b:0", "MOVED x b:7000", "ASK 5062 b:7000", "ASK 5061 b:65536"}) {
    node("a").refuse(error);
    const auto asked = ask(bar);
    EXPECT_TRUE(asked->failed(errc::protocol)) << error << ": " << asked->said();
    EXPECT_NE(asked->said().find("a:7000"), std::string::npos) << asked->said();
  }
  EXPECT_TRUE(node("b").requests().empty());
  node("a").reply = nullptr;
  EXPECT_EQ(ask(bar)->said(), "a");
}

TEST_F(ClusterRequestTest, EndlessNewAddressesAreABoundedNumber) {
  make();
  learn();
  for (const char* name : {"a", "b"})
    node(name).silent = true;  // so that none of them is found to be none of the map's
  int last = 0;
  std::function<std::string(const Words&)> elsewhere = [&](const Words&) {
    const std::string next = "x" + std::to_string(++last);
    node(next).reply = elsewhere;
    return "-MOVED 5061 " + next + ":7000\r\n";
  };
  node("a").reply = elsewhere;
  cluster->refresh();
  std::shared_ptr<Asked> asked;
  for (int i = 0; i < 300; ++i) {
    asked = ask(bar);
    ASSERT_TRUE(asked->result) << i;
  }
  EXPECT_TRUE(asked->failed(errc::protocol)) << asked->said();
  const auto connected = [&] {
    return std::count_if(nodes.begin(), nodes.end(), [](const auto& each) { return each.second->server.dialled > 0; });
  };
  EXPECT_GT(last, 1000);
  EXPECT_LE(connected(), 1000);
  for (const char* name : {"a", "b"}) node(name).silent = false;
  node("a").reply = nullptr;
  engine.advance(3s);
  EXPECT_EQ(ask(bar)->said(), "a");
  for (const auto& [name, node] : nodes) {
    EXPECT_TRUE(!name.starts_with('x') || node->server.connections.empty()) << name;
  }
}

// --- Asking again ----------------------------------------------------------------------------------------------------

TEST_F(ClusterRequestTest, IsMadeAgainUntilTheClusterCanAnswer) {
  for (const std::string error :
       {"TRYAGAIN Multiple keys request during rehashing of slot", "CLUSTERDOWN Hash slot not served"}) {
    make();
    learn();
    node("a").refuse(error);
    const auto asked = ask(bar);
    engine.advance(1s);
    EXPECT_FALSE(asked->result) << error;
    node("a").reply = nullptr;
    engine.advance(250ms);
    EXPECT_EQ(asked->said(), "a") << error;
  }
}

TEST_F(ClusterRequestTest, IsMadeAgainUntilItsDeadline) {
  for (const std::string error :
       {"TRYAGAIN Multiple keys request during rehashing of slot", "CLUSTERDOWN Hash slot not served"}) {
    make();
    learn();
    node("a").server.commands.clear();
    node("a").refuse(error);
    const auto asked = ask(bar);
    engine.advance(2s - 1ms);
    EXPECT_FALSE(asked->result) << error;
    engine.advance(1ms);
    EXPECT_TRUE(asked->failed(errc::unavailable)) << asked->said();
    EXPECT_NE(asked->said().find(error), std::string::npos) << asked->said();
    const std::size_t times = node("a").requests().size();
    EXPECT_GE(times, 8U) << error;
    EXPECT_LE(times, 40U) << error;
    engine.advance(10s);
    EXPECT_EQ(node("a").requests().size(), times) << error;
    node("a").reply = nullptr;
  }
}

TEST_F(ClusterRequestTest, AClusterThatIsDownMayHaveAnotherMap) {
  make();
  learn();
  const int before = maps();
  node("a").refuse("CLUSTERDOWN The cluster is down");
  map = all_slots_at("b");
  const auto asked = ask(bar);
  engine.advance(500ms);
  EXPECT_EQ(asked->said(), "b");
  EXPECT_GT(maps(), before);
}

TEST_F(ClusterRequestTest, ASlotThatNobodyHadWhenTheMapWasFirstReadMayGetAMaster) {
  make();
  map = {{8192, 16383, at("b")}};
  const auto asked = ask(bar);
  engine.advance(1s);
  map = all_slots_at("b");
  engine.advance(500ms);
  EXPECT_EQ(asked->said(), "b");
}

TEST_F(ClusterRequestTest, ASlotThatNobodyHasMayGetAMaster) {
  make();
  map = {{8192, 16383, at("b")}};
  EXPECT_EQ(ask(foo)->said(), "b");
  const auto waits = ask(bar);
  const auto in_vain = ask(bar);
  engine.advance(1s);
  EXPECT_FALSE(waits->result);
  EXPECT_TRUE(cluster->withdraw(in_vain->id));
  map = all_slots_at("b");
  engine.advance(500ms);
  EXPECT_EQ(waits->said(), "b");
  EXPECT_FALSE(in_vain->result);
}

TEST_F(ClusterRequestTest, ASlotThatNobodyHasIsNamedAtTheDeadline) {
  make();
  map = {{8192, 16383, at("b")}};
  const auto asked = ask(bar);
  engine.advance(2s);
  EXPECT_TRUE(asked->failed(errc::unavailable)) << asked->said();
  EXPECT_NE(asked->said().find("5061"), std::string::npos) << asked->said();
}

// --- The end of a request --------------------------------------------------------------------------------------------

TEST_F(ClusterRequestTest, WhatWasSentAndIsUnansweredIsAmbiguous) {
  make();
  learn();
  node("a").reply = [](const Words&) { return std::string(); };
  const auto asked = ask(bar);
  engine.advance(2s);
  EXPECT_TRUE(asked->failed(errc::ambiguous)) << asked->said();
}

TEST_F(ClusterRequestTest, AConnectionThatBreaksMakesItLookAtTheMap) {
  make();
  learn();
  const int before = maps();
  node("a").reply = [](const Words&) { return std::string(); };
  const auto asked = ask(bar);
  map = all_slots_at("b");
  node("a").server.dialling = FakeServer::Dialling::refuse;
  node("a").server.cut();
  engine.advance(500ms);
  EXPECT_TRUE(asked->failed(errc::ambiguous)) << asked->said();
  EXPECT_GT(maps(), before);
  EXPECT_EQ(ask(bar)->said(), "b");
}

TEST_F(ClusterRequestTest, IsWithdrawnWhileItWaitsForTheMap) {
  make();
  for (const char* name : {"a", "b"}) node(name).silent = true;
  const auto asked = ask(bar);
  EXPECT_TRUE(cluster->withdraw(asked->id));
  EXPECT_FALSE(cluster->withdraw(asked->id)) << "it is not known any more";
  for (const char* name : {"a", "b"}) node(name).silent = false;
  engine.advance(5s);
  EXPECT_FALSE(asked->result);
  EXPECT_TRUE(node("a").requests().empty());
}

TEST_F(ClusterRequestTest, IsWithdrawnWhileItWaitsForItsNextAttempt) {
  make();
  learn();
  node("a").refuse("TRYAGAIN Multiple keys request during rehashing of slot");
  const auto asked = ask(bar);
  const std::size_t times = node("a").requests().size();
  EXPECT_TRUE(cluster->withdraw(asked->id));
  engine.advance(5s);
  EXPECT_FALSE(asked->result);
  EXPECT_EQ(node("a").requests().size(), times);
}

TEST_F(ClusterRequestTest, IsWithdrawnWhileItWaitsForAConnection) {
  make();
  node("b").server.dialling = FakeServer::Dialling::silence;
  const auto asked = ask(foo);
  EXPECT_EQ(node("b").server.dialled, 1);
  EXPECT_TRUE(cluster->withdraw(asked->id));
  engine.advance(5s);
  EXPECT_FALSE(asked->result);
}

TEST_F(ClusterRequestTest, OnceItIsUnderWayItMayHaveAnEffect) {
  make();
  learn();
  node("a").reply = [](const Words&) { return std::string(); };
  const auto asked = ask(bar);
  EXPECT_FALSE(cluster->withdraw(asked->id));
  engine.advance(5s);
  EXPECT_FALSE(asked->result) << "nobody wants to know";
}

TEST_F(ClusterRequestTest, IsNotAnsweredAnyMoreOnceAllHasStopped) {
  make();
  learn();
  node("b").reply = [](const Words&) { return std::string(); };
  const auto under_way = ask(foo);
  node("a").refuse("TRYAGAIN Multiple keys request during rehashing of slot");
  const auto paused = ask(bar);
  cluster->keep_fresh(true);
  cluster->stop();
  const int before = maps();
  engine.advance(10s);
  EXPECT_FALSE(under_way->result || paused->result);
  EXPECT_EQ(maps(), before);
}

}  // namespace

}  // namespace dlock::redis
