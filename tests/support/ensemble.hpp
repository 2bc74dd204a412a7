// Servers that elect a leader, started for a test: a ZooKeeper ensemble, an etcd cluster.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/free_port.hpp"
#include "tests/support/server.hpp"
#include "torture/rig/hang_guard.hpp"

namespace dlock::test {

// The ports of all members, and the index of one of them.
struct Membership {
  struct Ports {
    std::uint16_t client = free_port();
    std::uint16_t peer = free_port();
    std::uint16_t other = free_port();  // ZooKeeper: for elections; etcd: for metrics and health, open to all
  };
  std::vector<Ports> all = std::vector<Ports>(1);
  std::size_t own = 0;

  [[nodiscard]] const Ports& ports() const { return all[own]; }
};

// Member: a Server with leads().
template <class Member>
class Ensemble {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }
  [[nodiscard]] Member& server(std::size_t index) const { return *members_.at(index); }
  [[nodiscard]] std::vector<std::uint16_t> ports() const { return ports_of(members_); }
  // The addresses of all members, comma-separated.
  [[nodiscard]] std::string addresses() const { return addresses_of(ports()); }
  [[nodiscard]] std::string url(const std::string& parameters = {}) const {
    return members_.front()->url_of(addresses(), parameters);
  }

  // The index of the leader; waits for one.
  [[nodiscard]] std::size_t leader() const {
    const auto give_up = std::chrono::steady_clock::now() + rig::hang_guard;
    while (std::chrono::steady_clock::now() < give_up) {
      for (std::size_t i = 0; i < size(); ++i) {
        if (!members_[i]->running()) continue;
        if (members_[i]->leads()) return i;
        members_[i]->wait_a_moment();
      }
    }
    throw std::runtime_error("hang: no leader is elected");
  }
  // The index of a running member that is not the leader, nor `except`.
  [[nodiscard]] std::size_t follower(std::optional<std::size_t> except = std::nullopt) const {
    const std::size_t led_by = leader();
    for (std::size_t i = 0; i < size(); ++i) {
      if (i != led_by && i != except && members_[i]->running()) return i;
    }
    throw std::runtime_error("there is no such follower");
  }
  // Waits until every running member serves, and one of them leads.
  void await_serving() const {
    for (const auto& each : members_) {
      if (each->running()) each->await_serving();
    }
    (void)leader();
  }
  // Starts the members that are not running, and waits until all serve.
  void start() {
    for (const auto& each : members_) {
      if (!each->running()) each->launch();
    }
    await_serving();
  }
  void stop() {
    for (const auto& each : members_) {
      if (each->running()) each->stop();
    }
  }

 protected:
  // Another program may take a port before a member does; then different ports are tried.
  template <class Make>  // std::unique_ptr<Member>(Membership)
  Ensemble(std::size_t size, Make&& make) {
    constexpr int start_attempts = 10;
    for (int attempt = 1;; ++attempt) {
      Membership membership{.all = std::vector<Membership::Ports>(size)};
      for (; membership.own < size; ++membership.own) members_.push_back(make(membership));
      try {
        start();
        return;
      } catch (const std::runtime_error&) {
        if (attempt == start_attempts) throw;
        members_.clear();
      }
    }
  }

 private:
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace dlock::test
