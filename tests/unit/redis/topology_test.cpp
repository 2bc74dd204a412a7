// A server's connections, which are made again together, and the replicas that acknowledge what was written on one.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/redis/topology/node.hpp"
#include "backends/redis/topology/replica_acks.hpp"
#include "fake_server.hpp"
#include "tests/support/manual_engine.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::redis {

namespace {

using namespace std::chrono_literals;
using Events = std::vector<std::string>;

Options options_with_replicas() {
  Options options;
  options.replicas_ack = 1;
  options.response_timeout = 2s;
  options.connect_timeout = 5s;
  return options;
}

// --- Replicas --------------------------------------------------------------------------------------------------------

class ReplicaAcksTest : public testing::Test {
 protected:
  ~ReplicaAcksTest() override { server.answer = nullptr; }

  void count(const std::string& name, std::uint64_t wanted, std::chrono::nanoseconds patience,
             std::chrono::nanoseconds time) {
    acks.count(wanted, patience, engine.now() + time, [this, name](const Result<std::uint64_t>& replicas) {
      results.push_back(
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

  test::ManualEngine engine;
  FakeServer server;
  const Options options = options_with_replicas();
  CommandClient client{engine, options, server.streams(), nullptr};
  ReplicaAcks acks{client};
  Events results;
};

TEST_F(ReplicaAcksTest, OneWaitIsInFlightAndTheNextIsForAllWritesMeanwhile) {
  count("a", 1, 500ms, 2s);
  count("b", 2, 300ms, 2s);
  count("c", 1, 200ms, 2s);
  EXPECT_EQ(server.commands, (std::vector<Words>{{"WAIT", "1", "500"}}));
  acknowledge(1);
  EXPECT_EQ(results, (Events{"a: 1"}));
  EXPECT_EQ(server.commands.back(), (Words{"WAIT", "2", "200"}));
  acknowledge(0);
  EXPECT_EQ(results, (Events{"a: 1", "c: 0"})) << "b has more patience";
  EXPECT_EQ(server.commands.back(), (Words{"WAIT", "2", "300"}));
  acknowledge(2);
  EXPECT_EQ(results, (Events{"a: 1", "c: 0", "b: 2"}));
  EXPECT_EQ(server.commands.size(), 3U);
}

// It holds up all other requests of the connection.
TEST_F(ReplicaAcksTest, AWaitTakesAThirdOfTheResponseTimeoutAndASecondAtMost) {
  count("a", 1, 1h, 2s);
  EXPECT_EQ(server.commands.back(), (Words{"WAIT", "1", "667"}));
}

TEST_F(ReplicaAcksTest, ARequestThatUndoesAWriteGoesBeforeTheNextWait) {
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

TEST_F(ReplicaAcksTest, EachWriteEndsAtItsOwnDeadline) {
  count("a", 1, 500ms, 2s);
  count("b", 1, 500ms, 1s);
  engine.advance(1s - 1ms);
  EXPECT_EQ(results, Events{});
  engine.advance(1ms);
  EXPECT_EQ(results, (Events{failed("b", errc::ambiguous)}));
  acknowledge(1);
  EXPECT_EQ(results, (Events{failed("b", errc::ambiguous), "a: 1"}));
  EXPECT_EQ(server.commands.size(), 1U);
}

// A WAIT on a new connection counts all replicas, because the server knows of no write there.
TEST_F(ReplicaAcksTest, AFailedWaitFailsTheWritesThatWaitBehindIt) {
  count("a", 1, 500ms, 2s);
  count("b", 1, 500ms, 2s);
  server.cut();
  engine.advance(1s);
  EXPECT_EQ(results, (Events{failed("a", errc::ambiguous), failed("b", errc::ambiguous)}));
  EXPECT_EQ(server.commands.size(), 1U);
  count("c", 1, 500ms, 2s);
  acknowledge(1);
  EXPECT_EQ(results.back(), "c: 1");
  count("d", 1, 500ms, 2s);
  server.connections.front()->reply("+OK\r\n");
  engine.run();
  EXPECT_EQ(results.back(), failed("d", errc::protocol));
}

// --- A node ----------------------------------------------------------------------------------------------------------

class NodeTest : public testing::Test, protected Node::User {
 protected:
  NodeTest() {
    node.emplace(engine, options_with_replicas(), server.streams(), news, static_cast<Node::User&>(*this));
    server.answer = [](FakeStream&, const Words& command) -> std::string {
      if (command.front() == "SUBSCRIBE") return about_channel("subscribe", command.at(1));
      return command.front() == "GET" ? "$-1\r\n" : "";
    };
    // In this order, so the connections are, too.
    for (const Line line : {Line::common, Line::acknowledged}) ask(line);
    node->subscriber().subscribe("channel");
    engine.run();
  }
  ~NodeTest() override { server.answer = nullptr; }

  void ask(Line line) {
    (void)node->line(line).request(
        {"GET", "key"}, TimePoint::max(),
        [this](const Result<Reply>& reply, TimePoint) {
          if (reply.ok()) return;
          events.push_back("failed");
          if (ends) node.reset();
        },
        About::locks);
    engine.run();
  }

  test::ManualEngine engine;
  test::RecordingHost host{engine};
  common::ConnectionNews news{host};
  FakeServer server;
  Events events;
  bool ends = false;  // all, when a request fails
  std::optional<Node> node;

 private:
  void on_state(Node& /*of*/, NodeState state) override {
    events.emplace_back(state == NodeState::connected ? "connected" : state == NodeState::down ? "down" : "usable");
  }
  void on_subscribed(const std::string& /*channel*/) override { events.emplace_back("subscribed"); }
  void on_message(const std::string& /*channel*/, const std::string& /*text*/) override {}
  void on_lost(const std::string& /*channel*/) override { events.emplace_back("lost"); }
  void on_forbidden(const Failure& /*why*/) override {}
};

TEST_F(NodeTest, HasAConnectionForAcquiresOneForOthersAndOneForMessages) {
  EXPECT_EQ(server.dialled, 3);
  EXPECT_EQ(events, (Events{"connected", "subscribed"})) << "the first is not for acquires";
  EXPECT_NE(&node->line(Line::common), &node->line(Line::acknowledged));
}

// The name may lead to another server now.
TEST_F(NodeTest, OneBrokenConnectionForCommands_AllAreMadeAgain) {
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
    EXPECT_EQ(events.back(), "subscribed");
    EXPECT_EQ(server.subscribers(), 1);
    engine.advance(1min);
  }
}

TEST_F(NodeTest, ABrokenSubscriber_ConcernsNoCommand) {
  events.clear();
  server.connections.at(2)->close({errc::unavailable, "cut"});
  engine.advance(1s);
  EXPECT_EQ(server.dialled, 4);
  EXPECT_EQ(events, (Events{"lost", "subscribed"}));
}

TEST_F(NodeTest, AtRest_EndsAllConnectionsAndFailsRequests) {
  for (const bool ends_meanwhile : {false, true}) {
    server.answer = nullptr;
    for (const Line line : {Line::common, Line::acknowledged}) ask(line);
    events.clear();
    ends = ends_meanwhile;
    node->rest({errc::unavailable, "not needed"});
    EXPECT_EQ(events, Events(ends_meanwhile ? 1 : 2, "failed"));
    EXPECT_TRUE(server.connections.empty());
    engine.advance(10s);
    EXPECT_TRUE(server.connections.empty());
  }
}

TEST_F(NodeTest, AtRest_ItsBrokenConnectionsAreNoNewsAnyMore) {
  using State = ConnectionEvent::State;
  server.dialling = FakeServer::Dialling::refuse;
  server.cut();
  engine.advance(1s);
  EXPECT_EQ(host.connections, (std::vector{State::connected, State::reconnecting}));
  node->rest({errc::unavailable, "not needed"});
  EXPECT_EQ(host.connections.back(), State::connected);
}

TEST_F(NodeTest, Stopped_EndsItsConnectionsForCommands) {
  node->stop();
  EXPECT_EQ(server.connections.size(), 1U) << "that for messages ends with the node";
  node.reset();
  EXPECT_TRUE(server.connections.empty());
}

}  // namespace

}  // namespace dlock::redis
