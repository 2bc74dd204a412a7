#include <dlock/lock.hpp>

#include <utility>

#include "core/api/lock_impl.hpp"

namespace dlock {

DistributedLock::DistributedLock(std::unique_ptr<detail::LockImpl> impl) noexcept : impl_(std::move(impl)) {}
DistributedLock::DistributedLock(DistributedLock&&) noexcept = default;
DistributedLock& DistributedLock::operator=(DistributedLock&&) noexcept = default;
DistributedLock::~DistributedLock() = default;

const std::string& DistributedLock::name() const noexcept {
  return impl_->name;
}

Lease DistributedLock::acquire(const AcquireOptions& options) {
  return impl_->acquire(Mode::exclusive, options).or_throw();
}

Lease DistributedLock::acquire(const AcquireOptions& options, std::error_code& ec) {
  return impl_->acquire(Mode::exclusive, options).or_code(ec);
}

std::optional<Lease> DistributedLock::try_acquire(AcquireOptions options) {
  return try_acquire_for(Duration(), std::move(options));
}

std::optional<Lease> DistributedLock::try_acquire(AcquireOptions options, std::error_code& ec) {
  return try_acquire_for(Duration(), std::move(options), ec);
}

std::optional<Lease> DistributedLock::try_acquire_for(Duration wait, AcquireOptions options) {
  return impl_->try_acquire(Mode::exclusive, wait, std::move(options)).unless_busy();
}

std::optional<Lease> DistributedLock::try_acquire_for(Duration wait, AcquireOptions options, std::error_code& ec) {
  return impl_->try_acquire(Mode::exclusive, wait, std::move(options)).unless_busy(ec);
}

void DistributedLock::start_acquire(const AcquireOptions& options, detail::Completion<Lease> handler) {
  impl_->start_acquire(Mode::exclusive, options, std::move(handler));
}

void DistributedLock::lock() & {
  impl_->lock(Mode::exclusive);
}

bool DistributedLock::try_lock() & {
  return try_lock_within(Duration());
}

bool DistributedLock::try_lock_within(Duration wait) {
  return impl_->try_lock_within(Mode::exclusive, wait);
}

void DistributedLock::unlock() noexcept {
  impl_->unlock(Mode::exclusive);
}

const Lease& DistributedLock::lease() const& noexcept {
  return impl_->mine();
}

void DistributedLock::set_defaults(const AcquireOptions& options) & {
  impl_->defaults.set(options);
}

AcquireOptions DistributedLock::defaults() const {
  return impl_->defaults.get();
}

}  // namespace dlock
