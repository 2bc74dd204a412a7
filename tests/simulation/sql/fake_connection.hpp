// A database server in memory, played by the test or by a fake of its service, and connections to it: no sockets, no
// time but that of the clients' executors.
//
//   FakeServer server({.info = {.version = 150020}, .heartbeat = "SHOW transaction_isolation"});
//   const auto backend = postgres::make_backend(host, options, server.connections());
//   server.reply = [](const FakeQuery& query) { return FakeReply::of({{"a", "t"}}); };
//
// As with a real one, answers come later, in order, and one that is held back holds back those behind it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <dlock/spi/lifetime.hpp>

#include "backends/common/sql/connection.hpp"

namespace dlock::sql {

// In which the services differ.
struct FakeTraits {
  ServerInfo info = {};         // of new connections; backend_pid is the fake's
  std::string heartbeat = {};   // Dialect::heartbeat()
  std::string code_word = {};   // in front of a code, in messages
  std::string full = {};        // why a server that is full refuses a connection
  bool pipelines = true;        // false: a query is sent once the one in front of it is answered
  std::size_t waits_times = 1;  // a client may have so often max_connections sessions that wait
};

struct FakeQuery {
  std::vector<Command> commands = {};
  Purpose purpose = {};
  int connection = 0;  // the first is 1
  TimePoint sent = {};
  int process = 0;            // that the connection belongs to
  std::uint64_t number = 0;   // on all connections; the first is 1
  bool is_heartbeat = false;  // a session sends it by itself, to show that it lives

  // Of its first command.
  [[nodiscard]] const std::string& sql() const {
    const Command& first = commands.front();
    return first.statement != nullptr ? first.statement->sql : first.text;
  }
  // Of its last command that has any; empty for NULL.
  [[nodiscard]] std::string param(std::size_t index) const {
    const auto last =
        std::find_if(commands.rbegin(), commands.rend(), [](const Command& each) { return !each.params.empty(); });
    return last == commands.rend() ? std::string() : last->params.at(index).value_or("");
  }
};

struct FakeReply {
  bool is_held = false;          // answered by FakeServer::answer(), or never
  Results results = {};          // by default no row for each command
  std::string server_code = {};  // not empty: refused
  std::size_t failed_command = 0;

  // The rows of a lone command.
  [[nodiscard]] static FakeReply of(std::vector<Rows::Row> rows) {
    const auto affected = rows.size();
    return {.results = {{.rows = std::move(rows), .affected = affected}}};
  }
  [[nodiscard]] static FakeReply refused(std::string server_code, std::size_t failed_command = 0) {
    return {.server_code = std::move(server_code), .failed_command = failed_command};
  }
  [[nodiscard]] static FakeReply held() { return {.is_held = true}; }
};

class FakeServer {
 public:
  explicit FakeServer(FakeTraits traits) : info(traits.info), traits_(std::move(traits)) {}
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  // For a client of that process, whose options have max_connections. Its answers run as tasks of the client's
  // executor.
  [[nodiscard]] auto connections(int process = 0) {
    return [this, process](Executor& executor, const auto& options, const Purpose& purpose,
                           Connection::Listener& listener) -> std::unique_ptr<Connection> {
      const Client client{.options = &options, .process = process, .max_connections = options.max_connections};
      return std::make_unique<FakeConnection>(*this, client, executor, purpose, listener);
    };
  }

  // The fate of the next attempts to connect.
  enum class Dialling { accept, fail, refuse_password };
  Dialling dialling = Dialling::accept;
  std::set<int> unreachable;  // processes: their attempts fail
  // How many connections it has; it refuses more. nullopt: any number.
  std::optional<std::size_t> room;
  // The next connections report this; backend_pid is the fake's.
  ServerInfo info;

  // By default everything is answered, without rows. Heartbeats are not asked about unless `replies_to_heartbeats`.
  std::function<FakeReply(const FakeQuery&)> reply;
  bool replies_to_heartbeats = false;
  // Called for a connection that was made, and at its end, whichever side ended it.
  std::function<void(int connection, int process, const Purpose&)> opened;
  std::function<void(int connection)> gone;

