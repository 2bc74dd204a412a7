#include <algorithm>
#include <chrono>
#include <memory>
#include <stdexcept>

#include "arena.hpp"
#include "tests/support/galera_cluster.hpp"
#include "tests/support/mysql_locks.hpp"
#include "tests/support/mysql_server.hpp"

namespace dlock::torture {
namespace {

using test::MysqlLock;

class MysqlArena final : public Arena {
 public:
  explicit MysqlArena(mysql::Strategy strategy) : strategy_(strategy) {}

  [[nodiscard]] std::vector<std::uint16_t> ports() const override { return {server_.port()}; }
  [[nodiscard]] std::string url(const std::vector<std::uint16_t>& ports) const override {
    return server_.url_at(ports.front(), "strategy=" + std::string(mysql::to_string(strategy_)) +
                                             "&response_timeout=500ms&connect_timeout=1s");
  }
  [[nodiscard]] std::vector<Fault> faults() override {
    std::vector<Fault> faults = faults_of_server(server_);
    const auto kill_sessions = [this] { server_.kill_clients(); };
    faults.push_back(brief_fault("sessions killed", "server", kill_sessions, 1, Opens::when_struck));
    faults.push_back({"server read-only", "server", [this] { return forbid_writing(); }, Linger::beyond_lease});
    if (strategy_ == mysql::Strategy::named) {
      faults.push_back({"tokens locked", "server", [this] { return lock_tokens(); }});
    }
    return faults;
  }
  [[nodiscard]] std::vector<std::string> leftovers(LockKind lock_kind, const std::vector<std::string>& locks) override {
    return held_of(locks, [&](const std::string& lock) {
      return server_.value("SELECT " + MysqlLock(strategy_, lock, lock_kind).residue());
    });
  }

 private:
  // As an administrator does before another server takes over.
  Heal forbid_writing() {
    server_.run("SET SESSION lock_wait_timeout = 1");
    try {
      server_.run("SET GLOBAL read_only = 1");
    } catch (const std::runtime_error&) {
      return nullptr;  // a transaction that has written is in the way
    }
    return [this] { server_.run("SET GLOBAL read_only = 0"); };
  }
  // GET_LOCK() grants before the token is written, which fails now.
  Heal lock_tokens() {
    if (server_.value("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'dlock' AND table_name = "
                      "'fence'") != "1") {
      return nullptr;
    }
    server_.run("BEGIN");
    server_.run("SELECT * FROM dlock.fence FOR UPDATE");
    return [this] { server_.run("ROLLBACK"); };
  }

  const mysql::Strategy strategy_;
  test::MysqlServer server_;
};

// All nodes write. Clients use the first that their URL names, so where that leads changes all the time.
class GaleraArena final : public Arena {
 public:
  [[nodiscard]] std::vector<std::uint16_t> ports() const override { return cluster_.ports(); }
  void set_proxies(const std::vector<rig::TcpProxy*>& proxies) override { proxies_ = proxies; }
  [[nodiscard]] std::string url(const std::vector<std::uint16_t>& ports) const override {
    return cluster_.server(0).url_of(addresses_of(ports), "response_timeout=500ms&connect_timeout=2s");
  }
  [[nodiscard]] std::vector<Fault> faults() override {
    std::vector<Fault> faults = faults_of_ensemble(cluster_, Linger::beyond_lease);
    const auto lead_elsewhere = [this] {
      ++turn_;
      for (std::size_t i = 0; i < proxies_.size(); ++i) {
        proxies_[i]->retarget(rig::Endpoint::loopback(cluster_.server((i + turn_) % cluster_.size()).port()));
      }
    };
    faults.push_back(brief_fault("newcomers led elsewhere", "newcomers", lead_elsewhere, 12));
    const auto isolate = [this]() -> Heal {
      const std::size_t member = cluster_.leader();
      cluster_.server(member).isolate(true);
      return [this, member] {
        cluster_.server(member).isolate(false);
        cluster_.await_serving();
      };
    };
    faults.push_back({"node isolated", "server", isolate, Linger::beyond_lease});
    return faults;
  }
  [[nodiscard]] std::vector<std::string> leftovers(LockKind /*kind*/, const std::vector<std::string>& locks) override {
    return held_of(locks, [&](const std::string& lock) {
      const std::string residue = MysqlLock(mysql::Strategy::table, lock).residue();
      return cluster_.server(cluster_.leader()).value("SELECT " + residue);
    });
  }
  // After 1.5 s the others go on without a node that stands still. One that was killed comes back in a few seconds, so
  // there are fewer faults in the same time.
  void adjust(Setup& setup) const override {
    setup.lease = std::chrono::seconds(2);
    setup.length = std::max<std::chrono::nanoseconds>(setup.length, std::chrono::seconds(40));
    set_recovery(setup, std::chrono::seconds(20));
  }

 private:
  test::GaleraCluster cluster_;
  std::vector<rig::TcpProxy*> proxies_;
  std::size_t turn_ = 0;
};

}  // namespace

std::vector<ArenaKind> mysql_arenas() {
  const auto kind = [](const std::string& name, mysql::Strategy strategy) -> ArenaKind {
    return {"mysql_" + name, [=] { return std::make_unique<MysqlArena>(strategy); }};
  };
  const auto table = kind("table", mysql::Strategy::table);
  return {table,
          kind("named", mysql::Strategy::named),
          read_write("mysql_read_write", table.make),
          semaphore("mysql_semaphore", table.make),
          kind("optimistic", mysql::Strategy::optimistic),
          kind("for_update", mysql::Strategy::for_update),
          {.name = "mysql_galera",
           .make = [] { return std::make_unique<GaleraArena>(); },
           .why_not = test::GaleraCluster::is_installed() ? "" : test::GaleraCluster::not_installed}};
}

}  // namespace dlock::torture
