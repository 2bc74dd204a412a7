// What locks of all kinds consist of.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <dlock/detail/completion.hpp>
#include <dlock/lease.hpp>
#include <dlock/lock_kind.hpp>
#include <dlock/options.hpp>

#include "core/api/default_options.hpp"
#include "core/api/lock_place.hpp"
#include "core/api/thread_leases.hpp"

namespace dlock::detail {

// What DistributedLock says of its functions holds for those of the same name.
class LockImpl : public LockPlace {
 public:
  explicit LockImpl(LockPlace place) : LockPlace(std::move(place)) {}

  using LockPlace::acquire;
  Lease acquire(Mode mode, const AcquireOptions& options) const;
  Lease acquire(Mode mode, const AcquireOptions& options, std::error_code& ec) const;
  [[nodiscard]] std::optional<Lease> try_acquire_for(Mode mode, Duration wait, AcquireOptions options) const;
  [[nodiscard]] std::optional<Lease> try_acquire_for(Mode mode, Duration wait, AcquireOptions options,
                                                     std::error_code& ec) const;
  void start_acquire(Mode mode, const AcquireOptions& options, Completion<Lease> handler) const;

  // Keep the lease for this thread.
  void lock(Mode mode);
  [[nodiscard]] bool try_lock_within(Mode mode, Duration wait);
  // Gives back what lock() took in this mode.
  void unlock(Mode mode) noexcept;
  [[nodiscard]] const Lease& mine() const noexcept { return leases_.mine(); }

  DefaultOptions defaults;

 private:
  [[nodiscard]] Lease try_once(Mode mode, Duration wait, AcquireOptions options, Failure& failure) const;

  ThreadLeases leases_;
};

}  // namespace dlock::detail
