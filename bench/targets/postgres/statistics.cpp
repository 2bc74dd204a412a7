#include "bench/targets/postgres/statistics.hpp"

#include <exception>
#include <stdexcept>

namespace dlock::bench {

PostgresStatistics::PostgresStatistics(const rig::UrlText& url) : connection_(url) {
  extension_schema_ = connection_.value(
      "SELECT quote_ident(n.nspname) FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace "
      "WHERE e.extname = 'pg_stat_statements'");
  try {
    if (!extension_schema_.empty()) (void)connection_.value(count_of_statements());
  } catch (const std::exception&) {
    extension_schema_.clear();  // it is not preloaded
  }
}

std::string PostgresStatistics::count_of_statements() const {
  // The question itself has this name in it.
  return "SELECT coalesce(sum(calls), 0) FROM " + extension_schema_ +
         ".pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) "
         "AND coalesce(query, '') NOT LIKE '%pg_stat_%'";
}

std::optional<double> PostgresStatistics::requests() {
  if (extension_schema_.empty()) return std::nullopt;
  return std::stod(connection_.value(count_of_statements()));
}

}  // namespace dlock::bench
