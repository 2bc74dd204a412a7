#include "postgres/postgres_fixture.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "tests/support/postgres_locks.hpp"

namespace dlock::conformance {

using postgres::Strategy;
using rig::Endpoint;
using rig::Traffic;
using test::PostgresLock;
using test::PostgresServer;

PostgresFixture::PostgresFixture(PostgresSetup setup, Strategy strategy)
    : setup_(setup),
      strategy_(strategy),
      service_(PostgresService::of(setup)),
      disturbed_(Endpoint::loopback(service_.port())) {
  service_.empty();
}

std::string PostgresFixture::parameters() const {
  std::string text = "strategy=" + std::string(postgres::to_string(strategy_));
  if (setup_ == PostgresSetup::pooled) text += "&pooler=transaction";
  if (setup_ == PostgresSetup::session_pooled) text += "&pooler=session";
  return text;
}

std::string PostgresFixture::parameters(Link link) const {
  if (!PostgresLock::is_of_sessions(strategy_)) return parameters();
  // A lease that outlives the moment in which a busy machine starts as many processes of the server; tests wait for the
  // end of one that is cut off.
  return parameters() + (link == Link::disturbed ? "&lease=3s" : "&lease=8s");
}

std::string PostgresFixture::url() const {
  return service_.server().url_at(service_.port(), parameters());
}

PostgresFixture::Mortal& PostgresFixture::make_mortal() {
  // What it creates is to be usable by the others.
  const std::string role = mortal_role(mortal_.size());
  service_.server().run("DROP ROLE IF EXISTS " + role);
  service_.server().run("CREATE ROLE " + role + " LOGIN IN ROLE " + PostgresServer::user + " PASSWORD '" + role + "'");
  service_.server().run("ALTER ROLE " + role + " SET role = " + PostgresServer::user);
  return mortal_.emplace_back(role, service_.port());
}

Client PostgresFixture::make_client(ClientOptions options, Link link) {
  const PostgresServer& server = service_.server();
  if (link == Link::disturbed) return connect(server.url_at(disturbed_.port(), parameters(link)), std::move(options));
  // Nobody who is going to die says good-bye for long.
  if (!PostgresLock::is_of_sessions(strategy_) || options.close_timeout >= ClientOptions().close_timeout) {
    return connect(server.url_at(service_.port(), parameters(link)), std::move(options));
  }
  const Mortal& mortal = make_mortal();
  const std::string whole = server.url_at(mortal.way.port(), parameters(link));
  return connect("postgresql://" + mortal.role + ":" + mortal.role + whole.substr(whole.find('@')), std::move(options));
}

std::optional<Missing> PostgresFixture::missing(Feature feature) const {
  using Kind = Missing::Kind;
  switch (feature) {
    case Feature::step_clock:
      return Missing{Kind::untested, "the clock of a PostgreSQL server cannot be stepped"};
    case Feature::kill_session:
      if (PostgresLock::is_of_sessions(strategy_)) return std::nullopt;
      return Missing{Kind::not_applicable, "there is no session: every lock has a lease of its own"};
    default:
      return std::nullopt;
  }
}

void PostgresFixture::kill_hold(LockKind kind, const std::string& name) {
  service_.server().run(PostgresLock(strategy_, name, kind).take_away());
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

void PostgresFixture::delay_answers(std::chrono::nanoseconds by) {
  disturbed_.set(rig::Direction::to_client, {.delay = by});
}

void PostgresFixture::cut() {
  disturbed_.refuse(true);
  // A server that heard would free the locks of a session at once, perhaps before their holder has heard.
  disturbed_.sever();
}

void PostgresFixture::heal() {
  disturbed_.end_severed();
  disturbed_.refuse(false);
}

void PostgresFixture::lose_next_answer() {
  disturbed_.lose_reply_to("dlock-conformance/");  // what the names of all locks of the suite start with
}

std::size_t PostgresFixture::residue(LockKind kind, const std::string& name) {
  return std::stoul(service_.server().value(PostgresLock(strategy_, name, kind).residue()));
}

std::uint64_t PostgresFixture::requests() {
  return service_.statements();
}

void PostgresFixture::restart() {
  service_.restart();
}

}  // namespace dlock::conformance
