// PostgreSQL for a simulation: the real backend over a fake server.
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/postgres/options.hpp"
#include "backends/postgres/postgres_backend.hpp"
#include "backends/postgres/schema/layout.hpp"
#include "backends/postgres/sql/lock_key.hpp"
#include "tests/simulation/postgres/fake_postgres.hpp"
#include "tests/simulation/service.hpp"
#include "torture/dice.hpp"

namespace dlock::simulation {
namespace {

using namespace std::chrono_literals;
using postgres::Strategy;

// Where a lock lives in a session, what that leaves is gone after the client's lease.
constexpr auto session_lease = 3s;

bool is_of_sessions(Strategy strategy) {
  return strategy == Strategy::for_update || strategy == Strategy::advisory;
}

class PostgresService final : public Service {
 public:
  PostgresService(Executor& executor, std::uint64_t seed, Strategy strategy)
      : strategy_(strategy), server_(executor, seed) {
    torture::Dice dice(~seed);
    server_.has_schema = dice.chance(50);
    server_.latency = dice.between(50us, dice.chance(50) ? 20ms : 2ms);
    server_.fate = [this](int process, std::string_view words) { return fate(process, words); };
    server_.delay = [this] { return delay(); };
  }

  [[nodiscard]] std::string url() const override {
    return "postgresql://server/locks?strategy=" + std::string(to_string(strategy_)) +
           (is_of_sessions(strategy_) ? "&max_connections=4" : "");
  }
  [[nodiscard]] std::unique_ptr<Backend> connect(int process, BackendHost& host, const BackendConfig& config) override {
    postgres::Options options = postgres::parse_options(config);
    if (is_of_sessions(strategy_)) options.lease = session_lease;
    return postgres::make_backend(host, std::move(options), server_.connections(process));
  }
  void cut(int process) override { server_.cut(process); }
  void set_reachable(int process, bool reachable) override { server_.set_reachable(process, reachable); }
  void expire(int process) override { server_.expire(process); }
  void release_held() override { server_.release_held(); }
  void bury(int process) override { server_.bury(process); }
  [[nodiscard]] std::size_t owners(LockKind kind, const std::string& name) override {
    return processes(kind, name, true).size();
  }
  [[nodiscard]] int holder(LockKind kind, const std::string& name) override {
    const std::vector<int> holders = processes(kind, name, false);
    return holders.empty() ? 0 : holders.front();
  }

 private:
  [[nodiscard]] std::vector<int> processes(LockKind kind, const std::string& name, bool waiters) {
    if (strategy_ == Strategy::for_update) return server_.sessions_of_row(name, waiters);
    if (strategy_ == Strategy::advisory) {
      return server_.sessions_of_key(postgres::lock_key({}, name, kind).parameter, waiters);
    }
    const char* const table = strategy_ == Strategy::table ? "lease" : "optimistic";
    return server_.holders_of_rows(postgres::table_of(table, kind), name);
  }

  const Strategy strategy_;
  postgres::FakePostgres server_;
};

}  // namespace

std::vector<Subject> subjects() {
  using enum LockKind;
  std::vector<Subject> all;
  const auto add = [&all](Strategy strategy, std::vector<LockKind> kinds, std::chrono::nanoseconds hand_over) {
    std::string name(to_string(strategy));
    if (strategy == Strategy::for_update) name = "for_update";
    all.push_back({.name = name,
                   .kinds = std::move(kinds),
                   .min_lease = is_of_sessions(strategy) ? postgres::shortest_session_lease : 50ms,
                   .recovery = 10s,
                   .session = is_of_sessions(strategy) ? session_lease : 0s,
                   .hand_over = hand_over,
                   .make = [strategy](Executor& executor, std::uint64_t seed) {
                     return std::make_unique<PostgresService>(executor, seed, strategy);
                   }});
  };
  add(Strategy::table, {lock, read_write, semaphore, election}, 250ms);
  // An optimistic client takes over what nobody changes for a whole lease.
  add(Strategy::optimistic, {lock, election}, 1250ms);
  // An advisory waiter that has left the server's queue keeps readers out for half a second.
  add(Strategy::advisory, {lock, read_write, election}, 750ms);
  add(Strategy::for_update, {lock}, 250ms);
  return all;
}

}  // namespace dlock::simulation
