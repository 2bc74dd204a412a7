// The connection that hears of channels: what is asked for on it, when it counts as heard, and what it makes of answers
// that come in another order than the wishes.
#include "backends/redis/connection/subscriber.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <string>
#include <vector>

#include "fake_server.hpp"
#include "tests/support/manual_engine.hpp"

namespace dlock::redis {

namespace {

using namespace std::chrono_literals;
using Heard = std::vector<std::string>;

class SubscriberTest : public testing::Test, private Subscriptions::Listener {
 protected:
  explicit SubscriberTest(bool cluster = false) : options(patient(cluster)) {
    server.answer = [this](FakeWire& from, const Words& command) {
      wire = &from;
      if (command.front() == "PING") return std::string("+PONG\r\n");
      std::string kind = command.front();
      std::transform(kind.begin(), kind.end(), kind.begin(), [](unsigned char c) { return std::tolower(c); });
      return kind.ends_with("subscribe") && answers ? about_channel(kind, command[1]) : std::string();
    };
  }
  ~SubscriberTest() override { server.answer = nullptr; }

  void tell(const std::string& bytes) {
    wire->reply(bytes);
    engine.run();
  }
  void subscribe(const std::string& channel) {
    subscriber.subscribe(channel);
    engine.run();
  }
  void unsubscribe(const std::string& channel) {
    subscriber.unsubscribe(channel);
    engine.run();
  }

  Heard heard;
  bool answers = true;
  FakeWire* wire = nullptr;
  test::ManualEngine engine;
  FakeServer server;

 private:
  void subscribed(const std::string& channel) override { heard.push_back("subscribed " + channel); }
  void message(const std::string& channel, const std::string& text) override { heard.push_back(channel + ": " + text); }
  void lost(const std::string& channel) override { heard.push_back("lost " + channel); }
  void interrupted() override { heard.emplace_back("interrupted"); }
  void forbidden(const Failure& /*why*/) override { heard.emplace_back("forbidden"); }

  static Options patient(bool cluster) {
    Options options;
    if (cluster) options.cluster.emplace();
    options.response_timeout = 2s;
    options.connect_timeout = 5s;
    return options;
  }
  const Options options;

