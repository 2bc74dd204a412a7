#include "backends/postgres/sessions/session_fitness.hpp"

#include <string>

namespace dlock::postgres {

namespace {

Failure needs_own_session(const ServerInfo& server, const std::string& why) {
  return {errc::unsupported, server.endpoint + ": " + why +
                                 "; connect to the server itself, or to a pooler that keeps a session for each client "
                                 "(pooler=session), or use strategy=table"};
}

}  // namespace

std::optional<Failure> unfit_for_locks(const ServerInfo& server) {
  if (!server.pooled) return std::nullopt;
  return needs_own_session(
      server, "a pooler shares the server's sessions among its clients, so all of them would hold the lock of one");
}

Failure locks_nothing(const ServerInfo& server) {
  return {errc::unsupported,
          server.endpoint +
              ": the server granted an advisory lock, but pg_locks does not show it, so its advisory "
              "locks exclude no client; use strategy=table"};
}

Failure other_session(const ServerInfo& server) {
  return needs_own_session(server,
                           "a different session answered, so a pooler shares the server's sessions among its clients, "
                           "and all of them would hold the lock of one");
}

}  // namespace dlock::postgres
