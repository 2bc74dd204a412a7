// The commands of a strategy whose locks live in sessions, on a DedicatedSession, and how to read their answers. No
// I/O.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/common/sql/connection.hpp"

namespace dlock::sql {

class SessionDialect {
 public:
  // How long the server waits. nullopt: not at all.
  using Patience = std::optional<std::chrono::nanoseconds>;
  struct Reply {
    bool no_row = false;     // there is nothing to lock yet: prepare(), and ask again
    bool busy = false;       // another owner has it; services that refuse a busy lock with an error leave this false
    std::int64_t token = 0;  // positive, or the answer is invalid
    Failure why = {};        // why it is invalid
  };

  SessionDialect() = default;
  SessionDialect(const SessionDialect&) = delete;
  SessionDialect& operator=(const SessionDialect&) = delete;
  virtual ~SessionDialect() = default;

  // The purpose of the sessions, for an administrator.
  [[nodiscard]] virtual const char* word() const = 0;

  // One text for each lock of the server: names may share one.
  [[nodiscard]] virtual std::string lock_of(LockKind kind, const std::string& name) const {
    return std::to_string(static_cast<int>(kind)) + ":" + name;
  }
  // Finds transactions that wait for the end of others, and so for waits in the server: see WaiterQueues. Answers rows
  // of how many transactions are open, and one that waits so, or NULL.
  [[nodiscard]] virtual std::optional<Statement> question_about_snapshots() const { return std::nullopt; }

  // Asks for the lock. The server waits only while another owner has it. used: the session has asked for this lock
  // before, and may have it because of that.
  [[nodiscard]] virtual std::vector<Command> ask(const LockRequest& request, Patience patience, bool used) const = 0;
  [[nodiscard]] virtual Reply read(const Results& results, const ServerInfo& server) const = 0;
  // Inserts the row that is to be locked.
  [[nodiscard]] virtual std::vector<Command> prepare(const LockRequest& /*request*/, std::chrono::nanoseconds /*wait*/,
                                                     bool /*used*/) const {
    return {};
  }

  // A refusal whose remedy is Remedy::busy says that the lock is busy. Otherwise only a row beside it is.
  [[nodiscard]] virtual bool refuses_busy_locks() const noexcept { return true; }

  // Releases the lock. Answers nothing, or whether the session had it.
  [[nodiscard]] virtual Command free(const LockRequest& request) const = 0;
  // Makes sure that the session has no lock, whatever it was granted.
  [[nodiscard]] virtual Command clean(const LockRequest& request) const = 0;
};

}  // namespace dlock::sql
