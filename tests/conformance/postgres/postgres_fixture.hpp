// PostgreSQL as a subject of the suite: a server that all tests of a process share, disturbed clients behind a proxy.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <dlock/conformance/fixture.hpp>

#include "backends/postgres/options.hpp"
#include "postgres/postgres_service.hpp"
#include "torture/rig/tcp_proxy.hpp"

namespace dlock::conformance {

class PostgresFixture final : public Fixture {
 public:
  // The server is started by the first fixture of its setup and serves all later ones, emptied for each.
  PostgresFixture(PostgresSetup setup, postgres::Strategy strategy);

  [[nodiscard]] std::string url() const override;
  [[nodiscard]] Client make_client(ClientOptions options, Link link) override;
  [[nodiscard]] std::optional<Missing> missing(Feature feature) const override;
  void kill_hold(LockKind kind, const std::string& name) override;
  void kill_session(Client& client) override;
  void stall() override;
  void resume() override;
  void delay_answers(std::chrono::nanoseconds by) override;
  void cut() override;
  void heal() override;
  void lose_next_answer() override;
  [[nodiscard]] std::size_t residue(LockKind kind, const std::string& name) override;
  [[nodiscard]] std::uint64_t requests() override;
  void restart() override;

 private:
  // Somebody who is going to die: a way of its own, so that it can be cut off for good, and a role of its own, by which
  // the server tells its sessions from those of others.
  struct Mortal {
    Mortal(std::string name, std::uint16_t port) : role(std::move(name)), way(rig::Endpoint::loopback(port)) {}
    std::string role;
    rig::TcpProxy way;
  };
  [[nodiscard]] std::string parameters() const;
  [[nodiscard]] std::string parameters(Link link) const;
  [[nodiscard]] Mortal& make_mortal();

  PostgresSetup setup_;
  postgres::Strategy strategy_;
  PostgresService& service_;
  rig::TcpProxy disturbed_;
  std::deque<Mortal> mortal_;
};

}  // namespace dlock::conformance
