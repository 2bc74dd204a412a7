// The servers, and which of them gets a request about a key: the one server of a URL (Single), the master that
// sentinels name (SentinelTopology), or the node that has the key's slot (Cluster).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlock/duration.hpp>
#include <dlock/info.hpp>
#include <dlock/spi/backend.hpp>
#include <dlock/token.hpp>

#include "backends/common/host.hpp"
#include "backends/redis/topology/node.hpp"

namespace dlock::redis {

// In tasks only.
class Topology {
 public:
  // node: the one that answered or failed to; nullptr if no node is at fault.
  using Handler = Callback<Node*, Result<Reply>, TimePoint>;

  Topology(Executor& executor, Options options) : executor_(executor), options_(std::move(options)) {}
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;
  virtual ~Topology() = default;

  [[nodiscard]] const Options& options() const noexcept { return options_; }
  [[nodiscard]] Executor& executor() const noexcept { return executor_; }
  // The deadline of a request that is sent now.
  [[nodiscard]] TimePoint answer_by() const noexcept {
    return saturating_add(executor_.now(), options_.response_timeout);
  }

  // The node that has the key, as far as is known.
  [[nodiscard]] virtual Node& node_of(std::string_view key) = 0;
  // As CommandClient::run() and request(), wherever the key is. The handler is called once, never inside the call, at
  // the deadline at the latest. Returns an id, never 0.
  virtual std::uint64_t send(std::string_view key, Request request, TimePoint deadline, Handler done) = 0;
  // The answer is not wanted any more. True: the request was not sent and never will be.
  virtual bool withdraw(std::uint64_t id, Line line) = 0;
  // This may be the wrong node: later requests find the right one. Returns whether its subscriber reconnects, too.
  virtual bool on_wrong_node(Node& node, const Failure& why) = 0;

  // All nodes that have locks, once they are known; at the deadline at the latest.
  using MastersHandler = std::function<void(Result<std::vector<common::Host>>)>;
  virtual void masters(TimePoint deadline, MastersHandler done) = 0;
  // nullptr: it is no longer one of them.
  [[nodiscard]] virtual Node* master_at(const common::Host& host) = 0;

  // As Subscriber's, at the node that has the channel.
  virtual void subscribe(const std::string& channel) = 0;
  virtual void unsubscribe(const std::string& channel) = 0;
  virtual void proven(const std::string& channel) = 0;
  [[nodiscard]] virtual bool is_forbidden() const noexcept = 0;

  // This owner holds or awaits a lock for so long from now on; or no longer.
  virtual void in_use(const OwnerId& /*owner*/, std::chrono::nanoseconds /*time*/) {}
  virtual void done_with(const OwnerId& /*owner*/) {}
  // How many replicas have to acknowledge a write.
  [[nodiscard]] virtual std::uint32_t replicas_wanted() const { return options_.replicas_ack; }

  // The settings and states that endanger locks. Leaves nothing behind.
  virtual void diagnose(Backend::Handler<std::vector<Finding>> done) = 0;
  // Ends all activity, as CommandClient::stop().
  virtual void stop() = 0;

 private:
  Executor& executor_;
  const Options options_;
};

}  // namespace dlock::redis
