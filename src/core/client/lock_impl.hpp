// What locks of all kinds consist of.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <dlock/detail/completion.hpp>
#include <dlock/lease.hpp>
#include <dlock/options.hpp>
#include <dlock/space.hpp>

#include "core/client/thread_leases.hpp"
#include "core/shard/shard.hpp"

namespace dlock::detail {

// What DistributedLock says of its functions holds for those of the same name.
class LockImpl {
 public:
  LockImpl(std::shared_ptr<Shard> of, std::string lock_name, Space of_space = Space::lock, std::uint32_t of_permits = 1)
      : shard(std::move(of)), name(std::move(lock_name)), space(of_space), permits(of_permits) {}

  // An empty lease means that `failure` has a code.
  [[nodiscard]] Lease acquire(Mode mode, const AcquireOptions& options, Failure& failure) const;
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

  [[nodiscard]] AcquireOptions defaults() const {
    const util::MutexLock lock(defaults_mutex_);
    return defaults_;
  }
  void set_defaults(const AcquireOptions& options) {
    const util::MutexLock lock(defaults_mutex_);
    defaults_ = options;
  }

  const std::shared_ptr<Shard> shard;
  const std::string name;
  const Space space;
  const std::uint32_t permits;

 private:
  ThreadLeases leases_;
  mutable util::Mutex defaults_mutex_;
  AcquireOptions defaults_ DLOCK_GUARDED_BY(defaults_mutex_);
};

}  // namespace dlock::detail
