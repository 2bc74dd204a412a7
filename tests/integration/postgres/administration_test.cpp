// Questions about locks, forgetting them, and the doctor, as only PostgreSQL has them. The rules of all services are in
// tests/integration/network.
#include <map>
#include <string>
#include <vector>

#include "postgres/postgres_test.hpp"

namespace dlock::test {

namespace {

class PostgresAdministrationTest : public PostgresStrategyTest {
 protected:
  // Names 1, 2, ... that were locked long ago.
  void plant(int count) {
    const std::string numbers = " FROM generate_series(1, " + std::to_string(count) + ") AS n";
    const std::map<Strategy, std::string> rows = {
        {Strategy::table, "lease SELECT n, NULL, 'h', 1, '-infinity'"},
        {Strategy::optimistic, "optimistic SELECT n, NULL, 'h', 1, 1, 1000"},
        {Strategy::for_update, "row_lock SELECT n" + numbers + "; INSERT INTO dlock.row_token SELECT n, 'h', 1"},
        {Strategy::advisory, "fence SELECT n, n, 1, 0, 'h', 1"}};
    server.run("INSERT INTO dlock." + rows.at(GetParam()) + numbers);
  }
  // Locks those of them, in a transaction.
  [[nodiscard]] static std::string hold(const std::string& which) {
    if (GetParam() == Strategy::advisory) {
      return "BEGIN; SELECT pg_advisory_xact_lock(key) FROM dlock.fence WHERE name " + which;
    }
    return "BEGIN; SELECT FROM " + (GetParam() == Strategy::for_update ? "dlock.row_lock" : token_table(GetParam())) +
           " WHERE name " + which + " FOR UPDATE";
  }
  static std::size_t forget_idle(const Client& client) {
    std::size_t all = 0;
    for (auto some = client.forget_idle(1h); !some.empty(); some = client.forget_idle(1h)) all += some.size();
    return all;
  }
};
INSTANTIATE_TEST_SUITE_P(, PostgresAdministrationTest, testing::ValuesIn(tested()), strategy_name);

TEST_P(PostgresAdministrationTest, RowsLockedByOthers_AreSkippedAndDelayNoOther) {
  const Client client = steady();
  (void)client.initialize();
  plant(2500);
  PostgresConnection other(server.admin_conninfo());
  other.run(hold("<= '2'"));  // as texts: 1, 10 to 19, 100 to 199, 1000 to 1999, 2
  other.run("SELECT FROM " + token_table(GetParam()) + " WHERE name = '3' FOR UPDATE");
  EXPECT_EQ(forget_idle(client), 2500U - 1113U);
  EXPECT_EQ(client.list().size(), 1113U);
  EXPECT_THROW((void)client.forget("1"), Error);
  other.run("ROLLBACK");
  EXPECT_TRUE(client.forget("1"));
  EXPECT_EQ(forget_idle(client), 1112U);
  EXPECT_TRUE(client.list().empty());
}

using Severity = Finding::Severity;

class PostgresDiagnosisTest : public PostgresTest {
 protected:
  PostgresDiagnosisTest() { (void)steady(patient()).initialize(); }

  // The worst finding of a check; a note where there is none.
  static Finding worst(const std::vector<Finding>& all, const std::string& check) {
    Finding found{Severity::note, check, "nothing was found"};
    bool any = false;
    for (const Finding& each : all) {
      if (each.check != check || (any && each.severity <= found.severity)) continue;
      found = each;
      any = true;
    }
    return found;
  }
  static void expect(const Client& client, const std::string& check, Severity severity, const std::string& words = {}) {
    const Finding finding = worst(client.diagnose(), check);
    EXPECT_EQ(finding.severity, severity) << check << ": " << finding.message;
    EXPECT_NE(finding.message.find(words), std::string::npos) << check << ": " << finding.message;
  }
  // As by renewals, and until the server's statistics contain it.
  void update_often() {
    server.run("INSERT INTO dlock.lease (name, holder, token, expires_at) VALUES ('x', '', 1, now())");
    server.run(
        "DO $$ BEGIN FOR i IN 1..2000 LOOP UPDATE dlock.lease SET expires_at = clock_timestamp(); COMMIT; "
        "END LOOP; END $$");
    server.run("SELECT pg_stat_force_next_flush()");
    server.run("SELECT 1");
  }
};

TEST_F(PostgresDiagnosisTest, ServerThatIsSetUp_FindsNothingWrong) {
  for (const Strategy strategy : all_strategies) {
    const auto findings = steady(patient(), with(strategy)).diagnose();
    for (const char* check :
         {"server", "version", "role", "encryption", "pooler", "isolation", "timeouts", "settings", "durability",
          "replication", "connections", "clock", "schema", "permissions", "table health"}) {
      EXPECT_EQ(worst(findings, check).severity, Severity::ok) << check << ": " << worst(findings, check).message;
    }
    // Test servers do without, to be quick.
    for (const Finding& each : findings) {
      EXPECT_TRUE(each.severity < Severity::warning || each.check == "fsync" || each.check == "full_page_writes")
          << each.check << ": " << each.message;
    }
  }
}

TEST_F(PostgresDiagnosisTest, UnsafeSettings_AreWarnedOf) {
  const PostgresServer unsafe(
      {.max_connections = 10,
       .lines = {"fsync = off", "full_page_writes = off", "synchronous_standby_names = 'nobody'"}});
  const Client client = connect_patiently(unsafe.url(with(Strategy::advisory)));
  for (const char* const check : {"fsync", "full_page_writes", "connections"}) {
    expect(client, check, Severity::warning);
  }
  expect(connect_patiently(unsafe.url()), "replication", Severity::error, "nobody");
  server.run("ALTER ROLE locker CONNECTION LIMIT 3");
  expect(steady(patient(), with(Strategy::advisory)), "connections", Severity::warning, "this role may have 3");
  server.run("ALTER ROLE locker CONNECTION LIMIT -1");
}

TEST_F(PostgresDiagnosisTest, UnloggedTables_AreWarnedOfUntilLogged) {
  server.run("DROP SCHEMA dlock CASCADE");
  const Client unlogged = steady(patient(), "durability=unlogged");
  (void)unlogged.initialize();
  expect(steady(patient()), "tables", Severity::warning, "SET LOGGED");
  for (const char* table : {"lease", "lease_rw", "lease_sem", "lease_elect"}) {
    server.run("ALTER TABLE \"dlock\".\"" + std::string(table) + "\" SET LOGGED");
  }
  expect(steady(patient()), "tables", Severity::note, "nothing was found");
  expect(unlogged, "tables", Severity::note, "is logged");
}

// Hazard: an extra index: rows are not updated in place, and the table grows
TEST_F(PostgresDiagnosisTest, UpdatesOfOurTables_AreInPlace) {
  update_often();
  expect(steady(patient()), "table health", Severity::ok, " % of updates in place");
}

// Hazard: an extra index: rows are not updated in place, and the table grows
TEST_F(PostgresDiagnosisTest, ExtraIndex_IsNamed) {
  server.run("CREATE INDEX \"by expiry\" ON dlock.lease (expires_at)");
  update_often();
  const Client client = steady(patient());
  expect(client, "indexes", Severity::warning, "\"dlock\".\"by expiry\"");
  expect(client, "table health", Severity::warning, "only 0 %");
  server.run("UPDATE dlock.meta SET version = 9");
  expect(client, "schema", Severity::error, "version 9");
}

}  // namespace

}  // namespace dlock::test