 protected:
  Subscriber subscriber{engine, options, server.wires(), *this};
};

TEST_F(SubscriberTest, AsksAtOnceWhereTheConnectionStands) {
  subscribe("a");
  subscribe("b");
  EXPECT_EQ(server.commands, (std::vector<Words>{{"SUBSCRIBE", "a"}, {"SUBSCRIBE", "b"}}));
  EXPECT_EQ(heard, (Heard{"subscribed a", "subscribed b"}));
  EXPECT_EQ(server.dialled, 1);
}

TEST_F(SubscriberTest, IsHeardFromTheConfirmationOn) {
  answers = false;
  subscribe("a");
  EXPECT_FALSE(subscriber.hears("a"));
  tell(about_channel("subscribe", "a"));
  EXPECT_TRUE(subscriber.hears("a"));
  unsubscribe("a");
  EXPECT_FALSE(subscriber.hears("a"));
}

TEST_F(SubscriberTest, AskingTwiceAsksOnce) {
  subscribe("a");
  subscribe("a");
  EXPECT_EQ(server.commands.size(), 1U);
}

TEST_F(SubscriberTest, OnlyTheLastWishCounts) {
  subscribe("other");
  answers = false;
  subscribe("a");
  unsubscribe("a");
  subscribe("a");
  tell(about_channel("subscribe", "a"));
  EXPECT_FALSE(subscriber.hears("a")) << "that was the first of two";
  tell(about_channel("unsubscribe", "a"));
  EXPECT_FALSE(subscriber.hears("a"));
  tell(about_channel("subscribe", "a"));
  EXPECT_TRUE(subscriber.hears("a"));
  EXPECT_EQ(heard, (Heard{"subscribed other", "subscribed a"}));
}

TEST_F(SubscriberTest, WhatIsNotWantedAnyMoreIsNeitherHeardNorPassedOn) {
  subscribe("other");
  answers = false;
  subscribe("a");
  unsubscribe("a");
  tell(about_channel("subscribe", "a"));
  tell(published("a", "text"));
  EXPECT_FALSE(subscriber.hears("a"));
  EXPECT_EQ(heard, Heard{"subscribed other"});
  tell(about_channel("unsubscribe", "a"));
  EXPECT_EQ(server.dialled, 1);
}

// The answers to both are on their way when it is wanted again.
TEST_F(SubscriberTest, WhatIsWantedAgainIsKeptWhenItsEndIsConfirmed) {
  subscribe("a");
  answers = false;
  unsubscribe("a");
  subscribe("a");
  tell(about_channel("unsubscribe", "a"));
  tell(about_channel("subscribe", "a"));
  EXPECT_TRUE(subscriber.hears("a"));
  tell(published("a", "text"));
  EXPECT_EQ(heard.back(), "a: text");
}

TEST_F(SubscriberTest, AConfirmationThatNobodyAskedForEndsTheConnection) {
  for (const std::string kind : {"subscribe", "unsubscribe", "psubscribe"}) {
    subscribe("a");
    const int dialled = server.dialled;
    tell(about_channel(kind, "a"));
    EXPECT_EQ(heard.back(), "interrupted") << kind;
    engine.advance(10s);
    EXPECT_EQ(server.dialled, dialled + 1) << kind;
  }
}

TEST_F(SubscriberTest, WhatIsNoNewsEndsTheConnection) {
  for (const std::string bytes : {":1\r\n", "*3\r\n:1\r\n$1\r\na\r\n:1\r\n", "*2\r\n$9\r\nsubscribe\r\n$1\r\na\r\n"}) {
    subscribe("a");
    tell(bytes);
    EXPECT_EQ(heard.back(), "interrupted") << bytes;
    engine.advance(10s);
  }
}

TEST_F(SubscriberTest, AnAnswerToAPingIsNoNews) {
  subscribe("a");
  tell("*2\r\n" + bulk("pong") + bulk(""));
  tell("+PONG\r\n");
  EXPECT_EQ(heard, Heard{"subscribed a"});
  EXPECT_EQ(server.dialled, 1);
}

TEST_F(SubscriberTest, AfterABreakAllIsAskedForAnew) {
  subscribe("a");
  subscribe("b");
  unsubscribe("b");
  server.commands.clear();
  server.cut();
  engine.run();
  EXPECT_FALSE(subscriber.hears("a"));
  engine.advance(10s);
  EXPECT_EQ(server.commands, (std::vector<Words>{{"SUBSCRIBE", "a"}}));
  EXPECT_TRUE(subscriber.hears("a"));
}

// --- At the node of a cluster ----------------------------------------------------------------------------------------

// Channels are in slots: foo, {foo}1 and {foo}2 in 12182, bar in 5061.
class ShardedChannelTest : public SubscriberTest {
 protected:
  ShardedChannelTest() : SubscriberTest(true) {}
};

TEST_F(ShardedChannelTest, AreAskedForInWordsOfTheirOwn) {
  subscribe("foo");
  unsubscribe("foo");
  subscribe("foo");
  EXPECT_EQ(server.commands,
            (std::vector<Words>{{"SSUBSCRIBE", "foo"}, {"SUNSUBSCRIBE", "foo"}, {"SSUBSCRIBE", "foo"}}));
  EXPECT_EQ(heard, (Heard{"subscribed foo", "subscribed foo"}));
  EXPECT_TRUE(subscriber.hears("foo"));
}

TEST_F(ShardedChannelTest, AreAskedForAnewAfterABreak) {
  subscribe("foo");
  server.commands.clear();
  server.cut();
  engine.advance(10s);
  EXPECT_EQ(server.commands, (std::vector<Words>{{"SSUBSCRIBE", "foo"}}));
  EXPECT_EQ(heard, (Heard{"subscribed foo", "interrupted", "subscribed foo"}));
}

TEST_F(ShardedChannelTest, BringMessagesOfTheirOwn) {
  subscribe("foo");
  tell("*3\r\n" + bulk("smessage") + bulk("foo") + bulk("text"));
  EXPECT_EQ(heard.back(), "foo: text");
}

TEST_F(ShardedChannelTest, ThatANodeGivesUpUnaskedIsLost) {
  subscribe("foo");
  subscribe("{foo}1");
  tell(about_channel("sunsubscribe", "foo"));
  EXPECT_EQ(heard.back(), "lost foo");
  EXPECT_FALSE(subscriber.hears("foo"));
  EXPECT_TRUE(subscriber.hears("{foo}1"));
  subscribe("foo");
  EXPECT_EQ(heard.back(), "subscribed foo") << "where it is asked for again";
  EXPECT_EQ(server.dialled, 1);
}

TEST_F(ShardedChannelTest, ThatANodeDoesNotHaveAnyMoreAreLostWithTheirSlot) {
  subscribe("bar");
  subscribe("foo");
  answers = false;
  subscribe("{foo}1");
  heard.clear();
  tell("-MOVED 12182 b:7000\r\n");
  std::sort(heard.begin(), heard.end());
  EXPECT_EQ(heard, (Heard{"lost foo", "lost {foo}1"}));
  EXPECT_FALSE(subscriber.hears("foo"));
  EXPECT_TRUE(subscriber.hears("bar"));
  EXPECT_EQ(server.dialled, 1);
}

TEST_F(ShardedChannelTest, ThatAreNotWantedAnyMoreAreNotLost) {
  subscribe("foo");
  answers = false;
  unsubscribe("foo");
  tell("-MOVED 12182 b:7000\r\n");
  EXPECT_EQ(heard, Heard{"subscribed foo"});
  answers = true;
  subscribe("foo");
  EXPECT_TRUE(subscriber.hears("foo"));
}

TEST_F(ShardedChannelTest, AMoveThatMakesNoSenseEndsTheConnection) {
  subscribe("foo");
  tell("-MOVED 99999 b:7000\r\n");
  EXPECT_EQ(heard.back(), "interrupted");
  engine.advance(10s);
  EXPECT_TRUE(subscriber.hears("foo"));
}

TEST_F(ShardedChannelTest, AClusterThatIsDownIsTriedAgain) {
  subscribe("foo");
  tell("-CLUSTERDOWN The cluster is down\r\n");
  EXPECT_EQ(heard.back(), "interrupted");
  engine.advance(10s);
  EXPECT_TRUE(subscriber.hears("foo"));
  EXPECT_FALSE(subscriber.is_forbidden());
}

TEST_F(ShardedChannelTest, AreUnknownToOldServers) {
  answers = false;
  subscribe("foo");
  tell("-ERR unknown command 'SSUBSCRIBE', with args beginning with: 'foo'\r\n");
  EXPECT_EQ(heard, Heard{"forbidden"});
  EXPECT_TRUE(subscriber.is_forbidden());
  engine.advance(1min);
  EXPECT_EQ(server.dialled, 1);
}

TEST_F(ShardedChannelTest, MayBeForbidden) {
  answers = false;
  subscribe("foo");
  tell("-NOPERM No permissions to access a channel\r\n");
  EXPECT_EQ(heard, Heard{"forbidden"});
}

// Elsewhere these mean nothing.
TEST_F(SubscriberTest, WordsOfShardedChannelsAreNoNews) {
  for (const std::string& bytes :
       {about_channel("ssubscribe", "a"), about_channel("sunsubscribe", "a"), std::string("-MOVED 15495 b:7000\r\n")}) {
    subscribe("a");
    tell(bytes);
    EXPECT_EQ(heard.back(), "interrupted") << bytes;
    engine.advance(10s);
  }
}

}  // namespace

}  // namespace dlock::redis
