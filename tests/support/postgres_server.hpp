// A PostgreSQL server of a test's own: on a free port of 127.0.0.1, in a scratch directory, gone with the object.
//
//   PostgresServer server;
//   Client client = connect(server.url("strategy=advisory"));
//   EXPECT_EQ(server.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), "1");
//   server.kill();
//   server.start();                              // same port, same data
//
// It has a database "locks" that belongs to the role "locker", which has a password and no other rights; the superuser
// "postgres" comes in by the Unix socket alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/postgres_connection.hpp"
#include "tests/support/throwaway_certificate.hpp"
#include "torture/rig/child_process.hpp"
#include "torture/rig/scratch_directory.hpp"

namespace dlock::test {

class PostgresServer;

struct PostgresConfig {
  bool tls = false;                                           // and nothing but TLS on the port
  std::string tls_names = ThrowawayCertificate::usual_names;  // whom its certificate is for
  bool plain_too = false;                                     // with TLS or without
  int max_connections = 100;                                  // of which three are the superuser's
  const PostgresServer* primary = nullptr;  // whose streaming standby it is; with the same roles and databases
  std::vector<std::string> lines = {};      // more lines for the configuration file: "idle_session_timeout = 1s"
};

class PostgresServer {
 public:
  static constexpr const char* database = "locks";
  static constexpr const char* user = "locker";
  static constexpr const char* password = "locker-secret";

  // Starts it and waits until it is ready. Throws std::runtime_error with what it printed if it does not come up.
  explicit PostgresServer(PostgresConfig config = {});
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;
  ~PostgresServer();

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] const ThrowawayCertificate& certificate() const { return *certificate_; }
  // The server uses the new one when it is started again.
  void renew_certificate() const {
    certificate_->renew();
    copy_certificate();
  }
  // The directory of the Unix socket, for the superuser.
  [[nodiscard]] const std::string& socket_directory() const noexcept { return directory_.path(); }

  // As a client reaches it, or a proxy in front of it. Parameters such as "strategy=advisory" may follow.
  [[nodiscard]] std::string url(const std::string& parameters = {}) const { return url_at(port_, parameters); }
  [[nodiscard]] std::string url_at(std::uint16_t port, const std::string& parameters = {}) const;
  [[nodiscard]] std::string url_as(const std::string& role, const std::string& secret,
                                   const std::string& parameters = {}) const;
  // Of the superuser, as libpq takes it, past TLS and past any proxy.
  [[nodiscard]] std::string admin_conninfo(const std::string& dbname = database) const;

  void stop();  // a clean shutdown, which ends all sessions
  void kill();  // all of its processes, by SIGKILL
  void start();
  void freeze() const;  // all of its processes, by SIGSTOP
  void thaw() const;
  [[nodiscard]] const rig::ChildProcess& process() const { return *process_; }

  // As the superuser in the database "locks", on a connection that is kept for this. They throw std::runtime_error for
  // an error.
  void run(const std::string& sql) { admin().run(sql); }
  [[nodiscard]] std::string value(const std::string& sql) { return admin().value(sql); }
  // Until it is so in the server's view. Throws std::runtime_error for an error, and when the hang guard runs out.
  void await(const std::string& condition);
  // Ends all sessions of the role "locker"; answers how many there were.
  int terminate_clients();

  // Of a primary: waits until its one standby has replayed all that was written.
  void await_standby();
  // Of a standby: it becomes a primary.
  void promote();

 private:
  [[nodiscard]] PostgresConnection& admin();
  [[nodiscard]] std::string data() const { return directory_.path() + "/data"; }
  void copy_primary() const;
  void copy_certificate() const;
  void write_configuration() const;
  [[nodiscard]] std::string quick_exit() const;
  void write(const std::string& path, const std::string& text) const;
  [[nodiscard]] bool try_to_start();

  PostgresConfig config_;
  rig::ScratchDirectory directory_;
  std::optional<ThrowawayCertificate> certificate_;
  std::uint16_t port_ = 0;
  std::unique_ptr<rig::ChildProcess> process_;
  std::optional<PostgresConnection> admin_;
};

}  // namespace dlock::test
