// The steps that the fake server of simulations is held to, on a real server.
#include "tests/simulation/sql/statement_steps.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "live_connection.hpp"
#include "postgres/postgres_test.hpp"

namespace dlock::test {

namespace {

using sql::Scenario;

class LiveSessions final : public sql::StepSessions {
 public:
  explicit LiveSessions(PostgresServer& server) : server_(server), foreign_(server.admin_conninfo()) {}

  void send(int session, std::vector<postgres::Command> commands) override {
    answers_[session] = connection_of(session).ask(postgres::Query{.commands = std::move(commands)});
  }
  void await_wait(int session) override {
    server_.await("EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid = " +
                  std::to_string(id(session)) + ")");
  }
  [[nodiscard]] Answer answer(int session) override {
    LiveAnswer& answer = *answers_.at(session);
    return {answer.outcome(), answer.results()};
  }
  [[nodiscard]] std::string notification(int session) override {
    const std::string text = connection_of(session).notification();
    return text.substr(text.find(':') + 1);
  }
  [[nodiscard]] int id(int session) override { return connection_of(session).server().backend_pid; }
  void end(int session) override { connections_.erase(session); }
  void pass(std::chrono::milliseconds time) override {
    (void)foreign_.query("SELECT pg_sleep(" + std::to_string(time.count()) + " / 1000.0)");
  }
  void lock_row(const std::string& table, const std::string& name) override {
    foreign_.run("BEGIN");
    EXPECT_EQ(foreign_.value("SELECT name FROM dlock." + table + " WHERE name = '" + name + "' FOR UPDATE"), name);
  }
  void unlock_row() override { foreign_.run("ROLLBACK"); }

 private:
  LiveConnection& connection_of(int session) {
    auto& connection = connections_[session];
    if (!connection) {
      connection = std::make_unique<LiveConnection>(server_.url());
      EXPECT_TRUE(connection->open());
    }
    return *connection;
  }

  PostgresServer& server_;
  PostgresConnection foreign_;
  std::map<int, std::unique_ptr<LiveConnection>> connections_;
  std::map<int, LiveConnection::Answer> answers_;
};

class PostgresStatementSteps : public PostgresTest, public testing::WithParamInterface<Scenario> {
 protected:
  PostgresStatementSteps() { (void)steady(patient()).initialize(); }
};
INSTANTIATE_TEST_SUITE_P(Scenarios, PostgresStatementSteps, testing::ValuesIn(postgres::scenarios()),
                         [](const auto& scenario) { return scenario.param.name; });

// Shows: first-come
// Hazard: a locked row delays other locks
// Hazard: the holder changes the row: waiters lose their order
// Hazard: a session that reads gets the lock again past a writer in the queue
TEST_P(PostgresStatementSteps, Scenario_IsAnsweredAsByTheFakeServer) {
  LiveSessions sessions(server);
  postgres::play(GetParam(), sessions);
}

}  // namespace

}  // namespace dlock::test
