// The lease of a command: of any kind, or of several locks as one.
#pragma once

#include <dlock/clock.hpp>
#include <dlock/lease.hpp>
#include <dlock/multi_lease.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "cli/signal_queue.hpp"

namespace dlock::cli {

// Writes how long it lived.
class Stopwatch {
 public:
  explicit Stopwatch(std::chrono::nanoseconds& into) : into_(into) {}
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() { into_ = LeaseClock::now() - began_; }

  [[nodiscard]] TimePoint began() const noexcept { return began_; }

 private:
  std::chrono::nanoseconds& into_;
  const TimePoint began_ = LeaseClock::now();
};

// The functions of Lease and MultiLease that commands need, which document them. Destruction releases.
class Held {
 public:
  explicit Held(Lease lease) noexcept : leases_(std::move(lease)) {}
  explicit Held(MultiLease leases) noexcept : leases_(std::move(leases)) {}

  [[nodiscard]] bool held() const noexcept {
    return std::visit([](const auto& leases) { return leases.held(); }, leases_);
  }
  [[nodiscard]] TimePoint valid_until() const noexcept {
    return std::visit([](const auto& leases) { return leases.valid_until(); }, leases_);
  }
  [[nodiscard]] std::stop_token lost() const {
    return std::visit([](const auto& leases) { return leases.lost(); }, leases_);
  }
  bool release(std::error_code& ec) noexcept {
    return std::visit([&](auto& leases) { return leases.release(ec); }, leases_);
  }

  // Of each lock, in the order in which they were named.
  [[nodiscard]] std::vector<std::uint64_t> tokens() const;
  // The lock that was lost, or that will be first if none is renewed.
  [[nodiscard]] std::string first_to_go() const;

  // From now on measures for how long it is held. Writes that at its end.
  void measure(std::chrono::nanoseconds& into) { holding_ = std::make_unique<Stopwatch>(into); }
  // When measure() was called.
  [[nodiscard]] TimePoint began() const noexcept { return holding_->began(); }

 private:
  [[nodiscard]] std::vector<const Lease*> each() const;

  std::unique_ptr<Stopwatch> holding_;  // ends when the leases have been released
  std::variant<Lease, MultiLease> leases_;
};

struct Kept {
  enum Reason { until, signal, lost, other, leash } reason;
  int by = 0;  // the signal
};

// Holds it with nothing else to do. Returns when the time has come, at INT, TERM, HUP or QUIT, when the lease is lost,
// or when one of the other two descriptors is readable (-1: none). Stops and continues with its job like any program.
[[nodiscard]] Kept keep(const Held& held, TimePoint until, SignalQueue& signals, int other = -1, int leash = -1);

}  // namespace dlock::cli
