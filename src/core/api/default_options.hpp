// The options that lock() and try_lock() of an object use.
#pragma once

#include <dlock/options.hpp>

#include "util/mutex.hpp"

namespace dlock::detail {

// Any thread.
class DefaultOptions {
 public:
  [[nodiscard]] AcquireOptions get() const {
    const util::MutexLock lock(mutex_);
    return options_;
  }
  void set(const AcquireOptions& options) {
    const util::MutexLock lock(mutex_);
    options_ = options;
  }

 private:
  mutable util::Mutex mutex_;
  AcquireOptions options_ DLOCK_GUARDED_BY(mutex_);
};

}  // namespace dlock::detail
