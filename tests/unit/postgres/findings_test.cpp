#include "backends/postgres/administration/findings.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "backends/postgres/schema/layout.hpp"
#include "backends/postgres/sql/preamble.hpp"
#include "table_row.hpp"

namespace dlock::postgres {

namespace {

using Severity = Finding::Severity;

// A server in which nothing is wrong.
Examined good_server() {
  Examined good;
  good.server = {.version = 150013, .encrypted = true, .isolation = "read committed", .endpoint = "db:5432/locks"};
  good.round_trip = std::chrono::microseconds(1500);
  good.server_clock = 1'000'000;
  good.our_clock = 1'000'001;
  good.over_tcp = true;
  good.version = "15.13";
  good.standbys = 0;
  good.connections = Rows{.rows = {{"97", "5", "-1", "4", "-1", "5"}}};
  for (const std::string& name : interesting_settings()) good.settings[name] = {"0", "0"};
  const Preamble preamble({}, {.version = good.server.version});
  for (const Command& command : preamble.commands()) {
    if (!command.params.empty()) good.settings[*command.params[0]] = {*command.params[1], "0"};
  }
  good.settings["default_transaction_isolation"] = {"read committed", "read committed"};
  good.settings["synchronous_commit"] = {"on", "on"};
  good.settings["synchronous_standby_names"] = {"", ""};
  good.settings["fsync"] = {"on", "on"};
  good.settings["full_page_writes"] = {"on", "on"};
  good.rights = Rows{.rows = {{"t", "t", "t", "t"}}};
  good.tables = Rows{};
  for (const TableDefinition& table : layout()) good.tables->rows.push_back(table_row(table));
  good.health =
      Rows{.rows = {{"lease", "100", "10", "5000", "4990", "65536"}, {"fence", "100", "10", "5000", "4990", "65536"}}};
  good.indexes = Rows{};
  good.schema_version = schema_version;
  return good;
}

class PostgresFindings : public testing::Test {
 protected:
  // The first finding of a check; fails where there is none.
  [[nodiscard]] Finding about(const std::string& check) const {
    std::vector<Finding> findings = server_findings(server, options);
    for (Finding& finding : table_findings(server, options)) findings.push_back(std::move(finding));
    const auto found =
        std::find_if(findings.begin(), findings.end(), [&](const Finding& finding) { return finding.check == check; });
    if (found != findings.end()) return *found;
    ADD_FAILURE() << "nothing was found about " << check;
    return {};
  }
  [[nodiscard]] Severity severity(const std::string& check) const { return about(check).severity; }
  void expect(const std::string& check, const std::string& words) const {
    const std::string message = about(check).message;
    EXPECT_NE(message.find(words), std::string::npos) << message;
  }
  void set(const std::string& name, const std::string& now, const std::string& by_default) {
    server.settings[name] = {now, by_default};
  }
  void use(Strategy strategy) { options.strategy = strategy; }

