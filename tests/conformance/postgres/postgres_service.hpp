// The server behind a subject, the pooler in front of it where there is one, and the superuser's view of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "tests/support/pgbouncer.hpp"
#include "tests/support/postgres_server.hpp"

namespace dlock::conformance {

enum class PostgresSetup {
  direct,
  pooled,          // through pgbouncer, which hands out server connections by the transaction
  session_pooled,  // which keeps one for each client
};

// Those who are going to die, numbered from 0 on.
[[nodiscard]] std::string mortal_role(std::size_t number);

class PostgresService {
 public:
  // Started when it is needed first, so that helper processes, which make no fixtures, have no servers.
  [[nodiscard]] static PostgresService& of(PostgresSetup setup);

  explicit PostgresService(PostgresSetup setup);

  // Where clients are to connect to.
  [[nodiscard]] std::uint16_t port() const noexcept { return pooler_ ? pooler_->port() : server_.port(); }
  [[nodiscard]] test::PostgresServer& server() noexcept { return server_; }
  // No locks, and none remembered.
  void empty();
  // Statements of clients that were carried out so far.
  [[nodiscard]] std::uint64_t statements();
  void restart();

 private:
  test::PostgresServer server_;
  std::optional<test::PgBouncer> pooler_;
};

}  // namespace dlock::conformance
