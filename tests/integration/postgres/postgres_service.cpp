// PostgreSQL as the rooms have it.
#include "network/room.hpp"
#include "postgres/postgres_test.hpp"
#include "postgres/scripted_postgres.hpp"

namespace dlock::test {

namespace {

Strategy named(const std::string& strategy) {
  return *std::find_if(std::begin(all_strategies), std::end(all_strategies),
                       [&](Strategy each) { return postgres::to_string(each) == strategy; });
}

class PostgresService final : public Service {
 public:
  explicit PostgresService(const std::string& tls_names)
      : server_({.tls = !tls_names.empty(), .tls_names = tls_names}) {}

  [[nodiscard]] std::uint16_t port() const override { return server_.port(); }
  [[nodiscard]] std::string url_at(std::uint16_t port, const std::string& parameters) const override {
    return server_.url_at(port, parameters);
  }
  [[nodiscard]] std::string plain_url(std::uint16_t port) const override { return bare_url(port) + "?sslmode=disable"; }
  [[nodiscard]] std::string tls_url(std::uint16_t port, const std::string& authority) const override {
    return bare_url(port) + "?sslmode=verify-full" + (authority.empty() ? "" : "&sslrootcert=" + authority);
  }
  [[nodiscard]] std::string authority() const override { return server_.certificate().authority(); }
  void renew_certificate() override { server_.renew_certificate(); }
  [[nodiscard]] std::string url_of_stranger(const std::string& password, const std::string& parameters) override {
    return server_.url_as(PostgresServer::user, password, parameters);
  }
  void stop() override { server_.stop(); }
  void kill() override { server_.kill(); }
  void start() override { server_.start(); }
  void freeze() override { server_.freeze(); }
  void thaw() override { server_.thaw(); }
  void clear() override { server_.run("DROP SCHEMA IF EXISTS dlock CASCADE"); }
  [[nodiscard]] std::size_t residue(const std::string& strategy, const std::string& name) override {
    return std::stoul(server_.value(PostgresLock(named(strategy), name).residue()));
  }
  [[nodiscard]] bool remembers(const std::string& strategy, const std::string& name) override {
    return server_.value(PostgresLock(named(strategy), name).rows()) != "0";
  }
  void age(Duration by) override {
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(by.value()).count();
    const std::string aged = " SET token = token - " + std::to_string(us);
    // No acquire is on its way: one that read the clock before would insert its token after the aged row has gone.
    for (const std::string table : {"dlock.lease", "dlock.optimistic"}) {
      server_.run("LOCK TABLE " + table + " IN EXCLUSIVE MODE; UPDATE " + table + aged);
    }
    for (const std::string table : {"dlock.row_token", "dlock.fence"}) {
      server_.run("UPDATE " + table + aged + " WHERE name IN (SELECT name FROM " + table + " FOR UPDATE SKIP LOCKED)");
    }
  }
  [[nodiscard]] bool has_waiter(const std::string& strategy, const std::string& name) override {
    return server_.value(PostgresLock(named(strategy), name).waiters()) != "0";
  }

 private:
  [[nodiscard]] static std::string bare_url(std::uint16_t port) {
    return std::string("postgresql://") + PostgresServer::user + ":" + PostgresServer::password +
           "@127.0.0.1:" + std::to_string(port) + "/" + PostgresServer::database;
  }

  PostgresServer server_;
};

}  // namespace

const ServiceKind& service_kind() {
  static const ServiceKind kind{
      .name = "postgres",
      .strategies = {"table", "for-update", "advisory"},
      .variants = {"optimistic"},
      .start = [](const std::string& tls_names) { return std::make_unique<PostgresService>(tls_names); },
      .lock_request = "INSERT INTO",
      .ends_with_connection = [](const std::string& strategy) { return lives_in_sessions(named(strategy)); },
      .hostile_url =
          [](std::uint16_t port) {
            return "postgresql://u@127.0.0.1:" + std::to_string(port) + "/db?sslmode=disable&";
          },
      .polite_until_asked = polite_until_asked,
      .hostilities =
          {
              {"endless_garbage", {.repeat = std::string("\x7f\x00\xfe", 3)}},
              {"negative_length", {.bytes = beginning('D', 0xffffffff)}},
              {"length_of_zero", {.bytes = beginning('D', 0)}},
              {"giant_error", {.bytes = beginning('E', 0x7fffffff), .repeat = "x"}},
              {"giant_parameter", {.bytes = beginning('S', 0x7fffffff), .repeat = "x"}},
              {"giant_notification", {.bytes = beginning('A', 0x7ffffff0), .repeat = "xxxxxxxxxxxxxxxx"}},
              {"rows_too_wide", {.bytes = one_column() + message('D', number(9, 2))}},
              {"row_longer_than_its_message",
               {.bytes = one_column() + message('D', number(1, 2) + number(1000, 4) + "x")}},
              {"negative_field", {.bytes = one_column() + message('D', number(1, 2) + number(0x80000000, 4))}},
              {"columns_without_end", {.bytes = message('T', number(0xffff, 2))}},
              {"copy", {.bytes = message('G', std::string("\0\0\0", 3))}},
              {"half_a_row", {.bytes = one_column() + beginning('D', 100) + "x"}},
              {"half_a_row_and_end", {.bytes = one_column() + beginning('D', 100) + "x", .close = true}},
          },
      .most_accepted = std::uint64_t{256} << 20U,
  };
  return kind;
}

}  // namespace dlock::test
