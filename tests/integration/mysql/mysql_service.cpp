// MariaDB as the rooms have it.
#include "backends/mysql/sql/layout.hpp"
#include "mysql/scripted_mysql.hpp"
#include "network/room.hpp"
#include "tests/support/mysql_locks.hpp"
#include "tests/support/mysql_server.hpp"

namespace dlock::test {

namespace {

using mysql::Strategy;

Strategy named(const std::string& strategy) {
  for (const Strategy each : {Strategy::table, Strategy::optimistic, Strategy::for_update}) {
    if (mysql::to_string(each) == strategy) return each;
  }
  return Strategy::named;
}

class MysqlService final : public Service {
 public:
  explicit MysqlService(const std::string& tls_names)
      : server_({.tls = !tls_names.empty(), .tls_names = tls_names.empty() ? MysqlConfig().tls_names : tls_names}) {
    for (const std::string& statement : mysql::creation("dlock", true)) server_.run(statement);
  }

  [[nodiscard]] std::uint16_t port() const override { return server_.port(); }
  [[nodiscard]] std::string url_at(std::uint16_t port, const std::string& parameters) const override {
    return server_.url_at(port, parameters);
  }
  [[nodiscard]] std::string plain_url(std::uint16_t port) const override {
    return std::string("mysql://") + MysqlServer::user + ":" + MysqlServer::password +
           "@127.0.0.1:" + std::to_string(port) + "/" + MysqlServer::database;
  }
  [[nodiscard]] std::string tls_url(std::uint16_t port, const std::string& authority) const override {
    return plain_url(port) + "?tls=verify" + (authority.empty() ? "" : "&tls_ca=" + authority);
  }
  [[nodiscard]] std::string authority() const override { return server_.certificate().authority(); }
  void renew_certificate() override { server_.renew_certificate(); }
  [[nodiscard]] std::string url_of_stranger(const std::string& password, const std::string& parameters) override {
    return server_.url_as(MysqlServer::user, password, parameters);
  }
  void stop() override { server_.stop(); }
  void kill() override { server_.kill(); }
  void start() override { server_.start(); }
  void freeze() override { server_.freeze(); }
  void thaw() override { server_.thaw(); }
  // A transaction of an earlier test may still have a row.
  void clear() override {
    server_.kill_clients();
    for (const mysql::TableDefinition& table : mysql::layout()) {
      if (table.name != "meta") server_.run("DELETE FROM dlock." + std::string(table.name));
    }
  }
  [[nodiscard]] std::size_t residue(const std::string& strategy, const std::string& name) override {
    return std::stoul(server_.value("SELECT " + MysqlLock(named(strategy), name).residue()));
  }
  [[nodiscard]] bool remembers(const std::string& strategy, const std::string& name) override {
    return server_.value("SELECT " + MysqlLock(named(strategy), name).rows()) != "0";
  }
  void age(Duration by) override {
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(by.value()).count();
    const std::string aged = " SET t.token = t.token - " + std::to_string(us);
    // No acquire is on its way: one that read the clock before would insert its token after the aged row has gone.
    for (const std::string table : {"dlock.lease", "dlock.optimistic"}) {
      server_.run("LOCK TABLES " + table + " AS t WRITE");
      server_.run("UPDATE " + table + " AS t" + aged);
      server_.run("UNLOCK TABLES");
    }
    for (const std::string table : {"dlock.row_lock", "dlock.fence"}) {
      server_.run("UPDATE (SELECT name FROM " + table + " FOR UPDATE SKIP LOCKED) AS free STRAIGHT_JOIN " + table +
                  " AS t ON t.name = free.name" + aged);
    }
  }
  [[nodiscard]] bool has_waiter(const std::string& strategy, const std::string& name) override {
    return server_.value("SELECT " + MysqlLock(named(strategy), name).waiters()) != "0";
  }

 private:
  MysqlServer server_;
};

}  // namespace

const ServiceKind& service_kind() {
  static const ServiceKind kind{
      .name = "mysql",
      .strategies = {"table", "for-update", "named"},
      .variants = {"optimistic"},
      .start = [](const std::string& tls_names) { return std::make_unique<MysqlService>(tls_names); },
      // A client's waiters beyond these connections poll, of which the server hears nothing.
      .parameters = [](const std::string& strategy) { return "strategy=" + strategy + "&max_connections=60"; },
      .lock_request = "PREPARE d0",
      .ends_with_connection = [](const std::string& strategy) { return mysql::lives_in_sessions(named(strategy)); },
      .hostile_url = [](std::uint16_t port) { return "mysql://u@127.0.0.1:" + std::to_string(port) + "/db?"; },
      .greets = true,
      .polite_until_asked = polite_until_asked,
      .hostilities =
          {
              {"endless_garbage", {.repeat = std::string("\x7f\x00\xfe", 3)}},
              {"endless_packet", {.bytes = beginning(0xffffff, 1), .repeat = "x"}},
              {"endless_packets", {.repeat = std::string("\xff\xff\xff\x00", 4)}},
              {"short_greeting", {.bytes = packet(0, "\x0a")}},
              {"refusal", {.bytes = packet(0, std::string("\xff\x10\x04") + "Full")}},
              {"giant_error", {.bytes = beginning(0xfffffe, 1) + "\xff\x10\x04", .repeat = "x"}},
              {"half_an_error", {.bytes = packet(1, "\xff\x10")}},
              {"file_wanted", {.bytes = packet(1, "\xfb/etc/passwd")}},
              {"nothing_instead_of_rows", {.bytes = ok(1)}},
              {"columns_without_end", {.bytes = packet(1, "\xfd\xff\xff\xff")}},
              {"column_longer_than_its_packet",
               {.bytes = packet(1, "\x01") + packet(2,
                                                    "\x03"
                                                    "d")}},
              {"row_longer_than_its_packet", {.bytes = one_column() + packet(4, "\xfd\xff\xff\x7fx")}},
              {"row_too_narrow", {.bytes = one_column() + packet(4, "")}},
              {"wrong_place", {.bytes = packet(7, "\x01")}},
              {"rows_without_end", {.bytes = one_column(), .repeat = packet(4, text_field("x"))}},
              {"half_a_row", {.bytes = one_column() + beginning(100, 4) + "x"}},
              {"half_a_row_and_end", {.bytes = one_column() + beginning(100, 4) + "x", .close = true}},
          },
      .most_accepted = std::uint64_t{256} << 20U,
  };
  return kind;
}

}  // namespace dlock::test
