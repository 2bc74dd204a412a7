#include "backends/mysql/sql/session_statements.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "backends/mysql/sql/text.hpp"

namespace dlock::mysql {

using sql::Command;
using sql::Results;
using sql::Rows;
using sql::ServerInfo;
using sql::SessionDialect;
using sql::Statement;
using std::chrono::nanoseconds;

namespace {

constexpr std::string_view ensure = "INSERT IGNORE INTO {row_lock} (name) VALUES (?)";
constexpr std::string_view lock = "SELECT name FROM {row_lock} WHERE name = ? FOR UPDATE";
constexpr std::string_view try_lock = "SELECT name FROM {row_lock} WHERE name = ? FOR UPDATE NOWAIT";
constexpr std::string_view fence = R"sql(
  UPDATE {row_lock} SET token = LAST_INSERT_ID(GREATEST(token + 1, {us})), holder = ?, session = {me} WHERE name = ?
)sql";

// Not a SELECT: at REPEATABLE READ that would lock the gap of a missing row, and two callers would deadlock.
constexpr std::string_view lock_in_transaction = R"sql(
  INSERT INTO {row_lock} (name, holder, token, session) VALUES (?, ?, LAST_INSERT_ID({us}), {me})
  ON DUPLICATE KEY UPDATE token = LAST_INSERT_ID(GREATEST(token + 1, VALUES(token))), holder = VALUES(holder),
    session = VALUES(session)
)sql";

constexpr std::string_view fence_of_name = R"sql(
  INSERT INTO {fence} (name, holder, token, session)
  SELECT ?, ?, LAST_INSERT_ID({us}), {me} FROM DUAL WHERE IS_USED_LOCK({key}) = {me}
  ON DUPLICATE KEY UPDATE token = LAST_INSERT_ID(GREATEST({fence}.token + 1, VALUES(token))),
    holder = VALUES(holder), session = VALUES(session)
)sql";

std::string whole_seconds(nanoseconds time) {
  return std::to_string(std::max<std::int64_t>(std::chrono::floor<std::chrono::seconds>(time).count(), 1));
}

}  // namespace

ForUpdateStatements for_update_statements(std::string_view schema) {
  const Fillings common = {{"row_lock", qualified(schema, "row_lock")}};
  const auto statement = [&](std::string_view text, const char* word) { return Statement{fill(text, common), word}; };
  return {.ensure = statement(ensure, "row_lock.ensure"),
          .set_patience = {"SET innodb_lock_wait_timeout = #", "set_patience"},
          .begin = {"BEGIN", "begin"},
          .try_lock = statement(try_lock, "row_lock.try_lock"),
          .lock = statement(lock, "row_lock.lock"),
          .fence = statement(fence, "row_lock.fence"),
          .commit = {"COMMIT", "commit"},
          .rollback = {"ROLLBACK", "rollback"},
          .lock_in_transaction = statement(lock_in_transaction, "row_lock.lock_in_transaction"),
          .limit_wait = {"SET @dlock_wait = @@innodb_lock_wait_timeout, innodb_lock_wait_timeout = #", "limit_wait"},
          .restore_wait = {"SET innodb_lock_wait_timeout = @dlock_wait", "restore_wait"}};
}

std::string key_of(std::string_view schema, LockKind kind, KeyNames keys, std::string_view name) {
  if (keys == KeyNames::verbatim) return "CONVERT(" + std::string(name) + " USING utf8mb4)";
  return user_lock("named", schema, table_of("fence", kind), name);
}

NamedStatements named_statements(std::string_view schema, LockKind kind, KeyNames keys) {
  const std::string table = table_of("fence", kind);
  const Fillings common = {{"fence", qualified(schema, table)}, {"key", key_of(schema, kind, keys, "?")}};
  const auto statement = [&](std::string_view text, const char* of) {
    return Statement{fill(text, common), table + "." + of};
  };
  return {.get = statement("SELECT GET_LOCK({key}, # / 1000000), {me}", "get"),
          .fence = statement(fence_of_name, "fence"),
          .release = statement("SELECT RELEASE_LOCK({key})", "release")};
}

namespace {

// --- On a session of their own ---------------------------------------------------------------------------------------

class ForUpdateDialect final : public SessionDialect {
 public:
  explicit ForUpdateDialect(std::string_view schema) : use_(for_update_statements(schema)) {}

