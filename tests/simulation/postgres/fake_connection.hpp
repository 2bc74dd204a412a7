// A PostgreSQL server in memory, played by the test or by FakePostgres, and connections to it: no sockets, no time but
// that of the clients' executors.
//
//   FakeServer server;
//   const Dialling dialling{options, server.connections(), 5s, 5s};
//   server.reply = [&](const FakeQuery& query) { return query.uses(statements.release) ? FakeReply::of({{"t"}}) : ...
//   }; session.want(); engine.run();                                             // connected
//
// As with a real one, answers come later, in order, and one that is held back holds back those behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <dlock/duration.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/postgres/sql/connection.hpp"

namespace dlock::postgres {

struct FakeQuery {
  std::vector<Command> commands = {};
  Purpose purpose = {};
  int connection = 0;  // the first is 1
  TimePoint sent = {};
  int process = 0;           // that the connection belongs to
  std::uint64_t number = 0;  // on all connections; the first is 1

  [[nodiscard]] bool uses(const Statement& statement) const;
  // Of its first command.
  [[nodiscard]] const std::string& sql() const;
  // Of its last command that has any; empty for NULL.
  [[nodiscard]] std::string param(std::size_t index) const;
};

// What a session sends by itself to be heard of.
[[nodiscard]] bool is_heartbeat(const FakeQuery& query);

struct FakeReply {
  enum class Fate {
    answer,
    hold,  // answered by FakeServer::answer() or release(), or never
    lose,  // carried out, but the connection breaks before the answer
  };
  Fate fate = Fate::answer;
  Results results = {};       // by default no row for each command
  std::string sqlstate = {};  // not empty: refused; if it is lost, why the server ended the session
  std::size_t failed_command = 0;

  // The rows of a lone command.
  [[nodiscard]] static FakeReply of(std::vector<Rows::Row> rows);
  [[nodiscard]] static FakeReply refused(std::string sqlstate, std::size_t failed_command = 0);
  [[nodiscard]] static FakeReply held() { return {.fate = Fate::hold}; }
  [[nodiscard]] static FakeReply lost() { return {.fate = Fate::lose}; }
  [[nodiscard]] static FakeReply ended() { return {.fate = Fate::lose, .sqlstate = "57P01"}; }
};

class FakeConnection;

class FakeServer {
 public:
  FakeServer() = default;
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  // For a client of that process. What is sent to it runs as tasks of its executor.
  [[nodiscard]] ConnectionFactory connections(int process = 0);

  // What becomes of the next attempts to connect.
  enum class Dialling { accept, silence, fail, refuse_password };
  Dialling dialling = Dialling::accept;
  std::set<int> unreachable;  // processes: their attempts fail
  // Queries that are answered and not counted.
  std::function<std::optional<FakeReply>(const FakeQuery&)> aside;
  // How many connections it has; it refuses more. nullopt: any number.
  std::optional<std::size_t> room;
  // What the next connections are told; backend_pid and endpoint are the fake's.
  ServerInfo info{.version = 150020};

  // By default everything is answered, without rows. Heartbeats are not asked about unless `replies_to_heartbeats`.
  std::function<FakeReply(const FakeQuery&)> reply;
  bool replies_to_heartbeats = false;
  // Told of a connection that stands, and of its end, whoever ended it.
  std::function<void(const FakeConnection&)> opened;
  std::function<void(int connection)> gone;
  bool records = true;  // what happened

  // Of a query that was held back, unless its connection is gone.
  void answer(int connection, std::uint64_t query, FakeReply reply);
  // What was held back is answered as `reply` would now answer it; what was sent first comes first.
  // Unless it is `noticed` it lies in the network's buffers until somebody looks.
  void release(bool noticed = true);
  // All of them, or one. sqlstate: why the server ended the session, if it did.
  void break_connections(const std::string& why = "the fake server is gone", int connection = 0,
                         const std::string& sqlstate = {});
  void notify(const std::string& channel, const std::string& payload, int connection = 0);
  // Nothing is delivered to these clients any more, and nothing they send arrives.
  void bury(int process);

  // --- What happened; heartbeats do not count, except where they are asked for ---
  std::vector<FakeQuery> queries;
  int heartbeats = 0;
  int dialled = 0;
  [[nodiscard]] std::size_t open() const noexcept { return connections_.size(); }  // dialling among them
  [[nodiscard]] std::size_t connected() const noexcept;
  // Those of the same client for the same purpose, with that one.
  [[nodiscard]] std::size_t alike(const FakeConnection& connection) const noexcept;
  [[nodiscard]] std::size_t count(const Statement& statement) const;
  [[nodiscard]] std::size_t count(const std::string& sql) const;

 private:
  friend class FakeConnection;
  [[nodiscard]] FakeReply decide(const FakeQuery& query);

  [[nodiscard]] bool counts(const FakeQuery& query) const { return !is_heartbeat(query) || replies_to_heartbeats; }

  std::uint64_t asked_ = 0;
  std::vector<FakeConnection*> connections_;
};

class FakeConnection final : public Connection {
 public:
  FakeConnection(FakeServer& server, int process, Executor& executor, const Options& options, Purpose purpose,
                 Listener& listener);
  ~FakeConnection() override;

  [[nodiscard]] int number() const noexcept { return number_; }
  [[nodiscard]] int process() const noexcept { return process_; }
  [[nodiscard]] const Purpose& purpose() const noexcept { return purpose_; }
  [[nodiscard]] const Options& options() const noexcept { return options_; }

  void open(TimePoint deadline) override;
  [[nodiscard]] bool usable() const noexcept override { return state_ == State::ready; }
  [[nodiscard]] const ServerInfo& server() const noexcept override { return info_; }
  void send(Query query) override;
  void receive() override;
  void break_off(const Failure& why) override;

 private:
  friend class FakeServer;
  enum class State { connecting, ready, lost };
  struct InFlight {
    FakeQuery query;
    Handler done;
    FakeReply reply;
  };

  void post(std::function<void()> task);
  void accept();
  void deliver();
  void end(const Failure& why, const std::string& sqlstate);

  FakeServer& server_;
  const int process_;
  Executor& executor_;
  const Options& options_;
  const Purpose purpose_;
  Listener& listener_;
  const int number_;
  State state_ = State::connecting;
  bool buried_ = false;
  ServerInfo info_;
  Timer timer_;
  std::deque<InFlight> in_flight_;
  Lifetime lifetime_;
};

}  // namespace dlock::postgres
