// One connection to PostgreSQL as the rest of the backend sees it: queries go out, answers come back in order. The real
// one uses libpq (libpq_connection.hpp); tests have their own.
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

namespace dlock::postgres {

struct Options;

// A statement that is used again and again: prepared at its first use on a connection, except behind a pooler. Its
// address is its identity; it outlives the connections.
struct Statement {
  std::string sql;        // one statement, with $1, $2, ... and casts where their types are not obvious
  std::string word = {};  // its name, with that of its table where it has one: "lease.acquire", "begin"
};

// As text. No value: NULL. A text with a zero byte in it is refused without being sent.
using Parameter = std::optional<std::string>;

// Asks nothing, and takes no snapshot. A SELECT in an open transaction keeps its own until the next statement, and
// CREATE INDEX CONCURRENTLY, which may well run under the lock, would wait for the end of that.
inline constexpr const char* heartbeat_sql = "SHOW transaction_isolation";

struct Command {
  const Statement* statement = nullptr;  // or
  std::string text = {};                 // one statement, used once: BEGIN, LISTEN, a question of a diagnosis
  std::vector<Parameter> params = {};
};

// What a command answered: rows of texts. A missing value is NULL.
struct Rows {
  using Row = std::vector<std::optional<std::string>>;
  std::vector<Row> rows = {};
  std::uint64_t affected = 0;  // by INSERT, UPDATE, DELETE; the number of rows of a SELECT

  [[nodiscard]] bool empty() const noexcept { return rows.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return rows.size(); }
  // Empty for NULL, and where there is no such row or column.
  [[nodiscard]] std::string text(std::size_t row, std::size_t column) const;
  [[nodiscard]] bool is_null(std::size_t row, std::size_t column) const noexcept;
  // nullopt: no number of 64 bits.
  [[nodiscard]] std::optional<std::int64_t> number(std::size_t row, std::size_t column) const noexcept;
  [[nodiscard]] bool flag(std::size_t row, std::size_t column) const noexcept;  // a boolean that is true
};

// One for each command of the query; none where there is a problem.
using Results = std::vector<Rows>;

enum class Problem {
  none,
  not_sent,         // it has had no effect and never will
  unknown_outcome,  // sent, and the connection broke before the answer: it may have been carried out, or may still be
  refused,          // by the server, which says why in sqlstate. Its transaction has been rolled back; a session's
                    // advisory lock that was taken before the error has not been.
};

struct Outcome {
  Problem problem = Problem::none;
  // For the caller, where there is a problem. Never contains a password. The code of what was refused is that of its
  // sqlstate; else errc::unavailable (not_sent) or errc::ambiguous (unknown_outcome).
  Failure failure = {};
  // Five characters: where it was refused, and of unknown_outcome where the server ended the session instead of
  // answering, with all that the session held.
  std::string sqlstate = {};
  std::size_t failed_command = 0;  // where it was refused; as many as there are: the commit was
  TimePoint sent = {};             // just before it was handed to the network; never for not_sent
};

using Handler = std::function<void(const Outcome& outcome, const Results& results)>;

// Commands that go out together in one round trip. Unless one of them is BEGIN or COMMIT they are a transaction of
// their own, which nothing before and after has a part in: when one is refused, those behind it are not carried out,
// but the next query is. A transaction left open by BEGIN and a later error wants a ROLLBACK.
struct Query {
  std::vector<Command> commands = {};
  Handler done = {};  // may be empty: the answer is not wanted
};

// What a connection is for. It decides on what the server is asked to do about it.
struct Purpose {
  std::string word = "commands";  // for application_name, where people look at pg_stat_activity: commands, listen, ...
  // Locks live and die with this session: the server ends it when it was not heard of for so long, and the network is
  // watched at least as closely. Zero: no lock does.
  std::chrono::nanoseconds session_lease{};
  // No statement waits longer for another client's lock in the server, on a row or on a table. Zero: as long as
  // that takes.
  std::chrono::nanoseconds lock_patience{};
};

struct ServerInfo {
  int version = 0;      // 150020 is 15.20
  int backend_pid = 0;  // what pg_backend_pid() said
  // Sessions are not ours alone: no prepared statements, no settings, no LISTEN, no session's advisory locks.
  bool pooled = false;
  bool standby = false;
  bool read_only = false;             // by a default of the role's or the database's that cannot be changed from here
  bool ends_silent_sessions = false;  // Purpose::session_lease is in force
  bool encrypted = false;             // by TLS, as far as we are concerned: behind a pooler is the pooler's affair
  std::string endpoint = {};          // "host:port/db", the one of several that it is
};

// In tasks only.
class Connection {
 public:
  // None is called inside a call to the connection but receive(). Any of them, and any handler, may destroy it.
  class Listener {
   public:
    Listener() = default;
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;
    // It stands and may be used; server() says what it leads to. At most once.
    virtual void connection_ready() = 0;
    // It could not be made, or is broken, or the server said that it ends it. All queries have been answered; nothing
    // follows.
    virtual void connection_lost(const Failure& why) = 0;
    virtual void connection_notified(const std::string& channel, const std::string& payload) = 0;

   protected:
    ~Listener() = default;
  };

  Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  // Closes it without waiting for anything; what the network has not taken is thrown away. No handler and no listener
  // is called any more.
  virtual ~Connection() = default;

  // Starts connecting, once. connection_ready() or connection_lost() follows, at the latest at the deadline.
  virtual void open(TimePoint deadline) = 0;

  // True from connection_ready() on, until it breaks: false already while the handlers hear of that.
  [[nodiscard]] virtual bool usable() const noexcept = 0;
  // Once it was usable.
  [[nodiscard]] virtual const ServerInfo& server() const noexcept = 0;

  // The handler is called exactly once unless the connection is destroyed first, never inside the call. Queries are
  // sent and answered in the order of the calls; what is asked in one turn of the engine goes out together. Where it
  // is not usable (any more) the answer is not_sent.
  virtual void send(Query query) = 0;

  // Takes in what has arrived already, without waiting for the engine's next turn. May report anything.
  virtual void receive() = 0;

  // Gives it up: the queries are answered, then connection_lost(why), all of it inside the call.
  virtual void break_off(const Failure& why) = 0;
};

// Executor, options and listener outlive the connection.
using ConnectionFactory =
    std::function<std::unique_ptr<Connection>(Executor&, const Options&, const Purpose&, Connection::Listener&)>;

}  // namespace dlock::postgres
