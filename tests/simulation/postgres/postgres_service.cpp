#include "tests/simulation/postgres/postgres_service.hpp"

#include "backends/postgres/postgres_backend.hpp"
#include "backends/postgres/schema/layout.hpp"
#include "backends/postgres/sql/lock_key.hpp"
#include "torture/dice.hpp"

namespace dlock::simulation {

using namespace std::chrono_literals;
using postgres::Strategy;

namespace {

// Where a lock lives in a session, what that leaves is gone after the client's lease.
constexpr auto session_lease = 3s;

bool is_of_sessions(Strategy strategy) {
  return strategy == Strategy::for_update || strategy == Strategy::advisory;
}

}  // namespace

PostgresService::PostgresService(Executor& executor, std::uint64_t seed, Strategy strategy)
    : strategy_(strategy), server_(executor, seed) {
  torture::Dice dice(~seed);
  server_.has_schema = dice.chance(50);
  server_.latency = dice.between(50us, dice.chance(50) ? 20ms : 2ms);
  server_.fate = [this](int process, std::string_view words) { return fate(process, words); };
  server_.delay = [this] { return delay(); };
}

std::string PostgresService::url() const {
  const std::string url = "postgresql://server/locks?strategy=" + std::string(to_string(strategy_));
  return is_of_sessions(strategy_) ? url + "&max_connections=4" : url;
}

std::unique_ptr<Backend> PostgresService::connect(int process, BackendHost& host, const BackendConfig& config) {
  postgres::Options options = postgres::parse_options(config);
  if (is_of_sessions(strategy_)) options.lease = session_lease;
  return std::make_unique<postgres::PostgresBackend>(host, std::move(options), server_.connections(process));
}

std::vector<int> PostgresService::processes(LockKind kind, const std::string& name, bool waiters) {
  switch (strategy_) {
    case Strategy::table:
      return server_.holders_of_rows(postgres::table_of("lease", kind), name);
    case Strategy::optimistic:
      return server_.holders_of_rows(postgres::table_of("optimistic", kind), name);
    case Strategy::for_update:
      return server_.sessions_of_row(name, waiters);
    case Strategy::advisory:
      break;
  }
  return server_.sessions_of_key(postgres::lock_key({}, name, kind).parameter, waiters);
}

std::size_t PostgresService::owners(LockKind kind, const std::string& name) {
  return processes(kind, name, true).size();
}

int PostgresService::holder(LockKind kind, const std::string& name) {
  const std::vector<int> holders = processes(kind, name, false);
  return holders.empty() ? 0 : holders.front();
}

std::vector<Subject> subjects() {
  using enum LockKind;
  std::vector<Subject> all;
  const auto add = [&all](Strategy strategy, std::vector<LockKind> kinds) {
    std::string name(to_string(strategy));
    if (strategy == Strategy::for_update) name = "for_update";
    all.push_back({.name = name,
                   .kinds = std::move(kinds),
                   .min_lease = is_of_sessions(strategy) ? postgres::shortest_session_lease : 50ms,
                   .recovery = 10s,
                   .session = is_of_sessions(strategy) ? session_lease : 0s,
                   // An optimistic client takes over what nobody changes for a whole lease. An advisory waiter that has
                   // left the server's queue keeps readers out for half a second.
                   .hand_over = strategy == Strategy::optimistic ? 1250ms
                                : strategy == Strategy::advisory ? 750ms
                                                                 : 250ms,
                   .make = [strategy](Executor& executor, std::uint64_t seed) {
                     return std::make_unique<PostgresService>(executor, seed, strategy);
                   }});
  };
  add(Strategy::table, {lock, read_write, semaphore, election});
  add(Strategy::optimistic, {lock, election});
  add(Strategy::advisory, {lock, read_write, election});
  add(Strategy::for_update, {lock});
  return all;
}

}  // namespace dlock::simulation
