// strategy=for-update: a transaction locks a row, and has it until it ends. See statements.hpp for the SQL.
#include "backends/postgres/options.hpp"
#include "backends/postgres/session_locks/session_dialect.hpp"
#include "backends/postgres/sql/statements.hpp"

namespace dlock::postgres {

namespace {

using std::chrono::nanoseconds;

class ForUpdateDialect final : public SessionDialect {
 public:
  explicit ForUpdateDialect(const Options& options) : use_(for_update_statements(options.schema, options.durability)) {}

  [[nodiscard]] const char* word() const override { return "transaction"; }

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
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(patience).count();
    return {.statement = &use_.set_patience, .params = {std::to_string(ms)}};
  }

  const ForUpdateStatements use_;
};

}  // namespace

std::unique_ptr<SessionDialect> for_update_dialect(const Options& options) {
  return std::make_unique<ForUpdateDialect>(options);
}

}  // namespace dlock::postgres
