// The doctor, as only PostgreSQL has it. The rules of all services are in tests/integration/network.
#include <string>
#include <vector>

#include "postgres/postgres_test.hpp"

namespace dlock::test {

namespace {

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
TEST_F(PostgresDiagnosisTest, ExtraIndex_IsNamedAndUpdatesAreNoLongerInPlace) {
  const Client client = steady(patient());
  update_often();
  expect(client, "table health", Severity::ok, " % of updates in place");
  server.run("TRUNCATE dlock.lease; CREATE INDEX \"by expiry\" ON dlock.lease (expires_at)");
  server.run("SELECT pg_stat_reset()");
  update_often();
  expect(client, "indexes", Severity::warning, "\"dlock\".\"by expiry\"");
  expect(client, "table health", Severity::warning, "only 0 %");
  server.run("UPDATE dlock.meta SET version = 9");
  expect(client, "schema", Severity::error, "version 9");
}

}  // namespace

}  // namespace dlock::test
