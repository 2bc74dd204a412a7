#include "backends/postgres/sessions/session_fitness.hpp"

#include <string>

namespace dlock::postgres {

namespace {

constexpr const char* what_to_do =
    "connect to the server itself, or to a pooler that keeps a session for each client (pooler=session), or use "
    "strategy=table";

}  // namespace

std::optional<Failure> unfit_for_locks(const ServerInfo& server) {
  if (!server.pooled) return std::nullopt;
  return Failure{errc::unsupported, server.endpoint +
                                        ": a pooler shares the server's sessions among its clients, and locks of a "
                                        "session would be everybody's; " +
                                        what_to_do};
}

Failure other_session(const ServerInfo& server) {
  return {errc::unsupported, server.endpoint +
                                 ": another session answered than the one that was asked, so a pooler shares them "
                                 "among its clients, and locks of a session would be everybody's; " +
                                 what_to_do};
}

}  // namespace dlock::postgres
