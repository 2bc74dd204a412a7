// mysql:// and mariadb://
#include <mysql.h>

#include <algorithm>
#include <array>
#include <exception>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bench/targets/service_target.hpp"

namespace dlock::bench {

namespace {

// A blocking connection, as in a program that uses libmariadb directly.
class Connection {
 public:
  // Like the other functions, throws std::runtime_error if the connection breaks, and for errors of the server.
  explicit Connection(const rig::UrlText& url) : connection_(mysql_init(nullptr)) {
    constexpr unsigned over_tcp = MYSQL_PROTOCOL_TCP;  // "localhost" would be a Unix socket
    constexpr auto limit = static_cast<unsigned>(answer_limit.count());
    (void)mysql_options(get(), MYSQL_OPT_PROTOCOL, &over_tcp);
    (void)mysql_options(get(), MYSQL_OPT_CONNECT_TIMEOUT, &limit);
    encrypt(url);
    const std::string user = url.original().user().value_or(url.parameter("user").value_or(""));
    const std::string password = url.password().value_or("");  // it may be in a file
    for (const rig::HostPort& host : url.hosts({.name = "localhost", .port = 3306})) {
      if (mysql_real_connect(get(), host.name.c_str(), user.c_str(), password.c_str(), nullptr, host.port, nullptr,
                             0) != nullptr) {
        return;
      }
    }
    fail();
  }

  // The number of changed or returned rows.
  std::uint64_t run(const std::string& sql) {
    return ask(sql, [](MYSQL_RES* result) { return mysql_num_rows(result); });
  }
  // The first column of the first row; empty for NULL, and without a row.
  [[nodiscard]] std::string value(const std::string& sql) {
    std::string text;
    (void)ask(sql, [&](MYSQL_RES* result) {
      MYSQL_ROW row = mysql_fetch_row(result);
      if (row != nullptr && row[0] != nullptr) text = row[0];
      return 1U;
    });
    return text;
  }
  // The sum of status variables of the server.
  [[nodiscard]] double status(const std::string& condition) {
    double sum = 0;
    (void)ask("SHOW GLOBAL STATUS WHERE variable_name " + condition, [&](MYSQL_RES* result) {
      while (MYSQL_ROW row = mysql_fetch_row(result)) sum += std::stod(row[1]);
      return 1U;
    });
    return sum;
  }

 private:
  struct Close {
    void operator()(MYSQL* connection) const noexcept { mysql_close(connection); }
  };
  struct Free {
    void operator()(MYSQL_RES* result) const noexcept { mysql_free_result(result); }
  };
  [[noreturn]] void fail() const { throw std::runtime_error(std::string("MySQL: ") + mysql_error(get())); }
  [[nodiscard]] MYSQL* get() const noexcept { return connection_.get(); }
  void encrypt(const rig::UrlText& url) const {
    const std::string tls = url.parameter("tls").value_or(url.parameter("tls_ca") ? "verify" : "off");
    const my_bool wanted = tls != "off" ? 1 : 0;
    const my_bool verified = tls == "verify" ? 1 : 0;
    (void)mysql_options(get(), MYSQL_OPT_SSL_ENFORCE, &wanted);
    (void)mysql_options(get(), MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verified);
    for (const auto& [option, name] : {std::pair{MYSQL_OPT_SSL_CA, "tls_ca"}, std::pair{MYSQL_OPT_SSL_CERT, "tls_cert"},
                                       std::pair{MYSQL_OPT_SSL_KEY, "tls_key"}}) {
      if (const auto file = url.parameter(name)) (void)mysql_options(get(), option, file->c_str());
    }
  }
  template <class Read>
  std::uint64_t ask(const std::string& sql, Read read) {
    if (mysql_real_query(get(), sql.data(), sql.size()) != 0) fail();
    const std::unique_ptr<MYSQL_RES, Free> result(mysql_store_result(get()));
    if (!result && mysql_field_count(get()) != 0) fail();
    return result ? read(result.get()) : mysql_affected_rows(get());
  }

