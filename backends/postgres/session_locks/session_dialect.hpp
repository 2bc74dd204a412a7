// What the strategies whose locks live in sessions ask of the server, over a session that one lock has for itself. No
// I/O.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/postgres/sql/connection.hpp"

namespace dlock::postgres {

struct Options;
class AdvisorySql;

class SessionDialect {
 public:
  // For how long the server waits. nullopt: not at all.
  using Patience = std::optional<std::chrono::nanoseconds>;
  struct Reply {
    bool no_row = false;     // there is nothing to lock yet: prepare(), and ask again
    std::int64_t token = 0;  // positive, or the answer makes no sense
    Failure why = {};        // it makes none
  };

  SessionDialect() = default;
  SessionDialect(const SessionDialect&) = delete;
  SessionDialect& operator=(const SessionDialect&) = delete;
  virtual ~SessionDialect() = default;

  // Of the sessions, for those who look at pg_stat_activity.
  [[nodiscard]] virtual const char* word() const = 0;

  // Asks for the lock; only another owner's is a reason to wait. used: the session has asked for this lock before, and
  // may have it because of that.
  [[nodiscard]] virtual std::vector<Command> ask(const LockRequest& request, Patience patience, bool used) const = 0;
  [[nodiscard]] virtual Reply read(const Results& results, const ServerInfo& server) const = 0;
  // Makes what is to be locked.
  [[nodiscard]] virtual std::vector<Command> prepare(const LockRequest& /*request*/, std::chrono::nanoseconds /*wait*/,
                                                     bool /*used*/) const {
    return {};
  }

  // Gives back what the session has. Answers nothing, or in the end whether it had it.
  [[nodiscard]] virtual Command free(const LockRequest& request) const = 0;
  // Makes sure that the session has nothing, whatever was asked.
  [[nodiscard]] virtual Command clean(const LockRequest& request) const = 0;
};

// All that is referred to outlives them.
[[nodiscard]] std::unique_ptr<SessionDialect> advisory_dialect(const Options& options, const AdvisorySql& sql);
[[nodiscard]] std::unique_ptr<SessionDialect> for_update_dialect(const Options& options);

}  // namespace dlock::postgres
