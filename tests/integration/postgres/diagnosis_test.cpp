// What dlock doctor says about real servers.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <dlock/client.hpp>

#include "held_lock.hpp"
#include "integration_test.hpp"
#include "live_services.hpp"
#include "postgres/shared_server.hpp"
#include "strategies.hpp"
#include "tests/support/pgbouncer.hpp"

namespace dlock::test {

namespace {

using Severity = Finding::Severity;

class Findings {
 public:
  explicit Findings(std::vector<Finding> all) : all_(std::move(all)) {}

  // The worst about a check; a note that there is nothing about it.
  [[nodiscard]] Finding about(const std::string& check) const {
    Finding worst{Severity::note, check, "nothing was found"};
    bool any = false;
    for (const Finding& finding : all_) {
      if (finding.check != check || (any && finding.severity <= worst.severity)) continue;
      worst = finding;
      any = true;
    }
    return worst;
  }
  [[nodiscard]] std::string problems() const {
    std::string text;
    for (const Finding& finding : all_) {
      if (finding.severity >= Severity::warning) text += finding.check + ": " + finding.message + "\n";
    }
    return text;
  }

 private:
  std::vector<Finding> all_;
};

class PostgresDiagnosisTest : public OnSharedServer<> {
 protected:
  void SetUp() override {
    server.run("DROP SCHEMA IF EXISTS dlock CASCADE");
    server.run("ALTER ROLE locker RESET ALL");
  }
  void TearDown() override { SetUp(); }
  [[nodiscard]] Findings diagnose(const std::string& url) const { return Findings(LiveServices(url).diagnose()); }
  void expect(const Findings& findings, const std::string& check, Severity severity, const std::string& words = {}) {
    const Finding finding = findings.about(check);
    EXPECT_EQ(finding.severity, severity) << check << ": " << finding.message;
    EXPECT_NE(finding.message.find(words), std::string::npos) << check << ": " << finding.message;
  }
  void set_up(const std::string& parameters = {}) {
    const auto why_not = LiveServices(server.url(parameters)).set_up();
    ASSERT_FALSE(why_not) << why_not->detail;
  }

