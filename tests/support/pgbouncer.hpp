// pgbouncer in front of a test's PostgreSQL server, on its own port.
//
//   PgBouncer pooler(server);                    // hands out server connections by the transaction
//   Client client = connect(server.url_at(pooler.port()));
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/support/postgres_server.hpp"

namespace dlock::test {

struct PgBouncerConfig {
  std::string pool_mode = "transaction";
  int pool_size = 2;                    // connections to the server
  std::vector<std::string> roles = {};  // additional roles that may connect, each with its name as its password
  std::vector<std::string> lines = {};  // additional lines for the configuration file
};

class PgBouncer final : public Server {
 public:
  // The PostgreSQL server has no TLS.
  explicit PgBouncer(const PostgresServer& server, PgBouncerConfig config = {})
      : Server("pgbouncer"), server_(server), config_(std::move(config)) {
    start_on_free_ports();
  }
  [[nodiscard]] bool serves() const override { return has_printed("process up: "); }

 private:
  [[nodiscard]] std::vector<std::string> configure() override;

  const PostgresServer& server_;
  PgBouncerConfig config_;
};

}  // namespace dlock::test
