// MariaDB as a subject of the suite: a server shared by all tests of a process, with a proxy for disturbed clients.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/mysql/options.hpp"
#include "backends/mysql/sql/layout.hpp"
#include "database_fixture.hpp"
#include "tests/support/mysql_locks.hpp"
#include "tests/support/mysql_server.hpp"

namespace dlock::conformance {
namespace {

using mysql::Strategy;
using test::MysqlLock;
using test::MysqlServer;

// Started when first needed, so that helper processes, which make no fixtures, have no server.
MysqlServer& shared_server() {
  static const auto server = [] {
    auto made = std::make_unique<MysqlServer>();
    // Before any acquire: the answer that the suite loses must be that of an acquire.
    for (const std::string& statement : mysql::creation("dlock", true)) made->run(statement);
    return made;
  }();
  return *server;
}

class MysqlFixture final : public DatabaseFixture {
 public:
  // The service is emptied for each fixture.
  explicit MysqlFixture(Strategy strategy)
      : DatabaseFixture(shared_server().port(), "strategy=" + std::string(mysql::to_string(strategy)),
                        mysql::lives_in_sessions(strategy)),
        strategy_(strategy),
        server_(shared_server()) {
    for (const mysql::TableDefinition& table : mysql::layout()) {
      if (table.name != "meta") server_.run("TRUNCATE dlock." + std::string(table.name));
    }
  }

  void kill_hold(LockKind kind, const std::string& name) override {
    MysqlLock(strategy_, name, kind).take_away(server_);
  }
  void lose_next_answer() override {
    // The prefix of all locks' names in the suite; statements have it in hexadecimal digits.
    proxy_.lose_reply_to(MysqlLock::hexadecimal("dlock-conformance/"));
  }
  [[nodiscard]] std::size_t residue(LockKind kind, const std::string& name) override {
    return std::stoul(server_.value("SELECT " + MysqlLock(strategy_, name, kind).residue()));
  }
  // Statements, including the few of this fixture.
  [[nodiscard]] std::uint64_t requests() override {
    return std::stoull(
        server_.value("SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'QUESTIONS'"));
  }
  void restart() override {
    server_.stop();
    server_.start();
  }

 private:
  [[nodiscard]] std::string url_at(std::uint16_t port, const std::string& parameters) const override {
    return server_.url_at(port, parameters);
  }
  void create_user(const std::string& name) override {
    server_.run("CREATE OR REPLACE USER " + name + " IDENTIFIED BY '" + name + "'");
    server_.run("GRANT ALL ON dlock.* TO " + name);
    server_.run("GRANT ALL ON " + std::string(MysqlServer::database) + ".* TO " + name);
  }
  void end_sessions_of(const std::string& user) override {
    server_.run("KILL USER " + user);
    server_.await("NOT EXISTS (SELECT 1 FROM information_schema.processlist WHERE user = '" + user + "')");
  }

  const Strategy strategy_;
  MysqlServer& server_;
};

std::vector<LockKind> kinds_of(Strategy strategy) {
  if (strategy == Strategy::for_update) return {LockKind::lock};
  if (strategy != Strategy::table) return {LockKind::lock, LockKind::election};
  return {LockKind::lock, LockKind::read_write, LockKind::semaphore, LockKind::election};
}

}  // namespace
}  // namespace dlock::conformance

int main(int argc, char** argv) {
  using namespace dlock::conformance;
  using dlock::mysql::Strategy;
  const auto add = [](const std::string& name, Strategy strategy) {
    add_subject({.name = "mysql_" + name,
                 .make = [=] { return std::make_unique<MysqlFixture>(strategy); },
                 .client_tests = false,
                 .kinds = kinds_of(strategy),
                 .untested = untested_of_server()});
  };
  add("table", Strategy::table);
  add("optimistic", Strategy::optimistic);
  add("named", Strategy::named);
  add("for_update", Strategy::for_update);
  return run(argc, argv);
}
