// A plain, blocking connection to a Redis server: what tests look at the server with, and a locker in another language.
//
//   RedisConnection redis(Endpoint::loopback(server.port()));
//   if (redis.command({"SET", "key", "token", "NX", "PX", "1000"}).is_nil()) { ... }
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "torture/rig/socket.hpp"

struct redisReader;

namespace dlock::test {

struct RedisReply {
  enum class Type { nil, status, error, integer, string, array } type = Type::nil;
  std::int64_t integer = 0;
  std::string text = {};  // of a status, error or string
  std::vector<RedisReply> elements = {};

  [[nodiscard]] bool is_nil() const noexcept { return type == Type::nil; }
  [[nodiscard]] bool is_error() const noexcept { return type == Type::error; }
};

class RedisConnection {
 public:
  // Throws std::system_error if nobody listens there.
  explicit RedisConnection(const rig::Endpoint& endpoint);

  // Sends a command and waits for its answer. Throws std::runtime_error when the connection breaks or the hang guard
  // ends the wait; an error reply is returned.
  RedisReply command(const std::vector<std::string>& words);
  // The two halves of it, for commands that answer late, often or never.
  void send(const std::vector<std::string>& words);
  [[nodiscard]] RedisReply receive();

 private:
  struct FreeReader {
    void operator()(redisReader* reader) const noexcept;
  };

  rig::UniqueFd fd_;
  std::unique_ptr<redisReader, FreeReader> reader_;
};

}  // namespace dlock::test
