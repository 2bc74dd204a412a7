#include "backends/mysql/administration/diagnosis.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "backends/common/findings.hpp"
#include "backends/mysql/client/preamble.hpp"
#include "backends/mysql/sql/layout.hpp"
#include "util/names.hpp"

namespace dlock::mysql {

using sql::Outcome;
using sql::Problem;
using sql::Results;

namespace {

using Severity = Finding::Severity;

// NOWAIT, SKIP LOCKED and window for what is missing in older ones.
constexpr int oldest_mariadb = 100600;
constexpr int oldest_mysql = 80001;

constexpr const char* settings_sql =
    "SHOW GLOBAL VARIABLES WHERE variable_name IN ('innodb_flush_log_at_trx_commit', 'sync_binlog', 'log_bin', "
    "'rpl_semi_sync_master_enabled', 'rpl_semi_sync_source_enabled')";
constexpr const char* server_sql = "SELECT VERSION(), UNIX_TIMESTAMP()";

Finding judge_version(const Examined& examined) {
  const int version = examined.server.version;
  if (is_mariadb(version)) {
    const std::string text = "MariaDB " + examined.version;
    if (version < oldest_mariadb) return {Severity::error, "version", text + "; dlock needs 10.6 or later"};
    return {Severity::ok, "version", text};
  }
  const std::string text = "MySQL " + examined.version;
  if (version < oldest_mysql) return {Severity::error, "version", text + "; dlock needs 8.0.1 or later"};
  return {Severity::note, "version", text + ": dlock is untested with MySQL; it is tested with MariaDB 10.11"};
}

Finding judge_proxy(const sql::ServerInfo& server, const Options& options) {
  if (server.pooled && lives_in_sessions(options.strategy)) {
    return {Severity::error, "proxy",
            "there is a proxy in front of the server, and with strategy=" + std::string(to_string(options.strategy)) +
                " locks belong to sessions, which the proxy may lend to several clients: connect to the server itself, "
                "or use strategy=table"};
  }
  if (server.pooled) {
    return {Severity::note, "proxy",
            "there is a proxy in front of the server, so waiters are not woken when a lock is released; they poll "
            "instead"};
  }
  if (options.pooler != Pooler::session) return {Severity::ok, "proxy", "none in front of the server"};
  return {Severity::note, "proxy", "pooler=session: dlock trusts that each client has a session of its own"};
}

Finding judge_encryption(const sql::ServerInfo& server, const Options& options) {
  if (!server.encrypted)
    return common::not_encrypted(common::is_this_machine(server.endpoint), "; set tls=verify in the URL");
  if (options.tls == Tls::verify) {
    return {Severity::ok, "encryption", "TLS, and the server's certificate is verified"};
  }
  return {Severity::note, "encryption",
          "TLS, but the URL does not ask dlock to verify the server, so anyone on the network path can pose as the "
          "server; set tls=verify"};
}

Finding judge_durability(const Examined& examined) {
  if (examined.setting("innodb_flush_log_at_trx_commit") != "1") {
    return {Severity::warning, "durability",
            "innodb_flush_log_at_trx_commit=" + examined.setting("innodb_flush_log_at_trx_commit") +
                ": after a power failure the server may have forgotten the last grants, and grant them again"};
  }
  return {Severity::ok, "durability", "a grant is on disk before it is answered"};
}

Finding judge_replication(const Examined& examined, const Options& options) {
  if (examined.server.many_writers) {
    const std::string cluster = "a cluster with several writers (Galera; Group Replication is untested)";
    if (!lives_in_sessions(options.strategy)) {
      return {Severity::note, "replication",
              cluster + ": two nodes never grant a lock of this strategy at once; one that loses the race tries again"};
    }
    if (!options.single_writer) {
      return {Severity::error, "replication",
              cluster +
                  ": each of its nodes would grant a lock of strategy=" + std::string(to_string(options.strategy)) +
                  "; use strategy=table, or single_writer=true if all clients use the same node"};
    }
    return {Severity::warning, "replication",
            cluster + ", and single_writer=true: dlock trusts that all clients use the same node"};
  }
  if (examined.setting("log_bin") != "ON")
    return {Severity::ok, "replication", "none: the server writes no binary log"};
  const bool waits = examined.setting("rpl_semi_sync_master_enabled") == "ON" ||
                     examined.setting("rpl_semi_sync_source_enabled") == "ON";
  if (waits) {
    return {Severity::ok, "replication",
            "semi-synchronous: a failover keeps what was granted, unless replication has fallen back to asynchronous"};
  }
  return {Severity::note, "replication",
          "the server does not wait for its replicas: a failover may forget the last grants; fencing tokens protect "
          "what checks them"};
}

Finding judge_tables(const Examined& examined, const Options& options) {
  const std::string schema = "schema " + util::quoted(options.schema);
  for (const TableDefinition& table : layout()) {
    if (std::ranges::count(examined.tables, table.name) > 0) continue;
    return {Severity::note, "schema",
            schema + (examined.tables.empty() ? " is missing" : " lacks table " + util::quoted(table.name)) +
                ", or this user has no rights there: \"dlock init\" makes it; " + needed_grants(options.schema)};
  }
  return {Severity::ok, "schema", schema + " has all tables"};
}

}  // namespace

std::string Examined::setting(std::string_view name) const {
  const auto found = settings.find(name);
  return found == settings.end() ? std::string() : found->second;
}

std::vector<Finding> findings_of(const Examined& examined, const Options& options) {
  return {common::server_answered(examined.server.endpoint, examined.round_trip),
          judge_version(examined),
          judge_encryption(examined.server, options),
          judge_proxy(examined.server, options),
          judge_durability(examined),
          judge_replication(examined, options),
          common::compared_clocks(examined.its_clock, examined.our_clock, Severity::note,
                                  "tokens of a server whose clock is set back grow more slowly"),
          judge_tables(examined, options)};
}

void diagnose(sql::Commands& commands, const Options& options, Backend::Handler<std::vector<Finding>> done) {
  static const SchemaStatements statements = schema_statements("");
  sql::Query query{.commands = {{.text = server_sql},
                                {.text = settings_sql},
                                {.statement = &statements.tables, .params = {options.schema}}}};
  query.done = [&commands, &options, done = std::move(done)](const Outcome& outcome, const Results& results) {
    if (outcome.problem != Problem::none) {
      const std::string why = unanswered_question(outcome.failure).detail;
      return done(std::vector<Finding>{{Severity::error, "server", why}});
    }
    Examined examined{.server = commands.server(),
                      .round_trip = commands.executor().now() - outcome.sent,
                      .version = results[0].text(0, 0)};
    examined.its_clock = results[0].number(0, 1).value_or(0);
    const auto ours = commands.executor().clock().wall_now().time_since_epoch();
    examined.our_clock = std::chrono::floor<std::chrono::seconds>(ours).count();
    for (std::size_t i = 0; i < results[1].size(); ++i) {
      std::string name = results[1].text(i, 0);
      std::ranges::transform(name, name.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
      examined.settings.emplace(std::move(name), results[1].text(i, 1));
    }
    for (std::size_t i = 0; i < results[2].size(); ++i) examined.tables.push_back(results[2].text(i, 0));
    done(findings_of(examined, options));
  };
  commands.run(std::move(query), commands.answer_by(), sql::MissingSchema::refuse);
}

}  // namespace dlock::mysql