  Examined server = good_server();
  Options options = [] {
    Options o;
    o.libpq = {{"sslmode", "verify-full"}};
    return o;
  }();
};

TEST_F(PostgresFindings, FindsNothingWrongWhereNothingIs) {
  for (const Strategy strategy : {Strategy::table, Strategy::advisory}) {
    use(strategy);
    std::vector<Finding> findings = server_findings(server, options);
    EXPECT_EQ(findings.size(), 12U);
    for (Finding& finding : table_findings(server, options)) findings.push_back(std::move(finding));
    EXPECT_EQ(findings.size(), 16U);
    for (const Finding& finding : findings) {
      EXPECT_EQ(finding.severity, Severity::ok) << finding.check << ": " << finding.message;
    }
  }
  expect("server", "db:5432/locks answered within 1500us");
}

// --- The server ------------------------------------------------------------------------------------------------------

TEST_F(PostgresFindings, OldServersAreRefusedOrWarnedOf) {
  server.server.version = 110022;
  EXPECT_EQ(severity("version"), Severity::error);
  server.server.version = 130010;
  EXPECT_EQ(severity("version"), Severity::ok) << "for leases in rows";
  use(Strategy::for_update);
  EXPECT_EQ(severity("version"), Severity::warning) << "it has no idle_session_timeout";
}

TEST_F(PostgresFindings, AStandbyKeepsNoLocks) {
  server.server.standby = true;
  EXPECT_EQ(severity("role"), Severity::error);
}

TEST_F(PostgresFindings, WhatIsNotVerifiedMayComeFromAnybody) {
  options.libpq = {{"sslmode", "require"}};
  EXPECT_EQ(severity("encryption"), Severity::note);
  expect("encryption", "sslrootcert");
  options.libpq.clear();
  EXPECT_EQ(severity("encryption"), Severity::note);
  server.server.encrypted = false;
  EXPECT_EQ(severity("encryption"), Severity::warning);
  expect("encryption", "sslrootcert");
  server.server.endpoint = "127.example.net:5432/db";
  EXPECT_EQ(severity("encryption"), Severity::warning);
  for (const char* endpoint : {"localhost:5432/db", "127.0.0.1:5432/db", "[::1]:5432/db", "/run/postgresql:5432/db"}) {
    server.server.endpoint = endpoint;
    EXPECT_EQ(severity("encryption"), Severity::ok) << endpoint;
  }
}

TEST_F(PostgresFindings, APoolerIsNotForLocksThatLiveInSessions) {
  server.server.pooled = true;
  EXPECT_EQ(severity("pooler"), Severity::note);
  use(Strategy::optimistic);
  EXPECT_EQ(severity("pooler"), Severity::note);
  use(Strategy::advisory);
  EXPECT_EQ(severity("pooler"), Severity::error);
  use(Strategy::for_update);
  EXPECT_EQ(severity("pooler"), Severity::error);
  server.server.pooled = false;
  options.pooler = Pooler::session;
  EXPECT_EQ(severity("pooler"), Severity::note) << "it is the user who says so";
}

TEST_F(PostgresFindings, AnIsolationThatCouldNotBeChangedIsWarnedOf) {
  set("default_transaction_isolation", "read committed", "serializable");
  EXPECT_EQ(severity("isolation"), Severity::ok);
  expect("isolation", "serializable for others");
  set("default_transaction_isolation", "serializable", "serializable");
  EXPECT_EQ(severity("isolation"), Severity::warning);
}

TEST_F(PostgresFindings, TimeoutsThatEndHoldersAreNamed) {
  for (const char* name : {"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout",
                           "idle_session_timeout", "transaction_timeout"}) {
    server = good_server();
    set(name, "0", "7000");
    EXPECT_EQ(severity("timeouts"), Severity::note) << name;
    expect("timeouts", std::string(name) + "=7000 ms");
    set(name, "7000", "7000");
    EXPECT_EQ(severity("timeouts"), Severity::warning) << name;
    expect("timeouts", std::string(name) + "=7000 ms");
  }
}

TEST_F(PostgresFindings, WhatTheServerDidNotTakeIsNamed) {
  set("tcp_user_timeout", "0", "0");
  EXPECT_EQ(severity("settings"), Severity::warning);
  expect("settings", "tcp_user_timeout is 0 instead of 30000");
  server.over_tcp = false;
  EXPECT_EQ(severity("settings"), Severity::ok) << "a Unix socket has none";
  set("client_connection_check_interval", "0", "0");
  expect("settings", "client_connection_check_interval is 0 instead of 500");
}

TEST_F(PostgresFindings, WhatIsNotOnDiskIsWarnedOf) {
  set("fsync", "off", "off");
  EXPECT_EQ(severity("fsync"), Severity::warning);
  set("full_page_writes", "off", "off");
  EXPECT_EQ(severity("full_page_writes"), Severity::warning);
  set("synchronous_commit", "off", "off");
  EXPECT_EQ(severity("durability"), Severity::ok) << "not for dlock's own commits";
  options.durability = Durability::async;
  EXPECT_EQ(severity("durability"), Severity::note) << "as was asked for";
}

TEST_F(PostgresFindings, StandbysThatNobodyWaitsForMayLoseLocks) {
  server.standbys = 2;
  EXPECT_EQ(severity("replication"), Severity::note);
  expect("replication", "2 standbys, none of them synchronous");
  set("synchronous_standby_names", "s1", "s1");
  EXPECT_EQ(severity("replication"), Severity::ok);
  use(Strategy::advisory);
  EXPECT_EQ(severity("replication"), Severity::note);
  expect("replication", "advisory locks are not replicated");
  use(Strategy::table);
  set("synchronous_commit", "local", "local");
  EXPECT_EQ(severity("replication"), Severity::note);
  expect("replication", "do not wait");
}

TEST_F(PostgresFindings, WaitingForAStandbyThatIsNotThereIsAnError) {
  set("synchronous_standby_names", "s1", "s1");
  EXPECT_EQ(severity("replication"), Severity::error);
}

TEST_F(PostgresFindings, RoomForConnectionsIsCountedByStrategy) {
  server.connections = Rows{.rows = {{"97", "91", "-1", "4", "-1", "5"}}};
  EXPECT_EQ(severity("connections"), Severity::ok) << "rows need three";
  use(Strategy::advisory);
  EXPECT_EQ(severity("connections"), Severity::warning);
  expect("connections", "the server may have 97 connections and has 91");
  options.max_connections = 3;
  EXPECT_EQ(severity("connections"), Severity::ok);
  server.connections = Rows{.rows = {{"97", "5", "6", "4", "-1", "5"}}};
  expect("connections", "this role may have 6 connections and has 4");
  server.connections = Rows{.rows = {{"97", "5", "-1", "4", "7", "5"}}};
  expect("connections", "this database may have 7 connections and has 5");
}

TEST_F(PostgresFindings, AClockThatDiffersIsWarnedOf) {
  server.our_clock += 60;
  EXPECT_EQ(severity("clock"), Severity::warning);
  expect("clock", "61s behind");
  use(Strategy::optimistic);
  EXPECT_EQ(severity("clock"), Severity::note) << "it decides nothing there";
}

TEST_F(PostgresFindings, WhatCouldNotBeAskedIsNotJudged) {
  server.settings.clear();
  server.standbys.reset();
  server.connections.reset();
  server.server_clock.reset();
  EXPECT_EQ(server_findings(server, options).size(), 5U);
  server.tables.reset();
  EXPECT_TRUE(table_findings(server, options).empty());
}

// --- The tables ------------------------------------------------------------------------------------------------------

TEST_F(PostgresFindings, ASchemaThatIsNotThereYetIsFineForWhoMayMakeIt) {
  server.rights = Rows{.rows = {{"f", "f", "f", "t"}}};
  server.tables = Rows{};
  EXPECT_EQ(severity("schema"), Severity::note);
  expect("schema", "dlock init");
  server.rights = Rows{.rows = {{"f", "f", "f", "f"}}};
  EXPECT_EQ(severity("schema"), Severity::error);
  expect("schema", "dlock init");
}

TEST_F(PostgresFindings, ASchemaThatIsNotOursIsAnError) {
  server.schema_version = 2;
  EXPECT_EQ(severity("schema"), Severity::error);
  expect("schema", "version 2");
  server.schema_version = schema_version;
  server.tables->rows[1][1] = "name";
  EXPECT_EQ(severity("schema"), Severity::error);
  expect("schema", "\"dlock\".\"lease\"");
}

TEST_F(PostgresFindings, AMissingRightIsAnErrorWhereTheStrategyNeedsIt) {
  server.tables->rows[1][5] = "f";  // lease, UPDATE
  EXPECT_EQ(severity("permissions"), Severity::error);
  expect("permissions", "\"dlock\".\"lease\"");
  expect("permissions", "GRANT SELECT, INSERT, UPDATE");
  use(Strategy::advisory);
  EXPECT_EQ(severity("permissions"), Severity::ok);
}

// Its plain locks are as good as ever.
TEST_F(PostgresFindings, WhatAnOlderDlockHasMadeIsLookedAtToo) {
  for (const TableDefinition& table : layout()) {
    if (table.since_first) continue;
    std::erase_if(server.tables->rows, [&](const auto& row) { return row.at(0) == table.name; });
  }
  EXPECT_EQ(severity("schema"), Severity::note);
  expect("schema", "is not complete");
  EXPECT_EQ(severity("permissions"), Severity::ok);
}

TEST_F(PostgresFindings, WhatOthersWouldRunThereIsTold) {
  EXPECT_EQ(severity("owners"), Severity::ok);
  server.tables->rows[1][7] = "mallory";
  server.tables->rows[1][8] = "f";
  EXPECT_EQ(severity("owners"), Severity::warning);
  expect("owners", "\"dlock\".\"lease\" belongs to role \"mallory\"");
  server.tables->rows[2][9] = "trigger trap";
  EXPECT_EQ(severity("owners"), Severity::error);
  expect("owners", "trigger trap");
  server.tables->rows.pop_back();
  EXPECT_EQ(severity("schema"), Severity::note) << "not complete";
  EXPECT_EQ(severity("owners"), Severity::error);
}

TEST_F(PostgresFindings, UnloggedTablesAreWarnedOfUnlessAskedFor) {
  for (Rows::Row& row : server.tables->rows) row[2] = "u";
  EXPECT_EQ(severity("tables"), Severity::warning);
  expect("tables", "ALTER TABLE \"dlock\".\"lease\" SET LOGGED");
  options.durability = Durability::unlogged;
  for (const Finding& finding : table_findings(server, options)) EXPECT_NE(finding.check, "tables");
  for (Rows::Row& row : server.tables->rows) row[2] = "p";
  EXPECT_EQ(severity("tables"), Severity::note);
}

TEST_F(PostgresFindings, AnIndexTooManyIsNamed) {
  server.indexes = Rows{.rows = {{"lease", "by_expiry"}}};
  EXPECT_EQ(severity("indexes"), Severity::warning);
  expect("indexes", "\"dlock\".\"by_expiry\"");
  use(Strategy::advisory);
  server.indexes = Rows{.rows = {{"lease", "by_expiry"}, {"fence", "by_key"}}};
  expect("indexes", "\"dlock\".\"by_key\"");
}

TEST_F(PostgresFindings, AnUnhealthyTableIsWarnedOf) {
  const auto health = [&](Rows::Row row) {
    server.health = Rows{.rows = {std::move(row)}};
    return about("table health");
  };
  EXPECT_EQ(health({"lease", "100", "0", "0", "0", "16384"}).severity, Severity::ok) << "nothing has happened yet";
  EXPECT_EQ(health({"lease", "100", "500000", "9000", "8999", "16384"}).severity, Severity::warning);
  expect("table health", "500000 dead rows");
  EXPECT_EQ(health({"lease", "100", "10", "9000", "90", "16384"}).severity, Severity::warning);
  expect("table health", "only 1 %");
  EXPECT_EQ(health({"lease", "100", "10", "9000", "8999", "1073741824"}).severity, Severity::warning);
  expect("table health", "1024 MB for about 100 rows");
  EXPECT_EQ(health({"lease", "5000000", "10", "9000", "8999", "1073741824"}).severity, Severity::ok);
}

}  // namespace

}  // namespace dlock::postgres
