// A blocking connection to a PostgreSQL server, as a program would have it that uses libpq by itself.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "torture/rig/url_text.hpp"

struct pg_conn;
struct pg_result;

namespace dlock::bench {

struct ClearPostgresResult {
  void operator()(pg_result* result) const noexcept;
};
using PostgresResult = std::unique_ptr<pg_result, ClearPostgresResult>;

class PostgresConnection {
 public:
  // Of a postgresql:// URL of dlock's. Throws std::runtime_error, as all of them do when the connection breaks, or for
  // an error of the server's.
  explicit PostgresConnection(const rig::UrlText& url);

  [[nodiscard]] pg_conn* get() const noexcept { return connection_.get(); }
  void run(const std::string& sql) const;
  // The first column of the first row; empty for NULL, and where there is no row.
  [[nodiscard]] std::string value(const std::string& sql) const;

  void prepare(const char* name, const std::string& sql) const;
  [[nodiscard]] PostgresResult call(const char* name, const std::vector<const char*>& params) const;

  // In pipeline mode, the halves of a call.
  void enter_pipeline() const;
  void send(const char* name, const std::vector<const char*>& params) const;
  void sync() const;
  // The answer to the next statement or sync.
  [[nodiscard]] PostgresResult receive() const;

 private:
  struct Finish {
    void operator()(pg_conn* connection) const noexcept;
  };
  // Throws unless it is a good one.
  void check(const pg_result* result) const;
  void require(bool sent) const;

  std::unique_ptr<pg_conn, Finish> connection_;
};

// Whether the URL asks for that.
[[nodiscard]] bool waits_for_the_disk(const rig::UrlText& url);
// A connection whose commits wait for the disk, or do not, as those of dlock's clients.
[[nodiscard]] PostgresConnection connect_durably(const rig::UrlText& url);

}  // namespace dlock::bench
