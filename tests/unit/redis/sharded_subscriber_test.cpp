// Sharded channels: each is heard at the master of its slot, also after the slot has moved.
#include "backends/redis/cluster/sharded_subscriber.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "cluster_fixture.hpp"

namespace dlock::redis {

namespace {

class ShardedSubscriberTest : public ClusterTest, private Subscriptions::Listener {
 protected:
  using Heard = std::vector<std::string>;

  ShardedSubscriberTest() {
    for (const char* name : {"a", "b"}) {
      node(name).reply = [](const Words& command) -> std::string {
        if (command.front() == "SSUBSCRIBE") return about_channel("ssubscribe", command[1]);
        if (command.front() == "SUNSUBSCRIBE") return about_channel("sunsubscribe", command[1]);
        return "+OK\r\n";
      };
    }
    make();
    subscriber.emplace(*cluster, network(), static_cast<Subscriptions::Listener&>(*this));
    (void)ask(bar);  // so that the map is known
    engine.advance(1s);
  }

  void subscribe(const std::string& channel) {
    subscriber->subscribe(channel);
    engine.run();
  }
  [[nodiscard]] std::vector<Words> subscriptions_at(const std::string& name) {
    std::vector<Words> out;
    for (const Words& command : node(name).requests()) {
      if (command.front() == "SSUBSCRIBE" || command.front() == "SUNSUBSCRIBE") out.push_back(command);
    }
    return out;
  }
  // To all connections of that node on which there is a subscription.
  void tell(const std::string& name, const std::string& bytes) {
    ASSERT_FALSE(node(name).server.connections.empty());
    node(name).server.connections.back()->reply(bytes);
    engine.run();
  }

  Heard heard;
  std::optional<ShardedSubscriber> subscriber;

 private:
  void subscribed(const std::string& channel) override { heard.push_back("subscribed " + channel); }
  void message(const std::string& channel, const std::string& text) override { heard.push_back(channel + ": " + text); }
  void lost(const std::string& channel) override { heard.push_back("lost " + channel); }
  void interrupted() override { heard.emplace_back("interrupted"); }
  void forbidden(const Failure& /*why*/) override { heard.emplace_back("forbidden"); }
  void slots_moved() override { subscriber->slots_moved(); }
  void server_gone(Server& server) override { subscriber->server_gone(server); }
};

TEST_F(ShardedSubscriberTest, ListensAtTheMasterOfTheSlot) {
  subscribe(bar);
  subscribe(foo);
  EXPECT_EQ(subscriptions_at("a"), (std::vector<Words>{{"SSUBSCRIBE", bar}}));
  EXPECT_EQ(subscriptions_at("b"), (std::vector<Words>{{"SSUBSCRIBE", foo}}));
  EXPECT_TRUE(subscriber->hears(bar) && subscriber->hears(foo));
  tell("b", "*3\r\n" + bulk("smessage") + bulk(foo) + bulk("text"));
  EXPECT_EQ(heard, (Heard{"subscribed bar", "subscribed foo", "foo: text"}));
}

// The old node refuses what we said to it when we left.
TEST_F(ShardedSubscriberTest, WhatAnOldNodeSaysOfASlotThatItLostChangesNothing) {
  subscribe(bar);
  node("a").refuse("MOVED 5061 b:7000");
  map = {{0, 8000, at("b")}, {8001, 8191, at("a")}, {8192, 16383, at("b")}};
  engine.advance(2s);
  EXPECT_EQ(subscriptions_at("a").back(), (Words{"SUNSUBSCRIBE", bar}));
  EXPECT_EQ(heard, (Heard{"subscribed bar", "lost bar", "subscribed bar"}));
  EXPECT_TRUE(subscriber->hears(bar));
}

TEST_F(ShardedSubscriberTest, WhatIsNotWantedAnyMoreMovesNowhere) {
  subscribe(bar);
  subscriber->unsubscribe(bar);
  engine.run();
  EXPECT_EQ(subscriptions_at("a").back(), (Words{"SUNSUBSCRIBE", bar}));
  const int before = maps();
  engine.advance(10s);
  EXPECT_EQ(maps(), before) << "nobody listens";
  map = all_slots_at("b");
  cluster->refresh();
  engine.advance(1s);
  EXPECT_TRUE(subscriptions_at("b").empty());
  EXPECT_EQ(heard, Heard{"subscribed bar"});
}

TEST_F(ShardedSubscriberTest, NothingIsHeardFromABrokenServerUntilItIsUsable) {
  subscribe(bar);
  subscribe(foo);
  heard.clear();
  Server& server = cluster->of(bar);
  subscriber->server_broken(server);
  engine.advance(5s);
  EXPECT_EQ(heard, Heard{"lost bar"});
  EXPECT_FALSE(subscriber->hears(bar));
  EXPECT_TRUE(subscriber->hears(foo));
  subscriber->server_usable(server);
  engine.run();
  EXPECT_EQ(heard, (Heard{"lost bar", "subscribed bar"}));
}

TEST_F(ShardedSubscriberTest, OldNodesAreToldOfOnce) {
  for (const char* name : {"a", "b"}) node(name).refuse("ERR unknown command 'SSUBSCRIBE'");
  subscribe(bar);
  subscribe(foo);
  engine.advance(10s);
  EXPECT_EQ(heard, Heard{"forbidden"});
  EXPECT_TRUE(subscriber->is_forbidden());
}

}  // namespace

}  // namespace dlock::redis
