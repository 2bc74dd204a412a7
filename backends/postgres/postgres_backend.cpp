#include "backends/postgres/postgres_backend.hpp"

#include <utility>

#include "backends/common/sql/database_backend.hpp"
#include "backends/postgres/administration/diagnosis.hpp"
#include "backends/postgres/administration/inspection.hpp"
#include "backends/postgres/libpq/libpq_connection.hpp"
#include "backends/postgres/rows/row_commands.hpp"
#include "backends/postgres/rows/wake_ups.hpp"
#include "backends/postgres/schema/layout.hpp"
#include "backends/postgres/session_locks/advisory_tries.hpp"
#include "backends/postgres/session_locks/session_dialects.hpp"
#include "backends/postgres/sql/identifier.hpp"
#include "backends/postgres/sql/sqlstate.hpp"
#include "backends/postgres/sql/statements.hpp"

namespace dlock::postgres {

namespace {

class PostgresDatabase final : public Database {
 public:
  PostgresDatabase(Options options, OpenConnection open)
      : options_(std::move(options)), dialect_(options_.schema), open_(std::move(open)) {}

  [[nodiscard]] const DatabaseOptions& options() const noexcept override { return options_; }
  [[nodiscard]] const Dialect& dialect() const noexcept override { return dialect_; }
  [[nodiscard]] std::unique_ptr<Connection> connect(Executor& executor, const Purpose& purpose,
                                                    Connection::Listener& listener) const override {
    return open_(executor, options_, purpose, listener);
  }
  [[nodiscard]] std::string schema_in_words() const override { return quote_identifier(options_.schema); }
  [[nodiscard]] std::unique_ptr<SchemaSteps> schema_steps() const override {
    return postgres::schema_steps(options_.schema, options_.durability);
  }
  [[nodiscard]] std::unique_ptr<sql::Inspection> inspection(Commands& commands) const override {
    return postgres::inspection(commands, options_);
  }
  void diagnose(Commands& commands, Backend::Handler<std::vector<Finding>> done) const override {
    postgres::diagnose(commands, options_, std::move(done));
  }

  // A kind of locks has a channel, too.
  [[nodiscard]] std::unique_ptr<RowLocks> row_locks(const Services& services, Capabilities capabilities,
                                                    LockKind kind) const override {
    capabilities.backend = "postgresql";
    const RowLocks::MakeWaker wake_ups = [services](const RowStore& store) {
      return std::make_unique<WakeUps>(
          services.commands, services.dialling, static_cast<const RowCommands&>(store),
          [host = &services.host](Failure why) { host->warn({.name = "", .reason = std::move(why)}); });
    };
    return std::make_unique<RowLocks>(
        services, capabilities, options_.strategy == Strategy::optimistic,
        std::make_unique<RowCommands>(row_statements(options_.strategy, options_.schema, options_.durability, kind),
                                      kind, channel_of(options_.schema, kind)),
        capabilities.wakes_waiters ? wake_ups : nullptr);
  }

  //                | tries                                    | waits               | a lock lives
  //   -------------+------------------------------------------+---------------------+---------------------------------
  //   advisory     | together on one session (AdvisoryTries)  | a session for each  | where it was tried or waited for
  //   for-update   | a session for each                       | the same            | in that session
  [[nodiscard]] std::unique_ptr<SessionLocks> session_locks(const Services& services,
                                                            Capabilities capabilities) const override {
    const bool advisory = options_.strategy == Strategy::advisory;
    capabilities.backend = "postgresql";
    // for-update: waiters are served in their order, but a newcomer may come in between, and waits are interrupted.
    capabilities.fair = capabilities.read_write_locks = advisory;
    capabilities.counts_waiters = capabilities.one_waiter_per_client = true;
    if (!advisory) {
      return std::make_unique<SessionLocks>(services, capabilities, options_.max_connections,
                                            for_update_dialect(options_));
    }
    capabilities.max_locks = most_advisory_locks;
    const auto make_tries = [&](common::ConnectionObserver& observer, std::function<void()> when_quiet) {
      return std::make_unique<AdvisoryTries>(services, options_, observer, std::move(when_quiet));
    };
    return std::make_unique<SessionLocks>(services, capabilities, options_.max_connections, advisory_dialect(options_),
                                          make_tries);
  }

 private:
  const Options options_;
  const PostgresDialect dialect_;
  const OpenConnection open_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(BackendHost& host, Options options, OpenConnection open) {
  return sql::make_backend(host, std::make_unique<PostgresDatabase>(std::move(options), std::move(open)));
}

std::unique_ptr<Backend> make_postgres_backend(BackendHost& host, const BackendConfig& config) {
  return make_backend(host, parse_options(config), libpq_connections());
}

}  // namespace dlock::postgres
