// The leases of a client: kept, lost, released. In tasks only.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <unordered_map>

#include <dlock/options.hpp>
#include <dlock/spi/backend.hpp>

#include "core/client/lease_state.hpp"

namespace dlock::detail {

class LeaseTable {
 public:
  explicit LeaseTable(ClientCore& core) noexcept : core_(core) {}

  // Makes a lease of a grant to an acquire of that time.
  [[nodiscard]] std::shared_ptr<LeaseState> hold(Grant grant, const AcquireOptions& options, TimePoint started);
  // nullptr if it is not, or no longer, kept here.
  [[nodiscard]] std::shared_ptr<LeaseState> find(const OwnerId& owner) const;

  // News of the backend's. Ignored for an owner that is not here.
  void renewal_ended(const OwnerId& owner, const RenewOutcome& outcome) const;
  void extended(const OwnerId& owner, TimePoint valid_until) const;
  void gone(const OwnerId& owner, Failure why);
  void reconnected();

  // It can no longer be relied on; no effect if it was lost before.
  void lose(LeaseState& lease, Failure why);
  // The program has given it back, lost or not; no effect if that was done before.
  void give_back(const std::shared_ptr<LeaseState>& lease);
  // Frees a grant whose caller no longer waits.
  void release_unwanted(const Grant& grant);

  // Loses and releases all of them.
  void close();
  // How many releases the backend has not answered; `release_answered` is called whenever one was.
  [[nodiscard]] std::size_t pending_releases() const noexcept { return pending_releases_; }

 private:
  void release_in_backend(const Grant& grant, std::shared_ptr<LeaseState> lease);
  void released(LeaseState& lease, const ReleaseOutcome& outcome);

  ClientCore& core_;
  std::unordered_map<OwnerId, std::shared_ptr<LeaseState>> leases_;
  std::size_t pending_releases_ = 0;
};

}  // namespace dlock::detail