  std::unique_ptr<MYSQL, Close> connection_;
};

// Neither dlock's schemas nor the names of benchmarks contain anything to escape.
std::string quoted(const std::string& identifier) {
  return "`" + identifier + "`";
}
std::string literal(const std::string& text) {
  return "'" + text + "'";
}

// --- Floors ----------------------------------------------------------------------------------------------------------

// The floors' own tables, quoted.
struct Tables {
  std::string locks;     // one row per held lock
  std::string counters;  // the last token of each name
};

// Each changes or returns a row if the lock was free, or held; otherwise it fails, or does neither.
struct Statements {
  std::string once;                  // empty: nothing
  std::vector<std::string> acquire;  // in order
  std::string release;               // empty: the end of the transaction releases
};

Statements statements_of(const std::string& strategy, const Tables& tables, const std::string& name,
                         const std::string& owner) {
  if (strategy == "named") {
    // GET_LOCK() does not know tables: the name alone could be another run's. It takes 64 characters.
    const std::string key = "SHA2(" + literal(tables.counters + "/" + name) + ", 256)";
    return {.once = {},
            .acquire = {"INSERT INTO " + tables.counters + " (name, token) SELECT " + literal(name) +
                        ", 1 FROM DUAL WHERE GET_LOCK(" + key + ", 0) = 1 ON DUPLICATE KEY UPDATE token = " +
                        "LAST_INSERT_ID(" + tables.counters + ".token + 1)"},
            .release = "SELECT 1 FROM DUAL WHERE RELEASE_LOCK(" + key + ") = 1"};
  }
  const std::string of_name = " WHERE name = " + literal(name);
  if (strategy == "for-update") {
    return {.once = "INSERT IGNORE INTO " + tables.counters + " VALUES (" + literal(name) + ", 0)",
            .acquire = {"SELECT token FROM " + tables.counters + of_name + " FOR UPDATE NOWAIT",
                        "UPDATE " + tables.counters + " SET token = LAST_INSERT_ID(token + 1)" + of_name},
            .release = {}};
  }
  return {.once = {},
          .acquire = {"INSERT IGNORE INTO " + tables.locks + " (name, owner) VALUES (" + literal(name) + ", " +
                      literal(owner) + ")"},
          .release = "DELETE FROM " + tables.locks + of_name + " AND owner = " + literal(owner)};
}

// Each statement is a round trip. After a failure the connection is useless.
class MysqlFloor final : public Floor {
 public:
  MysqlFloor(const rig::UrlText& url, const std::string& strategy, const Tables& tables, const std::string& name)
      : connection_(url), use_(statements_of(strategy, tables, name, own_name())) {
    if (!use_.once.empty()) (void)connection_.run(use_.once);  // another floor may have inserted it
  }

  void acquire() override {
    if (by_transaction()) (void)connection_.run("BEGIN");
    for (const std::string& each : use_.acquire) require_free(connection_.run(each) > 0);
    held_ = true;
  }
  void release() override {
    require_held(std::exchange(held_, false));
    if (by_transaction()) {
      (void)connection_.run("COMMIT");
    } else {
      require_held(connection_.run(use_.release) > 0);
    }
  }

 private:
  [[nodiscard]] bool by_transaction() const noexcept { return use_.release.empty(); }

  Connection connection_;
  const Statements use_;
  bool held_ = false;
};

// --- The target ------------------------------------------------------------------------------------------------------

// A client's connections besides those of locks and waiters.
constexpr std::size_t working_connections = 6;
constexpr std::size_t most_connections_of_a_client = 1000;
// The number of the server's free connections that are left for the clients' own work and for other users.
constexpr std::size_t spare_connections = 40;

// BEGIN, COMMIT and SET are not counted, nor are they for PostgreSQL.
constexpr const char* counted =
    "IN ('Com_select', 'Com_do', 'Com_insert', 'Com_insert_select', 'Com_update', 'Com_update_multi', 'Com_delete')";

// dlock's tables of measured locks.
constexpr std::array tables_of_locks = {"lease",    "optimistic",    "row_lock",  "fence",
                                        "lease_rw", "lease_rw_slot", "lease_sem", "lease_sem_slot"};

class MysqlTarget final : public ServiceTarget {
 public:
  MysqlTarget(const rig::UrlText& given, const std::string& strategy)
      : ServiceTarget(given, "mysql", strategy),
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
    return std::make_unique<MysqlFloor>(url, info().strategy, floors_, name);
  }
  [[nodiscard]] std::optional<Operations> operations() override {
    try {
      if (!statistics_) statistics_.emplace(given());
      return Operations{.carried_out = statistics_->status(counted), .wake_ups = {}};
    } catch (const std::exception&) {
      return std::nullopt;
    }
  }
  void clean_up() override;

