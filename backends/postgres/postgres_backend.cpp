#include "backends/postgres/postgres_backend.hpp"

#include <utility>

#include "backends/common/sql/row_locks.hpp"
#include "backends/common/sql/session_locks.hpp"
#include "backends/postgres/libpq/libpq_connection.hpp"

namespace dlock::postgres {

namespace {

std::unique_ptr<Backend> make_locks(const Services& services, Inspection& inspection) {
  if (!lives_in_sessions(services.options.strategy)) return std::make_unique<RowLocks>(services);
  auto locks = std::make_unique<SessionLocks>(services);
  inspection.count_also(
      [made = locks.get()](LockKind kind, const std::string& name) { return made->waiting_here(kind, name); });
  return locks;
}

}  // namespace

PostgresBackend::PostgresBackend(BackendHost& host, Options options, ConnectionFactory connections)
    : options_(std::move(options)),
      full_(host.executor()),
      dialling_{options_, std::move(connections), options_.connect_timeout, options_.response_timeout, &full_},
      schema_(host.executor(), options_, dialling_),
      news_(host, !lives_in_sessions(options_.strategy)),
      commands_news_(news_),
      commands_(host.executor(), options_, dialling_, schema_, commands_news_),
      inspection_(commands_),
      services_{host, options_, dialling_, commands_, news_, schema_},
      locks_(make_locks(services_, inspection_)) {}

PostgresBackend::~PostgresBackend() = default;

Backend& PostgresBackend::locks(LockKind kind) {
  if (kind == LockKind::lock || lives_in_sessions(options_.strategy)) return *locks_;
  std::unique_ptr<Backend>& rows = rows_[kind];
  if (!rows) rows = std::make_unique<RowLocks>(services_, kind);
  return *rows;
}

void PostgresBackend::close(std::function<void()> done) {
  const auto open = std::make_shared<std::size_t>(rows_.size() + 1);
  const auto closed = [open, done = std::move(done)] {
    if (--*open == 0) done();
  };
  for (const auto& [kind, rows] : rows_) rows->close(closed);
  locks_->close(closed);
}

std::unique_ptr<Backend> make_postgres_backend(BackendHost& host, const BackendConfig& config) {
  Options options = parse_options(config);
  if (options.password_file) options.password_file->check();
  return std::make_unique<PostgresBackend>(host, std::move(options), libpq_connections());
}

}  // namespace dlock::postgres
