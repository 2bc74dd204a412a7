// MariaDB for a simulation, by a fake server that answers as a real one does: see statement_steps.hpp.
#include <gtest/gtest.h>

#include <string>

#include "backends/common/sql/text.hpp"
#include "backends/mysql/mysql_backend.hpp"
#include "backends/mysql/options.hpp"
#include "tests/simulation/mysql/fake_mysql.hpp"
#include "tests/simulation/sql/database_service.hpp"
#include "tests/simulation/sql/statement_steps.hpp"

namespace dlock::simulation {
namespace {

struct Mysql {
  static constexpr const char* name = "mysql";
  // The first waiter asks every 200 to 300 ms while a holder that has lost its session has the row.
  static constexpr std::chrono::nanoseconds hand_over_in_table = std::chrono::milliseconds(350);
  static constexpr std::chrono::nanoseconds min_session_lease = mysql::shortest_session_lease;
  using Server = mysql::FakeMysql;

  static void set_schema(Server& server, bool chance) {
    if (chance) server.remove_schema();
  }
  [[nodiscard]] static std::unique_ptr<Backend> connect(BackendHost& host, const BackendConfig& config,
                                                        mysql::OpenConnection open) {
    return mysql::make_backend(host, mysql::parse_options(config), std::move(open));
  }
  [[nodiscard]] static std::vector<int> processes(Server& server, Strategy strategy, LockKind kind,
                                                  const std::string& name, bool waiters) {
    if (strategy == Strategy::for_update) return server.sessions_of(server.row("row_lock", name), waiters);
    if (strategy == Strategy::named) {
      return server.sessions_of(server.user_lock(sql::table_of("fence", kind) + "/" + name), waiters);
    }
    return server.holders_of_row(sql::table_of(strategy == Strategy::table ? "lease" : "optimistic", kind), name);
  }
};

}  // namespace

std::vector<Subject> subjects() {
  using enum LockKind;
  return subjects_of<Mysql>(Strategy::named, {lock, election}, std::chrono::milliseconds(250));
}

}  // namespace dlock::simulation

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
