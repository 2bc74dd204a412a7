// The answers of the strategies' statements, step by step: played on a real server, and on the fake one that stands for
// it in simulations. A scenario has a line for each step:
//   1 acquire x a ; release y b => yes token ; no     session 1 sends these requests in one query, and is answered that
//   1 lease.wait x 60000000 ...      it has to wait; this and the like are statements by their words, '' is empty
//   1 <= 1                           and is answered now
//   1 listen c =>                    PostgreSQL: from now on to this channel,
//   1 hears x                        where this was the first notification
//   1 end                            of the connection
//   pass 300                         milliseconds
//   locks lease x                    by a transaction of another client, until it "unlocks"
// After name and owner, a request may have: lease=ms (60000), held (may_be_held), gave_up, seen=owner:version, 1/9
// (weight and permits), mark=ms, place=session, quiet (for the query). "mark x" has no owner. The answer is yes, no or
// again and, of an acquire, "token", which must be greater than all before, or "same" as the owner has already; owner
// and version that were seen; "permits" and the number that others use; "lease" for some of 60000 ms, "soon" for up to
// half a second. A statement answers the cells of its rows with "," between rows, or else the inserted token, or the
// number of affected rows, with "/" between statements. A cell is "-" for NULL, "token", "lease", "s1" for the process
// of session 1, or "name" for a session's name that shows a holder. Instead of all that, the code of a refusal.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlock/lock_kind.hpp>

#include "backends/common/sql/connection.hpp"
#include "backends/common/sql/row_store.hpp"
#include "tests/support/manual_engine.hpp"

namespace dlock::sql {

struct Scenario {
  std::string name;
  std::string steps;
  std::string store = {};  // the table of the requests
};
inline void PrintTo(const Scenario& scenario, std::ostream* out) {
  *out << scenario.name;
}

// Sessions on one server that has dlock's tables, without rows.
class StepSessions {
 public:
  StepSessions() = default;
  StepSessions(const StepSessions&) = delete;
  StepSessions& operator=(const StepSessions&) = delete;
  virtual ~StepSessions() = default;

  virtual void send(int session, std::vector<Command> commands) = 0;
  // Until the server keeps what was sent waiting.
  virtual void await_wait(int session) = 0;
  struct Answer {
    Outcome outcome;
    Results results;
  };
  [[nodiscard]] virtual Answer answer(int session) = 0;
  [[nodiscard]] virtual std::string notification(int /*session*/) { return "nothing"; }
  [[nodiscard]] virtual int id(int session) = 0;
  virtual void end(int session) = 0;
  virtual void pass(std::chrono::milliseconds time) = 0;
  virtual void lock_row(const std::string& table, const std::string& name) = 0;
  virtual void unlock_row() = 0;
};

// A service in whose words scenarios are.
struct StepService {
  std::map<std::string, Statement> statements;  // by their words
  std::function<std::unique_ptr<RowStore>(LockKind kind, bool optimistic)> store_of;
  // The answer of a statement is the cells of its rows, without those at the end that are NULL.
  bool only_cells = false;
};
void play(const Scenario& scenario, StepSessions& sessions, const StepService& service);

// Of strategy=table or optimistic, for locks with one holder. $T stands for its table, $A1 for what strategy=optimistic
// shows of owner a and version 1 ($A2, $E1, $H1), $LEFT for the rest of a lease that an administrator sees.
[[nodiscard]] Scenario scenario_of(bool optimistic, const std::string& name, std::string_view steps);
// Scenarios that both services answer alike.
[[nodiscard]] std::vector<Scenario> common_scenarios();

// Sessions on a fake server. The service locks rows, and ends sessions.
template <class Server, class Options>
class FakeStepSessions : public StepSessions {
 public:
  void send(int session, std::vector<Command> commands) override {
    Client& client = client_of(session);
    client.answer.reset();
    client.connection->send(
        {.commands = std::move(commands), .done = [&client](const auto& outcome, const auto& results) {
           client.answer = {outcome, results};
         }});
    engine_.run();
  }
  void await_wait(int session) override { EXPECT_FALSE(client_of(session).answer) << "it does not wait"; }
  [[nodiscard]] Answer answer(int session) override {
    if (!client_of(session).answer) engine_.advance(std::chrono::seconds(1));
    if (client_of(session).answer) return *client_of(session).answer;
    return {.outcome = {.problem = Problem::unknown_outcome, .failure = {errc::unavailable, "no answer"}},
            .results = {}};
  }
  [[nodiscard]] std::string notification(int session) override {
    const auto& notified = client_of(session).notified;
    return notified.empty() ? "nothing" : notified.front();
  }
  [[nodiscard]] int id(int session) override { return client_of(session).connection->server().backend_pid; }
  void end(int session) override {
    clients_.erase(session);
    engine_.run();
  }
  void pass(std::chrono::milliseconds time) override { engine_.advance(time); }

 protected:
  test::ManualEngine engine_;
  Server server_{engine_};

 private:
  struct Client final : Connection::Listener {
    void connection_ready() override {}
    void connection_lost(const Failure& /*why*/) override {}
    void connection_notified(const std::string& /*channel*/, const std::string& payload) override {
      notified.push_back(payload);
    }
    const Options options;
    std::optional<Answer> answer;
    std::vector<std::string> notified;
    std::unique_ptr<Connection> connection;
  };

  Client& client_of(int session) {
    auto& client = clients_[session];
    if (!client) {
      client = std::make_unique<Client>();
      client->connection = server_.connections(1)(engine_, client->options, {}, *client);
      client->connection->open(TimePoint::max());
      engine_.run();
    }
    return *client;
  }

  std::map<int, std::unique_ptr<Client>> clients_;
};

}  // namespace dlock::sql

// Of each service: its scenarios, and how they are played.
namespace dlock::mysql {
[[nodiscard]] std::vector<sql::Scenario> scenarios();
void play(const sql::Scenario& scenario, sql::StepSessions& sessions);
}  // namespace dlock::mysql
namespace dlock::postgres {
[[nodiscard]] std::vector<sql::Scenario> scenarios();
void play(const sql::Scenario& scenario, sql::StepSessions& sessions);
}  // namespace dlock::postgres
