// postgresql:// and postgres://
#include <libpq-fe.h>

#include <algorithm>
#include <array>
#include <exception>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bench/targets/service_target.hpp"

namespace dlock::bench {

namespace {

// dlock's URL of a database for libpq: without the parameters that libpq does not know, and with dlock's defaults where
// libpq's differ.
std::string libpq_url(rig::UrlText url) {
  if (const auto password = url.password()) url.set("password", *password);  // it may be in a file
  for (const char* ours : {"strategy", "schema", "durability", "key", "pooler", "max_connections", "lease", "label",
                           "response_timeout", "close_timeout", "password_file"}) {
    url.remove(ours);
  }
  url.set("connect_timeout", std::to_string(answer_limit.count()));
  // libpq would use a Unix socket.
  if (url.original().hosts().empty() && !url.parameter("host")) url.set("host", "localhost");
  if (!url.parameter("gssencmode")) url.set("gssencmode", "disable");
  return url.text();
}

// A blocking connection, as in a program that uses libpq directly.
class Connection {
 public:
  struct Clear {
    void operator()(PGresult* result) const noexcept { PQclear(result); }
  };
  using Result = std::unique_ptr<PGresult, Clear>;

  // Like the other functions, throws std::runtime_error if the connection breaks, and for errors of the server.
  explicit Connection(const rig::UrlText& url) : connection_(PQconnectdb(libpq_url(url).c_str())) {
    if (PQstatus(get()) != CONNECTION_OK) fail(PQerrorMessage(get()));
    (void)PQsetNoticeProcessor(
        get(), [](void*, const char*) {}, nullptr);  // returns the previous one
  }

  [[nodiscard]] Result run(const std::string& sql) const { return checked(PQexec(get(), sql.c_str())); }
  // The first column of the first row; empty for NULL, and without a row.
  [[nodiscard]] std::string value(const std::string& sql) const {
    const Result result = run(sql);
    return PQntuples(result.get()) > 0 ? PQgetvalue(result.get(), 0, 0) : "";
  }
  void prepare(const char* name, const std::string& sql) const {
    (void)checked(PQprepare(get(), name, sql.c_str(), 0, nullptr));
  }
  // Runs a prepared statement. Returns whether it changes, or returns, one row.
  [[nodiscard]] bool call(const char* name, const std::vector<const char*>& parameters) const {
    const Result result = checked(PQexecPrepared(get(), name, static_cast<int>(parameters.size()), parameters.data(),
                                                 nullptr, nullptr, /*resultFormat=*/0));
    return std::string_view(PQcmdTuples(result.get())) == "1";
  }

 private:
  struct Finish {
    void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
  };
  [[noreturn]] static void fail(const char* what) { throw std::runtime_error(std::string("PostgreSQL: ") + what); }
  [[nodiscard]] PGconn* get() const noexcept { return connection_.get(); }
  [[nodiscard]] Result checked(PGresult* received) const {
    Result result(received);
    const ExecStatusType status = PQresultStatus(received);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) fail(PQerrorMessage(get()));
    return result;
  }

  std::unique_ptr<PGconn, Finish> connection_;
};

std::string quoted(std::string_view identifier) {
  std::string text = "\"";
  for (const char c : identifier) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + '"';
}

// --- Floors ----------------------------------------------------------------------------------------------------------

// The floors' own tables, quoted.
struct Tables {
  std::string locks;     // one row per held lock
  std::string counters;  // the last token of each name
};

struct Statements {
  std::string once;     // empty: nothing
  std::string acquire;  // changes a row if the lock was free, or fails. $1 name; of a row also $2 owner
  std::string release;  // changes or returns a row if the lock was held. Empty: the end of the transaction releases
};

Statements statements_of(const std::string& strategy, const Tables& tables) {
  if (strategy == "advisory") {
    return {.once = {},
            .acquire = "WITH lock AS (SELECT pg_try_advisory_lock(hashtextextended($1::text, 0)) AS got) INSERT INTO " +
                       tables.counters +
                       " AS counter (name, token) SELECT $1::text, 1 FROM lock WHERE got"
                       " ON CONFLICT (name) DO UPDATE SET token = counter.token + 1 RETURNING token",
            .release = "SELECT 1 WHERE pg_advisory_unlock(hashtextextended($1::text, 0))"};
  }
  if (strategy == "for-update") {
    return {.once = "INSERT INTO " + tables.counters + " VALUES ($1, 0) ON CONFLICT DO NOTHING",
            .acquire = "WITH free AS (SELECT name FROM " + tables.counters +
                       " WHERE name = $1 FOR UPDATE NOWAIT) UPDATE " + tables.counters +
                       " AS counter SET token = counter.token + 1 FROM free WHERE counter.name = free.name"
                       " RETURNING counter.token",
            .release = {}};
  }
  return {.once = {},
          .acquire = "INSERT INTO " + tables.locks + " (name, owner) VALUES ($1, $2) ON CONFLICT DO NOTHING",
          .release = "DELETE FROM " + tables.locks + " WHERE name = $1 AND owner = $2"};
}

// Each statement is a round trip. After a failure the connection is useless.
class PostgresFloor final : public Floor {
 public:
  // Its commits wait for the disk if those of dlock's clients do.
  PostgresFloor(const rig::UrlText& url, const std::string& strategy, const Tables& tables, const std::string& name)
      // Advisory locks do not know tables: the name alone could be another run's.
      : connection_(url),
        name_(strategy == "advisory" ? tables.counters + "/" + name : name),
        by_transaction_(strategy == "for-update") {
    if (url.parameter("durability").value_or("sync") != "sync") (void)connection_.run("SET synchronous_commit = off");
    const Statements statements = statements_of(strategy, tables);
    parameters_ = {name_.c_str()};
    if (!statements.once.empty()) {
      connection_.prepare("once", statements.once);
      (void)connection_.call("once", parameters_);  // another floor may have inserted it
    }
    if (strategy == "table" || strategy == "optimistic") parameters_.push_back(owner_.c_str());
    connection_.prepare("acquire", statements.acquire);
    if (!by_transaction_) connection_.prepare("release", statements.release);
  }

