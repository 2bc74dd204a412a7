// One server, which has all keys.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/redis/topology/topology.hpp"

namespace dlock::redis {

class Single : public Topology {
 public:
  // All but options and streams outlive it.
  Single(BackendHost& host, const Options& options, const StreamFactory& streams, Node::User& user)
      : Topology(host.executor(), options), news_(host), node_(executor(), options, streams, news_, user) {}

  [[nodiscard]] Node& node_of(std::string_view /*key*/) override { return node_; }
  std::uint64_t send(std::string_view key, Request request, TimePoint deadline, Handler done) override;
  bool withdraw(std::uint64_t id, Line line) override { return node_.line(line).withdraw(id); }
  bool on_wrong_node(Node& node, const Failure& why) override {
    node.reconnect(why);
    return true;
  }

  void masters(TimePoint /*deadline*/, MastersHandler done) override { done(std::vector{options().host}); }
  [[nodiscard]] Node* master_at(const common::Host& /*host*/) override { return &node_; }

  void subscribe(const std::string& channel) override { node_.subscriber().subscribe(channel); }
  void unsubscribe(const std::string& channel) override { node_.subscriber().unsubscribe(channel); }
  void proven(const std::string& /*channel*/) override { node_.subscriber().proven(); }
  [[nodiscard]] bool is_forbidden() const noexcept override { return node_.subscriber().is_forbidden(); }

  void diagnose(Backend::Handler<std::vector<Finding>> done) override;
  void stop() override { node_.stop(); }

 private:
  common::ConnectionNews news_;
  Node node_;
};

}  // namespace dlock::redis
