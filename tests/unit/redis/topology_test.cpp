// A server's connections, which are made again together, the replicas that acknowledge what was written on one, and the
// subscriber.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <optional>

#include "backends/redis/connection/subscriber.hpp"
#include "backends/redis/topology/node.hpp"
#include "backends/redis/topology/replica_acks.hpp"
#include "fake_server.hpp"
#include "tests/support/manual_engine.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::redis {
namespace {

using namespace std::chrono_literals;
using Events = std::vector<std::string>;

class TopologyTest : public testing::Test, protected Node::User {
 protected:
  explicit TopologyTest(bool cluster = false) {
    options.replicas_ack = 1;
    options.response_timeout = 2s;
    options.connect_timeout = 5s;
    if (cluster) options.cluster.emplace();
  }
  ~TopologyTest() override { server.answer = nullptr; }

  test::ManualEngine engine;
  FakeServer server;
  Options options;
  Events events;

 private:
  void on_state(Node& /*of*/, NodeState state) override {
    events.emplace_back(state == NodeState::connected ? "connected" : state == NodeState::down ? "down" : "usable");
  }
  void on_subscribed(const std::string& channel) override { events.push_back("subscribed " + channel); }
  void on_message(const std::string& channel, const std::string& text) override {
    events.push_back(channel + ": " + text);
  }
  void on_lost(const std::string& channel) override { events.push_back("lost " + channel); }
  void on_forbidden(const Failure& /*why*/) override { events.emplace_back("forbidden"); }
};

class ReplicaAcksTest : public TopologyTest {
 protected:
  void count(const std::string& name, std::uint64_t wanted, std::chrono::nanoseconds patience,
             std::chrono::nanoseconds time) {
    acks.count(wanted, patience, engine.now() + time, [this, name](const Result<std::uint64_t>& replicas) {
      events.push_back(
          name + ": " +
          (replicas.ok() ? std::to_string(replicas.value()) : std::string(replicas.failure().code.message())));
    });
    engine.run();
  }
  void acknowledge(std::int64_t replicas) {
    server.connections.front()->reply(number(replicas));
    engine.run();
  }
  static std::string failed(const std::string& name, errc code) {
    return name + ": " + make_error_code(code).message();
  }

  CommandClient client{engine, options, server.streams(), nullptr};
  ReplicaAcks acks{client};
};

// Hazard: H18 head-of-line blocking: a connection for `WAIT`
TEST_F(ReplicaAcksTest, SeveralWrites_ShareTheNextWait) {
  count("a", 1, 500ms, 2s);
  count("b", 2, 300ms, 2s);
  count("c", 1, 200ms, 2s);
  EXPECT_EQ(server.commands, (std::vector<Words>{{"WAIT", "1", "500"}}));
  acknowledge(1);
  EXPECT_EQ(events, (Events{"a: 1"}));
  EXPECT_EQ(server.commands.back(), (Words{"WAIT", "2", "200"}));
  acknowledge(0);
  EXPECT_EQ(events, (Events{"a: 1", "c: 0"})) << "b has more patience";
  EXPECT_EQ(server.commands.back(), (Words{"WAIT", "2", "300"}));
  acknowledge(2);
  EXPECT_EQ(events, (Events{"a: 1", "c: 0", "b: 2"}));
  EXPECT_EQ(server.commands.size(), 3U);
}

// It holds up all other requests of the connection.
TEST_F(ReplicaAcksTest, Wait_TakesAThirdOfTheResponseTimeout) {
  count("a", 1, 1h, 2s);
  EXPECT_EQ(server.commands.back(), (Words{"WAIT", "1", "667"}));
}

TEST_F(ReplicaAcksTest, Undo_GoesBeforeTheNextWait) {
  acks.count(1, 500ms, engine.now() + 2s, [this](const Result<std::uint64_t>&) {
    (void)client.request({"UNDO"}, engine.now() + 2s, [](const Result<Reply>&, TimePoint) {});
  });
  engine.run();
  count("b", 1, 500ms, 2s);
  acknowledge(0);
  ASSERT_EQ(server.commands.size(), 3U);
  EXPECT_EQ(server.commands.at(1), Words{"UNDO"});
  EXPECT_EQ(server.commands.at(2).front(), "WAIT");
}

TEST_F(ReplicaAcksTest, Write_EndsAtItsDeadline) {
  count("a", 1, 500ms, 2s);
  count("b", 1, 500ms, 1s);
  engine.advance(1s - 1ms);
  EXPECT_EQ(events, Events{});
  engine.advance(1ms);
  EXPECT_EQ(events, (Events{failed("b", errc::ambiguous)}));
  acknowledge(1);
  EXPECT_EQ(events, (Events{failed("b", errc::ambiguous), "a: 1"}));
  EXPECT_EQ(server.commands.size(), 1U);
}

// A WAIT on a new connection counts all replicas, because the server knows of no write there.
TEST_F(ReplicaAcksTest, WaitFails_FailsTheWritesBehindIt) {
  count("a", 1, 500ms, 2s);
  count("b", 1, 500ms, 2s);
  server.cut();
  engine.advance(1s);
  EXPECT_EQ(events, (Events{failed("a", errc::ambiguous), failed("b", errc::ambiguous)}));
  EXPECT_EQ(server.commands.size(), 1U);
  count("c", 1, 500ms, 2s);
  acknowledge(1);
  EXPECT_EQ(events.back(), "c: 1");
  count("d", 1, 500ms, 2s);
  server.connections.front()->reply("+OK\r\n");
  engine.run();
  EXPECT_EQ(events.back(), failed("d", errc::protocol));
}

class NodeTest : public TopologyTest {
 protected:
  NodeTest() {
    node.emplace(engine, options, server.streams(), news, static_cast<Node::User&>(*this));
    server.answer = [](FakeStream&, const Words& command) -> std::string {
      if (command.front() == "SUBSCRIBE") return about_channel("subscribe", command.at(1));
      return command.front() == "GET" ? "$-1\r\n" : "";
    };
    // In this order, so the connections are, too.
    for (const Line line : {Line::common, Line::acknowledged}) {
      (void)node->line(line).request(
          {"GET", "key"}, TimePoint::max(), [](const Result<Reply>&, TimePoint) {}, About::locks);
      engine.run();
    }
    node->subscriber().subscribe("channel");
    engine.run();
  }

