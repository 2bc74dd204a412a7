#include "bench/targets/redis/same_requests.hpp"

#include <hiredis/hiredis.h>

#include "backends/redis/requests/scripts.hpp"
#include "backends/redis/timing.hpp"
#include "bench/targets/own_name.hpp"

namespace dlock::bench {

namespace {

constexpr const char* lease_ms = "30000";
constexpr const char* holder = "floor";
constexpr const char* not_queued = "try";
constexpr const char* no_ticket = "0";
constexpr const char* in_no_queue = "stay";

const std::string& alive_ms() {
  static const std::string text = std::to_string(redis::alive_for.count());
  return text;
}
const std::string& grant_ms() {
  static const std::string text = std::to_string(redis::grant_for.count());
  return text;
}

redis::Options options_for(bool sharded) {
  redis::Options options;
  if (sharded) options.cluster.emplace();
  return options;
}

}  // namespace

RedisSameRequests::RedisSameRequests(const rig::UrlText& url, const redis::Keys& keys, bool sharded)
    : connection_(url),
      keys_(keys),
      publish_arguments_(redis::publish_arguments(options_for(sharded), keys.lock)),
      owner_(own_name()),
      acquire_sha_(connection_.text({"SCRIPT", "LOAD", redis::acquire_script().text})),
      release_sha_(connection_.text({"SCRIPT", "LOAD", redis::release_script().text})) {}

void RedisSameRequests::acquire() {
  const auto& [publish, clients, lock] = publish_arguments_;
  const RedisReply reply =
      connection_.call({"EVALSHA", acquire_sha_, "4", keys_.lock, keys_.queue, keys_.alive, keys_.fence, owner_,
                        lease_ms, not_queued, alive_ms(), grant_ms(), holder, no_ticket, publish, clients, lock});
  require_free(reply->type == REDIS_REPLY_STRING);  // the token
}

void RedisSameRequests::release() {
  const auto& [publish, clients, lock] = publish_arguments_;
  const RedisReply reply = connection_.call({"EVALSHA", release_sha_, "3", keys_.lock, keys_.queue, keys_.alive, owner_,
                                             grant_ms(), in_no_queue, publish, clients, lock});
  require_held(reply->integer == 1);
}

}  // namespace dlock::bench
