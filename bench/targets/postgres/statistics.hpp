// How many statements a PostgreSQL database has carried out.
#pragma once

#include <optional>
#include <string>

#include "bench/targets/postgres/connection.hpp"
#include "bench/targets/url_text.hpp"

namespace dlock::bench {

// On a connection of its own, whose statements are not counted.
class PostgresStatistics {
 public:
  // Throws std::runtime_error.
  explicit PostgresStatistics(const UrlText& url);

  // "pg_stat_statements", or "transactions"; empty: nothing is counted that could be relied on.
  [[nodiscard]] const char* counted_by() const noexcept;
  // Since some moment before. By pg_stat_statements it leaves out those that fail, and BEGIN and COMMIT where they are
  // prepared. Otherwise it is the number of transactions, which sessions report when they have been idle for ten
  // seconds, or end: so this blocks until all others have. nullopt when they do not, and from then on.
  // Throws std::runtime_error.
  [[nodiscard]] std::optional<double> requests();

 private:
  [[nodiscard]] std::string ask(const std::string& sql);
  [[nodiscard]] std::string count_of_statements() const;
  [[nodiscard]] bool wait_for_reports();

  PostgresConnection connection_;
  std::string extension_schema_;  // quoted; empty: the extension is not there
  bool reports_ = false;          // sessions report their transactions while they are idle
  double own_transactions_ = 0;
};

}  // namespace dlock::bench
