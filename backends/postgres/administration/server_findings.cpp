// What a server's version, role and settings mean for locks.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "backends/common/findings.hpp"
#include "backends/postgres/administration/findings.hpp"
#include "backends/postgres/sql/preamble.hpp"

namespace dlock::postgres {

using Severity = Finding::Severity;

namespace {

constexpr int oldest_version = 120000;          // AS MATERIALIZED
constexpr int ends_silent_sessions = 140000;    // idle_session_timeout
constexpr std::int64_t shared_connections = 3;  // two for commands or tries, one for LISTEN or questions

constexpr std::array<std::string_view, 5> timeouts = {"statement_timeout", "lock_timeout",
                                                      "idle_in_transaction_session_timeout", "idle_session_timeout",
                                                      "transaction_timeout"};
constexpr std::array<std::string_view, 6> others = {"default_transaction_isolation",
                                                    "synchronous_commit",
                                                    "synchronous_standby_names",
                                                    "fsync",
                                                    "full_page_writes",
                                                    "max_connections"};

bool lives_in_sessions(Strategy strategy) {
  return strategy == Strategy::for_update || strategy == Strategy::advisory;
}

bool is_this_machine(std::string_view endpoint) {
  const std::size_t colon = endpoint.find(':');
  const bool loopback = endpoint.starts_with("127.") && endpoint.find_first_not_of("0123456789.") == colon;
  return loopback || endpoint.starts_with("localhost:") || endpoint.starts_with("[::1]:");
}

std::string add_to_list(std::string list, const std::string& item) {
  return list.empty() ? item : std::move(list) + ", " + item;
}

class Judge {
 public:
  Judge(const Examined& examined, const Options& options) : examined_(examined), options_(options) {}

  std::vector<Finding> all() {
    judge_answer();
    judge_version();
    judge_role();
    judge_encryption();
    judge_pooler();
    if (!examined_.settings.empty()) {
      judge_isolation();
      judge_timeouts();
      judge_what_was_asked_for();
      judge_durability();
      judge_replication();
    }
    if (examined_.connections && !examined_.connections->empty()) judge_connections();
    if (examined_.server_clock) judge_clock();
    return std::move(findings_);
  }

 private:
  void add(Severity severity, std::string check, std::string message) {
    findings_.push_back({severity, std::move(check), std::move(message)});
  }
  [[nodiscard]] Setting setting(std::string_view name) const {
    const auto found = examined_.settings.find(std::string(name));
    return found == examined_.settings.end() ? Setting{} : found->second;
  }

  void judge_answer() { findings_.push_back(common::server_answered(examined_.server.endpoint, examined_.round_trip)); }

  void judge_version() {
    const int version = examined_.server.version;
    const std::string text = "PostgreSQL " + examined_.version;
    if (version < oldest_version) return add(Severity::error, "version", text + "; dlock needs 12 or later");
    if (version < ends_silent_sessions && lives_in_sessions(options_.strategy)) {
      return add(Severity::warning, "version",
                 text +
                     " cannot end idle sessions (idle_session_timeout, PostgreSQL 14): a holder that is stopped or cut "
                     "off keeps " +
                     "its locks until TCP gives up the connection");
    }
    add(Severity::ok, "version", text);
  }

  void judge_role() {
    if (examined_.server.standby) {
      return add(Severity::error, "role", "a standby; locks need the primary");
    }
    add(Severity::ok, "role", "a primary");
  }

  // Unless the server is verified, an attacker on the network path can forge messages, and so the locks.
  void judge_encryption() {
    const std::string& endpoint = examined_.server.endpoint;
    if (endpoint.starts_with('/')) return add(Severity::ok, "encryption", "none needed: a socket of this machine");
    if (!examined_.server.encrypted) {
      findings_.push_back(
          common::not_encrypted(is_this_machine(endpoint), "; set sslrootcert to the CA certificate of the server"));
      return;
    }
    const auto mode = std::find_if(options_.libpq.begin(), options_.libpq.end(),
                                   [](const auto& parameter) { return parameter.first == "sslmode"; });
    if (mode != options_.libpq.end() && mode->second.starts_with("verify-")) {
      return add(Severity::ok, "encryption", "TLS, and the server's certificate is verified: " + mode->second);
    }
    add(is_this_machine(endpoint) ? Severity::ok : Severity::note, "encryption",
        "TLS, but the URL does not ask dlock to verify the server, so anyone on the network path can pose as the "
        "server; set sslrootcert to the CA certificate of the server");
  }

