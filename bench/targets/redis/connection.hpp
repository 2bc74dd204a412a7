// A blocking connection to a Redis server, as a program would have it that uses hiredis by itself.
#pragma once

#include <chrono>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "torture/rig/url_text.hpp"

struct redisContext;
struct redisReply;

namespace dlock::bench {

struct FreeRedisReply {
  void operator()(redisReply* reply) const noexcept;
};
using RedisReply = std::unique_ptr<redisReply, FreeRedisReply>;

class RedisConnection {
 public:
  // To the URL's first host and its database, logged in as its user. Throws std::runtime_error.
  explicit RedisConnection(const rig::UrlText& url);
  // Not logged in. Throws as above.
  explicit RedisConnection(const rig::HostPort& host);
  // An empty user: the default one.
  void log_in(const std::string& user, const std::string& password);

  // Throws std::runtime_error when the connection breaks or nothing comes for long, or for an error of the server's.
  RedisReply call(std::initializer_list<std::string_view> words) { return call(words.begin(), words.size()); }
  RedisReply call(const std::vector<std::string_view>& words) { return call(words.data(), words.size()); }
  // The text of a command that answers with one; empty if it does not.
  [[nodiscard]] std::string text(std::initializer_list<std::string_view> words);

 private:
  struct Close {
    void operator()(redisContext* context) const noexcept;
  };
  RedisReply call(const std::string_view* words, std::size_t count);

  std::unique_ptr<redisContext, Close> context_;
};

}  // namespace dlock::bench