  [[nodiscard]] const char* word() const override { return "transaction"; }

  [[nodiscard]] std::vector<Command> ask(const LockRequest& request, Patience patience, bool used) const override {
    std::vector<Command> commands = anew(used);
    if (patience) commands.push_back({.statement = &use_.set_patience, .params = {whole_seconds(*patience)}});
    commands.push_back({.statement = &use_.begin});
    commands.push_back({.statement = patience ? &use_.lock : &use_.try_lock, .params = {request.name}});
    commands.push_back({.statement = &use_.fence, .params = {holder_text(request), request.name}});
    return commands;
  }
  [[nodiscard]] Reply read(const Results& results, const ServerInfo& /*server*/) const override {
    return {.no_row = results.at(results.size() - 2).empty(),
            .token = static_cast<std::int64_t>(results.back().inserted)};
  }
  [[nodiscard]] std::vector<Command> prepare(const LockRequest& request, nanoseconds wait, bool used) const override {
    std::vector<Command> commands = anew(used);
    commands.push_back({.statement = &use_.set_patience, .params = {whole_seconds(wait)}});
    commands.push_back({.statement = &use_.begin});
    commands.push_back({.statement = &use_.ensure, .params = {request.name}});
    commands.push_back({.statement = &use_.commit});
    return commands;
  }

  [[nodiscard]] Command free(const LockRequest& /*request*/) const override { return {.statement = &use_.commit}; }
  [[nodiscard]] Command clean(const LockRequest& /*request*/) const override { return {.statement = &use_.rollback}; }

 private:
  [[nodiscard]] std::vector<Command> anew(bool used) const {
    if (!used) return {};
    return {{.statement = &use_.rollback}};
  }

  const ForUpdateStatements use_;
};

class NamedDialect final : public SessionDialect {
 public:
  NamedDialect(std::string_view schema, KeyNames keys)
      : plain_(named_statements(schema, LockKind::lock, keys)),
        elections_(named_statements(schema, LockKind::election, keys)) {}

  [[nodiscard]] const char* word() const override { return "waiting"; }
  [[nodiscard]] bool refuses_busy_locks() const noexcept override { return false; }

  // An error of the second command does not undo the grant of the first one.
  [[nodiscard]] std::vector<Command> ask(const LockRequest& request, Patience patience, bool used) const override {
    const NamedStatements& use = of(request);
    std::vector<Command> commands;
    if (used) commands.push_back(clean(request));
    const auto us = std::chrono::ceil<std::chrono::microseconds>(patience.value_or(nanoseconds(0))).count();
    commands.push_back({.statement = &use.get, .params = {request.name, std::to_string(us)}});
    commands.push_back({.statement = &use.fence, .params = {request.name, holder_text(request), request.name}});
    return commands;
  }
  [[nodiscard]] Reply read(const Results& results, const ServerInfo& server) const override {
    const Rows& got = results.at(results.size() - 2);
    if (got.is_null(0, 0)) return {.why = {errc::unavailable, "the server ended the wait in GET_LOCK()"}};
    if (!got.flag(0, 0)) return {.busy = true};
    if (got.number(0, 1) != server.backend_pid) {
      return {.why = {errc::unsupported, server.endpoint +
                                             ": a proxy lends the server's sessions to several clients, but locks of "
                                             "strategy=named live in sessions; use strategy=table"}};
    }
    return {.token = results.back().affected > 0 ? static_cast<std::int64_t>(results.back().inserted) : 0};
  }

  [[nodiscard]] Command free(const LockRequest& request) const override { return clean(request); }
  [[nodiscard]] Command clean(const LockRequest& request) const override {
    return {.statement = &of(request).release, .params = {request.name}};
  }

 private:
  [[nodiscard]] const NamedStatements& of(const LockRequest& request) const {
    return request.kind == LockKind::election ? elections_ : plain_;
  }

  const NamedStatements plain_;
  const NamedStatements elections_;
};

}  // namespace

std::unique_ptr<SessionDialect> for_update_dialect(std::string_view schema) {
  return std::make_unique<ForUpdateDialect>(schema);
}

std::unique_ptr<SessionDialect> named_dialect(std::string_view schema, KeyNames keys) {
  return std::make_unique<NamedDialect>(schema, keys);
}

}  // namespace dlock::mysql
