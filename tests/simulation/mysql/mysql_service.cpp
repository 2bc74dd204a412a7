// MariaDB for a simulation: the real backend over a fake server.
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/mysql/mysql_backend.hpp"
#include "backends/mysql/options.hpp"
#include "backends/mysql/sql/text.hpp"
#include "tests/simulation/mysql/fake_mysql.hpp"
#include "tests/simulation/service.hpp"
#include "torture/dice.hpp"

namespace dlock::simulation {
namespace {

using namespace std::chrono_literals;
using mysql::Strategy;

// Where a lock lives in a session, what that leaves is gone after the client's lease.
constexpr auto session_lease = 3s;

class MysqlService final : public Service {
 public:
  MysqlService(Executor& executor, std::uint64_t seed, Strategy strategy)
      : strategy_(strategy), server_(executor, seed) {
    torture::Dice dice(~seed);
    if (dice.chance(50)) server_.remove_schema();
    server_.latency = dice.between(50us, dice.chance(50) ? 20ms : 2ms);
    server_.fate = [this](int process, std::string_view words) { return fate(process, words); };
    server_.delay = [this] { return delay(); };
  }

  [[nodiscard]] std::string url() const override {
    return "mysql://server/locks?strategy=" + std::string(to_string(strategy_)) +
           (lives_in_sessions(strategy_) ? "&max_connections=4" : "");
  }
  [[nodiscard]] std::unique_ptr<Backend> connect(int process, BackendHost& host, const BackendConfig& config) override {
    mysql::Options options = mysql::parse_options(config);
    if (lives_in_sessions(strategy_)) options.lease = session_lease;
    return mysql::make_backend(host, std::move(options), server_.connections(process));
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
    if (strategy_ == Strategy::for_update) return server_.sessions_of(server_.row("row_lock", name), waiters);
    if (strategy_ == Strategy::named) {
      return server_.sessions_of(server_.user_lock(mysql::table_of("fence", kind) + "/" + name), waiters);
    }
    return server_.holders_of_row(mysql::table_of(strategy_ == Strategy::table ? "lease" : "optimistic", kind), name);
  }

  const Strategy strategy_;
  mysql::FakeMysql server_;
};

}  // namespace

std::vector<Subject> subjects() {
  using enum LockKind;
  std::vector<Subject> all;
  const auto add = [&all](Strategy strategy, std::vector<LockKind> kinds, std::chrono::nanoseconds hand_over) {
    std::string name(to_string(strategy));
    if (strategy == Strategy::for_update) name = "for_update";
    const bool of_sessions = lives_in_sessions(strategy);
    all.push_back({.name = name,
                   .kinds = std::move(kinds),
                   .min_lease = of_sessions ? 1000ms : 50ms,
                   .recovery = 10s,
                   .session = of_sessions ? session_lease : 0s,
                   .hand_over = hand_over,
                   .make = [strategy](Executor& executor, std::uint64_t seed) {
                     return std::make_unique<MysqlService>(executor, seed, strategy);
                   }});
  };
  add(Strategy::table, {lock, read_write, semaphore, election}, 250ms);
  // An optimistic client takes over what nobody changes for a whole lease.
  add(Strategy::optimistic, {lock, election}, 1250ms);
  add(Strategy::named, {lock, election}, 250ms);
  add(Strategy::for_update, {lock}, 250ms);
  return all;
}

}  // namespace dlock::simulation
