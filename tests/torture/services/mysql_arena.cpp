#include <memory>
#include <stdexcept>

#include "arena.hpp"
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
    const auto kill_sessions = [this]() -> Heal {
      server_.kill_clients();
      return [] {};
    };
    faults.push_back({"sessions killed", "server", kill_sessions, Linger::briefly, 1, Opens::when_struck});
    faults.push_back({"server read-only", "server", [this] { return forbid_writing(); }, Linger::beyond_lease});
    if (strategy_ == mysql::Strategy::named) {
      faults.push_back({"tokens locked", "server", [this] { return lock_tokens(); }});
    }
    return faults;
  }
  [[nodiscard]] std::vector<std::string> leftovers(LockKind lock_kind, const std::vector<std::string>& locks) override {
    std::vector<std::string> found;
    for (const std::string& lock : locks) {
      if (server_.value("SELECT " + MysqlLock(strategy_, lock, lock_kind).residue()) != "0") {
        found.push_back("lock " + lock + " is held");
      }
    }
    return found;
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
          kind("for_update", mysql::Strategy::for_update)};
}

}  // namespace dlock::torture
