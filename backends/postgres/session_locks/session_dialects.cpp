#include "backends/postgres/session_locks/session_dialects.hpp"

#include "backends/postgres/sql/lock_key.hpp"
#include "backends/postgres/sql/statements.hpp"

namespace dlock::postgres {

using std::chrono::nanoseconds;

namespace {

std::string in_ms(nanoseconds time) {
  return std::to_string(std::chrono::ceil<std::chrono::milliseconds>(time).count());
}

// A session waits in the server for an advisory lock, which it has until it unlocks it.
class AdvisoryDialect final : public SessionDialect {
 public:
  explicit AdvisoryDialect(const Options& options) : options_(options), sql_(options) {}

  [[nodiscard]] const char* word() const override { return "waiting"; }
  [[nodiscard]] std::string lock_of(LockKind kind, const std::string& name) const override {
    return SessionDialect::lock_of(kind, lock_key(options_, name, kind).parameter);
  }
  [[nodiscard]] std::optional<Statement> question_about_snapshots() const override { return waits_for_snapshots(); }

  // An error, lock_timeout among them, may come in the moment of the grant, and does not undo that.
  [[nodiscard]] std::vector<Command> ask(const LockRequest& request, Patience patience, bool used) const override {
    const LockKey key = key_of(request);
    std::vector<Command> commands;
    if (used) commands.push_back(clean(request));
    commands.push_back(
        {.statement = &sql_.of(key).lock_slice,
         .params = {key.parameter, token_row(options_, request.name), holder_text(request), in_ms(*patience)}});
    return commands;
  }
  [[nodiscard]] Reply read(const Results& results, const ServerInfo& server) const override {
    const Rows& rows = results.back();
    if (rows.number(0, 1) != server.backend_pid) return {.why = other_session(server)};
    return {.token = rows.number(0, 0).value_or(0)};
  }

  [[nodiscard]] Command free(const LockRequest& request) const override { return clean(request); }
  [[nodiscard]] Command clean(const LockRequest& request) const override {
    const LockKey key = key_of(request);
    return {.statement = &sql_.of(key).unlock, .params = {key.parameter}};
  }

 private:
  [[nodiscard]] LockKey key_of(const LockRequest& request) const {
    return lock_key(options_, request.name, request.kind, request.mode);
  }

  const Options& options_;
  const AdvisorySql sql_;
};

// A transaction locks a row, and has it until it ends.
class ForUpdateDialect final : public SessionDialect {
 public:
  explicit ForUpdateDialect(const Options& options) : use_(for_update_statements(options.schema, options.durability)) {}

  [[nodiscard]] const char* word() const override { return "transaction"; }
  [[nodiscard]] std::optional<Statement> question_about_snapshots() const override { return waits_for_snapshots(); }

  [[nodiscard]] std::vector<Command> ask(const LockRequest& request, Patience patience, bool used) const override {
    std::vector<Command> commands = anew(used);
    commands.push_back({.statement = &use_.begin});
    if (patience) commands.push_back(set_patience(*patience));
    commands.push_back({.statement = patience ? &use_.lock : &use_.try_lock, .params = {request.name, request.holder}});
    commands.push_back({.statement = &use_.heartbeat});
    return commands;
  }
  [[nodiscard]] Reply read(const Results& results, const ServerInfo& /*server*/) const override {
    const Rows& rows = results.at(results.size() - 2);  // the heartbeat is the last
    return {.no_row = rows.empty(), .token = rows.number(0, 0).value_or(0)};
  }
  // In a transaction of its own, so that others see the row before it is locked.
  [[nodiscard]] std::vector<Command> prepare(const LockRequest& request, nanoseconds wait, bool used) const override {
    std::vector<Command> commands = anew(used);
    commands.push_back(set_patience(wait));
    commands.push_back({.statement = &use_.ensure, .params = {request.name}});
    return commands;
  }

  [[nodiscard]] Command free(const LockRequest& /*request*/) const override { return {.statement = &use_.commit}; }
  [[nodiscard]] Command clean(const LockRequest& /*request*/) const override { return {.statement = &use_.rollback}; }

 private:
  [[nodiscard]] std::vector<Command> anew(bool used) const {
    if (!used) return {};
    return {{.statement = &use_.rollback}};
  }
  [[nodiscard]] Command set_patience(nanoseconds patience) const {
    return {.statement = &use_.set_patience, .params = {in_ms(patience)}};
  }

  const ForUpdateStatements use_;
};

}  // namespace

std::unique_ptr<SessionDialect> advisory_dialect(const Options& options) {
  return std::make_unique<AdvisoryDialect>(options);
}

std::unique_ptr<SessionDialect> for_update_dialect(const Options& options) {
  return std::make_unique<ForUpdateDialect>(options);
}

Failure other_session(const ServerInfo& server) {
  return needs_own_session(server,
                           "a different session answered, so a pooler shares the server's sessions among its clients, "
                           "and all of them would hold the lock of one");
}

}  // namespace dlock::postgres
