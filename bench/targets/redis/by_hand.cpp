#include "bench/targets/redis/by_hand.hpp"

#include <hiredis/hiredis.h>

#include <utility>

#include "bench/targets/own_name.hpp"

namespace dlock::bench {

namespace {

constexpr const char* compare_and_delete =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";

}  // namespace

RedisByHand::RedisByHand(const rig::UrlText& url, std::string key)
    : connection_(url),
      key_(std::move(key)),
      owner_(own_name()),
      release_sha_(connection_.text({"SCRIPT", "LOAD", compare_and_delete})) {}

void RedisByHand::acquire() {
  require_free(connection_.text({"SET", key_, owner_, "NX", "PX", "30000"}) == "OK");
}

void RedisByHand::release() {
  require_held(connection_.call({"EVALSHA", release_sha_, "1", key_, owner_})->integer == 1);
}

}  // namespace dlock::bench
