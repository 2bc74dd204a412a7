#include "postgres/postgres_service.hpp"

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "backends/postgres/schema/layout.hpp"

namespace dlock::conformance {

namespace {

using test::PostgresConnection;
using test::PostgresServer;

// The statistics of the server itself arrive up to a second late. Those of this module, which comes with it, count a
// statement as it ends, and each once, however often it was sent before.
const std::string counting = "shared_preload_libraries = 'pg_stat_statements'";

constexpr std::size_t most_mortal_roles = 20;

}  // namespace

std::string mortal_role(std::size_t number) {
  return "mortal_" + std::to_string(number);
}

PostgresService& PostgresService::of(PostgresSetup setup) {
  static std::array<std::unique_ptr<PostgresService>, 3> services;
  auto& service = services.at(static_cast<std::size_t>(setup));
  if (!service) service = std::make_unique<PostgresService>(setup);
  return *service;
}

PostgresService::PostgresService(PostgresSetup setup)
    : server_({.max_connections = 800, .lines = {counting, "pg_stat_statements.track_planning = off"}}) {
  server_.run("CREATE EXTENSION pg_stat_statements");
  // Before anybody asks for a lock: the answer that the suite has lost is to be that to an acquire.
  PostgresConnection owner(server_.url());
  for (const std::string& statement : postgres::creation("dlock", postgres::Durability::sync, true)) {
    owner.run(statement);
  }
  for (const std::string& statement : postgres::recording("dlock")) owner.run(statement);
  if (setup == PostgresSetup::pooled) pooler_.emplace(server_, test::PgBouncerConfig{.pool_size = 4});
  if (setup == PostgresSetup::session_pooled) {
    std::vector<std::string> roles;
    for (std::size_t i = 0; i < most_mortal_roles; ++i) roles.push_back(mortal_role(i));
    // By itself it would not try a server again for 15 s that was being restarted.
    pooler_.emplace(
        server_,
        test::PgBouncerConfig{
            .pool_mode = "session", .pool_size = 700, .roles = std::move(roles), .lines = {"server_login_retry = 1"}});
  }
}

void PostgresService::empty() {
  std::string tables;
  for (const postgres::TableDefinition& table : postgres::layout()) {
    if (table.locks) tables.append(tables.empty() ? "dlock." : ", dlock.").append(table.name);
  }
  server_.run("TRUNCATE " + tables);
}

std::uint64_t PostgresService::statements() {
  return std::stoull(server_.value(std::string("SELECT coalesce(sum(calls), 0) FROM pg_stat_statements") +
                                   " WHERE userid = '" + PostgresServer::user + "'::regrole"));
}

void PostgresService::restart() {
  server_.stop();
  server_.start();
}

}  // namespace dlock::conformance
