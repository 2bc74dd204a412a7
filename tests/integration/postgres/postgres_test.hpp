// Shared by the tests of locks on a real PostgreSQL server.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "backends/postgres/options.hpp"
#include "network/room.hpp"
#include "tests/support/postgres_connection.hpp"
#include "tests/support/postgres_locks.hpp"
#include "tests/support/postgres_server.hpp"
#include "tests/support/sanitizers.hpp"

namespace dlock::postgres {

inline void PrintTo(Strategy strategy, std::ostream* out) {
  *out << to_string(strategy);
}

}  // namespace dlock::postgres

namespace dlock::test {

using postgres::Strategy;

inline constexpr Strategy all_strategies[] = {Strategy::table, Strategy::optimistic, Strategy::for_update,
                                              Strategy::advisory};
inline const std::vector<Strategy> row_strategies = {Strategy::table, Strategy::optimistic};
inline const std::vector<Strategy> session_strategies = {Strategy::for_update, Strategy::advisory};

// The strategies that a test of each strategy runs for. Optimistic and table are the same code with different
// statements, which a sanitizer does not see.
inline std::vector<Strategy> tested(std::vector<Strategy> strategies = {std::begin(all_strategies),
                                                                        std::end(all_strategies)}) {
  if (dlock::test::sanitized) std::erase(strategies, Strategy::optimistic);
  return wanted_strategies("postgres", std::move(strategies));
}

// As names of tests contain it.
inline std::string strategy_word(Strategy strategy) {
  std::string name(postgres::to_string(strategy));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
inline std::string strategy_name(const ::testing::TestParamInfo<Strategy>& info) {
  return strategy_word(info.param);
}

// Parameters of a URL.
inline std::string with(Strategy strategy, const std::string& more = {}) {
  const std::string text = "strategy=" + std::string(postgres::to_string(strategy));
  return more.empty() ? text : text + "&" + more;
}

// The schema's table that remembers the tokens of a strategy.
inline std::string token_table(Strategy strategy) {
  constexpr const char* tables[] = {"dlock.lease", "dlock.optimistic", "dlock.row_token", "dlock.fence"};
  return tables[std::find(std::begin(all_strategies), std::end(all_strategies), strategy) - std::begin(all_strategies)];
}

// These timeouts end long before far_too_long, even on a busy machine.
inline ClientOptions impatient(Duration lease = 10min) {
  return {.lease = lease, .response_timeout = 1s, .connect_timeout = 1s, .close_timeout = 300ms};
}
// A lease that ends after every test would have failed: what is free before then was freed. The lease of a lock in a
// session is the client's, so all tests set the client's.
inline ClientOptions patient() {
  return {.lease = 10min};
}
// Tests wait for the end of this one.
inline constexpr auto short_lease = 3s;

class PostgresTest : public ::testing::Test {
 protected:
  // Tests of a process that want such a server share it, until one fails. It has no schema of dlock, and the role has
  // no settings.
  explicit PostgresTest(const PostgresConfig& config = {}) : server(*shared_by(config)) {
    shared_ = &shared_by(config);
    server.run("DROP SCHEMA IF EXISTS dlock CASCADE");
    server.run("ALTER ROLE locker RESET ALL");
  }
  // A server of the test's own.
  struct Own {};
  explicit PostgresTest(Own /*server*/) : own_(std::make_unique<PostgresServer>()), server(*own_) {}
  void TearDown() override {
    if (shared_ != nullptr && HasFailure()) shared_->reset();
  }

  [[nodiscard]] Client steady(ClientOptions options, const std::string& parameters = {}) const {
    return connect_patiently(server.url(parameters), std::move(options));
  }

 private:
  static std::unique_ptr<PostgresServer>& shared_by(const PostgresConfig& config) {
    static std::map<std::pair<int, std::vector<std::string>>, std::unique_ptr<PostgresServer>> servers;
    auto& server = servers[{config.max_connections, config.lines}];
    if (!server) server = std::make_unique<PostgresServer>(config);
    return server;
  }

  std::unique_ptr<PostgresServer> own_;
  std::unique_ptr<PostgresServer>* shared_ = nullptr;

 protected:
  PostgresServer& server;
};

// A rule of all strategies.
class PostgresStrategyTest : public PostgresTest, public ::testing::WithParamInterface<Strategy> {
 protected:
  using PostgresTest::PostgresTest;

  [[nodiscard]] static bool in_session() { return lives_in_sessions(GetParam()); }
  [[nodiscard]] static std::string strategy(const std::string& more = {}) { return with(GetParam(), more); }
  [[nodiscard]] Client steady(ClientOptions options = patient(), const std::string& more = {}) const {
    return PostgresTest::steady(std::move(options), strategy(more));
  }
  // Of a role with this name, whose password is its name.
  [[nodiscard]] Client as(const std::string& role, ClientOptions options) const {
    return connect_patiently(server.url_as(role, role, strategy()), std::move(options));
  }

  // Background clean-up ends at some time.
  void await_no_residue(const std::string& name) {
    server.await("(" + PostgresLock(GetParam(), name).residue() + ") = 0");
  }
  // Until the server knows of so many waiters, or of any.
  void await_waiter(const std::string& name, int count = 0) {
    server.await("(" + PostgresLock(GetParam(), name).waiters() + ") " +
                 (count > 0 ? "= " + std::to_string(count) : "> 0"));
  }
};

}  // namespace dlock::test
