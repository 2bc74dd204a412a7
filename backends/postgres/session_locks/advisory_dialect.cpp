// strategy=advisory: a session waits in the server for an advisory lock, which it has until it unlocks it.
#include "backends/postgres/options.hpp"
#include "backends/postgres/session_locks/session_dialect.hpp"
#include "backends/postgres/sessions/session_fitness.hpp"
#include "backends/postgres/sql/lock_key.hpp"

namespace dlock::postgres {

namespace {

class AdvisoryDialect final : public SessionDialect {
 public:
  AdvisoryDialect(const Options& options, const AdvisorySql& sql) : options_(options), sql_(sql) {}

  [[nodiscard]] const char* word() const override { return "waiting"; }

  // An error, lock_timeout among them, may come in the moment of the grant, and does not undo that.
  [[nodiscard]] std::vector<Command> ask(const LockRequest& request, Patience patience, bool used) const override {
    const LockKey key = key_of(request);
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(*patience).count();
    std::vector<Command> commands;
    if (used) commands.push_back(clean(request));
    commands.push_back(
        {.statement = &sql_.of(key).lock_slice,
         .params = {key.parameter, token_row(options_, request.name), holder_text(request), std::to_string(ms)}});
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
    return {.statement = &sql_.of(key).unlock, .params = {text_array({key.parameter})}};
  }

 private:
  [[nodiscard]] LockKey key_of(const LockRequest& request) const {
    return lock_key(options_, request.name, request.kind, request.mode);
  }

  const Options& options_;
  const AdvisorySql& sql_;
};

}  // namespace

std::unique_ptr<SessionDialect> advisory_dialect(const Options& options, const AdvisorySql& sql) {
  return std::make_unique<AdvisoryDialect>(options, sql);
}

}  // namespace dlock::postgres
