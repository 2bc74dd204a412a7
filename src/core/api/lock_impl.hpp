// A lock of any kind.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <dlock/detail/completion.hpp>
#include <dlock/lease.hpp>
#include <dlock/lock_kind.hpp>
#include <dlock/options.hpp>

#include "core/api/outcome.hpp"
#include "core/api/thread_leases.hpp"
#include "core/client/acquisition.hpp"
#include "core/client/client_core.hpp"

namespace dlock::detail {

// The functions are documented in DistributedLock.
class LockImpl : public LockPlace {
 public:
  explicit LockImpl(LockPlace place) : LockPlace(std::move(place)) {}

  [[nodiscard]] Outcome<Lease> acquire(Mode mode, const AcquireOptions& options) const;
  // Waits for at most `wait`; refuses options with a different wait.
  [[nodiscard]] Outcome<Lease> try_acquire(Mode mode, Duration wait, AcquireOptions options) const;
  void start_acquire(Mode mode, const AcquireOptions& options, Completion<Lease> handler) const;

  // Keep the lease for this thread.
  void lock(Mode mode);
  [[nodiscard]] bool try_lock_within(Mode mode, Duration wait);
  // Releases the lease that lock() took in this mode.
  void unlock(Mode mode) noexcept;
  [[nodiscard]] const Lease& mine() const noexcept { return leases_.mine(); }

  DefaultOptions defaults;

 private:
  ThreadLeases leases_;
};

// A campaign is an acquire of a lock, with the candidate's value.
struct ElectionImpl {
  const std::shared_ptr<ClientCore> core;
  const std::string name;
};

}  // namespace dlock::detail
