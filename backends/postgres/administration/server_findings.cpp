// Findings about a server's version, role and settings.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "backends/common/findings.hpp"
#include "backends/postgres/administration/findings.hpp"
#include "backends/postgres/sql/preamble.hpp"

namespace dlock::postgres {

namespace {

using Severity = Finding::Severity;

constexpr int oldest_version = 120000;          // AS MATERIALIZED
constexpr int ends_silent_sessions = 140000;    // idle_session_timeout
constexpr std::int64_t shared_connections = 3;  // two for commands or tries, one for LISTEN or questions

constexpr std::array<std::string_view, 5> timeouts = {"statement_timeout", "lock_timeout",
                                                      "idle_in_transaction_session_timeout", "idle_session_timeout",
                                                      "transaction_timeout"};
constexpr std::array<std::string_view, 5> others = {"default_transaction_isolation", "synchronous_commit",
                                                    "synchronous_standby_names", "fsync", "full_page_writes"};

void add_to_list(std::string& list, const std::string& item) {
  list += (list.empty() ? "" : ", ") + item;
}

Finding judge_version(const Examined& examined, const Options& options) {
  const int version = examined.server.version;
  const std::string text = "PostgreSQL " + examined.answer("server").text(0, 0);
  if (version < oldest_version) return {Severity::error, "version", text + "; dlock needs 12 or later"};
  if (version < ends_silent_sessions && lives_in_sessions(options.strategy)) {
    return {Severity::warning, "version",
            text +
                " cannot end idle sessions (idle_session_timeout, PostgreSQL 14): a holder that is stopped or cut off "
                "keeps its locks until TCP gives up the connection"};
  }
  return {Severity::ok, "version", text};
}

// Unless the server is verified, an attacker on the network path can forge messages, and so the locks.
Finding judge_encryption(const ServerInfo& server, const Options& options) {
  if (server.endpoint.starts_with('/')) return {Severity::ok, "encryption", "none needed: a socket of this machine"};
  const bool this_machine = common::is_this_machine(server.endpoint);
  constexpr std::string_view remedy = "; set sslrootcert to the CA certificate of the server";
  if (!server.encrypted) return common::not_encrypted(this_machine, remedy);
  for (const auto& [name, value] : options.libpq) {
    if (name != "sslmode" || !value.starts_with("verify-")) continue;
    return {Severity::ok, "encryption", "TLS, and the server's certificate is verified: " + value};
  }
  return {this_machine ? Severity::ok : Severity::note, "encryption",
          "TLS, but the URL does not ask dlock to verify the server, so anyone on the network path can pose as the "
          "server" +
              std::string(remedy)};
}

Finding judge_pooler(const ServerInfo& server, const Options& options) {
  const std::string there = "there is a pooler in front of the server, ";
  if (server.pooled && lives_in_sessions(options.strategy)) {
    return {Severity::error, "pooler",
            there + "and with strategy=" + std::string(to_string(options.strategy)) +
                " locks belong to sessions, which the pooler shares among its clients: connect to the server itself, "
                "or use strategy=table"};
  }
  if (server.pooled) {
    return {Severity::note, "pooler", there + "so waiters are not woken when a lock is released; they poll instead"};
  }
  if (options.pooler != Pooler::session) return {Severity::ok, "pooler", "none in front of the server"};
  return {Severity::note, "pooler", "pooler=session: dlock trusts that each client has a session of its own"};
}

Finding judge_isolation(const Examined& examined) {
  const auto isolation = examined.setting("default_transaction_isolation");
  if (isolation.now != "read committed") {
    return {Severity::warning, "isolation",
            "the default is " + isolation.now +
                ", and dlock could not change that for its own transactions: they fail where they would have to wait "
                "for one another, and dlock retries them"};
  }
  const bool everybodys = isolation.by_default == isolation.now;
  return {Severity::ok, "isolation",
          "read committed" + (everybodys ? "" : " for dlock, " + isolation.by_default + " for others")};
}

Finding judge_timeouts(const Examined& examined) {
  std::string in_force;
  std::string for_others;
  for (const std::string_view name : timeouts) {
    const auto timeout = examined.setting(name);
    for (const auto& [ms, list] : {std::pair(timeout.now, &in_force), std::pair(timeout.by_default, &for_others)}) {
      if (!ms.empty() && ms != "0") add_to_list(*list, std::string(name) + "=" + ms + " ms");
    }
  }
  if (!in_force.empty()) {
    return {Severity::warning, "timeouts",
            in_force +
                ": dlock could not switch this off for its own sessions, so requests take longer, or locks are lost; "
                "set it to 0 for this role"};
  }
  if (for_others.empty()) return {Severity::ok, "timeouts", "none that could end a holder"};
  return {Severity::note, "timeouts",
          for_others +
              " by default for this role; switched off in dlock's own sessions, but it can end a transaction of the "
              "program, and the lock with it"};
}

// Settings that the preamble requested.
Finding judge_preamble(const Examined& examined) {
  const Preamble preamble({}, {.version = examined.server.version});
  const bool over_tcp = examined.answer("server").flag(0, 2);
  std::string refused;
  for (const Command& command : preamble.commands()) {
    if (command.params.empty()) continue;
    const std::string& name = *command.params[0];
    const std::string& wanted = *command.params[1];
    const bool is_judged = std::find(timeouts.begin(), timeouts.end(), name) != timeouts.end() ||
                           std::find(others.begin(), others.end(), name) != others.end();
    if (is_judged || (name.starts_with("tcp_") && !over_tcp)) continue;
    const std::string now = examined.setting(name).now;
    if (!now.empty() && now != wanted) add_to_list(refused, name + " is " + now + " instead of " + wanted);
  }
  if (refused.empty()) return {Severity::ok, "settings", "as dlock requested"};
  return {Severity::warning, "settings",
          refused + ": the server did not accept what dlock requested, so it may notice late that a client is gone"};
}

Finding judge_durability(const Options& options) {
  if (options.durability == Durability::sync) {
    return {Severity::ok, "durability", "grants are on disk before they are answered"};
  }
  return {Severity::note, "durability",
          "durability=" + std::string(to_string(options.durability)) +
              ": a crash of the server loses the latest grants, so two clients can hold a lock until the first lease "
              "expires"};
}

Finding judge_replication(const Examined& examined, const Options& options) {
  const std::int64_t standbys = examined.answer("standbys").number(0, 0).value_or(0);
  const std::string names = examined.setting("synchronous_standby_names").now;
  const std::string count = std::to_string(standbys) + (standbys == 1 ? " standby" : " standbys");
  const auto note = [](const std::string& text) { return Finding{Severity::note, "replication", text}; };
  if (options.strategy == Strategy::advisory && (standbys > 0 || !names.empty())) {
    return note(count +
                ": advisory locks are not replicated, so after a failover the new primary grants them again; fencing "
                "tokens make that harmless");
  }
  if (names.empty()) {
    if (standbys == 0) return {Severity::ok, "replication", "no standbys"};
    return note(count +
                ", none of them synchronous: a failover may lose the latest locks; synchronous_standby_names prevents "
                "that, fencing tokens make it harmless");
  }
  if (options.durability != Durability::sync || examined.setting("synchronous_commit").now == "local") {
    return note(
        "grants do not wait for the synchronous standbys: a failover may lose the latest locks; fencing tokens make "
        "that harmless");
  }
  if (standbys > 0) return {Severity::ok, "replication", count + "; grants wait for the synchronous ones"};
  return {Severity::error, "replication",
          "synchronous_standby_names is " + names +
              ", but no standby is connected: every grant waits for one, and its outcome stays unknown"};
}

Finding judge_connections(const Rows& rows, const Options& options) {
  constexpr std::array<std::string_view, 3> whose = {"the server", "this role", "this database"};
  const std::int64_t wanted =
      shared_connections + (lives_in_sessions(options.strategy) ? std::int64_t{options.max_connections} : 0);
  std::string tight;
  for (std::size_t i = 0; i < whose.size(); ++i) {
    const std::int64_t limit = rows.number(0, 2 * i).value_or(-1);
    const std::int64_t used = rows.number(0, 2 * i + 1).value_or(0);
    if (limit < 0 || limit - used >= wanted) continue;
    add_to_list(tight, std::string(whose.at(i)) + " may have " + std::to_string(limit) + " connections and has " +
                           std::to_string(used));
  }
  const std::string need = "; a client of this kind opens up to " + std::to_string(wanted);
  if (!tight.empty()) return {Severity::warning, "connections", tight + need};
  return {Severity::ok, "connections", rows.text(0, 1) + " of " + rows.text(0, 0) + " are in use" + need};
}

Finding judge_clock(std::int64_t server, std::int64_t ours, const Options& options) {
  const bool counts = options.strategy == Strategy::table;
  return common::compared_clocks(server, ours, counts ? Severity::warning : Severity::note,
                                 counts ? "leases expire early or late, because strategy=table measures them by it"
                                        : "tokens may not grow for a lock whose row was lost");
}

}  // namespace

const Rows& Examined::answer(std::string_view question) const {
  static const Rows none;
  const auto found = answers.find(question);
  return found == answers.end() ? none : found->second;
}

Examined::Setting Examined::setting(std::string_view name) const {
  const Rows& rows = answer("settings");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows.text(i, 0) == name) return {rows.text(i, 1), rows.text(i, 2)};
  }
  return {};
}

