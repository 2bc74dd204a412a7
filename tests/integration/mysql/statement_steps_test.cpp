// The steps that the fake server of simulations is held to, on a real server.
#include "tests/simulation/mysql/statement_steps.hpp"

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
#include "blocking_session.hpp"
#include "tests/support/mysql_server.hpp"

namespace dlock::test {

namespace {

using sql::Scenario;

class LiveSessions final : public sql::StepSessions {
 public:
  explicit LiveSessions(MysqlServer& server) : server_(server), foreign_(server) {}

  void send(int session, std::vector<sql::Command> commands) override {
    answers_[session] = std::async(
        std::launch::async, [&on = session_of(session), commands = std::move(commands)] { return on.run(commands); });
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
    auto [outcome, results] = answers_.at(session).get();
    return {std::move(outcome), std::move(results)};
  }
  [[nodiscard]] int id(int session) override { return static_cast<int>(session_of(session).id()); }
  // In the server's view, too, where its locks end with it.
  void end(int session) override {
    const std::string id = std::to_string(session_of(session).id());
    server_.run("KILL CONNECTION " + id);
    if (answers_.at(session).valid()) answers_.at(session).wait();
    waiting_.erase(session);
    sessions_.erase(session);
    server_.await("NOT EXISTS (SELECT 1 FROM information_schema.processlist WHERE id = " + id + ")");
  }
  void pass(std::chrono::milliseconds time) override {
    (void)foreign_.run({{.text = "DO SLEEP(" + std::to_string(time.count()) + " / 1000)"}});
  }
  void lock_row(const std::string& table, const std::string& name) override {
    (void)foreign_.run({{.text = "BEGIN"}});
    const auto locked =
        foreign_.run({{.text = "SELECT name FROM dlock." + table + " WHERE name = ? FOR UPDATE", .params = {name}}});
    EXPECT_EQ(locked.results.at(0).text(0, 0), name);
  }
  void unlock_row() override { (void)foreign_.run({{.text = "ROLLBACK"}}); }

 private:
  BlockingSession& session_of(int number) {
    auto& session = sessions_[number];
    if (!session) session = std::make_unique<BlockingSession>(server_);
    return *session;
  }

  MysqlServer& server_;
  BlockingSession foreign_;
  std::map<int, std::unique_ptr<BlockingSession>> sessions_;
  std::map<int, std::future<BlockingSession::Answer>> answers_;
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

TEST_P(MysqlStatementSteps, Scenario_IsAnsweredAsByTheFakeServer) {
  LiveSessions sessions(*server);
  mysql::play(GetParam(), sessions);
}

// Clients initialize at the same time, as dlock init on several machines does.
TEST(MysqlLayout, TablesMadeByManyAtOnce_AreMadeOnce) {
  MysqlServer server;
  std::vector<std::future<std::string>> makers;
  for (int i = 0; i < 8; ++i) {
    makers.push_back(std::async(std::launch::async, [&server] {
      BlockingSession session(server);
      for (const std::string& query : mysql::creation("dlock", true)) {
        const auto answer = session.run({{.text = query}});
        if (answer.outcome.problem != sql::Problem::none) return query + ": " + answer.outcome.failure.detail;
      }
      return std::string();
    }));
  }
  for (auto& maker : makers) EXPECT_EQ(maker.get(), "");
  BlockingSession session(server);
  const mysql::SchemaStatements use = mysql::schema_statements("dlock");
  EXPECT_EQ(session.run({{.statement = &use.version}}).results.at(0).number(0, 0), mysql::schema_version);
  const sql::Rows tables = session.run({{.statement = &use.tables, .params = {"dlock"}}}).results.at(0);
  std::map<std::string, std::string> columns;
  for (std::size_t row = 0; row < tables.size(); ++row) columns[tables.text(row, 0)] = tables.text(row, 1);
  std::map<std::string, std::string> expected;
  for (const auto& table : mysql::layout()) expected[std::string(table.name)] = table.columns;
  EXPECT_EQ(columns, expected);
}

}  // namespace

}  // namespace dlock::test
