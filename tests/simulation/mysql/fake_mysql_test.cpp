// The fake server answers as a real one does: see statement_steps.hpp.
#include "tests/simulation/mysql/fake_mysql.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/mysql/options.hpp"
#include "tests/simulation/mysql/statement_steps.hpp"
#include "tests/support/manual_engine.hpp"

namespace dlock::mysql {
namespace {

class FakeSessions final : public StepSessions {
 public:
  void send(int session, std::vector<sql::Command> commands) override {
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
    return {.outcome = {.problem = sql::Problem::unknown_outcome, .failure = {errc::unavailable, "no answer"}},
            .results = {}};
  }
  [[nodiscard]] std::uint64_t id(int session) override {
    return static_cast<std::uint64_t>(client_of(session).connection->server().backend_pid);
  }
  void end(int session) override {
    EXPECT_TRUE(server_.kill(static_cast<int>(id(session)) - 1000));
    engine_.run();
    clients_.erase(session);
  }
  void pass(std::chrono::milliseconds time) override { engine_.advance(time); }
  void lock_row(const std::string& table, const std::string& name) override {
    server_.lock_by_others(server_.row(table, name));
  }
  void unlock_row() override { server_.unlock_by_others(); }

 private:
  struct Client final : sql::Connection::Listener {
    void connection_ready() override {}
    void connection_lost(const Failure& /*why*/) override {}
    void connection_notified(const std::string& /*channel*/, const std::string& /*payload*/) override {}
    const Options options;
    std::optional<Answer> answer;
    std::unique_ptr<sql::Connection> connection;
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
  FakeMysql server_{engine_};
  std::map<int, std::unique_ptr<Client>> clients_;
};

class FakeMysqlTest : public testing::TestWithParam<Scenario> {};
INSTANTIATE_TEST_SUITE_P(Scenarios, FakeMysqlTest, testing::ValuesIn(scenarios()),
                         [](const auto& scenario) { return scenario.param.name; });

TEST_P(FakeMysqlTest, Scenario_IsAnsweredAsByAServer) {
  FakeSessions sessions;
  play(GetParam(), sessions);
}

}  // namespace
}  // namespace dlock::mysql
