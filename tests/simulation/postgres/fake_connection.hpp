// A PostgreSQL server in memory, played by the test or by FakePostgres, and connections to it: no sockets, no time but
// that of the clients' executors.
//
//   FakeServer server;
//   PostgresBackend backend(host, options, server.connections());
//   server.reply = [](const FakeQuery& query) { return FakeReply::of({{"a", "t"}}); };
//
// As with a real one, answers come later, in order, and one that is held back holds back those behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backends/postgres/sql/connection.hpp"

namespace dlock::postgres {

struct FakeQuery {
  std::vector<Command> commands = {};
  Purpose purpose = {};
  int connection = 0;  // the first is 1
  TimePoint sent = {};
  int process = 0;           // that the connection belongs to
  std::uint64_t number = 0;  // on all connections; the first is 1

  // Of its first command.
  [[nodiscard]] const std::string& sql() const {
    const Command& first = commands.front();
    return first.statement != nullptr ? first.statement->sql : first.text;
  }
  // Of its last command that has any; empty for NULL.
  [[nodiscard]] std::string param(std::size_t index) const;
};

// A session sends it by itself, to show that it lives.
[[nodiscard]] inline bool is_heartbeat(const FakeQuery& query) {
  return query.commands.size() == 1 && query.sql() == heartbeat_sql;
}

struct FakeReply {
  bool is_held = false;       // answered by FakeServer::answer(), or never
  Results results = {};       // by default no row for each command
  std::string sqlstate = {};  // not empty: refused
  std::size_t failed_command = 0;

  // The rows of a lone command.
  [[nodiscard]] static FakeReply of(std::vector<Rows::Row> rows) {
    const auto affected = rows.size();
    return {.results = {{.rows = std::move(rows), .affected = affected}}};
  }
  [[nodiscard]] static FakeReply refused(std::string sqlstate, std::size_t failed_command = 0) {
    return {.sqlstate = std::move(sqlstate), .failed_command = failed_command};
  }
  [[nodiscard]] static FakeReply held() { return {.is_held = true}; }
};

class FakeServer {
 public:
  FakeServer() = default;
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  // For a client of that process. Its answers run as tasks of the client's executor.
  [[nodiscard]] ConnectionFactory connections(int process = 0);

  // The fate of the next attempts to connect.
  enum class Dialling { accept, silence, fail, refuse_password };
  Dialling dialling = Dialling::accept;
  std::set<int> unreachable;  // processes: their attempts fail
  // How many connections it has; it refuses more. nullopt: any number.
  std::optional<std::size_t> room;
  // The next connections report this; backend_pid and endpoint are the fake's.
  ServerInfo info{.version = 150020};

  // By default everything is answered, without rows. Heartbeats are not asked about unless `replies_to_heartbeats`.
  std::function<FakeReply(const FakeQuery&)> reply;
  bool replies_to_heartbeats = false;
  // Called for a connection that was made, and at its end, whichever side ended it.
  std::function<void(int connection, int process, const Purpose&)> opened;
  std::function<void(int connection)> gone;

  // Of a query that was held back, unless its connection is gone.
  void answer(int connection, std::uint64_t query, const FakeReply& reply);
  // All of them, or one. sqlstate: why the server ended the session, if it did.
  void break_connections(const std::string& why = "the fake server is gone", int connection = 0,
                         const std::string& sqlstate = {});
  void notify(const std::string& channel, const std::string& payload, int connection = 0);
  // Nothing is delivered to these clients any more, and nothing they send arrives.
  void bury(int process);

  // --- What happened; heartbeats do not count, except where they are asked for ---
  bool records = true;
  std::vector<FakeQuery> queries;
  int dialled = 0;
  [[nodiscard]] std::size_t open() const noexcept { return connections_.size(); }  // dialling among them
  [[nodiscard]] std::size_t connected() const noexcept;

 private:
  class FakeConnection;

  std::uint64_t asked_ = 0;
  std::vector<FakeConnection*> connections_;
};

}  // namespace dlock::postgres
