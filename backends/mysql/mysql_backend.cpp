#include "backends/mysql/mysql_backend.hpp"

#include <optional>
#include <utility>

#include "backends/mysql/client/libmariadb_connection.hpp"
#include "backends/mysql/locks.hpp"

namespace dlock::mysql {

namespace {

std::unique_ptr<Backend> make_locks(const sql::Services& services, const Options& options, Inspection& inspection) {
  if (!lives_in_sessions(options.strategy)) return make_row_locks(services, options, LockKind::lock);
  auto locks = make_session_locks(services, options);
  inspection.count_also(
      [made = locks.get()](LockKind kind, const std::string& name) { return made->waiting_here(kind, name); });
  return locks;
}

}  // namespace

MysqlBackend::MysqlBackend(BackendHost& host, Options options, OpenConnection open)
    : options_(std::move(options)),
      dialect_(options_),
      full_(host.executor()),
      dialling_{.dialect = dialect_,
                .connections =
                    [this, open = std::move(open)](Executor& executor, const sql::Purpose& purpose,
                                                   sql::Connection::Listener& listener) {
                      return open(executor, options_, purpose, listener);
                    },
                .connect_timeout = options_.connect_timeout,
                .response_timeout = options_.response_timeout,
                .endpoint = options_.endpoint(),
                .full = &full_},
      schema_(host.executor(), options_, dialling_),
      set_up_([this](TimePoint deadline, std::function<void(std::optional<Failure>)> done) {
        schema_.initialize(deadline, [done = std::move(done)](const Result<Schema::Made>& made) {
          done(made.ok() ? std::nullopt : std::optional(made.failure()));
        });
      }),
      news_(host, !lives_in_sessions(options_.strategy)),
      commands_news_(news_),
      commands_(host.executor(), dialling_, set_up_, commands_news_),
      inspection_(commands_, options_),
      services_{host, dialling_, commands_, set_up_},
      locks_(make_locks(services_, options_, inspection_)) {}

MysqlBackend::~MysqlBackend() = default;

Backend& MysqlBackend::locks(LockKind kind) {
  if (kind == LockKind::lock || lives_in_sessions(options_.strategy)) return *locks_;
  std::unique_ptr<Backend>& rows = rows_[kind];
  if (!rows) rows = make_row_locks(services_, options_, kind);
  return *rows;
}

void MysqlBackend::close(std::function<void()> done) {
  const auto open = std::make_shared<std::size_t>(rows_.size() + 1);
  const auto closed = [open, done = std::move(done)] {
    if (--*open == 0) done();
  };
  for (const auto& [kind, rows] : rows_) rows->close(closed);
  locks_->close(closed);
}

std::unique_ptr<Backend> make_mysql_backend(BackendHost& host, const BackendConfig& config) {
  Options options = parse_options(config);
  if (options.password_file) options.password_file->check();
  return std::make_unique<MysqlBackend>(host, std::move(options), libmariadb_connections());
}

}  // namespace dlock::mysql