  void acquire() override {
    if (by_transaction_) (void)connection_.run("BEGIN");
    require_free(connection_.call("acquire", parameters_));
    held_ = true;
  }
  void release() override {
    require_held(std::exchange(held_, false));
    if (by_transaction_) {
      (void)connection_.run("COMMIT");
    } else {
      require_held(connection_.call("release", parameters_));
    }
  }

 private:
  Connection connection_;
  std::string name_;
  std::string owner_ = own_name();
  bool by_transaction_;
  std::vector<const char*> parameters_;
  bool held_ = false;
};

// --- The target ------------------------------------------------------------------------------------------------------

// A client's connections besides those of locks and waiters.
constexpr std::size_t working_connections = 6;
constexpr std::size_t most_connections_of_a_client = 1000;
// The number of the server's free connections that are left for the clients' own work and for other users.
constexpr std::size_t spare_connections = 40;

constexpr const char* connections_left =
    "SELECT greatest(0, least(current_setting('max_connections')::bigint"
    " - current_setting('superuser_reserved_connections')::bigint"
    " - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),"
    " (SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database()),"
    " (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user)))";

constexpr const char* schema_of_statistics =
    "SELECT quote_ident(n.nspname) FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace "
    "WHERE e.extname = 'pg_stat_statements'";

// dlock's tables of measured locks; a schema of an older dlock lacks some.
constexpr std::array tables_of_locks = {"lease", "optimistic", "row_lock", "row_token",
                                        "fence", "lease_rw",   "fence_rw", "lease_sem"};

class PostgresTarget final : public ServiceTarget {
 public:
  PostgresTarget(const rig::UrlText& given, const std::string& strategy)
      : ServiceTarget(given, "postgresql", strategy),
        own_schema_(!given.parameter("schema")),
        schema_(given.parameter("schema").value_or(own_name('_'))),
        floors_{.locks = quoted(schema_) + "." + quoted(own_name_ + "_locks"),
                .counters = quoted(schema_) + "." + quoted(own_name_ + "_counters")} {
    set_place("schema", schema_);
  }

  void prepare() override;
  [[nodiscard]] std::size_t most_locks() const override { return most_locks_; }
  [[nodiscard]] std::size_t most_floors() const override { return most_floors_; }
  [[nodiscard]] bool has_floor() const override { return has_floor_; }
  [[nodiscard]] std::unique_ptr<Floor> floor_at(const rig::UrlText& url, const std::string& name) override {
    return std::make_unique<PostgresFloor>(url, info().strategy, floors_, name);
  }
  [[nodiscard]] std::optional<Operations> operations() override;
  void clean_up() override;

 private:
  [[nodiscard]] rig::UrlText url_for(std::size_t locks) const override;
  // Whether a lock, or a waiter, takes a connection.
  [[nodiscard]] bool takes_connections() const {
    return info().strategy == "for-update" || info().strategy == "advisory";
  }
  void examine(const Connection& connection);
  void limit_connections(std::size_t left);

