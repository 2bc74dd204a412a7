#include "postgres/postgres_fixture.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "backends/postgres/advisory_key.hpp"

namespace dlock::conformance {

namespace {

using postgres::Strategy;
using test::Endpoint;
using test::PostgresServer;
using test::Traffic;

constexpr const char* schema = "dlock";

std::string literal(const std::string& text) {
  std::string out = "'";
  for (const char each : text) out.append(each == '\'' ? 2 : 1, each);
  return out + "'";
}

// pg_locks l, where it is about the lock.
std::string of_advisory_lock(const std::string& name) {
  const postgres::AdvisoryKey key = postgres::advisory_key({}, schema, name);
  return "l.locktype = 'advisory' AND l.objsubid = 1 AND ((l.classid::bigint << 32) | l.objid::bigint) = " +
         std::to_string(key.number);
}

// The row, and what is kept in memory of those who have it locked or wait for it.
std::string of_row_lock(const std::string& name) {
  return "FROM dlock.row_lock AS r JOIN pg_locks AS l ON (l.locktype = 'transactionid' AND l.transactionid = r.xmax) "
         "OR "
         "(l.locktype = 'tuple' AND l.relation = r.tableoid AND l.page = ((r.ctid::text::point)[0])::integer AND "
         "l.tuple = ((r.ctid::text::point)[1])::integer) WHERE r.name = " +
         literal(name);
}

}  // namespace

PostgresFixture::PostgresFixture(PostgresSetup setup, Strategy strategy)
    : setup_(setup),
      strategy_(strategy),
      service_(PostgresService::of(setup)),
      disturbed_(Endpoint::loopback(service_.port())) {
  service_.empty();
}

bool PostgresFixture::has_sessions() const noexcept {
  return strategy_ == Strategy::for_update || strategy_ == Strategy::advisory;
}

std::string PostgresFixture::parameters() const {
  std::string text = "strategy=" + std::string(postgres::to_string(strategy_));
  if (setup_ == PostgresSetup::pooled) text += "&pooler=transaction";
  return text;
}

std::string PostgresFixture::url() const {
  return service_.server().url_at(service_.port(), parameters());
}

PostgresFixture::Mortal& PostgresFixture::make_mortal() {
  // What it creates is to be usable by the others.
  const std::string role = "mortal_" + std::to_string(mortal_.size());
  service_.server().run("DROP ROLE IF EXISTS " + role);
  service_.server().run("CREATE ROLE " + role + " LOGIN IN ROLE " + PostgresServer::user + " PASSWORD '" + role + "'");
  service_.server().run("ALTER ROLE " + role + " SET role = " + PostgresServer::user);
  return mortal_.emplace_back(role, service_.port());
}

Client PostgresFixture::make_client(ClientOptions options, Link link) {
  const PostgresServer& server = service_.server();
  if (link == Link::disturbed) return connect(server.url_at(disturbed_.port(), parameters()), std::move(options));
  // Nobody who is going to die says good-bye for long.
  if (!has_sessions() || options.close_timeout >= ClientOptions().close_timeout) {
    return connect(url(), std::move(options));
  }
  const Mortal& mortal = make_mortal();
  const std::string whole = server.url_at(mortal.way.port(), parameters());
  return connect("postgresql://" + mortal.role + ":" + mortal.role + whole.substr(whole.find('@')), std::move(options));
}

std::optional<Missing> PostgresFixture::missing(Feature feature) const {
  using Kind = Missing::Kind;
  switch (feature) {
    case Feature::step_clock:
      return Missing{Kind::untested, "the clock of a PostgreSQL server cannot be stepped"};
    case Feature::kill_session:
      if (has_sessions()) return std::nullopt;
      return Missing{Kind::not_applicable, "there is no session: every lock has a lease of its own"};
    default:
      return std::nullopt;
  }
}

std::string PostgresFixture::holders(const std::string& name) const {
  if (strategy_ == Strategy::advisory) {
    return "SELECT l.pid FROM pg_locks AS l WHERE l.granted AND " + of_advisory_lock(name);
  }
  return "SELECT l.pid " + of_row_lock(name) + " AND l.locktype = 'transactionid' AND l.granted";
}

void PostgresFixture::kill_hold(const std::string& name) {
  PostgresServer& server = service_.server();
  switch (strategy_) {
    case Strategy::table:
      server.run("UPDATE dlock.lease SET owner = NULL, expires_at = '-infinity' WHERE name = " + literal(name));
      return;
    case Strategy::optimistic:
      server.run("UPDATE dlock.optimistic SET owner = NULL, version = version + 1 WHERE name = " + literal(name));
      return;
    case Strategy::for_update:
    case Strategy::advisory:
      server.run("SELECT pg_terminate_backend(pid, 10000) FROM (" + holders(name) + ") AS h");
      return;
  }
}

void PostgresFixture::kill_session(Client& client) {
  const auto mortal = std::find_if(mortal_.begin(), mortal_.end(), [&](const Mortal& each) {
    return client.url().find(":" + std::to_string(each.way.port()) + "/") != std::string::npos;
  });
  if (mortal == mortal_.end()) throw std::logic_error("this client was not made to die");
  mortal->way.refuse(true);
  mortal->way.drop();
  service_.server().run("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = '" +
                        mortal->role + "'");
}

void PostgresFixture::stall() {
  disturbed_.set({.mode = Traffic::Mode::hold});
}

void PostgresFixture::resume() {
  disturbed_.pass();
}

void PostgresFixture::cut() {
  disturbed_.refuse(true);
  disturbed_.drop();
}

void PostgresFixture::heal() {
  disturbed_.refuse(false);
}

void PostgresFixture::lose_next_answer() {
  disturbed_.lose_reply_to("dlock-conformance/");  // what the names of all locks of the suite start with
}

std::size_t PostgresFixture::residue(const std::string& name) {
  const auto sql = [&]() -> std::string {
    switch (strategy_) {
      case Strategy::table:
        return "FROM dlock.lease WHERE expires_at > clock_timestamp() AND name = " + literal(name);
      case Strategy::optimistic:
        return "FROM dlock.optimistic WHERE owner IS NOT NULL AND name = " + literal(name);
      case Strategy::for_update:
        return of_row_lock(name);
      case Strategy::advisory:
        return "FROM pg_locks AS l WHERE " + of_advisory_lock(name);
    }
    throw std::logic_error("no such strategy");
  };
  return std::stoul(service_.server().value("SELECT count(*) " + sql()));
}

std::uint64_t PostgresFixture::requests() {
  return service_.statements();
}

void PostgresFixture::restart() {
  service_.restart();
}

}  // namespace dlock::conformance
