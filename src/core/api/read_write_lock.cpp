#include <dlock/read_write_lock.hpp>

#include <utility>

#include "core/api/lock_impl.hpp"

namespace dlock {

ReadWriteLock::ReadWriteLock(std::unique_ptr<detail::LockImpl> impl) noexcept : impl_(std::move(impl)) {}
ReadWriteLock::ReadWriteLock(ReadWriteLock&&) noexcept = default;
ReadWriteLock& ReadWriteLock::operator=(ReadWriteLock&&) noexcept = default;
ReadWriteLock::~ReadWriteLock() = default;

const std::string& ReadWriteLock::name() const noexcept {
  return impl_->name;
}

// --- To write --------------------------------------------------------------------------------------------------------

Lease ReadWriteLock::acquire(const AcquireOptions& options) {
  return impl_->acquire(Mode::exclusive, options).or_throw();
}

Lease ReadWriteLock::acquire(const AcquireOptions& options, std::error_code& ec) {
  return impl_->acquire(Mode::exclusive, options).or_code(ec);
}

std::optional<Lease> ReadWriteLock::try_acquire(AcquireOptions options) {
  return try_acquire_for(Duration(), std::move(options));
}

std::optional<Lease> ReadWriteLock::try_acquire(AcquireOptions options, std::error_code& ec) {
  return try_acquire_for(Duration(), std::move(options), ec);
}

std::optional<Lease> ReadWriteLock::try_acquire_for(Duration wait, AcquireOptions options) {
  return impl_->try_acquire(Mode::exclusive, wait, std::move(options)).unless_busy();
}

std::optional<Lease> ReadWriteLock::try_acquire_for(Duration wait, AcquireOptions options, std::error_code& ec) {
  return impl_->try_acquire(Mode::exclusive, wait, std::move(options)).unless_busy(ec);
}

void ReadWriteLock::start_acquire(const AcquireOptions& options, detail::Completion<Lease> handler) {
  impl_->start_acquire(Mode::exclusive, options, std::move(handler));
}

// --- To read ---------------------------------------------------------------------------------------------------------

Lease ReadWriteLock::acquire_shared(const AcquireOptions& options) {
  return impl_->acquire(Mode::shared, options).or_throw();
}

Lease ReadWriteLock::acquire_shared(const AcquireOptions& options, std::error_code& ec) {
  return impl_->acquire(Mode::shared, options).or_code(ec);
}

std::optional<Lease> ReadWriteLock::try_acquire_shared(AcquireOptions options) {
  return try_acquire_shared_for(Duration(), std::move(options));
}

std::optional<Lease> ReadWriteLock::try_acquire_shared(AcquireOptions options, std::error_code& ec) {
  return try_acquire_shared_for(Duration(), std::move(options), ec);
}

std::optional<Lease> ReadWriteLock::try_acquire_shared_for(Duration wait, AcquireOptions options) {
  return impl_->try_acquire(Mode::shared, wait, std::move(options)).unless_busy();
}

std::optional<Lease> ReadWriteLock::try_acquire_shared_for(Duration wait, AcquireOptions options, std::error_code& ec) {
  return impl_->try_acquire(Mode::shared, wait, std::move(options)).unless_busy(ec);
}

void ReadWriteLock::start_acquire_shared(const AcquireOptions& options, detail::Completion<Lease> handler) {
  impl_->start_acquire(Mode::shared, options, std::move(handler));
}

// --- SharedTimedMutex ------------------------------------------------------------------------------------------------

void ReadWriteLock::lock() & {
  impl_->lock(Mode::exclusive);
}

bool ReadWriteLock::try_lock() & {
  return try_lock_within(Duration());
}

bool ReadWriteLock::try_lock_within(Duration wait) {
  return impl_->try_lock_within(Mode::exclusive, wait);
}

void ReadWriteLock::unlock() noexcept {
  impl_->unlock(Mode::exclusive);
}

void ReadWriteLock::lock_shared() & {
  impl_->lock(Mode::shared);
}

bool ReadWriteLock::try_lock_shared() & {
  return try_lock_shared_within(Duration());
}

bool ReadWriteLock::try_lock_shared_within(Duration wait) {
  return impl_->try_lock_within(Mode::shared, wait);
}

void ReadWriteLock::unlock_shared() noexcept {
  impl_->unlock(Mode::shared);
}

const Lease& ReadWriteLock::lease() const& noexcept {
  return impl_->mine();
}

void ReadWriteLock::set_defaults(const AcquireOptions& options) & {
  impl_->defaults.set(options);
}

AcquireOptions ReadWriteLock::defaults() const {
  return impl_->defaults.get();
}

}  // namespace dlock
