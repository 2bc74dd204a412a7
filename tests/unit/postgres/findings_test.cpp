#include "backends/postgres/administration/findings.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "backends/postgres/sql/preamble.hpp"
#include "table_row.hpp"

namespace dlock::postgres {

namespace {

using Severity = Finding::Severity;

// A server in which nothing is wrong.
Examined good_server() {
  Examined good;
  good.server = {.version = 150013, .encrypted = true, .endpoint = "db:5432/locks"};
  good.round_trip = std::chrono::microseconds(1500);
  good.our_clock = 1'000'001;
  good.answers["server"].rows = {{"15.13", "1000000", "t"}};
  good.answers["standbys"].rows = {{"0"}};
  good.answers["connections"].rows = {{"97", "5", "-1", "4", "-1", "5"}};
  Rows& settings = good.answers["settings"];
  settings.rows = {{"default_transaction_isolation", "read committed", "read committed"},
                   {"synchronous_commit", "on", "on"},
                   {"fsync", "on", "on"},
                   {"full_page_writes", "on", "on"}};
  const Preamble preamble({}, {.version = good.server.version});
  for (const Command& command : preamble.commands()) {
    if (!command.params.empty()) settings.rows.push_back({command.params[0], command.params[1], "0"});
  }
  good.answers["rights"].rows = {{"t", "t", "t", "t"}};
  for (const TableDefinition& table : layout()) good.answers["tables"].rows.push_back(table_row(table));
  good.answers["health"].rows = {{"lease", "100", "10", "5000", "4990", "65536"},
                                 {"fence", "100", "10", "5000", "4990", "65536"}};
  good.answers["indexes"] = {};
  good.answers["version"].rows = {{std::to_string(schema_version)}};
  return good;
}

std::vector<Finding> findings_about(const Examined& examined, const Options& options) {
  std::vector<Finding> all = server_findings(examined, options);
  for (const Finding& finding : table_findings(examined, options)) all.push_back(finding);
  return all;
}

Options good_options(Strategy strategy = Strategy::table) {
  Options options;
  options.strategy = strategy;
  options.libpq = {{"sslmode", "verify-full"}};
  return options;
}

// --- What is different -----------------------------------------------------------------------------------------------

using Change = std::function<void(Examined&, Options&)>;

Change with(Strategy strategy) {
  return [=](Examined&, Options& options) { options.strategy = strategy; };
}
Change with(Durability durability) {
  return [=](Examined&, Options& options) { options.durability = durability; };
}
template <class T>
Change with(T ServerInfo::*member, T value) {
  return [=](Examined& examined, Options&) { examined.server.*member = value; };
}
Change without_mode() {
  return [](Examined&, Options& options) { options.libpq.clear(); };
}
Change answer(const std::string& question, std::vector<Rows::Row> rows) {
  return [=](Examined& examined, Options&) { examined.answers[question].rows = rows; };
}
Change set(const std::string& name, const std::string& now, const std::string& by_default) {
  return [=](Examined& examined, Options&) {
    auto& rows = examined.answers["settings"].rows;
    (void)rows.insert(rows.begin(), {name, now, by_default});  // the first counts
  };
}
Change off(const std::string& name) {
  return set(name, "off", "off");
}
// Of what SchemaStatements::tables answers.
Change cell(std::size_t column, const std::string& text, std::size_t table = 1) {
  return [=](Examined& examined, Options&) { examined.answers["tables"].rows.at(table).at(column) = text; };
}
Change only_tables(const std::function<bool(const TableDefinition&)>& there) {
  return [=](Examined& examined, Options&) {
    auto& rows = examined.answers["tables"].rows;
    rows.clear();
    for (const TableDefinition& table : layout()) {
      if (there(table)) rows.push_back(table_row(table));
    }
  };
}
Change health(const Rows::Row& row) {
  return answer("health", {row});
}

struct Case {
  std::vector<Change> changes;
  std::string check;
  Severity severity;
  std::string words = {};
};

const auto& cases() {
  using enum Severity;
  constexpr auto advisory = Strategy::advisory;
  constexpr auto for_update = Strategy::for_update;
  static const std::vector<Case> all = {
      {{with(&ServerInfo::version, 110022)}, "version", error, "needs 12"},
      {{with(&ServerInfo::version, 130010)}, "version", ok},
      {{with(&ServerInfo::version, 130010), with(for_update)}, "version", warning, "idle_session_timeout"},
      {{with(&ServerInfo::standby, true)}, "role", error, "a standby"},

      {{without_mode()}, "encryption", note, "sslrootcert"},
      {{without_mode(), with<std::string>(&ServerInfo::endpoint, "[::1]:5432/db")}, "encryption", ok},
      {{with(&ServerInfo::encrypted, false)}, "encryption", warning, "sslrootcert"},
      {{with(&ServerInfo::encrypted, false), with<std::string>(&ServerInfo::endpoint, "127.example.net:5432/db")},
       "encryption",
       warning},
      {{with(&ServerInfo::encrypted, false), with<std::string>(&ServerInfo::endpoint, "127.0.0.1:5432/db")},
       "encryption",
       ok},
      {{with(&ServerInfo::encrypted, false), with<std::string>(&ServerInfo::endpoint, "localhost:5432/db")},
       "encryption",
       ok},
      {{with(&ServerInfo::encrypted, false), with<std::string>(&ServerInfo::endpoint, "/run/postgresql:5432/db")},
       "encryption",
       ok,
       "a socket of this machine"},

      {{with(&ServerInfo::pooled, true)}, "pooler", note, "poll"},
      {{with(&ServerInfo::pooled, true), with(advisory)}, "pooler", error, "strategy=advisory"},
      {{with(&ServerInfo::pooled, true), with(for_update)}, "pooler", error, "strategy=for-update"},
      {{[](Examined&, Options& options) { options.pooler = Pooler::session; }}, "pooler", note, "trusts"},

      {{set("default_transaction_isolation", "read committed", "serializable")},
       "isolation",
       ok,
       "serializable for others"},
      {{set("default_transaction_isolation", "serializable", "serializable")}, "isolation", warning},
      // The server did not accept them; a Unix socket has no keepalive.
      {{set("tcp_user_timeout", "0", "0")}, "settings", warning, "tcp_user_timeout is 0 instead of 30000"},
      {{set("tcp_user_timeout", "0", "0"), answer("server", {{"15.13", "1000000", "f"}})}, "settings", ok},
      {{set("client_connection_check_interval", "0", "0")},
       "settings",
       warning,
       "client_connection_check_interval is 0 instead of 500"},
      {{off("fsync")}, "fsync", warning, "switch it on"},
      {{off("full_page_writes")}, "full_page_writes", warning},
      {{off("synchronous_commit")}, "durability", ok},  // dlock's own commits wait
      {{with(Durability::async)}, "durability", note, "durability=async"},

      {{answer("standbys", {{"2"}})}, "replication", note, "2 standbys, none of them synchronous"},
      {{answer("standbys", {{"1"}}), set("synchronous_standby_names", "s1", "s1")}, "replication", ok, "1 standby;"},
      {{answer("standbys", {{"2"}}), with(advisory)}, "replication", note, "advisory locks are not replicated"},
      {{answer("standbys", {{"2"}}), set("synchronous_standby_names", "s1", "s1"),
        set("synchronous_commit", "local", "local")},
       "replication",
       note,
       "do not wait"},
      {{set("synchronous_standby_names", "s1", "s1")}, "replication", error, "no standby is connected"},

      {{answer("connections", {{"97", "91", "-1", "4", "-1", "5"}})}, "connections", ok, "up to 3"},
      {{answer("connections", {{"97", "91", "-1", "4", "-1", "5"}}), with(advisory)},
       "connections",
       warning,
       "the server may have 97 connections and has 91; a client of this kind opens up to 13"},
      {{answer("connections", {{"97", "5", "6", "4", "-1", "5"}})},
       "connections",
       warning,
       "this role may have 6 connections and has 4"},
      {{answer("connections", {{"97", "5", "-1", "4", "7", "5"}})},
       "connections",
       warning,
       "this database may have 7 connections and has 5"},

      {{answer("server", {{"15.13", "999940", "t"}})}, "clock", warning, "61s behind"},
      {{answer("server", {{"15.13", "999940", "t"}}), with(Strategy::optimistic)}, "clock", note},

      {{answer("rights", {{"f", "f", "f", "t"}}), answer("tables", {})}, "schema", note, "dlock init"},
      {{answer("rights", {{"f", "f", "f", "f"}}), answer("tables", {})}, "schema", error, "dlock init"},
      {{answer("version", {{"2"}})}, "schema", error, "version 2"},
      {{cell(1, "name")}, "schema", error, "\"dlock\".\"lease\""},
      {{cell(1, std::string(layout()[1].columns))}, "schema", note, "\"dlock\".\"lease\" has no column waiters"},
      // Plain locks are as good as ever with tables that the first dlock has made.
      {{only_tables(&TableDefinition::since_first)}, "schema", note, "is not complete"},
      {{only_tables(&TableDefinition::since_first)}, "permissions", ok},
      {{cell(5, "f")}, "permissions", error, "\"dlock\".\"lease\"; it needs: GRANT USAGE"},
      {{cell(5, "f"), with(advisory)}, "permissions", ok},
      {{cell(6, "mallory"), cell(7, "f")}, "owners", warning, "\"dlock\".\"lease\" belongs to role \"mallory\""},
      {{cell(7, "f"), cell(8, "trigger trap", 2)}, "owners", error, "trigger trap"},
      {{cell(2, "u")}, "tables", warning, "ALTER TABLE \"dlock\".\"lease\" SET LOGGED"},
      {{with(Durability::unlogged)}, "tables", note, "ALTER TABLE \"dlock\".\"lease\" SET UNLOGGED"},
      {{answer("indexes", {{"lease", "by_expiry"}})}, "indexes", warning, "\"dlock\".\"by_expiry\""},
      {{answer("indexes", {{"lease", "by_expiry"}, {"fence", "by_key"}}), with(advisory)},
       "indexes",
       warning,
       "\"dlock\".\"by_key\""},
      {{health({"lease", "100", "0", "0", "0", "16384"})}, "table health", ok, "about 100 rows in 16 kB"},
      {{health({"lease", "100", "500000", "9000", "8999", "16384"})}, "table health", warning, "500000 dead rows"},
      {{health({"lease", "100", "10", "9000", "90", "16384"})}, "table health", warning, "only 1 %"},
      {{health({"lease", "100", "10", "9000", "8999", "1073741824"})},
       "table health",
       warning,
       "1024 MB for about 100 rows"},
      {{health({"lease", "5000000", "10", "9000", "8999", "1073741824"})}, "table health", ok, "99 % of updates"},
  };
  return all;
}

TEST(PostgresFindings, SayWhatADifferenceMeans) {
  for (const Case& each : cases()) {
    Examined examined = good_server();
    Options options = good_options();
    for (const Change& change : each.changes) change(examined, options);
    const std::vector<Finding> all = findings_about(examined, options);
    const auto found = std::find_if(all.begin(), all.end(), [&](const Finding& f) { return f.check == each.check; });
    ASSERT_NE(found, all.end()) << each.check << ": " << each.words;
    EXPECT_EQ(found->severity, each.severity) << each.check << ": " << found->message;
    EXPECT_NE(found->message.find(each.words), std::string::npos) << each.check << ": " << found->message;
  }
}

TEST(PostgresFindings, FindNothingWrongWhereNothingIs) {
  for (const Strategy strategy : {Strategy::table, Strategy::advisory}) {
    const auto all = findings_about(good_server(), good_options(strategy));
    EXPECT_EQ(all.size(), 16U);
    for (const Finding& finding : all) {
      EXPECT_EQ(finding.severity, Severity::ok) << finding.check << ": " << finding.message;
    }
    EXPECT_EQ(all.front().message, "db:5432/locks answered within 1500us");
  }
}

TEST(PostgresFindings, TimeoutsThatEndHoldersAreNamed) {
  for (const std::string name : {"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout",
                                 "idle_session_timeout", "transaction_timeout"}) {
    for (const auto& [now, severity] : {std::pair("0", Severity::note), std::pair("7000", Severity::warning)}) {
      Examined examined = good_server();
      Options options = good_options();
      set(name, now, "7000")(examined, options);
      const auto all = server_findings(examined, options);
      const auto found = std::find_if(all.begin(), all.end(), [&](const Finding& f) { return f.check == "timeouts"; });
      EXPECT_EQ(found->severity, severity) << name;
      EXPECT_TRUE(found->message.starts_with(name + "=7000 ms")) << found->message;
    }
  }
}

TEST(PostgresFindings, WhatCouldNotBeAskedIsNotJudged) {
  Examined examined = good_server();
  examined.answers.clear();
  EXPECT_EQ(server_findings(examined, good_options()).size(), 5U);
  EXPECT_TRUE(table_findings(examined, good_options()).empty());
}

}  // namespace

}  // namespace dlock::postgres
