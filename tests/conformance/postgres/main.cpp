// PostgreSQL as a subject of the suite: a server shared by all tests of a process, with a proxy for disturbed clients.
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/postgres/options.hpp"
#include "backends/postgres/schema/layout.hpp"
#include "database_fixture.hpp"
#include "tests/support/pgbouncer.hpp"
#include "tests/support/postgres_locks.hpp"
#include "tests/support/postgres_server.hpp"

namespace dlock::conformance {
namespace {

using postgres::Strategy;
using test::PostgresLock;
using test::PostgresServer;

enum class Setup {
  direct,
  pooled,          // through pgbouncer, which hands out server connections by the transaction
  session_pooled,  // which keeps one for each client
};

// The server's own statistics arrive up to a second late. This module, which comes with it, counts each statement once,
// as it ends, however often it was prepared before.
const std::string counting = "shared_preload_libraries = 'pg_stat_statements'";

// Behind a transaction pooler, a client cannot set the isolation that it needs for its session.
constexpr std::string_view isolation_of(Setup setup) {
  return setup == Setup::pooled ? "serializable" : "read committed";
}

constexpr std::size_t most_mortal_users = 20;

// The server of a subject, its pooler, if any, and the superuser's view of it.
class PostgresService {
 public:
  // Started when first needed, so that helper processes, which make no fixtures, have no servers.
  [[nodiscard]] static PostgresService& of(Setup setup) {
    static std::array<std::unique_ptr<PostgresService>, 3> services;
    auto& service = services.at(static_cast<std::size_t>(setup));
    if (!service) service = std::make_unique<PostgresService>(setup);
    return *service;
  }

  explicit PostgresService(Setup setup)
      : server_({.max_connections = 800,
                 .lines = {counting, "pg_stat_statements.track_planning = off",
                           "default_transaction_isolation = '" + std::string(isolation_of(setup)) + "'"}}) {
    server_.run("CREATE EXTENSION pg_stat_statements");
    // Before any acquire: the answer that the suite loses must be that of an acquire.
    test::PostgresConnection owner(server_.url());
    for (const std::string& statement : postgres::creation("dlock", postgres::Durability::sync, true)) {
      owner.run(statement);
    }
    for (const std::string& statement : postgres::recording("dlock")) owner.run(statement);
    if (setup == Setup::pooled) pooler_.emplace(server_, test::PgBouncerConfig{.pool_size = 4});
    if (setup == Setup::session_pooled) {
      std::vector<std::string> roles;
      for (std::size_t i = 0; i < most_mortal_users; ++i) roles.push_back(DatabaseFixture::mortal_user(i));
      // By default it would not try a restarted server again for 15 s.
      pooler_.emplace(server_, test::PgBouncerConfig{.pool_mode = "session",
                                                     .pool_size = 700,
                                                     .roles = std::move(roles),
                                                     .lines = {"server_login_retry = 1"}});
    }
  }

  // The port for clients.
  [[nodiscard]] std::uint16_t port() const noexcept { return pooler_ ? pooler_->port() : server_.port(); }
  [[nodiscard]] PostgresServer& server() noexcept { return server_; }
  // Removes all locks, and all records of them.
  void empty() {
    std::string tables;
    for (const postgres::TableDefinition& table : postgres::layout()) {
      if (table.locks) tables.append(tables.empty() ? "dlock." : ", dlock.").append(table.name);
    }
    server_.run("TRUNCATE " + tables);
  }
  // The number of clients' statements that were carried out.
  [[nodiscard]] std::uint64_t statements() {
    return std::stoull(server_.value(std::string("SELECT coalesce(sum(calls), 0) FROM pg_stat_statements") +
                                     " WHERE userid = '" + PostgresServer::user + "'::regrole"));
  }

 private:
  PostgresServer server_;
  std::optional<test::PgBouncer> pooler_;
};

std::string parameters_of(Setup setup, Strategy strategy) {
  std::string text = "strategy=" + std::string(postgres::to_string(strategy));
  if (setup == Setup::pooled) text += "&pooler=transaction";
  if (setup == Setup::session_pooled) text += "&pooler=session";
  return text;
}

class PostgresFixture final : public DatabaseFixture {
 public:
  // The service is emptied for each fixture.
  PostgresFixture(Setup setup, Strategy strategy)
      : DatabaseFixture(PostgresService::of(setup).port(), parameters_of(setup, strategy), lives_in_sessions(strategy)),
        strategy_(strategy),
        service_(PostgresService::of(setup)) {
    service_.empty();
  }

  void kill_hold(LockKind kind, const std::string& name) override {
    service_.server().run(PostgresLock(strategy_, name, kind).take_away());
  }
  void lose_next_answer() override {
    proxy_.lose_reply_to("dlock-conformance/");  // the prefix of all locks' names in the suite
  }
  [[nodiscard]] std::size_t residue(LockKind kind, const std::string& name) override {
    return std::stoul(service_.server().value(PostgresLock(strategy_, name, kind).residue()));
  }
  [[nodiscard]] std::uint64_t requests() override { return service_.statements(); }
  void restart() override {
    service_.server().stop();
    service_.server().start();
  }

 private:
  [[nodiscard]] std::string url_at(std::uint16_t port, const std::string& parameters) const override {
    return service_.server().url_at(port, parameters);
  }
  void create_user(const std::string& name) override {
    PostgresServer& server = service_.server();
    server.run("DROP ROLE IF EXISTS " + name);
    server.run("CREATE ROLE " + name + " LOGIN IN ROLE " + PostgresServer::user + " PASSWORD '" + name + "'");
    server.run("ALTER ROLE " + name + " SET role = " + PostgresServer::user);
  }
  void end_sessions_of(const std::string& user) override {
    service_.server().run("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = '" + user +
                          "'");
  }

  const Strategy strategy_;
  PostgresService& service_;
};

std::vector<LockKind> kinds_of(Strategy strategy) {
  if (strategy == Strategy::for_update) return {LockKind::lock};
  if (strategy == Strategy::advisory) return {LockKind::lock, LockKind::read_write, LockKind::election};
  if (strategy != Strategy::table) return {LockKind::lock, LockKind::election};
  return {LockKind::lock, LockKind::read_write, LockKind::semaphore, LockKind::election};
}

}  // namespace
}  // namespace dlock::conformance

int main(int argc, char** argv) {
  using namespace dlock::conformance;
  using dlock::postgres::Strategy;
  const auto add = [](const std::string& name, Setup setup, Strategy strategy) {
    add_subject({.name = "postgres_" + name,
                 .make = [=] { return std::make_unique<PostgresFixture>(setup, strategy); },
                 .client_tests = false,
                 .kinds = kinds_of(strategy),
                 .untested = untested_of_server()});
  };
  add("table", Setup::direct, Strategy::table);
  add("optimistic", Setup::direct, Strategy::optimistic);
  add("for_update", Setup::direct, Strategy::for_update);
  add("advisory", Setup::direct, Strategy::advisory);
  add("pooled", Setup::pooled, Strategy::table);
  add("behind_pooler_optimistic", Setup::pooled, Strategy::optimistic);
  add("behind_pooler_for_update", Setup::session_pooled, Strategy::for_update);
  add("behind_pooler_advisory", Setup::session_pooled, Strategy::advisory);
  return run(argc, argv);
}