  // Of a query that was held back, unless its connection is gone.
  void answer(int connection, std::uint64_t query, const FakeReply& with) {
    for (FakeConnection* const each : connections_) {
      if (each->number == connection) each->answer(query, with);
    }
  }
  // All of them, or one. server_code: why the server ended the session, if it did.
  void break_connections(const std::string& why = "the fake server is gone", int connection = 0,
                         const std::string& server_code = {}) {
    for (FakeConnection* const each : connections_) {
      if (connection != 0 && each->number != connection) continue;
      each->post([each, why, server_code] { each->end({errc::unavailable, why}, server_code); });
    }
  }
  void notify(const std::string& channel, const std::string& payload, int connection = 0) {
    for (FakeConnection* const each : connections_) {
      if (connection == 0 || each->number == connection) each->notify(channel, payload);
    }
  }
  // Nothing is delivered to these clients any more, and nothing they send arrives.
  void bury(int process) {
    for (FakeConnection* const each : connections_) {
      if (each->process == process) each->bury();
    }
  }

  // --- What happened; heartbeats do not count, except where they are asked for ---
  bool records = true;
  std::vector<FakeQuery> queries;
  int dialled = 0;
  [[nodiscard]] std::size_t open() const noexcept { return connections_.size(); }  // dialling among them
  [[nodiscard]] std::size_t connected() const noexcept {
    return static_cast<std::size_t>(std::ranges::count_if(connections_, &FakeConnection::usable));
  }

 private:
  struct Client {
    const void* options;  // its identity
    int process;
    std::size_t max_connections;
  };

  class FakeConnection final : public Connection {
   public:
    FakeConnection(FakeServer& server, const Client& client, Executor& executor, Purpose purpose, Listener& listener)
        : number(++server.dialled),
          process(client.process),
          server_(server),
          client_(client),
          executor_(executor),
          purpose_(std::move(purpose)),
          listener_(listener) {
      server_.connections_.push_back(this);
    }
    ~FakeConnection() override {
      (void)std::erase(server_.connections_, this);
      if (usable() && server_.gone) server_.gone(number);
    }

    void open(TimePoint /*deadline*/) override {
      info_ = server_.info;
      info_.backend_pid = 1000 + number;
      switch (server_.unreachable.contains(process) ? Dialling::fail : server_.dialling) {
        case Dialling::accept:
          return post([this] { accept(); });
        case Dialling::fail:
          return post([this] { break_off({errc::unavailable, "fake: connection refused"}); });
        case Dialling::refuse_password:
          return post([this] { break_off({errc::access_denied, "fake: password authentication failed"}); });
      }
    }
    [[nodiscard]] bool usable() const noexcept override { return state_ == State::ready; }
    [[nodiscard]] const ServerInfo& server() const noexcept override { return info_; }

    void send(Query query) override {
      if (!usable()) {
        return post([done = std::move(query.done)] {
          if (done) done({.problem = Problem::not_sent, .failure = {errc::unavailable, "fake: not connected"}}, {});
        });
      }
      FakeQuery asked{.commands = std::move(query.commands),
                      .purpose = purpose_,
                      .connection = number,
                      .process = process,
                      .number = ++server_.asked_};
      asked.is_heartbeat = asked.commands.size() == 1 && asked.sql() == server_.traits_.heartbeat;
      in_flight_.push_back({std::move(asked), std::move(query.done), FakeReply::held()});
      if (server_.traits_.pipelines || in_flight_.size() == 1) transmit(in_flight_.back());
    }

    // Delivers answers, up to the first that is held.
    void receive() override {
      const Lifetime::Watch life = lifetime_.watch();
      while (usable() && !in_flight_.empty()) {
        if (!in_flight_.front().is_sent) transmit(in_flight_.front());
        if (in_flight_.front().reply.is_held) return;
        auto [query, done, reply, is_sent] = std::move(in_flight_.front());
        in_flight_.pop_front();
        if (!done) continue;
        Outcome outcome{.sent = query.sent};
        if (reply.server_code.empty()) {
          reply.results.resize(query.commands.size());
        } else {
          outcome.problem = Problem::refused;
          outcome.server_code = reply.server_code;
          outcome.failed_command = reply.failed_command;
          outcome.failure = {errc::unavailable,
                             "fake: refused (" + server_.traits_.code_word + outcome.server_code + ")"};
          reply.results.clear();
        }
        done(outcome, reply.results);
        if (life.over()) return;
      }
    }

