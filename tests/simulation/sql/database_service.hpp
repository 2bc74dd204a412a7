// A database for a simulation: the real backend over a fake server.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/common/sql/options.hpp"
#include "tests/simulation/service.hpp"
#include "torture/dice.hpp"

namespace dlock::simulation {

using sql::Strategy;

// Database: its name in URLs, and
//   Server          the fake, whose schema may be missing: set_schema(server, chance)
//   connect()       a backend over connections to it
//   processes()     those that hold a lock and, if it lives in a session, those that wait for it
template <class Database>
class DatabaseService final : public Service {
 public:
  // Where a lock lives in a session, what that leaves is gone after the client's lease.
  static constexpr std::chrono::seconds session_lease{3};

  DatabaseService(Executor& executor, std::uint64_t seed, Strategy strategy)
      : strategy_(strategy), server_(executor, seed) {
    using namespace std::chrono_literals;
    torture::Dice dice(~seed);
    Database::set_schema(server_, dice.chance(50));
    server_.latency = dice.between(50us, dice.chance(50) ? 20ms : 2ms);
    server_.fate = [this](int process, std::string_view words) { return fate(process, words); };
    server_.delay = [this] { return delay(); };
  }

  [[nodiscard]] std::string url() const override {
    return std::string(Database::name) + "://server/locks?strategy=" + std::string(to_string(strategy_)) +
           (lives_in_sessions(strategy_) ? "&max_connections=4" : "");
  }
  [[nodiscard]] std::unique_ptr<Backend> connect(int process, BackendHost& host, const BackendConfig& config) override {
    BackendConfig changed = config;
    if (lives_in_sessions(strategy_)) changed.lease = session_lease;
    return Database::connect(host, changed, server_.connections(process));
  }
  void cut(int process) override { server_.cut(process); }
  void set_reachable(int process, bool reachable) override { server_.set_reachable(process, reachable); }
  void expire(int process) override { server_.expire(process); }
  void release_held() override { server_.release_held(); }
  void bury(int process) override { server_.bury(process); }
  [[nodiscard]] std::size_t owners(LockKind kind, const std::string& name) override {
    return Database::processes(server_, strategy_, kind, name, true).size();
  }
  [[nodiscard]] int holder(LockKind kind, const std::string& name) override {
    const std::vector<int> holders = Database::processes(server_, strategy_, kind, name, false);
    return holders.empty() ? 0 : holders.front();
  }

 private:
  const Strategy strategy_;
  typename Database::Server server_;
};

// The strategies of all databases, and the one of its own whose locks live in sessions.
template <class Database>
[[nodiscard]] std::vector<Subject> subjects_of(Strategy own, const std::vector<LockKind>& own_kinds,
                                               std::chrono::nanoseconds own_hand_over) {
  using namespace std::chrono_literals;
  using enum LockKind;
  using Made = DatabaseService<Database>;
  std::vector<Subject> all;
  const auto add = [&all](Strategy strategy, std::vector<LockKind> kinds, std::chrono::nanoseconds hand_over) {
    const bool in_sessions = lives_in_sessions(strategy);
    all.push_back({.name = strategy == Strategy::for_update ? "for_update" : std::string(to_string(strategy)),
                   .kinds = std::move(kinds),
                   .min_lease = in_sessions ? Database::min_session_lease : std::chrono::nanoseconds(50ms),
                   .recovery = 10s,
                   .session = in_sessions ? Made::session_lease : 0s,
                   .hand_over = hand_over,
                   .make = [strategy](Executor& executor, std::uint64_t seed) {
                     return std::make_unique<Made>(executor, seed, strategy);
                   }});
  };
  add(Strategy::table, {lock, read_write, semaphore, election}, Database::hand_over_in_table);
  // An optimistic client takes over what nobody changes for a whole lease.
  add(Strategy::optimistic, {lock, election}, 1250ms);
  add(own, own_kinds, own_hand_over);
  add(Strategy::for_update, {lock}, 250ms);
  return all;
}

}  // namespace dlock::simulation
