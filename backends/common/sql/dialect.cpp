#include "backends/common/sql/dialect.hpp"

namespace dlock::sql {

Meaning Dialect::meaning_of(const Outcome& outcome) const noexcept {
  if (outcome.problem == Problem::refused) return find(outcome.server_code).value_or(meanings::unknown);
  if (outcome.problem == Problem::unknown_outcome) return meanings::cut_off;
  if (outcome.failure.code == errc::unavailable) return meanings::elsewhere;
  for (const errc code :
       {errc::access_denied, errc::invalid_argument, errc::unsupported, errc::closed, errc::ambiguous}) {
    if (outcome.failure.code == code) return {Remedy::final, Execution::no, code};
  }
  return meanings::nonsense;
}

Failure Dialect::failure_of(const Outcome& outcome) const {
  if (outcome.problem != Problem::refused) return outcome.failure;
  return {meaning_of(outcome).code, outcome.failure.detail + advice(outcome.server_code)};
}

bool Dialect::may_be_ones_fault(const Outcome& outcome) const noexcept {
  if (outcome.problem != Problem::refused) return false;
  const auto meaning = find(outcome.server_code);
  if (!meaning) return true;
  const bool concerns_all = meaning->code == errc::access_denied || meaning->code == errc::unsupported;
  return meaning->remedy == Remedy::busy || (meaning->remedy == Remedy::final && !concerns_all);
}

std::optional<Failure> Dialect::unfit_for_locks(const ServerInfo& server) const {
  if (!server.pooled) return std::nullopt;
  return needs_own_session(
      server, "a pooler shares the server's sessions among its clients, so all of them would hold the lock of one");
}

Failure needs_own_session(const ServerInfo& server, const std::string& why) {
  return {errc::unsupported, server.endpoint + ": " + why +
                                 "; connect to the server itself, or to a pooler that keeps a session for each client "
                                 "(pooler=session), or use strategy=table"};
}

}  // namespace dlock::sql