  test::RecordingHost host{engine};
  common::ConnectionNews news{host};
  std::optional<Node> node;
};

// Hazard: H22 Sentinel: an old master grants locks; the client asks the sentinels every second
TEST_F(NodeTest, Node_HasThreeConnections) {
  EXPECT_EQ(server.dialled, 3);
  EXPECT_EQ(events, (Events{"connected", "subscribed channel"})) << "the first is not for acquires";
  EXPECT_NE(&node->line(Line::common), &node->line(Line::acknowledged));
}

// The name may lead to another server now.
TEST_F(NodeTest, CommandConnectionBroken_AllAreReplaced) {
  for (const std::size_t broken : {0U, 1U}) {
    SCOPED_TRACE(broken);
    events.clear();
    const int dialled = server.dialled;
    server.connections.at(broken)->close({errc::unavailable, "cut"});
    engine.advance(1s);
    EXPECT_EQ(server.dialled, dialled + 2) << "the subscriber waits for an answer";
    EXPECT_EQ(server.subscribers(), 0);
    EXPECT_EQ(events.front(), "down");
    EXPECT_EQ(events.back(), "connected");
    EXPECT_TRUE(node->outage().may_ask()) << "a new connection may be better";
    node->outage().answered(true);
    engine.run();
    EXPECT_EQ(events.at(events.size() - 2), "usable");
    EXPECT_EQ(events.back(), "subscribed channel");
    EXPECT_EQ(server.subscribers(), 1);
    engine.advance(1min);
  }
}

TEST_F(NodeTest, AtRest_BrokenConnectionsAreNotReported) {
  using State = ConnectionEvent::State;
  server.dialling = FakeServer::Dialling::refuse;
  server.cut();
  engine.advance(1s);
  EXPECT_EQ(host.connections, (std::vector{State::connected, State::reconnecting}));
  node->rest({errc::unavailable, "not needed"});
  EXPECT_EQ(host.connections.back(), State::connected);
}

class SubscriberTest : public TopologyTest {
 protected:
  explicit SubscriberTest(bool cluster = false) : TopologyTest(cluster) {
    server.answer = [this](FakeStream& from, const Words& command) {
      wire = &from;
      if (command.front() == "PING") return std::string("+PONG\r\n");
      std::string kind = command.front();
      std::transform(kind.begin(), kind.end(), kind.begin(), [](unsigned char c) { return std::tolower(c); });
      return kind.ends_with("subscribe") && answers ? about_channel(kind, command[1]) : std::string();
    };
  }

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

  bool answers = true;
  FakeStream* wire = nullptr;
  Subscriber subscriber{engine, options, server.streams(), *this};
};

TEST_F(SubscriberTest, ChannelConfirmed_IsReportedOnce) {
  subscribe("other");
  push("*2\r\n" + bulk("pong") + bulk(""));  // the reply to a PING changes nothing
  push("+PONG\r\n");
  subscribe("other");
  EXPECT_EQ(server.commands.size(), 1U);
  answers = false;
  subscribe("a");
  EXPECT_EQ(events, Events{"subscribed other"});
  push(about_channel("subscribe", "a"));
  EXPECT_EQ(events, (Events{"subscribed other", "subscribed a"}));
  EXPECT_EQ(server.dialled, 1);
}

TEST_F(SubscriberTest, SeveralRequests_LastCounts) {
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
TEST_F(SubscriberTest, UnexpectedReply_EndsTheConnection) {
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

// Channels are in slots: foo, {foo}1 and {foo}2 in 12182, bar in 5061.
class ShardedChannelTest : public SubscriberTest {
 protected:
  ShardedChannelTest() : SubscriberTest(true) {}
};

// Hazard: H33 a cluster's redirections, moving slots, pushes
TEST_F(ShardedChannelTest, SlotMoved_ItsChannelsAreLost) {
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
  answers = false;
  unsubscribe("foo");
  events.clear();
  push("-MOVED 12182 b:7000\r\n");
  EXPECT_EQ(events, Events{}) << "no channel that is not wanted is lost";
}

TEST_F(ShardedChannelTest, UnknownOrDenied_IsForbidden) {
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
