// How many statements a PostgreSQL database has carried out.
#pragma once

#include <optional>
#include <string>

#include "bench/targets/postgres/connection.hpp"
#include "torture/rig/url_text.hpp"

namespace dlock::bench {

// On a connection of its own, whose statements are not counted.
class PostgresStatistics {
 public:
  // Throws std::runtime_error.
  explicit PostgresStatistics(const rig::UrlText& url);

  // Since some moment before; it leaves out those that fail, and BEGIN and COMMIT where they are prepared. nullopt
  // without the extension pg_stat_statements: sessions report their transactions up to ten seconds later, which is
  // longer than most of what is measured. Throws std::runtime_error.
  [[nodiscard]] std::optional<double> requests();

 private:
  [[nodiscard]] std::string count_of_statements() const;

  PostgresConnection connection_;
  std::string extension_schema_;  // quoted; empty: the extension is not there
};

}  // namespace dlock::bench
