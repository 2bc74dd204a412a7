#include "bench/targets/postgres/target.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <exception>
#include <optional>

#include "backends/postgres/schema/layout.hpp"
#include "backends/postgres/sql/identifier.hpp"
#include "bench/targets/own_name.hpp"
#include "bench/targets/postgres/by_hand.hpp"
#include "bench/targets/postgres/connection.hpp"
#include "bench/targets/postgres/statistics.hpp"

namespace dlock::bench {

namespace {

// What a client works with besides the connections of locks and waiters.
constexpr std::size_t working_connections = 6;
constexpr std::size_t most_connections_of_a_client = 1000;
// Of the connections that the server has left, those for the clients' own work and for other users.
constexpr std::size_t spare_connections = 40;

constexpr const char* connections_left =
    "SELECT greatest(0, least(current_setting('max_connections')::bigint"
    " - current_setting('superuser_reserved_connections')::bigint"
    " - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),"
    " (SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database()),"
    " (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user)))";

class PostgresTarget final : public ServiceTarget {
 public:
  PostgresTarget(const rig::UrlText& given, const std::string& strategy);

  void prepare() override;
  [[nodiscard]] std::size_t most_locks() const override { return most_locks_; }
  [[nodiscard]] std::size_t most_floors() const override { return most_floors_; }
  [[nodiscard]] bool has_floor() const override { return has_by_hand_; }
  [[nodiscard]] std::unique_ptr<Floor> floor_at(const rig::UrlText& url, const std::string& name) override;
  [[nodiscard]] std::optional<Operations> operations() override;
  void clean_up() override;

 private:
  [[nodiscard]] rig::UrlText url_for(std::size_t locks) const override;
  // A lock, or at least waiting for it, takes a connection.
  [[nodiscard]] bool takes_connections() const {
    return info().strategy == "for-update" || info().strategy == "advisory";
  }
  void limit_connections(std::size_t left);

  bool own_schema_;
  std::string schema_;
  ByHandTables by_hand_;
  bool has_by_hand_ = false;  // its tables are there
  std::size_t most_locks_ = 0;
  std::size_t most_floors_ = 0;
  std::optional<PostgresStatistics> statistics_;
};

PostgresTarget::PostgresTarget(const rig::UrlText& given, const std::string& strategy)
    : ServiceTarget(given, "postgresql", strategy) {
  const auto schema = given.parameter("schema");
  own_schema_ = !schema;
  schema_ = schema.value_or(own_name('_'));
  by_hand_ = by_hand_tables(schema_, own_name('_'));
}

rig::UrlText PostgresTarget::url_for(std::size_t locks) const {
  rig::UrlText url = given();
  url.set("strategy", info().strategy);
  url.set("schema", schema_);
  if (takes_connections() && !given().parameter("max_connections")) {
    url.set("max_connections", std::to_string(std::min(locks + working_connections, most_connections_of_a_client)));
  }
  return url;
}

void PostgresTarget::prepare() {
  (void)dlock::connect(url(1)).initialize();
  try {
    const PostgresConnection connection(given());
    for (const char* setting : {"server_version", "fsync", "synchronous_commit", "full_page_writes"}) {
      add_setting(setting, connection.value(std::string("SHOW ") + setting));
    }
    limit_connections(std::stoul(connection.value(connections_left)));
    statistics_.emplace(given());
  } catch (const std::exception&) {
    // A server that dlock reaches and libpq by itself does not: then fewer facts are known.
  }
  try {
    make(by_hand_, PostgresConnection(given()));
    has_by_hand_ = true;
  } catch (const std::exception&) {
    // No right to make tables: there is no floor.
  }
}

std::unique_ptr<Floor> PostgresTarget::floor_at(const rig::UrlText& url, const std::string& name) {
  return make_postgres_by_hand(url, info().strategy, by_hand_, name);
}

void PostgresTarget::limit_connections(std::size_t left) {
  left = std::max(left, spare_connections + 2) - spare_connections;
  // Those of floors and those of dlock are there at the same time.
  most_floors_ = takes_connections() ? left / 2 : left;
  if (!takes_connections()) return;
  // What a client has in advisory locks and what it may have in connections is a thousand together.
  most_locks_ = std::min(left / 2, (most_connections_of_a_client - working_connections) / 2);
  if (const auto given_limit = given().parameter("max_connections")) {
    most_locks_ = std::min<std::size_t>(most_locks_, std::stoul(*given_limit));
  }
}

std::optional<Operations> PostgresTarget::operations() {
  if (!statistics_) return std::nullopt;
  try {
    const auto requests = statistics_->requests();
    if (!requests) return std::nullopt;
    return Operations{.carried_out = *requests, .wake_ups = {}};
  } catch (const std::exception&) {
    statistics_.reset();
    return std::nullopt;
  }
}

// Where the user has a schema, what is in it need not be ours, except the names that scenarios lock.
void PostgresTarget::clean_up() {
  const PostgresConnection connection(given());
  connection.run("SET lock_timeout = '10s'");
  if (own_schema_) {
    connection.run("DROP SCHEMA IF EXISTS " + postgres::quote_identifier(schema_) + " CASCADE");
    return;
  }
  connection.prepare("exists", "SELECT 1 WHERE to_regclass($1) IS NOT NULL");
  for (const postgres::TableDefinition& each : postgres::layout()) {
    const std::string table = postgres::qualified(schema_, each.name);
    // What an older dlock has made lacks some.
    if (!each.locks || PQntuples(connection.call("exists", {table.c_str()}).get()) == 0) continue;
    connection.run("DELETE FROM " + table + " WHERE name LIKE '" + lock_names + "%'");
  }
  if (has_by_hand_) drop(by_hand_, connection);
}

}  // namespace

const std::vector<std::string>& postgres_strategies() {
  static const std::vector<std::string> all = {"table", "optimistic", "for-update", "advisory"};
  return all;
}

std::unique_ptr<ServiceTarget> make_postgres_target(const rig::UrlText& url, const std::string& strategy) {
  return std::make_unique<PostgresTarget>(url, strategy);
}

}  // namespace dlock::bench
