// A Redis server in memory, as far as dlock uses one: keys that expire, the commands that dlock's scripts call, and the
// scripts themselves, which run in the Lua that Redis runs them in. A command goes in, its reply comes out; connections
// and subscribers are the caller's. script_rules.hpp compares it with a real server.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/redis/connection/reply.hpp"
#include "backends/redis/connection/script.hpp"

namespace dlock::redis {

// One of dlock's scripts, by its text or by its hash; nullptr if it is none.
[[nodiscard]] const Script* known_script(std::string_view text_or_sha1);
// As a server sends it.
[[nodiscard]] std::string bytes_of(const Reply& reply);

namespace reply_of {
[[nodiscard]] inline Reply number(auto value) {
  return {.type = Reply::Type::integer, .integer = static_cast<std::int64_t>(value)};
}
[[nodiscard]] inline Reply text(std::string_view value) {
  return {.type = Reply::Type::string, .text = std::string(value)};
}
[[nodiscard]] inline Reply error(std::string what) {
  return {.type = Reply::Type::error, .text = std::move(what)};
}
[[nodiscard]] inline Reply ok() {
  return {.type = Reply::Type::status, .text = "OK"};
}
}  // namespace reply_of

class RedisModel {
 public:
  using Words = std::vector<std::string>;
  // The model refuses writes by CONFIG SET maxmemory and min-replicas-to-write, or because it is a replica.
  enum class Refuses { nothing, out_of_memory, without_replicas, read_only };

  // clock: the server's, since 1970.
  explicit RedisModel(std::function<std::chrono::microseconds()> clock);
  ~RedisModel();

  [[nodiscard]] Reply run(const Words& words);
  [[nodiscard]] std::int64_t now_ms() const { return clock_().count() / 1000; }

  // Delivers a message; answers to how many subscribers. Unset: to none.
  std::function<std::int64_t(const std::string& channel, const std::string& text)> publish;
  bool may_publish = true;
  Refuses refuses = Refuses::nothing;
  std::map<std::string, std::int64_t, std::less<>> calls;  // how often each command was called

 private:
  class Lua;
  class Keys;

  [[nodiscard]] Reply run_script(const Words& words);

  const std::function<std::chrono::microseconds()> clock_;
  std::set<std::string, std::less<>> loaded_;  // hashes of scripts
  const std::unique_ptr<Keys> keys_;
  const std::unique_ptr<Lua> lua_;
  bool in_script_ = false;
  bool wrote_ = false;  // the script
};

}  // namespace dlock::redis
