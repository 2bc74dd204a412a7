#include "backends/postgres/sql/preamble.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

namespace dlock::postgres {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

namespace {

constexpr int version_11 = 110000;
constexpr int version_12 = 120000;
constexpr int version_14 = 140000;
constexpr int version_17 = 170000;

constexpr const char* question =
    "SELECT pg_catalog.pg_backend_pid(), pg_catalog.pg_is_in_recovery(),"
    " pg_catalog.current_setting('default_transaction_read_only')";
constexpr const char* setting =
    "SELECT pg_catalog.set_config($1::pg_catalog.text, $2::pg_catalog.text, false)"
    " WHERE $3::pg_catalog.int4 OPERATOR(pg_catalog.=) ANY (ARRAY[0, pg_catalog.pg_backend_pid()])";

// How a connection on which nothing is said is watched: probes after `idle`, `count` of them, `interval` apart. What
// was sent and is not acknowledged may take `unacknowledged`.
struct Probing {
  seconds idle{15};
  seconds interval{5};
  int count = 3;
  milliseconds unacknowledged{30000};
};

// Where locks live in the session, the probes take at least its lease, so that the server never drops what the client
// takes for safe; and not much longer. The client drops it no earlier than it has stopped to rely on it.
Probing probing_for(nanoseconds session_lease) {
  if (session_lease <= nanoseconds(0)) return {};
  const seconds quarter = std::max(seconds(1), std::chrono::ceil<seconds>(session_lease / 4));
  return {.idle = quarter,
          .interval = quarter,
          .count = 3,
          .unacknowledged = std::chrono::ceil<milliseconds>(session_lease)};
}

std::string text_of(std::int64_t number) {
  return std::to_string(std::clamp<std::int64_t>(number, 0, std::numeric_limits<std::int32_t>::max()));
}

}  // namespace

Preamble::Preamble(const Purpose& purpose, const Facts& facts) : facts_(facts) {
  commands_.push_back({.text = question});
  const Probing probing = probing_for(purpose.session_lease);
  const std::string lease = text_of(std::chrono::ceil<milliseconds>(purpose.session_lease).count());
  set("default_transaction_isolation", "read committed");
  set("default_transaction_read_only", "off");
  set("search_path", "pg_catalog");
  set("row_security", "off");  // an error, instead of what a policy says
  // A plan that was made for an empty table, and is kept, would scan it when it is full.
  set("enable_seqscan", "off");
  // What is asked is always the same. Left to itself a session may plan a statement of many locks anew each time,
  // which takes longer than to carry it out.
  if (facts.version >= version_12) set("plan_cache_mode", "force_generic_plan");
  // Which takes a tenth of a second, and is done for what looks dear: a scan that is switched off, where nothing else
  // will do.
  if (facts.version >= version_11) set("jit", "off");
  // A lock that was busy is an error for the server, and no reason to end the session.
  set("exit_on_error", "off");
  set("statement_timeout", "0");
  set("lock_timeout", text_of(std::chrono::ceil<milliseconds>(purpose.lock_patience).count()));
  set("idle_in_transaction_session_timeout", lease);
  if (facts.version >= version_14) {
    session_limit_ = commands_.size();
    set("idle_session_timeout", lease);
    // A waiter whose client is gone is to leave the server's queue. In milliseconds.
    set("client_connection_check_interval", "500");
  }
  if (facts.version >= version_17) set("transaction_timeout", "0");
  set("tcp_keepalives_idle", text_of(probing.idle.count()));
  set("tcp_keepalives_interval", text_of(probing.interval.count()));
  set("tcp_keepalives_count", text_of(probing.count));
  if (facts.version >= version_12) set("tcp_user_timeout", text_of(probing.unacknowledged.count()));
  server_.version = facts.version;
}

void Preamble::set(const std::string& name, const std::string& value) {
  const std::string only_for = facts_.pooler == Pooler::session ? "0" : std::to_string(facts_.backend_pid);
  commands_.push_back({.text = setting, .params = {name, value, only_for}});
}

bool Preamble::answered(std::size_t command, const Outcome& outcome, const Results& results) {
  const bool good = outcome.problem == Problem::none && results.size() == 1;
  if (command == 0) {
    const auto pid = good ? results[0].number(0, 0) : std::nullopt;
    if (!pid) return false;
    server_.backend_pid = static_cast<int>(*pid);
    server_.pooled = facts_.pooler == Pooler::transaction ||
                     (facts_.pooler == Pooler::detect && server_.backend_pid != facts_.backend_pid);
    server_.standby = results[0].flag(0, 1);
    server_.read_only = server_.pooled && results[0].text(0, 2) == "on";
    return true;
  }
  const bool taken = good && !results[0].empty();
  if (taken && command == session_limit_) server_.ends_silent_sessions = results[0].text(0, 0) != "0";
  return true;
}

std::vector<std::pair<std::string, std::string>> keepalive_parameters(const Purpose& purpose) {
  const Probing probing = probing_for(purpose.session_lease);
  return {{"keepalives", "1"},
          {"keepalives_idle", text_of(probing.idle.count())},
          {"keepalives_interval", text_of(probing.interval.count())},
          {"keepalives_count", text_of(probing.count)},
          {"tcp_user_timeout", text_of(probing.unacknowledged.count())}};
}

}  // namespace dlock::postgres
