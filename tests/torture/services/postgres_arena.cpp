#include <memory>
#include <optional>
#include <utility>

#include "arena.hpp"
#include "tests/support/pgbouncer.hpp"
#include "tests/support/postgres_locks.hpp"
#include "tests/support/postgres_server.hpp"

namespace dlock::torture {
namespace {

using postgres::Strategy;
using test::PostgresLock;

class PostgresArena final : public Arena {
 public:
  PostgresArena(Strategy strategy, bool pooled) : strategy_(strategy) {
    // Whoever was turned away because the server was down is let in as soon as it is up.
    if (pooled) pooler_.emplace(server_, test::PgBouncerConfig{.pool_size = 4, .lines = {"server_login_retry = 1"}});
  }

  [[nodiscard]] std::vector<std::uint16_t> ports() const override {
    return {pooler_ ? pooler_->port() : server_.port()};
  }
  [[nodiscard]] std::string url(const std::vector<std::uint16_t>& ports) const override {
    std::string parameters = "strategy=" + std::string(postgres::to_string(strategy_));
    if (pooler_) parameters += "&pooler=transaction";
    return server_.url_at(ports.front(), parameters + "&response_timeout=500ms&connect_timeout=1s");
  }
  [[nodiscard]] std::vector<Fault> faults() override {
    std::vector<Fault> faults = faults_of_server(server_);
    const auto terminate = [this] { (void)server_.terminate_clients(); };
    faults.push_back(brief_fault("sessions terminated", "server", terminate, 1, Opens::when_struck));
    const auto cancel = [this] {
      server_.run("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE usename = 'locker'");
    };
    faults.push_back(brief_fault("queries cancelled", "server", cancel));
    if (strategy_ == Strategy::advisory) {
      faults.push_back({"tokens locked", "server", [this] { return lock_tokens(); }});
    }
    return faults;
  }
  [[nodiscard]] std::vector<std::string> leftovers(LockKind lock_kind, const std::vector<std::string>& locks) override {
    return held_of(locks, [&](const std::string& lock) {
      return server_.value(PostgresLock(strategy_, lock, lock_kind).residue());
    });
  }

 private:
  // An advisory lock is granted before its token is written, which fails now. The rows are locked, not the table: for
  // that a statement would wait before it takes the advisory lock.
  Heal lock_tokens() {
    if (server_.value("SELECT to_regclass('dlock.fence') IS NULL") == "t") return nullptr;
    auto locker = std::make_shared<test::PostgresConnection>(server_.admin_conninfo());
    locker->run("BEGIN; SELECT FROM dlock.fence FOR UPDATE");
    return [locker]() mutable { locker.reset(); };
  }

  Strategy strategy_;
  test::PostgresServer server_;
  std::optional<test::PgBouncer> pooler_;
};

// The standby streams; a new one takes the place of that which was promoted.
class PostgresFailoverArena final : public FailoverArena {
 public:
  PostgresFailoverArena() : primary_(std::make_unique<test::PostgresServer>()) { add_standby(); }

  [[nodiscard]] std::vector<std::uint16_t> ports() const override { return {primary_->port()}; }
  [[nodiscard]] std::string url(const std::vector<std::uint16_t>& /*ports*/) const override {
    return primary_->url_at(way(), "response_timeout=500ms&connect_timeout=1s");
  }
  [[nodiscard]] std::vector<Fault> faults() override {
    return {
        {"standby promoted", "server", [this] { return fail_over(); }, Linger::within_lease, 3, Opens::when_struck}};
  }

 private:
  void add_standby() {
    standby_ = std::make_unique<test::PostgresServer>(test::PostgresConfig{.primary = primary_.get()});
  }
  Heal fail_over() {
    primary_->kill();
    standby_->promote();
    lead_to(standby_->port());
    primary_ = std::move(standby_);
    return [this] { add_standby(); };
  }

  std::unique_ptr<test::PostgresServer> primary_;
  std::unique_ptr<test::PostgresServer> standby_;
};

}  // namespace

std::vector<ArenaKind> postgres_arenas() {
  const auto kind = [](const std::string& name, Strategy strategy, bool pooled = false) -> ArenaKind {
    return {"postgres_" + name, [=] { return std::make_unique<PostgresArena>(strategy, pooled); }};
  };
  const auto table = kind("table", Strategy::table);
  // Shows: hole postgresql-connection-ends
  const auto advisory = kind("advisory", Strategy::advisory);
  return {table,
          advisory,
          read_write("postgres_read_write", table.make),
          semaphore("postgres_semaphore", table.make),
          read_write("postgres_advisory_read_write", advisory.make),
          kind("optimistic", Strategy::optimistic),
          // Shows: hole postgresql-connection-ends
          kind("for_update", Strategy::for_update),
          kind("pooled", Strategy::table, true),
          // Shows: hole postgresql-failover
          {"postgres_failover", [] { return std::make_unique<PostgresFailoverArena>(); }}};
}

}  // namespace dlock::torture
