// The master of a service, wherever sentinels say that it is. Its connections find it (SentinelStream).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "backends/redis/sentinel/sentinel_findings.hpp"
#include "backends/redis/sentinel/sentinels.hpp"
#include "backends/redis/topology/single.hpp"

namespace dlock::redis {

class SentinelTopology final : public Single {
 public:
  // As Single. streams: sentinel_streams() of these sentinels.
  SentinelTopology(BackendHost& host, const Options& options, const StreamFactory& streams, Node::User& user,
                   std::shared_ptr<Sentinels> sentinels)
      : Single(host, options, streams, user), sentinels_(std::move(sentinels)) {}

  void in_use(const OwnerId& owner, std::chrono::nanoseconds time) override { sentinels_->in_use(owner, time); }
  void done_with(const OwnerId& owner) override { sentinels_->done_with(owner); }
  [[nodiscard]] std::uint32_t replicas_wanted() const override { return sentinels_->replicas_wanted(); }
  void diagnose(Backend::Handler<std::vector<Finding>> done) override {
    redis::diagnose(node_of("").commands(), sentinels_, std::move(done));
  }

 private:
  const std::shared_ptr<Sentinels> sentinels_;
};

}  // namespace dlock::redis