std::vector<std::string> interesting_settings() {
  std::vector<std::string> names(timeouts.begin(), timeouts.end());
  names.insert(names.end(), others.begin(), others.end());
  // All settings that the preamble changes, of any version.
  const Preamble preamble({}, {.version = 1'000'000});
  for (const Command& command : preamble.commands()) {
    if (!command.params.empty()) names.push_back(*command.params[0]);
  }
  return names;
}

std::vector<Finding> server_findings(const Examined& examined, const Options& options) {
  const ServerInfo& server = examined.server;
  std::vector<Finding> all = {
      common::server_answered(server.endpoint, examined.round_trip),
      judge_version(examined, options),
      server.standby ? Finding{Severity::error, "role", "a standby; locks need the primary"}
                     : Finding{Severity::ok, "role", "a primary"},
      judge_encryption(server, options),
      judge_pooler(server, options),
  };
  if (examined.knows("settings")) {
    all.push_back(judge_isolation(examined));
    all.push_back(judge_timeouts(examined));
    // Behind a pooler dlock requests nothing.
    if (!server.pooled) all.push_back(judge_preamble(examined));
    for (const char* const name : {"fsync", "full_page_writes"}) {
      if (examined.setting(name).now != "off") continue;
      all.push_back({Severity::warning, name,
                     "is off: a crash of the machine can corrupt the database and lose locks; switch it on"});
    }
    all.push_back(judge_durability(options));
    if (examined.knows("standbys") && !server.standby) all.push_back(judge_replication(examined, options));
  }
  if (const Rows& rows = examined.answer("connections"); !rows.empty()) all.push_back(judge_connections(rows, options));
  if (const auto clock = examined.answer("server").number(0, 1)) {
    all.push_back(judge_clock(*clock, examined.our_clock, options));
  }
  return all;
}

}  // namespace dlock::postgres
