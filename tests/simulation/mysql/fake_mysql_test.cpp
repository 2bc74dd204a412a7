// The fake server answers as a real one does: see statement_steps.hpp.
#include "tests/simulation/mysql/fake_mysql.hpp"

#include <gtest/gtest.h>

#include <string>

#include "backends/mysql/options.hpp"
#include "tests/simulation/mysql/statement_steps.hpp"

namespace dlock::mysql {
namespace {

class FakeSessions final : public sql::FakeStepSessions<FakeMysql, Options> {
 public:
  void end(int session) override {
    EXPECT_TRUE(server_.kill(id(session) - 1000));
    engine_.run();
    FakeStepSessions::end(session);
  }
  void lock_row(const std::string& table, const std::string& name) override {
    server_.lock_by_others(server_.row(table, name));
  }
  void unlock_row() override { server_.unlock_by_others(); }
};

class FakeMysqlTest : public testing::TestWithParam<sql::Scenario> {};
INSTANTIATE_TEST_SUITE_P(Scenarios, FakeMysqlTest, testing::ValuesIn(scenarios()),
                         [](const auto& scenario) { return scenario.param.name; });

TEST_P(FakeMysqlTest, Scenario_IsAnsweredAsByAServer) {
  FakeSessions sessions;
  play(GetParam(), sessions);
}

}  // namespace
}  // namespace dlock::mysql