  void judge_pooler() {
    if (examined_.server.pooled) {
      if (lives_in_sessions(options_.strategy)) {
        return add(
            Severity::error, "pooler",
            "there is a pooler in front of the server, and with strategy=" + std::string(to_string(options_.strategy)) +
                " locks belong to sessions, which the pooler shares among its clients: connect to the server itself, "
                "or use strategy=table");
      }
      return add(Severity::note, "pooler",
                 "there is a pooler in front of the server, so waiters are not woken when a lock is released; they "
                 "poll instead");
    }
    if (options_.pooler == Pooler::session) {
      return add(Severity::note, "pooler", "pooler=session: dlock trusts that each client has a session of its own");
    }
    add(Severity::ok, "pooler", "none in front of the server");
  }

  void judge_isolation() {
    const Setting isolation = setting("default_transaction_isolation");
    if (isolation.now != "read committed") {
      return add(Severity::warning, "isolation",
                 "the default is " + isolation.now +
                     ", and dlock could not change that for its own transactions: they fail where they would have to "
                     "wait for one another, and dlock retries them");
    }
    if (isolation.by_default != isolation.now) {
      return add(Severity::ok, "isolation", "read committed for dlock, " + isolation.by_default + " for others");
    }
    add(Severity::ok, "isolation", "read committed");
  }

  void judge_timeouts() {
    std::string in_force;
    std::string for_others;
    for (const std::string_view name : timeouts) {
      const Setting timeout = setting(name);
      const auto item = [&](const std::string& ms) { return std::string(name) + "=" + ms + " ms"; };
      if (!timeout.now.empty() && timeout.now != "0") in_force = add_to_list(std::move(in_force), item(timeout.now));
      if (!timeout.by_default.empty() && timeout.by_default != "0") {
        for_others = add_to_list(std::move(for_others), item(timeout.by_default));
      }
    }
    if (!in_force.empty()) {
      return add(Severity::warning, "timeouts",
                 in_force +
                     ": dlock could not switch this off for its own sessions, so requests take longer, or locks are "
                     "lost; set it to 0 for this role");
    }
    if (!for_others.empty()) {
      return add(Severity::note, "timeouts",
                 for_others +
                     " by default for this role; switched off in dlock's own sessions, but it can end a transaction of "
                     "the program, and the lock with it");
    }
    add(Severity::ok, "timeouts", "none that could end a holder");
  }

  // What the first words on a connection were to bring about.
  void judge_what_was_asked_for() {
    if (examined_.server.pooled) return;  // they are not said there
    const Preamble preamble({}, {.version = examined_.server.version});
    std::string refused;
    for (const Command& command : preamble.commands()) {
      if (command.params.size() < 2 || !command.params[0] || !command.params[1]) continue;
      const std::string& name = *command.params[0];
      const bool is_judged = std::find(timeouts.begin(), timeouts.end(), name) != timeouts.end() ||
                             std::find(others.begin(), others.end(), name) != others.end();
      if (is_judged || (name.starts_with("tcp_") && !examined_.over_tcp)) continue;
      const Setting found = setting(name);
      if (found.now.empty() || found.now == *command.params[1]) continue;
      refused = add_to_list(std::move(refused), name + " is " + found.now + " instead of " + *command.params[1]);
    }
    if (refused.empty()) return add(Severity::ok, "settings", "as dlock requested");
    add(Severity::warning, "settings",
        refused + ": the server did not accept what dlock requested, so it may notice late that a client is gone");
  }

