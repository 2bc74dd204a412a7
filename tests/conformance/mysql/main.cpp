// MariaDB as a subject of the suite: a server shared by all tests of a process, with a proxy for disturbed clients.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "backends/mysql/options.hpp"
#include "backends/mysql/sql/layout.hpp"
#include "server_fixture.hpp"
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

class MysqlFixture final : public ServerFixture {
 public:
  // The service is emptied for each fixture.
  explicit MysqlFixture(Strategy strategy)
      : ServerFixture(way_to({shared_server().port()})),
        strategy_(strategy),
        server_(shared_server()),
        proxy_(*disturbed().front()) {
    for (const mysql::TableDefinition& table : mysql::layout()) {
      if (table.name != "meta") server_.run("TRUNCATE dlock." + std::string(table.name));
    }
  }

  [[nodiscard]] std::string url() const override { return server_.url(parameters()); }
  [[nodiscard]] Client make_client(ClientOptions options, Link link) override {
    if (link == Link::disturbed) return connect(server_.url_at(proxy_.port(), parameters(link)), std::move(options));
    // A client that will be killed does not wait long to close.
    if (!mysql::lives_in_sessions(strategy_) || options.close_timeout >= ClientOptions().close_timeout) {
      return connect(server_.url(parameters(link)), std::move(options));
    }
    const Mortal& mortal = make_mortal();
    const std::string whole = server_.url_at(mortal.way.front()->port(), parameters(link));
    return connect("mysql://" + mortal.user + ":" + mortal.user + whole.substr(whole.find('@')), std::move(options));
  }
  [[nodiscard]] std::optional<Missing> missing(Feature feature) const override {
    if (feature == Feature::kill_session && !mysql::lives_in_sessions(strategy_)) {
      return Missing{Missing::Kind::not_applicable, "there is no session: every lock has a lease of its own"};
    }
    return ServerFixture::missing(feature);
  }
  void kill_hold(LockKind kind, const std::string& name) override {
    MysqlLock(strategy_, name, kind).take_away(server_);
  }
  void kill_session(Client& client) override {
    const auto mortal = std::find_if(mortal_.begin(), mortal_.end(), [&](const Mortal& each) {
      return client.url().find(addresses_of(each.way) + "/") != std::string::npos;
    });
    if (mortal == mortal_.end()) throw std::logic_error("this client was not made to die");
    cut_off(mortal->way);
    server_.run("KILL USER " + mortal->user);
    server_.await("NOT EXISTS (SELECT 1 FROM information_schema.processlist WHERE user = '" + mortal->user + "')");
  }
  void cut() override {
    proxy_.refuse(true);
    // A server that noticed would free the locks of a session at once, perhaps before their holder knows.
    proxy_.sever();
  }
  void heal() override {
    proxy_.end_severed();
    proxy_.refuse(false);
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
  // A client that will be killed has its own path, so that it can be cut off for good, and its own user, by which the
  // server distinguishes its sessions.
  struct Mortal {
    std::string user;
    Way way;
  };

  [[nodiscard]] std::string parameters() const { return "strategy=" + std::string(mysql::to_string(strategy_)); }
  [[nodiscard]] std::string parameters(Link link) const {
    if (!mysql::lives_in_sessions(strategy_)) return parameters();
    return parameters() + (link == Link::disturbed ? "&lease=3s" : "&lease=8s");
  }
  [[nodiscard]] Mortal& make_mortal() {
    const std::string user = "mortal_" + std::to_string(mortal_.size());
    server_.run("CREATE OR REPLACE USER " + user + " IDENTIFIED BY '" + user + "'");
    server_.run("GRANT ALL ON dlock.* TO " + user);
    server_.run("GRANT ALL ON " + std::string(MysqlServer::database) + ".* TO " + user);
    return mortal_.emplace_back(Mortal{.user = user, .way = way_to({server_.port()})});
  }

  const Strategy strategy_;
  MysqlServer& server_;
  rig::TcpProxy& proxy_;
  std::deque<Mortal> mortal_;
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
