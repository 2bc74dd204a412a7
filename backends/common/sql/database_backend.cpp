#include "backends/common/sql/database_backend.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "backends/common/connection_news.hpp"
#include "backends/common/sql/full_server.hpp"

namespace dlock::sql {

namespace {

// As far as databases agree.
Capabilities capabilities_of(const DatabaseOptions& options) {
  const bool in_sessions = lives_in_sessions(options.strategy);
  const bool shares = options.strategy == Strategy::table;
  const bool wakes = in_sessions || options.pooler != Pooler::transaction;
  Capabilities capabilities = {
      .strategy = to_string(options.strategy),
      .scope = Scope::network,
      .lease_kind = in_sessions ? LeaseKind::session : LeaseKind::per_lock,
      .fencing = FencingDurability::wall_clock,
      .wakes_waiters = wakes,
      .wakes_one = in_sessions,
      .read_write_locks = shares,
      .semaphores = shares,
      .elections = options.strategy != Strategy::for_update,
      .can_inspect = true,
      .can_list = true,
      .can_break = true,
      .can_forget = true,
      .can_forget_idle = true,
      .min_lease = std::chrono::milliseconds(20),
      .max_lease = std::chrono::hours(24),
  };
  if (!in_sessions) return capabilities;
  capabilities.max_locks = options.max_connections;
  capabilities.min_lease = shortest_session_lease;
  capabilities.max_lease = options.lease;
  return capabilities;
}

class DatabaseBackend final : public Backend {
 public:
  DatabaseBackend(BackendHost& host, std::unique_ptr<const Database> database)
      : database_(std::move(database)),
        options_(database_->options()),
        full_(host.executor()),
        dialling_{.dialect = database_->dialect(),
                  .connections =
                      [this](Executor& executor, const Purpose& purpose, Connection::Listener& listener) {
                        return database_->connect(executor, purpose, listener);
                      },
                  .connect_timeout = options_.connect_timeout,
                  .response_timeout = options_.response_timeout,
                  .endpoint = options_.endpoint(),
                  .full = &full_},
        schema_(host.executor(), dialling_, database_->schema_in_words(), database_->schema_steps()),
        set_up_([this](TimePoint deadline, std::function<void(std::optional<Failure>)> done) {
          schema_.initialize(deadline, [done = std::move(done)](const Result<MadeTables>& made) {
            done(made.ok() ? std::nullopt : std::optional(made.failure()));
          });
        }),
        news_(host, !lives_in_sessions(options_.strategy)),
        commands_news_(news_),
        commands_(host.executor(), dialling_, set_up_, commands_news_),
        inspection_(database_->inspection(commands_)),
        services_{host, dialling_, commands_, set_up_},
        locks_(make_locks()) {
    if (options_.password_file) options_.password_file->check();
  }

  [[nodiscard]] Capabilities capabilities() const noexcept override { return locks_->capabilities(); }

  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink) override {
    return locks(request.kind).contend(request, sink);
  }
  void renew(const Grant& grant, RenewHandler done) override { locks(grant.kind).renew(grant, std::move(done)); }
  void release(const Grant& grant, ReleaseHandler done) override { locks(grant.kind).release(grant, std::move(done)); }
  [[nodiscard]] std::unique_ptr<Watch> watch(LockKind kind, const std::string& name,
                                             std::function<void()> changed) override {
    return locks(kind).watch(kind, name, std::move(changed));
  }
  void close(std::function<void()> done) override {
    const auto open = std::make_shared<std::size_t>(rows_.size() + 1);
    const auto closed = [open, done = std::move(done)] {
      if (--*open == 0) done();
    };
    for (const auto& [kind, rows] : rows_) rows->close(closed);
    locks_->close(closed);
  }

  void inspect(LockKind kind, const std::string& name, Handler<LockInfo> done) override {
    inspection_->inspect(kind, name, std::move(done));
  }
  void list(LockKind kind, Handler<std::vector<LockInfo>> done) override { inspection_->list(kind, std::move(done)); }
  void break_lock(LockKind kind, const std::string& name, Handler<bool> done) override {
    inspection_->break_lock(kind, name, std::move(done));
  }
  void forget(const Forgetting& what, Handler<std::vector<std::string>> done) override {
    inspection_->forget(what, std::move(done));
  }
  void diagnose(Handler<std::vector<Finding>> done) override { database_->diagnose(commands_, std::move(done)); }
  void initialize(Handler<std::vector<std::string>> done) override {
    schema_.initialize(commands_.answer_by(), std::move(done));
  }

 private:
  [[nodiscard]] Backend& locks(LockKind kind) {
    if (kind == LockKind::lock || lives_in_sessions(options_.strategy)) return *locks_;
    std::unique_ptr<Backend>& rows = rows_[kind];
    if (!rows) rows = database_->row_locks(services_, capabilities_of(options_), kind);
    return *rows;
  }

  [[nodiscard]] std::unique_ptr<Backend> make_locks() {
    const Capabilities capabilities = capabilities_of(options_);
    if (!lives_in_sessions(options_.strategy)) return database_->row_locks(services_, capabilities, LockKind::lock);
    auto locks = database_->session_locks(services_, capabilities);
    inspection_->count_also(
        [made = locks.get()](LockKind kind, const std::string& name) { return made->waiting_here(kind, name); });
    return locks;
  }

  const std::unique_ptr<const Database> database_;
  const DatabaseOptions& options_;
  FullServer full_;
  const Dialling dialling_;
  Schema schema_;
  const SetUp set_up_;
  common::ConnectionNews news_;  // reports nothing if locks live in sessions
  common::ConnectionNews::Source commands_news_;
  Commands commands_;
  const std::unique_ptr<Inspection> inspection_;
  const Services services_;
  const std::unique_ptr<Backend> locks_;               // plain locks; all kinds if locks live in sessions
  std::map<LockKind, std::unique_ptr<Backend>> rows_;  // other kinds, made at their first use
};

}  // namespace

std::unique_ptr<Backend> make_backend(BackendHost& host, std::unique_ptr<const Database> database) {
  return std::make_unique<DatabaseBackend>(host, std::move(database));
}

}  // namespace dlock::sql