    void break_off(const Failure& why) override { end(why, {}); }
    void end(const Failure& why, const std::string& server_code) {
      if (state_ == State::lost) return;
      const Failure reason = why;
      if (std::exchange(state_, State::lost) == State::ready && server_.gone) server_.gone(number);
      const Lifetime::Watch life = lifetime_.watch();
      for (const InFlight& entry : std::exchange(in_flight_, {})) {
        if (!entry.done) continue;
        Outcome outcome{.problem = Problem::not_sent, .failure = {errc::unavailable, reason.detail}};
        if (entry.is_sent) {
          outcome = {.problem = Problem::unknown_outcome,
                     .failure = {errc::ambiguous, reason.detail},
                     .server_code = server_code,
                     .sent = entry.query.sent};
        }
        entry.done(outcome, {});
        if (life.over()) return;
      }
      listener_.connection_lost(reason);
    }

    void post(std::function<void()> task) {
      if (buried_) return;
      executor_.post(lifetime_.guard([this, task = std::move(task)] {
        if (!buried_) task();
      }));
    }
    void answer(std::uint64_t query, const FakeReply& reply) {
      for (InFlight& entry : in_flight_) {
        if (entry.query.number == query) entry.reply = reply;
      }
      post([this] { receive(); });
    }
    void notify(const std::string& channel, const std::string& payload) {
      post([this, channel, payload] {
        if (usable()) listener_.connection_notified(channel, payload);
      });
    }
    void bury() {
      buried_ = true;
      if (server_.gone) server_.gone(number);
    }

    const int number;
    const int process;

   private:
    enum class State { connecting, ready, lost };
    struct InFlight {
      FakeQuery query;
      Handler done;
      FakeReply reply;
      bool is_sent = false;
    };

    // It may be answered inside the call to `reply`.
    void transmit(InFlight& entry) {
      entry.is_sent = true;
      entry.query.sent = executor_.now();
      if (buried_) return;
      const FakeQuery& asked = entry.query;
      const bool counts = server_.replies_to_heartbeats || !asked.is_heartbeat;
      if (counts && server_.records) server_.queries.push_back(asked);
      FakeReply reply = counts && server_.reply ? server_.reply(asked) : FakeReply();
      if (!reply.is_held) entry.reply = std::move(reply);
      post([this] { receive(); });
    }

    void accept() {
      if (state_ != State::connecting) return;
      if (server_.room && server_.connected() >= *server_.room) {
        return break_off({errc::unavailable, "fake: " + server_.traits_.full});
      }
      state_ = State::ready;
      if (server_.opened) {
        expect_few();
        server_.opened(number, process, purpose_);
      }
      listener_.connection_ready();
    }
    // No client has more connections for a purpose than it may.
    void expect_few() const {
      const std::string& word = purpose_.word;
      const bool capped = word == "waiting" || word == "transaction";
      const std::size_t most = capped ? client_.max_connections * server_.traits_.waits_times : word == "locks" ? 2 : 4;
      const auto all = std::ranges::count_if(server_.connections_, [&](const FakeConnection* each) {
        return each->usable() && each->client_.options == client_.options && each->purpose_.word == word;
      });
      EXPECT_LE(static_cast<std::size_t>(all), most) << "connections for " << word;
    }

    FakeServer& server_;
    const Client client_;
    Executor& executor_;
    const Purpose purpose_;
    Listener& listener_;
    State state_ = State::connecting;
    bool buried_ = false;
    ServerInfo info_;
    std::deque<InFlight> in_flight_;
    Lifetime lifetime_;
  };

  const FakeTraits traits_;
  std::uint64_t asked_ = 0;
  std::vector<FakeConnection*> connections_;
};

}  // namespace dlock::sql
