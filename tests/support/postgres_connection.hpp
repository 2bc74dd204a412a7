// A plain, blocking connection to a PostgreSQL server, by which tests inspect the server, and simulate lockers in other
// languages.
//
//   PostgresConnection sql(server.admin_conninfo());
//   EXPECT_EQ(sql.value("SELECT count(*) FROM dlock.lease"), "1");
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

struct pg_conn;

namespace dlock::test {

struct PostgresReply {
  std::vector<std::vector<std::optional<std::string>>> rows = {};
  std::string sqlstate = {};  // of an error; empty: there was none
  std::string error = {};

  [[nodiscard]] bool is_error() const noexcept { return !sqlstate.empty(); }
};

class PostgresConnection {
 public:
  // conninfo: for libpq. Throws std::runtime_error if it cannot connect.
  explicit PostgresConnection(const std::string& conninfo);

  // May have several statements; returns the answer to the last one. Throws std::runtime_error when the connection
  // breaks or the hang guard ends the wait; an error of the server is returned.
  PostgresReply query(const std::string& sql);
  // The two halves of query(), for statements that answer late or never.
  void send(const std::string& sql);
  [[nodiscard]] PostgresReply receive();

  // Throws std::runtime_error even for an error of the server.
  void run(const std::string& sql);
  // The first column of the first row; empty for NULL. Throws if there is none.
  [[nodiscard]] std::string value(const std::string& sql);

  [[nodiscard]] int backend_pid() const noexcept;
  [[nodiscard]] pg_conn* handle() const noexcept { return connection_.get(); }

 private:
  struct Finish {
    void operator()(pg_conn* connection) const noexcept;
  };
  void await_input() const;

  std::unique_ptr<pg_conn, Finish> connection_;
};

}  // namespace dlock::test
