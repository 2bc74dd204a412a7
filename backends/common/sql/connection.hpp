// One connection to a database server: queries go out, answers come back in order. Each service has one, and its tests
// another.
//
//   connection.send({.commands = {{.statement = &statements.renew, .params = {name, owner, "30000"}}},
//                    .done = [](const Outcome& outcome, const Results& results) { ... }});
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dlock/clock.hpp>
#include <dlock/error.hpp>
#include <dlock/spi/executor.hpp>

namespace dlock::sql {
// A statement that a connection may prepare at its first use. Its address is its identity; it outlives the connections.
struct Statement {
  std::string sql;        // one statement, with the service's marks for parameters
  std::string word = {};  // its name, with that of its table where it has one: "lease.acquire", "begin"
};

// As text. No value: NULL. The connection refuses a text that contains a zero byte, without sending it.
using Parameter = std::optional<std::string>;

struct Command {
  const Statement* statement = nullptr;  // or
  std::string text = {};                 // one statement, used once: BEGIN, LISTEN, a question of a diagnosis
  std::vector<Parameter> params = {};
};

// The answer to a command: rows of texts. A missing value is NULL.
struct Rows {
  using Row = std::vector<std::optional<std::string>>;
  std::vector<Row> rows = {};
  std::uint64_t affected = 0;  // by INSERT, UPDATE, DELETE; the number of rows of a SELECT
  std::uint64_t inserted = 0;  // MySQL's LAST_INSERT_ID, where the statement set it

  [[nodiscard]] bool empty() const noexcept { return rows.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return rows.size(); }
  // Empty for NULL, and if there is no such row or column.
  [[nodiscard]] std::string text(std::size_t row, std::size_t column) const;
  [[nodiscard]] bool is_null(std::size_t row, std::size_t column) const noexcept;
  // nullopt: no number of 64 bits.
  [[nodiscard]] std::optional<std::int64_t> number(std::size_t row, std::size_t column) const noexcept;
  // Of a number of milliseconds. Too many become nanoseconds::max(): a row may expire in the year 9999.
  [[nodiscard]] std::optional<std::chrono::nanoseconds> duration(std::size_t row, std::size_t column) const noexcept;
  [[nodiscard]] bool flag(std::size_t row, std::size_t column) const noexcept;  // "t" or "1": true
};

// One for each command of the query; none if there is a problem.
using Results = std::vector<Rows>;

enum class Problem {
  none,
  not_sent,         // it has had no effect and never will
  unknown_outcome,  // sent, and the connection broke before the answer: it may have been carried out, or may still be
  refused,          // by the server, with a code. Its transaction has been rolled back. A lock of the session that was
                    // taken before the error remains.
};

struct Outcome {
  Problem problem = Problem::none;
  // For the caller, if there is a problem. Never contains a password. Its code is that of the server's (refused),
  // errc::unavailable (not_sent) or errc::ambiguous (unknown_outcome).
  Failure failure = {};
  // The service's own, as PostgreSQL's SQLSTATE: of a refusal, and of unknown_outcome if the server ended the session,
  // with all that it held, instead of answering.
  std::string server_code = {};
  std::size_t failed_command = 0;  // of a refusal; the number of commands: the commit was refused
  TimePoint sent = {};             // just before it was sent; never for not_sent
};

using Handler = std::function<void(const Outcome& outcome, const Results& results)>;

// Commands that go out together in one round trip. Unless one of them is BEGIN or COMMIT, they are one transaction. If
// the server refuses a command, it does not execute those behind it; the next query is not affected. After BEGIN and a
// later error, a ROLLBACK must follow.
struct Query {
  std::vector<Command> commands = {};
  Handler done = {};  // may be empty
};

// The purpose of a connection decides on the settings of its session.
struct Purpose {
  std::string word = "commands";  // for an administrator: commands, listen, ...
  // Locks live in this session: the server ends it after this time without a message from the client, and the network
  // is probed at least as often. Zero: no locks live in it.
  std::chrono::nanoseconds session_lease{};
  // No statement waits longer for another client's lock on a row or on a table. Zero: no limit.
  std::chrono::nanoseconds lock_patience{};
};

struct ServerInfo {
  int version = 0;      // PostgreSQL: 150020 is 15.20; MySQL: 101119 is 10.11.19
  int backend_pid = 0;  // what the server calls the session
  // Other clients use the session, too: no prepared statements, no settings, no notifications, no locks of a session.
  bool pooled = false;
  bool standby = false;
  bool read_only = false;             // by a default of the role or the database that this session cannot change
  bool ends_silent_sessions = false;  // Purpose::session_lease is in force
  bool encrypted = false;             // by TLS, up to the server or the pooler
  bool many_writers = false;          // Galera: another node may grant a lock of a session, or lock a row, as well
  bool retries = false;               // Galera: it may execute a statement again by itself
  std::string endpoint = {};          // "host:port/db" of the host that answered
};

// In tasks only.
class Connection {
 public:
  // The connection calls none of them inside a call to it, except receive() and break_off(). Each of them, and each
  // handler, may destroy it.
  class Listener {
   public:
    Listener() = default;
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;
    // It may be used, and server() is known. At most once.
    virtual void connection_ready() = 0;
    // It could not be made, or is broken, or the server announced its end. All queries have been answered; nothing
    // follows.
    virtual void connection_lost(const Failure& why) = 0;
    virtual void connection_notified(const std::string& channel, const std::string& payload) = 0;

   protected:
    ~Listener() = default;
  };

  Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  // Closes it without waiting, and discards bytes that the network has not taken. No handler and no listener is called
  // any more.
  virtual ~Connection() = default;

  // Starts connecting, once. connection_ready() or connection_lost() follows, at the latest at the deadline.
  virtual void open(TimePoint deadline) = 0;

  // True from connection_ready() on, until it breaks; then false before the handlers are called.
  [[nodiscard]] virtual bool usable() const noexcept = 0;
  // Once it was usable.
  [[nodiscard]] virtual const ServerInfo& server() const noexcept = 0;

  // Calls the handler exactly once, unless the connection is destroyed first, and never inside the call. Queries are
  // sent and answered in the order of the calls; those of one turn of the engine go out together. If the connection is
  // not usable, the outcome is not_sent.
  virtual void send(Query query) = 0;

  // Reads the bytes that have arrived, without waiting for the engine's next turn. May call any handler or listener.
  virtual void receive() = 0;

  // Closes it: answers the queries, then calls connection_lost(why), all of it inside the call.
  virtual void break_off(const Failure& why) = 0;
};

// Executor and listener outlive the connection.
using ConnectionFactory = std::function<std::unique_ptr<Connection>(Executor&, const Purpose&, Connection::Listener&)>;

}  // namespace dlock::sql
