// What the tests on a real Redis server share.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <memory>
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

// How a try of a lock of this client ends.
inline std::error_code try_error(const Client& client, const std::string& name = "tried") {
  std::error_code error;
  const bool granted = client.make_lock(name).try_acquire({}, error).has_value();
  EXPECT_NE(granted, static_cast<bool>(error));
  return error;
}

inline Lease take(const Client& client, const std::string& name, const AcquireOptions& options = {}) {
  DistributedLock lock = client.make_lock(name);
  return conformance::take(lock, options);
}

inline redis::Keys keys(const std::string& name) {
  return redis::keys_of("dlock:", name);
}
// The value of the lock's key; empty if it is not there.
inline std::string value(RedisServer& server, const std::string& name) {
  return server.command({"GET", keys(name).lock}).text;
}
inline bool is_held_by(RedisServer& server, const std::string& name, const Lease& lease) {
  return value(server, name).find(lease.owner().to_string()) != std::string::npos;
}
inline std::int64_t waiters(RedisServer& server, const std::string& name) {
  return server.command({"ZCARD", keys(name).queue}).integer;
}
inline void await_waiters(RedisServer& server, const std::string& name, std::int64_t count) {
  await("waiters do not arrive at " + name, [&] { return waiters(server, name) == count; });
}
// Until the server knows that a message would reach each of so many waiters.
inline void await_reachable(RedisServer& server, const std::string& name, std::int64_t count) {
  await("waiters of " + name + " are not reachable", [&] {
    return server.command({"ZCOUNT", keys(name).alive, "(0", "+inf"}).integer == count;
  });
}
inline std::size_t subscribers(RedisServer& server) {
  return server.command({"PUBSUB", "CHANNELS", "dlock:w:*"}).elements.size();
}

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
  void await_waiters(const std::string& name, std::int64_t count) { test::await_waiters(server, name, count); }
  // The lock's key and its queue. What is cleaned up in the background is gone at some time.
  void await_no_residue(const std::string& name) {
    await("something is left of " + name, [&] {
      return server.command({"EXISTS", keys(name).lock}).integer + waiters(server, name) == 0;
    });
  }
  // As kill -9 of the process of the disturbed clients does to the server: their connections end, and no others come.
  void kill_disturbed() {
    proxy.refuse(true);
    proxy.drop();
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

// Longer than a failover takes on a busy machine; renewed after a third of it.
inline constexpr Duration outlasting = 30s;

// Whether the client gets a lock there. One that is given back at a master which is being replaced may stay at the next
// until its lease is over.
inline bool locks_at(const Client& client, RedisServer& server, const std::string& name) {
  try {
    const auto lease = client.make_lock(name).try_acquire({.lease = outlasting});
    return lease && is_held_by(server, name, *lease);
  } catch (const Error& error) {
    std::cout << "no lock yet: " << error.what() << '\n';
    return false;
  }
}

// A holder and a waiter of the lock "{x}held", and what is done to the servers: the holder keeps its lock, and the
// waiter is served then, by the master that the lock has now.
template <class Connect, class Master, class Trouble>
void expect_to_go_on(Connect&& client, Master&& master, Trouble&& trouble, Duration lease_time = outlasting) {
  const auto log = std::make_shared<EventLog>();
  const Client holding = client(ClientOptions{.lease = lease_time, .observer = log});
  Contender waiting(client(ClientOptions{}), "{x}held");
  Lease lease = take(holding, "{x}held");
  Pending next(waiting.lock, {});
  await_waiters(master(), "{x}held", 1);
  await("the replicas do not have the lock", [&] {
    RedisServer& server = master();
    return server.replicated_to(std::stoul(server.info("replication", "connected_slaves")));
  });
  trouble();
  await_waiters(master(), "{x}held", 1);
  await("the holder does not come to the master", [&] { return locks_at(holding, master(), "{x}another"); });
  // The release of a longer lease says that the server still has it.
  if (lease_time < long_lease) await_renewal(lease);
  EXPECT_TRUE(lease.held());
  EXPECT_EQ(log->losses.count(), 0U);
  const FencingToken earlier = lease.token();
  EXPECT_TRUE(lease.release());
  EXPECT_GT(next.lease().token(), earlier);
}

}  // namespace dlock::test
