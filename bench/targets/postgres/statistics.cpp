#include "bench/targets/postgres/statistics.hpp"

#include <chrono>
#include <exception>
#include <stdexcept>
#include <thread>

namespace dlock::bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int first_that_reports_when_idle = 150'000;
constexpr std::chrono::seconds longest_wait_for_reports{12};
constexpr std::chrono::milliseconds between_looks{100};

constexpr const char* not_reported_yet =
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
    "AND backend_type = 'client backend' "
    "AND NOT (state = 'idle' AND state_change < clock_timestamp() - interval '10.5 seconds')";

}  // namespace

PostgresStatistics::PostgresStatistics(const UrlText& url) : connection_(url) {
  extension_schema_ =
      ask("SELECT quote_ident(n.nspname) FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace "
          "WHERE e.extname = 'pg_stat_statements'");
  try {
    if (!extension_schema_.empty()) (void)ask(count_of_statements());
  } catch (const std::exception&) {
    extension_schema_.clear();  // it is not preloaded
  }
  reports_ = std::stoi(ask("SHOW server_version_num")) >= first_that_reports_when_idle;
}

const char* PostgresStatistics::counted_by() const noexcept {
  if (!extension_schema_.empty()) return "pg_stat_statements";
  return reports_ ? "transactions" : "";
}

std::string PostgresStatistics::ask(const std::string& sql) {
  ++own_transactions_;
  return connection_.value(sql);
}

std::string PostgresStatistics::count_of_statements() const {
  // The question itself has this name in it.
  return "SELECT coalesce(sum(calls), 0) FROM " + extension_schema_ +
         ".pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) "
         "AND coalesce(query, '') NOT LIKE '%pg_stat_%'";
}

std::optional<double> PostgresStatistics::requests() {
  if (!extension_schema_.empty()) return std::stod(ask(count_of_statements()));
  if (!reports_) return std::nullopt;
  reports_ = wait_for_reports();
  if (!reports_) return std::nullopt;
  (void)ask("SELECT pg_stat_force_next_flush()");
  const double own = own_transactions_;
  return std::stod(ask("SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()")) -
         own;
}

bool PostgresStatistics::wait_for_reports() {
  const auto give_up = Clock::now() + longest_wait_for_reports;
  while (ask(not_reported_yet) != "0") {
    if (Clock::now() > give_up) return false;
    std::this_thread::sleep_for(between_looks);
  }
  return true;
}

}  // namespace dlock::bench
