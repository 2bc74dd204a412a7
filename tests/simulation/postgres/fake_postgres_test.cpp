// The fake server answers as a real one does: see statement_steps.hpp.
#include "tests/simulation/postgres/fake_postgres.hpp"

#include <gtest/gtest.h>

#include <string>

#include "backends/postgres/options.hpp"
#include "tests/simulation/postgres/statement_steps.hpp"

namespace dlock::postgres {
namespace {

class FakeSessions final : public sql::FakeStepSessions<FakePostgres, Options> {
 public:
  void lock_row(const std::string& table, const std::string& name) override {
    locked_ = &server_.row(table, name);
    locked_->locked = true;
  }
  void unlock_row() override { locked_->locked = false; }

 private:
  FakeLockTable::Row* locked_ = nullptr;
};

class FakePostgresTest : public testing::TestWithParam<sql::Scenario> {};
INSTANTIATE_TEST_SUITE_P(Scenarios, FakePostgresTest, testing::ValuesIn(scenarios()),
                         [](const auto& scenario) { return scenario.param.name; });

TEST_P(FakePostgresTest, Scenario_IsAnsweredAsByAServer) {
  FakeSessions sessions;
  play(GetParam(), sessions);
}

}  // namespace
}  // namespace dlock::postgres
