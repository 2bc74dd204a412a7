// A MariaDB server for a test: on a free port of 127.0.0.1, in a scratch directory, removed with the object.
//
//   MysqlServer server;
//   Client client = connect(server.url("strategy=named"));
//   EXPECT_EQ(server.value("SELECT COUNT(*) FROM dlock.lease"), "1");
//   server.kill();
//   server.start();                              // same port, same data
//
// It has an empty database "locks" and a user "locker" with a password, with all rights to the databases "locks" and
// "dlock" only; the user "root" can log in by the Unix socket only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/server.hpp"

struct st_mysql;

namespace dlock::test {

struct MysqlConfig {
  bool tls = false;                                           // the port accepts TLS only
  std::string tls_names = ThrowawayCertificate::usual_names;  // the names in its certificate
  bool plain_too = false;                                     // with TLS or without
  std::vector<std::string> options = {};                      // additional options of mariadbd: "--read-only=1"
};

class MysqlServer : public UnprivilegedServer {
 public:
  static constexpr const char* database = "locks";
  static constexpr const char* user = "locker";
  static constexpr const char* password = "locker-secret";

  explicit MysqlServer(MysqlConfig config = {});

  [[nodiscard]] bool serves() const override;
  [[nodiscard]] std::string url_of(const std::string& addresses, const std::string& parameters) const override;

  // As root, on a separate connection, which is kept. Throw std::runtime_error for an error.
  void run(const std::string& sql) { (void)value(sql); }
  // The first column of the first row; empty for NULL, or without a row.
  std::string value(const std::string& sql);
  // Waits until the server finds the condition true. Throws std::runtime_error for an error and a hang.
  void await(const std::string& condition);
  // Ends all sessions of the user "locker".
  void kill_clients() { run("KILL USER " + std::string(user)); }

 protected:
  // With a copy of another server's data directory; not started.
  MysqlServer(MysqlConfig config, const std::string& data);

  // On its own connection; empty if value() is, for an error, and if the server does not answer within a second.
  [[nodiscard]] std::string answer(const std::string& sql) const;
  [[nodiscard]] std::vector<std::string> configure() override;

 private:
  struct Close {
    void operator()(st_mysql* connection) const noexcept;
  };
  using Connection = std::unique_ptr<st_mysql, Close>;

  // Empty: it does not answer. answer_limit: of each query, in seconds; 0: none.
  [[nodiscard]] Connection connect_as_root(unsigned answer_limit = 0) const;
  void disconnect() override { admin_.reset(); }

  const MysqlConfig config_;
  Connection admin_;
};

}  // namespace dlock::test
