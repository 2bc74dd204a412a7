#include <dlock/multi_lock.hpp>

#include <algorithm>
#include <utility>

#include <dlock/error.hpp>

#include "core/api/lock_impl.hpp"
#include "core/api/multi_acquisition.hpp"

namespace dlock {

namespace detail {

Outcome<MultiLease> MultiLockImpl::acquire(const AcquireOptions& options) const {
  return std::make_shared<MultiAcquisition>(locks, options)->run();
}

Outcome<MultiLease> MultiLockImpl::try_acquire(Duration wait, AcquireOptions options) const {
  if (auto why = problem_with_wait(wait, options)) return {.failure = *std::move(why)};
  options.wait = wait;
  return acquire(options);
}

}  // namespace detail

MultiLock::MultiLock(std::vector<DistributedLock> locks) {
  std::vector<detail::LockPlace> places;
  places.reserve(locks.size());
  for (const DistributedLock& lock : locks) places.push_back(*lock.impl_);
  impl_ = std::make_unique<detail::MultiLockImpl>(std::move(places));
}

MultiLock::MultiLock(MultiLock&&) noexcept = default;
MultiLock& MultiLock::operator=(MultiLock&&) noexcept = default;
MultiLock::~MultiLock() = default;

const std::vector<std::string>& MultiLock::names() const noexcept {
  return impl_->locks->names;
}

MultiLease MultiLock::acquire(const AcquireOptions& options) {
  return impl_->acquire(options).or_throw();
}

MultiLease MultiLock::acquire(const AcquireOptions& options, std::error_code& ec) {
  return impl_->acquire(options).or_code(ec);
}

std::optional<MultiLease> MultiLock::try_acquire(AcquireOptions options) {
  return try_acquire_for(Duration(), std::move(options));
}

std::optional<MultiLease> MultiLock::try_acquire(AcquireOptions options, std::error_code& ec) {
  return try_acquire_for(Duration(), std::move(options), ec);
}

std::optional<MultiLease> MultiLock::try_acquire_for(Duration wait, AcquireOptions options) {
  return impl_->try_acquire(wait, std::move(options)).unless_busy();
}

std::optional<MultiLease> MultiLock::try_acquire_for(Duration wait, AcquireOptions options, std::error_code& ec) {
  return impl_->try_acquire(wait, std::move(options)).unless_busy(ec);
}

void MultiLock::start_acquire(const AcquireOptions& options, detail::Completion<MultiLease> handler) {
  std::make_shared<detail::MultiAcquisition>(impl_->locks, options, std::move(handler))->begin();
}

void MultiLock::lock() & {
  auto options = impl_->defaults.get();
  options.wait = forever;
  if (impl_->leases.mine().held()) {
    throw Error(Failure{std::make_error_code(std::errc::resource_deadlock_would_occur),
                        "this thread already holds lock \"" + names().front() + "\" and the others of this MultiLock"});
  }
  impl_->leases.enter([&] { return acquire(options); });
}

bool MultiLock::try_lock() & {
  return try_lock_within(Duration());
}

bool MultiLock::try_lock_within(Duration wait) {
  if (impl_->leases.mine().held()) return false;
  auto options = impl_->defaults.get();
  options.wait = std::max(wait, Duration());
  return impl_->leases.try_enter([&] { return impl_->acquire(options).unless_busy(); });
}

void MultiLock::unlock() noexcept {
  const auto lease = impl_->leases.decrement();  // released when it goes out of scope
}

const MultiLease& MultiLock::lease() const& noexcept {
  return impl_->leases.mine();
}

void MultiLock::set_defaults(const AcquireOptions& options) & {
  impl_->defaults.set(options);
}

AcquireOptions MultiLock::defaults() const {
  return impl_->defaults.get();
}

}  // namespace dlock
