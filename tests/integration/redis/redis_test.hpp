// What the tests on a real Redis server share.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/redis/requests/keys.hpp"
#include "network/room.hpp"
#include "tests/support/redis_server.hpp"

namespace dlock::test {

// Short, for tests that let them run out in real time.
inline ClientOptions impatient() {
  return {.response_timeout = 1s, .connect_timeout = 1s, .close_timeout = 300ms};
}

// For tests of what is refused at once. What a client leaves behind there is not waited for.
inline ClientOptions unwaiting() {
  return {.close_timeout = 300ms};
}

// A lease that runs out after every test would have failed: what is free before then was freed.
inline constexpr auto long_lease = 10min;

// A server with a proxy in front of it. Clients made by disturbed() go through the proxy.
class RedisTest : public ::testing::Test {
 protected:
  explicit RedisTest(RedisConfig config = {})
      : server(std::move(config)), proxy(rig::Endpoint::loopback(server.port())) {}

  [[nodiscard]] Client steady(ClientOptions options = {}, const std::string& parameters = {}) const {
    return connect_patiently(server.url(parameters), std::move(options));
  }
  [[nodiscard]] Client disturbed(ClientOptions options = {}, const std::string& parameters = {}) const {
    return connect_patiently(server.url_at(proxy.port(), parameters), std::move(options));
  }
  [[nodiscard]] static redis::Keys keys(const std::string& name) { return redis::keys_of("dlock:", name); }
  // What the lock's key holds; empty if it is not there.
  [[nodiscard]] std::string value(const std::string& name) { return server.command({"GET", keys(name).lock}).text; }
  [[nodiscard]] bool is_held_by(const std::string& name, const Lease& lease) {
    return value(name).find(lease.owner().to_string()) != std::string::npos;
  }
  // The lock's key and its queue.
  [[nodiscard]] std::int64_t residue(const std::string& name) {
    return server.command({"EXISTS", keys(name).lock}).integer + server.command({"ZCARD", keys(name).queue}).integer;
  }
  // What is cleaned up in the background is gone at some time.
  void await_no_residue(const std::string& name) {
    await("something is left of " + name, [&] { return residue(name) == 0; });
  }
  // Until the server knows of so many waiters.
  void await_waiters(const std::string& name, std::int64_t count) {
    await("waiters do not arrive at " + name, [&] {
      return server.command({"ZCARD", keys(name).queue}).integer == count;
    });
  }

  RedisServer server;
  rig::TcpProxy proxy;
};

// The ways to wait, for tests that are to hold for all of them.
class RedisStrategyTest : public RedisTest, public ::testing::WithParamInterface<std::string> {
 protected:
  explicit RedisStrategyTest(RedisConfig config = {}) : RedisTest(std::move(config)) {}
  [[nodiscard]] std::string strategy() const { return "strategy=" + GetParam(); }
};

inline auto all_strategies() {
  return ::testing::ValuesIn(tested_strategies());
}

}  // namespace dlock::test
