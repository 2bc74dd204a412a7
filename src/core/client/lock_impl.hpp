// What a DistributedLock consists of.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <dlock/options.hpp>

#include "core/client/thread_leases.hpp"
#include "core/shard/shard.hpp"

namespace dlock::detail {

class LockImpl {
 public:
  LockImpl(std::shared_ptr<Shard> of, std::string lock_name) : shard(std::move(of)), name(std::move(lock_name)) {}

  // Waits for the end of an acquire. An empty lease means that `failure` has a code.
  [[nodiscard]] Lease acquire(const AcquireOptions& options, Failure& failure) const;

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
  ThreadLeases leases;

 private:
  mutable util::Mutex defaults_mutex_;
  AcquireOptions defaults_ DLOCK_GUARDED_BY(defaults_mutex_);
};

}  // namespace dlock::detail