 private:
  [[nodiscard]] rig::UrlText url_for(std::size_t locks) const override {
    rig::UrlText url = ServiceTarget::url_for(locks);
    if (takes_connections() && !given().parameter("max_connections")) {
      url.set("max_connections", std::to_string(std::min(locks + working_connections, most_connections_of_a_client)));
    }
    return url;
  }
  [[nodiscard]] bool takes_connections() const { return info().strategy == "for-update" || info().strategy == "named"; }
  void examine(Connection connection);

  std::string own_name_ = own_name('_');
  bool own_schema_;
  std::string schema_;
  Tables floors_;
  bool has_floor_ = false;  // its tables exist
  std::size_t most_locks_ = 0;
  std::size_t most_floors_ = 0;
  std::optional<Connection> statistics_;
};

void MysqlTarget::prepare() {
  (void)dlock::connect(url(1)).initialize();
  info_.crash = takes_connections() ? loses::everything : loses::unknown;
  info_.failover = takes_connections() ? loses::everything : loses::latest;
  try {
    examine(Connection(given()));
  } catch (const std::exception&) {
    // dlock reaches the server, but libmariadb alone does not: then fewer facts are known.
  }
  try {
    Connection connection(given());
    (void)connection.run("CREATE TABLE " + floors_.locks +
                         " (name VARBINARY(512) PRIMARY KEY, owner VARBINARY(64) NOT NULL) ENGINE = InnoDB");
    (void)connection.run("CREATE TABLE " + floors_.counters +
                         " (name VARBINARY(512) PRIMARY KEY, token BIGINT NOT NULL) ENGINE = InnoDB");
    has_floor_ = true;
  } catch (const std::exception&) {
    // No right to create tables: there is no floor.
  }
}

void MysqlTarget::examine(Connection connection) {
  for (const char* setting : {"version", "innodb_flush_log_at_trx_commit", "log_bin", "sync_binlog"}) {
    add_setting(setting, connection.value(std::string("SELECT @@") + setting));
  }
  if (info_.crash == loses::unknown) {
    const std::string waits = "SELECT @@innodb_flush_log_at_trx_commit = 1 AND (NOT @@log_bin OR @@sync_binlog = 1)";
    info_.crash = connection.value(waits) == "1" ? loses::nothing : loses::latest;
  }
  // 0: the server's limit applies to this user.
  const auto most =
      std::stoul(connection.value("SELECT LEAST(@@max_connections, IF(@@max_user_connections = 0, @@max_connections, "
                                  "@@max_user_connections))"));
  const auto taken = static_cast<std::size_t>(connection.status("= 'Threads_connected'")) + spare_connections;
  const std::size_t left = std::max<std::size_t>(most, taken + 2) - taken;
  // Floors and dlock are connected at the same time.
  most_floors_ = takes_connections() ? left / 2 : left;
  if (!takes_connections()) return;
  most_locks_ = std::min(left / 2, most_connections_of_a_client - working_connections);
  if (const auto given_limit = given().parameter("max_connections")) {
    most_locks_ = std::min<std::size_t>(most_locks_, std::stoul(*given_limit));
  }
}

// Not by Client::forget(), which refuses names used in the last minute. In the user's schema, only the names of
// scenarios and the floors' tables belong to benchmarks.
void MysqlTarget::clean_up() {
  Connection connection(given());
  (void)connection.run("SET lock_wait_timeout = 10, innodb_lock_wait_timeout = 10");
  if (own_schema_) {
    (void)connection.run("DROP DATABASE IF EXISTS " + quoted(schema_));
    return;
  }
  // First what needs no other right.
  if (has_floor_) (void)connection.run("DROP TABLE IF EXISTS " + floors_.locks + ", " + floors_.counters);
  for (const char* each : tables_of_locks) {
    (void)connection.run("DELETE FROM " + quoted(schema_) + "." + quoted(each) + " WHERE name LIKE '" + lock_names +
                         "%'");
  }
}

}  // namespace

std::unique_ptr<ServiceTarget> make_mysql_target(const rig::UrlText& url, const std::string& strategy) {
  return std::make_unique<MysqlTarget>(url, strategy);
}

}  // namespace dlock::bench
