// What a command holds: a lease of any kind, or several as one.
#pragma once

#include <dlock/clock.hpp>
#include <dlock/lease.hpp>
#include <dlock/multi_lease.hpp>

#include <cstdint>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

namespace dlock::cli {

// The functions of Lease and MultiLease that commands need, and what those functions say. Destruction releases.
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

 private:
  [[nodiscard]] std::vector<const Lease*> each() const;

  std::variant<Lease, MultiLease> leases_;
};

}  // namespace dlock::cli
