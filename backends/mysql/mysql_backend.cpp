#include "backends/mysql/mysql_backend.hpp"

#include <utility>

#include "backends/common/sql/database_backend.hpp"
#include "backends/mysql/administration/diagnosis.hpp"
#include "backends/mysql/administration/inspection.hpp"
#include "backends/mysql/client/libmariadb_connection.hpp"
#include "backends/mysql/errors.hpp"
#include "backends/mysql/rows/turnstile.hpp"
#include "backends/mysql/sql/layout.hpp"
#include "backends/mysql/sql/row_commands.hpp"
#include "backends/mysql/sql/session_statements.hpp"
#include "util/names.hpp"

namespace dlock::mysql {

namespace {

class MysqlDatabase final : public sql::Database {
 public:
  MysqlDatabase(Options options, OpenConnection open)
      : options_(std::move(options)), dialect_(options_), open_(std::move(open)) {}

  [[nodiscard]] const sql::DatabaseOptions& options() const noexcept override { return options_; }
  [[nodiscard]] const sql::Dialect& dialect() const noexcept override { return dialect_; }
  [[nodiscard]] std::unique_ptr<sql::Connection> connect(Executor& executor, const sql::Purpose& purpose,
                                                         sql::Connection::Listener& listener) const override {
    return open_(executor, options_, purpose, listener);
  }
  [[nodiscard]] std::string schema_in_words() const override { return util::quoted(options_.schema); }
  [[nodiscard]] std::unique_ptr<sql::SchemaSteps> schema_steps() const override {
    return mysql::schema_steps(options_.schema);
  }
  [[nodiscard]] std::unique_ptr<sql::Inspection> inspection(sql::Commands& commands) const override {
    return mysql::inspection(commands, options_);
  }
  void diagnose(sql::Commands& commands, Backend::Handler<std::vector<Finding>> done) const override {
    mysql::diagnose(commands, options_, std::move(done));
  }

  // Waiters of plain locks and elections stand in the server's queue (Turnstile); those of read-write locks and
  // semaphores poll.
  [[nodiscard]] std::unique_ptr<sql::RowLocks> row_locks(const sql::Services& services, Capabilities capabilities,
                                                         LockKind kind) const override {
    const bool optimistic = options_.strategy == Strategy::optimistic;
    const bool wakes = capabilities.wakes_waiters;
    complete(capabilities);
    capabilities.fair = capabilities.wakes_one = wakes;
    auto rows = std::make_unique<RowCommands>(
        options_.schema, kind, optimistic,
        [&commands = services.commands, wakes] { return wakes && !commands.server().pooled; });
    sql::RowLocks::MakeWaker turnstile;
    if (wakes && rows->has_bells()) {
      turnstile = [services, max_places = options_.max_connections](const sql::RowStore& store) {
        return std::make_unique<Turnstile>(services, static_cast<const RowCommands&>(store), max_places);
      };
    }
    return std::make_unique<sql::RowLocks>(services, capabilities, optimistic, std::move(rows), turnstile);
  }

  [[nodiscard]] std::unique_ptr<sql::SessionLocks> session_locks(const sql::Services& services,
                                                                 Capabilities capabilities) const override {
    complete(capabilities);
    capabilities.min_lease = shortest_session_lease;
    auto dialect = options_.strategy == Strategy::named
                       ? named_dialect(options_.schema, options_.verbatim_keys ? KeyNames::verbatim : KeyNames::sha256)
                       : for_update_dialect(options_.schema);
    return std::make_unique<sql::SessionLocks>(services, capabilities, options_.max_connections, std::move(dialect));
  }

 private:
  static void complete(Capabilities& capabilities) {
    capabilities.backend = "mysql";
    capabilities.one_waiter_per_client = capabilities.sharers_poll = true;
    capabilities.close_on_exec = false;  // libmariadb sets the flag once the socket is connected, not before
  }

  const Options options_;
  const MysqlDialect dialect_;
  const OpenConnection open_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(BackendHost& host, Options options, OpenConnection open) {
  return sql::make_backend(host, std::make_unique<MysqlDatabase>(std::move(options), std::move(open)));
}

std::unique_ptr<Backend> make_mysql_backend(BackendHost& host, const BackendConfig& config) {
  return make_backend(host, parse_options(config), libmariadb_connections());
}

}  // namespace dlock::mysql
