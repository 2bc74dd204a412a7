#include "redis/floor.hpp"

#include <hiredis/hiredis.h>

#include <array>
#include <stdexcept>

namespace bench {

namespace {

constexpr const char* release_script =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

struct FreeReply {
  void operator()(redisReply* reply) const noexcept { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;

template <std::size_t N>
Reply call(redisContext& context, const std::array<const std::string*, N>& words) {
  std::array<const char*, N> texts;
  std::array<std::size_t, N> sizes;
  for (std::size_t i = 0; i < N; ++i) {
    texts[i] = words[i]->data();
    sizes[i] = words[i]->size();
  }
  Reply reply(static_cast<redisReply*>(redisCommandArgv(&context, static_cast<int>(N), texts.data(), sizes.data())));
  if (!reply) throw std::runtime_error(context.errstr);
  if (reply->type == REDIS_REPLY_ERROR) throw std::runtime_error(reply->str);
  return reply;
}

const std::string set = "SET";
const std::string nx = "NX";
const std::string px = "PX";
const std::string lease_ms = "30000";
const std::string evalsha = "EVALSHA";
const std::string one = "1";

}  // namespace

void Floor::Close::operator()(redisContext* context) const noexcept {
  redisFree(context);
}

Floor::Floor(std::uint16_t port) : context_(redisConnect("127.0.0.1", port)) {
  if (!context_ || context_->err != 0) throw std::runtime_error("cannot connect to Redis");
  const std::string script = "SCRIPT";
  const std::string load = "LOAD";
  const std::string text = release_script;
  release_sha_ = call<3>(*context_, {&script, &load, &text})->str;
}

bool Floor::acquire(const std::string& key, const std::string& token) {
  return call<6>(*context_, {&set, &key, &token, &nx, &px, &lease_ms})->type == REDIS_REPLY_STATUS;
}

bool Floor::release(const std::string& key, const std::string& token) {
  return call<5>(*context_, {&evalsha, &release_sha_, &one, &key, &token})->integer == 1;
}

}  // namespace bench
