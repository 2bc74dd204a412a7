// PostgreSQL for a simulation, by a fake server that answers as a real one does: see statement_steps.hpp.
#include <gtest/gtest.h>

#include <string>

#include "backends/common/sql/text.hpp"
#include "backends/postgres/options.hpp"
#include "backends/postgres/postgres_backend.hpp"
#include "backends/postgres/sql/lock_key.hpp"
#include "tests/simulation/postgres/fake_postgres.hpp"
#include "tests/simulation/sql/database_service.hpp"
#include "tests/simulation/sql/statement_steps.hpp"

namespace dlock::simulation {
namespace {

struct Postgres {
  static constexpr const char* name = "postgresql";
  static constexpr std::chrono::nanoseconds hand_over_in_table = std::chrono::milliseconds(250);
  static constexpr std::chrono::nanoseconds min_session_lease = sql::shortest_session_lease;
  using Server = postgres::FakePostgres;

  static void set_schema(Server& server, bool chance) { server.has_schema = chance; }
  [[nodiscard]] static std::unique_ptr<Backend> connect(BackendHost& host, const BackendConfig& config,
                                                        postgres::OpenConnection open) {
    return postgres::make_backend(host, postgres::parse_options(config), std::move(open));
  }
  [[nodiscard]] static std::vector<int> processes(Server& server, Strategy strategy, LockKind kind,
                                                  const std::string& name, bool waiters) {
    if (strategy == Strategy::for_update) return server.sessions_of_row(name, waiters);
    if (strategy == Strategy::advisory) {
      return server.sessions_of_key(postgres::lock_key({}, name, kind).parameter, waiters);
    }
    return server.holders_of_rows(sql::table_of(strategy == Strategy::table ? "lease" : "optimistic", kind), name);
  }
};

}  // namespace

std::vector<Subject> subjects() {
  using enum LockKind;
  // An advisory waiter that has left the server's queue keeps readers out for half a second.
  return subjects_of<Postgres>(Strategy::advisory, {lock, read_write, election}, std::chrono::milliseconds(750));
}

}  // namespace dlock::simulation

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
