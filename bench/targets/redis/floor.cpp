#include "bench/targets/redis/floor.hpp"

#include <hiredis/hiredis.h>

#include <stdexcept>
#include <utility>

#include "bench/targets/own_name.hpp"

namespace dlock::bench {

namespace {

constexpr const char* release_script =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
constexpr const char* lease_ms = "30000";

}  // namespace

RedisFloor::RedisFloor(const UrlText& url, std::string key, std::shared_ptr<std::atomic<std::uint64_t>> sets)
    : connection_(url),
      key_(std::move(key)),
      owner_(own_name()),
      release_sha_(connection_.text({"SCRIPT", "LOAD", release_script})),
      sets_(std::move(sets)) {}

void RedisFloor::acquire() {
  const RedisReply reply = connection_.call({"SET", key_, owner_, "NX", "PX", lease_ms});
  sets_->fetch_add(1, std::memory_order_relaxed);
  if (reply->type != REDIS_REPLY_STATUS) throw std::runtime_error("the floor's lock is held by somebody else");
}

void RedisFloor::release() {
  if (connection_.call({"EVALSHA", release_sha_, "1", key_, owner_})->integer != 1) {
    throw std::runtime_error("the floor did not hold its lock");
  }
}

}  // namespace dlock::bench
