#include "backends/postgres/sql/preamble.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <limits>

#include "backends/common/sql/probing.hpp"

namespace dlock::postgres {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

namespace {

constexpr const char* limit_of_idle_session = "idle_session_timeout";
constexpr const char* question =
    "SELECT pg_catalog.pg_backend_pid(), pg_catalog.pg_is_in_recovery(),"
    " pg_catalog.current_setting('default_transaction_read_only')";
constexpr const char* setting =
    "SELECT pg_catalog.set_config($1::pg_catalog.text, $2::pg_catalog.text, false)"
    " WHERE $3::pg_catalog.int4 OPERATOR(pg_catalog.=) ANY (ARRAY[0, pg_catalog.pg_backend_pid()])";

std::string text_of(std::int64_t number) {
  return std::to_string(std::clamp<std::int64_t>(number, 0, std::numeric_limits<std::int32_t>::max()));
}

}  // namespace

Preamble::Preamble(const Purpose& purpose, const Facts& facts) : facts_(facts) {
  struct Setting {
    const char* name;
    std::string value;
    int since = 0;  // version of the server
  };
  const Probing probing = probing_for(purpose.session_lease);
  const std::string lease = text_of(std::chrono::ceil<milliseconds>(purpose.session_lease).count());
  const std::string patience = text_of(std::chrono::ceil<milliseconds>(purpose.lock_patience).count());
  const std::string only_for = facts.pooler == Pooler::session ? "0" : std::to_string(facts.backend_pid);
  commands_.push_back({.text = question});
  for (const auto& [name, value, since] : std::initializer_list<Setting>{
           {"default_transaction_isolation", "read committed"},
           {"default_transaction_read_only", "off"},
           {"search_path", "pg_catalog"},
           {"row_security", "off"},  // an error, instead of the rows that a policy allows
           // The session keeps its plans. A plan that was made for an empty table would scan it once it is full.
           {"enable_seqscan", "off"},
           // Otherwise a session may plan a statement of many locks at each use, which takes longer than to execute it.
           {"plan_cache_mode", "force_generic_plan", 120000},
           // The server compiles plans that seem expensive, as a scan does that is switched off and has no alternative.
           // That takes a tenth of a second.
           {"jit", "off", 110000},
           // For the server a busy lock is an error, which must not end the session.
           {"exit_on_error", "off"},
           {"statement_timeout", "0"},
           {"lock_timeout", patience},
           {"idle_in_transaction_session_timeout", lease},
           {limit_of_idle_session, lease, 140000},
           // In milliseconds. A waiter whose client is gone leaves the server's queue.
           {"client_connection_check_interval", "500", 140000},
           {"transaction_timeout", "0", 170000},
           {"tcp_keepalives_idle", text_of(probing.idle.count())},
           {"tcp_keepalives_interval", text_of(probing.interval.count())},
           {"tcp_keepalives_count", text_of(probing.count)},
           {"tcp_user_timeout", text_of(probing.unacknowledged.count()), 120000}}) {
    if (facts.version >= since) commands_.push_back({.text = setting, .params = {name, value, only_for}});
  }
  server_.version = facts.version;
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
  const bool accepted = good && !results[0].empty();
  if (accepted && commands_[command].params[0] == limit_of_idle_session) {
    server_.ends_silent_sessions = results[0].text(0, 0) != "0";
  }
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
