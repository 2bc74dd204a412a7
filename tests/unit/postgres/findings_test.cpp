#include "backends/postgres/administration/findings.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "backends/postgres/schema/layout.hpp"
#include "backends/postgres/sql/preamble.hpp"

namespace dlock::postgres {

namespace {

using Severity = Finding::Severity;

// The answer of SchemaStatements::tables about a table that is as it should be.
Rows::Row table_row(const TableDefinition& table) {
  return {std::string(table.name), std::string(table.columns), "p", "t", "t", "t", "me", "t", ""};
}

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
Change at(const std::string& endpoint) {
  return with(&ServerInfo::endpoint, endpoint);
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
Change set(const std::string& name, const std::string& value) {
  return set(name, value, value);
}
// Of what SchemaStatements::tables answers.
Change cell(std::size_t column, const std::string& text, std::size_t table = 1) {
  return [=](Examined& examined, Options&) { examined.answers["tables"].rows.at(table).at(column) = text; };
}
Change health(const Rows::Row& row) {
  return answer("health", {row});
}
void leave_first_tables(Examined& examined, Options&) {
  auto& rows = examined.answers["tables"].rows;
  rows.clear();
  for (const TableDefinition& table : layout()) {
    if (table.since_first) rows.push_back(table_row(table));
  }
}

struct Case {
  std::string check;
  Severity severity;
  std::string words;
  std::vector<Change> changes;
};

// Tests on real servers have other differences.
const std::vector<Case>& cases() {
  using enum Severity;
  const Change advisory = with(Strategy::advisory);
  const Change for_update = with(Strategy::for_update);
  const Change not_verified = [](Examined&, Options& options) { options.libpq.clear(); };
  const Change plain = with(&ServerInfo::encrypted, false);
  const Change pooled = with(&ServerInfo::pooled, true);
  const Change trusted = [](Examined&, Options& options) { options.pooler = Pooler::session; };
  const Change standbys = answer("standbys", {{"2"}});
  const Change named = set("synchronous_standby_names", "s1");
  const Change crowded = answer("connections", {{"97", "91", "-1", "4", "-1", "5"}});
  const Change late = answer("server", {{"15.13", "999940", "t"}});
  const Change by_socket = answer("server", {{"15.13", "1000000", "f"}});
  const std::string check_interval = "client_connection_check_interval";
  static const std::vector<Case> all = {
      {"version", error, "needs 12", {with(&ServerInfo::version, 110022)}},
      {"version", ok, "", {with(&ServerInfo::version, 130010)}},
      {"version", warning, "idle_session_timeout", {with(&ServerInfo::version, 130010), for_update}},

      {"encryption", note, "sslrootcert", {not_verified}},
      {"encryption", ok, "", {not_verified, at("[::1]:5432/db")}},
      {"encryption", warning, "sslrootcert", {plain}},
      {"encryption", warning, "", {plain, at("127.example.net:5432/db")}},
      {"encryption", ok, "", {plain, at("127.0.0.1:5432/db")}},
      {"encryption", ok, "", {plain, at("localhost:5432/db")}},
      {"encryption", ok, "a socket of this machine", {plain, at("/run/postgresql:5432/db")}},

      {"pooler", note, "poll", {pooled}},
      {"pooler", error, "strategy=for-update", {pooled, for_update}},
      {"pooler", note, "trusts", {trusted}},

      {"isolation", warning, "serializable", {set("default_transaction_isolation", "serializable")}},
      // The server did not accept them; a Unix socket has no keepalive.
      {"settings", warning, "tcp_user_timeout is 0 instead of 30000", {set("tcp_user_timeout", "0")}},
      {"settings", ok, "", {set("tcp_user_timeout", "0"), by_socket}},
      {"settings", warning, check_interval + " is 0 instead of 500", {set(check_interval, "0")}},
      {"durability", ok, "", {set("synchronous_commit", "off")}},  // dlock's own commits wait
      {"durability", note, "durability=async", {with(Durability::async)}},

      {"replication", note, "2 standbys, none of them synchronous", {standbys}},
      {"replication", ok, "1 standby;", {answer("standbys", {{"1"}}), named}},
      {"replication", note, "do not wait", {standbys, named, set("synchronous_commit", "local")}},

      {"connections", ok, "up to 3", {crowded}},
      {"connections",
       warning,
       "server may have 97 connections and has 91; a client of this kind opens up to 13",
       {crowded, advisory}},
      {"connections",
       warning,
       "this database may have 7 connections and has 5",
       {answer("connections", {{"97", "5", "-1", "4", "7", "5"}})}},
      {"clock", warning, "61s behind", {late}},
      {"clock", note, "61s behind", {late, with(Strategy::optimistic)}},

      {"schema", error, "dlock init", {answer("rights", {{"f", "f", "f", "f"}}), answer("tables", {})}},
      {"schema", error, "\"dlock\".\"lease\"", {cell(1, "name")}},
      // Plain locks are as good as ever with tables that the first dlock has made.
      {"schema", note, "is not complete", {leave_first_tables}},
      {"permissions", ok, "", {leave_first_tables}},
      {"permissions", ok, "", {cell(5, "f"), advisory}},
      {"owners", warning, "\"lease\" belongs to role \"mallory\"", {cell(6, "mallory"), cell(7, "f")}},
      {"owners", error, "trigger trap", {cell(7, "f"), cell(8, "trigger trap", 2)}},
      {"indexes", warning, "\"by_key\"", {answer("indexes", {{"lease", "by_expiry"}, {"fence", "by_key"}}), advisory}},
      {"table health", ok, "about 100 rows in 16 kB", {health({"lease", "100", "0", "0", "0", "16384"})}},
      {"table health", warning, "500000 dead", {health({"lease", "100", "500000", "9000", "8999", "16384"})}},
      {"table health", warning, "1024 MB for", {health({"lease", "100", "10", "9000", "8999", "1073741824"})}},
      {"table health", ok, "99 % of", {health({"lease", "5000000", "10", "9000", "8999", "1073741824"})}},
  };
  return all;
}

TEST(PostgresFindings, Difference_IsExplained) {
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

TEST(PostgresFindings, GoodServer_HasNoFindings) {
  for (const Strategy strategy : {Strategy::table, Strategy::advisory}) {
    const auto all = findings_about(good_server(), good_options(strategy));
    EXPECT_EQ(all.size(), 16U);
    for (const Finding& finding : all) {
      EXPECT_EQ(finding.severity, Severity::ok) << finding.check << ": " << finding.message;
    }
    EXPECT_EQ(all.front().message, "db:5432/locks answered within 1500us");
  }
}

TEST(PostgresFindings, TimeoutsThatEndHolders_AreNamed) {
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

TEST(PostgresFindings, UnansweredQuery_IsNotJudged) {
  Examined examined = good_server();
  examined.answers.clear();
  EXPECT_EQ(server_findings(examined, good_options()).size(), 5U);
  EXPECT_TRUE(table_findings(examined, good_options()).empty());
}

}  // namespace

}  // namespace dlock::postgres
