// A PostgreSQL server for a test: on a free port of 127.0.0.1, in a scratch directory, removed with the object.
//
//   PostgresServer server;
//   Client client = connect(server.url("strategy=advisory"));
//   EXPECT_EQ(server.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), "1");
//   server.kill();
//   server.start();                              // same port, same data
//
// It has a database "locks" of the role "locker", which has a password and no other rights; the superuser "postgres"
// can log in by the Unix socket only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/postgres_connection.hpp"
#include "tests/support/server.hpp"

namespace dlock::test {

class PostgresServer;

struct PostgresConfig {
  bool tls = false;                                           // the port accepts TLS only
  std::string tls_names = ThrowawayCertificate::usual_names;  // the names in its certificate
  bool plain_too = false;                                     // with TLS or without
  int max_connections = 100;                                  // of which three are the superuser's
  const PostgresServer* primary = nullptr;  // this is its streaming standby, with the same roles and databases
  std::vector<std::string> lines = {};      // additional lines for the configuration file: "idle_session_timeout = 1s"
};

class PostgresServer final : public UnprivilegedServer {
 public:
  static constexpr const char* database = "locks";
  static constexpr const char* user = "locker";
  static constexpr const char* password = "locker-secret";

  explicit PostgresServer(PostgresConfig config = {});
  ~PostgresServer() override;

  [[nodiscard]] bool serves() const override;
  // The directory of the Unix socket, for the superuser.
  [[nodiscard]] const std::string& socket_directory() const noexcept { return directory(); }

  [[nodiscard]] std::string url_of(const std::string& addresses, const std::string& parameters) const override;
  // For the superuser, for libpq, without TLS or any proxy.
  [[nodiscard]] std::string admin_conninfo(const std::string& dbname = database) const;

  // Kills all of its processes.
  void kill() override;
  void freeze() const override;
  void thaw() const override;

  // As the superuser in the database "locks", on a separate connection, which is kept. Throw std::runtime_error for an
  // error.
  void run(const std::string& sql) { admin().run(sql); }
  [[nodiscard]] std::string value(const std::string& sql) { return admin().value(sql); }
  // Waits until the server finds the condition true. Throws std::runtime_error for an error and a hang.
  void await(const std::string& condition);
  // Ends all sessions of the role "locker"; returns their number.
  int terminate_clients();

  // Of a primary: waits until its one standby has replayed all that was written.
  void await_standby();
  // Of a standby: makes it a primary.
  void promote();

 private:
  [[nodiscard]] PostgresConnection& admin();
  void copy_primary() const;
  [[nodiscard]] std::vector<std::string> configure() override;
  void disconnect() override { admin_.reset(); }
  [[nodiscard]] std::string quick_exit() const;

  PostgresConfig config_;
  std::optional<PostgresConnection> admin_;
};

}  // namespace dlock::test
