// pgbouncer in front of a test's PostgreSQL server, on a port of its own.
//
//   PgBouncer pooler(server);                    // hands out server connections by the transaction
//   Client client = connect(server.url_at(pooler.port()));
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/postgres_server.hpp"
#include "torture/rig/child_process.hpp"
#include "torture/rig/scratch_directory.hpp"

namespace dlock::test {

struct PgBouncerConfig {
  std::string pool_mode = "transaction";
  int pool_size = 2;                    // connections to the server
  std::vector<std::string> roles = {};  // more of them that may come, each with its name as its password
  std::vector<std::string> lines = {};  // more lines for the configuration file
};

class PgBouncer {
 public:
  // Throws std::runtime_error with what it printed if it does not come up. The server has no TLS.
  explicit PgBouncer(const PostgresServer& server, PgBouncerConfig config = {});
  PgBouncer(const PgBouncer&) = delete;
  PgBouncer& operator=(const PgBouncer&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] const rig::ChildProcess& process() const { return *process_; }

 private:
  void write_configuration(const PostgresServer& server) const;

  PgBouncerConfig config_;
  rig::ScratchDirectory directory_;
  std::uint16_t port_ = 0;
  std::unique_ptr<rig::ChildProcess> process_;
};

}  // namespace dlock::test
