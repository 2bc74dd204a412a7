// A MultiLock.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <dlock/multi_lease.hpp>

#include "core/api/default_options.hpp"
#include "core/api/multi_acquisition.hpp"
#include "core/api/thread_leases.hpp"

namespace dlock::detail {

class MultiLockImpl {
 public:
  explicit MultiLockImpl(std::vector<LockPlace> places)
      : locks(std::make_shared<const LockPlaces>(std::move(places))) {}

  [[nodiscard]] Outcome<MultiLease> acquire(const AcquireOptions& options) const;
  // A try that waits for so long.
  [[nodiscard]] Outcome<MultiLease> try_acquire(Duration wait, AcquireOptions options) const;

  const std::shared_ptr<const LockPlaces> locks;
  BasicThreadLeases<MultiLease> leases;
  DefaultOptions defaults;
};

}  // namespace dlock::detail
