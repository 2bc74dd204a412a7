// The fake server answers as a real one does: see statement_steps.hpp.
#include "tests/simulation/postgres/fake_postgres.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/postgres/options.hpp"
#include "tests/simulation/postgres/statement_steps.hpp"
#include "tests/support/manual_engine.hpp"

namespace dlock::postgres {
namespace {

class FakeSessions final : public StepSessions {
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
    auto& heard = client_of(session).heard;
    return heard.empty() ? "nothing" : heard.front();
  }
  [[nodiscard]] int pid(int session) override { return client_of(session).connection->server().backend_pid; }
  void end(int session) override {
    clients_.erase(session);
    engine_.run();
  }
  void pass(std::chrono::milliseconds time) override { engine_.advance(time); }
  void lock_row(const std::string& table, const std::string& name) override {
    locked_ = &server_.row(table, name);
    locked_->locked = true;
  }
  void unlock_row() override { locked_->locked = false; }

 private:
  struct Client final : Connection::Listener {
    void connection_ready() override {}
    void connection_lost(const Failure& why) override { ADD_FAILURE() << why.detail; }
    void connection_notified(const std::string& /*channel*/, const std::string& payload) override {
      heard.push_back(payload);
    }
    const Options options;
    std::optional<Answer> answer;
    std::vector<std::string> heard;
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

  test::ManualEngine engine_;
  FakePostgres server_{engine_};
  std::map<int, std::unique_ptr<Client>> clients_;
  FakeLockTable::Row* locked_ = nullptr;
};

class FakePostgresTest : public testing::TestWithParam<Scenario> {};
INSTANTIATE_TEST_SUITE_P(Scenarios, FakePostgresTest, testing::ValuesIn(scenarios()),
                         [](const auto& scenario) { return scenario.param.name; });

TEST_P(FakePostgresTest, Scenario_IsAnsweredAsByAServer) {
  FakeSessions sessions;
  play(GetParam(), sessions);
}

}  // namespace
}  // namespace dlock::postgres