  void judge_durability() {
    for (const char* name : {"fsync", "full_page_writes"}) {
      if (setting(name).now != "off") continue;
      add(Severity::warning, name,
          "is off: a crash of the machine can corrupt the database and lose locks; switch it on");
    }
    if (options_.durability != Durability::sync) {
      return add(Severity::note, "durability",
                 "durability=" + std::string(to_string(options_.durability)) +
                     ": a crash of the server loses the latest grants, so two clients can hold a lock until the first "
                     "lease expires");
    }
    add(Severity::ok, "durability", "grants are on disk before they are answered");
  }

  void judge_replication() {
    if (!examined_.standbys || examined_.server.standby) return;
    const std::int64_t standbys = *examined_.standbys;
    const std::string names = setting("synchronous_standby_names").now;
    const std::string commit = setting("synchronous_commit").now;
    const std::string count = std::to_string(standbys) + (standbys == 1 ? " standby" : " standbys");
    if (options_.strategy == Strategy::advisory && (standbys > 0 || !names.empty())) {
      return add(Severity::note, "replication",
                 count +
                     ": advisory locks are not replicated, so after a failover the new primary grants them again; "
                     "fencing tokens make that harmless");
    }
    if (names.empty()) {
      if (standbys == 0) return add(Severity::ok, "replication", "no standbys");
      return add(Severity::note, "replication",
                 count +
                     ", none of them synchronous: a failover may lose the latest locks; synchronous_standby_names "
                     "prevents that, fencing tokens make it harmless");
    }
    if (options_.durability != Durability::sync || commit == "local") {
      return add(
          Severity::note, "replication",
          "grants do not wait for the synchronous standbys: a failover may lose the latest locks; fencing tokens "
          "make that harmless");
    }
    if (standbys == 0) {
      return add(Severity::error, "replication",
                 "synchronous_standby_names is " + names +
                     ", but no standby is connected: every grant waits for one, and its outcome stays unknown");
    }
    add(Severity::ok, "replication", count + "; grants wait for the synchronous ones");
  }

  void judge_connections() {
    const Rows& rows = *examined_.connections;
    constexpr std::array<std::string_view, 3> whose = {"the server", "this role", "this database"};
    const std::int64_t wanted =
        shared_connections + (lives_in_sessions(options_.strategy) ? std::int64_t{options_.max_connections} : 0);
    std::string tight;
    for (std::size_t i = 0; i < whose.size(); ++i) {
      const std::int64_t limit = rows.number(0, 2 * i).value_or(-1);
      const std::int64_t used = rows.number(0, 2 * i + 1).value_or(0);
      if (limit < 0 || limit - used >= wanted) continue;
      tight = add_to_list(std::move(tight), std::string(whose.at(i)) + " may have " + std::to_string(limit) +
                                                " connections and has " + std::to_string(used));
    }
    const std::string need = "a client of this kind opens up to " + std::to_string(wanted);
    if (!tight.empty()) return add(Severity::warning, "connections", tight + "; " + need);
    add(Severity::ok, "connections", rows.text(0, 1) + " of " + rows.text(0, 0) + " are in use; " + need);
  }

  void judge_clock() {
    const bool counts = options_.strategy == Strategy::table;
    findings_.push_back(common::compared_clocks(
        *examined_.server_clock, examined_.our_clock, counts ? Severity::warning : Severity::note,
        counts ? "leases expire early or late, because strategy=table measures them by it"
               : "tokens may not grow for a lock whose row was lost"));
  }

  const Examined& examined_;
  const Options& options_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<std::string> interesting_settings() {
  std::vector<std::string> names(timeouts.begin(), timeouts.end());
  names.insert(names.end(), others.begin(), others.end());
  // Every one that any version is asked to change.
  const Preamble preamble({}, {.version = 1'000'000});
  for (const Command& command : preamble.commands()) {
    if (command.params.empty() || !command.params[0]) continue;
    if (std::find(names.begin(), names.end(), *command.params[0]) == names.end()) names.push_back(*command.params[0]);
  }
  return names;
}

std::vector<Finding> server_findings(const Examined& examined, const Options& options) {
  return Judge(examined, options).all();
}

}  // namespace dlock::postgres
