#include "bench/targets/redis/connection.hpp"

#include <hiredis/hiredis.h>
#include <sys/time.h>

#include <array>
#include <stdexcept>

#include "bench/targets/service_target.hpp"

namespace dlock::bench {

namespace {

constexpr std::size_t most_words = 128;

}  // namespace

void FreeRedisReply::operator()(redisReply* reply) const noexcept {
  freeReplyObject(reply);
}

void RedisConnection::Close::operator()(redisContext* context) const noexcept {
  redisFree(context);
}

RedisConnection::RedisConnection(const rig::HostPort& host) {
  const timeval limit{.tv_sec = answer_limit.count(), .tv_usec = 0};
  context_.reset(redisConnectWithTimeout(host.name.c_str(), host.port, limit));
  if (!context_) throw std::runtime_error("Redis: out of memory");
  if (context_->err != 0 || redisSetTimeout(context_.get(), limit) != REDIS_OK) {
    throw std::runtime_error(std::string("Redis: ") + context_->errstr);
  }
}

RedisConnection::RedisConnection(const rig::UrlText& url)
    : RedisConnection(url.hosts({.name = "localhost", .port = 6379}).front()) {
  const Url parsed = Url::parse(url.text());
  if (const auto password = url.password()) log_in(parsed.user().value_or(""), *password);
  if (parsed.path().size() > 1) (void)call({"SELECT", std::string_view(parsed.path()).substr(1)});
}

void RedisConnection::log_in(const std::string& user, const std::string& password) {
  if (user.empty()) {
    (void)call({"AUTH", password});
  } else {
    (void)call({"AUTH", user, password});
  }
}

RedisReply RedisConnection::call(const std::string_view* words, std::size_t count) {
  std::array<const char*, most_words> texts{};
  std::array<std::size_t, most_words> sizes{};
  if (count > most_words) throw std::length_error("too many words for a command");
  for (std::size_t i = 0; i < count; ++i) {
    texts[i] = words[i].data();
    sizes[i] = words[i].size();
  }
  RedisReply reply(
      static_cast<redisReply*>(redisCommandArgv(context_.get(), static_cast<int>(count), texts.data(), sizes.data())));
  if (!reply) throw std::runtime_error(std::string("Redis: ") + context_->errstr);
  if (reply->type == REDIS_REPLY_ERROR) throw std::runtime_error(std::string("Redis: ") + reply->str);
  return reply;
}

std::string RedisConnection::text(std::initializer_list<std::string_view> words) {
  const RedisReply reply = call(words);
  return reply->str != nullptr ? std::string(reply->str, reply->len) : std::string();
}

}  // namespace dlock::bench
