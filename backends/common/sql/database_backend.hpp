// The backend of a database. RowLocks or SessionLocks keep the locks, as the strategy says; Inspection answers
// questions for all strategies.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/common/sql/commands.hpp"
#include "backends/common/sql/inspection.hpp"
#include "backends/common/sql/options.hpp"
#include "backends/common/sql/row_locks.hpp"
#include "backends/common/sql/schema.hpp"
#include "backends/common/sql/services.hpp"
#include "backends/common/sql/session.hpp"
#include "backends/common/sql/session_locks.hpp"

namespace dlock::sql {

// The parts of a backend that each service has of its own. It outlives them.
class Database {
 public:
  Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  virtual ~Database() = default;

  [[nodiscard]] virtual const DatabaseOptions& options() const noexcept = 0;
  [[nodiscard]] virtual const Dialect& dialect() const noexcept = 0;
  [[nodiscard]] virtual std::unique_ptr<Connection> connect(Executor& executor, const Purpose& purpose,
                                                            Connection::Listener& listener) const = 0;
  // The schema's name in messages.
  [[nodiscard]] virtual std::string schema_in_words() const = 0;
  [[nodiscard]] virtual std::unique_ptr<SchemaSteps> schema_steps() const = 0;
  [[nodiscard]] virtual std::unique_ptr<Inspection> inspection(Commands& commands) const = 0;
  // Examines a server for dangers to locks. Answers within the response timeout. Changes nothing.
  virtual void diagnose(Commands& commands, Backend::Handler<std::vector<Finding>> done) const = 0;
  // The strategies whose locks live in rows: a kind of locks has a table. capabilities: as capabilities_of() says.
  [[nodiscard]] virtual std::unique_ptr<RowLocks> row_locks(const Services& services, Capabilities capabilities,
                                                            LockKind kind) const = 0;
  // The strategies whose locks live in sessions: tries and waits have a session each, or tries have one together.
  [[nodiscard]] virtual std::unique_ptr<SessionLocks> session_locks(const Services& services,
                                                                    Capabilities capabilities) const = 0;
};

// Throws Error(invalid_argument) if there is a password file that cannot be read.
[[nodiscard]] std::unique_ptr<Backend> make_backend(BackendHost& host, std::unique_ptr<const Database> database);

}  // namespace dlock::sql
