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

// Writes its lifetime into `into` at its end.
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

// The functions of Lease and MultiLease that commands need; documented there. Destruction releases.
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
  // The lock that was lost, or the one that expires first if none is renewed.
  [[nodiscard]] std::string first_to_go() const;

  // Measures from now until the locks are released, and writes that into `into`.
  void measure(std::chrono::nanoseconds& into) { holding_ = std::make_unique<Stopwatch>(into); }
  // When measure() was called.
  [[nodiscard]] TimePoint began() const noexcept { return holding_->began(); }

 private:
  [[nodiscard]] std::vector<const Lease*> each() const;

  std::unique_ptr<Stopwatch> holding_;  // destroyed once the leases have been released
  std::variant<Lease, MultiLease> leases_;
};

struct Kept {
  enum Reason { until, signal, lost, other, leash } reason;
  int by = 0;  // the signal
};

// Holds the lock until that time, until INT, TERM, HUP or QUIT, until the lease is lost, or until one of the two
// descriptors is readable (-1: none). Stops and continues with its job like any program.
[[nodiscard]] Kept keep(const Held& held, TimePoint until, SignalQueue& signals, int other = -1, int leash = -1);

}  // namespace dlock::cli
