// The meaning of the server's errors for a lock. Servers translate the message beside a number, but never the number.
// No I/O.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <dlock/error.hpp>

#include "backends/common/sql/dialect.hpp"
#include "backends/mysql/options.hpp"

namespace dlock::mysql {

// Of an error of the server (1000 and up) or of the client library (2000 to 2999).
[[nodiscard]] sql::Meaning meaning_of(unsigned error) noexcept;
// The server ends the session after this error.
[[nodiscard]] bool ends_session(unsigned error) noexcept;
// The client library's own error: the connection is of no further use.
[[nodiscard]] bool is_of_library(unsigned error) noexcept;

// "h:3306/db: <text> (error 1205)", with the code that the number means.
[[nodiscard]] Failure failure_of(const std::string& endpoint, unsigned error, std::string_view text);
// The same for an attempt to connect: errc::unavailable if another attempt may succeed.
[[nodiscard]] Failure connect_failure(const std::string& endpoint, unsigned error, std::string_view text);

class MysqlDialect final : public sql::Dialect {
 public:
  // The options outlive it.
  explicit MysqlDialect(const Options& options) : options_(options) {}

  [[nodiscard]] const char* service() const noexcept override { return "MySQL"; }
  [[nodiscard]] const char* heartbeat() const noexcept override { return "DO 0"; }
  [[nodiscard]] bool is_end_of_patience(const sql::Outcome& outcome) const noexcept override;
  [[nodiscard]] bool is_about_a_full_server(const Failure& why) const noexcept override;
  [[nodiscard]] std::optional<Failure> unfit_for_locks(const sql::ServerInfo& server) const override;

 private:
  [[nodiscard]] std::optional<sql::Meaning> find(std::string_view server_code) const noexcept override;
  [[nodiscard]] std::string advice(std::string_view server_code) const override;

  const Options& options_;
};

}  // namespace dlock::mysql
