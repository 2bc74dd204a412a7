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
struct ForUpdateStatements;

class SessionDialect {
 public:
  using Patience = std::optional<std::chrono::nanoseconds>;
  struct Reply {
    bool no_row = false;                               // there is nothing to lock yet: prepare(), and ask again
    std::optional<std::int64_t> token = std::nullopt;  // nullopt: an answer that makes no sense
  };

  SessionDialect() = default;
  SessionDialect(const SessionDialect&) = delete;
  SessionDialect& operator=(const SessionDialect&) = delete;
  virtual ~SessionDialect() = default;

  [[nodiscard]] virtual Purpose purpose() const = 0;
  // Why no lock can live in a session of that server.
  [[nodiscard]] virtual std::optional<Failure> unfit(const ServerInfo& server) const = 0;

  // Asks for the lock, and waits in the server for so long. used: the session has asked for this lock before, and may
  // have it because of that.
  [[nodiscard]] virtual std::vector<Command> ask(const LockRequest& request, Patience patience, bool used) const = 0;
  [[nodiscard]] virtual Reply read(const Results& results, const ServerInfo& server) const = 0;
  // About an answer without a token.
  [[nodiscard]] virtual Failure senseless(const LockRequest& request, const ServerInfo& server) const = 0;
  // What was asked ended because another owner has the lock.
  [[nodiscard]] virtual bool is_busy(const Outcome& outcome, bool waited) const = 0;
  // Makes what is to be locked.
  [[nodiscard]] virtual std::vector<Command> prepare(const LockRequest& request, std::chrono::nanoseconds patience,
                                                     bool used) const = 0;

  // Gives back what the session has. The answer says whether it had it.
  [[nodiscard]] virtual Command free(const LockRequest& request) const = 0;
  [[nodiscard]] virtual bool was_held(const Results& results) const = 0;
  // Makes sure that the session has nothing, whatever was asked.
  [[nodiscard]] virtual Command clean(const LockRequest& request) const = 0;
};

// All that is referred to outlives them.
[[nodiscard]] std::unique_ptr<SessionDialect> advisory_dialect(const Options& options, const AdvisorySql& sql);
[[nodiscard]] std::unique_ptr<SessionDialect> for_update_dialect(const Options& options,
                                                                 const ForUpdateStatements& statements);

}  // namespace dlock::postgres
