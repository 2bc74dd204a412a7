// Where requests about a lock go: to the one server that there is, or to the node of a cluster that has the lock's
// slot.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlock/token.hpp>

#include "backends/redis/cluster/cluster.hpp"
#include "backends/redis/hash_slot.hpp"
#include "backends/redis/connection/server.hpp"
#include "backends/redis/sentinel/sentinels.hpp"

namespace dlock::redis {

// In tasks only.
class Servers {
 public:
  // What is not nullptr outlives it: either a server, with those who know where it is, or a cluster.
  Servers(Server* only, Cluster* cluster, Sentinels* sentinels)
      : only_(only), cluster_(cluster), sentinels_(sentinels) {}

  [[nodiscard]] const Options& options() const noexcept { return cluster_ ? cluster_->options() : only_->options(); }
  [[nodiscard]] Executor& executor() const noexcept {
    return cluster_ ? cluster_->executor() : only_->commands().executor();
  }
  [[nodiscard]] TimePoint answer_by() const noexcept {
    return saturating_add(executor().now(), options().response_timeout);
  }
  [[nodiscard]] bool are_a_cluster() const noexcept { return cluster_ != nullptr; }

  // The one that has the key, as far as is known.
  [[nodiscard]] Server& of(std::string_view key) { return cluster_ ? cluster_->of(key) : *only_; }

  // As CommandClient::run(), wherever the key is. The handler is also given the server that answered, or did not;
  // nullptr where the failure says nothing about any. An id of 0 can be withdrawn, too.
  template <class Handler>  // void(Server*, Result<Reply>, TimePoint sent)
  std::uint64_t run(Line line, std::string_view key, const Script& script, Command words, TimePoint deadline,
                    Handler done, AtTheEnd at_the_end = AtTheEnd::dropped) {
    if (cluster_) return cluster_->run(line, key, {&script, std::move(words), at_the_end}, deadline, std::move(done));
    return only_->line(line).run(script, std::move(words), deadline, told(std::move(done)), at_the_end);
  }
  template <class Handler>
  std::uint64_t request(Line line, std::string_view key, Command words, TimePoint deadline, Handler done) {
    if (cluster_) return cluster_->run(line, key, {nullptr, std::move(words)}, deadline, std::move(done));
    return only_->line(line).request(std::move(words), deadline, told(std::move(done)));
  }
  // The answer is not wanted any more. True: the request was not sent and never will be.
  bool withdraw(Line line, std::uint64_t id) {
    return id == 0 || (cluster_ ? cluster_->withdraw(id) : only_->line(line).withdraw(id));
  }

  // What was asked was at the wrong server, or may have been: new requests find the right one.
  void mistook(Server& server, const Failure& why) { cluster_ ? cluster_->refresh() : server.reconnect(why); }
  // What came of a request about the key that was sent to this very server: where to send it instead, if anywhere.
  [[nodiscard]] Cluster::Elsewhere redirected(Server& server, std::string_view key, const Result<Reply>& reply) {
    if (cluster_ == nullptr) return {};
    if (!reply.ok()) {
      cluster_->refresh();
    } else if (reply.value().is(Reply::Type::error)) {
      const auto to = cluster_->redirected(server, slot_of(key), reply.value().text);
      if (to.server == nullptr) cluster_->refresh();
      return to;
    }
    return {};
  }

  // All that have locks, once it is known.
  void masters(TimePoint deadline, const Cluster::MastersHandler& done) {
    cluster_ ? cluster_->masters(deadline, done) : done(std::vector{only_->options().host});
  }
  // nullptr: none is there any more.
  [[nodiscard]] Server* master_at(const common::Host& host) { return cluster_ ? cluster_->master_at(host) : only_; }

  // This owner has a lock, or waits for one, for so long from now on; or no longer.
  void in_use(const OwnerId& owner, std::chrono::nanoseconds time) {
    if (sentinels_) sentinels_->in_use(owner, time);
  }
  void done_with(const OwnerId& owner) {
    if (sentinels_) sentinels_->done_with(owner);
  }
  // How many replicas are to acknowledge a write.
  [[nodiscard]] std::uint32_t replicas_wanted() const {
    return sentinels_ ? sentinels_->replicas_wanted() : options().replicas_ack;
  }

 private:
  template <class Handler>
  auto told(Handler done) {
    return [server = only_, done = std::move(done)](Result<Reply> reply, TimePoint sent) {
      done(server, std::move(reply), sent);
    };
  }

  Server* const only_;
  Cluster* const cluster_;
  Sentinels* const sentinels_;
};

}  // namespace dlock::redis