  std::string own_name_ = own_name('_');
  bool own_schema_;
  std::string schema_;
  Tables floors_;
  bool has_floor_ = false;  // its tables exist
  std::size_t most_locks_ = 0;
  std::size_t most_floors_ = 0;
  std::optional<Connection> statistics_;
  std::string count_of_statements_;  // the query; empty: nothing counts them
};

rig::UrlText PostgresTarget::url_for(std::size_t locks) const {
  rig::UrlText url = ServiceTarget::url_for(locks);
  if (takes_connections() && !given().parameter("max_connections")) {
    url.set("max_connections", std::to_string(std::min(locks + working_connections, most_connections_of_a_client)));
  }
  return url;
}

void PostgresTarget::prepare() {
  (void)dlock::connect(url(1)).initialize();
  const bool ends_with_server = takes_connections() || given().parameter("durability") == "unlogged";
  info_.crash = ends_with_server ? loses::everything : loses::unknown;
  info_.failover = ends_with_server ? loses::everything : loses::latest;
  try {
    examine(Connection(given()));
  } catch (const std::exception&) {
    // dlock reaches the server, but libpq alone does not: then fewer facts are known.
  }
  try {
    // One call is one transaction.
    (void)Connection(given()).run("CREATE TABLE " + floors_.locks + " (name text PRIMARY KEY, owner text NOT NULL); " +
                                  "CREATE TABLE " + floors_.counters +
                                  " (name text PRIMARY KEY, token bigint NOT NULL)");
    has_floor_ = true;
  } catch (const std::exception&) {
    // No right to create tables: there is no floor.
  }
}

void PostgresTarget::examine(const Connection& connection) {
  for (const char* setting : {"server_version", "fsync", "synchronous_commit", "full_page_writes"}) {
    add_setting(setting, connection.value(std::string("SHOW ") + setting));
  }
  // dlock commits its own statements synchronously, whatever synchronous_commit is, unless the URL says otherwise.
  const bool waits = given().parameter("durability") != "async" && connection.value("SHOW fsync") == "on";
  if (info_.crash == loses::unknown) info_.crash = waits ? loses::nothing : loses::latest;
  limit_connections(std::stoul(connection.value(connections_left)));
  const std::string schema = connection.value(schema_of_statistics);
  if (schema.empty()) return;  // sessions report their transactions after the end of most measurements
  // The query itself contains "pg_stat_". Failed statements are not counted, nor prepared BEGIN and COMMIT.
  count_of_statements_ = "SELECT coalesce(sum(calls), 0) FROM " + schema +
                         ".pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = "
                         "current_database()) AND coalesce(query, '') NOT LIKE '%pg_stat_%'";
}

void PostgresTarget::limit_connections(std::size_t left) {
  left = std::max(left, spare_connections + 2) - spare_connections;
  // Floors and dlock are connected at the same time.
  most_floors_ = takes_connections() ? left / 2 : left;
  if (!takes_connections()) return;
  // A client has at most a thousand advisory locks and connections together.
  most_locks_ = std::min(left / 2, (most_connections_of_a_client - working_connections) / 2);
  if (const auto given_limit = given().parameter("max_connections")) {
    most_locks_ = std::min<std::size_t>(most_locks_, std::stoul(*given_limit));
  }
}

std::optional<Operations> PostgresTarget::operations() {
  if (count_of_statements_.empty()) return std::nullopt;
  try {
    if (!statistics_) statistics_.emplace(given());
    return Operations{.carried_out = std::stod(statistics_->value(count_of_statements_)), .wake_ups = {}};
  } catch (const std::exception&) {
    count_of_statements_.clear();  // the extension is not preloaded
    return std::nullopt;
  }
}

// Not by Client::forget(), which refuses names used in the last minute. In the user's schema, only the names of
// scenarios and the floors' tables belong to benchmarks.
void PostgresTarget::clean_up() {
  const Connection connection(given());
  (void)connection.run("SET lock_timeout = '10s'");
  if (own_schema_) {
    (void)connection.run("DROP SCHEMA IF EXISTS " + quoted(schema_) + " CASCADE");
    return;
  }
  // First what needs no other right.
  if (has_floor_) (void)connection.run("DROP TABLE IF EXISTS " + floors_.locks + ", " + floors_.counters);
  connection.prepare("exists", "SELECT 1 WHERE to_regclass($1) IS NOT NULL");
  for (const char* each : tables_of_locks) {
    const std::string table = quoted(schema_) + "." + quoted(each);
    if (!connection.call("exists", {table.c_str()})) continue;
    (void)connection.run("DELETE FROM " + table + " WHERE name LIKE '" + lock_names + "%'");
  }
}

}  // namespace

std::unique_ptr<ServiceTarget> make_postgres_target(const rig::UrlText& url, const std::string& strategy) {
  return std::make_unique<PostgresTarget>(url, strategy);
}

}  // namespace dlock::bench
