// Shared by the fixtures of services behind a network: disturbed clients reach the servers through proxies.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <dlock/conformance/suite.hpp>

#include "suite/wait.hpp"
#include "tests/support/server.hpp"
#include "torture/rig/tcp_proxy.hpp"

namespace dlock::conformance {

// For Subject::untested: the clock of a server cannot be stepped; and the proxy cannot recognise an acquire in an
// encrypted stream, so it cannot lose its answer.
inline std::vector<std::string> untested_of_server(bool encrypted = false) {
  std::vector<std::string> tests{
      "Contract.C02_HeldEndsAtValidUntilWithoutBeingTold",
      "Contract.C03_AKilledHoldIsSignalledWithinItsLease",
      "Contract.C03_TheEndOfALeaseIsSeenAtOnceByWhoeverLooks",
      "Contract.C03_TheEndOfALeaseIsSignalledNoLaterThanValidUntil",
      "Contract.C04_TokensGrowWhenTheWallClockIsSetBack",
      "Contract.C08_AWaitEndsExactlyAtItsDeadline",
      "Contract.C10_AClockThatJumpsPastTheLeaseEndsIt",
      "Contract.C10_ALeaseStaysHeldForAsLongAsTheProcessRuns",
      "Contract.C10_ALeaseSurvivesAShortDisturbance",
      "Contract.C11_AWaiterIsWokenWhileTimeStandsStill",
  };
  if (encrypted) {
    tests.emplace_back("Contract.C09_ATryWhoseAnswerIsLostIsNeverHeldOnAGuess");
    tests.emplace_back("Contract.C09_AWaitWhoseAnswerIsLostEndsWithTheLock");
  }
  return tests;
}

// A path to the service: a proxy before each server.
using Way = std::vector<std::unique_ptr<rig::TcpProxy>>;

using test::addresses_of;
inline std::string addresses_of(const Way& way) {
  std::vector<std::uint16_t> ports;
  for (const auto& each : way) ports.push_back(each->port());
  return addresses_of(ports);
}

inline Way way_to(const std::vector<std::uint16_t>& ports) {
  Way way;
  for (const std::uint16_t port : ports) {
    way.push_back(std::make_unique<rig::TcpProxy>(rig::Endpoint::loopback(port)));
  }
  return way;
}

class ServerFixture : public Fixture {
 public:
  [[nodiscard]] std::optional<Missing> missing(Feature feature) const override {
    if (feature != Feature::step_clock) return std::nullopt;
    return Missing{Missing::Kind::untested, "the clock of a server cannot be stepped"};
  }
  void stall() override {
    for (const auto& each : disturbed_) each->set({.mode = rig::Traffic::Mode::hold});
  }
  void resume() override {
    for (const auto& each : disturbed_) each->set({});
  }
  void delay_answers(std::chrono::nanoseconds by) override {
    for (const auto& each : disturbed_) each->set(rig::Direction::to_client, {.delay = by});
  }
  void cut() override { cut_off(disturbed_); }
  void heal() override {
    for (const auto& each : disturbed_) each->refuse(false);
  }

 protected:
  explicit ServerFixture(Way disturbed) : disturbed_(std::move(disturbed)) {}

  static void cut_off(const Way& way) {
    for (const auto& each : way) each->refuse(true);
    for (const auto& each : way) each->drop();
  }
  [[nodiscard]] const Way& disturbed() const noexcept { return disturbed_; }

 private:
  Way disturbed_;
};

// For services whose locks end with the client's session. If the path to the servers is cut, tests wait for sessions to
// end, so those are short, but not shorter than a lease that a test requests. All others last while a busy machine
// answers a thousand requests.
class SessionFixture : public ServerFixture {
 public:
  [[nodiscard]] Client make_client(ClientOptions options, Link link) override {
    const std::chrono::milliseconds brief = brief_session(options);
    if (link == Link::disturbed) {
      longest_disturbed_ = std::max(longest_disturbed_, brief);
      return connect(url_of(addresses_of(disturbed()), brief), std::move(options));
    }
    // A client that will be killed does not wait long to close. It has its own path, so that it can be cut off for
    // good.
    if (options.close_timeout >= ClientOptions().close_timeout) {
      return connect(url_of(addresses_of(ports()), std::chrono::seconds(10)), std::move(options));
    }
    const Way& way = mortal_.emplace_back(way_to(ports()));
    return connect(url_of(addresses_of(way), brief), std::move(options));
  }

  // A lock that the client acquires shows its session.
  void kill_session(Client& client) override {
    const auto way = std::find_if(mortal_.begin(), mortal_.end(), [&](const Way& each) {
      return client.url().find(addresses_of(each)) != std::string::npos;
    });
    if (way == mortal_.end()) throw std::logic_error("this client was not made to die");
    constexpr const char* mark = "dlock-conformance/doomed";
    const Lease lease = client.make_lock(mark).acquire({.wait = guard()});
    // Before the cut, after which the session also ends by itself.
    const std::vector<std::string> entries = entries_of(LockKind::lock, mark);
    if (entries.empty()) throw std::runtime_error("the session to be ended has no lock");
    cut_off(*way);
    end_session_of(entries.front());
  }

 protected:
  SessionFixture(const std::vector<std::uint16_t>& ports, std::chrono::milliseconds shortest)
      : ServerFixture(way_to(ports)), shortest_(shortest) {}

  // The ports of the servers for clients.
  [[nodiscard]] virtual std::vector<std::uint16_t> ports() const = 0;
  [[nodiscard]] virtual std::string url_of(const std::string& addresses, std::chrono::milliseconds session) const = 0;
  // The service's entries of the lock's holders, or of others behind them; the first entry is a holder's.
  [[nodiscard]] virtual std::vector<std::string> entries_of(LockKind kind, const std::string& name) const = 0;
  virtual void end_session_of(const std::string& entry) = 0;

  // Of clients disturbed so far.
  [[nodiscard]] std::chrono::milliseconds longest_session() const noexcept { return longest_disturbed_; }

 private:
  [[nodiscard]] std::chrono::milliseconds brief_session(const ClientOptions& options) const {
    if (options.lease >= ClientOptions().lease) return shortest_;
    return std::max<std::chrono::milliseconds>(shortest_,
                                               std::chrono::ceil<std::chrono::seconds>(options.lease.value()));
  }

  const std::chrono::milliseconds shortest_;
  std::chrono::milliseconds longest_disturbed_{0};
  std::deque<Way> mortal_;
};

}  // namespace dlock::conformance
