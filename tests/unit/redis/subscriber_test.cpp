// The connection for messages: which requests it sends, when a channel counts as subscribed to, and what it makes of
// replies that do not fit.
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
using Events = std::vector<std::string>;

class SubscriberTest : public testing::Test, protected Subscriber::User {
 protected:
  explicit SubscriberTest(bool cluster = false) : options(patient(cluster)) {
    server.answer = [this](FakeStream& from, const Words& command) {
      wire = &from;
      if (command.front() == "PING") return std::string("+PONG\r\n");
      std::string kind = command.front();
      std::transform(kind.begin(), kind.end(), kind.begin(), [](unsigned char c) { return std::tolower(c); });
      return kind.ends_with("subscribe") && answers ? about_channel(kind, command[1]) : std::string();
    };
  }
  ~SubscriberTest() override { server.answer = nullptr; }

  void push(const std::string& bytes) {
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

  Events events;
  bool answers = true;
  FakeStream* wire = nullptr;
  test::ManualEngine engine;
  FakeServer server;

 private:
  void on_subscribed(const std::string& channel) override { events.push_back("subscribed " + channel); }
  void on_message(const std::string& channel, const std::string& text) override {
    events.push_back(channel + ": " + text);
  }
  void on_lost(const std::string& channel) override { events.push_back("lost " + channel); }
  void on_forbidden(const Failure& /*why*/) override { events.emplace_back("forbidden"); }

  static Options patient(bool cluster) {
    Options options;
    if (cluster) options.cluster.emplace();
    options.response_timeout = 2s;
    options.connect_timeout = 5s;
    return options;
  }

 protected:
  const Options options;
  Subscriber subscriber{engine, options, server.streams(), *this};
};

TEST_F(SubscriberTest, AConfirmedChannelIsReportedOnce) {
  subscribe("other");
  subscribe("other");
  EXPECT_EQ(server.commands.size(), 1U);
  answers = false;
  subscribe("a");
  EXPECT_EQ(events, Events{"subscribed other"});
  push(about_channel("subscribe", "a"));
  EXPECT_EQ(events, (Events{"subscribed other", "subscribed a"}));
}

TEST_F(SubscriberTest, OnlyTheLastRequestOfAChannelCounts) {
  subscribe("other");
  answers = false;
  subscribe("a");
  unsubscribe("a");
  push(published("a", "text"));
  subscribe("a");
  push(about_channel("subscribe", "a"));  // the first of two
  push(about_channel("unsubscribe", "a"));
  EXPECT_EQ(events, Events{"subscribed other"}) << "and no text";
  push(about_channel("subscribe", "a"));
  EXPECT_EQ(events, (Events{"subscribed other", "subscribed a"}));
}

// Everything that the server sends without a request or a subscription.
TEST_F(SubscriberTest, AnUnexpectedReplyEndsTheConnectionAndLosesTheChannels) {
  for (const std::string& bytes :
       {about_channel("subscribe", "a"), about_channel("unsubscribe", "a"), about_channel("psubscribe", "a"),
        about_channel("ssubscribe", "a"), about_channel("sunsubscribe", "a"), std::string("-MOVED 15495 b:7000\r\n"),
        std::string(":1\r\n"), std::string("*3\r\n:1\r\n$1\r\na\r\n:1\r\n"),
        std::string("*2\r\n$9\r\nsubscribe\r\n$1\r\na\r\n")}) {
    SCOPED_TRACE(bytes);
    subscribe("a");
    const int dialled = server.dialled;
    push(bytes);
    EXPECT_EQ(events.back(), "lost a");
    engine.advance(10s);
    EXPECT_EQ(events.back(), "subscribed a");
    EXPECT_EQ(server.dialled, dialled + 1);
  }
}

TEST_F(SubscriberTest, TheReplyToAPingChangesNothing) {
  subscribe("a");
  push("*2\r\n" + bulk("pong") + bulk(""));
  push("+PONG\r\n");
  EXPECT_EQ(events, Events{"subscribed a"});
  EXPECT_EQ(server.dialled, 1);
}

// --- At the node of a cluster ----------------------------------------------------------------------------------------

// Channels are in slots: foo, {foo}1 and {foo}2 in 12182, bar in 5061.
class ShardedChannelTest : public SubscriberTest {
 protected:
  ShardedChannelTest() : SubscriberTest(true) {}
};

TEST_F(ShardedChannelTest, ThoseOfASlotThatANodeNoLongerHasAreLost) {
  subscribe("bar");
  subscribe("foo");
  answers = false;
  subscribe("{foo}1");
  events.clear();
  push("-MOVED 12182 b:7000\r\n");
  std::sort(events.begin(), events.end());
  EXPECT_EQ(events, (Events{"lost foo", "lost {foo}1"}));
  EXPECT_EQ(server.dialled, 1);
  answers = true;
  subscribe("foo");
  EXPECT_EQ(events.back(), "subscribed foo") << "it may be asked for again";
}

TEST_F(ShardedChannelTest, ThatIsNotWantedAnyMoreIsNotLost) {
  subscribe("foo");
  answers = false;
  unsubscribe("foo");
  push("-MOVED 12182 b:7000\r\n");
  EXPECT_EQ(events, Events{"subscribed foo"});
  answers = true;
  subscribe("foo");
  EXPECT_EQ(events, (Events{"subscribed foo", "subscribed foo"}));
}

TEST_F(ShardedChannelTest, ARedirectionThatMakesNoSenseEndsTheConnection) {
  subscribe("foo");
  push("-MOVED 99999 b:7000\r\n");
  EXPECT_EQ(events.back(), "lost foo");
  engine.advance(10s);
  EXPECT_EQ(events.back(), "subscribed foo");
}

TEST_F(ShardedChannelTest, MayBeUnknownOrForbidden) {
  for (const char* error :
       {"-ERR unknown command 'SSUBSCRIBE', with args beginning with: 'foo'\r\n", "-NOPERM No permissions\r\n"}) {
    Subscriber other(engine, options, server.streams(), *this);
    answers = false;
    events.clear();
    other.subscribe("foo");
    engine.run();
    push(error);
    EXPECT_EQ(events, Events{"forbidden"});
    EXPECT_TRUE(other.is_forbidden());
    const int dialled = server.dialled;
    engine.advance(1min);
    EXPECT_EQ(server.dialled, dialled);
  }
}

}  // namespace

}  // namespace dlock::redis
