// The answers of the strategies' statements, step by step: played on a real server, and on the fake one that stands for
// it in simulations. A scenario has a line for each step, in the words of the service.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "backends/common/sql/connection.hpp"
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

inline void play_lines(const Scenario& scenario, const std::function<void(const std::string& line)>& play_line) {
  std::istringstream steps(scenario.steps);
  for (std::string line; std::getline(steps, line) && !testing::Test::HasFailure();) {
    SCOPED_TRACE(line);
    play_line(line);
  }
}

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
