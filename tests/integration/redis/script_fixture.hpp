// The scripts by themselves, run one by one on a real server.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "backends/redis/requests/keys.hpp"
#include "backends/redis/requests/scripts.hpp"
#include "tests/support/redis_server.hpp"

namespace dlock::test {

using redis::Keys;
using redis::Script;

class ScriptTest : public ::testing::Test {
 protected:
  RedisReply run(const Script& script, const std::vector<std::string>& script_keys,
                 const std::vector<std::string>& arguments) {
    std::vector<std::string> words = {"EVAL", std::string(script.text), std::to_string(script_keys.size())};
    words.insert(words.end(), script_keys.begin(), script_keys.end());
    words.insert(words.end(), arguments.begin(), arguments.end());
    return client.command(words);
  }
  RedisReply acquire(const std::string& value, const std::string& mode = "try", int alive_ms = 15'000,
                     int lease_ms = 30'000, std::int64_t ticket = 0) {
    return run(redis::acquire_script(), {keys.lock, keys.queue, keys.alive, keys.fence},
               {value, std::to_string(lease_ms), mode, std::to_string(alive_ms), "1000", "host:1:test",
                std::to_string(ticket)});
  }
  RedisReply release(const std::string& value, const std::string& how = "stay") {
    return run(redis::release_script(), {keys.lock, keys.queue, keys.alive}, {value, "1000", how});
  }
  RedisReply renew(const std::string& value, int lease_ms = 30'000) {
    return run(redis::renew_script(), {keys.lock, keys.fence}, {value, std::to_string(lease_ms)});
  }
  // The token of a grant; 0 if it was none.
  static std::uint64_t token_in(const RedisReply& reply) {
    EXPECT_FALSE(reply.is_error()) << reply.text;
    return reply.text.empty() ? 0 : std::stoull(reply.text);
  }
  // What a release says of the lock: 1: it was the value's; 0: somebody else's; -1: nobody's.
  static std::int64_t verdict_in(const RedisReply& reply) {
    EXPECT_FALSE(reply.is_error()) << reply.text;
    return reply.elements.empty() ? reply.integer : reply.elements[0].integer;
  }
  static bool is_busy(const RedisReply& reply) {
    EXPECT_FALSE(reply.is_error()) << reply.text;
    return reply.elements.size() == 5 && reply.elements[0].integer == 0;
  }
  // Releases as a client does: until nothing is left to do. The number of calls.
  int release_to_the_end(const std::string& value) {
    for (int calls = 1; calls < 1000; ++calls) {
      const RedisReply reply = release(value);
      if (reply.elements.empty() || reply.elements.at(2).integer == 0) return calls;
    }
    throw std::runtime_error("there is no end of it");
  }
  // How often the server was told to publish, by scripts or by itself, since server.reset_counts().
  std::int64_t published() { return server.calls_of({"publish"}); }
  std::string holder() { return server.command({"GET", keys.lock}).text; }
  std::int64_t waiters() { return server.command({"ZCARD", keys.queue}).integer; }
  // From now on scripts run as a user that may not tell waiters.
  void forbid_publishing() {
    RedisUser user;
    user.patterns = {"~dlock:*", "~{dlock:*"};
    std::vector<std::string> words = {"ACL", "SETUSER"};
    for (const std::string& rule : user.rules()) words.push_back(rule);
    (void)server.command(words);
    (void)client.command({"AUTH", user.name, user.password});
  }
  // A connection that hears the wake-ups of that client.
  RedisConnection subscribe(const std::string& channel) {
    RedisConnection connection = server.connect();
    EXPECT_EQ(connection.command({"SUBSCRIBE", channel}).elements.size(), 3U);
    return connection;
  }

  // The next message there that is a grant.
  static std::string next_grant(RedisConnection& subscribed) {
    while (true) {
      std::string text = subscribed.receive().elements.at(2).text;
      if (text.find(' ') == std::string::npos) return text;
    }
  }

  RedisServer server;
  RedisConnection client = server.connect();
  const Keys keys = redis::keys_of("dlock:", "scripted");
};

}  // namespace dlock::test
