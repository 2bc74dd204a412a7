// The steps that the fake server of simulations is held to, on a real server.
#include "tests/simulation/sql/statement_steps.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/mysql/sql/layout.hpp"
#include "integration_test.hpp"
#include "live_connection.hpp"
#include "tests/support/mysql_server.hpp"

namespace dlock::test {

namespace {

using sql::Scenario;

class LiveSessions final : public sql::StepSessions {
 public:
  explicit LiveSessions(MysqlServer& server) : server_(server) {}

  void send(int session, std::vector<sql::Command> commands) override {
    answers_[session] = connection_of(session).ask(sql::Query{.commands = std::move(commands)});
  }
  void await_wait(int session) override {
    waiting_.insert(session);
    server_.await(
        "(SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User lock') + "
        "(SELECT variable_value FROM information_schema.global_status "
        "WHERE variable_name = 'INNODB_ROW_LOCK_CURRENT_WAITS') = " +
        std::to_string(waiting_.size()));
  }
  [[nodiscard]] Answer answer(int session) override {
    waiting_.erase(session);
    const LiveAnswer& answer = *answers_.at(session);
    return {answer.outcome(), answer.results()};
  }
  [[nodiscard]] int id(int session) override { return connection_of(session).server().backend_pid; }
  // In the server's view, too, where its locks end with it.
  void end(int session) override {
    const std::string ended = std::to_string(id(session));
    server_.run("KILL CONNECTION " + ended);
    waiting_.erase(session);
    connections_.erase(session);
    server_.await("NOT EXISTS (SELECT 1 FROM information_schema.processlist WHERE id = " + ended + ")");
  }
  void pass(std::chrono::milliseconds time) override {
    (void)by_others("DO SLEEP(" + std::to_string(time.count()) + " / 1000)");
  }
  void lock_row(const std::string& table, const std::string& name) override {
    (void)by_others("BEGIN");
    EXPECT_EQ(by_others("SELECT name FROM dlock." + table + " WHERE name = ? FOR UPDATE", {name}), name);
  }
  void unlock_row() override { (void)by_others("ROLLBACK"); }

 private:
  static constexpr int others = 0;

  [[nodiscard]] LiveConnection& connection_of(int session) {
    auto& connection = connections_[session];
    if (!connection) {
      connection = std::make_unique<LiveConnection>(server_.url());
      EXPECT_TRUE(connection->open());
    }
    return *connection;
  }
  std::string by_others(const std::string& sql, std::vector<sql::Parameter> params = {}) {
    return connection_of(others).ask(sql, std::move(params))->value();
  }

  MysqlServer& server_;
  std::map<int, std::unique_ptr<LiveConnection>> connections_;
  std::map<int, LiveConnection::Answer> answers_;
  std::set<int> waiting_;  // in the server
};

class MysqlStatementSteps : public testing::TestWithParam<Scenario> {
 protected:
  static void SetUpTestSuite() {
    server = std::make_unique<MysqlServer>();
    for (const std::string& query : mysql::creation("dlock", true)) server->run(query);
  }
  static void TearDownTestSuite() { server.reset(); }
  void SetUp() override {
    for (const auto& table : mysql::layout()) server->run("DELETE FROM dlock." + std::string(table.name));
  }

  static std::unique_ptr<MysqlServer> server;
};
std::unique_ptr<MysqlServer> MysqlStatementSteps::server;

INSTANTIATE_TEST_SUITE_P(Scenarios, MysqlStatementSteps, testing::ValuesIn(mysql::scenarios()),
                         [](const auto& scenario) { return scenario.param.name; });

// Shows: one-holder
TEST_P(MysqlStatementSteps, Scenario_IsAnsweredAsByTheFakeServer) {
  LiveSessions sessions(*server);
  mysql::play(GetParam(), sessions);
}

// As dlock init on several machines does.
TEST(MysqlLayout, TablesMadeByManyAtOnce_AreMadeOnce) {
  const MysqlServer server;
  const auto initialize = [&server] { return connect_patiently(server.url()).initialize(); };
  std::vector<std::future<std::vector<std::string>>> makers;
  for (int i = 0; i < 8; ++i) makers.push_back(std::async(std::launch::async, initialize));
  for (auto& maker : makers) EXPECT_NO_THROW((void)maker.get());
  EXPECT_TRUE(initialize().empty()) << "all tables are there, with their columns";
}

}  // namespace

}  // namespace dlock::test
