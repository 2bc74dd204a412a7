// strategy=for-update: a transaction locks a row, and has it until it ends. See statements.hpp for the SQL.
#include "backends/postgres/options.hpp"
#include "backends/postgres/session_locks/session_dialect.hpp"
#include "backends/postgres/sql/sqlstate.hpp"
#include "backends/postgres/sql/statements.hpp"
#include "util/names.hpp"

namespace dlock::postgres {

namespace {

using std::chrono::nanoseconds;

class ForUpdateDialect final : public SessionDialect {
 public:
  ForUpdateDialect(const Options& options, const ForUpdateStatements& statements)
      : options_(options), use_(statements) {}

  [[nodiscard]] Purpose purpose() const override { return {.word = "transaction", .session_lease = options_.lease}; }
  [[nodiscard]] std::optional<Failure> unfit(const ServerInfo& server) const override {
    if (server.pooled) {
      return Failure{errc::unsupported,
                     server.endpoint +
                         ": there is a pooler in front of the server, and strategy=for-update needs sessions of its "
                         "own; connect to the server itself, use strategy=table, or set pooler=session if the pooler "
                         "keeps a session for each client"};
    }
    if (server.standby)
      return Failure{errc::unavailable, server.endpoint + ": it is a standby; locks need the primary"};
    return std::nullopt;
  }

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
    return {.no_row = rows.empty(), .token = rows.number(0, 0)};
  }
  [[nodiscard]] Failure senseless(const LockRequest& request, const ServerInfo& /*server*/) const override {
    return {errc::protocol, "the token of lock " + util::quoted(request.name) + " is not a positive number"};
  }
  [[nodiscard]] bool is_busy(const Outcome& outcome, bool waited) const override {
    return meaning_of(outcome).remedy == Remedy::busy || (waited && is_end_of_patience(outcome));
  }
  // In a transaction of its own, so that others see the row before it is locked.
  [[nodiscard]] std::vector<Command> prepare(const LockRequest& request, nanoseconds patience,
                                             bool used) const override {
    std::vector<Command> commands = anew(used);
    commands.push_back(set_patience(patience));
    commands.push_back({.statement = &use_.ensure, .params = {request.name}});
    return commands;
  }

  [[nodiscard]] Command free(const LockRequest& /*request*/) const override { return {.statement = &use_.commit}; }
  [[nodiscard]] bool was_held(const Results& /*results*/) const override { return true; }
  [[nodiscard]] Command clean(const LockRequest& /*request*/) const override { return {.statement = &use_.rollback}; }

 private:
  [[nodiscard]] std::vector<Command> anew(bool used) const {
    if (!used) return {};
    return {{.statement = &use_.rollback}};
  }
  [[nodiscard]] Command set_patience(nanoseconds patience) const {
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(patience).count();
    return {.statement = &use_.set_patience, .params = {std::to_string(ms)}};
  }

  const Options& options_;
  const ForUpdateStatements& use_;
};

}  // namespace

std::unique_ptr<SessionDialect> for_update_dialect(const Options& options, const ForUpdateStatements& statements) {
  return std::make_unique<ForUpdateDialect>(options, statements);
}

}  // namespace dlock::postgres
