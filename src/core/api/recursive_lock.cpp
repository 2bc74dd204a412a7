#include <dlock/recursive_lock.hpp>

#include <algorithm>
#include <utility>

#include <dlock/error.hpp>

#include "core/api/thread_leases.hpp"

namespace dlock {

class RecursiveLock::Impl {
 public:
  explicit Impl(DistributedLock lock) : lock_(std::move(lock)) {}

  // Waits without limit; this thread holds the lock afterwards, or it throws.
  void enter() {
    if (enter_again()) return;
    auto options = lock_.defaults();
    options.wait = forever;
    leases_.enter([&] { return lock_.acquire(options); });
  }

  // True when this thread holds the lock afterwards.
  bool try_enter(Duration wait) {
    if (enter_again()) return true;
    auto options = lock_.defaults();
    options.wait = std::max(wait, Duration());
    return leases_.try_enter([&] { return lock_.try_acquire_for(options.wait, options); });
  }

  void leave() noexcept {
    const auto lease = leases_.decrement();  // released when it goes out of scope
  }

  [[nodiscard]] const DistributedLock& lock() const noexcept { return lock_; }
  [[nodiscard]] const detail::ThreadLeases& leases() const noexcept { return leases_; }

 private:
  // False when this thread holds nothing.
  bool enter_again() {
    if (leases_.count() == 0) return false;
    if (!leases_.mine().held()) {
      throw Error(errc::lost, "lock \"" + lock_.name() +
                                  "\" was lost; unlock it once for each time it was locked, then lock it again");
    }
    leases_.increment();
    return true;
  }

  DistributedLock lock_;
  detail::ThreadLeases leases_;
};

RecursiveLock::RecursiveLock(DistributedLock lock) : impl_(std::make_unique<Impl>(std::move(lock))) {}
RecursiveLock::RecursiveLock(RecursiveLock&&) noexcept = default;
RecursiveLock& RecursiveLock::operator=(RecursiveLock&&) noexcept = default;
RecursiveLock::~RecursiveLock() = default;

void RecursiveLock::lock() & {
  impl_->enter();
}

bool RecursiveLock::try_lock() & {
  return impl_->try_enter(Duration());
}

bool RecursiveLock::try_lock_within(Duration wait) {
  return impl_->try_enter(wait);
}

void RecursiveLock::unlock() noexcept {
  impl_->leave();
}

std::size_t RecursiveLock::hold_count() const noexcept {
  return impl_->leases().count();
}

const Lease& RecursiveLock::lease() const& noexcept {
  return impl_->leases().mine();
}

const std::string& RecursiveLock::name() const noexcept {
  return impl_->lock().name();
}

}  // namespace dlock
