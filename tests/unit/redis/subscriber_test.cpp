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

class SubscriberTest : public testing::Test, protected Subscriptions::Listener {
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

 protected:
  const Options options;
  Subscriber subscriber{engine, options, server.wires(), *this};
};

TEST_F(SubscriberTest, IsHeardFromTheConfirmationOn) {
  subscribe("other");
  subscribe("other");
  EXPECT_EQ(server.commands.size(), 1U);
  answers = false;
  subscribe("a");
  EXPECT_FALSE(subscriber.hears("a"));
  tell(about_channel("subscribe", "a"));
  EXPECT_TRUE(subscriber.hears("a"));
  unsubscribe("a");
  EXPECT_FALSE(subscriber.hears("a"));
}

TEST_F(SubscriberTest, OnlyTheLastWishCounts) {
  subscribe("other");
  answers = false;
  subscribe("a");
  unsubscribe("a");
  tell(published("a", "text"));
  subscribe("a");
  tell(about_channel("subscribe", "a"));
  EXPECT_FALSE(subscriber.hears("a")) << "that was the first of two";
  tell(about_channel("unsubscribe", "a"));
  EXPECT_FALSE(subscriber.hears("a"));
  tell(about_channel("subscribe", "a"));
  EXPECT_TRUE(subscriber.hears("a"));
  EXPECT_EQ(heard, (Heard{"subscribed other", "subscribed a"})) << "and no text";
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

// --- At the node of a cluster ----------------------------------------------------------------------------------------

// Channels are in slots: foo, {foo}1 and {foo}2 in 12182, bar in 5061.
class ShardedChannelTest : public SubscriberTest {
 protected:
  ShardedChannelTest() : SubscriberTest(true) {}
};

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

TEST_F(ShardedChannelTest, MayBeUnknownOrForbidden) {
  for (const char* error :
       {"-ERR unknown command 'SSUBSCRIBE', with args beginning with: 'foo'\r\n", "-NOPERM No permissions\r\n"}) {
    Subscriber other(engine, options, server.wires(), *this);
    answers = false;
    heard.clear();
    other.subscribe("foo");
    engine.run();
    tell(error);
    EXPECT_EQ(heard, Heard{"forbidden"});
    EXPECT_TRUE(other.is_forbidden());
    const int dialled = server.dialled;
    engine.advance(1min);
    EXPECT_EQ(server.dialled, dialled);
  }
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
