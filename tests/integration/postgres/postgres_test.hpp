// What the tests of locks on a real PostgreSQL server share.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "backends/postgres/options.hpp"
#include "network/room.hpp"
#include "strategies.hpp"
#include "tests/support/postgres_locks.hpp"
#include "tests/support/postgres_server.hpp"

namespace dlock::postgres {

inline void PrintTo(Strategy strategy, std::ostream* out) {
  *out << to_string(strategy);
}

}  // namespace dlock::postgres

namespace dlock::test {

using postgres::Strategy;

// What this bounds ends long before far_too_long, even on a busy machine.
inline ClientOptions impatient(Duration lease = 10min) {
  return {.lease = lease, .response_timeout = 1s, .connect_timeout = 1s, .close_timeout = 300ms};
}

// A lease that runs out after every test would have failed: what is free before then was freed. Where a lock lives in a
// session, the client's is the one that counts, so it is the client's everywhere.
inline ClientOptions patient() {
  return {.lease = 10min};
}
// A lease that tests wait to see the end of.
inline constexpr auto short_lease = 3s;

// A server with a proxy in front of it. Clients made by disturbed() go through the proxy.
class PostgresTest : public ::testing::Test {
 protected:
  explicit PostgresTest(PostgresConfig config = {})
      : server(std::move(config)), proxy(rig::Endpoint::loopback(server.port())) {}

  [[nodiscard]] Client steady(ClientOptions options, const std::string& parameters = {}) const {
    return connect_patiently(server.url(parameters), std::move(options));
  }
  [[nodiscard]] Client disturbed(ClientOptions options, const std::string& parameters = {}) const {
    return connect_patiently(server.url_at(proxy.port(), parameters), std::move(options));
  }

  // A role that has all the rights of the others and owns what it makes together with them, but whose sessions the
  // server can tell from those of others.
  void make_role(const std::string& role) {
    server.run("CREATE ROLE " + role + " LOGIN IN ROLE " + PostgresServer::user + " PASSWORD '" + role + "'");
    server.run("ALTER ROLE " + role + " SET role = " + PostgresServer::user);
  }
  [[nodiscard]] Client as(const std::string& role, ClientOptions options, const std::string& parameters = {}) const {
    return connect_patiently(server.url_as(role, role, parameters), std::move(options));
  }
  // Ends all of its sessions; answers how many there were.
  int terminate(const std::string& role) {
    return std::stoi(server.value(
        "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE usename = '" + role + "'"));
  }

  // Until it is so in the server's view.
  void await_in_server(const std::string& condition) { server.await(condition); }

  PostgresServer server;
  rig::TcpProxy proxy;
};

// What is to hold for all strategies.
class PostgresStrategyTest : public PostgresTest, public ::testing::WithParamInterface<Strategy> {
 protected:
  explicit PostgresStrategyTest(PostgresConfig config = {}) : PostgresTest(std::move(config)) {}

  [[nodiscard]] static bool in_session() { return PostgresLock::is_of_sessions(GetParam()); }
  [[nodiscard]] static std::string strategy(const std::string& more = {}) {
    const std::string text = "strategy=" + std::string(postgres::to_string(GetParam()));
    return more.empty() ? text : text + "&" + more;
  }
  [[nodiscard]] Client steady(ClientOptions options, const std::string& more = {}) const {
    return PostgresTest::steady(std::move(options), strategy(more));
  }
  [[nodiscard]] Client disturbed(ClientOptions options, const std::string& more = {}) const {
    return PostgresTest::disturbed(std::move(options), strategy(more));
  }
  [[nodiscard]] Client as(const std::string& role, ClientOptions options, const std::string& more = {}) const {
    return PostgresTest::as(role, std::move(options), strategy(more));
  }

  // What is cleaned up in the background is gone at some time.
  void await_no_residue(const std::string& name) {
    await_in_server("(" + PostgresLock(GetParam(), name).residue() + ") = 0");
  }
  // Until the server has heard that somebody waits.
  void await_waiter(const std::string& name) {
    await_in_server("(" + PostgresLock(GetParam(), name).waiters() + ") > 0");
  }
};

}  // namespace dlock::test
