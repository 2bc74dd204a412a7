// A cluster whose nodes a test plays, and a client of it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/redis/cluster/cluster.hpp"
#include "fake_server.hpp"
#include "tests/support/manual_engine.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::redis {

using namespace std::chrono_literals;

// Keys in slots of a (5061) and of b (12182).
inline const std::string bar = "bar";
inline const std::string foo = "foo";

using Map = std::vector<SlotRange>;

struct FakeNode {
  FakeServer server;
  std::optional<Map> map;                                  // nullopt: as all others
  std::string refusal;                                     // instead of the map
  bool silent = false;                                     // when asked for the map
  std::function<std::string(const Words& command)> reply;  // empty: the node's name
  std::set<FakeStream*> stuck;                             // what waits for an answer that does not come
  int maps = 0;                                            // how often it was asked for the map

  FakeNode() = default;
  FakeNode(const FakeNode&) = delete;
  FakeNode& operator=(const FakeNode&) = delete;
  ~FakeNode() { server.answer = nullptr; }

  // Without questions for the map.
  [[nodiscard]] std::vector<Words> requests() const {
    std::vector<Words> out;
    std::ranges::copy_if(server.commands, std::back_inserter(out),
                         [](const Words& command) { return command.front() != "CLUSTER"; });
    return out;
  }
  void refuse(const std::string& error) {
    reply = [error](const Words&) { return "-" + error + "\r\n"; };
  }
};

// By default, "a" and "b" have half of the slots each, all nodes know that, and each answers to requests
// with its name.
class ClusterTest : public testing::Test, protected Node::User {
 protected:
  static common::Host at(const std::string& name) { return {.name = name, .port = 7000}; }

  ClusterTest() { make(); }

  FakeNode& node(const std::string& name) {
    auto& node = nodes[at(name).to_string()];
    if (node) return *node;
    node = std::make_unique<FakeNode>();
    node->server.answer = [this, name, node = node.get()](FakeStream& from, const Words& command) -> std::string {
      // Answers come in order: behind one that is missing there is none.
      if (command.front() == "CLIENT") node->stuck.erase(&from);
      if (node->stuck.contains(&from)) return "";
      std::string reply = answer(*node, name, command);
      if (reply.empty()) node->stuck.insert(&from);
      return reply;
    };
    return *node;
  }

  std::string answer(FakeNode& node, const std::string& name, const Words& command) const {
    if (command.front() == "CLIENT" || command.front() == "ASKING") return "+OK\r\n";
    if (command.front() == "PING") return "+PONG\r\n";
    if (command.front() != "CLUSTER") return node.reply ? node.reply(command) : "+" + name + "\r\n";
    ++node.maps;
    if (node.silent) return "";
    return node.refusal.empty() ? bytes_of(node.map.value_or(map)) : "-" + node.refusal + "\r\n";
  }

  static std::string bytes_of(const Map& ranges) {
    std::string out = "*" + std::to_string(ranges.size()) + "\r\n";
    for (const SlotRange& range : ranges) {
      out += "*3\r\n" + number(range.first) + number(range.last) + "*2\r\n" + bulk(range.master.name) +
             number(range.master.port);
    }
    return out;
  }
  [[nodiscard]] StreamFactory network() {
    return [this](Executor& executor, const Options& to, common::Stream::Events& sink) {
      return std::make_unique<FakeStream>(node(to.host.name).server, executor, sink);
    };
  }
  void make(const std::string& names = "a:7000,b:7000") {
    cluster.emplace(host, options_for("redis-cluster://" + names), network(), static_cast<Node::User&>(*this));
  }

  // A request, and what became of it.
  struct Asked {
    std::uint64_t id = 0;
    std::optional<Result<Reply>> result;

    [[nodiscard]] std::string said() const {
      if (!result) return "nothing";
      return result->ok() ? result->value().text : result->failure().code.message() + ": " + result->failure().detail;
    }
  };
  std::shared_ptr<Asked> ask(const std::string& key, Request request) {
    auto asked = std::make_shared<Asked>();
    asked->id = cluster->send(key, std::move(request), saturating_add(engine.now(), 2s),
                              [asked](const Node*, Result<Reply> reply, TimePoint) {
                                EXPECT_FALSE(asked->result) << "answered twice";
                                asked->result = std::move(reply);
                              });
    EXPECT_FALSE(asked->result) << "inside the call";
    engine.run();
    return asked;
  }
  std::shared_ptr<Asked> ask(const std::string& key) { return ask(key, {.words = {"GET", key}}); }
  // So that the map is known.
  void learn() { EXPECT_EQ(ask(bar)->said(), "a"); }

  [[nodiscard]] int maps() const {
    int count = 0;
    for (const auto& [name, node] : nodes) count += node->maps;
    return count;
  }

  test::ManualEngine engine;
  test::RecordingHost host{engine};
  Map map = {{0, 8191, at("a")}, {8192, 16383, at("b")}};
  std::map<std::string, std::unique_ptr<FakeNode>> nodes;
  std::vector<std::string> events;  // of channels and nodes
  std::optional<Cluster> cluster;

 protected:
  void on_state(Node& node, NodeState state) override {
    if (state == NodeState::down) events.push_back("down " + node.options().host.name);
  }
  void on_subscribed(const std::string& channel) override { events.push_back("subscribed " + channel); }
  void on_message(const std::string& channel, const std::string& text) override {
    events.push_back(channel + ": " + text);
  }
  void on_lost(const std::string& channel) override { events.push_back("lost " + channel); }
  void on_forbidden(const Failure& /*why*/) override { events.emplace_back("forbidden"); }
};

}  // namespace dlock::redis
