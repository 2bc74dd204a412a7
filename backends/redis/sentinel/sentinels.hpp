// Locates the master of a service by Redis Sentinels, and notices when another server becomes the master.
//
// One query asks one sentinel after the other until one answers; the next query begins with the next sentinel. A reply
// with a lower config-epoch than one seen before is ignored: its sentinel does not know the last failover, and may be
// cut off together with the old master. Only a higher epoch breaks connections that are open.
//
// A master that was cut off and replaced tells its clients nothing. So the client sends a query every second while it
// has locks or waits for one.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>
#include <dlock/spi/result.hpp>
#include <dlock/token.hpp>

#include "backends/redis/connection/streams.hpp"
#include "backends/redis/options.hpp"
#include "backends/redis/sentinel/sentinel_reply.hpp"

namespace dlock::redis {

// In tasks only.
class Sentinels final {
 public:
  using Handler = std::function<void(const Result<common::Host>&)>;

  // options: of the client, which name the service and the first sentinels. streams: make connections to sentinels. The
  // executor outlives it.
  Sentinels(Executor& executor, Options options, StreamFactory streams);
  ~Sentinels();

  // Queries the master's address; concurrent callers share the answer. The handler is called once, never inside the
  // call, and not after the end of this object.
  void locate(Handler done);
  // Until unfollow(), moved is called when another server becomes the master. It may end any followers, and this
  // object.
  void follow(const void* follower, std::function<void(const common::Host& to)> moved) {
    unfollow(follower);
    followers_.emplace_back(follower, std::move(moved));
  }
  void unfollow(const void* follower) {
    std::erase_if(followers_, [follower](const auto& each) { return each.first == follower; });
  }

  // This owner has a lock, or waits for one, for so long from now on; or no longer.
  void in_use(const OwnerId& owner, std::chrono::nanoseconds time);
  void done_with(const OwnerId& owner) { users_.erase(owner); }

  // How many replicas must acknowledge a write: with replicas_ack=all as many as any sentinel lists.
  [[nodiscard]] std::uint32_t replicas_wanted() const;
  // As far as is known.
  [[nodiscard]] const std::optional<common::Host>& master() const noexcept { return master_; }
  // Queries every known sentinel.
  void survey(const std::function<void(const std::vector<SentinelReply>&)>& done);

 private:
  struct Sentinel;
  struct Query;

  void add(const common::Host& host, const std::string& id, bool learnt);
  void start_query();
  void query_next();
  void send(Sentinel& to, std::function<void(const SentinelReply&)> done);
  void on_reply(const SentinelReply& reply);
  void found(const SentinelReply& reply);
  void finish_query(const Result<common::Host>& answer);
  void monitor();

  Executor& executor_;
  const Options options_;
  const StreamFactory streams_;
  std::vector<std::unique_ptr<Sentinel>> sentinels_;  // a query begins with the first
  std::unique_ptr<Query> query_;                      // the one in flight
  std::optional<common::Host> master_;
  std::uint64_t epoch_ = 0;
  TimePoint epoch_since_ = TimePoint::min();
  std::vector<std::pair<const void*, std::function<void(const common::Host&)>>> followers_;
  std::unordered_map<OwnerId, TimePoint> users_;
  Timer monitor_timer_;
  Lifetime lifetime_;
};

}  // namespace dlock::redis