  // As by renewals, and until the server's statistics know of it.
  void update_often() {
    server.run("INSERT INTO dlock.lease (name, holder, token, expires_at) VALUES ('x', '', 1, now())");
    server.run(
        "DO $$ BEGIN FOR i IN 1..2000 LOOP UPDATE dlock.lease SET expires_at = clock_timestamp(); COMMIT; "
        "END LOOP; END $$");
    server.run("SELECT pg_stat_force_next_flush()");
    server.run("SELECT 1");
  }
};

TEST_F(PostgresDiagnosisTest, IsContentWithAServerThatIsSetUp) {
  set_up();
  // Test servers do without, to be quick.
  const bool fsync = server.value("SHOW fsync") == "on";
  for (const postgres::Strategy strategy : all_strategies) {
    const Findings findings = diagnose(server.url("strategy=" + std::string(postgres::to_string(strategy))));
    for (const char* check :
         {"server", "version", "role", "encryption", "pooler", "isolation", "timeouts", "settings", "durability",
          "replication", "connections", "clock", "schema", "permissions", "table health"}) {
      expect(findings, check, Severity::ok);
    }
    if (fsync) {
      EXPECT_EQ(findings.problems(), "");
    }
  }
}

TEST_F(PostgresDiagnosisTest, ChangesNothing) {
  expect(diagnose(server.url()), "schema", Severity::note, "dlock init");
  EXPECT_EQ(server.value("SELECT to_regnamespace('dlock') IS NULL"), "t");
}

TEST_F(PostgresDiagnosisTest, AServerThatIsNotThereIsAFinding) {
  std::uint16_t port = 0;
  {
    const PostgresServer gone;
    port = gone.port();
  }
  expect(diagnose(server.url_at(port)), "server", Severity::error);
}

TEST_F(PostgresDiagnosisTest, AWrongPasswordIsAFinding) {
  expect(diagnose(server.url_as("locker", "wrong")), "server", Severity::error, "password");
}

TEST_F(PostgresDiagnosisTest, WhatTheRoleHasByDefaultIsTold) {
  server.run("ALTER ROLE locker SET default_transaction_isolation TO serializable");
  server.run("ALTER ROLE locker SET idle_session_timeout TO '7s'");
  server.run("ALTER ROLE locker SET statement_timeout TO '1min'");
  const Findings findings = diagnose(server.url());
  expect(findings, "isolation", Severity::ok, "serializable for others");
  expect(findings, "timeouts", Severity::note, "statement_timeout=60000 ms, idle_session_timeout=7000 ms");
}

TEST_F(PostgresDiagnosisTest, APoolerIsNotedAndForSomeStrategiesAnError) {
  set_up();
  const PgBouncer pooler(server);
  expect(diagnose(server.url_at(pooler.port())), "pooler", Severity::note);
  expect(diagnose(server.url_at(pooler.port(), "strategy=advisory")), "pooler", Severity::error);
}

// What dlock asks for is not asked behind a pooler, so the defaults are in force.
TEST_F(PostgresDiagnosisTest, BehindAPoolerTheDefaultsAreInForce) {
  set_up();
  server.run("ALTER ROLE locker SET statement_timeout TO '1min'");
  server.run("ALTER ROLE locker SET default_transaction_isolation TO 'repeatable read'");
  const PgBouncer pooler(server);
  const Findings findings = diagnose(server.url_at(pooler.port()));
  expect(findings, "timeouts", Severity::warning, "statement_timeout");
  expect(findings, "isolation", Severity::warning, "repeatable read");
}

TEST_F(PostgresDiagnosisTest, ARoleWithoutRightsIsToldWhatItLacks) {
  set_up();
  server.run("DROP ROLE IF EXISTS guest");
  server.run("CREATE ROLE guest LOGIN PASSWORD 'secret' CONNECTION LIMIT 3");
  expect(diagnose(server.url_as("guest", "secret")), "schema", Severity::error, "may not use schema");
  server.run("GRANT USAGE ON SCHEMA dlock TO guest");
  server.run("GRANT SELECT, INSERT ON dlock.lease, dlock.fence TO guest");
  const Findings findings = diagnose(server.url_as("guest", "secret"));
  expect(findings, "schema", Severity::ok);
  expect(findings, "permissions", Severity::error, "GRANT SELECT, INSERT, UPDATE");
  expect(diagnose(server.url_as("guest", "secret", "strategy=advisory")), "connections", Severity::warning,
         "this role may have 3");
  server.run("DROP OWNED BY guest");
  server.run("DROP ROLE guest");
}

TEST_F(PostgresDiagnosisTest, UnloggedTablesAreTold) {
  set_up("durability=unlogged");
  expect(diagnose(server.url()), "tables", Severity::warning, "SET LOGGED");
  // The advice is good.
  for (const char* table : {"lease", "lease_rw", "lease_sem", "lease_elect"}) {
    server.run("ALTER TABLE \"dlock\".\"" + std::string(table) + "\" SET LOGGED");
  }
  expect(diagnose(server.url()), "tables", Severity::note, "nothing was found");
  expect(diagnose(server.url("durability=unlogged")), "tables", Severity::note, "is logged");
}

TEST_F(PostgresDiagnosisTest, AnIndexTooManyIsNamed) {
  set_up();
  server.run("CREATE INDEX \"by expiry\" ON dlock.lease (expires_at)");
  expect(diagnose(server.url()), "indexes", Severity::warning, "\"dlock\".\"by expiry\"");
}

TEST_F(PostgresDiagnosisTest, UpdatesThatAreNotInPlaceAreTold) {
  set_up();
  server.run("CREATE INDEX ON dlock.lease (expires_at)");
  update_often();
  expect(diagnose(server.url()), "table health", Severity::warning, "only 0 %");
}

TEST_F(PostgresDiagnosisTest, OursAreInPlace) {
  set_up();
  update_often();
  expect(diagnose(server.url()), "table health", Severity::ok, " % of updates in place");
}

TEST_F(PostgresDiagnosisTest, AnotherVersionIsAnError) {
  set_up();
  server.run("UPDATE dlock.meta SET version = 9");
  expect(diagnose(server.url()), "schema", Severity::error, "version 9");
}

TEST(PostgresDiagnosisOfOthers, AStandbyIsNotForLocks) {
  PostgresServer primary;
  const PostgresServer standby({.primary = &primary});
  const auto role = [](const std::string& url, const char* check) {
    return Findings(LiveServices(url).diagnose()).about(check);
  };
  EXPECT_EQ(role(standby.url("target_session_attrs=any"), "role").severity, Severity::error);
  EXPECT_EQ(role(standby.url(), "server").severity, Severity::error);
  EXPECT_EQ(role(primary.url(), "replication").severity, Severity::note);
  EXPECT_EQ(role(primary.url("strategy=advisory"), "replication").severity, Severity::note);
}

TEST(PostgresDiagnosisOfOthers, UnsafeSettingsAreWarnedOf) {
  const PostgresServer server(
      {.max_connections = 10,
       .lines = {"fsync = off", "full_page_writes = off", "synchronous_standby_names = 'nobody'"}});
  const Findings findings(LiveServices(server.url("strategy=advisory")).diagnose());
  EXPECT_EQ(findings.about("fsync").severity, Severity::warning);
  EXPECT_EQ(findings.about("full_page_writes").severity, Severity::warning);
  EXPECT_EQ(findings.about("connections").severity, Severity::warning) << findings.about("connections").message;
}

TEST(PostgresDiagnosisOfOthers, AStandbyThatIsWaitedForAndNotThereIsAnError) {
  const PostgresServer server({.lines = {"synchronous_standby_names = 'nobody'"}});
  EXPECT_EQ(Findings(LiveServices(server.url()).diagnose()).about("replication").severity, Severity::error);
}

// The same through the client, as dlock doctor and dlock init have it.
TEST_F(PostgresDiagnosisTest, TheClientPassesItOn) {
  const Client client = connect_patiently(server.url());
  EXPECT_FALSE(client.initialize().empty());
  EXPECT_TRUE(client.initialize().empty());
  expect(Findings(client.diagnose()), "schema", Severity::ok);
}

}  // namespace

}  // namespace dlock::test
